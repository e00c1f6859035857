"""Metrics registry of one process, which reads the counters of each part when Prometheus asks.

    metrics.add(server_families, server.statistics)      families of a part's statistics, at each request
    metrics.add(admission_families, admission.statistics)

A part counts in plain integers and shows them as statistics; a pure function makes families of them. A metric
costs nothing until Prometheus asks for it.

Source: ARCHITECTURE.md, "Telemetry"; Prometheus text exposition format.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar, cast

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from ....feeds.durations import Durations
from ...host.admission.admission import AdmissionStatistics
from ...host.server.exchange import Counters
from ...host.server.listener import Server
from ...store.store import COMMIT_BOUNDS_S, StoreStatistics
from .families import MetricRow, counter, durations_of, families_of, gauge, histogram
from .loop_lag import LagStatistics, LoopLag

CONTENT_TYPE = CONTENT_TYPE_LATEST.encode()

Statistics = TypeVar("Statistics")

SERVER = (
    MetricRow("connections", "gauge", "Open connections"),
    MetricRow("accepted", "counter", "Connections accepted"),
    MetricRow("refused", "counter", "Connections refused for being too many"),
    MetricRow("refused_by_address", "counter", "Connections refused because their own address had too many"),
    MetricRow("promoted", "counter", "Connections that left the reactor for a task"),
    MetricRow("requests", "counter", "Requests answered, of any status"),
    MetricRow("faults", "counter", "Answers to malformed requests"),
    MetricRow("errors", "counter", "Answers with status 500"),
    MetricRow("refusals", "counter", "Answers with a status of 400 to 499"),
    MetricRow("failures", "counter", "Answers with a status of 500 to 599"),
    MetricRow("cut_off", "counter", "Connections dropped because the client took too long to read"),
    MetricRow("broken", "counter", "Connections that ended in a reset"),
    MetricRow("log_dropped", "counter", "Lines that did not fit into the access log's queue"),
)
STORE = (
    MetricRow("batcher.queued", "gauge", "Writes in the queue"),
    MetricRow("batcher.in_flight", "gauge", "Writes of the batch in flight"),
    MetricRow("batcher.units", "counter", "Writes settled"),
    MetricRow("batcher.batches", "counter", "Batches settled"),
    MetricRow("batcher.full", "counter", "Writes refused because too many waited"),
    MetricRow("batcher.unavailable", "counter", "Writes that ended without an outcome"),
)


class Metrics:
    """All Prometheus metrics of a process, including the operating system's figures about it."""

    def __init__(self) -> None:
        self._reads: list[Callable[[], Iterable[Metric]]] = [ProcessCollector(registry=None).collect]

    def render(self) -> Iterator[bytes]:
        """Yield the Prometheus exposition text, one metric family at a time.

        A caller can let other tasks run in between.
        """
        for read in self._reads:
            for family in read():
                yield generate_latest(cast("CollectorRegistry", _One(family)))

    def add(self, families: Callable[[Statistics], Iterable[Metric]], read: Callable[[], Statistics]) -> None:
        """Register the metrics of one part of the application, such as the HTTP server or the store.

        Args:
            families: converts the part's statistics to metric families.
            read: returns the part's current statistics.
        """
        self._reads.append(lambda: families(read()))

    def add_process(self, server: Server, lag: LoopLag) -> None:
        """Register the metrics that processes of all roles have: of the HTTP server and of the event loop."""
        self.add(server_families, server.statistics)
        self.add(route_families, server.durations)
        self.add(loop_lag_families, lag.statistics)


class _One(Collector):
    """Registry of a single metric family, in the form that prometheus_client's `generate_latest` takes."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


def server_families(statistics: Counters) -> Iterator[Metric]:
    """Yield the HTTP server's counters (connections, requests, errors) as metric families."""
    return families_of("server", SERVER, statistics)


def route_families(durations: Mapping[str, Durations]) -> Iterator[Metric]:
    """Yield the durations of the HTTP server's answers by route as a metric family."""
    rows = (((route,), found) for route, found in durations.items())
    yield durations_of("request_seconds", "Time from a request to its answer, seconds", rows, "route")


def store_families(statistics: StoreStatistics) -> Iterator[Metric]:
    """Yield the store's counters and its histogram of commit times as metric families."""
    yield from families_of("store", STORE, statistics)
    yield gauge("store_away", "1 while the store takes nothing", [((), int(bool(statistics.away)))])
    yield histogram(
        "store_commit_seconds",
        "Commits by duration, seconds",
        COMMIT_BOUNDS_S,
        [((), statistics.commits, statistics.commit_s)],
    )


def admission_families(statistics: AdmissionStatistics) -> Iterator[Metric]:
    """Yield metrics of the rate limits by tier: requests admitted and refused, callers, wrong signatures.

    A tier is a rate limit that several callers have in common.
    """
    for make, name, help_text, numbers in (
        (counter, "admitted", "Requests paid from a bucket", statistics.admitted),
        (counter, "rate_limited", "Requests refused for lack of tokens", statistics.refused),
        (gauge, "callers", "Stored buckets", statistics.callers),
        (
            counter,
            "wrong_signatures",
            "Wrong signatures that the venue checked",
            statistics.wrong_signatures,
        ),
        (
            counter,
            "signatures_refused",
            "Requests refused unread after too many wrong signatures of their caller",
            statistics.signatures_refused,
        ),
    ):
        yield make(name, help_text, (((tier,), number) for tier, number in numbers.items()), "tier")
    yield counter("unknown_keys", "Requests with an unknown API key", [((), statistics.unknown_keys)])


def loop_lag_families(statistics: LagStatistics) -> Iterator[Metric]:
    """Yield the event loop's delay, as a histogram, and its number of tasks as metric families."""
    yield gauge(
        "loop_lag_max_seconds", "Longest delay of a task since the start", [((), statistics.lag_s_max)]
    )
    yield gauge("tasks", "Tasks of the event loop", [((), statistics.tasks)])
    yield durations_of("loop_lag_seconds", "Delay until a ready task runs", [((), statistics.delays)])
