"""The other side of a WebSocket, frame by frame, written without any library."""

import base64
import hashlib
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
from trio.testing import lockstep_stream_pair, memory_stream_pair

from cambist.codecs.http1 import Request, Upgrade
from cambist.feeds.transport.websocket import WebSocket, connect_websocket, serve_websocket

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="  # RFC 6455 1.3, with the answer it must have
ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
HANDSHAKE = [
    (b"host", b"venue.example"),
    (b"connection", b"Upgrade"),
    (b"upgrade", b"websocket"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-key", KEY),
]
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MASK = b"\x01\x02\x03\x04"


def frame(opcode: int, data: bytes = b"", *, masked: bool, fin: bool = True, rsv: int = 0) -> bytes:
    """A frame, built without a library."""
    head = bytes([fin << 7 | rsv << 4 | opcode])
    if len(data) < 126:
        size = struct.pack("!B", masked << 7 | len(data))
    elif len(data) < 65_536:
        size = struct.pack("!BH", masked << 7 | 126, len(data))
    else:
        size = struct.pack("!BQ", masked << 7 | 127, len(data))
    if not masked:
        return head + size + data
    return head + size + MASK + bytes(byte ^ MASK[at % 4] for at, byte in enumerate(data))


def close_data(code: int, reason: str = "") -> bytes:
    return struct.pack("!H", code) + reason.encode()


class RawPeer:
    """The other side, frame by frame."""

    def __init__(self, stream: trio.abc.Stream, *, masks: bool) -> None:
        self.stream = stream
        self.masks = masks
        self.data = b""

    def frame(self, opcode: int, data: bytes = b"", *, fin: bool = True, rsv: int = 0) -> bytes:
        return frame(opcode, data, masked=self.masks, fin=fin, rsv=rsv)

    async def send(self, opcode: int, data: bytes = b"", *, fin: bool = True, rsv: int = 0) -> None:
        await self.stream.send_all(self.frame(opcode, data, fin=fin, rsv=rsv))

    async def _exactly(self, count: int) -> bytes:
        while len(self.data) < count:
            data = await self.stream.receive_some()
            if not data:
                raise EOFError(self.data)
            self.data += data
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    async def head(self) -> bytes:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await self._exactly(1)
        return head

    async def receive(self) -> tuple[int, bytes]:
        """The next frame: what we write is never fragmented, and masked by clients only."""
        first, second = await self._exactly(2)
        assert first & 0xF0 == 0x80
        assert second >> 7 == (not self.masks)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", await self._exactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", await self._exactly(8))
        mask = await self._exactly(4) if second >> 7 else bytes(4)
        data = await self._exactly(length)
        return first & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))

    async def at_end(self) -> bool:
        try:
            return not self.data and not await self.stream.receive_some()
        except trio.BrokenResourceError:
            return True


def upgrade(*changes: tuple[bytes, bytes | None], trailing: bytes = b"") -> Upgrade:
    headers = dict(HANDSHAKE)
    for name, value in changes:
        headers.pop(name, None)
        if value is not None:
            headers[name] = value
    return Upgrade(Request(b"GET", b"/ws", b"/ws", None, 1, list(headers.items()), True, headers), trailing)


@asynccontextmanager
async def our_server(
    *,
    message_bytes_max: int = 1 << 20,
    send_bytes_max: int = 1 << 20,
    trailing: bytes = b"",
    lockstep: bool = False,
) -> AsyncGenerator[tuple[WebSocket, RawPeer]]:
    near, far = (lockstep_stream_pair if lockstep else memory_stream_pair)()
    peer = RawPeer(far, masks=True)
    async with serve_websocket(
        near, upgrade(trailing=trailing), message_bytes_max=message_bytes_max, send_bytes_max=send_bytes_max
    ) as socket:
        await peer.head()
        yield socket, peer


@asynccontextmanager
async def our_client(
    *, message_bytes_max: int = 1 << 20, send_bytes_max: int = 1 << 20, lockstep: bool = False
) -> AsyncGenerator[tuple[WebSocket, RawPeer]]:
    near, far = (lockstep_stream_pair if lockstep else memory_stream_pair)()
    peer = RawPeer(far, masks=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer_handshake, peer)
        async with connected(
            near, message_bytes_max=message_bytes_max, send_bytes_max=send_bytes_max
        ) as socket:
            yield socket, peer


@asynccontextmanager
async def connected(
    stream: trio.abc.Stream, *, message_bytes_max: int = 1 << 20, send_bytes_max: int = 1 << 20
) -> AsyncGenerator[WebSocket]:
    async def dial(host: str, port: int, **_: object) -> trio.abc.Stream:
        assert (host, port) == ("maker.example", 443)
        return stream

    async with connect_websocket(
        "maker.example",
        443,
        "/ws?a=1",
        tls=None,
        headers={"X-AUTH-DOMAIN": "venue"},
        message_bytes_max=message_bytes_max,
        send_bytes_max=send_bytes_max,
        dial=dial,
    ) as socket:
        yield socket


async def answer_handshake(peer: RawPeer, behind: bytes = b"") -> bytes:
    """Be a server; returns the request's head."""
    head = await peer.head()
    key = next(line.split(b": ")[1] for line in head.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key"))
    proof = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    await peer.stream.send_all(answer + b"Sec-WebSocket-Accept: " + proof + b"\r\n\r\n" + behind)
    return head
