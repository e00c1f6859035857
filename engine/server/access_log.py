"""The access log: a bounded ring of tuples, written as JSON lines by one task.

Adding costs a fraction of a microsecond and never waits. When the ring is full the newest entry is
dropped and counted, and the next batch ends in a line that says how many. Headers and bodies are never
written; the target is, with its query.

Choice: where the file cannot be written the batch is lost and counted; the server goes on.
"""

import sys
from collections import deque
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec
import structlog
import trio

from ...config.errors import ConfigError

_ENTRIES_MAX = 65_536
_PERIOD_S = 0.25
_CHUNK = 500  # entries encoded between two checkpoints

_log = structlog.get_logger("cambist.server")

# now_ms, client, method, target, status, body bytes, seconds, request id
Entry: TypeAlias = tuple[int, str, bytes, bytes, int, int, float, str]


class _Line(msgspec.Struct):
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
    """Takes entries from the servers of one process and writes them to `sink`.

    Args:
        sink: where lines go; it stays open, for who opened it.
        entries_max: what the ring holds between two batches.

    Attributes:
        dropped: entries there was no room for, and lines that could not be written.
    """

    def __init__(self, sink: BinaryIO, *, entries_max: int = _ENTRIES_MAX) -> None:
        self.dropped = 0
        self._sink = sink
        self._entries_max = entries_max
        self._ring: deque[Entry] = deque()
        self._reported = 0
        self._encode = msgspec.json.Encoder().encode

    def add(self, entry: Entry) -> None:
        """Keep an entry until the next batch. Never waits."""
        if len(self._ring) < self._entries_max:
            self._ring.append(entry)
        else:
            self.dropped += 1

    async def run(self) -> None:
        """Write a batch every quarter of a second until cancelled, then what is left."""
        try:
            while True:
                await trio.sleep(_PERIOD_S)
                await self.flush()
        finally:
            await self.flush()

    async def flush(self) -> None:
        """Write what was added so far. Not cancelled: what has left the ring is written."""
        with trio.CancelScope(shield=True):
            await self._flush()

    async def _flush(self) -> None:
        lines: list[bytes] = []
        for _ in range(len(self._ring)):
            if len(lines) % _CHUNK == _CHUNK - 1:
                await trio.lowlevel.checkpoint()
            lines.append(self._encode(_line(self._ring.popleft())))
        if self.dropped != self._reported:
            lines.append(self._encode(_Dropped(self.dropped - self._reported)))
            self._reported = self.dropped
        if not lines:
            return
        lines.append(b"")
        try:
            await trio.to_thread.run_sync(self._write, b"\n".join(lines))
        except OSError as error:
            self.dropped += len(lines) - 1
            _log.error("the access log cannot be written", reason=str(error))

    def _write(self, text: bytes) -> None:
        self._sink.write(text)
        self._sink.flush()


def _line(entry: Entry) -> _Line:
    now_ms, client, method, target, status, size, seconds, request_id = entry
    us = round(seconds * 1_000_000)
    return _Line(now_ms, client, method.decode(), target.decode(), status, size, us, request_id)


def open_access_log(path: str) -> BinaryIO:
    """The sink that a setting names: `-` is standard output, else a file that is appended to.

    Raises:
        ConfigError: the file cannot be opened.
    """
    if path == "-":
        return sys.stdout.buffer
    try:
        return Path(path).open("ab")
    except OSError as error:
        raise ConfigError("access_log", f"{path}: {error.strerror}") from None
