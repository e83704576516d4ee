"""Lists the messages of an order, page by page, with their timelines."""

import os

import httpx

api = httpx.Client(
    base_url=os.environ["HELIOGRAPH_URL"],
    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},
)


def messages(**filters):
    while True:
        page = api.get("/v1/messages", params=filters).raise_for_status().json()
        yield from page["data"]
        if page["nextCursor"] is None:
            return
        filters["cursor"] = page["nextCursor"]


for message in messages(reference="order 7", limit=2):
    print(message["status"], *[step["event"] for step in message["timeline"]])
