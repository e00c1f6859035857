"""What a unit of any token is worth in units of an anchor, by the mid prices of live books. Pure.

    anchor        what it is said to be worth
    one hop       the median over makers of mid price x worth of the anchor
    two hops      the median over makers of the mid price against a token that is one hop away, x that token's
                  worth; of several such tokens the one with the most liquidity against this one
    beyond        nothing

The mid price of a book is half of its best bid and its best ask, so a book with an empty side has none; a
level of no amount is no level. Every maker counts once, with the median of its own books: one that is far off
moves the price no further than to the next maker's.

Choice: a book whose best ask is above twice its best bid tells no price: nobody trades on it, so that its
    maker could move the price with it and risk nothing.
Choice: a median, not weighted by `liquidityUSD`: that is the maker's own word, and would let one maker make
    its price everybody's. With two books it is their mean.
Choice: of an even number of books, the median is the mean of the two in the middle.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from msgspec import Struct

from ..codecs.amounts import POWERS_OF_TEN
from .book import Ladder
from .pair_index import LiveBook, PairIndex

WIDEST = 2  # times the best bid: a best ask above it makes a book tell no price
PRICES_MAX = 4_096  # tokens whose price is remembered
MIDS_MAX = 65_536  # books whose mid price is remembered, each for either token
_FLOOR_BITS = 128

Seen = tuple[bytes, bytes, int]  # two tokens, the version of what lies between them


class _Remembered(Struct, frozen=True):
    """A price and what it was made of; it holds while none of that has changed."""

    worth: Fraction | None
    topology: int
    seen: tuple[Seen, ...]


class MidPrices:
    """Prices of the tokens of one chain, in units of one anchor or of several that are alike.

    Args:
        anchors: token -> what one raw unit of it is worth.
    """

    def __init__(self, index: PairIndex, anchors: Mapping[bytes, Fraction]) -> None:
        self._index = index
        self._anchors = anchors
        self._remembered: dict[bytes, _Remembered] = {}
        self._mids: dict[tuple[str, bytes, bytes, bool], tuple[LiveBook, Fraction | None]] = {}
        self._current: dict[bytes, Fraction | None] = {}
        self._current_version = -1

    def worth(self, token: bytes) -> Fraction | None:
        """Of one raw unit of a token; None where no live books say so."""
        if self._current_version != self._index.version or len(self._current) >= PRICES_MAX:
            self._current.clear()
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
        seen: list[Seen] = []
        worth = self._find(token, seen)
        if len(self._remembered) >= PRICES_MAX:
            self._remembered.clear()
        self._remembered[token] = _Remembered(worth, index.topology, tuple(seen))
        return worth

    def _find(self, token: bytes, seen: list[Seen]) -> Fraction | None:
        direct = self._near(token, seen)
        if direct is not None:
            return direct
        around = self._index.neighbours(token)
        for between in sorted(around, key=lambda other: (-around[other], other)):
            worth = self._near(between, seen)
            if worth is None:
                continue
            self._note(token, between, seen)
            mid = _median_of_makers(self._by_maker(token, between))
            if mid is not None:
                return mid * worth
        return None

    def _near(self, token: bytes, seen: list[Seen]) -> Fraction | None:
        """An anchor's own worth, or that of a token with books against anchors."""
        if token in self._anchors:
            return self._anchors[token]
        found: list[tuple[str, Fraction]] = []
        for anchor in self._anchors:
            self._note(token, anchor, seen)
            found.extend(self._by_maker(token, anchor))
        return _median_of_makers(found)

    def _by_maker(self, token: bytes, other: bytes) -> list[tuple[str, Fraction]]:
        """Of each book with two sides: its maker, mid price x worth of the other token if it is an anchor."""
        found = []
        for live in self._index.between(token, other).values():
            key = live.maker, token, other, live.base == token
            known = self._mids.get(key)
            if known is None or known[0] is not live:
                mid = mid_price(live, token)
                if len(self._mids) >= MIDS_MAX:
                    self._mids.clear()
                known = self._mids[key] = live, mid and mid * self._anchors.get(other, 1)
            if known[1] is not None:
                found.append((live.maker, known[1]))
        return found

    def _note(self, one: bytes, other: bytes, seen: list[Seen]) -> None:
        seen.append((one, other, self._index.pair_version(one, other)))


def mid_price(live: LiveBook, token: bytes) -> Fraction | None:
    """Raw units of the other token for one raw unit of `token`; None of a book that tells no price."""
    bid, ask = best_price(live.book.bids), best_price(live.book.asks)
    if bid is None or ask is None or ask > WIDEST * bid:
        return None
    return (bid + ask) / 2 if live.base == token else 2 / (bid + ask)


def best_price(side: Ladder) -> Fraction | None:
    """Raw units of quote for one of base at the first level that has an amount; None if there is none."""
    for price, before, after in zip(side.prices, side.base_before, side.base_before[1:], strict=False):
        if after > before:
            return Fraction(price, POWERS_OF_TEN[side.quote_scale])
    return None


def median(values: Iterable[Fraction]) -> Fraction | None:
    """The value in the middle, or the mean of the two there; None of nothing."""
    ordered = sorted(values, key=_order)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def _order(value: Fraction) -> tuple[int, Fraction]:
    """Sorts as the value does: few are so close that fractions are compared."""
    return (value.numerator << _FLOOR_BITS) // value.denominator, value


def _median_of_makers(prices: Iterable[tuple[str, Fraction]]) -> Fraction | None:
    """Each maker's own median first, so that many books are no more than one."""
    of_maker: dict[str, list[Fraction]] = {}
    for maker, price in prices:
        of_maker.setdefault(maker, []).append(price)
    owns = (own[0] if len(own) == 1 else median(own) for own in of_maker.values())
    return median([own for own in owns if own is not None])
