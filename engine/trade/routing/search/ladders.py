"""Merges the books of all makers between two tokens, in one direction, into one sorted ladder. Pure.

A ladder is a list of price levels (segments), each an amount of one token against an amount of the other,
sorted by price over all makers, with prefix sums. For a fixed amount, a binary search and a division give the
best amount of the other token, and each maker's share.

    SELL   `fixed` is the token given, `other` the token received; a fill rounds the received amount down
    BUY    `fixed` is the token received, `other` the token given; a fill rounds the paid amount up

The sums are integers: of the fixed token in 1 / fixed_unit raw units, of the other in 1 / other_unit, fine
enough that no level is rounded. A maker's share is in whole raw units, and equals a fill of that maker's book
alone (`feeds.books.fill`); a split is therefore never better than the sums, and worse by less than a unit of
each of the two tokens per maker. Each share but one is rounded down; the fractions of a unit that this leaves
go to the maker of the amount's last unit, at that maker's price. A share that would bring zero goes to other
makers, or, if these are full, grows until it brings a unit, at the expense of the shares at the worst prices.

A maker with books of the pair in both directions takes part with the book of the greater `liquidityUSD`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import islice
from operator import itemgetter

from msgspec import Struct

from .....codecs.amounts import POWERS_OF_TEN
from .....codecs.messages.vocabulary import Side
from .....feeds.books.pair_index import LiveBook, PairIndex
from .directed import FIXED, RATE_BITS, Averages, DirectedLadder, Units, fits, has_levels, rate_key, units_of
from .envelope import Envelope, weighed

LADDERS_MAX = 512  # cached directions: 50 MB at 20 makers of 20 levels

LadderShare = tuple[int, int, int]  # maker's number, fixed amount, other amount
LadderRate = tuple[int, int]  # raw units of the other token, for raw units of the fixed token
LadderCut = tuple[dict[int, int], int, int, int]
"""Levels that fill an amount: maker -> number of its whole levels; the maker of the rest; the rest, in
1 / fixed_unit raw units; the other amount, in 1 / other_unit raw units.
"""
_fixed_of, _other_of = itemgetter(1), itemgetter(2)  # of a share


class MakerFilter(Struct, frozen=True):
    """Filter of the makers that a route may use, by name.

    Attributes:
        only: names of the allowed makers; None for all makers.
        without: names of excluded makers.
    """

    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    def lets(self, maker: str) -> bool:
        """Whether the filter allows the use of a maker in a route."""
        return maker not in self.without and (self.only is None or maker in self.only)


ANYBODY = MakerFilter()


class LevelOrder:
    """Sort order, best rate first, of the price levels of several makers' books in one trade direction.

    A level is called a segment once it is sorted; levels are sorted only up to the largest amount requested
    so far. SELL and BUY share the sort order.

    Args:
        ladders: makers' books in one direction, each with a level, sorted by maker's name, all in `units`.
        books: the books that the ladders were chosen from.
        firsts: (rate key, maker, level index 0) of each ladder's first level, sorted.

    Attributes:
        makers: names of the makers, sorted; other fields refer to a maker by its index here.
        owners, levels: for each segment, its maker, and the number of this maker's segments up to and
            including it.
        sums: prefix sums over the sorted segments, at least the first: (of the amounts given, of the amounts
            received).
        depths: (amount given, amount received) by all levels together.
        changed: makers whose books differ from those of the sort order that this one was made from.
    """

    def __init__(
        self,
        ladders: Sequence[DirectedLadder],
        units: Units,
        books: Sequence[LiveBook],
        makers: tuple[str, ...],
        firsts: list[tuple[int, int, int]],
        depths: tuple[int, int],
        changed: Collection[int] = (),
    ) -> None:
        self.ladders = ladders
        self.units = units
        self.books = books
        self.makers = makers
        self.firsts = firsts
        self.depths = depths
        self.changed = changed
        self.owners: list[int] = []
        self.levels: list[int] = []
        self.sums: tuple[list[int], list[int]] = [0], [0]
        self._next = firsts.copy()  # sorted, so a heap
        self.reach(0, 1)

    @classmethod
    def of(cls, ladders: Sequence[DirectedLadder], units: Units, books: Sequence[LiveBook]) -> "LevelOrder":
        """Create the sort order of makers' price levels; only the best level is sorted as yet."""
        firsts = sorted([(ladder.keys[0], maker, 0) for maker, ladder in enumerate(ladders)])
        given, received = (sum([ladder.sums[token][-1] for ladder in ladders]) for token in (0, 1))
        return cls(
            ladders, units, books, tuple([each.live.maker for each in ladders]), firsts, (given, received)
        )

    def with_books(self, books: Sequence[LiveBook], give: bytes) -> "LevelOrder | None":
        """Return a new sort order for the same makers, which reuses the parts of unchanged books.

        The result is None if the makers or base tokens differ, a maker has two books, or a book has no levels
        or needs finer units.

        Args:
            books: present books, in the sequence of the earlier books; unchanged books are the same objects.
            give: token given, 20 bytes.
        """
        if not len(books) == len(self.books) == len(self.ladders):
            return None
        ladders, firsts, (given, received) = [*self.ladders], self.firsts, self.depths
        changed: list[int] = []
        for old, live in zip(self.books, books, strict=True):
            if live is old:
                continue
            is_alike = (live.maker, live.base) == (old.maker, old.base)
            if not is_alike or not has_levels(live, give) or not fits(live, give, self.units):
                return None
            maker = self.makers.index(live.maker)
            changed.append(maker)
            before, after = ladders[maker], DirectedLadder(live, give, self.units)
            ladders[maker] = after
            given += after.sums[0][-1] - before.sums[0][-1]
            received += after.sums[1][-1] - before.sums[1][-1]
            firsts = sorted([first for first in firsts if first[1] != maker] + [(after.keys[0], maker, 0)])
        return LevelOrder(ladders, self.units, books, self.makers, firsts, (given, received), changed)

    def reach(self, token: int, wanted: int) -> None:
        """Sort price levels, best first, until the sorted levels hold an amount.

        Args:
            token: token of the amount: 0 the token given, 1 the token received.
            wanted: the amount in `units`, at most the depth of all books.
        """
        upcoming, ladders, owners, levels = self._next, self.ladders, self.owners, self.levels
        given_sums, received_sums = self.sums
        given, received = given_sums[-1], received_sums[-1]
        while (received if token else given) < wanted:
            _, maker, level = upcoming[0]
            ladder = ladders[maker]
            after = level + 1
            if after < len(ladder.keys):
                heapreplace(upcoming, (ladder.keys[after], maker, after))
            else:
                heappop(upcoming)
            gives, gets = ladder.sums
            given += gives[after] - gives[level]
            received += gets[after] - gets[level]
            owners.append(maker)
            levels.append(after)
            given_sums.append(given)
            received_sums.append(received)


