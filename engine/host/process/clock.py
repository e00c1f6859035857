"""The wall clock of a process: the system's time at the start, and the monotonic clock from then on.

A step of the system's clock, by hand or by a daemon, moves neither expiries nor the age of prices.
`behind_ms` shows the operator the distance between the two clocks.

Source: ARCHITECTURE.md, "Time and chance".
"""

import time
from collections.abc import Callable


class WallClock:
    """A clock in Unix milliseconds that advances evenly and never goes back.

    Args:
        system_ns: returns the time of the system's clock, Unix nanoseconds.
        monotonic_ns: returns the time of the monotonic clock, nanoseconds since an arbitrary start.
    """

    __slots__ = ("_anchor_ns", "_monotonic_ns", "_system_ns")

    def __init__(
        self,
        system_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._system_ns = system_ns
        self._monotonic_ns = monotonic_ns
        self._anchor_ns = system_ns() - monotonic_ns()

    def now_ms(self) -> int:
        """Current time of this clock, Unix milliseconds."""
        return (self._anchor_ns + self._monotonic_ns()) // 1_000_000

    def behind_ms(self) -> int:
        """Milliseconds by which the system's clock is ahead of this clock; below 0 if this clock is ahead."""
        return self._system_ns() // 1_000_000 - self.now_ms()
