"""Metrics of Delta and OTC orders, auctions, agents, settlements, relayers, shards and indexers. Pure.

Metrics of shards and indexers, which Delta and OTC orders share, have names that start with `cambist_delta_`.
"""

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import Metric

from ...trade.delta.bridge_desk import BridgeChainStatistics
from ...trade.delta.engine import DeltaChainStatistics, DeltaStatistics
from ...trade.orders.accounts_watch import FundsStatistics
from ...trade.orders.live_rows import LiveRowsStatistics
from ...trade.orders.order_engines import OrderEnginesStatistics
from ...trade.orders.order_units import DELTA, OTC
from ...trade.otc.engine import OtcStatistics
from .families import Numbers, counter, durations_of, gauge

_Of = list[tuple[tuple[str], DeltaChainStatistics]]


def delta_families(statistics: DeltaStatistics) -> Iterator[Metric]:
    """Yield metrics of Delta orders: counts by status, reads of owners' funds, auctions, and relayers."""
    chains = [((name,), chain) for name, chain in statistics.chains.items()]
    yield from _orders(DELTA.name, statistics.orders)
    yield from _auctions(chains)
    yield durations_of(
        "delta_round_seconds", "Time from a round's opening to the choice of its settlements, seconds",
        ((at, chain.auctions.durations) for at, chain in chains), "chain",
    )  # fmt: skip
    yield from _funds(DELTA.name, [(at, chain.funds) for at, chain in chains])
    yield from _relayers(chains)
    yield from _bridges(statistics.bridges)


def otc_families(statistics: OtcStatistics) -> Iterator[Metric]:
    """Yield metrics of OTC orders: counts by status, reads of makers' funds, and unsigned drafts.

    A draft is an order that waits for the signature of its maker's contract.
    """
    yield from _orders(OTC.name, statistics.orders)
    yield from _funds(OTC.name, [((name,), chain.funds) for name, chain in statistics.chains.items()])
    drafts = [((name,), chain.drafts) for name, chain in statistics.chains.items()]
    yield gauge(
        "otc_drafts", "Orders that wait for the signature of their maker's contract",
        ((at, counts.waiting) for at, counts in drafts), "chain",
    )  # fmt: skip
    yield counter(
        "otc_draft_questions", "Calls of makers' contracts for their signatures",
        ((at, counts.asked) for at, counts in drafts), "chain",
    )  # fmt: skip
    yield counter(
        "otc_drafts_signed", "Orders whose signature was accepted",
        ((at, counts.signed) for at, counts in drafts), "chain",
    )  # fmt: skip
    yield counter(
        "otc_drafts_failed", "Failed looks at drafts",
        ((at, counts.failed) for at, counts in drafts), "chain",
    )  # fmt: skip


def engine_families(statistics: OrderEnginesStatistics) -> Iterator[Metric]:
    """Yield metrics of an order engine: the shards of orders that it runs, and the chains that it reads.

    A shard is one of 256 parts of all orders.
    """
    indexers = [((name,), indexer) for name, indexer in statistics.indexers.items()]
    yield _gauge("shards", "Shards of orders that this engine runs, of 256", [((), statistics.shards)])
    yield _gauge("engines", "Engines that share the shards", [((), statistics.engines)])
    yield _gauge(
        "indexed_block", "Height to which the chain is read",
        ((at, indexer.block_number) for at, indexer in indexers), "chain",
    )  # fmt: skip
    yield _counter(
        "reorganisations", "Re-organisations that undid blocks",
        ((at, indexer.reorganisations) for at, indexer in indexers), "chain",
    )  # fmt: skip


def _orders(kind: str, statistics: LiveRowsStatistics) -> Iterator[Metric]:
    numbers = (((str(status),), count) for status, count in statistics.orders.items())
    yield gauge(f"{kind}_orders", "Orders that may still change", numbers, "status")
    yield counter(
        f"{kind}_orders_gave_way", "Orders that gave their places to others", [((), statistics.gave_way)]
    )


