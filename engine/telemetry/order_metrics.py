"""Families of metrics of one kind of orders, and those that every kind has.

families = Families("otc")
families.gauge("drafts", "...", [(("1",), 3)], "chain")        cambist_otc_drafts{chain="1"} 3
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ..orders.accounts_watch import FundsStatistics
from .metrics import METRICS_PREFIX

Numbers = Iterable[tuple[tuple[str, ...], float]]
"""(values of the labels, number)."""


class Families:
    """Those of one kind of orders.

    Args:
        surface: the kind; the names begin with it.
    """

    def __init__(self, surface: str) -> None:
        self._prefix = f"{METRICS_PREFIX}{surface}_"

    def gauge(self, name: str, help_text: str, numbers: Numbers, *labels: str) -> GaugeMetricFamily:
        """What is so now."""
        family = GaugeMetricFamily(f"{self._prefix}{name}", help_text, labels=labels)
        for values, number in numbers:
            family.add_metric(values, number)
        return family

    def counter(self, name: str, help_text: str, numbers: Numbers, *labels: str) -> CounterMetricFamily:
        """What has happened so far."""
        family = CounterMetricFamily(f"{self._prefix}{name}", help_text, labels=labels)
        for values, number in numbers:
            family.add_metric(values, number)
        return family

    def orders(self, by_status: Mapping[str, int]) -> Metric:
        """How many are in memory."""
        numbers = (((str(status),), count) for status, count in by_status.items())
        return self.gauge("orders", "Orders that may still change", numbers, "status")

    def funds(self, chains: Sequence[tuple[tuple[str], FundsStatistics]]) -> Iterator[Metric]:
        """What is followed of accounts, by chain."""
        for name, help_text in (
            ("accounts", "Accounts and deposits of live orders that are followed"),
            ("waiting", "Of them, those that are to be read"),
        ):
            yield self.gauge(f"funds_{name}", help_text, _each(chains, name), "chain")
        for name, help_text in (
            ("read", "Accounts that were read, each time counted"),
            ("failed", "Reads of accounts that came to nothing"),
            ("suspended", "Orders that were suspended"),
            ("restored", "Orders whose funds came back"),
        ):
            yield self.counter(f"funds_{name}", help_text, _each(chains, name), "chain")


def _each(chains: Sequence[tuple[tuple[str], FundsStatistics]], name: str) -> Numbers:
    return ((at, float(getattr(told, name))) for at, told in chains)
