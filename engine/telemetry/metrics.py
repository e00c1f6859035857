"""What Prometheus is told: read from the counters that each part keeps anyway, when it asks.

A part counts in plain integers and shows them as statistics; a table here says which of them is told under
which name. Nothing is counted twice, and nobody pays for a metric until it is asked for.

    metrics.server(lambda: server.statistics())       tables of this file
    metrics.counts("quotes", "...", ("mode", "outcome"), counter.items)   values of the labels, number

Source: ARCHITECTURE.md, "Telemetry"; Prometheus text exposition format.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ..admission.admission import AdmissionStatistics
from ..server.exchange import Counters
from ..store.store import COMMIT_BOUNDS_S, StoreStatistics
from .loop_lag import LAG_BOUNDS_S, LagStatistics

CONTENT_TYPE = CONTENT_TYPE_LATEST.encode()
METRICS_PREFIX = "cambist_"

FamilyType = type[CounterMetricFamily] | type[GaugeMetricFamily]
ReadNumbers = Callable[[], Iterable[tuple[tuple[str, ...], float]]]
"""(values of the labels, number) of each member of a family."""


class MetricRow(Struct, frozen=True):
    """A metric: which number it is of its statistics, `.` leading into them."""

    field: str
    kind: Literal["counter", "gauge"]
    help: str


SERVER = (
    MetricRow("connections", "gauge", "Connections that are open"),
    MetricRow("accepted", "counter", "Connections accepted"),
    MetricRow("refused", "counter", "Connections refused for being too many"),
    MetricRow("refused_by_address", "counter", "Of them, because their own address had too many"),
    MetricRow("promoted", "counter", "Connections that left the reactor for a task"),
    MetricRow("requests", "counter", "Requests answered, whatever the status"),
    MetricRow("faults", "counter", "Answers to bytes that were no request"),
    MetricRow("errors", "counter", "Answers with status 500"),
    MetricRow("cut_off", "counter", "Connections dropped because the other side took too long to read"),
    MetricRow("broken", "counter", "Connections that ended in a reset"),
    MetricRow("log_dropped", "counter", "Lines that the access log had no room for"),
)
STORE = (
    MetricRow("batcher.queued", "gauge", "Writes that wait"),
    MetricRow("batcher.in_flight", "gauge", "Writes of the batch in flight"),
    MetricRow("batcher.units", "counter", "Writes settled"),
    MetricRow("batcher.batches", "counter", "Batches settled"),
    MetricRow("batcher.full", "counter", "Writes refused because too many waited"),
    MetricRow("batcher.unavailable", "counter", "Writes that ended without an outcome"),
)


class Metrics:
    """The registry of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)

    def render(self) -> Iterator[bytes]:
        """The exposition, a family at a time: other tasks may run in between."""
        for family in self._registry.collect():
            yield generate_latest(_One(family))

    def statistics(self, part: str, rows: Sequence[MetricRow], read: Callable[[], object]) -> None:
        """Tell the numbers of `rows` of what `read` gives; `part` is the second word of their names."""
        self.add(_Statistics(part, rows, read))

    def counts(self, name: str, help_text: str, labels: tuple[str, ...], read: ReadNumbers) -> None:
        """Tell numbers that are counted by the values of labels."""
        self.add(_Numbers(CounterMetricFamily, name, help_text, labels, read))

    def gauges(self, name: str, help_text: str, labels: tuple[str, ...], read: ReadNumbers) -> None:
        """Tell numbers of this moment by the values of labels."""
        self.add(_Numbers(GaugeMetricFamily, name, help_text, labels, read))

    def add(self, collector: Collector) -> None:
        """Tell what a collector of one's own collects."""
        self._registry.register(collector)

    def server(self, read: Callable[[], Counters]) -> None:
        """Tell what the HTTP server counts."""
        self.statistics("server", SERVER, read)

    def store(self, read: Callable[[], StoreStatistics]) -> None:
        """Tell what the store counts, and how long its commits take."""
        self.statistics("store", STORE, read)
        self.add(_Store(read))

    def admission(self, read: Callable[[], AdmissionStatistics]) -> None:
        """Tell who was let in and who was not."""
        self.add(_Admission(read))

    def loop_lag(self, read: Callable[[], LagStatistics]) -> None:
        """Tell how late tasks get their turn."""
        self.add(_LoopLag(read))


