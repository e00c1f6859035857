"""Price any token in units of an anchor token, by the mid prices of live books. Pure.

    anchor        its configured worth
    one hop       the median over makers of mid price x worth of the anchor
    two hops      the median over makers of the mid price against a token that is one hop away x that token's
                  worth; of several such tokens, the token with the most liquidity against the priced token
    beyond        none

The mid price of a book is the mean of its best bid and its best ask, so a book with an empty side has none; a
level without an amount does not count. Every maker counts once, with the median of its own books: an outlying
maker moves the price no further than to the next maker's price.

Choice: A book whose best ask exceeds twice its best bid gives no mid price: its maker could move the price
    without a risk.
Choice: A mid price is the median of the books, not weighted by `liquidityUSD`, which a maker states itself.
    Of an even number it is the mean of the middle two.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain

from msgspec import Struct

from ...codecs.amounts import POWERS_OF_TEN
from .book import Ladder
from .pair_index import BookKey, LiveBook, PairIndex

WIDEST = 2  # times the best bid: a book with a best ask above it gives no price
PRICES_MAX = 4_096  # tokens with a cached price
PAIRS_MAX = 4_096  # pairs with cached mid prices, each for either token
_FLOOR_BITS = 512

SeenPair = tuple[bytes, bytes, int]  # two tokens, the version of the books between them
Ranked = tuple[int, int, int]  # floor of a fraction in 2^-_FLOOR_BITS, as sort key; numerator; denominator


class _Remembered(Struct, frozen=True):
    """Cached worth of a token, valid while the books that determined it are unchanged.

    Attributes:
        worth: worth of one raw unit of the token; None if no live books price the token.
        topology: `PairIndex.topology` when the worth was computed.
        seen: pairs of tokens whose books were read, each with the version of these books.
    """

    worth: Fraction | None
    topology: int
    seen: tuple[SeenPair, ...]


class _PairPrices:
    """Mid prices of one token of a pair: one from each live book of the pair that has one.

    Attributes:
        version: version of the pair's books; a higher version in the index means that books have changed.
        of_book: (maker, base token) -> the book's mid price.
        prices: (mid price, maker) of each of these books, in rising order.
    """

    __slots__ = ("_median", "of_book", "prices", "version")

    def __init__(self) -> None:
        self.version = -1
        self.of_book: dict[BookKey, Ranked] = {}
        self.prices: list[tuple[Ranked, str]] = []
        self._median: Fraction | None = None

    def median(self) -> Fraction | None:
        """Return the median of the makers' own median prices; None without prices."""
        if self._median is None and self.prices:
            self._median = _median_of_makers(self.prices)
        return self._median

    def change(self, key: BookKey, price: Ranked | None) -> None:
        """Replace, add or remove the mid price of a book; None for a book that has none."""
        self._median = None
        before = self.of_book.pop(key, None)
        if before is not None:
            del self.prices[bisect_left(self.prices, (before, key[0]))]
        if price is not None:
            self.of_book[key] = price
            insort(self.prices, (price, key[0]))


