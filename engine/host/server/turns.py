"""Time slices: the connections with a task of their own share a millisecond of every scheduler pass.

    readable --room left in this pass--> reads, answers, writes
       |     --none, or others wait--> waits in line --`Turns.run`, pass by pass--> reads, answers, writes

Without turns, a pass grows with the number of tasks that have a request, and so do all other tasks' waits.
Networks take turns, and within a network connections: who has many connections waits behind their own. Each
connection of a trusted proxy, which carries many clients, counts as a network.
The number of connections that leave the line in a pass halves after a pass that took too long, and grows by
one after any other pass.

`Turns` counts the time from a turn's begin to the next wait of its connection. trio reports each pass through
an `Instrument`.
"""

import socket
from time import perf_counter

import trio

from ....feeds.transport.lean_stream import LeanStream

_TURN_S = 0.001
_SHARE_MAX = 64
SMALL_BYTES = 16_384
"""Largest answer that is sent without a trio checkpoint where the socket takes it at once."""


class Turns(trio.abc.Instrument):
    """Limits the time that a server's connections use in each scheduler pass to about 1 ms in total.

    A scheduler pass is one iteration of trio's event loop, in which every runnable task runs once. A turn is
    the time from the moment at which a connection may read and answer until the connection's next wait. Once
    the turns of a pass have used 1 ms, further connections wait in a queue for a later pass. The method `run`
    has to run as a background task.
    """

    def __init__(self) -> None:
        self._spent = 0.0  # in this pass
        self._spent_before = 0.0  # in the last one
        self._began = 0.0  # start of the turn under way; 0 without one
        self._share = 8  # connections that leave the line in one pass
        self._is_kept = False  # `run` moves the line
        self._line: dict[str, trio.lowlevel.ParkingLot] = {}  # by key; the first is next
        self._keeper = trio.lowlevel.ParkingLot()

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio's signature
        """Reset the time used by turns; trio calls this method at the begin of each scheduler pass."""
        self._spent_before = self._spent
        self._spent = self._began = 0.0

    def end(self) -> None:
        """End the current turn, if any, and add its duration to the time used in this scheduler pass."""
        if self._began:
            self._spent += perf_counter() - self._began
            self._began = 0.0

    def has_room(self) -> bool:
        """Whether a turn may begin now: turns have used less than 1 ms of this pass, and the queue is empty.

        The used time includes the current turn, if any, up to now.
        """
        if self._began:
            now = perf_counter()
            self._spent += now - self._began
            self._began = now
        return self._spent < _TURN_S and not self._line

    async def take(self, key: str) -> None:
        """Begin a turn of a connection, at once if `has_room`, else after a wait in the queue.

        Args:
            key: connections of one key wait behind each other: those of a network, or one of a trusted proxy.

        A call that does not wait is no trio checkpoint. Cancellation does not end the wait, since the
        connection has received a request, which the short time-out of a shutdown must not drop. `close` ends
        all waits; a task that is cancelled by then gets trio.Cancelled in place of a turn.
        """
        if not self.has_room() and self._is_kept:
            await self._stand_in_line(key)
        self._began = perf_counter()

    async def _stand_in_line(self, key: str) -> None:
        self._keeper.unpark_all()
        with trio.CancelScope(shield=True):
            await self._line.setdefault(key, trio.lowlevel.ParkingLot()).park()
        if not self._is_kept:
            await trio.lowlevel.checkpoint_if_cancelled()

    async def run(self) -> None:
        """Let some of the queued connections begin their turns in each scheduler pass, until cancelled.

        At its end this method calls `close`.
        """
        trio.lowlevel.add_instrument(self)
        self._is_kept = True
        try:
            while True:
                if self._line:
                    await trio.lowlevel.checkpoint()
                else:
                    await self._keeper.park()
                over = max(self._spent, self._spent_before) > _TURN_S
                self._share = max(1, self._share // 2) if over else min(_SHARE_MAX, self._share + 1)
                for _ in range(self._share):
                    if self._line:
                        self._let_one_go()
        finally:
            trio.lowlevel.remove_instrument(self)
            self.close()

    def close(self) -> None:
        """Empty the queue for good: no call of `take` waits from now on, as the server is about to end."""
        self._is_kept = False
        while self._line:
            self._let_one_go()

    def _let_one_go(self) -> None:
        """Let the first connection of the next key begin its turn; the key goes to the end."""
        key = next(iter(self._line))
        waiting = self._line.pop(key)
        waiting.unpark()
        if waiting:
            self._line[key] = waiting


class PacedStream(LeanStream, trio.abc.HalfCloseableStream):
    """TCP stream of a connection, which returns received bytes only in a turn (see `Turns`).

    Attributes:
        turn_key: whose turns the connection shares.
    """

    def __init__(self, connected: socket.socket, turns: Turns, turn_key: str) -> None:
        super().__init__(connected)
        self._turns = turns
        self.turn_key = turn_key

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Wait for bytes and for a turn of the connection, and return the bytes; empty at the end of input.

        Every call is a trio checkpoint.
        """
        self._turns.end()
        await trio.lowlevel.checkpoint()  # often enough the next request has come by then
        has_turn = False
        while True:
            try:
                data = self._socket.recv(max_bytes or 65_536)
            except BlockingIOError:
                data = None  # the wait is not in this block, which would keep the error in memory meanwhile
            except OSError as error:
                raise trio.BrokenResourceError(error.strerror) from error
            if data is None:
                await trio.lowlevel.wait_readable(self._socket)
                await self._turns.take(self.turn_key)
                has_turn = True
                continue
            if not has_turn:
                await self._turns.take(self.turn_key)
            return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all bytes.

        The call is a trio checkpoint if `data` has over SMALL_BYTES bytes, or if the socket's send buffer is
        full.
        """
        await super().send_all(data)
        if len(data) > SMALL_BYTES:
            self._turns.end()
            await trio.lowlevel.checkpoint()

    async def send_eof(self) -> None:
        """Close the sending side of the TCP connection, which can still receive."""
        self._turns.end()
        await trio.lowlevel.checkpoint()
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise trio.BrokenResourceError(error.strerror) from error
