"""All makers' books between two tokens, in one direction, as one ladder. Pure.

A level of a book is a segment: so much of one token against so much of the other. Sorted by price over all
makers, with prefix sums, the segments are the best that all of them give together; what an amount brings is a
bisect and one division, and how much of it is whose falls out of the same place.

    SELL   `fixed` is the token given, `other` the token received; a fill rounds what is received down
    BUY    `fixed` is the token received, `other` the token given; a fill rounds what is paid up

Sums are integers: of the fixed token in 1 / fixed_unit raw units, of the other in 1 / other_unit, fine enough
that no level is rounded. A share is in whole raw units, and is what `feeds.fill` gives for that maker's book
alone; so a split is worse than the sums by less than a unit of each of the two tokens per maker, and never
better. Where parts of units are moved to another maker, what is lost is that unit at the two makers' prices.
A share that would bring nothing is given to others, or where they are full enlarged until it brings a unit:
that unit costs what it does at the worst price, and is taken from shares at better ones.

Choice: a maker with a book of the pair in both orders takes part with that of the greater `liquidityUSD`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from heapq import heappop, heapreplace
from itertools import islice
from operator import itemgetter, sub

from msgspec import Struct

from ....codecs.amounts import POWERS_OF_TEN
from ....codecs.vocabulary import Side
from ....feeds import fill
from ....feeds.book import Ladder
from ....feeds.pair_index import LiveBook, PairIndex

LADDERS_MAX = 1_024  # merged ladders that are remembered: 50 MB at 20 makers of 20 levels

Share = tuple[int, int, int]  # maker's number, fixed amount, other amount
Rate = tuple[int, int]  # raw units of the other token, for raw units of the fixed one
Split = tuple[list[Share], Rate]  # the largest first; the rate of the last segment that is taken
_fixed_of, _other_of = itemgetter(1), itemgetter(2)  # of a share


class MakerFilter(Struct, frozen=True):
    """Who may take part.

    Attributes:
        only: names; None for anybody.
        without: names that may not.
    """

    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    def lets(self, maker: str) -> bool:
        """Whether a maker may."""
        return maker not in self.without and (self.only is None or maker in self.only)


class DirectedLadder:
    """One side of one maker's book, for giving one token and receiving another.

    Levels of no amount are left out.

    Attributes:
        live: the book.
        is_direct: the token given is the book's base: it is sold against bids.
        prices: per level, as the book has them.
        fixed_before, other_before: sums over the levels before each, and of all; of the quote token in
            10^-quote_scale raw units.
        fixed_scale, other_scale: of these sums: that of the quote token, 0 for the base.
        walk: what a fixed amount in raw units brings or costs, exactly; None beyond the depth.
    """

    def __init__(self, live: LiveBook, give: bytes, side: Side) -> None:
        self.live = live
        self.is_direct = live.base == give
        ladder = live.book.bids if self.is_direct else live.book.asks
        bases, quotes, prices = ladder.base_before, ladder.quote_before, ladder.prices
        sizes = [*map(sub, islice(bases, 1, None), bases)]
        if 0 in sizes:
            levels = [level for level, size in enumerate(sizes) if size]
            prices = tuple(prices[level] for level in levels)
            bases = (0, *(bases[level + 1] for level in levels))
            quotes = (0, *(quotes[level + 1] for level in levels))
        self.prices = prices
        self.quote_scale = ladder.quote_scale
        if self.is_direct is (side is Side.SELL):
            self.fixed_before, self.other_before = bases, quotes
            self.fixed_scale, self.other_scale = 0, self.quote_scale
        else:
            self.fixed_before, self.other_before = quotes, bases
            self.fixed_scale, self.other_scale = self.quote_scale, 0
        self.walk = _walk_of(ladder, is_direct=self.is_direct, side=side)


class MergedLadder:
    """Several makers' ladders as one. Segments are put in order as far as amounts reach.

    Args:
        ladders: each with a level, in the order of the makers' names.

    Attributes:
        makers: by number, in the order of their names.
        depth: of all segments, in 1 / fixed_unit.
        fixed_before, other_before: sums over the segments before each, and of all that are in order yet: the
            first at least.
        first_rate: of the best segment.
    """

    def __init__(self, ladders: Sequence[DirectedLadder], side: Side) -> None:
        self.makers = tuple([ladder.live.maker for ladder in ladders])
        self.side = side
        self.ladders = ladders
        fixed_scale = max([ladder.fixed_scale for ladder in ladders])
        other_scale = max([ladder.other_scale for ladder in ladders])
        self.fixed_unit, self.other_unit = POWERS_OF_TEN[fixed_scale], POWERS_OF_TEN[other_scale]
        self._fixed_factors = [POWERS_OF_TEN[fixed_scale - ladder.fixed_scale] for ladder in ladders]
        self._other_factors = [POWERS_OF_TEN[other_scale - ladder.other_scale] for ladder in ladders]
        self.depth = sum(map(self._depth, range(len(ladders))))
        self._price_factors = _price_factors(ladders)
        self._next = sorted([(self._key(maker, 0), maker, 0) for maker in range(len(ladders))])  # a heap
        self._by_first_price = [
            (maker, self._depth(maker), *self._rate_of(maker, 0)) for _, maker, _ in self._next
        ]
        self._owners: list[int] = []
        self._rates: list[Rate] = []
        self._owned: list[tuple[int, int]] = []  # sums of the owner's levels, this segment with them
        self._filled: list[Share] = []  # a fill of all of these levels, in whole units
        self.fixed_before = [0]
        self.other_before = [0]
        self._reach(1)
        self.first_rate = self._rates[0]

    def best_split(self, amount: int) -> Split | None:
        """The split among all makers that is best before gas, in whole units; None beyond the depth."""
        wanted = amount * self.fixed_unit
        if wanted <= 0 or not self.reaches(wanted):
            return None
        segment = bisect_left(self.fixed_before, wanted) - 1
        return self._in_units(amount, dict(zip(self._owners, range(segment), strict=False)), segment)

    def better_without(
        self, amount: int, left_out: frozenset[int], fill_cost: int, value: int
    ) -> Split | None:
        """As `best_split`, among the makers that are not left out.

        Args:
            fill_cost: of one fill, raw units of the other token.
            value: what is received, or minus what is paid, less the cost of the fills; None where that would
                not be above it before rounding.
        """
        wanted = amount * self.fixed_unit
        if wanted <= 0 or not self.reaches(wanted):
            return None
        segment = bisect_left(self.fixed_before, wanted) - 1
        owners, fixed_before, other_before = self._owners, self.fixed_before, self.other_before
        last_of = dict(zip(owners, range(segment), strict=False))
        left, other = wanted - fixed_before[segment], other_before[segment]
        for maker in left_out.intersection(last_of):
            fixed_owned, other_owned = self._owned[last_of.pop(maker)]
            left += fixed_owned
            other -= other_owned
        while True:  # what was theirs comes from the segments after
            if segment == len(owners) and not self.reaches(fixed_before[-1] + 1):
                return None
            maker = owners[segment]
            if maker not in left_out:
                size = fixed_before[segment + 1] - fixed_before[segment]
                brings = other_before[segment + 1] - other_before[segment]
                if size >= left:
                    break
                last_of[maker] = segment
                other += brings
                left -= size
            segment += 1
        other = (other + left * brings // size) // self.other_unit
        fills = len(last_of) + (maker not in last_of)
        reached = other if self.side is Side.SELL else -other
        if reached - fill_cost * fills <= value:
            return None
        return self._in_units(amount, last_of, segment)

    def best_single(self, amount: int) -> Share | None:
        """The one maker that fills all of an amount best; None where none can."""
        best: Share | None = None
        sells = self.side is Side.SELL
        wanted = amount * self.fixed_unit
        for maker, depth, other, fixed in self._by_first_price:
            if wanted > depth:
                continue
            if best is not None:
                at_best, reached = amount * other, best[2] * fixed
                if at_best < reached if sells else at_best > reached:
                    break
            filled = self.ladders[maker].walk(amount)
            if filled and (best is None or (filled > best[2] if sells else filled < best[2])):
                best = maker, amount, filled
        return best

    def reaches(self, wanted: int) -> bool:
        """Whether there is so much, in 1 / fixed_unit; then that much is in order."""
        if wanted <= self.fixed_before[-1]:
            return True
        if wanted > self.depth:
            return False
        self._reach(wanted)
        return True

    def _reach(self, wanted: int) -> None:
        """Put segments in order up to an amount; of the same price, one maker's after another's."""
        fixed, other = self.fixed_before[-1], self.other_before[-1]
        while fixed < wanted:
            _, maker, level = self._next[0]
            ladder = self.ladders[maker]
            after = level + 1
            if after < len(ladder.prices):
                heapreplace(self._next, (self._key(maker, after), maker, after))
            else:
                heappop(self._next)
            fixed_factor, other_factor = self._fixed_factors[maker], self._other_factors[maker]
            fixed_owned, other_owned = ladder.fixed_before[after], ladder.other_before[after]
            whole = fixed_owned // POWERS_OF_TEN[ladder.fixed_scale]
            fixed += (fixed_owned - ladder.fixed_before[level]) * fixed_factor
            other += (other_owned - ladder.other_before[level]) * other_factor
            self._owners.append(maker)
            self._rates.append(self._rate_of(maker, level))
            self._owned.append((fixed_owned * fixed_factor, other_owned * other_factor))
            self._filled.append((maker, whole, ladder.walk(whole) or 0))
            self.fixed_before.append(fixed)
            self.other_before.append(other)

    def _depth(self, maker: int) -> int:
        return self.ladders[maker].fixed_before[-1] * self._fixed_factors[maker]

    def _rate_of(self, maker: int, level: int) -> Rate:
        ladder, after = self.ladders[maker], level + 1
        fixed = (ladder.fixed_before[after] - ladder.fixed_before[level]) * self._fixed_factors[maker]
        other = (ladder.other_before[after] - ladder.other_before[level]) * self._other_factors[maker]
        return other * self.fixed_unit, fixed * self.other_unit

    def _key(self, maker: int, level: int) -> int | Fraction:
        """The better a level, the lower."""
        if self._price_factors:
            return self.ladders[maker].prices[level] * self._price_factors[maker]
        other, fixed = self._rate_of(maker, level)
        return Fraction(-other if self.side is Side.SELL else other, fixed)

    def _in_units(self, amount: int, last_of: dict[int, int], segment: int) -> Split | None:
        """Whole units of each maker: the owner of the last segment has what the others leave.

        Args:
            last_of: maker -> the last segment that is taken of it, of those before `segment`.
        """
        last, filled = self._owners[segment], self._filled
        last_of.pop(last, None)
        shares = [filled[number] for number in last_of.values() if filled[number][1]]
        fixed = amount - sum(map(_fixed_of, shares))
        shares.append((last, fixed, self.ladders[last].walk(fixed) or 0))
        if all(map(_other_of, shares)):
            return _largest_first(shares), self._rates[segment]
        whole = {maker: filled[number][1] for maker, number in last_of.items()} | {last: fixed}
        rearranged = self._rearranged(whole, last)
        return None if rearranged is None else (rearranged, self._rates[segment])

    def _by_book(self, whole: dict[int, int]) -> list[Share] | None:
        """By each maker's own book; None where one of them cannot, or would give nothing."""
        shares: list[Share] = []
        for maker, fixed in whole.items():
            if fixed:
                other = self.ladders[maker].walk(fixed)
                if not other:
                    return None
                shares.append((maker, fixed, other))
        return _largest_first(shares)

    def _rearranged(self, whole: dict[int, int], last: int) -> list[Share] | None:
        """Move what brings nothing, and what is beyond somebody's depth, to makers that have room for it."""
        rooms = {maker: self._depth(maker) // self.fixed_unit for maker in whole}
        kept = {maker: min(fixed, rooms[maker]) for maker, fixed in whole.items()}
        kept = {maker: fixed if self.ladders[maker].walk(fixed) else 0 for maker, fixed in kept.items()}
        moved = sum(whole.values()) - sum(kept.values())
        for maker in sorted(kept, key=lambda maker: (-kept[maker], maker != last, maker)):
            more = min(moved, rooms[maker] - kept[maker])
            if self.ladders[maker].walk(kept[maker] + more):
                kept[maker] += more
                moved -= more
        if moved:
            kept = self._enlarged(kept, whole, moved)
        return self._by_book(kept) if sum(kept.values()) == sum(whole.values()) else None

    def _enlarged(self, kept: dict[int, int], whole: dict[int, int], moved: int) -> dict[int, int]:
        """Give a maker whose share brought nothing what a unit costs there, taken from the worst prices."""
        for maker, _, other, fixed in self._by_first_price:
            least = -(-fixed // other)
            if not whole.get(maker) or kept[maker] or not self.ladders[maker].walk(least):
                continue
            enlarged, short = {**kept, maker: least}, least - moved
            for payer, *_ in reversed(self._by_first_price):
                if payer != maker and enlarged.get(payer):
                    paid = min(short, enlarged[payer])
                    enlarged[payer] -= paid
                    short -= paid
            if not short and self._by_book(enlarged) is not None:
                return enlarged
        return kept


class Ladders:
    """Merged ladders of one chain's books, remembered while the books are the same.

    A ladder is kept per direction, side and makers that may take part, and built anew when it is asked for
    after the version of its two tokens has changed. The one that was asked for longest ago goes first.
    """

    def __init__(self, index: PairIndex) -> None:
        self._index = index
        self._kept: dict[object, tuple[int, MergedLadder | None]] = {}

    def merged(self, give: bytes, get: bytes, side: Side, makers: MakerFilter) -> MergedLadder | None:
        """The ladder of everybody who may take part; None where nobody has a level."""
        key = give, get, side, makers
        version = self._index.pair_version(give, get)
        known = self._kept.pop(key, None)
        if known is None or known[0] != version:
            books = (live for live in self._index.between(give, get).values() if makers.lets(live.maker))
            known = version, merge(books, give, side, None if known is None else known[1])
            if len(self._kept) >= LADDERS_MAX:
                del self._kept[next(iter(self._kept))]
        self._kept[key] = known
        return known[1]


def merge(
    books: Iterable[LiveBook], give: bytes, side: Side, before: MergedLadder | None = None
) -> MergedLadder | None:
    """One ladder of several books of the same two tokens; None where they have no level that way.

    Args:
        before: of the same tokens, direction and side; what it has of books that are still there is taken
            over.
    """
    of_maker: dict[str, LiveBook] = {}
    for live in books:
        other = of_maker.get(live.maker)
        if other is None or (live.liquidity_usd, live.base) > (other.liquidity_usd, other.base):
            of_maker[live.maker] = live
    known = {} if before is None else dict(zip(before.makers, before.ladders, strict=True))
    ladders: list[DirectedLadder] = []
    for maker, live in sorted(of_maker.items()):
        ladder = known.get(maker)
        if ladder is None or ladder.live is not live:
            ladder = DirectedLadder(live, give, side)
        if ladder.prices:
            ladders.append(ladder)
    return MergedLadder(ladders, side) if ladders else None


def through(ladders: Iterable[MergedLadder], amount: int) -> tuple[int, int, int] | None:
    """What an amount comes to, ladder after ladder, when it may be split without rounding the shares.

    Returns:
        (the other amount, rounded at each ladder as one fill is; then the rate of the last unit: of the other
        token, for so much of the fixed one); None beyond the depth. Nothing brings nothing, at the best rate.
    """
    numerator = denominator = 1
    for ladder in ladders:
        wanted = amount * ladder.fixed_unit
        if not ladder.reaches(wanted):
            return None
        fixed_before, other_before = ladder.fixed_before, ladder.other_before
        end = bisect_left(fixed_before, wanted) or 1
        fixed, other = fixed_before[end - 1], other_before[end - 1]
        size, brings = fixed_before[end] - fixed, other_before[end] - other
        unit = size * ladder.other_unit
        exact = other * size + (wanted - fixed) * brings
        amount = exact // unit if ladder.side is Side.SELL else -(-exact // unit)
        numerator *= brings * ladder.fixed_unit
        denominator *= unit
    return amount, numerator, denominator


def _price_factors(ladders: Sequence[DirectedLadder]) -> list[int]:
    """What prices compare by, the better the lower; nothing where some books are in the other order."""
    if len({ladder.is_direct for ladder in ladders}) > 1:
        return []
    finest = max([ladder.quote_scale for ladder in ladders])
    better = -1 if ladders[0].is_direct else 1
    return [better * POWERS_OF_TEN[finest - ladder.quote_scale] for ladder in ladders]


def _largest_first(shares: list[Share]) -> list[Share]:
    """Of equal ones the one whose maker comes first."""
    shares.sort()
    shares.sort(key=_fixed_of, reverse=True)
    return shares


def _walk_of(ladder: Ladder, *, is_direct: bool, side: Side) -> Callable[[int], int | None]:
    sells, buys = (
        (fill.quote_received, fill.base_paid) if is_direct else (fill.base_received, fill.quote_paid)
    )
    return partial(sells if side is Side.SELL else buys, ladder)
