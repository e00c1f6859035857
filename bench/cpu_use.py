"""Who used the cores during a measurement, from Linux's accounts; elsewhere nothing is known.

Foreign use is what ran that is neither the server's nor the load's, nor their children's, as a store process
is: a measurement beside it is thrown away.
Two witnesses of what ran, and the greater counts. The processes that can be seen: what each has used, with
its children that ended, so that one that ends meanwhile is counted by who waited for it. And the system's own
totals, which also know what cannot be seen and what the hypervisor took; interrupts are left out there, for
those of loopback are the measured traffic itself.

One witness of harm: how long a process of the measurement was ready to run and was kept off its core. A burst
of 50 ms is little in ten seconds, and half of the 99th percentile.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

_PROCESSES = Path("/proc")
_SAMPLE_S = 0.5  # what is measured is use over time, in ticks of 10 ms: so much of it has to pass
_TICKS = os.sysconf("SC_CLK_TCK")


class _Reading(Struct, frozen=True):
    """Seconds, of everything so far."""

    at: float
    ours: dict[int, float]
    helpers: float
    waited: float
    others: float
    system: float


class CpuUse:
    """Between `begin` and `end`: cores used, as fractions of one core.

    Args:
        others: process ids beside our own that belong to the measurement.
    """

    def __init__(self, others: Iterable[int]) -> None:
        self._pids = frozenset((os.getpid(), *others))
        self._before = self._after = _read(self._pids)

    def begin(self) -> None:
        """The measurement begins now."""
        self._before = self._after = _read(self._pids)

    def end(self) -> None:
        """It ended."""
        self._after = _read(self._pids)

    @property
    def own(self) -> float | None:
        """This process's use."""
        return self.of(os.getpid())

    def of(self, pid: int) -> float | None:
        """The use of a process of the measurement."""
        if self._before is None or self._after is None:
            return None
        seconds = self._after.at - self._before.at
        return (self._after.ours[pid] - self._before.ours[pid]) / seconds if seconds else 0.0

    @property
    def waited(self) -> float | None:
        """How long the measurement's processes were kept off a core."""
        if self._before is None or self._after is None:
            return None
        seconds = self._after.at - self._before.at
        return (self._after.waited - self._before.waited) / seconds if seconds else 0.0

    @property
    def foreign(self) -> float | None:
        """What ran beside the measurement."""
        before, after = self._before, self._after
        if before is None or after is None:
            return None
        ours = sum(after.ours.values()) - sum(before.ours.values()) + after.helpers - before.helpers
        hidden = after.system - before.system - ours
        seconds = after.at - before.at
        return max(after.others - before.others, hidden, 0.0) / seconds if seconds else 0.0


def await_quiet(foreign_max: float, patience_s: float) -> bool:
    """Wait until a sample of the machine's use was quiet; False when patience is over before."""
    ends = time.perf_counter() + patience_s
    while True:
        use = CpuUse(())
        time.sleep(_SAMPLE_S)
        use.end()
        if use.foreign is None or use.foreign <= foreign_max:
            return True
        if time.perf_counter() >= ends:
            return False


def _read(pids: frozenset[int]) -> _Reading | None:
    if not (_PROCESSES / "stat").exists():
        return None
    user, nice, system, _, _, _, _, steal = map(
        int, (_PROCESSES / "stat").read_text(encoding="ascii").split(maxsplit=9)[1:9]
    )
    ours, helpers, others = dict.fromkeys(pids, 0.0), 0.0, 0.0
    for folder in _PROCESSES.glob("[0-9]*"):
        own, ended, parent = _used(folder)
        if int(folder.name) in pids:
            ours[int(folder.name)] = own
        elif parent in pids:
            helpers += own
        else:
            others += own + ended
    waited = sum(_waited(pid) for pid in pids)
    system_s = (user + nice + system + steal) / _TICKS
    return _Reading(time.perf_counter(), ours, helpers, waited, others, system_s)


def _waited(pid: int) -> float:
    """Seconds that the main thread was ready to run and did not; 0 where the system does not tell."""
    try:
        return int((_PROCESSES / str(pid) / "schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except OSError:
        return 0.0


def _used(folder: Path) -> tuple[float, float, int]:
    """Seconds that a process has run, and its children that ended, and its parent; nothing for one that is
    gone."""
    try:
        fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0, 0
    user, system, user_of_ended, system_of_ended = map(int, fields[11:15])
    return (user + system) / _TICKS, (user_of_ended + system_of_ended) / _TICKS, int(fields[1])
