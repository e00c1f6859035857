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
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate, islice
from operator import sub

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
        is_direct: the token given is the book's base: it is sold against bids.
        prices: per level, as the book has them.
        fixed_before, other_before: sums over the levels before each, and of all; of the quote token in
            10^-quote_scale raw units.
        walk: what a fixed amount in raw units brings or costs, exactly; None beyond the depth.
    """

    def __init__(self, live: LiveBook, give: bytes, side: Side) -> None:
        self.maker = live.maker
        self.is_direct = live.base == give
        ladder = live.book.bids if self.is_direct else live.book.asks
        bases, quotes, prices = ladder.base_before, ladder.quote_before, ladder.prices
        if 0 in steps(bases):
            levels = [level for level, size in enumerate(steps(bases)) if size]
            prices = tuple(prices[level] for level in levels)
            bases = (0, *(bases[level + 1] for level in levels))
            quotes = (0, *(quotes[level + 1] for level in levels))
        is_base_fixed = self.is_direct is (side is Side.SELL)
        self.fixed_before, self.other_before = (bases, quotes) if is_base_fixed else (quotes, bases)
        self.prices = prices
        self.quote_scale = ladder.quote_scale
        self.walk = _walk_of(ladder, is_direct=self.is_direct, side=side)


class MergedLadder:
    """Several makers' ladders as one.

    Attributes:
        makers: by number, in the order of their names.
        fixed_before, other_before: sums over the segments before each, and of all.
        first_rate: of the best segment.
    """

    def __init__(self, ladders: Sequence[DirectedLadder], side: Side) -> None:
        self.makers = tuple(ladder.maker for ladder in ladders)
        self.side = side
        self._ladders = ladders
        direct_scale = max((each.quote_scale for each in ladders if each.is_direct), default=0)
        inverse_scale = max((each.quote_scale for each in ladders if not each.is_direct), default=0)
        given_scale, received_scale = inverse_scale, direct_scale
        scales = (given_scale, received_scale) if side is Side.SELL else (received_scale, given_scale)
        self.fixed_unit, self.other_unit = (POWERS_OF_TEN[scale] for scale in scales)
        self._own_fixed, own_other = self._scaled()
        fixed_sizes = [size for own in self._own_fixed for size in steps(own)]
        other_sizes = [size for own in own_other for size in steps(own)]
        owners = [number for number, own in enumerate(ladders) for _ in own.prices]
        order = _best_first(ladders, fixed_sizes, other_sizes, side)
        self._owners = [*map(owners.__getitem__, order)]
        self._fixed_sizes = [*map(fixed_sizes.__getitem__, order)]
        self.fixed_before = [*accumulate(self._fixed_sizes, initial=0)]
        self._other_sizes = [*map(other_sizes.__getitem__, order)]
        self.other_before = [*accumulate(self._other_sizes, initial=0)]
        firsts = sorted((self._owners.index(maker), maker) for maker in range(len(ladders)))
        self._by_first_price = [
            (maker, self._own_fixed[maker][-1], *self._rate(segment)) for segment, maker in firsts
        ]
        self.first_rate = self._rate(0)

    def _rate(self, segment: int) -> Rate:
        return self._other_sizes[segment] * self.fixed_unit, self._fixed_sizes[segment] * self.other_unit

    def best_split(self, amount: int) -> Split | None:
        """The split among all makers that is best before gas, in whole units; None beyond the depth."""
        wanted = amount * self.fixed_unit
        if not 0 < wanted <= self.fixed_before[-1]:
            return None
        segment = bisect_left(self.fixed_before, wanted) - 1
        taken = {
            maker: self._own_fixed[maker][count] for maker, count in Counter(self._owners[:segment]).items()
        }
        last = self._owners[segment]
        taken[last] = taken.get(last, 0) + wanted - self.fixed_before[segment]
        return self._in_units(amount, taken, segment)

    def better_without(
        self, amount: int, left_out: frozenset[int], fill_cost: int, value: int
    ) -> Split | None:
        """As `best_split`, among the makers that are not left out.

        Args:
            fill_cost: of one fill, raw units of the other token.
            value: what is received, or minus what is paid, less the cost of the fills; None where that would
                not be above it before rounding.
        """
        left = amount * self.fixed_unit
        other = 0
        taken: dict[int, int] = {}
        segments = zip(self._owners, self._fixed_sizes, self._other_sizes, strict=True)
        for segment, (maker, size, brings) in enumerate(segments):
            if maker in left_out:
                continue
            if size >= left:
                taken[maker] = taken.get(maker, 0) + left
                other = (other + left * brings // size) // self.other_unit
                reached = other if self.side is Side.SELL else -other
                if reached - fill_cost * len(taken) <= value:
                    return None
                return self._in_units(amount, taken, segment)
            taken[maker] = taken.get(maker, 0) + size
            left -= size
            other += brings
        return None

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
            filled = self._ladders[maker].walk(amount)
            if filled and (best is None or (filled > best[2] if sells else filled < best[2])):
                best = maker, amount, filled
        return best

    def _scaled(self) -> tuple[list[Sequence[int]], list[Sequence[int]]]:
        """Each maker's sums in the common units."""
        fixed: list[Sequence[int]] = []
        other: list[Sequence[int]] = []
        for ladder in self._ladders:
            quote_unit = POWERS_OF_TEN[ladder.quote_scale]
            is_quote_fixed = ladder.is_direct is (self.side is Side.BUY)
            fixed_own, other_own = (quote_unit, 1) if is_quote_fixed else (1, quote_unit)
            fixed.append(_times(ladder.fixed_before, self.fixed_unit // fixed_own))
            other.append(_times(ladder.other_before, self.other_unit // other_own))
        return fixed, other

    def _in_units(self, amount: int, taken: dict[int, int], segment: int) -> Split | None:
        """Whole units of each maker: parts of a unit are given to the owner of the last segment."""
        unit, last = self.fixed_unit, self._owners[segment]
        whole = taken if unit == 1 else {maker: fixed // unit for maker, fixed in taken.items()}
        if unit != 1:
            whole[last] += amount - sum(whole.values())
        shares = self._filled(whole)
        if shares is None:
            shares = self._rearranged(whole, last)
        if shares is None:
            return None
        return shares, self._rate(segment)

    def _filled(self, whole: dict[int, int]) -> list[Share] | None:
        """By each maker's own book; None where one of them cannot, or would give nothing."""
        shares: list[Share] = []
        for maker, fixed in whole.items():
            if fixed:
                other = self._ladders[maker].walk(fixed)
                if not other:
                    return None
                shares.append((maker, fixed, other))
        shares.sort(key=_largest_first)
        return shares

    def _rearranged(self, whole: dict[int, int], last: int) -> list[Share] | None:
        """Move what brings nothing, and what is beyond somebody's depth, to makers that have room for it."""
        rooms = {maker: self._own_fixed[maker][-1] // self.fixed_unit for maker in whole}
        kept = {maker: min(fixed, rooms[maker]) for maker, fixed in whole.items()}
        kept = {maker: fixed if self._ladders[maker].walk(fixed) else 0 for maker, fixed in kept.items()}
        moved = sum(whole.values()) - sum(kept.values())
        for maker in sorted(kept, key=lambda maker: (-kept[maker], maker != last, maker)):
            more = min(moved, rooms[maker] - kept[maker])
            if self._ladders[maker].walk(kept[maker] + more):
                kept[maker] += more
                moved -= more
        if moved:
            kept = self._enlarged(kept, whole, moved)
        return self._filled(kept) if sum(kept.values()) == sum(whole.values()) else None

    def _enlarged(self, kept: dict[int, int], whole: dict[int, int], moved: int) -> dict[int, int]:
        """Give a maker whose share brought nothing what a unit costs there, taken from the worst prices."""
        for maker, _, other, fixed in self._by_first_price:
            least = -(-fixed // other)
            if not whole.get(maker) or kept[maker] or not self._ladders[maker].walk(least):
                continue
            enlarged, short = {**kept, maker: least}, least - moved
            for payer, *_ in reversed(self._by_first_price):
                if payer != maker and enlarged.get(payer):
                    paid = min(short, enlarged[payer])
                    enlarged[payer] -= paid
                    short -= paid
            if not short and self._filled(enlarged) is not None:
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
            known = version, merge(books, give, side)
            if len(self._kept) >= LADDERS_MAX:
                del self._kept[next(iter(self._kept))]
        self._kept[key] = known
        return known[1]


def merge(books: Iterable[LiveBook], give: bytes, side: Side) -> MergedLadder | None:
    """One ladder of several books of the same two tokens; None where they have no level that way."""
    of_maker: dict[str, LiveBook] = {}
    for live in books:
        other = of_maker.get(live.maker)
        if other is None or (live.liquidity_usd, live.base) > (other.liquidity_usd, other.base):
            of_maker[live.maker] = live
    directed = [DirectedLadder(of_maker[maker], give, side) for maker in sorted(of_maker)]
    ladders = [ladder for ladder in directed if ladder.prices]
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
        fixed_before, other_before = ladder.fixed_before, ladder.other_before
        if wanted > fixed_before[-1]:
            return None
        end = bisect_left(fixed_before, wanted) or 1
        fixed, other = fixed_before[end - 1], other_before[end - 1]
        size, brings = fixed_before[end] - fixed, other_before[end] - other
        unit = size * ladder.other_unit
        exact = other * size + (wanted - fixed) * brings
        amount = exact // unit if ladder.side is Side.SELL else -(-exact // unit)
        numerator *= brings * ladder.fixed_unit
        denominator *= unit
    return amount, numerator, denominator


def steps(sums: Sequence[int]) -> list[int]:
    """What is added from each sum to the next."""
    return [*map(sub, islice(sums, 1, None), sums)]


def _best_first(
    ladders: Sequence[DirectedLadder], fixed_sizes: list[int], other_sizes: list[int], side: Side
) -> list[int]:
    """Segments by price; of the same price, one maker's after another's."""
    if len({ladder.is_direct for ladder in ladders}) > 1:
        better = -1 if side is Side.SELL else 1
        sizes = zip(fixed_sizes, other_sizes, strict=True)
        rates = [Fraction(better * other, fixed) for fixed, other in sizes]
        return sorted(range(len(rates)), key=rates.__getitem__)
    finest = max(ladder.quote_scale for ladder in ladders)
    keys: list[int] = []
    for ladder in ladders:
        factor = POWERS_OF_TEN[finest - ladder.quote_scale] * (-1 if ladder.is_direct else 1)
        keys.extend([price * factor for price in ladder.prices])
    return sorted(range(len(keys)), key=keys.__getitem__)


def _times(sums: tuple[int, ...], factor: int) -> Sequence[int]:
    return sums if factor == 1 else [each * factor for each in sums]


def _largest_first(share: Share) -> tuple[int, int]:
    return -share[1], share[0]


def _walk_of(ladder: Ladder, *, is_direct: bool, side: Side) -> Callable[[int], int | None]:
    sells, buys = (
        (fill.quote_received, fill.base_paid) if is_direct else (fill.base_received, fill.quote_paid)
    )
    return partial(sells if side is Side.SELL else buys, ladder)
