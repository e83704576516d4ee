"""Receives and verifies Heliograph webhooks, and prints `verified TYPE ID` for each.

pip install -r requirements.txt
WEBHOOK_SECRET=whsec_… PORT=9000 python3 receiver.py
"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


def receive(body, headers):
    """Returns the response to a POST with this raw body: a status, and an error message."""
    try:
        event = webhook.verify(body, headers)
    except (WebhookVerificationError, ValueError) as error:
        return 400, f"not verified: {error}"
    # The same id can arrive again: process each id only once.
    print("verified", event["type"], headers["webhook-id"], flush=True)
    return 204, ""


class Receiver(BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.respond(400, "Content-Length is missing")
        elif int(length) > 1 << 20:
            self.respond(413, "the body is longer than 1 MiB")
        else:
            self.respond(*receive(self.rfile.read(int(length)), self.headers))

    def respond(self, status, text):
        self.send_response(status)
        if text:
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
