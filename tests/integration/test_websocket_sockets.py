"""The WebSocket driver on real sockets: behind our HTTP/1.1, over TLS, and with another implementation."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
import websockets.trio.client

from cambist.codecs.http1 import Http1Limits, ServerConnection, Upgrade
from cambist.config.errors import MakerError, WebSocketClosed
from cambist.feeds.transport.streams import client_tls, listen, server_tls
from cambist.feeds.transport.websocket import WebSocket, connect_websocket, serve_websocket
from support.server.server_harness import make_certificate

MESSAGES_MAX = 1 << 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


async def handshake_of(stream: trio.abc.Stream) -> Upgrade:
    connection = ServerConnection(Http1Limits())
    while True:
        connection.receive_data(bytes(await stream.receive_some()))
        event = connection.next_event()
        if event is not None:
            assert isinstance(event, Upgrade)
            return event


async def echo(socket: WebSocket) -> None:
    async for message in socket:
        await socket.send(message)


@asynccontextmanager
async def echo_server(tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """Serve any number of sockets; gives the port."""

    async def serve(stream: trio.abc.Stream) -> None:
        async with stream:
            try:
                upgrade = await handshake_of(stream)
                async with serve_websocket(
                    stream, upgrade, message_bytes_max=MESSAGES_MAX, send_bytes_max=MESSAGES_MAX
                ) as socket:
                    await echo(socket)
            except (WebSocketClosed, trio.BrokenResourceError):
                pass

    async def accept(listener: trio.SocketListener) -> None:
        while True:
            stream: trio.abc.Stream = await listener.accept()
            nursery.start_soon(serve, trio.SSLStream(stream, tls, server_side=True) if tls else stream)

    with listen("127.0.0.1", 0) as plain:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(plain))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept, listener)
            yield plain.getsockname()[1]
            nursery.cancel_scope.cancel()
        await listener.aclose()


@asynccontextmanager
async def connect(
    port: int, tls: ssl.SSLContext | None = None, message_bytes_max: int = MESSAGES_MAX
) -> AsyncGenerator[WebSocket]:
    async with connect_websocket(
        "localhost" if tls else "127.0.0.1",
        port,
        "/ws",
        tls=tls,
        headers={},
        message_bytes_max=message_bytes_max,
        send_bytes_max=MESSAGES_MAX,
    ) as socket:
        yield socket


async def test_both_our_sides_over_sockets() -> None:
    async with echo_server() as port, connect(port) as socket:
        for size in (0, 1, 125, 126, 65_535, 65_536, MESSAGES_MAX):
            await socket.send("a" * size)
            assert await socket.receive() == "a" * size
        await socket.send(b"\x00" * 1_000)
        assert await socket.receive() == b"\x00" * 1_000
        await socket.aclose(4000, "enough")
    assert (socket.close_code, socket.close_reason) == (4000, "enough")


async def test_a_thousand_messages_in_flight_come_back_in_order() -> None:
    async with echo_server() as port, connect(port) as socket, trio.open_nursery() as nursery:

        async def produce() -> None:
            for number in range(1_000):
                await socket.send(f"{number:>1000}")

        nursery.start_soon(produce)
        for number in range(1_000):
            assert int(await socket.receive()) == number


async def test_over_tls(certificate: tuple[str, str]) -> None:
    trusting = client_tls(certificate[0])
    async with echo_server(server_tls(*certificate)) as port:
        async with connect(port, trusting) as socket:
            for size in (1, 100_000, MESSAGES_MAX):
                await socket.send("a" * size)
                assert await socket.receive() == "a" * size
        assert socket.close_code == 1000
        with pytest.raises(MakerError, match="no connection to localhost"):
            async with connect(port, client_tls()):
                pytest.fail("an unknown authority was trusted")


async def test_a_message_too_big_is_told_although_it_was_still_being_sent() -> None:
    async with echo_server() as port, connect(port) as socket:
        await socket.send(bytes(MESSAGES_MAX + 1))
        with pytest.raises(WebSocketClosed, match="1009"):
            await socket.receive()
    assert socket.close_code == 1009


async def test_nobody_listens() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(MakerError, match=f"WebSocket: no connection to 127.0.0.1:{port}"):
        async with connect(port):
            pytest.fail("opened")


async def test_a_server_that_resets_is_told() -> None:
    with listen("127.0.0.1", 0) as plain:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(plain))

        async def reset() -> None:
            stream = await listener.accept()
            await handshake_of(stream)
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            await stream.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reset)
            with pytest.raises(
                MakerError, match="WebSocket: the connection broke; no answer to the handshake"
            ):
                async with connect(plain.getsockname()[1]):
                    pytest.fail("opened")
        await listener.aclose()


async def test_the_driver_of_websockets_itself_as_client() -> None:
    async with (
        echo_server() as port,
        websockets.trio.client.connect(f"ws://127.0.0.1:{port}/ws", max_size=None) as peer,
    ):
        for message in ("text", b"binary", "a" * 500_000):
            await peer.send(message)
            assert await peer.recv() == message
        await peer.send(["fragments ", "of ", "one"])
        assert await peer.recv() == "fragments of one"
        await peer.aclose(4001, "bye")
        assert (peer.close_code, peer.close_reason) == (4001, "bye")
