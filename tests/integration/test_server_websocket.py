"""WebSocket upgrades on the server, from both drivers."""

import json
from typing import Any

import pytest
import structlog
import trio

from cambist.config.errors import AuthError, WebSocketClosed
from cambist.engine.host.server import HttpCall, Reply, Router
from cambist.feeds.transport.websocket import WebSocket, connect_websocket
from support.patience import PATIENCE_S
from support.server.server_harness import GET, LAST_GET, a_router, a_surface, answers, serving, statuses

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])

HANDSHAKE = (
    b"GET %b HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
BYTES: dict[str, Any] = {"message_bytes_max": 1_000, "send_bytes_max": 10_000}


def check(call: HttpCall) -> None:
    if b"key=right" not in (call.request.query or b""):
        raise AuthError("X-AUTH-ACCESS-KEY", "unknown")


async def serve(call: HttpCall, socket: WebSocket) -> None:
    async for message in socket:
        if message == "fail":
            raise RuntimeError("the secret")
        if message == "bye":
            return
        await socket.send(json.dumps([call.parameters[0], message]))


def sockets() -> Router:
    surface = a_surface()
    surface.websocket("/ws/{chainId}", check, serve)
    surface.plain("GET", "/ws/{chainId}", plain)
    return a_router(surface)


def plain(call: HttpCall) -> Reply:
    return Reply(200, b'"plain"')


@both
async def test_messages_travel_both_ways_and_the_handlers_end_closes(reactor: bool) -> None:
    async with serving(sockets(), reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with connect_websocket(
                "127.0.0.1", served.port, "/ws/1?key=right", tls=None, headers={}, **BYTES
            ) as socket:
                await socket.send("a")
                assert json.loads(await socket.receive()) == ["1", "a"]
                await socket.send("bye")
                with pytest.raises(WebSocketClosed) as closed:
                    await socket.receive()
                assert closed.value.code == 1000
        assert statuses(await served.converse(LAST_GET)) == [200]


@both
async def test_a_check_that_fails_refuses_before_the_101(reactor: bool) -> None:
    async with serving(sockets(), reactor=reactor) as served:
        (first, refusal) = answers(await served.converse(GET + HANDSHAKE % b"/ws/1?key=wrong"))
        assert first.status == 200
        assert (refusal.status, refusal.keep_alive) == (401, False)
        assert refusal.body == b'{"error":"X-AUTH-ACCESS-KEY: unknown"}'


@both
@pytest.mark.parametrize("spoil", [b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b"n: 13"])
async def test_a_malformed_handshake_is_refused_in_json(reactor: bool, spoil: bytes) -> None:
    async with serving(sockets(), reactor=reactor) as served:
        bad = (HANDSHAKE % b"/ws/1?key=right").replace(spoil, b"n: 99" if spoil == b"n: 13" else b"")
        (refusal,) = answers(await served.converse(bad))
        assert refusal.status == 400
        assert b"handshake" in refusal.body


@both
async def test_where_there_is_no_websocket_a_handshake_is_a_get_like_any_other(reactor: bool) -> None:
    async with serving(sockets(), reactor=reactor) as served:
        assert statuses(await served.converse(HANDSHAKE % b"/")) == [200]
        assert statuses(await served.converse(HANDSHAKE % b"/nowhere")) == [404]
        (plain,) = answers(await served.converse(LAST_GET.replace(b"/", b"/ws/1", 1)))
        assert plain.body == b'"plain"'


@both
async def test_a_handler_that_fails_closes_with_1011_and_is_logged(reactor: bool) -> None:
    async with serving(sockets(), reactor=reactor) as served:
        with structlog.testing.capture_logs() as logs, trio.fail_after(PATIENCE_S):
            async with connect_websocket(
                "127.0.0.1", served.port, "/ws/1?key=right", tls=None, headers={}, **BYTES
            ) as socket:
                await socket.send("fail")
                with pytest.raises(WebSocketClosed) as closed:
                    await socket.receive()
                assert closed.value.code == 1011
                assert "secret" not in closed.value.detail
            while served.server.statistics().connections:
                await trio.lowlevel.checkpoint()
        assert len(logs) == 1


@both
async def test_a_drain_says_going_away(reactor: bool) -> None:
    async with serving(sockets(), reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with connect_websocket(
                "127.0.0.1", served.port, "/ws/1?key=right", tls=None, headers={}, **BYTES
            ) as socket:
                await socket.send("a")
                await socket.receive()
                served.server.drain()
                with pytest.raises(WebSocketClosed) as closed:
                    await socket.receive()
                assert closed.value.code == 1001
            await served.ended.wait()