def _funds(kind: str, chains: Sequence[tuple[tuple[str], FundsStatistics]]) -> Iterator[Metric]:
    for make, name, help_text in (
        (gauge, "accounts", "Followed accounts and deposits of live orders"),
        (gauge, "waiting", "Followed accounts that wait to be read"),
        (counter, "read", "Reads of accounts"),
        (counter, "failed", "Failed reads of accounts"),
        (counter, "suspended", "Orders that were suspended"),
        (counter, "restored", "Orders whose funds came back"),
    ):
        numbers = ((at, float(getattr(funds, name))) for at, funds in chains)
        yield make(f"{kind}_funds_{name}", help_text, numbers, "chain")


def _auctions(chains: _Of) -> Iterator[Metric]:
    yield _counter(
        "rounds", "Rounds of auctions", ((at, chain.auctions.rounds) for at, chain in chains), "chain"
    )
    yield _counter(
        "rounds_void", "Rounds without a result",
        ((at, chain.auctions.void) for at, chain in chains), "chain",
    )  # fmt: skip
    yield _gauge(
        "orders_waiting", "Orders that wait for their next round",
        ((at, chain.auctions.waiting + chain.auctions.ready) for at, chain in chains), "chain",
    )  # fmt: skip
    yield _gauge(
        "orders_resting", "Limit orders that wait for their price, auctioned orders included",
        ((at, chain.resting.orders) for at, chain in chains), "chain",
    )  # fmt: skip
    yield _gauge(
        "resting_pairs", "End pairs of resting orders and of market orders",
        ((at, chain.resting.pairs) for at, chain in chains), "chain",
    )  # fmt: skip
    yield _counter(
        "resting_steps", "Acts on limit orders that wait for their price",
        (
            ((*at, what), getattr(chain.resting, what))
            for at, chain in chains
            for what in ("looks", "touched", "priced", "offered", "exhausted")
        ),
        "chain", "what",
    )  # fmt: skip
    agents = [
        ((*at, agent), counts) for at, chain in chains for agent, counts in chain.auctions.agents.items()
    ]
    yield _counter(
        "agent_questions", "Rounds in which the venue asked an agent",
        ((at, counts.asked) for at, counts in agents), "chain", "agent",
    )  # fmt: skip
    # `failed` includes the `unasked` rounds, for which the venue had no free connection.
    yield _counter(
        "agent_questions_failed", "Rounds without the agent's answer, by the party at fault",
        (
            ((*at, why), count)
            for at, counts in agents
            for why, count in (("agent", counts.failed - counts.unasked), ("venue", counts.unasked))
        ),
        "chain", "agent", "whose",
    )  # fmt: skip
    yield _counter(
        "agent_notices", "Notices to an agent by outcome",
        (
            ((*at, what), getattr(counts, what))
            for at, counts in agents
            for what in ("notified", "lost", "dropped")
        ),
        "chain", "agent", "what",
    )  # fmt: skip
    yield _gauge(
        "agent_notices_waiting", "Notices that are not sent yet",
        ((at, counts.waiting) for at, counts in agents), "chain", "agent",
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
        "relayer_transactions", "Transactions of a relayer by outcome",
        (((*at, what), count) for at, chain in chains for what, count in chain.relayer.counts.items()),
        "chain", "what",
    )  # fmt: skip
    for name, help_text in (
        ("holds", "1 while this engine relays for the chain"),
        ("waiting", "Intents without a transaction"),
        ("pending", "Nonces that wait to be mined"),
        ("stuck", "Nonces whose transaction is to be replaced"),
        ("at_cap", "Intents whose transaction would cost more than the cap"),
        ("starved", "1 while the account has too little"),
        ("balance_wei", "Balance of the account, wei"),
    ):
        yield _gauge(
            f"relayer_{name}", help_text,
            ((at, float(getattr(chain.relayer, name))) for at, chain in chains), "chain",
        )  # fmt: skip


