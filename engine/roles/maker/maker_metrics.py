"""Metrics of a market maker: readiness, firm quotes, prices and funds. Pure.

Amounts are whole tokens, rounded to the precision of a float: they are for charts and alarms alone.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from prometheus_client.core import Metric

from ..telemetry.families import counter, gauge
from .feed import Feed
from .role import ChainRole

_CHAIN = "chain"


class MakerReading(Struct, frozen=True):
    """A maker's parts at the time of a request for its metrics.

    Attributes:
        reasons: reasons why the maker would refuse firm quotes; empty while it is ready.
        roles, feeds: objects of each chain, by chain id.
        now_ms: wall clock, Unix milliseconds.
    """

    reasons: tuple[str, ...]
    roles: Mapping[int, ChainRole]
    feeds: Mapping[int, Feed]
    now_ms: int


def maker_families(reading: MakerReading) -> Iterator[Metric]:
    """Yield the metrics of a maker's chains as families."""
    chains = [((str(chain_id),), role) for chain_id, role in reading.roles.items()]
    feeds = [((str(chain_id),), feed) for chain_id, feed in reading.feeds.items()]
    yield gauge("maker_ready", "1 while /readyz answers 200", [((), int(not reading.reasons))])
    yield gauge(
        "maker_halted",
        "1 while the kill switch stops the chain",
        ((chain, int(role.desk.halted)) for chain, role in chains),
        _CHAIN,
    )
    yield counter(
        "maker_quotes",
        "Requests for firm quotes by outcome",
        (
            ((*chain, outcome), number)
            for chain, role in chains
            for outcome, number in (
                ("signed", role.desk.signed),
                ("refused", role.desk.refused),
                ("blacklisted", role.desk.blacklisted),
            )
        ),
        _CHAIN,
        "outcome",
    )
    yield gauge(
        "maker_live_quotes",
        "Firm quotes that may still be filled",
        ((chain, len(role.desk.ledger)) for chain, role in chains),
        _CHAIN,
    )
    yield gauge(
        "maker_consumers",
        "Open WebSockets to which prices are pushed",
        ((chain, len(role.broadcast)) for chain, role in chains),
        _CHAIN,
    )
    yield counter(
        "maker_prices",
        "Grids of the price source by outcome",
        (
            ((*chain, outcome), number)
            for chain, feed in feeds
            for outcome, number in (("taken", feed.updates), ("refused", feed.refused))
        ),
        _CHAIN,
        "outcome",
    )
    yield counter(
        "maker_source_restarts",
        "Restarts of the price source",
        ((chain, feed.restarts) for chain, feed in feeds),
        _CHAIN,
    )
    yield gauge(
        "maker_pair_fresh",
        "1 while the pair has a price that is not too old",
        (
            ((*chain, pair_id), int(pair.book is not None and not role.board.is_stale(pair, reading.now_ms)))
            for chain, role in chains
            for pair_id, pair in role.board.pairs.items()
        ),
        _CHAIN,
        "pair",
    )
    for name, help_text, member in (
        ("maker_funds", "Tokens that quotes may promise", "funds"),
        ("maker_reserved", "Tokens that live quotes can still take", "reserved"),
    ):
        yield gauge(name, help_text, list(_funds(chains, member)), _CHAIN, "token")


def _funds(
    chains: list[tuple[tuple[str], ChainRole]], member: str
) -> Iterator[tuple[tuple[str, str], float]]:
    for (chain,), role in chains:
        tokens = {
            bytes.fromhex(token.address[2:]): (name, token.decimals)
            for name, token in role.settings.tokens.items()
        }
        for holding in role.holdings:
            name, decimals = tokens[holding.token]
            yield (chain, name), getattr(holding, member) / 10**decimals
