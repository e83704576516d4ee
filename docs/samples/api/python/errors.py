"""Sends a message, retries temporary errors, and prints what is wrong otherwise."""

import os
import time
import uuid

import httpx

api = httpx.Client(
    base_url=os.environ["HELIOGRAPH_URL"],
    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},
)


def send(body, attempts=5):
    """Returns the accepted message, or the problem details."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    for attempt in range(1, attempts + 1):
        wait = 2**attempt
        try:
            response = api.post("/v1/send/sms", json=body, headers=headers)
        except httpx.TransportError:
            # The message may have been accepted: the idempotency key makes a retry safe.
            if attempt == attempts:
                raise
        else:
            retry = response.status_code in (408, 429) or response.status_code >= 500
            in_flight = response.status_code == 409 and response.json()["code"] == "request_in_flight"
            if not (retry or in_flight) or attempt == attempts:
                return response.json()
            wait = int(response.headers.get("Retry-After", wait))
        time.sleep(wait)


problem = send({"originator": "Shop", "recipient": "12", "text": "Hello", "shedule": "tomorrow"})
for fault in problem.get("errors", []):
    print(fault["pointer"], fault["code"])
message = send({"originator": "Shop", "recipient": "+447700900123", "text": "Hello"})
print(message["status"])