class MergedLadder:
    """Price levels of several makers' books merged into one ladder, for selling or for buying.

    A split that is one share is of a maker that no other maker alone surpasses.

    The fixed token, whose amount a swap fixes, is the token given for SELL and the token received for BUY.
    The other token is the token received for SELL and the token given for BUY.

    Attributes:
        makers: names of the makers, sorted; shares refer to a maker by its index here.
        fixed_unit, other_unit: the prefix sums count the fixed token in 1 / fixed_unit raw units, and the
            other token in 1 / other_unit raw units.
        depth: amount of the fixed token in all price levels together, in 1 / fixed_unit raw units.
        fixed_before, other_before: prefix sums over the levels sorted so far: entry n is the amount of the
            fixed token, and of the other token, in the best n levels. Entries 0 and 1 always exist.
        first_rate: rate of the best level, other token per fixed token.
    """

    def __init__(self, order: LevelOrder, side: Side, before: "MergedLadder | None" = None) -> None:
        self.order = order
        self.side = side
        self.makers = order.makers
        self._fixed = fixed = FIXED[side]
        self._other = other = 1 - fixed
        self.fixed_unit = POWERS_OF_TEN[order.units.scales[fixed]]
        self.other_unit = POWERS_OF_TEN[order.units.scales[other]]
        self.depth = order.depths[fixed]
        self.fixed_before, self.other_before = order.sums[fixed], order.sums[other]
        self.first_rate: LadderRate = (
            self.other_before[1] * self.fixed_unit,
            self.fixed_before[1] * self.other_unit,
        )
        self._envelope: Envelope | None = None
        self._earlier: tuple[Envelope, frozenset[int]] | None = None  # and the makers that changed since
        if before is None:
            self._averages = Averages(order.ladders, fixed)
        else:
            self._averages = before._averages.renewed(order.ladders, order.changed)
            if before._envelope is not None:
                self._earlier = before._envelope, frozenset(order.changed)
            elif before._earlier is not None:
                envelope, changed = before._earlier
                self._earlier = envelope, changed.union(order.changed)

    def best_split(self, amount: int) -> list[LadderShare] | None:
        """Compute the best split of an amount among all makers, ignoring gas; None beyond their depth.

        Args:
            amount: raw units of the token given (SELL) or received (BUY).
        """
        wanted = amount * self.fixed_unit
        if wanted <= 0 or not self.reaches(wanted):
            return None
        segment = bisect_left(self.fixed_before, wanted) - 1
        return self._in_units(amount, self._taken(segment), self.order.owners[segment])

    def split_after_gas(self, amount: int, fill_cost: int) -> list[LadderShare] | None:
        """Compute the best split of an amount among makers if each fill costs gas; None beyond their depth.

        The split is the best over all subsets of makers, or worse by less than a fill's gas and rounding. The
        candidates are the splits with and without the maker of the amount's last unit, and, if at most one
        maker comes before the last unit, the best single maker.

        Args:
            amount: raw units of the token given (SELL) or received (BUY).
            fill_cost: gas cost of a fill, raw units of the other token.
        """
        wanted = amount * self.fixed_unit
        if not 0 < wanted <= self.depth:
            return None
        taken, other, last, rest = self._after_gas(fill_cost).up_to(wanted)
        if last in taken:  # each maker used is worth its whole gas: no other choice is better, see `envelope`
            sums = self.order.ladders[last].sums
            rest += sums[self._fixed][taken[last]]
            other -= sums[self._other][taken[last]]
            split = self._in_units(amount, taken, last)
            if split is not None:
                return split
        # The amount takes only a part of `last`'s first levels, which may not be worth the gas of that fill;
        # or a share would have been zero. In both cases `taken` is without `last` here (`_in_units`).
        choices = [
            (self._net(cut[3] // self.other_unit, len(cut[0]) + (cut[1] not in cut[0]), fill_cost), cut)
            for cut in (self._with(taken, other, last, rest), self._onward(taken, other, rest))
            if cut is not None
        ]
        choices.sort(key=itemgetter(0), reverse=True)
        # Two makers in `taken` are each worth their whole gas: then no single maker is better than both.
        bound = self.bound_of_singles(amount) if len(taken) <= 1 else None
        may_gain = bound is not None and self._net(bound, 1, fill_cost) >= choices[0][0]
        single = self.best_single(amount) if may_gain else None
        net = None if single is None else self._net(single[0][2], 1, fill_cost)
        for reached, (others, marginal, _, _) in choices:
            if net is not None and net >= reached:  # `reached` is not rounded, so that the single is no worse
                break
            split = self._in_units(amount, others, marginal)
            if split is not None:
                return split
        return single or self.best_split(amount)

    def bound_after_gas(self, amount: int, fill_cost: int) -> tuple[int, LadderRate] | None:
        """Bound on what an amount brings (SELL) at most or costs (BUY) at least, if fills cost gas.

        Args:
            amount, fill_cost: as in `split_after_gas`.

        Returns:
            (raw units of the other token after `weighed(fill_cost)` for each fill, rate after gas of the
            amount's last unit); None beyond the makers' depth. The bound is concave in the amount (convex
            for BUY).
        """
        wanted, unit = amount * self.fixed_unit, self.other_unit
        if not 0 < wanted <= self.depth:
            return None
        bound, net, size = self._after_gas(fill_cost).bound(wanted)
        bound = -(-bound // unit) if self.side is Side.SELL else bound // unit
        return bound, (net * self.fixed_unit, size * unit)

    def _after_gas(self, fill_cost: int) -> Envelope:
        cost = weighed(fill_cost) * self.other_unit
        if self._envelope is None or self._envelope.fill_cost != cost:
            before, changed = self._earlier or (None, frozenset[int]())
            if before is not None and before.fill_cost != cost:
                before = None
            self._envelope = Envelope(self.order.ladders, self._fixed, cost, before, changed)
            self._earlier = None
        return self._envelope

    def _onward(self, taken: Mapping[int, int], other: int, rest: int) -> LadderCut | None:
        """Take a further amount from the next levels of makers, best first; None beyond their depth.

        Args:
            taken: maker -> number of its levels that are taken before.
            other: what these bring (SELL) or cost (BUY), in 1 / other_unit raw units.
            rest: the further amount, in 1 / fixed_unit raw units of the token given (SELL) or received (BUY).
        """
        ladders, levels = self.order.ladders, {**taken}
        upcoming = [
            (ladders[maker].keys[level], maker, level)
            for maker, level in taken.items()
            if level < len(ladders[maker].keys)
        ]
        heapify(upcoming)
        while upcoming:
            _, maker, level = upcoming[0]
            ladder = ladders[maker]
            fixeds, others = ladder.sums[self._fixed], ladder.sums[self._other]
            after = level + 1
            size, brings = fixeds[after] - fixeds[level], others[after] - others[level]
            if size >= rest:
                return levels, maker, rest, other + rest * brings // size
            levels[maker] = after
            rest -= size
            other += brings
            if after < len(ladder.keys):
                heapreplace(upcoming, (ladder.keys[after], maker, after))
            else:
                heappop(upcoming)
        return None

    def _with(self, taken: Mapping[int, int], other: int, maker: int, amount: int) -> LadderCut:
        """Select the best levels for what makers have taken and for an amount that one more maker takes.

        Levels of the others that are worse than the maker's next levels are given to it, the worst first.

        Args:
            taken, other: as for `_onward`.
            amount: within the maker's depth, in 1 / fixed_unit raw units of the token given (SELL) or
                received (BUY).
        """
        ladders, levels = self.order.ladders, {**taken}
        keys, sums, others = ladders[maker].keys, *self._sums(maker)
        while True:
            own = bisect_left(sums, amount) - 1
            theirs = [(ladders[each].keys[at - 1], each, at - 1) for each, at in levels.items()]
            if not theirs or (worst := max(theirs)) < (keys[own], maker, own):
                levels[maker] = own
                rest, size = amount - sums[own], sums[own + 1] - sums[own]
                other += others[own] + rest * (others[own + 1] - others[own]) // size
                return levels, maker, rest, other
            key, each, at = worst
            better = (bisect_right if maker < each else bisect_left)(keys, key)  # than the worst
            their_sums, their_others = self._sums(each)
            size, room = their_sums[at + 1] - their_sums[at], sums[better] - amount
            brings = their_others[at + 1] - their_others[at]
            levels[each] = at
            if not at:
                del levels[each]
            if size > room:
                levels[maker] = better
                rest = size - room
                return levels, each, rest, other - brings + others[better] + rest * brings // size
            amount += size
            other -= brings

    def _sums(self, maker: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return prefix sums of a maker's levels: (of the fixed token, of the other token)."""
        sums = self.order.ladders[maker].sums
        return sums[self._fixed], sums[self._other]

    def best_single(self, amount: int) -> list[LadderShare] | None:
        """Return the share of the maker that fills an amount alone at the best rate; None if no maker can.

        Args:
            amount: raw units of the token given (SELL) or received (BUY).
        """
        wanted = amount * self.fixed_unit
        if not wanted:
            return None
        least, averages = self._averages_at(wanted)
        other = self._alone(averages.index(least), wanted)
        # A maker that brings as much, or costs as little, has an average rate at the octave that is no worse.
        bar = 0
        if other:
            reached = other * self.other_unit
            bar = rate_key(reached, wanted) if self.side is Side.SELL else rate_key(wanted, reached)
        best: tuple[int, int, int] | None = None  # worse for more paid or less received; first rate; maker
        for maker in [maker for maker, key in enumerate(averages) if key <= bar]:
            other = self._alone(maker, wanted)
            if other:
                worse = -other if self.side is Side.SELL else other
                row = worse, self.order.ladders[maker].keys[0], maker
                best = row if best is None else min(best, row)
        return None if best is None else [(best[2], amount, abs(best[0]))]

    def bound_of_singles(self, amount: int) -> int | None:
        """Bound on what one maker alone brings (SELL) at most or costs (BUY) at least; None if none can fill.

        The bound holds for a smaller amount (SELL) and for a larger one (BUY), too.

        Args:
            amount: raw units of the token given (SELL) or received (BUY).
        """
        wanted = amount * self.fixed_unit
        key, _ = self._averages_at(wanted)
        if self.side is Side.SELL:
            return (wanted * -key >> RATE_BITS) // self.other_unit
        return -(-(wanted << RATE_BITS) // (-key * self.other_unit)) if key else None

    def _averages_at(self, wanted: int) -> tuple[int, list[int]]:
        """Return (the best, each maker's) average rate of the largest power of two up to `wanted`."""
        return self._averages.at(1 << wanted.bit_length() - 1)

    def _alone(self, maker: int, wanted: int) -> int:
        """Compute what a maker alone brings (SELL) or costs (BUY), raw units; 0 beyond the maker's depth.

        Args:
            wanted: in 1 / fixed_unit raw units of the token given (SELL) or received (BUY).
        """
        fixeds, others = self._sums(maker)
        if wanted > fixeds[-1]:
            return 0
        level = bisect_left(fixeds, wanted) - 1
        fixed, other = fixeds[level], others[level]
        size = fixeds[level + 1] - fixed
        exact, unit = other * size + (others[level + 1] - other) * (wanted - fixed), size * self.other_unit
        # Rounded as in `feeds.books.fill`, for the maker: the share has to equal the maker's fill.
        return exact // unit if self.side is Side.SELL else -(-exact // unit)

    def reaches(self, wanted: int) -> bool:
        """Whether the makers' books together hold an amount; the call sorts price levels up to that amount.

        Args:
            wanted: the amount, in 1 / fixed_unit raw units of the token given (SELL) or received (BUY).
        """
        if wanted <= self.fixed_before[-1]:
            return True
        if wanted > self.depth:
            return False
        self.order.reach(self._fixed, wanted)
        return True

    def _walk(self, maker: int, amount: int) -> int | None:
        """Compute from a maker's book the amount received (SELL) or paid (BUY) for a fixed amount.

        Both amounts are in raw units; the result is None beyond the book's depth.
        """
        return self.order.ladders[maker].walks[self._fixed](amount)

    def _net(self, other: int, fills: int, fill_cost: int) -> int:
        """Compute the worth of a split after gas: the amount received (SELL) or minus the amount paid (BUY).

        Args:
            other: the amount received or paid, raw units.
            fills: number of makers' fills in the split.
            fill_cost: gas cost of a fill, in raw units of the same token.
        """
        return (other if self.side is Side.SELL else -other) - fill_cost * fills

    def _taken(self, segment: int) -> dict[int, int]:
        """Count each maker's levels among the first `segment` sorted levels: maker -> count."""
        return dict(zip(islice(self.order.owners, segment), self.order.levels, strict=False))

    def _in_units(self, amount: int, taken: dict[int, int], last: int) -> list[LadderShare] | None:
        """Divide an amount among makers in whole raw units; None if a share of zero cannot be avoided.

        A share that would yield zero of the other token is moved to other makers or enlarged.

        Args:
            amount: raw units of the fixed token.
            taken: maker -> number of its levels that are used; the method removes `last` from it.
            last: the maker that takes the remaining amount.
        """
        taken.pop(last, None)
        ladders, token, left = self.order.ladders, self._fixed, amount
        shares: list[LadderShare] = []
        for maker, level in taken.items():
            fills = ladders[maker].fills[token]
            fill = fills.get(level)
            if fill is None:
                whole = ladders[maker].sums[token][level] // self.fixed_unit
                fill = fills[level] = whole, self._walk(maker, whole) or 0
            if fill[0]:
                shares.append((maker, *fill))
                left -= fill[0]
        shares.append((last, left, self._walk(last, left) or 0))
        if all(map(_other_of, shares)):
            split: list[LadderShare] | None = _largest_first(shares)
        else:
            whole_of = dict.fromkeys(taken, 0) | {share[0]: share[1] for share in shares}
            split = self._rearranged(whole_of, last)
        # A maker left alone, as the others' shares bring nothing, need not be the best one alone.
        return self.best_single(amount) if taken and split and len(split) == 1 else split

    def _by_book(self, whole: dict[int, int]) -> list[LadderShare] | None:
        """Compute from each maker's own book the amount received (SELL) or paid (BUY) for the maker's share.

        The result is None if a book is not deep enough or an amount is zero.

        Args:
            whole: maker -> raw units of the fixed token.
        """
        shares: list[LadderShare] = []
        for maker, fixed in whole.items():
            if fixed:
                other = self._walk(maker, fixed)
                if not other:
                    return None
                shares.append((maker, fixed, other))
        return _largest_first(shares)

    def _rearranged(self, whole: dict[int, int], last: int) -> list[LadderShare] | None:
        """Move amounts that yield zero or exceed a maker's depth to other makers; return the makers' shares.

        The result is None if no such arrangement exists.

        Args:
            whole: maker -> raw units of the fixed token.
            last: maker whose share is enlarged first among shares of equal size.
        """
        ladders = self.order.ladders
        rooms = {maker: ladders[maker].sums[self._fixed][-1] // self.fixed_unit for maker in whole}
        kept = {maker: min(fixed, rooms[maker]) for maker, fixed in whole.items()}
        kept = {maker: fixed if self._walk(maker, fixed) else 0 for maker, fixed in kept.items()}
        moved = sum(whole.values()) - sum(kept.values())
        for maker in sorted(kept, key=lambda maker: (-kept[maker], maker != last, maker)):
            more = min(moved, rooms[maker] - kept[maker])
            if self._walk(maker, kept[maker] + more):
                kept[maker] += more
                moved -= more
        if moved:
            kept = self._enlarged(kept, whole, moved)
        return self._by_book(kept) if sum(kept.values()) == sum(whole.values()) else None

    def _enlarged(self, kept: dict[int, int], whole: dict[int, int], moved: int) -> dict[int, int]:
        """Give one maker whose share would yield zero the least amount that yields a raw unit.

        The amount consists of `moved`, and of parts of the shares at the worst prices. The result is `kept`
        unchanged if no maker can take so much, or the other shares have too little.

        Args:
            kept: maker -> raw units of the fixed token; 0 for a share that would yield zero.
            whole: maker -> raw units of the fixed token before amounts were moved between makers.
            moved: raw units of `whole` that no maker of `kept` could take.
        """
        by_first_rate = [maker for _, maker, _ in self.order.firsts]
        for maker in by_first_rate:
            sums = self.order.ladders[maker].sums
            fixed, other = sums[self._fixed][1] * self.other_unit, sums[self._other][1] * self.fixed_unit
            least = -(-fixed // other)  # rounded up: less would bring no whole unit at the maker's best level
            if not whole.get(maker) or kept[maker] or not self._walk(maker, least):
                continue
            enlarged, short = {**kept, maker: least}, least - moved
            for payer in reversed(by_first_rate):  # the worst best level first
                if payer != maker and enlarged.get(payer):
                    paid = min(short, enlarged[payer])
                    enlarged[payer] -= paid
                    short -= paid
            # A payer may be left with an amount that brings no unit: `_by_book` is None then.
            if not short and self._by_book(enlarged) is not None:
                return enlarged
        return kept


class Ladders:
    """Cache of one chain's merged ladders: the price levels of all makers for two tokens, sorted by rate.

    The cache keeps a ladder per trade direction and maker filter, rebuilds it after a book of the two tokens
    has changed, and drops the least recently used ladder first.
    """

    def __init__(self, index: PairIndex) -> None:
        self._index = index
        self._kept: dict[object, tuple[int, dict[Side, MergedLadder]]] = {}

    def merged(self, give: bytes, get: bytes, side: Side, makers: MakerFilter) -> MergedLadder | None:
        """Return the merged ladder of all makers that a filter allows; None if no maker has a price level.

        Args:
            give: token given, 20 bytes.
            get: token received, 20 bytes.
        """
        key = (give, get) if makers is ANYBODY else (give, get, makers)
        version = self._index.pair_version(give, get)
        known = self._kept.pop(key, None)
        if known is None or known[0] != version:
            books: Iterable[LiveBook] = self._index.between(give, get).values()
            if makers is not ANYBODY:
                books = (live for live in books if makers.lets(live.maker))
            known = version, merge(books, give, None if known is None else known[1])
            if len(self._kept) >= LADDERS_MAX:
                del self._kept[next(iter(self._kept))]
        self._kept[key] = known
        return known[1].get(side)


def book_of_each(books: Iterable[LiveBook]) -> dict[str, LiveBook]:
    """Map each maker to the book with which it takes part in routes between two tokens.

    A maker may have books of the pair in both directions: the book of the greater `liquidityUSD` counts.

    Args:
        books: the books between the two tokens.
    """
    of_maker: dict[str, LiveBook] = {}
    for live in books:
        other = of_maker.setdefault(live.maker, live)
        if other is not live and (live.liquidity_usd, live.base) > (other.liquidity_usd, other.base):
            of_maker[live.maker] = live
    return of_maker


def merge(
    books: Iterable[LiveBook], give: bytes, before: Mapping[Side, MergedLadder] | None = None
) -> dict[Side, MergedLadder]:
    """Merge several makers' books of the same two tokens into one ladder for SELL and one for BUY.

    The result is empty if no book has a price level at which the maker takes the token `give`.

    Args:
        before: earlier ladders of the same tokens and direction; the parts of unchanged books are reused.
    """
    books = tuple(books)
    if before:
        order = before[Side.SELL].order.with_books(books, give)
        if order is not None:
            return {side: MergedLadder(order, side, before[side]) for side in Side}
    of_maker = book_of_each(books)
    chosen = [of_maker[maker] for maker in sorted(of_maker)]
    chosen = [live for live in chosen if has_levels(live, give)]
    if not chosen:
        return {}
    units = units_of(chosen, give)
    order = LevelOrder.of([DirectedLadder(live, give, units) for live in chosen], units, books)
    return {side: MergedLadder(order, side) for side in Side}


def through(ladders: Iterable[MergedLadder], amount: int) -> tuple[int, int, int] | None:
    """Compute the amount received (SELL) or paid (BUY) for an amount over all hops of a path.

    The computation takes each hop as a single fill of its merged ladder, not as a fill per maker.

    Args:
        ladders: ladder of each hop of a path: from the source on for SELL, from the destination back for BUY.
        amount: raw units of the source token (SELL) or of the destination token (BUY).

    Returns:
        (amount received or paid, raw units; numerator and denominator of the last unit's rate: destination
            per source for SELL, source per destination for BUY); None if a hop is not deep enough. An amount
            of 0 gives 0, at the best rate.
    """
    numerator = denominator = 1
    for ladder in ladders:
        wanted = amount * ladder.fixed_unit
        if not ladder.reaches(wanted):
            return None
        fixed_before, other_before = ladder.fixed_before, ladder.other_before
        end = bisect_left(fixed_before, wanted) or 1  # an amount of 0 takes its rate from the best level
        fixed, other = fixed_before[end - 1], other_before[end - 1]
        size, brings = fixed_before[end] - fixed, other_before[end] - other
        unit = size * ladder.other_unit
        exact = other * size + (wanted - fixed) * brings
        # Rounded as one fill is. Makers' fills are rounded each, and sum up to no better amount: the result
        # stays a bound, by which `pathfinder` drops paths.
        amount = exact // unit if ladder.side is Side.SELL else -(-exact // unit)
        numerator *= brings * ladder.fixed_unit
        denominator *= unit
    return amount, numerator, denominator


def _largest_first(shares: list[LadderShare]) -> list[LadderShare]:
    shares.sort()
    shares.sort(key=_fixed_of, reverse=True)
    return shares
