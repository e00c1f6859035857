"""Measures the event loop's delay: a task sleeps and records by how much it overslept.

Work that keeps the scheduler busy delays every task: the recorded delay is the one that any other task has.
"""

from bisect import bisect_left

import trio
from msgspec import Struct

from ...config.timeouts import LOOP_LAG_EVERY_S

LAG_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the buckets in the histogram of event-loop delays, seconds."""


class LagStatistics(Struct, frozen=True):
    """Event-loop delays measured since the start.

    Attributes:
        counts: number of delays up to each bound of LAG_BOUNDS_S; the last counts the longer ones.
        lag_s: sum of all delays, seconds.
        lag_s_max: the longest delay, seconds.
        tasks: number of tasks in the event loop at this moment.
    """

    counts: tuple[int, ...]
    lag_s: float
    lag_s_max: float
    tasks: int


class LoopLag:
    """Measures, while `run` runs, how late the event loop wakes a sleeping task."""

    def __init__(self) -> None:
        self._counts = [0] * (len(LAG_BOUNDS_S) + 1)
        self._lag_s = 0.0
        self._lag_s_max = 0.0

    async def run(self) -> None:
        """Measure the event loop's delay again and again, until cancelled."""
        while True:
            due = trio.current_time() + LOOP_LAG_EVERY_S
            await trio.sleep_until(due)
            lag_s = max(0.0, trio.current_time() - due)
            self._counts[bisect_left(LAG_BOUNDS_S, lag_s)] += 1
            self._lag_s += lag_s
            self._lag_s_max = max(self._lag_s_max, lag_s)

    def statistics(self) -> LagStatistics:
        """Return the event loop's measured delays and its number of tasks; to be called within the loop."""
        tasks = trio.lowlevel.current_statistics().tasks_living
        return LagStatistics(tuple(self._counts), self._lag_s, self._lag_s_max, tasks)
