"""What Prometheus is told of orders: Delta's, auctions, agents, settlements, relayers; shards and indexers.

Metrics shared with orders of other kinds keep the names that they had as Delta's alone.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from ..delta.engine import DeltaChainStatistics, DeltaStatistics
from ..orders.order_engines import OrderEnginesStatistics
from ..orders.order_units import DELTA
from .order_metrics import Families

_Of = list[tuple[tuple[str], DeltaChainStatistics]]

_FAMILIES = Families(DELTA.name)
_gauge, _counter = _FAMILIES.gauge, _FAMILIES.counter


class DeltaCollector(Collector):
    """The engine of a venue.

    Args:
        read: how it stands.
    """

    def __init__(self, read: Callable[[], DeltaStatistics]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The families, of one moment."""
        told = self._read()
        chains = [((name,), chain) for name, chain in told.chains.items()]
        yield _FAMILIES.orders({str(status): count for status, count in told.orders.orders.items()})
        yield from _auctions(chains)
        yield from _FAMILIES.funds([(at, chain.funds) for at, chain in chains])
        yield from _relayers(chains)


class FollowedCollector(Collector):
    """The shards whose orders are run, and the chains that are followed for them, of whatever kind they are.

    Args:
        read: how they stand.
    """

    def __init__(self, read: Callable[[], OrderEnginesStatistics]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The families, of one moment."""
        told = self._read()
        indexers = [((name,), indexer) for name, indexer in told.indexers.items()]
        yield _gauge("shards", "Shards of orders that this engine runs, of 256", [((), told.shards)])
        yield _gauge("engines", "Engines that share the shards", [((), told.engines)])
        yield _gauge(
            "indexed_block", "Height that the chain is read to",
            ((at, indexer.block_number) for at, indexer in indexers), "chain",
        )  # fmt: skip
        yield _counter(
            "reorganisations", "Times that blocks were taken back",
            ((at, indexer.reorganisations) for at, indexer in indexers), "chain",
        )  # fmt: skip


def _auctions(chains: _Of) -> Iterator[Metric]:
    yield _counter(
        "rounds", "Rounds of auctions", ((at, chain.auctions.rounds) for at, chain in chains), "chain"
    )
    yield _counter(
        "rounds_void", "Rounds that came to nothing",
        ((at, chain.auctions.void) for at, chain in chains), "chain",
    )  # fmt: skip
    yield _gauge(
        "orders_waiting", "Orders that wait for their next round",
        ((at, chain.auctions.waiting + chain.auctions.ready) for at, chain in chains), "chain",
    )  # fmt: skip
    yield _gauge(
        "orders_resting", "Limit orders that wait for their price, those that are auctioned among them",
        ((at, chain.resting.orders) for at, chain in chains), "chain",
    )  # fmt: skip
    yield _gauge(
        "resting_pairs", "End pairs that such orders, or market orders, are of",
        ((at, chain.resting.pairs) for at, chain in chains), "chain",
    )  # fmt: skip
    yield _counter(
        "resting_steps", "What was done about limit orders that wait for their price",
        (
            ((*at, what), getattr(chain.resting, what))
            for at, chain in chains
            for what in ("looks", "touched", "priced", "offered", "exhausted")
        ),
        "chain", "what",
    )  # fmt: skip
    agents = [((*at, agent), told) for at, chain in chains for agent, told in chain.auctions.agents.items()]
    yield _counter(
        "agent_questions", "Rounds that an agent was asked in",
        ((at, told.asked) for at, told in agents), "chain", "agent",
    )  # fmt: skip
    yield _counter(
        "agent_questions_failed", "Of them, those without an answer, by whose fault",
        (
            ((*at, why), count)
            for at, told in agents
            for why, count in (("agent", told.failed - told.unasked), ("venue", told.unasked))
        ),
        "chain", "agent", "whose",
    )  # fmt: skip
    yield _counter(
        "agent_notices", "What became of the notices to an agent",
        (
            ((*at, what), getattr(told, what))
            for at, told in agents
            for what in ("notified", "lost", "dropped")
        ),
        "chain", "agent", "what",
    )  # fmt: skip
    yield _gauge(
        "agent_notices_waiting", "Notices that are not sent yet",
        ((at, told.waiting) for at, told in agents), "chain", "agent",
    )  # fmt: skip
    yield _counter(
        "settlements", "Settlements that have ended",
        (
            ((*at, outcome), count)
            for at, chain in chains
            for outcome, count in (("settled", chain.settling.settled), ("failed", chain.settling.failed))
        ),
        "chain", "outcome",
    )  # fmt: skip
    yield _gauge(
        "settlements_under_way", "Settlements that have not ended",
        ((at, chain.settling.under_way) for at, chain in chains), "chain",
    )  # fmt: skip


def _relayers(chains: _Of) -> Iterator[Metric]:
    yield _counter(
        "relayer_transactions", "What became of a relayer's transactions",
        (((*at, what), count) for at, chain in chains for what, count in chain.relayer.counts.items()),
        "chain", "what",
    )  # fmt: skip
    for name, help_text in (
        ("holds", "1 while this engine relays for the chain"),
        ("waiting", "Intents without a transaction"),
        ("pending", "Nonces that wait to be mined"),
        ("stuck", "Of them, those that are to be replaced"),
        ("at_cap", "What would have to cost more than the cap"),
        ("starved", "1 while the account has too little"),
        ("balance_wei", "Of the account"),
    ):
        yield _gauge(
            f"relayer_{name}", help_text,
            ((at, float(getattr(chain.relayer, name))) for at, chain in chains), "chain",
        )  # fmt: skip
