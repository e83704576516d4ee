"""Prints the available balance."""

import os
from decimal import Decimal

import httpx

api = httpx.Client(
    base_url=os.environ["HELIOGRAPH_URL"],
    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},
)

balance = api.get("/v1/balance").raise_for_status().json()
# Use a decimal type: a float loses precision.
print(Decimal(balance["available"]), balance["currency"])
