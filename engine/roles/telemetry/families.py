"""Builds Prometheus metric families: name, help text, labels and current values. Pure.

gauge("otc_drafts", "...", [(("1",), 3)], "chain")        cambist_otc_drafts{chain="1"} 3
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Literal

from msgspec import Struct
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ....feeds.durations import BOUNDS_S, Durations

METRICS_PREFIX = "cambist_"

Numbers = Iterable[tuple[tuple[str, ...], float]]
"""Samples of a Prometheus metric family: (values of the labels, number) each."""


class MetricRow(Struct, frozen=True):
    """Definition of a Prometheus metric without labels, read from a field of a statistics struct.

    Attributes:
        field: name of the field; `a.b` is field `b` of the nested struct in field `a`.
    """

    field: str
    kind: Literal["counter", "gauge"]
    help: str


def gauge(name: str, help_text: str, numbers: Numbers, *labels: str) -> Metric:
    """Create a Prometheus gauge family, for values that rise and fall.

    Args:
        numbers: samples: (values of the labels, number) each.
        labels: names of the labels.
    """
    return _family(GaugeMetricFamily, name, help_text, numbers, labels)


def counter(name: str, help_text: str, numbers: Numbers, *labels: str) -> Metric:
    """Create a Prometheus counter family, for counts since the process's start; arguments as for `gauge`."""
    return _family(CounterMetricFamily, name, help_text, numbers, labels)


def histogram(
    name: str,
    help_text: str,
    bounds: Sequence[float],
    rows: Iterable[tuple[tuple[str, ...], Sequence[int], float]],
    *labels: str,
) -> Metric:
    """Create a Prometheus family of histograms.

    Args:
        bounds: upper bounds of the buckets, rising.
        rows: one (values of the labels, counts, sum of the observed values) for each histogram; `counts` has
            the number of values in each bucket, not cumulative, and last the number above all bounds.
        labels: names of the labels.
    """
    family = HistogramMetricFamily(METRICS_PREFIX + name, help_text, labels=labels)
    for values, counts, total in rows:
        buckets = zip((*map(str, bounds), "+Inf"), map(float, accumulate(counts)), strict=True)
        family.add_metric(values, list(buckets), total)
    return family


def durations_of(
    name: str, help_text: str, rows: Iterable[tuple[tuple[str, ...], Durations]], *labels: str
) -> Metric:
    """Create a Prometheus family of histograms of durations.

    A histogram with labels appears at its first duration. A histogram without labels appears from the start:
    Prometheus sees only rises after the first sample of a series, and would miss earlier durations.

    Args:
        rows: one (values of the labels, durations) for each histogram.
        labels: names of the labels.
    """
    shown = (
        (values, found.counts, found.total_s) for values, found in rows if not values or any(found.counts)
    )
    return histogram(name, help_text, BOUNDS_S, shown, *labels)


def families_of(part: str, rows: Sequence[MetricRow], statistics: object) -> Iterator[Metric]:
    """Yield a metric family for each row, with the value of the row's field in `statistics`.

    The family's name is `cambist_<part>_<field>`, where `<field>` is the last name of a dotted field.
    """
    for row in rows:
        make = counter if row.kind == "counter" else gauge
        name = f"{part}_{row.field.rpartition('.')[2]}"
        yield make(name, row.help, [((), _number(statistics, row.field))])


def _family(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    help_text: str,
    numbers: Numbers,
    labels: Sequence[str],
) -> Metric:
    family = kind(METRICS_PREFIX + name, help_text, labels=labels)
    for values, number in numbers:
        family.add_metric(values, number)
    return family


def _number(statistics: Any, field: str) -> float:
    for name in field.split("."):
        statistics = getattr(statistics, name)
    return float(statistics)
