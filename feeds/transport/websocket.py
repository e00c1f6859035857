"""WebSocket connections of either side: websockets' Sans-I/O core on a trio stream (see `websocket_reader`).

    OPEN --a close frame, a fault, a deadline--> CLOSING --closed by both, the end of input, 5 s--> ended

Reading has one owner at a time. A task that waits in `receive` reads itself: no other task stands between the
socket and the message. While the application does not receive, a task of the WebSocket, the keeper, reads in
its place, so that pings, pongs and close frames are always served, until the inbox holds 64 KiB: then reading
stops, and TCP slows the other side down. The keeper stands in at once when the socket is opened or closing,
else within WEBSOCKET_STAND_IN_S; it hands over with the first message that the application waits for.

Writing has one task, so that a cancelled `send` never leaves half a frame. The unsent bytes are bounded:
`send` waits for room; `send_nowait` closes the socket of a slow consumer with 1013 and drops its queue. The
answer to the handshake goes first, is never dropped and does not count against the bound. Compression is
never offered nor accepted.

A ping goes out WEBSOCKET_PING_EVERY_S after the last pong; a pong that takes WEBSOCKET_PONG_S ends the socket
with 1011, except while this side has stopped reading: the pong may lie behind the unread bytes.

Frames after our own close frame are dropped; frames before it can still be received. A WebSocket server
closes the connection after both close frames (RFC 6455 7.1.1). After a fault it half-closes and reads on
briefly, so that a reset does not destroy its close frame. Pings of a peer that does not read stay unanswered
once a thousand frames wait for it. An exception in the body of the context manager closes with 1011; a
cancellation closes without a code.

`websockets.trio` takes 5 times the CPU for a received message, 1.5 times for a received and built book, and
its broadcast to 100 sockets waits for the slowest reader; a send costs the same.

Source: RFC 6455; ARCHITECTURE.md, "WebSockets".
"""

import math
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Self

import trio
from msgspec import Struct
from websockets.exceptions import ProtocolError
from websockets.frames import Close, CloseCode
from websockets.protocol import CLOSED, OPEN, SERVER, Protocol

from ...codecs.http1 import Upgrade
from ...config.errors import WebSocketClosed
from ...config.timeouts import (
    WEBSOCKET_CLOSE_S,
    WEBSOCKET_PING_EVERY_S,
    WEBSOCKET_PONG_S,
    WEBSOCKET_STAND_IN_S,
)
from .streams import Dial, dial
from .websocket_handshake import SILENT, HandshakeRefused, accept_handshake, offer_handshake, shake_hands
from .websocket_reader import MessageReader

__all__ = [
    "SLOW_CONSUMER",
    "HandshakeRefused",
    "WebSocket",
    "WebSocketClosed",
    "WebSocketStatistics",
    "connect_websocket",
    "serve_websocket",
]

SLOW_CONSUMER = "slow consumer"

_READ_BYTES = 65_536
_WRITE_BYTES = 65_536
_INBOX_BYTES = 65_536
_MESSAGES_PER_CHECKPOINT = 32
_FRAMES_AHEAD_OF_PONG = 1_000
_REASON_BYTES_MAX = 123


class WebSocketStatistics(Struct, frozen=True):
    """Counters of a WebSocket at one moment.

    Attributes:
        messages_received, messages_sent: whole messages since the opening; sent ones may still be queued.
        bytes_received: bytes from the stream, framing included.
        inbox_messages: messages received and not yet delivered to the application.
        send_bytes: bytes queued or being written.
        round_trip_s: seconds from the last answered ping to its pong; None before the first pong.
    """

    messages_received: int
    messages_sent: int
    bytes_received: int
    inbox_messages: int
    send_bytes: int
    round_trip_s: float | None


