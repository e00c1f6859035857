"""The kill switch: one file, watched; signals and endpoints write it.

    SIGUSR1 stops everything, SIGUSR2 resumes everything; `touch FILE` stops everything, `rm FILE` resumes.

Every process that watches the file follows within `KILL_SWITCH_LOOK_S`; the one that writes it at once.
The file is looked at (one stat) rather than waited for: that works on every platform and file system.
"""

import errno
import fcntl
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import trio

from ...config.timeouts import KILL_SWITCH_LOOK_S
from ..telemetry.structured import structlog
from .halts import HALT_FILE_BYTES_MAX, NOTHING_HALTED, Halts, parse_halts

_LOCK_TRIES = 50
_LOCK_PAUSE_S = 0.001

_log = structlog.get_logger("cambist.kill_switch")


class KillSwitch:
    """What is stopped now.

    Args:
        path: the halt file.
        on_change: called with the new state, at once after each change.

    Attributes:
        halts: the state.
    """

    def __init__(self, path: Path, on_change: Callable[[Halts], None]) -> None:
        self.halts = NOTHING_HALTED
        self._path = path
        self._on_change = on_change
        self._seen: object = None
        self.look()

    def look(self) -> None:
        """Read the file if it is another than before."""
        try:
            status = self._path.stat()
            seen: object = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        except FileNotFoundError:
            seen = None
        except OSError as error:
            seen = error.errno
        if seen != self._seen:
            self._seen = seen
            self._set(NOTHING_HALTED if seen is None else self._read())

    def stop(self, scope: str) -> None:
        """Stop `all`, `chain ID` or `pair ID NAME`.

        Raises:
            ValueError: no such scope.
            OSError: the file cannot be written. Trading is stopped in this process nevertheless.
        """
        self._set(self.halts.with_scope(scope))
        self._change(lambda halts: halts.with_scope(scope))

    def resume(self, scope: str) -> None:
        """The opposite of `stop`. Raises as it does; trading is resumed only once the file says so."""
        self.halts.without_scope(scope)
        self._change(lambda halts: halts.without_scope(scope))

    async def watch(self) -> None:
        """Follow the file for ever."""
        while True:
            await trio.sleep(KILL_SWITCH_LOOK_S)
            self.look()

    async def heed_signals(self) -> None:
        """SIGUSR1 stops everything, SIGUSR2 resumes everything."""
        with trio.open_signal_receiver(signal.SIGUSR1, signal.SIGUSR2) as signals:
            async for received in signals:
                try:
                    if received == signal.SIGUSR1:
                        self.stop("all")
                    else:
                        self.resume("all")
                except OSError as error:
                    _log.error("halt file cannot be written", path=str(self._path), error=error.strerror)

    def _read(self) -> Halts:
        try:
            with self._path.open("rb") as file:
                raw = file.read(HALT_FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return NOTHING_HALTED
        except OSError as error:
            return Halts(everything=True, reason=f"the halt file cannot be read: {error.strerror}")
        if len(raw) > HALT_FILE_BYTES_MAX:
            return Halts(everything=True, reason=f"the halt file is larger than {HALT_FILE_BYTES_MAX} bytes")
        return parse_halts(raw.decode(errors="replace"))

    def _change(self, change: Callable[[Halts], Halts]) -> None:
        """Read, change and write the file while no other process does, which takes each a moment."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_name(f"{self._path.name}.lock").open("wb") as lock:
            _lock(lock)
            halts = change(self._read())
            if halts.text():
                beside = self._path.with_name(f"{self._path.name}.new")
                beside.write_text(halts.text(), encoding="utf-8")
                beside.replace(self._path)
            else:
                self._path.unlink(missing_ok=True)
        self.look()

    def _set(self, halts: Halts) -> None:
        if halts == self.halts:
            return
        self.halts = halts
        self._on_change(halts)


def _lock(file: BinaryIO) -> None:
    """Lock a file; OSError if another process keeps it: a stopped one must not stop this one too."""
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
        else:
            return
    raise BlockingIOError(errno.EWOULDBLOCK, "another process keeps it locked", file.name)
