"""A drain under load on real sockets: whatever was sent is answered."""

import pytest
import trio

from cambist.codecs.http1 import Response
from support.server_harness import PATIENCE_S, Served, answers, post, serving

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])


@both
@pytest.mark.parametrize("path", [b"/echo", b"/slow"])
async def test_nothing_that_was_sent_is_lost(reactor: bool, path: bytes) -> None:
    async with serving(reactor=reactor) as served:
        answered: list[int] = []
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(32):
                    nursery.start_soon(_ask_until_closed, served, path, answered)
                while served.server.statistics().requests < 1_000:
                    await trio.lowlevel.checkpoint()
                served.server.drain()
            await served.ended.wait()
        assert len(answered) == 32
        assert sum(answered) == served.server.statistics().requests
        assert served.server.statistics().connections == 0
        with pytest.raises(OSError, match=r"."):
            await served.connect()


async def _ask_until_closed(served: Served, path: bytes, answered: list[int]) -> None:
    """Ask until an answer says that it is the last; a request without an answer fails the test."""
    async with await served.connect() as stream:
        count = 0
        answer: Response | None = None
        while answer is None or answer.keep_alive:
            await stream.send_all(post(path, b"%d" % count))
            (answer,) = answers(bytes(await stream.receive_some(10_000)))
            assert answer.body == b"%d" % count
            count += 1
        assert await stream.receive_some(10) == b""
        answered.append(count)


@both
async def test_a_burst_that_was_received_is_answered_whole(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                await stream.send_all(b"".join(post(b"/echo", b"%d" % n) for n in range(500)))
                served.server.drain()
                data = b""
                while piece := await stream.receive_some(65_536):
                    data += piece
            found = answers(data)
            assert [answer.body for answer in found] == [b"%d" % n for n in range(500)]
            assert found[-1].keep_alive is False
            await served.ended.wait()


@both
async def test_connections_in_the_queue_are_served(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            streams = [await served.connect() for _ in range(20)]
            served.server.drain()
            for stream in streams:
                await stream.send_all(post(b"/echo", b"x"))
            for stream in streams:
                (answer,) = answers(bytes(await stream.receive_some(10_000)))
                assert answer.body == b"x"
                assert await stream.receive_some(10) == b""
                await stream.aclose()
            await served.ended.wait()


@both
async def test_a_cancelled_server_closes_everything(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        stream = await served.connect()
        await stream.send_all(post(b"/echo", b"x"))
        await stream.receive_some(10_000)
    with trio.fail_after(PATIENCE_S):
        async with stream:
            assert await stream.receive_some(10) == b""
