"""Server with cambist's handler of POST /firm on a bare uvloop Protocol: the fastest form of asyncio.

The server parses by httptools and has none of cambist's limits: no bound on a head or a body, no time-outs,
no back-pressure, no routing, no request ids and no Date. Runs in .venv-load, with cambist's own versions of
packages.
"""

# pyright: reportMissingImports=false
import asyncio
import signal
import socket
from typing import cast

import httptools
import uvloop

from bench.maker_fixture import Answering, answering, build_maker
from bench.peers.served import freeze, inherited, options


class FirmProtocol(asyncio.Protocol):
    """HTTP connection of a client, whose requests cambist's handler of POST /firm answers."""

    def __init__(self, answer: Answering) -> None:
        self._answer = answer
        self._parser = httptools.HttpRequestParser(self)
        self._target = self._body = b""
        self._headers: list[tuple[bytes, bytes]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._headers = []
        self._target = self._body = b""

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        reply = self._answer(self._target, self._headers, self._body)
        self._transport.write(
            b"HTTP/1.1 %d \r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b"
            % (reply.status, reply.content_type, len(reply.body), reply.body)
        )


async def serve(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    answer = answering(build_maker())
    freeze()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    await loop.create_server(lambda: FirmProtocol(answer), sock=listener)
    await stopped.wait()


if __name__ == "__main__":
    chosen = options(__doc__).parse_args()
    uvloop.run(serve(inherited(chosen.fd)))
