"""A market maker behind memory streams: its four resources and its WebSocket, at a test's command."""

from collections import defaultdict
from typing import Any

import msgspec
import trio
from trio.testing import memory_stream_pair

from cambist.codecs.http1 import Closed, Http1Limits, Request, ServerConnection, Upgrade, encode_response
from cambist.config.errors import WebSocketClosed
from cambist.feeds.transport.websocket import WebSocket, serve_websocket
from support.makers.maker_feeds import grid, pairs, tokens

BASE_URL = "http://maker.example/prefix/1"
SOCKET_URL = "ws://maker.example/stream/1?feed=a"


class MemoryMaker:
    """Serves what is dialled.

    Attributes:
        contents: of the four resources, and of the first message.
        answers: resource -> (status, body) in place of its content.
        hangs: resources that are never answered; `dial` and `handshake` too.
        refuses: connections are refused.
        first: text of the first message in place of the contents; empty for none.
        asked: resource -> (seconds, request) of each request; `socket` for handshakes.
        sockets: that are open.
    """

    def __init__(self, nursery: trio.Nursery, *pair_ids: str) -> None:
        self._nursery = nursery
        self.contents: dict[str, Any] = {
            "tokens": tokens(),
            "pairs": pairs(*pair_ids),
            "prices": dict.fromkeys(pair_ids, grid()),
            "blacklist": [],
        }
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.hangs: set[str] = set()
        self.refuses = False
        self.first: str | None = None
        self.asked: dict[str, list[tuple[float, Request]]] = defaultdict(list)
        self.sockets: list[WebSocket] = []
        self._streams: list[trio.abc.Stream] = []

    async def dial(self, host: str, port: int, **_: object) -> trio.abc.Stream:
        """As `cambist.feeds.transport.streams.dial`."""
        await trio.lowlevel.checkpoint()
        if self.refuses:
            raise ConnectionRefusedError
        if "dial" in self.hangs:
            await trio.sleep_forever()
        near, far = memory_stream_pair()
        self._nursery.start_soon(self.serve, far)
        return near

    def say(self, **contents: Any) -> None:
        """Send an update to every socket."""
        for socket in self.sockets:
            socket.send_nowait(msgspec.json.encode(contents).decode())

    def say_text(self, text: str) -> None:
        for socket in self.sockets:
            socket.send_nowait(text)

    async def cut(self) -> None:
        """Break every connection of a socket, without a close frame."""
        for stream in self._streams:
            await trio.aclose_forcefully(stream)

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Speak with one connection until it ends."""
        try:
            async with stream:
                await self._speak(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError, WebSocketClosed):
            pass

    async def _speak(self, stream: trio.abc.Stream) -> None:
        http = ServerConnection(Http1Limits())
        while True:
            event = http.next_event()
            if isinstance(event, Request):
                await self._answer(stream, event)
            elif isinstance(event, Upgrade):
                await self._open(stream, event)
                return
            elif isinstance(event, Closed):
                return
            elif data := await stream.receive_some(65_536):
                http.receive_data(bytes(data))
            else:
                return

    async def _answer(self, stream: trio.abc.Stream, request: Request) -> None:
        name = request.path.decode().rpartition("/")[2]
        self.asked[name].append((trio.current_time(), request))
        if name in self.hangs:
            await trio.sleep_forever()
        status, body = self.answers.get(name) or (200, msgspec.json.encode({name: self.contents[name]}))
        await stream.send_all(encode_response(status, body))

    async def _open(self, stream: trio.abc.Stream, upgrade: Upgrade) -> None:
        self.asked["socket"].append((trio.current_time(), upgrade.request))
        if "handshake" in self.hangs:
            await trio.sleep_forever()
        self._streams.append(stream)
        async with serve_websocket(
            stream, upgrade, message_bytes_max=1 << 16, send_bytes_max=1 << 26
        ) as socket:
            first = msgspec.json.encode(self.contents).decode() if self.first is None else self.first
            if first:
                socket.send_nowait(first)
            self.sockets.append(socket)
            try:
                while True:
                    await socket.receive()
            finally:
                self.sockets.remove(socket)
                self._streams.remove(stream)
