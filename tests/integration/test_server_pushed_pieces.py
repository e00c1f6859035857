"""Pieces of a streamed answer that a handler writes at once, beside its iterator's, on real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from cambist.engine.host.server import HttpCall, StreamReply
from cambist.engine.host.server.routing import WriteNow
from support.patience import PATIENCE_S, until
from support.server.server_harness import GET, a_router, a_surface, answers, read_to_end, serving

MUCH = b"x" * (12 << 20)
"""More than the buffers of a connection take."""
END = b"0\r\n\r\n"


class Pushing:
    """A handler whose iterator waits between its pieces.

    Attributes:
        write: writes at once, once the answer has begun.
        last: the iterator's last piece; an empty one is none.
    """

    def __init__(self) -> None:
        self.write: WriteNow | None = None
        self.last = b"last"
        self.goes_on = trio.Event()

    async def handle(self, _: HttpCall) -> StreamReply:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"first,"
            await self.goes_on.wait()
            if self.last:
                yield self.last

        return StreamReply(content_type=b"text/plain", pieces=pieces(), attach=self.attach)

    def attach(self, write: WriteNow) -> None:
        self.write = write

    def written(self, piece: bytes) -> bool:
        """Whether a piece was written at once."""
        assert self.write is not None
        return self.write(piece)


async def until_there(stream: trio.SocketStream, mark: bytes, read: bytes = b"") -> bytes:
    """All that has come once the mark is there."""
    found = bytearray(read)
    with trio.fail_after(PATIENCE_S):
        while mark not in found[-100:]:
            found += await stream.receive_some(1 << 20)
    return bytes(found)


@asynccontextmanager
async def a_client(get: bytes = GET) -> AsyncIterator[tuple[Pushing, trio.SocketStream, bytes]]:
    """A handler, and a client that has read its first piece: with all that it has read."""
    pushing, surface = Pushing(), a_surface()
    surface.coroutine("GET", "/push", pushing.handle)
    async with (
        serving(a_router(surface), reactor=False, write_s=PATIENCE_S) as served,
        await served.connect() as stream,
    ):
        await stream.send_all(get.replace(b"/", b"/push", 1))
        yield pushing, stream, await until_there(stream, b"first,")


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_pieces_of_both_kinds_arrive_in_order(version: bytes) -> None:
    async with a_client(GET.replace(b"HTTP/1.1", b"HTTP/" + version)) as (pushing, stream, begun):
        assert pushing.written(b"second,")
        assert pushing.written(b"third,")
        pushing.goes_on.set()
        if version == b"1.1":
            (answer,) = answers(await until_there(stream, END, begun))
            body = answer.body
        else:
            body = (begun + await read_to_end(stream)).partition(b"\r\n\r\n")[2]
        assert body == b"first,second,third,last"


@pytest.mark.parametrize("last", [b"last", b""], ids=["a piece", "the end of the body"])
async def test_what_the_client_does_not_take_at_once_is_written_before_all_else(
    last: bytes,
) -> None:
    async with a_client() as (pushing, stream, begun):
        pushing.last = last
        assert pushing.written(MUCH)
        assert not pushing.written(b"lost"), "beside the rest"
        pushing.goes_on.set()
        (answer,) = answers(await until_there(stream, END, begun))
        assert answer.body == b"first," + MUCH + last


async def test_to_a_client_that_has_gone_nothing_is_written() -> None:
    async with a_client() as (pushing, stream, _):
        await stream.aclose()
        await until(lambda: not pushing.written(b"more"))
