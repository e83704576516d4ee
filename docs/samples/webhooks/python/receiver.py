"""Receives Heliograph's webhooks, verifies each, and prints `verified TYPE ID`.

pip install -r requirements.txt
WEBHOOK_SECRET=whsec_… PORT=9000 python3 receiver.py
"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


def receive(body, headers):
    """What to answer to a POST with this raw body: a status, and words when it is refused."""
    try:
        event = webhook.verify(body, headers)
    except (WebhookVerificationError, ValueError) as why:
        return 400, f"not verified: {why}"
    # The same id may come again: what was done for it once is not done twice.
    print("verified", event["type"], headers["webhook-id"], flush=True)
    return 204, ""


class Receiver(BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.answer(400, "there is no Content-Length")
        elif int(length) > 1 << 20:
            self.answer(413, "the body is longer than 1 MiB")
        else:
            self.answer(*receive(self.rfile.read(int(length)), self.headers))

    def answer(self, status, words):
        self.send_response(status)
        if words:
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(words.encode())))
        self.end_headers()
        self.wfile.write(words.encode())


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
