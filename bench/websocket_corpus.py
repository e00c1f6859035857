"""Market data that two WebSocket clients receive, and the process that sends it.

A message is one pair with two sides of 20 levels, about 1 KB. From one message of a pair to its next, half of
the levels of each side have changed, and no string that changed was there before. Frames are written by hand
and queued in large pieces, so that the sender is never the limit.
"""

import asyncio
import base64
import hashlib
import struct
import sys

PAIRS = 50
LEVELS = 20
MESSAGES = 30_000


def message(number: int) -> bytes:
    """Return market data message `number`, the same for the same number in every process."""
    pair, turn = number % PAIRS, number // PAIRS
    bids, asks = [], []
    for level in range(LEVELS):
        changed = turn if level % 2 == turn % 2 else turn - 1  # each level changes every second time
        fraction = (changed * PAIRS + pair) % 100_000
        bids.append(f'["{1540 - level}.{fraction:05}","{level + 1}.{fraction:05}"]')
        asks.append(f'["{1542 + level}.{fraction:05}","{level + 51}.{fraction:05}"]')
    grid = f'{{"bids":[{",".join(bids)}],"asks":[{",".join(asks)}]}}'
    return f'{{"prices":{{"T{pair}/USDC":{grid}}}}}'.encode()


def frame(data: bytes) -> bytes:
    """Encode data as a WebSocket text frame without a mask."""
    size = (
        struct.pack("!BB", 0x81, len(data)) if len(data) < 126 else struct.pack("!BBH", 0x81, 126, len(data))
    )
    return size + data


class Sender(asyncio.Protocol):
    """Connection of a client to the sender of market data.

    The sender answers the handshake, then each masked text frame with a number by so many messages.
    """

    def __init__(self, frames: list[bytes]) -> None:
        self._frames = frames
        self._data = b""
        self._is_open = False
        self._due = 0
        self._sent = 0
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._is_open and b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            self._transport.write(handshake_answer(head))
            self._is_open = True
        while self._is_open and len(self._data) >= 6 and len(self._data) >= 6 + (self._data[1] & 127):
            length = self._data[1] & 127
            mask, text = self._data[2:6], self._data[6 : 6 + length]
            opcode = self._data[0] & 15
            self._data = self._data[6 + length :]
            if opcode == 8:
                self._transport.close()
                return
            if opcode == 1:
                self._due += int(bytes(byte ^ mask[at % 4] for at, byte in enumerate(text)))
                self._send()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._send()

    def _send(self) -> None:
        while self._sent < self._due and not self._paused:
            until = min(self._sent + 256, self._due)
            self._transport.write(
                b"".join([self._frames[at % len(self._frames)] for at in range(self._sent, until)])
            )
            self._sent = until


def handshake_answer(head: bytes) -> bytes:
    """Return the HTTP 101 answer to the handshake of a WebSocket client."""
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    key = next(value for name, value in fields.items() if name.lower() == b"sec-websocket-key")
    proof = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + proof + b"\r\n\r\n"
    )


async def serve() -> None:
    """Run the sender of market data: print its port, then send until the standard input ends."""
    frames = [frame(message(number)) for number in range(MESSAGES)]
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sender(frames), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
