"""One side of one maker's book, to give one token and receive another, in units that several share. Pure.

SELL   `fixed` is the token given, `other` the token received; a fill rounds what is received down
BUY    `fixed` is the token received, `other` the token given; a fill rounds what is paid up
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice, pairwise
from operator import sub

from msgspec import Struct

from ....codecs.amounts import POWERS_OF_TEN
from ....codecs.vocabulary import Side
from ....feeds import fill
from ....feeds.book import Ladder
from ....feeds.pair_index import LiveBook


class Units(Struct, frozen=True):
    """What the sums and prices of several books are in: fine enough that none of their levels is rounded.

    Attributes:
        direct_scale: the largest quote scale of the books whose base is given, inverse_scale of the others;
            None where there is no such book.
    """

    side: Side
    direct_scale: int | None
    inverse_scale: int | None

    @property
    def scales(self) -> tuple[int, int]:
        """Of the fixed and of the other token: sums are in 10^-scale raw units."""
        given, received = self.inverse_scale or 0, self.direct_scale or 0
        return (given, received) if self.side is Side.SELL else (received, given)

    @property
    def is_mixed(self) -> bool:
        """There are books in both orders, so that prices do not compare as they stand."""
        return self.direct_scale is not None and self.inverse_scale is not None


def units_of(books: Iterable[LiveBook], give: bytes, side: Side) -> Units:
    """Units for all of several books of the same two tokens."""
    direct = inverse = -1
    for live in books:
        if live.base == give:
            direct = max(direct, live.book.bids.quote_scale)
        else:
            inverse = max(inverse, live.book.asks.quote_scale)
    return Units(side, None if direct < 0 else direct, None if inverse < 0 else inverse)


class DirectedLadder:
    """Levels of no amount are left out.

    Attributes:
        live: the book.
        keys: per level, what it compares by with those of other books: the better, the lower.
        fixed_before, other_before: sums over the levels before each, and of all.
        walk: what a fixed amount in raw units brings or costs, exactly; None beyond the depth.
        first_part: what `envelope` remembers of it.
    """

    def __init__(self, live: LiveBook, give: bytes, units: Units) -> None:
        self.live = live
        is_direct = live.base == give
        sells = units.side is Side.SELL
        ladder = live.book.bids if is_direct else live.book.asks
        prices, bases, quotes = _with_amounts(ladder)
        finest, opposite = (
            (units.direct_scale, units.inverse_scale)
            if is_direct
            else (units.inverse_scale, units.direct_scale)
        )
        quote_factor = POWERS_OF_TEN[(finest or 0) - ladder.quote_scale]
        quotes = _scaled(quotes, quote_factor)
        bases = _scaled(bases, POWERS_OF_TEN[opposite or 0])
        self.fixed_before, self.other_before = (bases, quotes) if is_direct is sells else (quotes, bases)
        self.keys: Sequence[int | Fraction]
        if units.is_mixed:
            better = -1 if sells else 1
            others = (after - before for before, after in pairwise(self.other_before))
            fixeds = (after - before for before, after in pairwise(self.fixed_before))
            self.keys = [Fraction(better * other, fixed) for other, fixed in zip(others, fixeds, strict=True)]
        else:
            self.keys = _scaled(prices, -quote_factor if is_direct else quote_factor)
        sold, bought = (
            (fill.quote_received, fill.base_paid) if is_direct else (fill.base_received, fill.quote_paid)
        )
        self.walk: Callable[[int], int | None] = partial(sold if sells else bought, ladder)
        self.first_part: tuple[int, int, int] | None = None


def has_levels(live: LiveBook, give: bytes) -> bool:
    """Whether anything can be had for a token."""
    return (live.book.bids if live.base == give else live.book.asks).base_before[-1] > 0


def fits(live: LiveBook, give: bytes, units: Units) -> bool:
    """Whether units are fine enough for a book."""
    if live.base == give:
        return units.direct_scale is not None and live.book.bids.quote_scale <= units.direct_scale
    return units.inverse_scale is not None and live.book.asks.quote_scale <= units.inverse_scale


def _with_amounts(ladder: Ladder) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """(prices, bases before, quotes before) of the levels that have an amount."""
    prices, bases, quotes = ladder.prices, ladder.base_before, ladder.quote_before
    sizes = [*map(sub, islice(bases, 1, None), bases)]
    if 0 not in sizes:
        return prices, bases, quotes
    levels = [level for level, size in enumerate(sizes) if size]
    return (
        [prices[level] for level in levels],
        [0, *(bases[level + 1] for level in levels)],
        [0, *(quotes[level + 1] for level in levels)],
    )


def _scaled(values: Sequence[int], factor: int) -> Sequence[int]:
    return values if factor == 1 else [value * factor for value in values]