class WebSocket:
    """An open WebSocket connection; `serve_websocket` and `connect_websocket` create it.

    Only one task may receive at a time; any number of tasks may send. A caller that only sends need not
    receive.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        protocol: Protocol,
        send_bytes_max: int,
        *,
        first: bytes,
        answer: bytes = b"",
    ) -> None:
        self._stream = stream
        self._protocol = protocol
        # Reading.
        self._reader = MessageReader(protocol, first)
        self._messages = self._reader.messages
        self._inbox_bytes = len(first)  # bytes read since the application last emptied the inbox
        self._reading = False
        self._receiving = False
        self._arrived = trio.lowlevel.ParkingLot()
        self._until_checkpoint = _MESSAGES_PER_CHECKPOINT
        self._bytes_received = 0
        # Writing.
        self._send_bytes_max = send_bytes_max
        self._answer = answer  # to the handshake, until it is written; never dropped, and not counted
        self._frames: deque[bytes] = deque()
        self._send_bytes = 0  # of `_frames`, and of the batch being written
        self._sent_bytes = 0
        self._eof_due = False
        self._write_fault = ""
        self._writer_due = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()
        self._messages_sent = 0
        # Life.
        self._close_by = math.inf
        self._nap = trio.CancelScope()  # cancelled to wake the keeper
        self._ended = trio.Event()
        self._pings = 0
        self._beat_due = trio.current_time() + WEBSOCKET_PING_EVERY_S
        self._pinged_at: float | None = None  # while its pong is awaited
        self._round_trip_s: float | None = None

    @property
    def close_code(self) -> int | None:
        """Close code, as `WebSocketClosed.code`, or None while the connection is open."""
        return None if self._is_open() else self._closure().code

    @property
    def close_reason(self) -> str | None:
        """Reason for the close, as `WebSocketClosed.reason`, or None while the connection is open."""
        return None if self._is_open() else self._closure().reason

    def statistics(self) -> WebSocketStatistics:
        """Counters of messages and bytes since the opening, and the current sizes of inbox and send queue."""
        return WebSocketStatistics(
            self._reader.received,
            self._messages_sent,
            self._bytes_received,
            len(self._messages),
            self._send_bytes,
            self._round_trip_s,
        )

    async def receive(self) -> str | bytes:
        """Wait for the next whole message: text as str, binary as bytes.

        A message that is already received is returned at once, without a trio checkpoint, except for every
        32nd message. Cancelling the call loses no message.

        Raises:
            WebSocketClosed: the socket is closed and all earlier messages are delivered.
            trio.BusyResourceError: another task is receiving.
        """
        if not self._until_checkpoint:
            await trio.lowlevel.checkpoint()
            self._until_checkpoint = _MESSAGES_PER_CHECKPOINT
        if not self._messages:
            await self._fill()
        self._until_checkpoint -= 1
        return self._messages.popleft()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str | bytes:
        """Wait for the next message; iteration ends when the connection was closed with 1000 or 1001."""
        try:
            return await self.receive()
        except WebSocketClosed as closed:
            if closed.code in (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY):
                raise StopAsyncIteration from None
            raise

    async def send(self, message: str | bytes) -> None:
        """Wait for room in the send queue, then queue a message: text for str, binary for bytes.

        A message has room if all unsent bytes stay within `send_bytes_max`, or if no other bytes wait. A
        queued message may still be lost if the connection breaks.

        Raises:
            WebSocketClosed: the socket is closed or closing; the message was not queued.
        """
        await trio.lowlevel.checkpoint()
        data = message.encode() if isinstance(message, str) else message
        while self._is_open() and not self._has_room(len(data)):
            await self._room.park()
        if not self._is_open():
            raise self._closed()
        self._queue(data, is_text=isinstance(message, str))

    def send_nowait(self, message: str | bytes) -> bool:
        """Queue a message if the send queue has room for it; otherwise close the connection with code 1013.

        Returns:
            Whether the message was queued; always False once the connection is closed or closing.
        """
        if not self._is_open():
            return False
        data = message.encode() if isinstance(message, str) else message
        if self._has_room(len(data)):
            self._queue(data, is_text=isinstance(message, str))
            return True
        self.close_slow()
        return False

    @property
    def unsent_bytes(self) -> int:
        """Bytes that are queued and not written; 0 once the connection is closed or closing."""
        return self._send_bytes if self._is_open() else 0

    @property
    def sent_bytes(self) -> int:
        """Bytes written since the opening, the answer to the handshake left out."""
        return self._sent_bytes

    def close_slow(self) -> None:
        """Start closing, with code 1013, the connection of a slow consumer; drop its queue."""
        if self._is_open():
            # A batch that is being written counts until the writer subtracts it: only what waits is dropped.
            self._send_bytes -= sum(map(len, self._frames))
            self._frames.clear()
            self._start_close(CloseCode.TRY_AGAIN_LATER, SLOW_CONSUMER)

    async def until_sent(self) -> None:
        """Wait until all queued bytes are written or the connection is closing."""
        await trio.lowlevel.checkpoint()
        while self._is_unsent() and self._is_open():
            await self._room.park()

    async def aclose(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection; wait at most WEBSOCKET_CLOSE_S for the other side's close frame.

        Args:
            code: 1000 to 1014, except codes that are never sent, or 3000 to 4999.
            reason: cut to 123 bytes.

        Raises:
            ValueError: the code cannot be sent: a bug of the caller.
        """
        if self._is_open():
            self._start_close(code, reason)
        try:
            await self._ended.wait()
        except trio.Cancelled:
            # The keeper waits inside `_nap` alone: it wakes, finds its time over, and closes the stream.
            self._close_by = -math.inf
            self._nap.cancel()
            raise

    def _is_open(self) -> bool:
        return self._protocol.state is OPEN and not self._write_fault

    def _closure(self) -> Close:
        core = self._protocol
        if core.close_sent and not core.close_rcvd_then_sent:
            return core.close_sent
        if core.close_rcvd:
            return core.close_rcvd
        return Close(1006, self._write_fault or "the connection ended without a close frame")

    def _closed(self) -> WebSocketClosed:
        closure = self._closure()
        return WebSocketClosed(int(closure.code), closure.reason)

    # --- Reading: the application's task, or the keeper in its place ------------------------------

    async def _fill(self) -> None:
        """Wait until the inbox holds a message."""
        if self._receiving:
            raise trio.BusyResourceError("another task is receiving from this WebSocket")
        self._receiving = True
        try:
            while not self._messages:
                if self._reader.is_due:
                    if self._parse() and not self._messages:
                        await trio.lowlevel.checkpoint()  # control frames and fragments cost time too
                elif self._protocol.state is not OPEN:
                    raise self._closed()
                else:
                    # One task reads at a time: the keeper, if it reads now, goes on until it has a message,
                    # and then wakes this task.
                    self._inbox_bytes = 0
                    await (self._arrived.park() if self._reading else self._read())
                    self._until_checkpoint = _MESSAGES_PER_CHECKPOINT
        finally:
            self._receiving = False

    async def _read(self) -> None:
        self._reading = True
        try:
            data = bytes(await self._stream.receive_some(_READ_BYTES))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            data = b""
        finally:
            self._reading = False
        if data:
            self._reader.feed(data)
            self._inbox_bytes += len(data)
            self._bytes_received += len(data)
        else:
            self._protocol.receive_eof()
            self._queue_frames()

    def _parse(self) -> int:
        """Parse a batch of frames from the bytes received so far; return the number of frames."""
        core, reader = self._protocol, self._reader
        frames = reader.parse()
        if reader.pong is not None:
            self._take_pong(reader.pong)
            reader.pong = None
        if core.state is OPEN and len(self._frames) > _FRAMES_AHEAD_OF_PONG:
            core.data_to_send()
        elif core.writes or core.state is not OPEN:
            self._queue_frames()
        return frames

    def _take_pong(self, data: bytes) -> None:
        if self._pinged_at is not None and data == b"%d" % self._pings:
            now = trio.current_time()
            self._round_trip_s = now - self._pinged_at
            self._pinged_at = None
            self._beat_due = now + WEBSOCKET_PING_EVERY_S

    # --- Writing ----------------------------------------------------------------------------------

    def _is_unsent(self) -> bool:
        return bool(self._send_bytes or self._answer)

    def _has_room(self, size: int) -> bool:
        return not self._send_bytes or self._send_bytes + size <= self._send_bytes_max

    def _queue(self, data: bytes, *, is_text: bool) -> None:
        if is_text:
            self._protocol.send_text(data)
        else:
            self._protocol.send_binary(data)
        self._messages_sent += 1
        self._queue_frames()

    def _start_close(self, code: int, reason: str) -> None:
        kept = reason.encode()[:_REASON_BYTES_MAX].decode("utf-8", "ignore")
        try:
            self._protocol.send_close(code, kept)
        except ProtocolError:
            raise ValueError(f"not a close code that can be sent: {code}") from None
        self._reader.is_dropping = True
        self._queue_frames()

    def _queue_frames(self) -> None:
        """Queue all frames that the `websockets` core has made; begin to close if the core is closing."""
        core = self._protocol
        for data in core.data_to_send():
            if data:
                self._frames.append(data)
                self._send_bytes += len(data)
            else:
                self._eof_due = True
        self._writer_due.unpark_all()
        if core.state is not OPEN:
            self._wind_down()

    def _wind_down(self) -> None:
        self._close_by = min(self._close_by, trio.current_time() + WEBSOCKET_CLOSE_S)
        self._arrived.unpark_all()
        self._room.unpark_all()
        self._nap.cancel()

    async def _write(self) -> None:
        """Run the writer: the only task that sends bytes."""
        try:
            # The answer to the handshake precedes all frames, which wait in `_frames` meanwhile.
            if self._answer:
                await self._stream.send_all(self._answer)
                self._answer = b""
                self._room.unpark_all()
            while True:
                batch: list[bytes] = []
                size = 0
                while self._frames and size < _WRITE_BYTES:
                    batch.append(self._frames.popleft())
                    size += len(batch[-1])
                if batch:
                    # Taken off once the stream has them: until then the bytes count against the bound of
                    # `send`, and `until_sent` waits for them.
                    await self._stream.send_all(b"".join(batch))
                    self._send_bytes -= size
                    self._sent_bytes += size
                    self._room.unpark_all()
                elif self._protocol.state is OPEN:
                    # No checkpoint since the look at `_frames`: whatever is queued from here on unparks us.
                    await self._writer_due.park()
                else:
                    # The last frame is out, and the keeper may find the connection over. It cancels this task
                    # then; a late pong or close frame is written before that.
                    self._nap.cancel()
                    await self._end_writing()
                    await self._writer_due.park()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # No byte leaves any more: with nothing left unsent the keeper ends, and senders that wait for
            # room see the fault.
            self._write_fault = "the connection broke"
            self._frames.clear()
            self._answer = b""
            self._send_bytes = 0
            self._wind_down()

    async def _end_writing(self) -> None:
        if self._eof_due and isinstance(self._stream, trio.abc.HalfCloseableStream):
            self._eof_due = False
            await self._stream.send_eof()

    # --- Life -------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[Self]:
        """Context manager: run the tasks that write, read and ping; close after the `async with` block."""
        failure: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep)
                nursery.start_soon(self._write)
                try:
                    yield self
                    await self.aclose()
                except Exception as error:  # noqa: BLE001 - raised below, not within an exception group
                    failure = error
                    await self.aclose(CloseCode.INTERNAL_ERROR)
                finally:
                    nursery.cancel_scope.cancel()
        finally:
            self._release()
        if failure is not None:
            raise failure

    def _release(self) -> None:
        """Break the cycles of protocol, parser and error, which would wait for the garbage collector.

        Nothing is parsed afterwards: the keeper has closed the stream and dropped what was not parsed.
        """
        self._protocol.parser.close()
        if self._protocol.parser_exc is not None:
            self._protocol.parser_exc.with_traceback(None)

    async def _keep(self) -> None:
        """Run the keeper task: read while the application does not, send pings, finally close the stream."""
        relieved = False
        try:
            while not self._is_over():
                # An application that was given a message has WEBSOCKET_STAND_IN_S to read on by itself: else
                # the two would take turns, with a switch of tasks for each message.
                stands_in = not (relieved or self._reading or self._is_full())
                pause = math.inf if stands_in else WEBSOCKET_STAND_IN_S
                wake_at = min(self._beat_due, self._close_by, trio.current_time() + pause)
                # A cancelled read loses no byte: trio cancels it only while the socket has none.
                with trio.CancelScope(deadline=wake_at) as self._nap:
                    if stands_in:
                        await self._stand_in()
                    else:
                        await trio.sleep_forever()
                relieved = stands_in and not self._nap.cancelled_caught
                self._beat()
        finally:
            # The state is final before the waiting tasks are woken: each of them looks at it again.
            self._protocol.receive_eof()
            self._reader.drop()
            self._wind_down()
            try:
                await trio.aclose_forcefully(self._stream)
            finally:
                self._ended.set()

    def _is_full(self) -> bool:
        return bool(self._messages) and self._inbox_bytes >= _INBOX_BYTES and self._protocol.state is OPEN

    def _is_over(self) -> bool:
        core = self._protocol
        if trio.current_time() >= self._close_by:
            return True
        agreed = core.close_rcvd is not None and core.close_sent is not None and core.parser_exc is None
        return not self._is_unsent() and (core.state is CLOSED or (core.side is SERVER and agreed))

    async def _stand_in(self) -> None:
        """Read in the application's place until it calls `receive`, the inbox is full, or input has ended."""
        while not (self._reading or self._protocol.state is CLOSED or self._is_full()):
            if self._reader.is_due:
                self._parse()
                await trio.lowlevel.checkpoint()
            else:
                await self._read()
            if self._messages and self._arrived:
                self._arrived.unpark_all()
                return

    def _beat(self) -> None:
        now = trio.current_time()
        if now < self._beat_due:
            return
        if not self._is_open():
            self._beat_due = math.inf
        elif self._pinged_at is None:
            self._pings += 1
            self._pinged_at = now
            self._beat_due = now + WEBSOCKET_PONG_S
            self._protocol.send_ping(b"%d" % self._pings)
            self._queue_frames()
        elif self._is_full() or self._reader.is_due:
            self._beat_due = now + WEBSOCKET_STAND_IN_S
        else:
            self._start_close(CloseCode.INTERNAL_ERROR, f"no pong within {WEBSOCKET_PONG_S:g} s")


