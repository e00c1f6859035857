"""The kill switch: stops trading through a watched file, which signals and endpoints write.

SIGUSR1 stops everything, SIGUSR2 resumes everything; `touch FILE` stops everything, `rm FILE` resumes.
"""

import signal
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import NoReturn

import structlog
import trio

from ....config.timeouts import KILL_SWITCH_LOOK_S
from .halts import NOTHING_HALTED, Halts
from .watched_file import WatchedFile

_log = structlog.get_logger("cambist.kill_switch")


class KillSwitch:
    """Kill switch of a process: stops and resumes scopes of trading.

    A stop whose file cannot be written holds in this process until the same scope, or `all`, is resumed here:
    no change of the file ends it.

    Args:
        path: the halts file, which names the stopped scopes.
        on_change: called with the new stopped scopes, at once after each change.

    Attributes:
        halts: scopes on which trading is stopped now.
    """

    def __init__(self, path: Path, on_change: Callable[[Halts], None]) -> None:
        self.halts = NOTHING_HALTED
        self._on_change = on_change
        self._unwritten: tuple[str, ...] = ()
        self._file = WatchedFile(path, NOTHING_HALTED, self._apply)
        self.look = self._file.look

    async def watch(self) -> NoReturn:
        """Look at the halts file every KILL_SWITCH_LOOK_S seconds and apply its changes, until cancelled."""
        await self._file.watch(KILL_SWITCH_LOOK_S)

    def stop(self, scope: str) -> None:
        """Stop trading in a scope: `all`, `chain ID` or `pair ID NAME`.

        Raises:
            ValueError: `scope` has none of these three forms.
            OSError: the halts file cannot be written. Trading is stopped in this process nevertheless.
        """
        self.halts.with_scope(scope)
        self._unwritten = (*self._unwritten_but(scope), scope)
        self._apply(self._file.state)  # before the write, which may fail
        self._file.change(lambda halts: halts.with_scope(scope))
        self._unwritten = self._unwritten_but(scope)

    def resume(self, scope: str) -> None:
        """Resume trading in a scope, after writing the halts file.

        Raises:
            ValueError: `scope` has none of the three forms that `stop` takes.
            OSError: the halts file cannot be written; trading remains stopped.
        """
        self.halts.without_scope(scope)
        self._file.change(lambda halts: halts.without_scope(scope))
        self._unwritten = () if scope == "all" else self._unwritten_but(scope)
        self._apply(self._file.state)

    def _unwritten_but(self, scope: str) -> tuple[str, ...]:
        return tuple(each for each in self._unwritten if each != scope)

    def _apply(self, written: Halts) -> None:
        """Apply the state of the halts file, and on top the stops that could not be written to the file."""
        halts = written if written.everything else reduce(Halts.with_scope, self._unwritten, written)
        if halts != self.halts:
            self.halts = halts
            self._on_change(halts)

    async def heed_signals(self) -> None:
        """Handle signals until cancelled: SIGUSR1 stops everything, SIGUSR2 resumes everything."""
        with trio.open_signal_receiver(signal.SIGUSR1, signal.SIGUSR2) as signals:
            async for received in signals:
                try:
                    if received == signal.SIGUSR1:
                        self.stop("all")
                    else:
                        self.resume("all")
                except OSError as error:
                    path = str(self._file.path)
                    _log.error("halt file cannot be written", path=path, error=error.strerror)
