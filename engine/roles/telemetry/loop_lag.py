"""Measures the event loop's delay: a task sleeps and records by how much it overslept.

Work that keeps the scheduler busy delays every task: the other tasks wait about as long as this one.
"""

import trio
from msgspec import Struct

from ....config.timeouts import LOOP_LAG_EVERY_S
from ....feeds.durations import Durations


class LagStatistics(Struct, frozen=True):
    """Event-loop delays measured since the start.

    Attributes:
        lag_s_max: the longest delay, seconds.
        tasks: number of tasks in the event loop at this moment.
    """

    delays: Durations
    lag_s_max: float
    tasks: int


class LoopLag:
    """Measures, while `run` runs, how late the event loop wakes a sleeping task."""

    def __init__(self) -> None:
        self._delays = Durations()
        self._lag_s_max = 0.0
        self._worst_s: float | None = None

    async def run(self) -> None:
        """Measure the event loop's delay again and again, until cancelled."""
        while True:
            due = trio.current_time() + LOOP_LAG_EVERY_S
            await trio.sleep_until(due)
            lag_s = max(0.0, trio.current_time() - due)
            self._delays.add(lag_s)
            self._lag_s_max = max(self._lag_s_max, lag_s)
            self._worst_s = max(self._worst_s or 0.0, lag_s)

    def take_worst_s(self) -> float | None:
        """Return the longest delay since the last call of this method, seconds; None if none was measured."""
        worst_s, self._worst_s = self._worst_s, None
        return worst_s

    def statistics(self) -> LagStatistics:
        """Return the event loop's measured delays and its number of tasks; to be called within the loop."""
        return LagStatistics(self._delays, self._lag_s_max, trio.lowlevel.current_statistics().tasks_living)
