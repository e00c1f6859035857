"""A webhook's receiver as a partner would write it: Python's own HTTP server, in a thread, and hmac.

with a_webhook_socket() as receiver:
    ...  # the venue posts to receiver.url
    assert [delivery.event["status"] for delivery in receiver.taken] == ["PENDING"]

A delivery whose signature is not that of Standard Webhooks is answered 401, and kept in `forged`.
"""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct

SECRET = "whsec_" + base64.b64encode(b"a partner's secret, 32 bytes long").decode()


class Taken(Struct, frozen=True):
    """A delivery that was answered 204."""

    id: str
    time_s: int
    event: dict[str, Any]


class WebhookSocket:
    """See the module.

    Attributes:
        url: what the venue posts to.
        status: of the answers to deliveries that are signed; only those of 2xx are in `taken`.
        asked: deliveries that came.
    """

    def __init__(self) -> None:
        self.url = ""
        self.status = 204
        self.asked = 0
        self.taken: list[Taken] = []
        self.forged: list[bytes] = []

    def answer(self, headers: Any, body: bytes) -> int:
        """The status of the answer to a request."""
        self.asked += 1
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        given = [word.partition(",") for word in headers["webhook-signature"].split()]
        if not any(version == "v1" and hmac.compare_digest(text, expected) for version, _, text in given):
            self.forged.append(body)
            return 401
        status = self.status
        if 200 <= status < 300:
            taken = Taken(headers["webhook-id"], int(headers["webhook-timestamp"]), json.loads(body))
            self.taken.append(taken)
        return status

    def statuses(self, order_hash: str) -> list[str]:
        """Of an order, as they were told."""
        return [one.event["status"] for one in self.taken if one.event["orderHash"] == order_hash]


@contextmanager
def a_webhook_socket() -> Iterator[WebhookSocket]:
    """Listening."""
    receiver = WebhookSocket()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(receiver.answer(self.headers, body))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/orders?from=venue"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
