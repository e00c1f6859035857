"""A server on a real socket that does with its n-th connection what the n-th script says."""

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import trio

from cambist.codecs.http1 import Http1Limits, Request, ServerConnection, Upgrade
from cambist.feeds.transport.streams import listen

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Caller:
    """An accepted connection."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._framing = ServerConnection(Http1Limits())

    async def request(self) -> Request:
        """The next request, whole. Raises EOFError when none comes any more."""
        while True:
            asked = await self.asked()
            if isinstance(asked, Request):
                return asked

    async def asked(self) -> Request | Upgrade:
        """The next request, an opening handshake too. Raises EOFError when none comes any more."""
        while True:
            event = self._framing.next_event()
            if isinstance(event, Request | Upgrade):
                return event
            data = await self.stream.receive_some()
            if not data:
                raise EOFError
            self._framing.receive_data(bytes(data))

    async def answer(self, *pieces: bytes) -> Request:
        """Read a request, and write these pieces, each of them in a segment of its own."""
        request = await self.request()
        for piece in pieces or (OK,):
            await self.stream.send_all(piece)
        return request

    async def at_end(self) -> bool:
        """Whether the other side ends the connection now; waits for it."""
        try:
            return not await self.stream.receive_some()
        except trio.BrokenResourceError:
            return True


Script: TypeAlias = Callable[[Caller], Awaitable[object]]


async def keep_answering(caller: Caller, answer: bytes = OK) -> None:
    """Answer the same until the other side has enough."""
    while True:
        try:
            await caller.answer(answer)
        except (EOFError, trio.BrokenResourceError):
            return


@asynccontextmanager
async def scripted_server(*scripts: Script, tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """Yield the port. The last script serves all further connections too. A script's error fails the test."""
    served = 0

    async def serve(stream: trio.SocketStream, script: Script) -> None:
        async with (
            trio.SSLStream(stream, tls, server_side=True, https_compatible=True) if tls else stream as s
        ):
            await script(Caller(s))

    async def accept(listener: trio.SocketListener) -> None:
        nonlocal served
        while True:
            stream = await listener.accept()
            nursery.start_soon(serve, stream, scripts[min(served, len(scripts) - 1)])
            served += 1

    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listen("127.0.0.1", 0)))
    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(accept, listener)
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()
