"""A maker's market as the venue reads it, and the amount that a firm quote should compute from it.

A request fixes one of its two amounts; the maker computes the other amount by walking one side of the grid.
A pair thus has four legs:

    leg          the user      fixed amount   side   the walk counts   computed amount
    sell-base    gives base    takerAmount    bids   base              quote received, rounded down
    buy-quote    gets quote    makerAmount    bids   quote             base paid, rounded up
    buy-base     gets base     makerAmount    asks   base              quote paid, rounded up
    sell-quote   gives quote   takerAmount    asks   quote             base received, rounded down

Prices move: the harness fetches the grids just before and just after a quote. Each of the two grids gives an
amount; the harness measures the quote's deviation from the range between these amounts.

Source: spec 3.8; feeds.books.book and feeds.books.fill.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

from msgspec import Struct

from .....codecs.amounts import POWERS_OF_TEN
from .....codecs.messages.maker_messages import (
    Pair,
    PriceGrid,
    Token,
    decode_pairs,
    decode_prices,
    decode_tokens,
)
from .....codecs.rounding import div_down
from .....config.errors import InvalidInput
from .....config.limits import BPS_ONE
from .....crypto.addresses import parse_address
from .....feeds.books.book import Ladder, build_ladder
from .....feeds.books.fill import base_paid, base_received, quote_paid, quote_received
from ..exchange import HttpExchange

ROUNDING_UNITS = 3  # interop.md section 4: inverted amounts are "off by a few units"


class GridLeg(Struct, frozen=True):
    """A way to trade a pair: a side of the price grid, and the amount that the quote request fixes.

    Attributes:
        name: `sell-base`, `buy-quote`, `buy-base` or `sell-quote`, as the user sees the trade.
        side: `bids` or `asks`.
        given: JSON key of the fixed amount: `takerAmount` or `makerAmount`.
        walk: (ladder, fixed amount) -> the computed amount, None beyond the ladder's depth; raw units.
        maker_gives_quote: whether the maker's asset is the quote token.
        given_in_quote: whether the fixed amount is in units of the quote token.
        user_receives: whether the user receives the computed amount; otherwise the user pays it.
    """

    name: str
    side: str
    given: str
    walk: Callable[[Ladder, int], int | None]
    maker_gives_quote: bool
    given_in_quote: bool
    user_receives: bool

    @property
    def computed(self) -> str:
        """JSON key of the amount that the maker computes: `makerAmount` or `takerAmount`."""
        return "makerAmount" if self.given == "takerAmount" else "takerAmount"

    def depth(self, ladder: Ladder) -> int:
        """Return the largest fixed amount that all levels of the ladder hold, in raw units."""
        if self.given_in_quote:
            return div_down(ladder.quote_before[-1], POWERS_OF_TEN[ladder.quote_scale])
        return ladder.base_before[-1]

    def first_level(self, ladder: Ladder) -> int:
        """Return the largest fixed amount that the first level of the ladder holds, in raw units."""
        if self.given_in_quote:
            return div_down(ladder.quote_before[1], POWERS_OF_TEN[ladder.quote_scale])
        return ladder.base_before[1]


LEGS = (
    GridLeg(
        name="sell-base",
        side="bids",
        given="takerAmount",
        walk=quote_received,
        maker_gives_quote=True,
        given_in_quote=False,
        user_receives=True,
    ),
    GridLeg(
        name="buy-quote",
        side="bids",
        given="makerAmount",
        walk=base_paid,
        maker_gives_quote=True,
        given_in_quote=True,
        user_receives=False,
    ),
    GridLeg(
        name="buy-base",
        side="asks",
        given="makerAmount",
        walk=quote_paid,
        maker_gives_quote=False,
        given_in_quote=False,
        user_receives=False,
    ),
    GridLeg(
        name="sell-quote",
        side="asks",
        given="takerAmount",
        walk=base_received,
        maker_gives_quote=False,
        given_in_quote=True,
        user_receives=True,
    ),
)


class UsableBook(Struct, frozen=True):
    """Both sides of a maker's book for a pair; None for a side that is absent, empty or malformed."""

    bids: Ladder | None
    asks: Ladder | None

    def side(self, leg: GridLeg) -> Ladder | None:
        """Side of the book, bids or asks, on which a leg trades; None if it is absent, empty or malformed."""
        return self.bids if leg.side == "bids" else self.asks


