"""Histogram of durations: of a route's answers, of a maker's firm quotes, of the event loop's delays."""

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct, field

BOUNDS_S = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the buckets of a `Durations`, seconds."""


def quantile_s(counts: Sequence[int], share: float) -> float | None:
    """Estimate the duration that a share of the durations in a histogram does not exceed, seconds.

    Durations are taken as spread evenly over their bucket; those of the last bucket, which has no upper
    bound, count as its lower bound.

    Args:
        counts: number of durations in each bucket of BOUNDS_S, and in the last one.
        share: above 0, at most 1.

    Returns:
        None without durations.
    """
    wanted = share * sum(counts)
    low = 0.0
    for count, high in zip(counts, (*BOUNDS_S, BOUNDS_S[-1]), strict=True):
        if count and wanted <= count:
            return low + (high - low) * wanted / count
        wanted -= count
        low = high
    return BOUNDS_S[-1] if any(counts) else None


class Durations(Struct):
    """Durations since the start of the process.

    Attributes:
        counts: number of durations in each bucket. A bucket holds the durations above the previous bound of
            BOUNDS_S, up to its own bound; the last bucket has no upper bound.
        total_s: sum of all durations, seconds.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds
