"""Whatever comes, however it is split: the server answers or closes, logs nothing and serves the next one."""

from collections.abc import Awaitable, Callable
from itertools import pairwise

import structlog
import trio
import trio.testing
from hypothesis import example, given
from hypothesis import strategies as st

from cambist.config.timeouts import SERVER_BODY_S, SERVER_HEADER_S, SERVER_IDLE_S
from support.patience import PATIENCE_S
from support.server.server_harness import (
    LAST_GET,
    Served,
    answers,
    post,
    read_to_end,
    serving,
    serving_memory,
    statuses,
)

PIECES = st.sampled_from(
    [
        b"GET / HTTP/1.1\r\n", b"POST /echo HTTP/1.1\r\n", b"OPTIONS * HTTP/1.1\r\n",
        b"HEAD /wide HTTP/1.0\r\n",
        b"POST /slow HTTP/1.1\r\n", b"GET /numbers HTTP/1.1\r\n", b"GET /broken/%ff HTTP/1.1\r\n",
        b"Host: a\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n",
        b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\nConnection: upgrade\r\n", b"Origin: x\r\n",
        b"\r\n", b"\r\n\r\n", b"hello", b"5\r\nhello\r\n", b"0\r\n\r\n", b"\r", b"\n", b" ", b":", b"\x00",
    ]
)  # fmt: skip
INPUT = st.lists(PIECES | st.binary(max_size=40), max_size=30).map(b"".join)
WHOLE = st.lists(
    st.builds(post, st.sampled_from([b"/echo", b"/slow"]), st.binary(max_size=300)), min_size=1, max_size=8
)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(places)]


def run(body: Callable[[], Awaitable[None]]) -> None:
    with structlog.testing.capture_logs() as logs:
        trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))
    assert not logs


@given(data=INPUT, cuts=st.lists(st.integers(0, 2_000), max_size=8), half_close=st.booleans())
@example(data=b"", cuts=[], half_close=False)
def test_a_task_answers_or_closes_in_time(data: bytes, cuts: list[int], half_close: bool) -> None:
    async def body() -> None:
        async with serving_memory() as (_, listener), listener.connect() as stream:
            with trio.fail_after(3 * (SERVER_HEADER_S + SERVER_BODY_S + SERVER_IDLE_S)):
                try:
                    for piece in split(data, cuts):
                        await stream.send_all(piece)
                        await trio.sleep(0.01)
                    if half_close:
                        await stream.send_eof()
                except trio.BrokenResourceError:
                    pass
                received = await read_to_end(stream)
            assert received == b"" or received.startswith(b"HTTP/1.1 ")
            async with listener.connect() as second:
                await second.send_all(LAST_GET)
                assert statuses(await read_to_end(second)) == [200]

    run(body)


@given(requests=WHOLE, cuts=st.lists(st.integers(0, 5_000), max_size=12))
def test_answers_do_not_depend_on_how_requests_are_split(requests: list[bytes], cuts: list[int]) -> None:
    async def body() -> None:
        async with serving_memory() as (_, listener), listener.connect() as stream:
            for piece in split(b"".join(requests) + LAST_GET, cuts):
                await stream.send_all(piece)
                await trio.testing.wait_all_tasks_blocked()
            found = [answer.body for answer in answers(await read_to_end(stream))]
            assert found == [request.split(b"\r\n\r\n", 1)[1] for request in requests] + [b'"hello"']

    run(body)


@given(inputs=st.lists(st.tuples(INPUT, st.lists(st.integers(0, 2_000), max_size=4)), max_size=5))
def test_the_reactor_answers_or_closes(inputs: list[tuple[bytes, list[int]]]) -> None:
    async def body() -> None:
        async with serving(reactor=True) as served:
            async with trio.open_nursery() as nursery:
                for data, cuts in inputs:
                    nursery.start_soon(_throw, served, split(data, cuts))
            assert statuses(await served.converse(LAST_GET)) == [200]

    with structlog.testing.capture_logs() as logs:
        trio.run(body)
    assert not logs


async def _throw(served: Served, pieces: list[bytes]) -> None:
    """Send pieces, say that no more will come, and expect an end."""
    with trio.fail_after(PATIENCE_S):
        async with await served.connect() as stream:
            try:
                for piece in pieces:
                    await stream.send_all(piece)
                    await trio.lowlevel.checkpoint()
                await stream.send_eof()
            except trio.BrokenResourceError:
                pass
            received = await read_to_end(stream)
            assert received.removesuffix(b"<RESET>") == b"" or received.startswith(b"HTTP/1.1 ")


@given(requests=WHOLE, cuts=st.lists(st.integers(0, 5_000), max_size=6))
def test_both_drivers_give_the_same_answers(requests: list[bytes], cuts: list[int]) -> None:
    async def body(*, reactor: bool) -> list[bytes]:
        async with serving(reactor=reactor) as served:
            data = await served.converse(*split(b"".join(requests) + LAST_GET, cuts))
            return [answer.body for answer in answers(data)]

    async def compare() -> None:
        assert await body(reactor=True) == await body(reactor=False)

    trio.run(compare)
