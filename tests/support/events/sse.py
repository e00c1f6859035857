"""Reads server-sent events from a socket, as a browser would."""

import msgspec
import trio

from support.patience import PATIENCE_S


class EventStream:
    """A GET of a stream.

    Attributes:
        head: of the answer, once `open` returned.
        last_id: of the last event that had one.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._text = b""
        self.head = b""
        self.last_id = ""

    async def open(self, target: bytes, *headers: bytes) -> None:
        """Ask, and wait for the head of the answer."""
        await self._stream.send_all(
            b"".join(
                [b"GET %b HTTP/1.0\r\nHost: a\r\n" % target, *(line + b"\r\n" for line in headers), b"\r\n"]
            )
        )
        self.head = await self._until(b"\r\n\r\n")

    async def event(self) -> tuple[str, dict[str, object]]:
        """The next event and its data; comments are passed over."""
        while True:
            block = await self._until(b"\n\n")
            if not block.startswith(b":"):
                kind, *others, data = block.strip().split(b"\n")
                assert kind.startswith(b"event: ")
                assert data.startswith(b"data: ")
                assert all(line.startswith(b"id: ") for line in others)
                self.last_id = others[0][4:].decode() if others else self.last_id
                return kind[7:].decode(), msgspec.json.decode(data[6:])

    async def block(self) -> bytes:
        """Next block of the stream, an event or a comment."""
        return await self._until(b"\n\n")

    async def rest(self) -> bytes:
        """All that comes until the end."""
        with trio.fail_after(PATIENCE_S):
            while data := await self._stream.receive_some(65_536):
                self._text += data
        return self._text

    async def _until(self, mark: bytes) -> bytes:
        with trio.fail_after(PATIENCE_S):
            while mark not in self._text:
                data = await self._stream.receive_some(65_536)
                assert data, self._text
                self._text += data
        block, _, self._text = self._text.partition(mark)
        return block + mark