class _One(Collector):
    """A registry of one family, as `generate_latest` wants it."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


class _Statistics(Collector):
    def __init__(self, part: str, rows: Sequence[MetricRow], read: Callable[[], object]) -> None:
        self._part, self._rows, self._read = part, rows, read

    def collect(self) -> Iterable[Metric]:
        statistics = self._read()
        for row in self._rows:
            family = _FAMILIES[row.kind](
                f"{METRICS_PREFIX}{self._part}_{row.field.rpartition('.')[2]}", row.help
            )
            family.add_metric((), _number(statistics, row.field))
            yield family


class _Numbers(Collector):
    def __init__(
        self, family: FamilyType, name: str, help_text: str, labels: tuple[str, ...], read: ReadNumbers
    ) -> None:
        self._family, self._name, self._help, self._labels, self._read = family, name, help_text, labels, read

    def collect(self) -> Iterable[Metric]:
        family = self._family(METRICS_PREFIX + self._name, self._help, labels=self._labels)
        for values, number in self._read():
            family.add_metric(values, number)
        return (family,)


class _Store(Collector):
    def __init__(self, read: Callable[[], StoreStatistics]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        statistics = self._read()
        away = GaugeMetricFamily(f"{METRICS_PREFIX}store_away", "1 while the store takes nothing")
        away.add_metric((), int(bool(statistics.away)))
        return away, _histogram(
            "store_commit_seconds",
            "Commits by how long they took",
            COMMIT_BOUNDS_S,
            statistics.commits,
            statistics.commit_s,
        )


class _Admission(Collector):
    def __init__(self, read: Callable[[], AdmissionStatistics]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        statistics = self._read()
        admitted = CounterMetricFamily(
            f"{METRICS_PREFIX}admitted", "Requests that had tokens", labels=("tier",)
        )
        refused = CounterMetricFamily(
            f"{METRICS_PREFIX}rate_limited", "Requests refused for lack of tokens", labels=("tier",)
        )
        callers = GaugeMetricFamily(f"{METRICS_PREFIX}callers", "Buckets that are kept", labels=("tier",))
        wrong = CounterMetricFamily(
            f"{METRICS_PREFIX}wrong_signatures", "Wrong signatures that were looked at", labels=("tier",)
        )
        unseen = CounterMetricFamily(
            f"{METRICS_PREFIX}signatures_refused",
            "Requests refused for wrong signatures of their caller before",
            labels=("tier",),
        )
        for family, numbers in (
            (admitted, statistics.admitted),
            (refused, statistics.refused),
            (callers, statistics.callers),
            (wrong, statistics.wrong_signatures),
            (unseen, statistics.signatures_refused),
        ):
            for tier, number in numbers.items():
                family.add_metric((tier,), number)
        unknown = CounterMetricFamily(f"{METRICS_PREFIX}unknown_keys", "Requests whose key is nobody's")
        unknown.add_metric((), statistics.unknown_keys)
        return admitted, refused, callers, wrong, unseen, unknown


class _LoopLag(Collector):
    def __init__(self, read: Callable[[], LagStatistics]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        statistics = self._read()
        worst = GaugeMetricFamily(f"{METRICS_PREFIX}loop_lag_max_seconds", "The worst since the start")
        worst.add_metric((), statistics.lag_s_max)
        tasks = GaugeMetricFamily(f"{METRICS_PREFIX}tasks", "Tasks of the event loop")
        tasks.add_metric((), statistics.tasks)
        histogram = _histogram(
            "loop_lag_seconds",
            "How late a task gets its turn",
            LAG_BOUNDS_S,
            statistics.counts,
            statistics.lag_s,
        )
        return worst, tasks, histogram


_FAMILIES: dict[str, FamilyType] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
}


def _number(statistics: Any, field: str) -> float:
    for name in field.split("."):
        statistics = getattr(statistics, name)
    return float(statistics)


def _histogram(
    name: str, help_text: str, bounds: Sequence[float], counts: Sequence[int], total: float
) -> Metric:
    """A family of a histogram whose counts are each of its own bound; the last is beyond all bounds."""
    family = HistogramMetricFamily(METRICS_PREFIX + name, help_text)
    so_far, buckets = 0, []
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        so_far += count
        buckets.append((bound, float(so_far)))
    family.add_metric((), buckets, total)
    return family