class MakerMarket(Struct, frozen=True):
    """The valid entries of a maker's /tokens, /pairs and /prices, with books built from them.

    Attributes:
        tokens, pairs: entries by id.
        books: pair id -> book, for the first pairs of /pairs that have a usable side, up to a limit.
        grids: price grids of /prices, by pair id.
    """

    tokens: Mapping[str, Token]
    pairs: Mapping[str, Pair]
    books: Mapping[str, UsableBook]
    grids: Mapping[str, PriceGrid]

    def assets(self, pair_id: str, leg: GridLeg) -> tuple[str, str]:
        """Return the token addresses (makerAsset, takerAsset) of a quote on a leg, lower-case hexadecimal."""
        pair = self.pairs[pair_id]
        base, quote = (self.tokens[token].address.lower() for token in (pair.base, pair.quote))
        return (quote, base) if leg.maker_gives_quote else (base, quote)

    def ladder(self, pair_id: str, leg: GridLeg) -> Ladder | None:
        """Side of a pair's book, bids or asks, on which a leg trades; None if the pair has no such side."""
        book = self.books.get(pair_id)
        return None if book is None else book.side(leg)

    def legs(self) -> list[tuple[str, GridLeg, Ladder]]:
        """List every (pair id, leg, ladder) whose side of the book has valid levels, pair by pair."""
        return [
            (pair_id, leg, ladder)
            for pair_id, book in self.books.items()
            for leg in LEGS
            if (ladder := book.side(leg)) is not None
        ]

    def silent_legs(self) -> list[tuple[str, GridLeg]]:
        """List every (pair id, leg) whose side of the price grid is empty; the maker must not quote it."""
        return [
            (pair_id, leg)
            for pair_id, grid in self.grids.items()
            if self._is_known(pair_id)
            for leg in LEGS
            if not getattr(grid, leg.side)
        ]

    def is_disabled(self, pair_id: str) -> bool:
        """Whether a pair is disabled, i.e. neither side of its price grid has a level."""
        grid = self.grids[pair_id]
        return not grid.bids and not grid.asks

    def _is_known(self, pair_id: str) -> bool:
        pair = self.pairs.get(pair_id)
        return pair is not None and pair.base in self.tokens and pair.quote in self.tokens


def read_tokens(exchange: HttpExchange) -> Mapping[str, Token]:
    """Parse the valid entries of a GET /tokens answer, by token id; drop entries that are invalid."""
    found: Mapping[str, Token] = getattr(_decoded(decode_tokens, exchange), "tokens", {})
    return {token_id: token for token_id, token in found.items() if _has_address(token)}


def read_pairs(exchange: HttpExchange) -> Mapping[str, Pair]:
    """Parse the valid entries of a GET /pairs answer, by pair id; drop entries that are invalid."""
    found: Mapping[str, Pair] = getattr(_decoded(decode_pairs, exchange), "pairs", {})
    return found


def read_grids(exchange: HttpExchange) -> Mapping[str, PriceGrid]:
    """Parse the valid price grids of a GET /prices answer, by pair id; drop grids that are invalid."""
    found: Mapping[str, PriceGrid] = getattr(_decoded(decode_prices, exchange), "prices", {})
    return found


def market_of(
    tokens: Mapping[str, Token], pairs: Mapping[str, Pair], grids: Mapping[str, PriceGrid], books_max: int
) -> MakerMarket:
    """Build a maker's market from parsed entries, with books for the first `books_max` pairs with prices."""
    books: dict[str, UsableBook] = {}
    for pair_id, pair in pairs.items():
        grid = grids.get(pair_id)
        if grid is None or pair.base not in tokens or pair.quote not in tokens or len(books) == books_max:
            continue
        decimals = tokens[pair.base].decimals, tokens[pair.quote].decimals
        book = UsableBook(
            _ladder(grid.bids, *decimals, rising=False), _ladder(grid.asks, *decimals, rising=True)
        )
        if book.bids or book.asks:
            books[pair_id] = book
    return MakerMarket(tokens, pairs, books, grids)


def _decoded(decode: Callable[[bytes], object], exchange: HttpExchange) -> object:
    if not exchange.succeeded:
        return None
    try:
        return getattr(decode(exchange.body), "body", None)
    except InvalidInput:
        return None


def _has_address(token: Token) -> bool:
    try:
        parse_address(token.address)
    except InvalidInput:
        return False
    return True


def _ladder(levels: object, base_decimals: int, quote_decimals: int, *, rising: bool) -> Ladder | None:
    if not isinstance(levels, tuple) or not levels:
        return None
    try:
        ladder = build_ladder(levels, base_decimals, quote_decimals, rising=rising)
    except InvalidInput:
        return None
    return ladder if ladder.base_before[-1] else None


class Range(Struct, frozen=True):
    """Range of the amount that a maker should quote, from the price grids before and after the quote.

    Attributes:
        low, high: the lesser and the greater of the two amounts that the grids give, raw units.
        still: whether both grids give the same amount, so that the quote can be exact.
    """

    low: int
    high: int
    still: bool


def expected_range(
    before: MakerMarket, after: MakerMarket, pair_id: str, leg: GridLeg, amount: int
) -> Range | None:
    """Compute the range of the amount that a maker should quote for a request's fixed amount.

    Each of the two price grids gives one amount. The result is None if a grid lacks depth or gives zero.

    Args:
        before, after: the maker's market just before and just after the quote.
        amount: the amount that the request fixes, raw units.

    Choice: A maker may refuse an amount whose counterpart rounds to zero.
    """
    found = [_walk(market, pair_id, leg, amount) for market in (before, after)]
    amounts = [other for other in found if other is not None]
    if len(amounts) < 2:
        return None
    return Range(min(amounts), max(amounts), amounts[0] == amounts[1])


def _walk(market: MakerMarket, pair_id: str, leg: GridLeg, amount: int) -> int | None:
    ladder = market.ladder(pair_id, leg)
    return None if ladder is None else leg.walk(ladder, amount) or None


def deviation_bps(quoted: int, expected: Range) -> Fraction:
    """Return how far a quoted amount is outside the expected range, in basis points of the nearer bound.

    The result is negative below the range, and zero within the range or up to ROUNDING_UNITS raw units
    outside.
    """
    nearer = min(max(quoted, expected.low), expected.high)
    if abs(quoted - nearer) <= ROUNDING_UNITS:
        return Fraction(0)
    return Fraction((quoted - nearer) * BPS_ONE, max(nearer, 1))
