"""CPU use of the cores during a measurement, from Linux's /proc; None on other platforms.

Foreign use is CPU time of processes other than the server, the load and their children (such as a store
process): a measurement with foreign use is discarded.
Foreign use is read from two sources, and the greater counts. First, the visible processes: the CPU time of
each and of its ended children, so that the parent accounts for a process that has ended. Second, the
system's totals, which include invisible processes and time taken by the hypervisor, but not interrupts, since
interrupts of loopback are the measured traffic itself.

The effect of foreign use is read from the scheduler: how long a process of the measurement was ready to run
but had no core. A burst of 50 ms is little in ten seconds, but half of the 99th percentile.
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
    """CPU time and waiting time, in seconds, of the measured and the other processes at one moment.

    Attributes:
        at: time of the reading.
        ours: process id -> CPU time of a measured process.
        helpers: CPU time of the children of measured processes.
        waited: time for which measured processes were ready to run but had no core.
        others: CPU time of all other processes, including their ended children.
        system: CPU time of the whole system.
    """

    at: float
    ours: dict[int, float]
    helpers: float
    waited: float
    others: float
    system: float


class CpuUse:
    """Use of CPU cores by a measurement's processes and by others, between `begin` and `end`.

    All numbers are fractions of one core.

    Args:
        others: ids of the processes, besides this one, that belong to the measurement.
    """

    def __init__(self, others: Iterable[int]) -> None:
        self._pids = frozenset((os.getpid(), *others))
        self._before = self._after = _read(self._pids)

    def begin(self) -> None:
        """Set the beginning of the time for which CPU use is counted to now."""
        self._before = self._after = _read(self._pids)

    def end(self) -> None:
        """Set the end of the time for which CPU use is counted to now."""
        self._after = _read(self._pids)

    @property
    def own(self) -> float | None:
        """CPU cores that this process used; None if the platform does not report CPU use."""
        return self.of(os.getpid())

    def of(self, pid: int) -> float | None:
        """CPU cores that a process of the measurement used; None if the platform does not report it."""
        if self._before is None or self._after is None:
            return None
        seconds = self._after.at - self._before.at
        return (self._after.ours[pid] - self._before.ours[pid]) / seconds if seconds else 0.0

    @property
    def waited(self) -> float | None:
        """Fraction of the time for which measured processes were ready to run but had no CPU core."""
        if self._before is None or self._after is None:
            return None
        seconds = self._after.at - self._before.at
        return (self._after.waited - self._before.waited) / seconds if seconds else 0.0

    @property
    def foreign(self) -> float | None:
        """CPU cores that processes outside the measurement used; None if the platform does not report it."""
        before, after = self._before, self._after
        if before is None or after is None:
            return None
        ours = sum(after.ours.values()) - sum(before.ours.values()) + after.helpers - before.helpers
        hidden = after.system - before.system - ours
        seconds = after.at - before.at
        return max(after.others - before.others, hidden, 0.0) / seconds if seconds else 0.0


def await_quiet(foreign_max: float, patience_s: float) -> bool:
    """Wait until the machine is quiet: at most `foreign_max` cores in use.

    Returns:
        Whether the machine is quiet within `patience_s` seconds.
    """
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
    system_s = _system_s()
    if system_s is None:
        return None
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
    return _Reading(time.perf_counter(), ours, helpers, waited, others, system_s)


def _system_s() -> float | None:
    """Return the CPU seconds of the whole system, without interrupts; None if the platform reports none."""
    try:
        fields = (_PROCESSES / "stat").read_text(encoding="ascii").split(maxsplit=9)[1:9]
    except OSError:
        return None
    user, nice, system, _, _, _, _, steal = map(int, fields)
    return (user + nice + system + steal) / _TICKS


def _waited(pid: int) -> float:
    """Return the seconds that a process's main thread waited for a core; 0 if the system reports none."""
    try:
        return int((_PROCESSES / str(pid) / "schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except OSError:
        return 0.0


def _used(folder: Path) -> tuple[float, float, int]:
    """Read CPU seconds of a process, CPU seconds of its ended children, and its parent's id.

    The result is zeros if the process has ended.

    Args:
        folder: folder of the process in /proc.
    """
    try:
        fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0, 0
    user, system, user_of_ended, system_of_ended = map(int, fields[11:15])
    return (user + system) / _TICKS, (user_of_ended + system_of_ended) / _TICKS, int(fields[1])


class WholeUse(Struct, frozen=True):
    """CPU time until one moment, in seconds: of the whole system, and of this process with ended children."""

    at: float
    system: float
    ours: float


def whole_use() -> WholeUse | None:
    """Read the CPU time so far; None if the platform does not report it."""
    total = _system_s()
    return None if total is None else WholeUse(time.perf_counter(), total, sum(os.times()[:4]))


def foreign_cores(before: WholeUse, after: WholeUse) -> float:
    """Cores that other processes used between two readings, at whose times this process had no children.

    A child that runs on, such as a server, would count as foreign.
    """
    foreign = (after.system - before.system) - (after.ours - before.ours)
    return max(foreign, 0.0) / (after.at - before.at)
