"""Selects, for an amount, the makers whose fills are worth the gas that they cost. Pure.

A fill costs the same gas at any size. Each maker's book is cut into parts: the first part is the top levels
whose average rate after the gas of a fill is best, and each further level is a part of its own. The parts of
all makers, sorted by rate after gas, are an upper bound: no choice of makers gives more, because the bound
charges a first part that is used partly only with its share of the gas.

An amount uses the parts in this order. Each maker whose first part is used completely is worth its gas. If
the amount's last unit belongs to a further part of such a maker, these makers are the best choice. Otherwise
the last unit belongs to another maker's first part, and the choice with that maker is worse than the best by
less than a fill's gas and the rounding of `weighed`.

Source: the fixed-charge problem's Lagrangian relaxation.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from heapq import heappop, heappush
from itertools import islice

from .directed import DirectedLadder, rate_key

_COST_BITS = 6  # precision of a fill's cost, so that small changes of gas prices keep the order


class Envelope:
    """Selects, for an amount, the makers whose fills are worth the gas that they cost.

    Each maker's book is cut into parts: first its top levels with the best average rate after gas, then each
    further level. The parts of all makers are sorted by rate after gas, lazily: only up to the largest amount
    requested so far.

    Args:
        ladders: makers' books in one trade direction, all in the same units.
        fixed: token whose amount is fixed: 0 the token given (SELL), 1 the token received (BUY).
        fill_cost: gas cost of a fill, in the ladders' units of the other token, rounded by `weighed`.
        before: envelope of the same makers and the same cost before some of their books changed; None to sort
            the makers anew.
        changed: indices of the ladders that differ from those of `before`.
    """

    def __init__(
        self,
        ladders: Sequence[DirectedLadder],
        fixed: int,
        fill_cost: int,
        before: "Envelope | None" = None,
        changed: Collection[int] = (),
    ) -> None:
        self.fill_cost = fill_cost
        self._ladders = ladders
        self._fixed = fixed
        if before is None:
            # (sort key of the rate, maker, the level at which the first part ends), the best part first
            self._firsts = sorted([self._first_part(maker) for maker in range(len(ladders))])
        else:
            self._firsts = [first for first in before._firsts if first[1] not in changed]
            for maker in changed:
                insort(self._firsts, self._first_part(maker))
        self._begun = 0  # makers whose first parts are sorted into the lists below
        self._owners: list[int] = []
        self._levels: list[int] = []  # per part, the level of the owner's ladder at which the part ends
        self._fixed_before = [0]
        self._net_before = [0]  # of the other token after gas: received less gas (SELL), paid and gas (BUY)
        self._next: list[tuple[int, int, int]] = []  # a heap of further levels, as `_firsts`

    def up_to(self, wanted: int) -> tuple[dict[int, int], int, int, int]:
        """Return the makers that fill an amount at the best rates after gas.

        Args:
            wanted: the amount, above zero and within the depth, in the ladders' units of the fixed token.

        Returns:
            (maker -> number of its top levels that the amount uses in full, what these levels bring or cost
                before gas, maker whose levels hold the last unit of the amount, rest of the amount on these
                levels); makers are indices of `ladders`.
        """
        self._reach(wanted)
        part = bisect_left(self._fixed_before, wanted) - 1
        taken = dict(zip(islice(self._owners, part), self._levels, strict=False))
        gas = len(taken) * self.fill_cost
        other = self._net_before[part] + (-gas if self._fixed else gas)
        return taken, other, self._owners[part], wanted - self._fixed_before[part]

    def bound(self, wanted: int) -> tuple[int, int, int]:
        """Bound on what an amount brings or costs after gas, by any choice of makers.

        Args:
            wanted: as in `up_to`.

        Returns:
            (the bound, in the ladders' units of the other token, rounded up for SELL and down for BUY; the
                rate after gas of the amount's last unit, as other token, for fixed token).
        """
        self._reach(wanted)
        fixeds, nets = self._fixed_before, self._net_before
        after = bisect_left(fixeds, wanted)
        size, net = fixeds[after] - fixeds[after - 1], nets[after] - nets[after - 1]
        exact = nets[after - 1] * size + net * (wanted - fixeds[after - 1])
        return exact // size if self._fixed else -(-exact // size), net, size

    def _reach(self, wanted: int) -> None:
        firsts, upcoming, total, net = self._firsts, self._next, self._fixed_before[-1], self._net_before[-1]
        gas = self.fill_cost if self._fixed else -self.fill_cost
        while total < wanted:
            first = firsts[self._begun] if self._begun < len(firsts) else None
            if first is not None and (not upcoming or first < upcoming[0]):
                _, maker, level = first
                before = 0
                self._begun += 1
                net += gas
            else:
                _, maker, level = heappop(upcoming)
                before = level - 1
            ladder = self._ladders[maker]
            sums, others = ladder.sums[self._fixed], ladder.sums[1 - self._fixed]
            total += sums[level] - sums[before]
            net += others[level] - others[before]
            self._owners.append(maker)
            self._levels.append(level)
            self._fixed_before.append(total)
            self._net_before.append(net)
            if level < len(ladder.keys):
                heappush(upcoming, (ladder.keys[level], maker, level + 1))

    def _first_part(self, maker: int) -> tuple[int, int, int]:
        """Find the top levels of a maker's book that have the best average rate after the gas of a fill.

        Returns:
            (sort key of the rate, maker, number of these levels).
        """
        ladder = self._ladders[maker]
        known = ladder.first_parts[self._fixed]
        if known is not None and known[0] == self.fill_cost:
            return known[1], maker, known[2]
        given, received = ladder.sums
        level = best = 0
        for after in range(1, len(given)):
            if self._fixed:
                key = rate_key(received[after], given[after] + self.fill_cost)
            else:
                key = rate_key(received[after] - self.fill_cost, given[after])
            if level and key >= best:
                break
            best, level = key, after
        ladder.first_parts[self._fixed] = self.fill_cost, best, level
        return best, maker, level


def weighed(fill_cost: int) -> int:
    """Round a fill's gas cost down to _COST_BITS significant bits, so that small changes have no effect."""
    finer = max(fill_cost.bit_length() - _COST_BITS, 0)
    return fill_cost >> finer << finer
