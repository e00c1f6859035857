"""The access log: a bounded ring of tuples, written as JSON lines by one task.

Adding costs a fraction of a microsecond and never waits. If the ring is full, the newest entry is dropped and
counted, and the next batch ends in a line with the count. Headers and bodies are never written; the request
target is, with its query, truncated as below.

A batch of the access log that cannot be written is lost and counted, and the server goes on; a partly written
line is closed and counts as lost. The log holds at most the first 512 bytes of a target; a longer target ends
in `... (N bytes)`, which no target can hold. At its end the server waits at most ACCESS_LOG_END_S for a
blocked sink.
"""

import sys
from collections import deque
from errno import EAGAIN
from pathlib import Path
from threading import Lock
from typing import BinaryIO, TypeAlias

import msgspec
import structlog
import trio

from ....config.errors import ConfigError
from ....config.timeouts import ACCESS_LOG_END_S

_ENTRIES_MAX = 65_536
_PERIOD_S = 0.25
_CHUNK = 500  # entries encoded between two checkpoints
_TARGET_BYTES_MAX = 512
_NEW_LINE = ord("\n")

_log = structlog.get_logger("cambist.server")

# now_ms, client, method, target, status, body bytes, seconds, request id
LogEntry: TypeAlias = tuple[int, str, bytes, bytes, int, int, float, str]


class _LogLine(msgspec.Struct):
    time_ms: int
    client: str
    method: str
    target: str
    status: int
    bytes: int
    us: int
    request_id: str


class _Dropped(msgspec.Struct):
    dropped: int


class AccessLog:
    """Access log of one process: queues an entry for each HTTP answer, and writes the entries as lines.

    Args:
        sink: unbuffered output of lines, from `open_access_log`; the opener of the sink also closes it.
        entries_max: greatest number of queued entries; further entries are dropped and counted.
    """

    def __init__(self, sink: BinaryIO, *, entries_max: int = _ENTRIES_MAX) -> None:
        self._sink = sink
        self._entries_max = entries_max
        self._ring: deque[LogEntry] = deque()
        self._refused = 0  # entries
        self._reported = 0
        self._batches: deque[tuple[bytes, int]] = deque()  # for the thread that writes: text, lines
        self._batched = 0  # lines that have left the ring
        self._encode = msgspec.json.Encoder().encode
        # Of the thread that holds `_writing`:
        self._writing = Lock()
        self._settled = 0  # lines, written or lost
        self._lost = 0
        self._is_torn = False  # the sink ends within a line
        self._has_given_up = False

    @property
    def dropped(self) -> int:
        """Number of lost log entries: the queue was full, or the line could not be written to the sink."""
        return self._refused + self._lost

    def add(self, entry: LogEntry) -> None:
        """Queue a log entry without waiting; drop and count the entry if the queue is full."""
        if len(self._ring) < self._entries_max:
            if len(entry[3]) > _TARGET_BYTES_MAX:
                entry = (*entry[:3], _cut(entry[3]), *entry[4:])
            self._ring.append(entry)
        else:
            self._refused += 1

    async def run(self) -> None:
        """Write queued log entries every 250 ms until cancelled, and all that are still queued at the end.

        A blocked sink does not hold up the server's answers, and delays the end of this method by at most
        ACCESS_LOG_END_S seconds.
        """
        try:
            while True:
                await trio.sleep(_PERIOD_S)
                await self.flush()
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + ACCESS_LOG_END_S) as scope:
                await self.flush()
            if scope.cancelled_caught:
                self._has_given_up = True
                self._refused += self._batched - self._settled + len(self._ring)
                self._ring.clear()
                _log.error("the access log is stuck", dropped=self.dropped)

    async def flush(self) -> None:
        """Write all queued log entries.

        A cancelled call loses no entry: the next call writes the remaining entries.
        """
        lines: list[bytes] = []
        for _ in range(len(self._ring)):
            lines.append(self._encode(_line(self._ring.popleft())))
            if len(lines) == _CHUNK:
                self._batch(lines)
                lines = []
                await trio.lowlevel.checkpoint()
        if self.dropped != self._reported:
            lines.append(self._encode(_Dropped(self.dropped - self._reported)))
            self._reported = self.dropped
        if lines:
            self._batch(lines)
        if self._batched != self._settled:
            await trio.to_thread.run_sync(self._write_batches, abandon_on_cancel=True)

    def _batch(self, lines: list[bytes]) -> None:
        self._batches.append((b"\n".join([*lines, b""]), len(lines)))
        self._batched += len(lines)

    # --- In a thread ----------------------------------------------------------------------------------

    def _write_batches(self) -> None:
        """Write all batches of log lines.

        A cancelled `flush` leaves its thread running; a later thread waits until that thread has finished.
        """
        with self._writing:
            while self._batches and not self._has_given_up:
                text, count = self._batches.popleft()
                written = self._write(text)
                self._lost += count - text.count(b"\n", 0, written)
                self._settled += count

    def _write(self, text: bytes) -> int:
        """Write log lines without retries.

        Returns:
            Number of bytes written; fewer than `text` has if the sink fails.
        """
        written = 0
        try:
            if self._is_torn:
                self._write_some(b"\n")
                self._is_torn = False
            while written < len(text):
                written += self._write_some(text[written:])
        except OSError as error:
            _log.error("the access log cannot be written", reason=str(error))
            self._is_torn = self._is_torn or (written > 0 and text[written - 1] != _NEW_LINE)
        return written

    def _write_some(self, text: bytes) -> int:
        taken: int | None = self._sink.write(text)
        if not taken:
            raise BlockingIOError(EAGAIN, "the sink is full")
        return taken


def _line(entry: LogEntry) -> _LogLine:
    now_ms, client, method, target, status, size, seconds, request_id = entry
    us = round(seconds * 1_000_000)
    return _LogLine(now_ms, client, method.decode(), target.decode(), status, size, us, request_id)


def _cut(target: bytes) -> bytes:
    return target[:_TARGET_BYTES_MAX] + b"... (%d bytes)" % len(target)


def open_access_log(path: str) -> BinaryIO:
    """Open the unbuffered output of the access log.

    Args:
        path: `-` for standard output, else a file to append to.

    Raises:
        ConfigError: the file cannot be opened.
    """
    if path == "-":
        return open(sys.stdout.fileno(), "wb", buffering=0, closefd=False)
    try:
        return Path(path).open("ab", buffering=0)
    except OSError as error:
        raise ConfigError("server.access_log", f"{path}: {error.strerror}") from None
