"""Gets the encoding, the number of parts and the price of a message without sending it."""

import os

import httpx

api = httpx.Client(
    base_url=os.environ["HELIOGRAPH_URL"],
    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},
)

body = {"originator": "Shop", "recipient": "+447700900123", "text": "Ваш заказ прибыл", "dryRun": True}
quote = api.post("/v1/send/sms", json=body).raise_for_status().json()
print(quote["encoding"], quote["parts"], quote["price"], quote["currency"])
