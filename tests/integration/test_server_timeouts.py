"""Every wait has its bound: on streams in memory, with a clock that the test owns."""

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from cambist.config.timeouts import SERVER_LINGER_S
from cambist.engine.host.server import HttpCall, Reply, StreamReply
from support.server.server_harness import (
    GET,
    MemoryListener,
    a_router,
    a_surface,
    answers,
    post,
    read_to_end,
    serving_memory,
    statuses,
)

WAITS: dict[str, Any] = {"header_s": 10, "body_s": 20, "idle_s": 75, "write_s": 15, "route_s": 30}


@pytest.fixture
def clock(autojump_clock: trio.testing.MockClock) -> trio.testing.MockClock:
    return autojump_clock


async def test_an_idle_connection_is_closed_silently(clock: trio.testing.MockClock) -> None:
    async with serving_memory(**WAITS) as (_, listener), listener.connect() as stream:
        await stream.send_all(GET)
        assert statuses(await read_to_end(stream)) == [200]
        assert trio.current_time() == pytest.approx(75)


async def test_a_connection_that_never_asks_is_closed_as_soon_as_a_slow_header(
    clock: trio.testing.MockClock,
) -> None:
    async with serving_memory(**WAITS) as (_, listener), listener.connect() as stream:
        assert await read_to_end(stream) == b""
        assert trio.current_time() == pytest.approx(10)


async def test_a_header_that_trickles_is_answered_408(clock: trio.testing.MockClock) -> None:
    async with serving_memory(**WAITS) as (_, listener), listener.connect() as stream:
        await trio.sleep(9)
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_trickle, stream, GET[:-2] + b"x: " + b"y" * 100)
            found = answers(await read_to_end(stream))
            assert [answer.status for answer in found] == [408]
            assert found[0].keep_alive is False
            assert trio.current_time() - began == pytest.approx(10, abs=2.1)
            nursery.cancel_scope.cancel()