class MidPrices:
    """Worth of one chain's tokens by the mid prices of live books, in one unit such as the US dollar.

    Args:
        index: the chain's live books.
        anchors: token of known worth, e.g. a stable coin -> worth of one raw unit of that token.
    """

    def __init__(self, index: PairIndex, anchors: Mapping[bytes, Fraction]) -> None:
        self._index = index
        self._anchors = anchors
        self._remembered: dict[bytes, _Remembered] = {}
        self._pairs: dict[tuple[bytes, bytes], _PairPrices] = {}
        self._by_liquidity: dict[bytes, list[bytes]] = {}
        self._topology = -1
        self._current: dict[bytes, Fraction | None] = {}
        self._current_near: dict[bytes, Fraction | None] = {}
        self._current_version = -1

    def worth(self, token: bytes) -> Fraction | None:
        """Worth of one raw unit of a token, in the anchors' unit of worth; None if no live books price it."""
        if self._current_version != self._index.version or len(self._current) >= PRICES_MAX:
            self._current.clear()
            self._current_near.clear()
            self._current_version = self._index.version
        if token in self._current:
            return self._current[token]
        worth = self._current[token] = self._lasting(token)
        return worth

    def _lasting(self, token: bytes) -> Fraction | None:
        index = self._index
        known = self._remembered.get(token)
        if (
            known is not None
            and known.topology == index.topology
            and all(index.pair_version(one, other) == version for one, other, version in known.seen)
        ):
            return known.worth
        seen: list[SeenPair] = []
        worth = self._find(token, seen)
        if len(self._remembered) >= PRICES_MAX:
            self._remembered.clear()
        self._remembered[token] = _Remembered(worth, index.topology, tuple(seen))
        return worth

    def _find(self, token: bytes, seen: list[SeenPair]) -> Fraction | None:
        direct = self._near(token, seen)
        if direct is not None:
            return direct
        for between in self._around(token):
            worth = self._near(between, seen)
            if worth is None:
                continue
            self._note(token, between, seen)
            mid = self._prices(token, between).median()
            if mid is not None:
                return mid * worth
        return None

    def _around(self, token: bytes) -> list[bytes]:
        """List the tokens that a token is traded with, by falling liquidity."""
        index = self._index
        if self._topology != index.topology:
            self._by_liquidity.clear()
            self._topology = index.topology
        found = self._by_liquidity.get(token)
        if found is None:
            if len(self._by_liquidity) >= PRICES_MAX:
                self._by_liquidity.clear()
            around = index.neighbours(token)
            found = sorted(around, key=lambda other: (-around[other], other))
            self._by_liquidity[token] = found
        return found

    def _near(self, token: bytes, seen: list[SeenPair]) -> Fraction | None:
        """Worth of one raw unit of a token that is an anchor or has books against anchors; else None.

        Args:
            seen: list to which the method adds each pair that it reads, with the version of the pair's books.
        """
        if token in self._anchors:
            return self._anchors[token]
        for anchor in self._anchors:
            self._note(token, anchor, seen)
        near = self._current_near
        if token not in near:
            pairs = [self._prices(token, anchor) for anchor in self._anchors]
            priced = [pair for pair in pairs if pair.prices]
            near[token] = (
                priced[0].median()
                if len(priced) == 1
                else _median_of_makers(sorted(chain.from_iterable([pair.prices for pair in priced])))
            )
        return near[token]

    def _prices(self, token: bytes, other: bytes) -> _PairPrices:
        """Mid prices of `token` by the books between two tokens.

        The price of one raw unit is in raw units of `other`, or in the anchors' unit of worth if `other` is
        an anchor.
        """
        index = self._index
        version = index.pair_version(token, other)
        pair = self._pairs.get((token, other))
        if pair is None or pair.version != version:
            books = index.between(token, other)
            changed = None if pair is None else index.changed_since(token, other, pair.version)
            if pair is None or changed is None:
                if len(self._pairs) >= PAIRS_MAX:
                    self._pairs.clear()
                pair = self._pairs[token, other] = _PairPrices()
                changed = {*books}
            for key in changed:
                live = books.get(key)
                pair.change(key, None if live is None else self._ranked_mid(live, token, other))
            pair.version = version
        return pair

    def _ranked_mid(self, live: LiveBook, token: bytes, other: bytes) -> Ranked | None:
        mid = mid_price(live, token)
        return None if mid is None else ranked(mid * self._anchors.get(other, 1))

    def _note(self, one: bytes, other: bytes, seen: list[SeenPair]) -> None:
        seen.append((one, other, self._index.pair_version(one, other)))


def mid_price(live: LiveBook, token: bytes) -> Fraction | None:
    """Mid price of a book: raw units of its other token per raw unit of `token`; None without a mid price."""
    bids, asks = live.book.bids, live.book.asks
    bid, ask = _best_price(bids), _best_price(asks)
    if not bid or not ask:
        return None
    bid_unit, ask_unit = POWERS_OF_TEN[bids.quote_scale], POWERS_OF_TEN[asks.quote_scale]
    bid, ask, unit = bid * ask_unit, ask * bid_unit, 2 * bid_unit * ask_unit
    if ask > WIDEST * bid:
        return None
    return Fraction(bid + ask, unit) if live.base == token else Fraction(unit, bid + ask)


def _best_price(side: Ladder) -> int:
    """Price of the best level with an amount above zero, as in `Ladder.prices`; 0 without such a level."""
    level = bisect_right(side.base_before, 0) - 1
    return side.prices[level] if level < len(side.prices) else 0


def ranked(value: Fraction) -> Ranked:
    """Convert to a tuple that sorts fast: (floor(value x 2^_FLOOR_BITS), numerator, denominator)."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << _FLOOR_BITS) // denominator, numerator, denominator


def median(ordered: Sequence[Ranked]) -> Fraction | None:
    """Median: the middle value, the mean of the middle two, or None without values.

    Args:
        ordered: fractions with their sort keys, in rising order.
    """
    if not ordered:
        return None
    middle = len(ordered) // 2
    _, numerator, denominator = ordered[middle]
    if len(ordered) % 2 or ordered[middle - 1] == ordered[middle]:
        return Fraction(numerator, denominator)
    return (Fraction(*ordered[middle - 1][1:]) + Fraction(numerator, denominator)) / 2


def _median_of_makers(prices: Sequence[tuple[Ranked, str]]) -> Fraction | None:
    """Median of the makers' own median prices, so that every maker counts once. None without prices.

    Args:
        prices: (price, maker), in rising order.
    """
    if len({maker for _, maker in prices}) == len(prices):
        return median([price for price, _ in prices])
    of_maker: dict[str, list[Ranked]] = {}
    for price, maker in prices:
        of_maker.setdefault(maker, []).append(price)
    owns = [median(own) for own in of_maker.values()]
    return median(sorted([ranked(own) for own in owns if own is not None]))
