"""What Prometheus is told of OTC orders: how many there are, their makers' funds, and drafts."""

from collections.abc import Callable, Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from ..orders.order_units import OTC
from ..otc.engine import OtcStatistics
from .order_metrics import Families

_FAMILIES = Families(OTC.name)


class OtcCollector(Collector):
    """The engine of a venue.

    Args:
        read: how it stands.
    """

    def __init__(self, read: Callable[[], OtcStatistics]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The families, of one moment."""
        told = self._read()
        yield _FAMILIES.orders({str(status): count for status, count in told.orders.orders.items()})
        yield from _FAMILIES.funds([((name,), chain.funds) for name, chain in told.chains.items()])
        drafts = [((name,), chain.drafts) for name, chain in told.chains.items()]
        yield _FAMILIES.gauge(
            "drafts", "Orders that wait for the signature of their maker's contract",
            ((at, one.waiting) for at, one in drafts), "chain",
        )  # fmt: skip
        yield _FAMILIES.counter(
            "draft_questions", "Questions to makers' contracts whether they have signed",
            ((at, one.asked) for at, one in drafts), "chain",
        )  # fmt: skip
        yield _FAMILIES.counter(
            "drafts_signed", "Orders whose signature was accepted",
            ((at, one.signed) for at, one in drafts), "chain",
        )  # fmt: skip
        yield _FAMILIES.counter(
            "drafts_failed", "Looks at drafts that came to nothing",
            ((at, one.failed) for at, one in drafts), "chain",
        )  # fmt: skip
