"""Sends a message with an idempotency key and waits until it is delivered."""

import os
import time
import uuid

import httpx

api = httpx.Client(
    base_url=os.environ["HELIOGRAPH_URL"],
    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},
)

body = {
    "originator": "Shop",
    "recipient": "+447700900123",
    "text": "Your parcel comes at 9",
    "reference": "order 7",
    "validitySeconds": 3600,
    "maxParts": 1,
}
# Store the key with the order: every retry has to use the same key.
key = {"Idempotency-Key": str(uuid.uuid4())}
response = api.post("/v1/send/sms", json=body, headers=key).raise_for_status()
message = response.json()

while message["status"] in ("QUEUED", "SENT"):
    time.sleep(0.5)
    message = api.get(f"/v1/messages/{message['id']}").raise_for_status().json()
print(message["status"], message["recipient"], message["reference"])
