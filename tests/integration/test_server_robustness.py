"""Hostile and broken clients, on real sockets and against both drivers: answered or closed, never a stall."""

import contextlib
import gc
import socket
import struct
from collections.abc import AsyncIterator

import pytest
import structlog
import trio
import trio.testing

from cambist.config.errors import AuthError
from cambist.config.timeouts import SERVER_HEADER_S
from cambist.engine.host.server import HttpCall, StreamReply
from cambist.feeds.transport.websocket import WebSocket
from support.patience import PATIENCE_S
from support.server.server_harness import (
    GET,
    LAST_GET,
    Served,
    a_router,
    a_surface,
    answers,
    field,
    post,
    read_to_end,
    serving,
    statuses,
)

JUMP_S = 0.05
"""Seconds by which bytes sent on a socket have arrived."""

REFUSALS = 100
ENDS = 20
both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])

HOST = b"Host: a\r\n"
FAULTS = {
    "garbage": (b"\x00\xff\x16\x03\x01 what\r\n\r\n", 400),
    "tls to a plain port": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), 400),
    "http/0.9": (b"GET /\r\n\r\n", 505),
    "http/2.0 line": (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    "http/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\n" + HOST * 2 + b"\r\n", 400),
    "absolute form": (b"GET http://a/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "authority form": (b"CONNECT a:443 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "unknown method": (b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "obs-fold": (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n", 400),
    "bare LF": (b"GET / HTTP/1.1\nHost: a\n\n", 400),
    "bare CR": (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\rb\r\n\r\n", 400),
    "space before the colon": (b"GET / HTTP/1.1\r\n" + HOST + b"X : a\r\n\r\n", 400),
    "two lengths": (
        b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        400,
    ),
    "length and chunked": (
        b"POST /echo HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "gzip, chunked": (
        b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    "negative length": (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400),
    "broken chunk": (
        b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        400,
    ),
    "request line too long": (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n", 414),
    "headers too large": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 20_000, 431),
    "too many headers": (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 65 + b"\r\n", 431),
    "body too large": (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 9000000\r\n\r\n", 413),
    "coded body": (
        b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\n",
        415,
    ),
    "unknown expectation": (b"POST /echo HTTP/1.1\r\n" + HOST + b"Expect: more\r\n\r\n", 417),
}


@both
@pytest.mark.parametrize("name", FAULTS)
async def test_what_is_no_request_is_answered_and_closed(reactor: bool, name: str) -> None:
    data, status = FAULTS[name]
    async with serving(reactor=reactor) as served:
        found = answers(await served.converse(GET + data + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
        assert [answer.status for answer in found] == [200, status]
        assert found[1].keep_alive is False
        assert field(found[1], b"content-type") == b"application/json"
        assert b'"error"' in found[1].body
        assert served.server.statistics().faults == 1
        assert statuses(await served.converse(LAST_GET)) == [200]


@both
async def test_a_header_of_8_mb_is_refused_without_a_stall(reactor: bool) -> None:
    async with serving(reactor=reactor, waits={"linger_s": PATIENCE_S}) as served:
        value = b"y" * 65_536
        data = await served.converse(b"GET / HTTP/1.1\r\nHost: a\r\nX: ", *[value] * 128)
        assert statuses(data) == [431]


@both
async def test_an_h2c_offer_with_a_body_is_served_as_http_1(reactor: bool) -> None:
    offer = post(
        b"/echo", b"abc", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AA"
    )
    async with serving(reactor=reactor) as served:
        found = answers(await served.converse(offer + LAST_GET))
        assert [answer.body for answer in found] == [b"abc", b'"hello"']


@both
@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"", []),
        (GET, [200]),
        (b"\r\n", []),
        (GET + GET[:10], [200, 408]),
        (GET + post(b"/echo", b"abc")[:-1], [200, 408]),
        (post(b"/slow", b"abc") + GET[:-1], [200, 408]),
    ],
)
async def test_who_stops_sending_is_told_or_closed(
    reactor: bool, start: bytes, expected: list[int], autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = JUMP_S
    async with serving(reactor=reactor, header_s=0.25, body_s=0.25, idle_s=0.25) as served:
        assert statuses(await served.converse(start)) == expected
        assert served.server.statistics().faults == (408 in expected)


class Stop(trio.abc.Instrument):
    """The process stands still once, longer than a client may be silent, so many passes after accepting."""

    def __init__(self, clock: trio.testing.MockClock, served: Served, passes: int) -> None:
        self._clock = clock
        self._served = served
        self._passes = passes

    def before_io_wait(self, timeout: float) -> None:
        if self._served.server.statistics().connections:
            if self._passes == 0:
                self._clock.jump(2 * SERVER_HEADER_S)
            self._passes -= 1


@both
@pytest.mark.parametrize("passes", [0, 1, 2])
async def test_what_was_sent_before_the_server_stood_still_is_answered(
    reactor: bool, passes: int, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = JUMP_S
    for _ in range(20):  # which task is the first in a pass is chance
        async with serving(reactor=reactor) as served:
            stop = Stop(autojump_clock, served, passes)
            trio.lowlevel.add_instrument(stop)
            with socket.create_connection(("127.0.0.1", served.port)) as client:
                client.setblocking(False)
                client.send(LAST_GET)
                await trio.lowlevel.wait_readable(client)
                assert statuses(client.recv(10_000)) == [200]
            trio.lowlevel.remove_instrument(stop)


@both
async def test_the_last_request_of_a_connection_says_so(reactor: bool) -> None:
    async with serving(reactor=reactor, requests_per_connection_max=3) as served:
        found = answers(await served.converse(GET * 10))
        assert [answer.keep_alive for answer in found] == [True, True, False]


@both
async def test_more_connections_than_allowed_are_told_to_come_back(reactor: bool) -> None:
    async with serving(reactor=reactor, connections_max=3, proxies=["127.0.0.1"]) as served:
        with trio.fail_after(PATIENCE_S):
            held = [await served.connect() for _ in range(3)]
            for stream in held:
                await stream.send_all(GET)
                await stream.receive_some(1_000)
            (refusal,) = answers(await served.converse(GET))
            assert (refusal.status, refusal.keep_alive) == (503, False)
            assert field(refusal, b"retry-after") == b"1"
            assert field(refusal, b"x-request-id")
            statistics = served.server.statistics()
            assert (statistics.connections, statistics.refused) == (3, 1)
            for stream in held:
                await stream.aclose()
            while served.server.statistics().connections:
                await trio.lowlevel.checkpoint()
            assert statuses(await served.converse(LAST_GET)) == [200]


@both
async def test_one_address_has_a_share_of_the_connections(reactor: bool) -> None:
    async with serving(reactor=reactor, connections_per_address_max=1) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                await stream.send_all(GET)
                await stream.receive_some(1_000)
                assert statuses(await served.converse(GET)) == [503]
                with socket.socket() as other:
                    other.bind(("127.0.0.2", 0))
                    other.connect(("127.0.0.1", served.port))
                    other.setblocking(False)
                    async with trio.SocketStream(trio.socket.from_stdlib_socket(other.dup())) as second:
                        await second.send_all(LAST_GET)
                        assert statuses(await read_to_end(second)) == [200]


@both
async def test_resets_end_one_connection_and_nothing_else(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        with structlog.testing.capture_logs() as logs, trio.fail_after(PATIENCE_S):
            for start in (b"", GET[:20], GET * 50, post(b"/echo", b"x" * 9_000)[:-1], post(b"/slow", b"x")):
                stream = await served.connect()
                if start:
                    await stream.send_all(start)
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                await stream.aclose()
            while served.server.statistics().connections:
                await trio.lowlevel.checkpoint()
            assert statuses(await served.converse(LAST_GET)) == [200]
        assert not logs


@both
async def test_a_client_that_never_reads_is_cut_off_and_holds_little(reactor: bool) -> None:
    async with serving(reactor=reactor, write_s=0.2) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                with pytest.raises(trio.BrokenResourceError):  # noqa: PT012 - until it is reset
                    while True:
                        await stream.send_all(GET.replace(b"/", b"/wide", 1) * 100)
            statistics = served.server.statistics()
            assert statistics.cut_off == 1
            assert statistics.requests < 1_000
            assert statuses(await served.converse(LAST_GET)) == [200]


@both
@pytest.mark.turns
async def test_thousands_of_idle_connections_cost_nothing_to_the_others(reactor: bool) -> None:
    async with serving(reactor=reactor, header_s=600, connections_per_address_max=4_096) as served:
        with trio.fail_after(PATIENCE_S):
            with contextlib.ExitStack() as idle:
                for _ in range(2_000):
                    idle.enter_context(await _idle(served))
                await _ask(served, 100)
                before = _objects_of_ours()
                await _ask(served, 2_000)
                assert _objects_of_ours() - before < 10
                assert served.server.statistics().connections >= 2_000
            while served.server.statistics().connections:
                await trio.lowlevel.checkpoint()


@both
@pytest.mark.parametrize("path", [b"/over", b"/slow-refusal"])
async def test_refusals_leave_nothing_to_the_garbage_collector(
    reactor: bool, path: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.host.server.pauses.SERVER_PAUSE_S", 0.0)
    async with serving(reactor=reactor) as served, await served.connect() as stream:
        gc.collect()
        gc.disable()
        try:
            for _ in range(REFUSALS):
                await stream.send_all(GET.replace(b"GET /", b"GET " + path))
                assert (await stream.receive_some(1_000)).startswith(b"HTTP/1.1 429")
            assert gc.collect() < REFUSALS
        finally:
            gc.enable()


_HANDSHAKE = (
    b"GET %b HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
LEFT = {
    "garbage": ((b"\x00\xff\r\n\r\n",), False),
    "half a body": ((post(b"/echo", b"x" * 100)[:-50],), True),
    "between requests": ((GET,), True),
    "a stream": ((GET.replace(b"GET /", b"GET /endless"),), True),
    "a handshake that is refused": ((_HANDSHAKE % b"/ws?key=wrong",), False),
    "a WebSocket": ((_HANDSHAKE % b"/ws",), True),
    "no WebSocket frame": ((_HANDSHAKE % b"/ws", b"\xff" * 64), False),
}


@both
@pytest.mark.parametrize(("sent", "resets"), LEFT.values(), ids=LEFT)
async def test_connections_that_end_leave_nothing_to_the_garbage_collector(
    reactor: bool, sent: tuple[bytes, ...], resets: bool
) -> None:
    """It leaves out objects that have lasted (`keep_collector`): their cycles would stay."""
    surface = a_surface()
    surface.coroutine("GET", "/endless", _endless)
    surface.websocket("/ws", _checked, _listens)
    async with serving(a_router(surface), reactor=reactor) as served:

        async def come_and_go() -> None:
            async with await served.connect() as stream:
                for data in sent:
                    await stream.send_all(data)
                if resets:
                    await trio.sleep(JUMP_S)
                    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    await read_to_end(stream)

        await come_and_go()
        gc.collect()
        gc.disable()
        try:
            for _ in range(ENDS):
                await come_and_go()
            await trio.testing.wait_all_tasks_blocked(JUMP_S)
            assert gc.collect() < ENDS
        finally:
            gc.enable()


def _checked(call: HttpCall) -> None:
    if call.request.query:
        raise AuthError("X-AUTH-ACCESS-KEY", "unknown")


async def _listens(_: HttpCall, socket: WebSocket) -> None:
    async for _message in socket:
        pass


async def _endless(_: HttpCall) -> StreamReply:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a piece"
        await trio.sleep_forever()

    return StreamReply(content_type=b"text/plain", pieces=pieces(), endless=True)


def _objects_of_ours() -> int:
    """Live objects of our classes: their number grows if a request or a connection leaks."""
    gc.collect()
    return sum(str(type(thing).__module__).startswith("cambist.") for thing in gc.get_objects())


async def _idle(served: Served) -> socket.socket:
    stream = socket.socket()
    stream.setblocking(False)
    wrapped = trio.socket.from_stdlib_socket(stream)
    await wrapped.connect(("127.0.0.1", served.port))
    return stream


async def _ask(served: Served, times: int) -> None:
    async with await served.connect() as stream:
        for _ in range(times):
            await stream.send_all(GET)
            assert (await stream.receive_some(1_000)).startswith(b"HTTP/1.1 200")
