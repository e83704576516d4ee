"""Cancels a message if none of its parts has been sent."""

import os
import sys

import httpx

api = httpx.Client(
    base_url=os.environ["HELIOGRAPH_URL"],
    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},
)

response = api.post(f"/v1/messages/{sys.argv[1]}/cancel")
if response.status_code == 409:
    print("too late:", response.json()["detail"])
else:
    print(response.raise_for_status().json()["status"])
