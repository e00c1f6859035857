"""Send the pieces of one streamed answer while watching whether the client has disconnected."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import structlog
import trio

from ....codecs.http1 import LAST_CHUNK, encode_chunk
from ....feeds.transport.lean_stream import LeanStream
from .routing import StreamReply

_PIPELINED_BYTES_MAX = 16_384
_CLOSE_S = 1.0  # for an iterator to clean up behind itself

_log = structlog.get_logger("cambist.server")


class Pump:
    """Sends one streamed answer and watches for the client's disconnect.

    Args:
        stream: connection to the client, from which the pump reads to notice a disconnect.
        send: function that writes bytes to the client within a time limit.
        endless: True for a subscription, which ends once the client has sent _PIPELINED_BYTES_MAX bytes
            during the answer.

    Attributes:
        scope: cancel scope, whose cancellation ends the answer.
        sent: number of bytes of the pieces that were written, without the framing of chunks.
        complete: whether all pieces were written.
        received: bytes that the client sent during the answer, such as its next requests.
        failure: the error that ended the answer; None without an error.
    """

    def __init__(
        self, stream: trio.abc.Stream, send: Callable[[bytes], Awaitable[None]], *, endless: bool
    ) -> None:
        self._stream = stream
        self._send = send
        self._endless = endless
        self.scope = trio.CancelScope()
        self.sent = 0
        self.complete = False
        self.received = b""
        self.failure: Exception | None = None
        self._rest: trio.Event | None = None  # set once the rest of a piece of `_write_now` is written

    async def run(self, reply: StreamReply, *, chunked: bool, request_id: str) -> None:
        """Send the answer's pieces until all are sent or the client disconnects.

        The method raises no error but trio.Cancelled; `failure` holds any other error.

        Args:
            chunked: whether the body has the transfer coding `chunked`.
            request_id: id of the answered request, for the log.
        """
        with self.scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch)
                if reply.attach is not None and isinstance(self._stream, LeanStream):
                    reply.attach(partial(self._write_now, nursery, self._stream, chunked=chunked))
                await self._feed(reply.pieces, chunked=chunked, request_id=request_id)
                self.scope.cancel()

    def _write_now(self, nursery: trio.Nursery, stream: LeanStream, piece: bytes, *, chunked: bool) -> bool:
        """Write a piece without waiting. See `WriteNow`.

        The rest of a piece that the client does not take whole is written by a task, within the time limit.
        """
        # The iterator waits for its next piece, so that `_feed` does not write now; what it writes later
        # waits for the rest (`_write`). So no two writes meet, and pieces keep their order.
        if self._rest is not None or self.scope.cancel_called:
            return False
        data = encode_chunk(piece) if chunked else piece
        written = stream.send_now(data)
        if not written:  # the client takes nothing now, or has gone: the iterator's next piece finds out
            return False
        self.sent += len(piece)
        if written < len(data):
            self._rest = trio.Event()
            nursery.start_soon(self._write_rest, data[written:], self._rest)
        return True

    async def _write_rest(self, rest: bytes, done: trio.Event) -> None:
        try:
            await self._send(rest)
        except Exception as error:  # noqa: BLE001 - judged by the caller of `run`
            self.failure = error
            self.scope.cancel()
        self._rest = None
        done.set()

    async def _write(self, data: bytes) -> None:
        """Write bytes after all that was written before, within the time limit."""
        if self._rest is not None:
            await self._rest.wait()
        await self._send(data)

    async def _feed(self, pieces: AsyncIterator[bytes], *, chunked: bool, request_id: str) -> None:
        try:
            async for piece in pieces:
                try:
                    await self._write(encode_chunk(piece) if chunked else piece)
                except Exception as error:  # noqa: BLE001 - judged by the caller of `run`
                    self.failure = error
                    return
                self.sent += len(piece)
                await trio.lowlevel.checkpoint()
            if chunked:
                await self._write(LAST_CHUNK)
            self.complete = True
        except Exception as error:  # noqa: BLE001 - the head is out: it can only be logged
            self.failure = error
            _log.error("a streamed answer failed", request_id=request_id, exc_info=error)

    async def _watch(self) -> None:
        """Read from the client while the answer is sent, and end the stream when the client disconnects."""
        try:
            while len(self.received) < _PIPELINED_BYTES_MAX:
                data = await self._stream.receive_some(_PIPELINED_BYTES_MAX)
                if not data:
                    break
                self.received += data
            else:
                if not self._endless:
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.failure = self.failure or error
        self.scope.cancel()


async def close_pieces(pieces: AsyncIterator[bytes]) -> None:
    """Close the iterator of a streamed answer's pieces in at most _CLOSE_S seconds, even when cancelled."""
    close = getattr(pieces, "aclose", None)
    if close is not None:
        with trio.CancelScope(deadline=trio.current_time() + _CLOSE_S, shield=True):
            await close()
