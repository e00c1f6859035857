"""The lean socket stream: more than a buffer takes, waits that end, sockets that are gone."""

import socket

import pytest
import trio
import trio.testing

from cambist.feeds.transport.lean_stream import LeanStream


def pair() -> tuple[LeanStream, trio.SocketStream]:
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
    first, second = (trio.SocketStream(trio.socket.from_stdlib_socket(end)) for end in (near, far))
    return LeanStream(first), second


async def test_more_than_the_buffer_takes_goes_out_as_it_is_read() -> None:
    near, far = pair()
    data = bytes(range(256)) * 20_000
    received = bytearray()

    async def read() -> None:
        async for piece in far:
            received.extend(piece)

    async with far, trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await near.send_all(data)
        await near.aclose()
    assert received == data


async def test_what_waits_to_be_read_is_seen_and_left() -> None:
    near, far = pair()
    async with near, far:
        assert not near.has_input()
        await far.send_all(b"a")
        assert near.has_input()
        assert await near.receive_some() == b"a"
        assert not near.has_input()
        await far.aclose()
        assert near.has_input()
        assert await near.receive_some() == b""


async def test_closing_wakes_who_waits() -> None:
    near, far = pair()

    async def read() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await near.receive_some()

    async with far, trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        near.close()
        near.close()


async def test_a_socket_whose_other_end_is_gone_is_broken() -> None:
    near, far = pair()
    async with near:
        await far.aclose()
        with pytest.raises(trio.BrokenResourceError):
            await near.send_all(b"a")
