"""Makers' books in one trade direction, from a token given to a token received, in integer units. Pure."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from operator import sub

from msgspec import Struct

from .....codecs.amounts import POWERS_OF_TEN
from .....codecs.messages.vocabulary import Side
from .....feeds.books import fill
from .....feeds.books.book import Ladder
from .....feeds.books.pair_index import LiveBook

RATE_BITS = 256  # precision of `rate_key`: finer than any difference of two prices
_AVERAGES_MAX = 64  # amounts whose average rates are kept

FIXED = {Side.SELL: 0, Side.BUY: 1}
"""Index of the token whose amount a swap fixes: 0 the token given (SELL), 1 the token received (BUY).

The other token's amount follows from the makers' books.
"""


class Units(Struct, frozen=True):
    """Decimal units in which the amounts of several books are whole numbers, and so can be summed.

    Attributes:
        scales: (scale of the token given, scale of the token received); amounts of a token are counted in
            units of 10^-scale raw units.
    """

    scales: tuple[int, int]


def units_of(books: Iterable[LiveBook], give: bytes) -> Units:
    """Determine the decimal units in which all levels of several books of two tokens are whole numbers."""
    given = received = 0
    for live in books:
        if live.base == give:
            received = max(received, live.book.bids.quote_scale)
        else:
            given = max(given, live.book.asks.quote_scale)
    return Units((given, received))


class DirectedLadder:
    """A maker's book in one trade direction, without its levels of amount zero.

    Attributes:
        live: the maker's book.
        keys: sort key (`rate_key`) of each level.
        sums: prefix sums over the levels: (of the amounts given, of the amounts received).
        walks: (function for SELL, function for BUY), each from a fixed amount to the exact amount of the
            other token, raw units; None beyond the book's depth. A received amount is rounded down, a paid
            amount up.
        first_parts: cache of `envelope`, for SELL and for BUY: (gas cost of a fill, rate key, number of
            levels) of the book's top levels with the best average rate after gas; None before the first use.
        fills: cache of `ladders`, for SELL and for BUY: number of top levels -> (fixed amount, other amount)
            of a fill of these levels, in whole raw units.
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
        self.fills: tuple[dict[int, tuple[int, int]], ...] = {}, {}

    def average(self, fixed: int, amount: int) -> int:
        """Sort key (`rate_key`) of the average rate of an amount; no larger amount has a better one.

        Beyond the depth, a sale counts as one of the whole book for the amount, and a purchase is impossible:
        its key is 0, the worst of all.

        Args:
            fixed: token of the amount: 0 the token given (SELL), 1 the token received (BUY).
            amount: in the ladder's units, above zero.
        """
        fixeds, others = self.sums[fixed], self.sums[1 - fixed]
        if amount > fixeds[-1]:
            return 0 if fixed else rate_key(others[-1], amount)
        level = bisect_left(fixeds, amount) - 1
        size = fixeds[level + 1] - fixeds[level]
        other = others[level] * size + (others[level + 1] - others[level]) * (amount - fixeds[level])
        return rate_key(amount * size, other) if fixed else rate_key(other, amount * size)


class Averages:
    """Average rates of several makers for the same amounts, also over changes of their books.

    Args:
        ladders: the makers' books in one trade direction, all in the same units.
        fixed: token of the amounts: 0 the token given (SELL), 1 the token received (BUY).
    """

    __slots__ = ("_changed_at", "_fixed", "_known", "_ladders", "_version")

    def __init__(self, ladders: Sequence[DirectedLadder], fixed: int) -> None:
        self._ladders = ladders
        self._fixed = fixed
        self._version = 0
        self._changed_at = [0] * len(ladders)  # version of each maker's last change
        self._known: dict[int, tuple[int, int, list[int]]] = {}  # amount -> version, best rate, rates

    def renewed(self, ladders: Sequence[DirectedLadder], changed: Iterable[int]) -> "Averages":
        """Return the average rates of the same makers after some of their books have changed.

        The rates known so far pass over to the result: this object computes its own anew if it is asked
        again.

        Args:
            changed: indices of the ladders that differ.
        """
        after = Averages(ladders, self._fixed)
        after._version = version = self._version + 1
        after._changed_at = [*self._changed_at]
        for maker in changed:
            after._changed_at[maker] = version
        after._known, self._known = self._known, {}
        return after

    def at(self, amount: int) -> tuple[int, list[int]]:
        """Return (the best, each maker's) average rate of an amount, as `DirectedLadder.average`."""
        known, version = self._known.get(amount), self._version
        if known is None:
            if len(self._known) >= _AVERAGES_MAX:
                self._known.clear()
            rates = [each.average(self._fixed, amount) for each in self._ladders]
        elif known[0] == version:
            return known[1], known[2]
        else:
            before, _, rates = known
            for maker, changed_at in enumerate(self._changed_at):
                if changed_at > before:
                    rates[maker] = self._ladders[maker].average(self._fixed, amount)
        best = min(rates)
        self._known[amount] = version, best, rates
        return best, rates


def rate_key(received: int, given: int) -> int:
    """Return the sort key of an exchange rate, token received per token given; a better rate is lower."""
    return (-received << RATE_BITS) // given


def has_levels(live: LiveBook, give: bytes) -> bool:
    """Whether a maker's book has a level with an amount on the side where the maker takes `give`."""
    return (live.book.bids if live.base == give else live.book.asks).base_before[-1] > 0


def fits(live: LiveBook, give: bytes, units: Units) -> bool:
    """Whether all level amounts of a maker's book are whole numbers in these decimal units."""
    if live.base == give:
        return live.book.bids.quote_scale <= units.scales[1]
    return live.book.asks.quote_scale <= units.scales[0]


def _with_amounts(ladder: Ladder) -> tuple[Sequence[int], Sequence[int]]:
    """Return the prefix sums (base amounts, quote amounts) of the levels whose amount is not zero."""
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
