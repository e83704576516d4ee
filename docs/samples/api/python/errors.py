"""Sends with retries where they help, and says what is wrong where they do not."""

import os
import time
import uuid

import httpx

api = httpx.Client(
    base_url=os.environ["HELIOGRAPH_URL"],
    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},
)


def send(body, attempts=5):
    """The accepted message, or the problem."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    for attempt in range(1, attempts + 1):
        wait = 2**attempt
        try:
            answer = api.post("/v1/send/sms", json=body, headers=headers)
        except httpx.TransportError:
            # Nobody knows whether it was accepted: the key makes it safe to ask again.
            if attempt == attempts:
                raise
        else:
            again = answer.status_code in (408, 429) or answer.status_code >= 500
            in_flight = answer.status_code == 409 and answer.json()["code"] == "request_in_flight"
            if not (again or in_flight) or attempt == attempts:
                return answer.json()
            wait = int(answer.headers.get("Retry-After", wait))
        time.sleep(wait)


problem = send({"originator": "Shop", "recipient": "12", "text": "Hello", "shedule": "tomorrow"})
for fault in problem.get("errors", []):
    print(fault["pointer"], fault["code"])
message = send({"originator": "Shop", "recipient": "+447700900123", "text": "Hello"})
print(message["status"])
