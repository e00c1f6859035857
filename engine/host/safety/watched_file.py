"""A watched text file that holds shared state, such as the kill switch: people and processes change it.

Each process that watches the file takes a change over with its next look; the process that makes the change
does so at once. A process looks by one `stat`, which works on every platform and file system.
"""

import errno
import fcntl
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Generic, NoReturn, Protocol, Self, TypeVar

from ....feeds.ticks import tick

FILE_BYTES_MAX = 64 << 10
_LOCK_TRIES = 50
_LOCK_PAUSE_S = 0.001


class Written(Protocol):
    """Protocol of a state that is stored as the text of a watched file."""

    def text(self) -> str:
        """Return the text of the watched file for this state; empty if the file is to be removed."""
        ...

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a watched file's text to the state that it describes."""
        ...

    @classmethod
    def unreadable(cls, reason: str) -> Self:
        """Return the state that applies while the watched file cannot be read."""
        ...


S = TypeVar("S", bound=Written)


class WatchedFile(Generic[S]):
    """A text file that processes poll for changes, and the state that its text describes.

    Args:
        absent: state that applies while the file does not exist.
        on_change: called with the new state, at once after each change.

    Attributes:
        state: the state that applies now.
    """

    def __init__(self, path: Path, absent: S, on_change: Callable[[S], None]) -> None:
        self.path = path
        self.state = absent
        self._absent = absent
        self._on_change = on_change
        self._seen: object = None
        self.look()

    def look(self) -> None:
        """If the watched file has changed since the last call, read the file and apply the state in it."""
        try:
            status = self.path.stat()
            seen: object = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        except FileNotFoundError:
            seen = None
        except OSError as error:
            seen = error.errno
        if seen != self._seen:
            self._seen = seen
            self._set(self._absent if seen is None else self._read())

    def change(self, change: Callable[[S], S]) -> None:
        """Read the watched file, apply `change` to its state, and write the file, all under a file lock.

        Raises:
            OSError: the file cannot be written, or another process keeps the lock.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(f"{self.path.name}.lock").open("wb") as lock:
            _lock(lock)
            text = change(self._read()).text()
            if text:
                beside = self.path.with_name(f"{self.path.name}.new")
                beside.write_text(text, encoding="utf-8")
                beside.replace(self.path)
            else:
                self.path.unlink(missing_ok=True)
        self.look()

    def _set(self, state: S) -> None:
        """Replace the state in memory, but not the file; call `on_change` if the new state differs."""
        if state == self.state:
            return
        self.state = state
        self._on_change(state)

    async def watch(self, every_s: float) -> NoReturn:
        """Look at the watched file every `every_s` seconds and apply its changes, until cancelled."""
        while True:
            await tick(every_s)
            self.look()

    def _read(self) -> S:
        kind = type(self._absent)
        try:
            with self.path.open("rb") as file:
                raw = file.read(FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return self._absent
        except OSError as error:
            return kind.unreadable(f"cannot be read: {error.strerror}")
        if len(raw) > FILE_BYTES_MAX:
            return kind.unreadable(f"is larger than {FILE_BYTES_MAX} bytes")
        return kind.parse(raw.decode(errors="replace"))


def _lock(file: BinaryIO) -> None:
    """Lock a file against other processes, with at most _LOCK_TRIES attempts.

    Raises:
        OSError: another process, possibly a hung one, keeps the lock.
    """
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
        else:
            return
    raise BlockingIOError(errno.EWOULDBLOCK, "another process keeps it locked", file.name)
