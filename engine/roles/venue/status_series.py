"""The last hour of the venue's counters for GET /operator/status: a value for each step of ten seconds. Pure.

    counters since the start --difference--> numbers         requests, errors, refused, orders, fills, quotes
    histograms since the start --difference, quantile--> ms  quoteP50Ms, quoteP99Ms, orderP50Ms, orderP99Ms
    worst of the step                                        loopLagMs

A step that was passed over, since the process stood still, has null in each member but `at`; its events count
in the step in which the process goes on. Quantiles are estimates from histograms
(`feeds.durations.quantile_s`).
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ....config.limits import OPERATOR_SERIES_STEPS_MAX
from ....config.timeouts import SERIES_STEP_S
from ....feeds.durations import quantile_s

_STEP_MS = round(SERIES_STEP_S * 1_000)
_COUNTED = ("requests", "errors", "refused", "orders", "fills", "quotes")
_MEMBERS = (*_COUNTED, "quoteP50Ms", "quoteP99Ms", "orderP50Ms", "orderP99Ms", "loopLagMs")


class StatusReading(Struct, frozen=True):
    """The venue's counters at the end of a step; all but `worst_lag_s` count since the start of the process.

    Attributes:
        requests: answered requests, of any status.
        errors, refused: answers with a status of 500 to 599, and of 400 to 499.
        orders: Delta and OTC orders that the venue has accepted.
        fills: changes of Delta and OTC orders by fills.
        quotes: answers of GET /v2/quote, refusals included.
        quote_counts, order_counts: durations of the answers of GET /v2/quote, and of those of posted Delta
            and OTC orders, in the buckets of `feeds.durations.BOUNDS_S`.
        worst_lag_s: longest delay of the event loop within the step, seconds; None without a measurement.
    """

    requests: int
    errors: int
    refused: int
    orders: int
    fills: int
    quotes: int
    quote_counts: tuple[int, ...]
    order_counts: tuple[int, ...]
    worst_lag_s: float | None


class StatusSeries:
    """Ring of the last OPERATOR_SERIES_STEPS_MAX steps.

    Args:
        first: counters at the begin of the first step.
    """

    def __init__(self, first: StatusReading) -> None:
        self._before = first
        self._steps: deque[tuple[int | float | None, ...]] = deque(maxlen=OPERATOR_SERIES_STEPS_MAX)
        self._at_ms: deque[int] = deque(maxlen=OPERATOR_SERIES_STEPS_MAX)

    def add(self, at_ms: int, reading: StatusReading) -> None:
        """Append a step that ends now, after null steps for the time since the last one that was passed over.

        Args:
            at_ms: the time, Unix milliseconds.
            reading: the counters now.
        """
        if self._at_ms:
            passed = round((at_ms - self._at_ms[-1]) / _STEP_MS) - 1
            for left in range(min(passed, OPERATOR_SERIES_STEPS_MAX), 0, -1):
                self._append(at_ms - left * _STEP_MS, (None,) * len(_MEMBERS))
        before, self._before = self._before, reading
        lag_s = reading.worst_lag_s
        self._append(
            at_ms,
            (
                *(getattr(reading, name) - getattr(before, name) for name in _COUNTED),
                *_quantiles_ms(before.quote_counts, reading.quote_counts),
                *_quantiles_ms(before.order_counts, reading.order_counts),
                None if lag_s is None else _ms(lag_s),
            ),
        )

    def shown(self) -> dict[str, Any]:
        """Return the steps as JSON values: members of lists, the earliest step first.

        `at` has the ends of the steps, Unix milliseconds.
        """
        columns = list(zip(*self._steps, strict=True)) or [()] * len(_MEMBERS)
        members = {name: list(column) for name, column in zip(_MEMBERS, columns, strict=True)}
        return {"stepS": round(SERIES_STEP_S), "at": list(self._at_ms), **members}

    def _append(self, at_ms: int, values: tuple[int | float | None, ...]) -> None:
        self._at_ms.append(at_ms)
        self._steps.append(values)


def _quantiles_ms(before: Sequence[int], now: Sequence[int]) -> tuple[float | None, float | None]:
    """Estimate median and 99th percentile of the durations between two histograms, milliseconds."""
    counts = [later - earlier for earlier, later in zip(before, now, strict=True)]
    median_s, slow_s = quantile_s(counts, 0.5), quantile_s(counts, 0.99)
    return (None if median_s is None else _ms(median_s)), (None if slow_s is None else _ms(slow_s))


def _ms(seconds: float) -> float:
    """Convert seconds to milliseconds with three decimals."""
    return round(seconds * 1_000, 3)
