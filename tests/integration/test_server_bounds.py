"""Bounds of connections, together and one by one; and origins that may call from a browser."""

import errno
import resource
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog
import trio
import trio.testing
from trio.testing import MockClock, lockstep_stream_pair

from cambist.engine.host.server import HttpCall, Reply, Router, StreamReply
from cambist.engine.host.server.addresses import address_share
from cambist.engine.host.server.reactor import Reactor
from cambist.engine.roles.maker.stream import Broadcast
from cambist.feeds.transport import websocket
from cambist.feeds.transport.streams import listen
from cambist.feeds.transport.websocket import WebSocket, connect_websocket
from support.patience import PATIENCE_S
from support.server.raw_websocket import CLOSE, PING, TEXT, RawPeer
from support.server.server_harness import (
    GET,
    LAST_GET,
    MemoryListener,
    a_router,
    a_surface,
    answers,
    field,
    post,
    serving,
    serving_memory,
    statuses,
)

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: maker.example:8080\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%b\r\n"
)
EXPECT = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


# --- Bodies -----------------------------------------------------------------------------------------


def two_surfaces() -> Router:
    small, large = a_surface(body_bytes_max=100), a_surface()
    router = Router(small.encode_error)
    router.mount(small, prefix="/small")
    router.mount(large, prefix="/large")
    return router


@both
@pytest.mark.parametrize(
    ("path", "size", "status"),
    [
        (b"/small/echo", 100, 200),
        (b"/small/echo", 101, 413),
        (b"/small/echo", 1_000_001, 413),
        (b"/small/nowhere", 101, 413),
        (b"/nowhere", 101, 413),
        (b"/large/echo", 101, 200),
        (b"/large/echo", 1_000_000, 200),
        (b"/large/echo", 1_000_001, 413),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_surface_has_a_bound_of_its_own(
    reactor: bool, path: bytes, size: int, status: int, chunked: bool
) -> None:
    async with serving(
        two_surfaces(), reactor=reactor, waits={"linger_s": PATIENCE_S}, body_bytes_max=1_000_000
    ) as served:
        head = (CHUNKED if chunked else EXPECT % size).replace(b"/echo", path, 1)
        wire = head + (b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size) if chunked else b"x" * size)
        (answer, *_) = answers(await served.converse(wire, LAST_GET))
        assert answer.status == status
        assert len(answer.body) == size or status != 200


@both
async def test_all_bodies_together_are_bounded_and_what_ends_makes_room(reactor: bool) -> None:
    async with serving(reactor=reactor, bodies_bytes_max=100_000) as served:
        bodies = served.server._exchange.bodies
        with trio.fail_after(PATIENCE_S):
            for start in (EXPECT % 90_000, CHUNKED + b"15f90\r\n"):
                stream = await served.connect()
                await stream.send_all(start + b"x" * 80_000)
                while bodies.bytes < 80_000:
                    await trio.lowlevel.checkpoint()
                (refusal, *_) = answers(await served.converse(post(b"/echo", b"y" * 90_000)))
                assert (refusal.status, refusal.keep_alive) == (503, False)
                assert field(refusal, b"retry-after") == b"1"
                assert (await _echoed(served, 10_000)).status == 200
                await stream.aclose()
                while bodies.bytes:
                    await trio.lowlevel.checkpoint()
                assert (await _echoed(served, 90_000)).status == 200
        assert bodies.bytes == 0


@both
async def test_a_body_counts_until_its_answer(reactor: bool) -> None:
    counted = []

    async def look(call: HttpCall) -> Reply:
        counted.append(served.server._exchange.bodies.bytes)
        await trio.lowlevel.checkpoint()
        return Reply(200, b"1")

    surface = a_surface()
    surface.coroutine("POST", "/look", look)
    async with serving(a_router(surface), reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                await stream.send_all(post(b"/look", b"x" * 50_000))
                assert statuses(bytes(await stream.receive_some(10_000))) == [200]
                assert served.server._exchange.bodies.bytes == 0
    assert counted == [50_000]


async def _echoed(served: Any, size: int) -> Any:
    async with await served.connect() as stream:
        await stream.send_all(post(b"/echo", b"y" * size, b"Connection: close"))
        data = b""
        while piece := await stream.receive_some(65_536):
            data += piece
        return answers(data)[0]


@both
async def test_many_tiny_chunks_arrive_whole(reactor: bool) -> None:
    wire = CHUNKED + b"1\r\nx\r\n" * 5_000 + b"0\r\n\r\n"
    async with serving(reactor=reactor) as served:
        found = answers(await served.converse(GET + wire + LAST_GET))
        assert [answer.body for answer in found] == [b'"hello"', b"x" * 5_000, b'"hello"']


# --- Answers ----------------------------------------------------------------------------------------


async def test_answers_that_are_joined_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 answers of 30 kB in one read: the reactor stops behind 64 KiB of them, and goes on."""
    sizes = []
    conclude = Reactor._conclude

    def spy(self: Reactor, peer: Any) -> None:
        sizes.append(sum(map(len, peer.output)))
        conclude(self, peer)

    monkeypatch.setattr(Reactor, "_conclude", spy)
    surface = a_surface()
    surface.plain("GET", "/30k", lambda call: Reply(200, b"x" * 30_000))
    async with serving(a_router(surface), reactor=True) as served:
        get = GET.replace(b"/", b"/30k", 1)
        assert len(answers(await served.converse(get * 16 + LAST_GET))) == 17
    assert 65_536 <= max(sizes) < 65_536 + 31_000


# --- Connections ------------------------------------------------------------------------------------


@both
async def test_fewer_connections_where_there_are_few_descriptors(reactor: bool) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with structlog.testing.capture_logs() as logs:
        async with serving(reactor=reactor, connections_max=10_000_000) as served:
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
            assert served.server._connections_max == hard - 192
            assert statuses(await served.converse(LAST_GET)) == [200]
    assert [entry["connections_max"] for entry in logs] == [hard - 192]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%lo", "fe80::2%lo", True),
    ],
)
def test_one_network_of_ipv6_counts_as_one_address(one: str, other: str, together: bool) -> None:
    assert (address_share(one) == address_share(other)) is together


async def test_a_connection_that_cannot_be_watched_costs_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    adopt = Reactor.adopt
    broken = [OSError(errno.ENOSPC, "no watches left")]

    def adopt_or_break(self: Reactor, connected: socket.socket, client: str) -> None:
        if broken:
            raise broken.pop()
        adopt(self, connected, client)

    monkeypatch.setattr(Reactor, "adopt", adopt_or_break)
    async with serving(reactor=True) as served:
        with structlog.testing.capture_logs() as logs:
            assert await served.converse() in (b"", b"<RESET>")
        assert statuses(await served.converse(LAST_GET)) == [200]
        while served.server.statistics().connections:
            await trio.lowlevel.checkpoint()
        assert served.server._by_address == {}
        assert served.server.statistics().broken == 1
    assert len(logs) == 1


async def test_accepted_connections_are_kept_alive() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        await trio.lowlevel.wait_readable(listener)
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


# --- Streams ----------------------------------------------------------------------------------------


class _Pieces:
    """Endless pieces that know whether they were closed."""

    def __init__(self) -> None:
        self.closed = trio.Event()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await trio.sleep(0.01)
        return b"piece"

    async def aclose(self) -> None:
        self.closed.set()


def streaming(pieces: _Pieces, **options: Any) -> Router:
    async def stream(call: HttpCall) -> StreamReply:
        await trio.lowlevel.checkpoint()
        return StreamReply(content_type=b"text/plain", pieces=pieces, **options)

    surface = a_surface()
    surface.coroutine("GET", "/stream", stream)
    return a_router(surface)


async def test_pieces_are_closed_when_their_head_cannot_be_sent() -> None:
    pieces = _Pieces()
    listener = MemoryListener(trio.testing.lockstep_stream_pair)
    async with serving_memory(streaming(pieces), listener, write_s=0.05) as (_, _):
        stream = listener.connect()
        with trio.fail_after(PATIENCE_S):
            await stream.send_all(GET.replace(b"/", b"/stream", 1))
            await pieces.closed.wait()


@both
async def test_a_subscriber_that_sends_on_and_on_is_ended(reactor: bool) -> None:
    pieces = _Pieces()
    async with serving(streaming(pieces, endless=True), reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                await stream.send_all(GET.replace(b"/", b"/stream", 1))
                await stream.receive_some(1_000)
                await stream.send_all(b"x" * 20_000)
                await pieces.closed.wait()


# --- WebSockets and origins -------------------------------------------------------------------------


def socket_router(serve: Any, **options: Any) -> Router:
    surface = a_surface(**options)
    surface.websocket("/ws", lambda call: None, serve)
    return a_router(surface)


@both
async def test_a_first_message_larger_than_the_mark_passes(reactor: bool) -> None:
    async def serve(call: HttpCall, opened: WebSocket) -> None:
        assert opened.send_nowait("x" * 500_000)
        await opened.until_sent()
        assert opened.statistics().send_bytes == 0
        await opened.receive()

    async with serving(socket_router(serve), reactor=reactor, socket_bytes_max=1_000) as served:
        with trio.fail_after(PATIENCE_S):
            async with connect_websocket(
                "127.0.0.1",
                served.port,
                "/ws",
                tls=None,
                headers={},
                message_bytes_max=1 << 20,
                send_bytes_max=1_000,
            ) as opened:
                assert len(await opened.receive()) == 500_000


@both
async def test_a_slow_consumer_still_gets_its_101(reactor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "WEBSOCKET_CLOSE_S", 0.1)  # the client never closes

    async def serve(call: HttpCall, opened: WebSocket) -> None:
        assert opened.send_nowait("x" * 500)
        assert not opened.send_nowait("y" * 5_000)

    async with serving(socket_router(serve), reactor=reactor, socket_bytes_max=1_000) as served:
        data = await served.converse(HANDSHAKE % b"")
        assert data.startswith(b"HTTP/1.1 101 ")
        assert data.endswith(b"slow consumer")


async def test_readers_of_a_makers_prices_that_stop_hold_a_bound_of_memory_together(
    autojump_clock: MockClock,
) -> None:
    """Each stays below its own bound; what stops waits longer than what reads when all have too much."""
    broadcast = Broadcast(unsent_bytes_max=10_000)

    async def serve(call: HttpCall, opened: WebSocket) -> None:
        await broadcast.serve(opened, lambda: b"first")

    listener = MemoryListener(lockstep_stream_pair)
    async with serving_memory(socket_router(serve), listener), trio.open_nursery() as nursery:
        stopped = [await a_reader(listener) for _ in range(8)]
        reads = await a_reader(listener)
        assert await reads.receive() == (TEXT, b"first")
        for number in range(20):
            broadcast.publish(b"%d" % number + b"x" * 500)
            opcode, data = await reads.receive()
            assert (opcode, data.rstrip(b"x")) == (TEXT, b"%d" % number), "who reads is not held up"
            assert broadcast.unsent_bytes <= 10_000
        assert len(broadcast) < 9
        opcode, data = await last_of(stopped[0])
        assert (opcode, int.from_bytes(data[:2]), data[2:]) == (CLOSE, 1013, b"slow consumer")
        nursery.cancel_scope.cancel()


async def test_who_connects_to_a_maker_while_others_have_stopped_gets_its_first_message(
    autojump_clock: MockClock,
) -> None:
    """All that is quoted takes a third of the bound, and each of the others has less unread."""
    firsts = [b"first"] * 8 + [b"z" * 4_000]
    broadcast = Broadcast(unsent_bytes_max=10_000)

    async def serve(call: HttpCall, opened: WebSocket) -> None:
        await broadcast.serve(opened, lambda: firsts.pop(0))

    listener = MemoryListener(lockstep_stream_pair)
    async with serving_memory(socket_router(serve), listener), trio.open_nursery() as nursery:
        stopped = [await a_reader(listener) for _ in range(8)]
        await trio.testing.wait_all_tasks_blocked()
        broadcast.publish(b"x" * 900)
        await trio.sleep(1)
        assert 7_000 < broadcast.unsent_bytes <= 10_000
        newcomer = await a_reader(listener)
        await trio.testing.wait_all_tasks_blocked()
        assert broadcast.unsent_bytes <= 10_000
        assert await newcomer.receive() == (TEXT, b"z" * 4_000)
        for number in range(20):
            await trio.sleep(0.1)
            broadcast.publish(b"%d" % number + b"x" * 500)
            assert (await newcomer.receive())[1].rstrip(b"x") == b"%d" % number
        closed = [await last_of(peer) for peer in stopped]
        assert {int.from_bytes(data[:2]) for _, data in closed} == {1013}
        nursery.cancel_scope.cancel()


async def test_a_slow_reader_that_reads_on_outlasts_those_that_have_stopped(
    autojump_clock: MockClock,
) -> None:
    """It has been there longest, and has never read all when the next change comes."""
    firsts = [b"z" * 6_000] + [b"first"] * 8
    broadcast = Broadcast(unsent_bytes_max=10_000)

    async def serve(call: HttpCall, opened: WebSocket) -> None:
        await broadcast.serve(opened, lambda: firsts.pop(0))

    listener = MemoryListener(lockstep_stream_pair)
    async with serving_memory(socket_router(serve), listener), trio.open_nursery() as nursery:
        slow = await a_reader(listener)
        await trio.testing.wait_all_tasks_blocked()
        broadcast.publish(b"0" + b"x" * 200)
        assert await slow.receive() == (TEXT, b"z" * 6_000)
        await trio.sleep(0.1)
        for _ in range(8):
            await a_reader(listener)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(1, 60):
            await trio.sleep(0.1)
            broadcast.publish(b"%d" % number + b"x" * 200)
            assert (await slow.receive())[1].rstrip(b"x") == b"%d" % (number - 1)
        assert len(broadcast) < 9
        nursery.cancel_scope.cancel()


async def a_reader(listener: MemoryListener) -> RawPeer:
    """A WebSocket that only reads when it is told to."""
    peer = RawPeer(listener.connect(), masks=True)
    await peer.stream.send_all(HANDSHAKE % b"")
    assert b" 101 " in await peer.head()
    return peer


async def last_of(peer: RawPeer) -> tuple[int, bytes]:
    while True:
        opcode, data = await peer.receive()
        if opcode not in (TEXT, PING):
            return opcode, data


async def idle(call: HttpCall, opened: WebSocket) -> None:
    await opened.aclose()


@both
@pytest.mark.parametrize(
    ("origins", "origin", "opens"),
    [
        ((), b"", True),
        ((), b"Origin: http://maker.example:8080\r\n", True),
        ((), b"Origin: https://Maker.Example:8080\r\n", True),
        ((), b"Origin: http://maker.example\r\n", False),
        ((), b"Origin: https://evil.example\r\n", False),
        ((), b"Origin: null\r\n", False),
        (("https://app.example",), b"Origin: https://app.example\r\n", True),
        (("https://app.example",), b"Origin: https://evil.example\r\n", False),
        (("*",), b"Origin: https://evil.example\r\n", True),
    ],
)
async def test_a_page_of_another_origin_opens_no_websocket(
    reactor: bool, origins: tuple[str, ...], origin: bytes, opens: bool
) -> None:
    async with serving(socket_router(idle, cors_origins=origins), reactor=reactor) as served:
        data = await served.converse(HANDSHAKE % origin, half_close=True)
        if opens:
            assert data.startswith(b"HTTP/1.1 101 ")
        else:
            (refusal,) = answers(data)
            assert (refusal.status, refusal.keep_alive) == (400, False)
            assert b"origin" in refusal.body


FROM_PAGE = b"%b HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n%b\r\n"
BODY_TOO_LARGE = FROM_PAGE % (b"POST /echo", b"Content-Length: 9000000\r\n")
BROKEN_CHUNK = FROM_PAGE % (b"POST /echo", b"Transfer-Encoding: chunked\r\n") + b"zz\r\n"
LATE_BODY = FROM_PAGE % (b"POST /echo", b"Content-Length: 9\r\n")
BAD_HEADER = FROM_PAGE % (b"GET /bad", b"Connection: close\r\n")


@both
@pytest.mark.parametrize(
    ("data", "status"), [(BODY_TOO_LARGE, 413), (BROKEN_CHUNK, 400), (LATE_BODY, 408), (BAD_HEADER, 500)]
)
async def test_a_browser_may_read_what_was_wrong(reactor: bool, data: bytes, status: int) -> None:
    surface = a_surface(cors_origins=["https://app.example"])
    surface.plain("GET", "/bad", lambda call: Reply(200, b"", headers=((b"x", b"a\r\nb"),)))
    async with serving(a_router(surface), reactor=reactor, body_s=0.05) as served:
        with structlog.testing.capture_logs():
            (answer,) = answers(await served.converse(data))
        assert answer.status == status
        assert field(answer, b"access-control-allow-origin") == b"https://app.example"