def _bridges(chains: Mapping[str, BridgeChainStatistics]) -> Iterator[Metric]:
    # Deliveries are counted on their destination chain, refunds on their origin.
    to = [(chain_id, chain.deliveries) for chain_id, chain in chains.items()]
    back = [(chain_id, chain.refunds) for chain_id, chain in chains.items()]
    under_way = [((at, name), count) for at, deliveries in to for name, count in deliveries.under_way.items()]
    yield _gauge(
        "bridge_transfers", "Bridge transfers under way to the chain",
        ((at, count) for at, (count, _) in under_way), "chain", "protocol",
    )  # fmt: skip
    yield _gauge(
        "bridge_oldest_seconds", "Age of the oldest bridge transfer under way to the chain",
        ((at, oldest_ms / 1_000) for at, (_, oldest_ms) in under_way), "chain", "protocol",
    )  # fmt: skip
    yield _gauge(
        "bridge_refunds_due", "Failed bridge transfers from the chain that are not refunded",
        (((at,), refunds.owed) for at, refunds in back), "chain",
    )  # fmt: skip
    yield _gauge(
        "bridge_refunds_oldest_seconds", "Age of the oldest failure without a refund",
        (((at,), refunds.oldest_ms / 1_000) for at, refunds in back), "chain",
    )  # fmt: skip
    late = [((at, "delivery"), deliveries.late) for at, deliveries in to] + [
        ((at, "refund"), refunds.late) for at, refunds in back
    ]
    yield _gauge(
        "bridge_late", "Deliveries to and refunds on the chain that are later than their bound",
        late, "chain", "what",
    )  # fmt: skip
    held_up = [((at, "delivery"), deliveries.fault) for at, deliveries in to] + [
        ((at, "refund"), refunds.fault) for at, refunds in back
    ]
    yield _gauge(
        "bridge_held_up", "1 while the chain or the store cannot be asked about bridge transfers",
        ((at, float(bool(fault))) for at, fault in held_up), "chain", "what",
    )  # fmt: skip
    yield _counter(
        "bridge_ends", "Bridge transfers by what became of them",
        [
            *(((at, what), getattr(deliveries, what)) for at, deliveries in to
              for what in ("delivered", "failed", "odd")),
            *(((at, "refunded"), refunds.refunded) for at, refunds in back),
            *(((at, "undone"), deliveries.gone) for at, deliveries in to),
        ],
        "chain", "what",
    )  # fmt: skip
    yield _counter(
        "bridge_messages", "CCTP messages attested and handed in, and failed requests for attestations",
        (
            ((chain_id, what), getattr(chain.courier, what))
            for chain_id, chain in chains.items()
            for what in ("attested", "handed_in", "failed")
            if chain.courier is not None
        ),
        "chain", "what",
    )  # fmt: skip
    yield _gauge(
        "bridge_arrivals", "Deliveries by bridges that wait for their swap on the chain",
        (((at,), chain.swapper.waiting) for at, chain in chains.items() if chain.swapper is not None),
        "chain",
    )  # fmt: skip
    yield _counter(
        "bridge_swaps", "Swaps and pay-outs of deliveries handed to the relayer, and tries without one",
        (
            ((chain_id, what), getattr(chain.swapper, what))
            for chain_id, chain in chains.items()
            for what in ("swaps", "pay_outs", "failed")
            if chain.swapper is not None
        ),
        "chain", "what",
    )  # fmt: skip


def _gauge(name: str, help_text: str, numbers: Numbers, *labels: str) -> Metric:
    return gauge(f"{DELTA.name}_{name}", help_text, numbers, *labels)


def _counter(name: str, help_text: str, numbers: Numbers, *labels: str) -> Metric:
    return counter(f"{DELTA.name}_{name}", help_text, numbers, *labels)