@asynccontextmanager
async def serve_websocket(
    stream: trio.abc.Stream, upgrade: Upgrade, *, message_bytes_max: int, send_bytes_max: int
) -> AsyncGenerator[WebSocket]:
    """Context manager: accept an opening handshake, then yield the WebSocket, which owns `stream`.

    Args:
        stream: connection on which the handshake arrived.
        upgrade: the handshake's HTTP request, and the bytes received after it.
        message_bytes_max: a larger message closes the connection with 1009.
        send_bytes_max: bound on unsent bytes; see `WebSocket.send` and `send_nowait`.

    Raises:
        HttpFault: the request's WebSocket key or version is invalid. No byte was written, so that the caller
            can answer with an HTTP error.
    """
    answer = accept_handshake(upgrade.request)
    core = Protocol(SERVER, state=OPEN, max_size=message_bytes_max, logger=SILENT)
    socket = WebSocket(stream, core, send_bytes_max, first=upgrade.trailing, answer=answer)
    async with socket._running() as running:
        yield running


@asynccontextmanager
async def connect_websocket(
    host: str,
    port: int,
    path: str,
    *,
    tls: SSLContext | None,
    headers: Mapping[str, str],
    message_bytes_max: int,
    send_bytes_max: int,
    dial: Dial = dial,
) -> AsyncGenerator[WebSocket]:
    """Context manager: connect and complete the opening handshake within WEBSOCKET_OPEN_S.

    Args:
        host, port: destination; also the Host header.
        path: path with any query; the first character is a slash.
        tls: None for plain TCP.
        headers: sent in addition to the headers of the handshake.
        message_bytes_max: a larger message closes the connection with 1009.
        send_bytes_max: bound on unsent bytes; see `WebSocket.send` and `send_nowait`.
        dial: function that opens a connection.

    Raises:
        HandshakeRefused: the server answers with another status than 101, or with an invalid 101.
        MakerError: no connection, no answer in time, or no HTTP.
        ValueError: a path or header would break the HTTP framing: a bug of the caller.
    """
    core = offer_handshake(
        host, port, path, is_secure=tls is not None, headers=headers, message_bytes_max=message_bytes_max
    )
    stream, first = await shake_hands(core, host, port, tls=tls, dial=dial)
    async with WebSocket(stream, core, send_bytes_max, first=first)._running() as running:
        yield running
