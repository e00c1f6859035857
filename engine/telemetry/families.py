"""Builds Prometheus metric families: name, help text, labels and current values. Pure.

gauge("otc_drafts", "...", [(("1",), 3)], "chain")        cambist_otc_drafts{chain="1"} 3
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

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
    name: str, help_text: str, bounds: Sequence[float], counts: Sequence[int], total: float
) -> Metric:
    """Create a Prometheus metric family with one histogram.

    Args:
        bounds: upper bounds of the buckets, rising.
        counts: number of values in each bucket, not cumulative; the last counts values above all bounds.
        total: sum of the observed values.
    """
    family = HistogramMetricFamily(METRICS_PREFIX + name, help_text)
    so_far, buckets = 0, []
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        so_far += count
        buckets.append((bound, float(so_far)))
    family.add_metric((), buckets, total)
    return family


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
