"""Simultaneous work of clients leaves the other tasks of the process their turns.

The tests measure work instead of time, as the number of calls that the thread makes, and compare the longest
stretch between two turns of another task with all work. A busy machine therefore causes no failure.
"""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from socket import socket as Socket  # noqa: N812 - a class
from time import perf_counter
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from cambist.config.sections.server import TlsSettings
from cambist.engine.host.server import HttpCall, Reply, Router
from support.call_counts import counted_calls
from support.patience import PATIENCE_S
from support.server.server_harness import GET, Served, a_router, a_surface, make_certificate, serving

pytestmark = pytest.mark.turns

FLOOD = Path(__file__).parents[1] / "support" / "server" / "server_flood.py"
SHARE_MAX = 0.3  # of all the work, in one stretch; without turns it is 0.36 to 1
STRETCH = 5_000  # calls, a few milliseconds: no stretch is long that is shorter
CLIENTS = 64
HANDLER_S = 0.000_1  # as long as a plain route may take
CROWD = 250
HEADER_S = 0.4


def spin(call: HttpCall) -> Reply:
    until = perf_counter() + HANDLER_S
    while perf_counter() < until:
        pass
    return Reply(200, b"1")


def spinning() -> Router:
    surface = a_surface()
    surface.plain("GET", "/spin", spin)
    return a_router(surface)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsSettings:
    certificate, key = make_certificate(tmp_path_factory.mktemp("tls"))
    return TlsSettings(certificate=certificate, key=key)


@pytest.fixture(params=["task", "reactor", "tls"])
def driver(request: pytest.FixtureRequest, tls: TlsSettings) -> dict[str, Any]:
    return {"reactor": request.param == "reactor", "tls": tls if request.param == "tls" else None}


@asynccontextmanager
async def flooded(driver: dict[str, Any]) -> AsyncIterator[Served]:
    """A server that 64 clients of another process keep busy."""
    async with serving(spinning(), **driver) as served:
        kind = "tls" if driver["tls"] else "plain"
        command = [sys.executable, str(FLOOD), str(served.port), str(CLIENTS), kind]
        flood = await trio.lowlevel.open_process(command, stderr=subprocess.DEVNULL)
        statistics = served.server.statistics
        try:
            with trio.fail_after(PATIENCE_S):
                while statistics().connections < CLIENTS or statistics().requests < 8 * CLIENTS:
                    await trio.lowlevel.checkpoint()
            yield served
        finally:
            flood.kill()
            await flood.wait()


async def test_another_task_never_waits_long_while_clients_flood(driver: dict[str, Any]) -> None:
    async with flooded(driver) as served:
        until = served.server.statistics().requests + 8 * CLIENTS
        await _no_stretch_is_long(partial(_has_answered, served, until))


async def _no_stretch_is_long(is_over: Callable[[], bool]) -> None:
    """Assert that none of the stretches between two turns of this task is much of what the thread does."""
    longest = last = 0
    with trio.fail_after(PATIENCE_S), counted_calls() as calls:
        while not is_over():
            await trio.lowlevel.checkpoint()
            longest, last = max(longest, calls.made - last), calls.made
    assert longest < max(calls.made * SHARE_MAX, STRETCH)


def _has_answered(served: Served, until: int) -> bool:
    return served.server.statistics().requests >= until


def _has_refused(served: Served) -> bool:
    return served.server.statistics().faults >= CROWD


def _is_empty(served: Served) -> bool:
    return not served.server.statistics().connections


@pytest.mark.parametrize("driver", ["task", "reactor"], indirect=True)  # the quiet client is a plain one
async def test_a_quiet_client_is_answered_before_the_others_have_had_many_more(
    driver: dict[str, Any],
) -> None:
    async with flooded(driver) as served, await served.connect() as quiet:
        for _ in range(8):
            before = served.server.statistics().requests
            await quiet.send_all(GET)
            with trio.fail_after(PATIENCE_S):
                assert (await quiet.receive_some(1_000)).startswith(b"HTTP/1.1 200")
            assert served.server.statistics().requests - before < CLIENTS * CLIENTS


CHUNKED = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
AT_ONCE = {
    "chunks of one byte": (CHUNKED + b"1\r\nx\r\n" * 1_350, "connections"),
    "1,600 fields": (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:b\r\n" * 1_600 + b"\r\n", "faults"),
    "no request at all": (b"garbage\r\n\r\n", "faults"),
    "a coroutine route": (b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", "requests"),
    "half a body": (b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + b"x" * 8_000, ""),
}


@pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])
@pytest.mark.parametrize("name", AT_ONCE)
async def test_another_task_never_waits_long_while_a_crowd_does(name: str, reactor: bool) -> None:
    data, counted = AT_ONCE[name]

    passes = 0

    def is_over() -> bool:
        nonlocal passes
        passes += 1
        if counted in ("requests", "faults"):
            return bool(getattr(served.server.statistics(), counted) >= CROWD)
        return passes >= 2 * CROWD

    async with serving(spinning(), reactor=reactor, connections_per_address_max=CROWD + 1) as served:
        with ExitStack() as crowd:
            for stream in await _crowd(served, crowd):
                stream.send(data)
            await _no_stretch_is_long(is_over)


async def _crowd(served: Served, crowd: ExitStack) -> list[Socket]:
    """Connections that the server has accepted."""
    sockets = []
    for _ in range(CROWD):
        stream = crowd.enter_context(Socket())
        stream.setblocking(False)
        await trio.socket.from_stdlib_socket(stream).connect(("127.0.0.1", served.port))
        sockets.append(stream)
    with trio.fail_after(PATIENCE_S):
        while served.server.statistics().connections < CROWD:
            await trio.lowlevel.checkpoint()
    return sockets


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\n"], ids=["silent", "half a head"])
async def test_another_task_never_waits_long_while_waits_end_together(
    start: bytes, mock_clock: MockClock
) -> None:
    mock_clock.rate = 0  # no wait ends while the crowd gathers
    async with serving(reactor=True, header_s=HEADER_S, connections_per_address_max=CROWD + 1) as served:
        with ExitStack() as crowd:
            for stream in await _crowd(served, crowd):
                if start:
                    stream.send(start)
            await wait_all_tasks_blocked()  # all that was sent is read
            mock_clock.jump(HEADER_S)
            mock_clock.rate = 1
            await _no_stretch_is_long(partial(_has_refused if start else _is_empty, served))
