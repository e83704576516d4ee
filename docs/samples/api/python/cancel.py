"""Calls a message back, if no part of it has gone out."""

import os
import sys

import httpx

api = httpx.Client(
    base_url=os.environ["HELIOGRAPH_URL"],
    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},
)

answer = api.post(f"/v1/messages/{sys.argv[1]}/cancel")
if answer.status_code == 409:
    print("too late:", answer.json()["detail"])
else:
    print(answer.raise_for_status().json()["status"])
