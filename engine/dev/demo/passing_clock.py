"""The demo's clock: everybody's, so that it can be put forward for all of them at once."""

import time

from ...process.clock import WallClock

_NS = 10**9


class PassingClock(WallClock):
    """A wall clock that goes as time does, and further where it is told to."""

    __slots__ = ("_ahead_ns",)

    def __init__(self) -> None:
        self._ahead_ns = 0
        super().__init__(
            lambda: time.time_ns() + self._ahead_ns, lambda: time.monotonic_ns() + self._ahead_ns
        )

    def put_forward(self, to_s: int) -> None:
        """To a time, Unix seconds; nothing where that has passed."""
        self._ahead_ns += max(to_s * _NS - self.now_ms() * 1_000_000, 0)
