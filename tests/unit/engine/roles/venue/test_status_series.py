"""The operator's hour: each step has the differences of the counters, null where nothing was measured."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.config.limits import OPERATOR_SERIES_STEPS_MAX
from cambist.config.timeouts import SERIES_STEP_S
from cambist.engine.roles.venue.status_series import StatusReading, StatusSeries
from cambist.feeds.durations import BOUNDS_S, Durations, quantile_s

NOW_MS = 1_700_000_000_000
STEP_MS = round(SERIES_STEP_S * 1_000)
NONE = (0,) * (len(BOUNDS_S) + 1)
NOTHING = StatusReading(0, 0, 0, 0, 0, 0, NONE, NONE, None)
COUNTED = ("requests", "errors", "refused", "orders", "fills", "quotes")

numbers = st.integers(0, 1_000)
steps = st.lists(
    st.tuples(
        st.integers(1, 4),  # steps since the last reading
        st.tuples(*[numbers] * len(COUNTED)),
        st.lists(st.floats(0, 10), max_size=5),
        st.lists(st.floats(0, 10), max_size=5),
        st.none() | st.floats(0, 2),
    ),
    max_size=30,
)


def counts_of(durations: list[float]) -> tuple[int, ...]:
    found = Durations()
    for seconds in durations:
        found.add(seconds)
    return tuple(found.counts)


@given(steps)
def test_the_series_is_that_of_the_differences(
    taken: list[tuple[int, tuple[int, ...], list[float], list[float], float | None]],
) -> None:
    series, now_ms, before = StatusSeries(NOTHING), NOW_MS, NOTHING
    wanted: list[list[object]] = []
    for passed, risen, quotes, orders, lag_s in taken:
        if wanted:
            wanted += [[now_ms + at * STEP_MS, *[None] * 11] for at in range(1, passed)]
            now_ms += passed * STEP_MS
        quote_counts, order_counts = counts_of(quotes), counts_of(orders)
        totals = {name: getattr(before, name) + more for name, more in zip(COUNTED, risen, strict=True)}
        before = replace(
            before,
            **totals,
            quote_counts=tuple(map(sum, zip(before.quote_counts, quote_counts, strict=True))),
            order_counts=tuple(map(sum, zip(before.order_counts, order_counts, strict=True))),
            worst_lag_s=lag_s,
        )
        series.add(now_ms, before)
        quantiles = [
            quantile_s(counts, share) for counts in (quote_counts, order_counts) for share in (0.5, 0.99)
        ]
        in_ms = [None if seconds is None else round(seconds * 1_000, 3) for seconds in (*quantiles, lag_s)]
        wanted.append([now_ms, *risen, *in_ms])
    told = series.shown()
    assert told.pop("stepS") == 10
    names = ["at", *COUNTED, "quoteP50Ms", "quoteP99Ms", "orderP50Ms", "orderP99Ms", "loopLagMs"]
    assert list(told) == names
    columns = [list(column) for column in zip(*wanted, strict=True)] or [[] for _ in names]
    assert [told[name] for name in names] == columns


def test_an_hour_is_kept_and_a_long_pause_adds_no_more_than_that() -> None:
    series = StatusSeries(NOTHING)
    for number in range(2 * OPERATOR_SERIES_STEPS_MAX):
        series.add(NOW_MS + number * STEP_MS, replace(NOTHING, requests=number))
    told = series.shown()
    assert {len(column) for name, column in told.items() if name != "stepS"} == {OPERATOR_SERIES_STEPS_MAX}
    assert told["at"][-1] - told["at"][0] == 3_590_000
    series.add(NOW_MS + 10**12, replace(NOTHING, requests=10**6))
    told = series.shown()
    assert len(told["at"]) == OPERATOR_SERIES_STEPS_MAX
    assert (told["requests"][0], told["requests"][-1]) == (None, 10**6 - 2 * OPERATOR_SERIES_STEPS_MAX + 1)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_lies_in_the_bucket_of_the_exact_one(durations: list[float], share: float) -> None:
    found = quantile_s(counts_of(durations), share)
    assert found is not None
    rank = next(at for at in range(len(durations)) if at + 1 >= share * len(durations))
    exact = sorted(durations)[rank]
    below = max((bound for bound in (0.0, *BOUNDS_S) if bound < exact), default=0.0)
    above = min((bound for bound in BOUNDS_S if bound >= exact), default=BOUNDS_S[-1])
    assert below <= found <= above


@pytest.mark.parametrize(
    ("bucket", "share", "wanted_ms"), [(0, 0.5, 0.1), (0, 1.0, 0.2), (2, 0.25, 0.625), (14, 0.5, 5_000)]
)
def test_durations_are_taken_as_spread_over_their_bucket(bucket: int, share: float, wanted_ms: float) -> None:
    counts = [0] * len(NONE)
    counts[bucket] = 4
    found = quantile_s(counts, share)
    assert found is not None
    assert abs(found * 1_000 - wanted_ms) < 1e-9
    assert list(accumulate(counts))[-1] == 4


def test_nothing_has_no_quantile() -> None:
    assert quantile_s(NONE, 0.5) is None
