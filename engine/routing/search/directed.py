"""One side of one maker's book, to give one token and receive another, in units that several share. Pure."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from operator import sub

from msgspec import Struct

from ....codecs.amounts import POWERS_OF_TEN
from ....codecs.messages.vocabulary import Side
from ....feeds.books import fill
from ....feeds.books.book import Ladder
from ....feeds.books.pair_index import LiveBook

RATE_BITS = 256  # of what rates compare by: their order is right but for less than any price can say

FIXED = {Side.SELL: 0, Side.BUY: 1}
"""Which of the two tokens an amount is of: 0 what is given, 1 what is received. The `other` one is not."""


class Units(Struct, frozen=True):
    """What the sums of several books are in: fine enough that none of their levels is rounded.

    Attributes:
        scales: of the token given and of the one received: sums are in 10^-scale raw units.
    """

    scales: tuple[int, int]


def units_of(books: Iterable[LiveBook], give: bytes) -> Units:
    """Units for all of several books of the same two tokens."""
    given = received = 0
    for live in books:
        if live.base == give:
            received = max(received, live.book.bids.quote_scale)
        else:
            given = max(given, live.book.asks.quote_scale)
    return Units((given, received))


class DirectedLadder:
    """Levels of no amount are left out.

    Attributes:
        live: the book.
        keys: per level, its `rate_key`.
        sums: of what is given and of what is received, over the levels before each, and of all.
        walks: for SELL and for BUY, what a fixed amount in raw units brings or costs, exactly; None beyond
            the depth. What is received is rounded down, what is paid up.
        first_parts: for SELL and for BUY, what `envelope` remembers of it.
    """

    def __init__(self, live: LiveBook, give: bytes, units: Units) -> None:
        self.live = live
        is_direct = live.base == give
        ladder = live.book.bids if is_direct else live.book.asks
        bases, quotes = _with_amounts(ladder)
        given, received = (bases, quotes) if is_direct else (quotes, bases)
        given_scale, received_scale = (0, ladder.quote_scale) if is_direct else (ladder.quote_scale, 0)
        given = _scaled(given, POWERS_OF_TEN[units.scales[0] - given_scale])
        received = _scaled(received, POWERS_OF_TEN[units.scales[1] - received_scale])
        self.sums = given, received
        self.keys = [
            rate_key(gets, gives) for gets, gives in zip(_sizes(received), _sizes(given), strict=True)
        ]
        sold, bought = (
            (fill.quote_received, fill.base_paid) if is_direct else (fill.base_received, fill.quote_paid)
        )
        self.walks: tuple[Callable[[int], int | None], ...] = partial(sold, ladder), partial(bought, ladder)
        self.first_parts: list[tuple[int, int, int] | None] = [None, None]


def rate_key(received: int, given: int) -> int:
    """What a rate compares by: the better, the lower."""
    return (-received << RATE_BITS) // given


def has_levels(live: LiveBook, give: bytes) -> bool:
    """Whether anything can be had for a token."""
    return (live.book.bids if live.base == give else live.book.asks).base_before[-1] > 0


def fits(live: LiveBook, give: bytes, units: Units) -> bool:
    """Whether units are fine enough for a book."""
    if live.base == give:
        return live.book.bids.quote_scale <= units.scales[1]
    return live.book.asks.quote_scale <= units.scales[0]


def _with_amounts(ladder: Ladder) -> tuple[Sequence[int], Sequence[int]]:
    """(bases before, quotes before) of the levels that have an amount."""
    bases, quotes = ladder.base_before, ladder.quote_before
    sizes = [*_sizes(bases)]
    if 0 not in sizes:
        return bases, quotes
    after = [level + 1 for level, size in enumerate(sizes) if size]
    return [0, *(bases[level] for level in after)], [0, *(quotes[level] for level in after)]


def _sizes(sums: Sequence[int]) -> Iterable[int]:
    return map(sub, islice(sums, 1, None), sums)


def _scaled(values: Sequence[int], factor: int) -> Sequence[int]:
    return values if factor == 1 else [value * factor for value in values]