async def test_a_body_that_trickles_is_answered_408(clock: trio.testing.MockClock) -> None:
    async with serving_memory(**WAITS) as (_, listener), listener.connect() as stream:
        await stream.send_all(post(b"/echo", b"whole"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_trickle, stream, post(b"/echo", b"x" * 1_000))
            assert statuses(await read_to_end(stream)) == [200, 408]
            nursery.cancel_scope.cancel()


async def _trickle(stream: trio.abc.SendStream, data: bytes) -> None:
    try:
        head = data.find(b"\r\n\r\n") + 4
        if head > 4:
            await stream.send_all(data[:head])
            data = data[head:]
        for at in range(len(data)):
            await stream.send_all(data[at : at + 1])
            await trio.sleep(1)
    except trio.BrokenResourceError:
        pass


async def test_requests_that_keep_coming_never_time_out(clock: trio.testing.MockClock) -> None:
    async with serving_memory(**WAITS) as (server, listener), listener.connect() as stream:
        for _ in range(10):
            await stream.send_all(GET[:10])
            await trio.sleep(9)
            await stream.send_all(GET[10:])
            assert statuses(bytes(await stream.receive_some(10_000))) == [200]
            await trio.sleep(70)
        assert server.statistics().faults == 0


async def test_who_does_not_read_is_cut_off(clock: trio.testing.MockClock) -> None:
    listener = MemoryListener(trio.testing.lockstep_stream_pair)
    async with serving_memory(listener=listener, **WAITS) as (server, _), listener.connect() as stream:
        await stream.send_all(GET)
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(GET)
        assert trio.current_time() == pytest.approx(15)
        assert server.statistics().cut_off == 1


async def test_a_coroutine_route_is_bounded(clock: trio.testing.MockClock) -> None:
    cleaned = trio.Event()

    async def hang(call: HttpCall) -> Reply:
        try:
            await trio.sleep_forever()
        finally:
            cleaned.set()
        raise AssertionError

    surface = a_surface()
    surface.coroutine("GET", "/hang", hang)
    async with serving_memory(a_router(surface), **WAITS) as (_, listener), listener.connect() as stream:
        await stream.send_all(GET.replace(b"/", b"/hang", 1) + GET)
        assert statuses(await read_to_end(stream)) == [503, 200]
        assert cleaned.is_set()
        assert trio.current_time() == pytest.approx(30 + 75)


async def test_a_stream_may_take_its_time_but_not_its_reader(clock: trio.testing.MockClock) -> None:
    async def count(call: HttpCall) -> StreamReply:
        async def pieces() -> AsyncIterator[bytes]:
            for number in range(5):
                await trio.sleep(100)
                yield b"%d" % number

        return StreamReply(content_type=b"text/plain", pieces=pieces())

    surface = a_surface()
    surface.coroutine("GET", "/count", count)
    get = GET.replace(b"/", b"/count", 1)
    async with serving_memory(a_router(surface), **WAITS) as (_, listener), listener.connect() as stream:
        await stream.send_all(get)
        (answer,) = answers(await read_to_end(stream))
        assert answer.body == b"01234"
    slow = MemoryListener(trio.testing.lockstep_stream_pair)
    async with serving_memory(a_router(surface), slow, **WAITS) as (server, _), slow.connect() as stream:
        await stream.send_all(get)
        assert await stream.receive_some(1_000)
        await trio.sleep(100 + 16)
        assert server.statistics().cut_off == 1


async def test_lingering_after_a_refusal_is_bounded(clock: trio.testing.MockClock) -> None:
    async with serving_memory(**WAITS) as (_, listener), listener.connect() as stream:
        with pytest.raises(trio.BrokenResourceError):  # noqa: PT012 - until it is closed
            await stream.send_all(b"garbage\r\n\r\n")
            while trio.current_time() < 10 * SERVER_LINGER_S:
                await stream.send_all(b"more")
                await trio.sleep(0.1)
        assert trio.current_time() < SERVER_LINGER_S + 1
        assert statuses(await read_to_end(stream)) == [400]


async def test_a_drain_answers_what_has_come_and_closes_the_idle(clock: trio.testing.MockClock) -> None:
    async with serving_memory(**WAITS) as (server, listener):
        idle, busy, late = (listener.connect() for _ in range(3))
        await busy.send_all(post(b"/slow", b"a") + post(b"/echo", b"b") + GET[:10])
        await trio.testing.wait_all_tasks_blocked()
        server.drain()
        await trio.sleep(0.1)
        await late.send_all(GET * 2)
        await busy.send_all(GET[10:])
        found = answers(await read_to_end(late))
        assert [(answer.status, answer.keep_alive) for answer in found] == [(200, True), (200, False)]
        assert [answer.keep_alive for answer in answers(await read_to_end(busy))] == [True, True, False]
        assert await read_to_end(idle) == b""
        assert trio.current_time() < 1


async def test_a_drain_waits_for_a_route_and_cuts_off_what_takes_too_long(
    clock: trio.testing.MockClock,
) -> None:
    async def nap(call: HttpCall) -> Reply:
        await trio.sleep(float(call.parameters[0]))
        return Reply(200, b"1")

    surface = a_surface()
    surface.coroutine("GET", "/nap/{seconds}", nap)
    async with serving_memory(a_router(surface), drain_s=10, **WAITS) as (server, listener):
        short, long = listener.connect(), listener.connect()
        await short.send_all(GET.replace(b"/", b"/nap/9", 1))
        await long.send_all(GET.replace(b"/", b"/nap/25", 1))
        await trio.testing.wait_all_tasks_blocked()
        server.drain()
        (answer,) = answers(await read_to_end(short))
        assert (answer.status, answer.keep_alive) == (200, False)
        assert await read_to_end(long) in (b"", b"<RESET>")
        assert trio.current_time() == pytest.approx(10)


@pytest.mark.parametrize("endless", [False, True])
async def test_a_drain_ends_subscriptions_and_sends_finite_streams_to_their_end(
    endless: bool, clock: trio.testing.MockClock
) -> None:
    async def stream_reply(call: HttpCall) -> StreamReply:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            await trio.sleep(math.inf if endless else 5)
            yield b"b"

        return StreamReply(content_type=b"text/plain", pieces=pieces(), endless=endless)

    surface = a_surface()
    surface.coroutine("GET", "/stream", stream_reply)
    async with serving_memory(a_router(surface), **WAITS) as (server, listener):
        stream = listener.connect()
        await stream.send_all(GET.replace(b"/", b"/stream", 1))
        await trio.testing.wait_all_tasks_blocked()
        server.drain()
        data = await read_to_end(stream)
        assert (b"0\r\n\r\n" in data) is not endless
        assert trio.current_time() == pytest.approx(0 if endless else 5, abs=0.3)
