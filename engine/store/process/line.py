"""The engine's side of a socket to a store process: sends requests, and receives their answers in order.

Cancelling a task that waits for its answer does not recall the request: the line drops the answer. Once the
socket is full, only the line's own task sends, so that no cancellation leaves half a request.
"""

import socket
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import structlog
import trio

from ....config.errors import StoreError, StoreFull
from ....config.limits import STORE_READS_MAX
from .frames import Announce, Failed, FrameReader, StoreAnswer, answer, raised

_READ_BYTES = 256 << 10

_log = structlog.get_logger("cambist.store")

A = TypeVar("A", bound=StoreAnswer)


class LineLost(Exception):
    """Raised when the store process ended without answering a request."""


class _PendingAnswer:
    """Slot for the store process's answer to one request, for which a task waits.

    Attributes:
        answered: set once the request is answered or the process has ended.
        said: the answer; None if the process ended without an answer.
    """

    __slots__ = ("answered", "said")

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.said: StoreAnswer | None = None

    def end(self, said: StoreAnswer | None) -> None:
        self.said = said
        self.answered.set()


class ProcessLine:
    """A socket to a store process. `run` sends and receives, and closes the socket at its end.

    Args:
        connection: a stream socket that does not block.
        announce: called for each Announce message.
    """

    def __init__(self, connection: socket.socket, announce: Callable[[], None]) -> None:
        self._socket = connection
        self._announce = announce
        self._frames = FrameReader()
        self._pending: deque[_PendingAnswer] = deque()
        self._unsent: deque[memoryview] = deque()
        self._to_send = trio.lowlevel.ParkingLot()
        self._lost = False

    async def ask(self, kind: type[A], *frames: bytes) -> A:
        """Send a request to the store process and return the answer.

        Args:
            kind: type of the answer.
            frames: frames of the request; the store process answers only the last frame.

        Raises:
            StoreFull: too many requests wait; this request was not sent.
            StoreError, ConfigError, ValueError: the error that the process answered.
            LineLost: the process ended without an answer.
        """
        if self._lost:
            raise LineLost
        if len(self._pending) >= STORE_READS_MAX:
            raise StoreFull(f"{STORE_READS_MAX} questions wait for the store")
        # No await until all frames are sent or queued: the requests have the order of `_pending`, in which
        # the answers come, and no other request stands between the frames of this one.
        pending = _PendingAnswer()
        self._pending.append(pending)
        for framed in frames:
            self._send(memoryview(framed))
        await pending.answered.wait()
        said = pending.said
        if said is None:
            raise LineLost
        if isinstance(said, Failed):
            raise raised(said)
        if not isinstance(said, kind):
            raise StoreError(f"the store process answered {type(said).__name__}, expected {kind.__name__}")
        return said

    async def run(self) -> None:
        """Send requests and receive answers until the store process closes the socket, or sends an invalid
        frame; then raise LineLost in all waiting tasks.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                await self._listen()
                nursery.cancel_scope.cancel()
        finally:
            self._lost = True
            self._socket.close()
            while self._pending:
                self._pending.popleft().end(None)

    def _send(self, data: memoryview) -> None:
        """Send as many bytes of a request as the socket takes now; queue the others for the task `_write`."""
        if not self._unsent:
            data = data[self._sent(data) :]
        if data:
            self._unsent.append(data)
            self._to_send.unpark()

    def _sent(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the process has ended; `_listen` notices next
            return len(data)

    async def _write(self) -> None:
        while True:
            while self._unsent:
                await trio.lowlevel.wait_writable(self._socket)
                data = self._unsent.popleft()
                rest = data[self._sent(data) :]
                if rest:
                    self._unsent.appendleft(rest)
            await self._to_send.park()

    async def _listen(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                data = self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return
            if not data:
                return
            try:
                for body in self._frames.feed(data):
                    self._hear(answer(body))
            except (msgspec.DecodeError, StoreError, IndexError) as error:
                _log.error("the store process sent an invalid message", error=str(error))
                return

    def _hear(self, said: Any) -> None:
        if isinstance(said, Announce):
            self._announce()
        else:
            self._pending.popleft().end(said)
