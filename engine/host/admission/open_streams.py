"""Bounds on the open streams of one kind (order events, quotes), by caller and in total. Pure.

Choice: A caller has at most 32 streams of each kind (429 beyond); the settings bound the venue's streams
    (503).
"""

from collections import Counter

from ....config.errors import RateLimited, ServiceUnavailable
from ....config.limits import ADMISSION_STREAMS_PER_CALLER_MAX


class OpenStreams:
    """Counter of the open streams of one kind (order events, quotes), with a bound per caller and in total.

    Args:
        what: name of this kind of streams in error messages, e.g. `quote streams`.
        streams_max: greatest number of open streams, of all callers together.

    Attributes:
        opened, refused: number of streams opened, and refused because of the bounds.
    """

    def __init__(self, what: str, streams_max: int) -> None:
        self.opened = self.refused = 0
        self._what = what
        self._streams_max = streams_max
        self._by_caller: Counter[str] = Counter()

    def __len__(self) -> int:
        """Number of open streams of all callers."""
        return self._by_caller.total()

    def check(self, caller: str) -> None:
        """Check that the caller may open another stream; the stream itself is not counted yet.

        Raises:
            RateLimited: the caller already has as many open streams as one caller may have.
            ServiceUnavailable: all callers together already have `streams_max` open streams.
        """
        if self._by_caller[caller] >= ADMISSION_STREAMS_PER_CALLER_MAX:
            self.refused += 1
            raise RateLimited(f"at most {ADMISSION_STREAMS_PER_CALLER_MAX} {self._what} of one caller")
        if len(self) >= self._streams_max:
            self.refused += 1
            raise ServiceUnavailable(f"too many {self._what}")

    def enter(self, caller: str) -> None:
        """Count a stream that a caller has opened."""
        self._by_caller[caller] += 1

    def leave(self, caller: str) -> None:
        """Subtract an ended stream from the number of a caller's open streams."""
        self._by_caller[caller] -= 1
        if not self._by_caller[caller]:
            del self._by_caller[caller]
