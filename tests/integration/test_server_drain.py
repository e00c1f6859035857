"""A drain under load on real sockets: whatever was sent is answered."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from cambist.codecs.http1 import Response
from cambist.config.timeouts import SERVER_DRAIN_IDLE_S
from cambist.engine.host.server import HttpCall, Reply, Router
from cambist.engine.host.server.turns import PacedStream, Turns
from support.patience import PATIENCE_S, until
from support.server.server_harness import (
    LAST_GET,
    Served,
    a_router,
    a_surface,
    answers,
    post,
    read_to_end,
    serving,
)
from support.stretched_bounds import OWN_S

CROWD = 400  # more than are answered in the time that a drain leaves idle connections

JUMP_S = 0.05
"""Seconds by which bytes sent on a socket have arrived."""

UNHURRIED: dict[str, Any] = {"header_s": 3_600, "idle_s": 3_600, "drain_s": 3_600}
"""Settings with which a server ends no connection of a crowd that gathers, or that waits for its answers."""

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])


@both
@pytest.mark.parametrize("path", [b"/echo", b"/slow"])
async def test_nothing_that_was_sent_is_lost(reactor: bool, path: bytes) -> None:
    """No client is so slow that the drain takes it for idle."""
    async with serving(reactor=reactor, waits={"drain_idle_s": PATIENCE_S}) as served:
        answered = [0] * 32
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for number in range(32):
                    nursery.start_soon(_ask_until_closed, served, path, answered, number)
                await until(lambda: all(answered) and sum(answered) >= 1_000)
                served.server.drain()
            await served.ended.wait()
        assert sum(answered) == served.server.statistics().requests
        assert served.server.statistics().connections == 0
        with pytest.raises(OSError, match=r"."):
            await served.connect()


async def _ask_until_closed(served: Served, path: bytes, answered: list[int], number: int) -> None:
    """Ask until an answer says that it is the last; a request without an answer fails the test."""
    async with await served.connect() as stream:
        answer: Response | None = None
        while answer is None or answer.keep_alive:
            body = b"%d" % answered[number]
            await stream.send_all(post(path, body))
            (answer,) = answers(bytes(await stream.receive_some(10_000)))
            assert answer.body == body
            answered[number] += 1
        assert await stream.receive_some(10) == b""


@both
async def test_a_burst_that_was_received_is_answered_whole(reactor: bool) -> None:
    """The last byte comes when the drain has surely begun, however fast the rest was answered."""
    burst = b"".join(post(b"/echo", b"%d" % n) for n in range(500))
    async with serving(reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                await stream.send_all(burst[:-1])
                served.server.drain()
                await wait_all_tasks_blocked()
                await stream.send_all(burst[-1:])
                data = b""
                while piece := await stream.receive_some(65_536):
                    data += piece
            found = answers(data)
            assert [answer.body for answer in found] == [b"%d" % n for n in range(500)]
            assert found[-1].keep_alive is False
            await served.ended.wait()


@both
async def test_connections_in_the_queue_are_served(reactor: bool) -> None:
    async with serving(reactor=reactor, waits={"linger_s": OWN_S["SERVER_LINGER_S"]}) as served:
        with ExitStack() as clients, trio.fail_after(PATIENCE_S):
            queue = []
            for _ in range(20):  # the server has no turn before the drain
                client = clients.enter_context(socket.create_connection(("127.0.0.1", served.port)))
                client.send(post(b"/echo", b"x"))
                queue.append(client)
            served.server.drain()
            for client in queue:
                await trio.lowlevel.wait_readable(client)
                (answer,) = answers(client.recv(10_000))
                assert answer.body == b"x"
                await trio.lowlevel.wait_readable(client)
                assert client.recv(10) == b""
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


def spin_1_ms() -> None:
    until = perf_counter() + 0.001
    while perf_counter() < until:
        pass


def spin(call: HttpCall) -> Reply:
    spin_1_ms()
    return Reply(200, call.request.body)


def spinning() -> Router:
    surface = a_surface()
    surface.plain("POST", "/spin", spin)
    return a_router(surface)


async def a_drained_crowd(served: Served, count: int) -> list[trio.SocketStream]:
    """Each was answered once, and has sent a request; then a drain began."""
    streams = [await served.connect() for _ in range(count)]
    for stream in streams:
        await stream.send_all(post(b"/echo", b"x"))
        await stream.receive_some(10_000)
    async with trio.open_nursery() as nursery:
        for number, stream in enumerate(streams):
            nursery.start_soon(stream.send_all, post(b"/spin", b"%d" % number))
    served.server.drain()
    return streams


async def all_answered(served: Served, streams: list[trio.SocketStream]) -> None:
    for number, stream in enumerate(streams):
        async with stream:
            (answer,) = answers(await read_to_end(stream))
            assert answer.body == b"%d" % number
    await served.ended.wait()


@both
async def test_a_crowd_whose_requests_wait_for_their_turn_is_answered(reactor: bool) -> None:
    async with serving(spinning(), reactor=reactor, connections_per_address_max=CROWD, **UNHURRIED) as served:
        with trio.fail_after(PATIENCE_S):
            await all_answered(served, await a_drained_crowd(served, CROWD))


class SlowPasses(trio.abc.Instrument):
    """Each pass of the scheduler takes so long that whoever began to wait in the one before is late.

    Args:
        then: done in each.
    """

    def __init__(self, clock: trio.testing.MockClock, then: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._then = then

    def before_io_wait(self, timeout: float) -> None:
        self._then()
        self._clock.jump(2 * SERVER_DRAIN_IDLE_S)


@both
async def test_what_has_come_is_answered_however_late_its_turn_is(
    reactor: bool, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = JUMP_S
    async with serving(spinning(), reactor=reactor, **UNHURRIED) as served:
        streams = await a_drained_crowd(served, 32)
        slow = SlowPasses(autojump_clock)
        trio.lowlevel.add_instrument(slow)
        await all_answered(served, streams)
        trio.lowlevel.remove_instrument(slow)


@pytest.mark.parametrize("passes", [0, 1])
async def test_what_comes_while_a_connection_begins_to_wait_is_answered(
    passes: int, autojump_clock: trio.testing.MockClock
) -> None:
    """The reactor hands its connections over when a drain begins; the request comes so many passes later."""
    autojump_clock.autojump_threshold = JUMP_S
    begun = 0

    def send() -> None:
        nonlocal begun
        if served.server.statistics().promoted:
            if begun == passes:
                client.send(post(b"/echo", b"late"))
            begun += 1

    async with serving(reactor=True, drain_s=3_600) as served:
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.setblocking(False)
            client.send(post(b"/echo", b"x"))
            await trio.lowlevel.wait_readable(client)
            client.recv(10_000)
            served.server.drain()
            slow = SlowPasses(autojump_clock, send)
            trio.lowlevel.add_instrument(slow)
            await trio.lowlevel.wait_readable(client)
            (answer,) = answers(client.recv(10_000))
            assert answer.body == b"late"
        await served.ended.wait()
        trio.lowlevel.remove_instrument(slow)


async def test_what_waits_for_its_turn_is_not_lost_when_the_reading_is_cancelled() -> None:
    async def hog() -> None:
        while True:
            await turns.take("127.0.0")
            spin_1_ms()
            await trio.lowlevel.checkpoint()

    turns = Turns()
    ours, theirs = socket.socketpair()
    sent, received = bytes(range(200)), b""
    with theirs, trio.fail_after(PATIENCE_S):
        async with PacedStream(ours, turns, "127.0.0.1") as stream, trio.open_nursery() as nursery:
            nursery.start_soon(turns.run)
            nursery.start_soon(hog)
            for number in sent:
                theirs.send(bytes((number,)))
                with trio.move_on_after(0.001):
                    received += await stream.receive_some(1)
            while len(received) < len(sent):
                received += await stream.receive_some(1)
            nursery.cancel_scope.cancel()
    assert received == sent


async def test_a_cancelled_server_ends_whatever_its_queue_holds() -> None:
    for _ in range(20):  # which task is cancelled first is chance
        with ExitStack() as clients:
            async with serving(reactor=True) as served:
                await served.converse(LAST_GET)
                for _ in range(100):
                    address = ("127.0.0.1", served.port)
                    clients.enter_context(socket.create_connection(address)).send(LAST_GET)
        assert served.server.statistics().connections == 0


@pytest.mark.parametrize("drains", [False, True])
@pytest.mark.turns
async def test_a_server_that_is_cut_off_answers_no_crowd_before_it_ends(drains: bool) -> None:
    calls = 0

    def count(call: HttpCall) -> Reply:
        nonlocal calls
        calls += 1
        return spin(call)

    surface = a_surface()
    surface.plain("POST", "/count", count)
    with ExitStack() as clients, trio.fail_after(PATIENCE_S):
        async with serving(
            a_router(surface), reactor=False, connections_per_address_max=CROWD, drain_s=0.001
        ) as served:
            for _ in range(CROWD):
                client = clients.enter_context(socket.create_connection(("127.0.0.1", served.port)))
                client.send(post(b"/count", b"") * 9)
                await trio.lowlevel.checkpoint()
            before = calls
            if drains:
                served.server.drain()
                await served.ended.wait()
        assert calls - before < CROWD / 2
