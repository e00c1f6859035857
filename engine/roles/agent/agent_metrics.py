"""Metrics of an agent: rounds, bids, faults of strategies, and notices of the venue. Pure."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from ..telemetry.families import MetricRow, counter, families_of, gauge
from .solver import SolverStatistics

_ROWS = (
    MetricRow("rounds", "counter", "Auction rounds that the venue asked about"),
    MetricRow("orders", "counter", "Orders of these rounds"),
    MetricRow("bids", "counter", "Bids that the agent sent"),
    MetricRow("late", "counter", "Rounds that arrived too late"),
)


def agent_families(statistics: SolverStatistics) -> Iterator[Metric]:
    """Yield the counters of an agent's solver as metric families."""
    yield from families_of("agent", _ROWS, statistics)
    yield counter(
        "agent_strategy_faults",
        "Failures of a strategy",
        (((name,), number) for name, number in statistics.faults.items()),
        "strategy",
    )
    yield counter(
        "agent_notices",
        "Notices of the venue by kind",
        (((kind,), number) for kind, number in statistics.notices.items()),
        "notice",
    )


def agent_readiness(reasons: list[str]) -> Iterator[Metric]:
    """Yield the gauge of the agent's readiness: 1 if `reasons`, its chains' faults, is empty, else 0."""
    yield gauge("agent_ready", "1 while /readyz answers 200", [((), int(not reasons))])
