"""GET /makers/books: the makers' pairs as the venue sees them, with standing, age and prices.

    every client                             number of pairs by standing, age, reasons that withhold a maker
    a maker, by its own credentials          also its pairs: standing, reason, best prices, levels of one
    an operator's key, or on this machine    also the pairs of all makers

Pairs are shown only if the query names their maker, and levels only of the pair that the query names.

Choice: A maker's ladders are a secret between maker and venue: quotes show only the sums of levels.
"""

from collections.abc import Iterator
from functools import partial

from msgspec import UnsetType

from ....codecs.messages.maker_messages import Level, PriceGrid
from ....codecs.messages.resource_messages import (
    MakerBooks,
    MakerBooksQuery,
    ViewedPair,
    decode_maker_books_query,
)
from ....codecs.messages.wire import encode
from ....crypto.addresses import to_checksum
from ....feeds.maker_cache import MakerCache
from ....feeds.standing import PairReport
from ...host.server.routing import HttpCall, Reply
from ..api.chain_parameter import network_of
from ..api.routes import Endpoint
from ..served.served_chain import ServedChain, ServedChains, served_chain_at
from .maker_scores import MakerSecrets


class MakerBookShelf:
    """HTTP endpoint GET /makers/books, which shows makers' pairs with their standing, age and prices.

    Args:
        chains: served chains by chain id.
        makers: decides which makers' pairs a caller may see.
    """

    def __init__(self, chains: ServedChains, makers: MakerSecrets) -> None:
        self._chains = chains
        self._secrets = makers

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoint GET /makers/books, as a row of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/makers/books",
                coroutine=self._books,
                group="Resources",
                summary="The makers' pairs as the venue sees them: standing, age, prices",
                detail="Pairs of the named maker, for itself, operators and this machine; levels of one.",
                query=MakerBooksQuery,
                answer=tuple[MakerBooks, ...],
            ),
        )

    async def _books(self, call: HttpCall) -> Reply:
        query = decode_maker_books_query(call.request.query or b"")
        network = network_of(query)
        chains = (
            self._chains.values() if network is None else (served_chain_at(self._chains, network, "network"),)
        )
        shown = self._secrets.shown(call)
        return Reply(200, encode([books for served in chains for books in _books_of(served, query, shown)]))


def _books_of(served: ServedChain, query: MakerBooksQuery, shown: frozenset[str]) -> Iterator[MakerBooks]:
    """Yield the books of a chain's makers, or of the maker that the query names.

    Args:
        shown: makers whose pairs the caller may see.
    """
    for name, feed in sorted(served.feeds.items()):
        if query.maker_name in (None, name):
            is_shown = query.maker_name == name and name in shown
            pairs = tuple(map(partial(_pair, query.pair), feed.cache.report())) if is_shown else None
            yield _books(served.chain_id, feed.cache, pairs)


def _books(network: int, cache: MakerCache, pairs: tuple[ViewedPair, ...] | None) -> MakerBooks:
    now = cache.statistics()
    return MakerBooks(
        network=network,
        maker=cache.maker,
        withheld=now.withheld,
        updated=now.updated_ms or None,
        standings={str(standing): count for standing, count in now.pairs.items()},
        pairs=pairs,
    )


def _pair(wanted: str | None, report: PairReport) -> ViewedPair:
    """Convert the report on a pair to the pair's entry in the answer.

    Args:
        wanted: id of the only pair whose levels are shown; None for no levels.
    """
    grid = report.grid or PriceGrid()
    bids, asks = _levels(grid.bids), _levels(grid.asks)
    is_wanted = report.pair_id == wanted
    return ViewedPair(
        pair=report.pair_id,
        base=to_checksum(report.base) if report.base else None,
        quote=to_checksum(report.quote) if report.quote else None,
        standing=report.standing,
        reason=report.reason,
        confirmed=report.confirmed_ms or None,
        best_bid=bids[0][0] if bids else None,
        best_ask=asks[0][0] if asks else None,
        bids=bids if is_wanted else None,
        asks=asks if is_wanted else None,
    )


def _levels(side: "tuple[Level, ...] | UnsetType") -> tuple[Level, ...]:
    return () if isinstance(side, UnsetType) else side
