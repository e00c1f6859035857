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

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
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
        by_first_rate: indices of the ladders, ordered by the rate of their first level, best first.
        fixed: token whose amount is fixed: 0 the token given (SELL), 1 the token received (BUY).
        fill_cost: gas cost of a fill, in the ladders' units of the other token, rounded by `weighed`.
    """

    def __init__(
        self, ladders: Sequence[DirectedLadder], by_first_rate: Sequence[int], fixed: int, fill_cost: int
    ) -> None:
        self.fill_cost = fill_cost
        self._ladders = ladders
        self._fixed = fixed
        self._owners: list[int] = []
        self._levels: list[int] = []  # per part, the level of the owner's ladder at which the part ends
        self._fixed_before = [0]
        self._net_before = [0]  # of the other token after gas: received less gas (SELL), paid and gas (BUY)
        self._unseen = deque(by_first_rate)
        self._next: list[tuple[int, int, int]] = []  # a heap: key, maker, the level at which its part ends
        self._reached = [0] * len(ladders)  # per maker, the level up to which its parts are sorted

    def up_to(self, wanted: int) -> tuple[dict[int, int], int, int]:
        """Return the makers that fill an amount at the best rates after gas.

        Args:
            wanted: the amount, above zero and within the depth, in the ladders' units of the fixed token.

        Returns:
            (maker -> number of its top levels that the amount uses in full, maker whose levels hold the last
                unit of the amount, rest of the amount on these levels); makers are indices of `ladders`.
        """
        self._reach(wanted)
        part = bisect_left(self._fixed_before, wanted) - 1
        taken = dict(zip(islice(self._owners, part), self._levels, strict=False))
        return taken, self._owners[part], wanted - self._fixed_before[part]

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
        upcoming, reached, total = self._next, self._reached, self._fixed_before[-1]
        net, gas = self._net_before[-1], self.fill_cost if self._fixed else -self.fill_cost
        while total < wanted:
            self._admit()
            _, maker, level = upcoming[0]
            ladder = self._ladders[maker]
            before = reached[maker]
            sums, others = ladder.sums[self._fixed], ladder.sums[1 - self._fixed]
            total += sums[level] - sums[before]
            net += others[level] - others[before] + (0 if before else gas)
            self._owners.append(maker)
            self._levels.append(level)
            self._fixed_before.append(total)
            self._net_before.append(net)
            reached[maker] = level
            if level < len(ladder.keys):
                heapreplace(upcoming, (ladder.keys[level], maker, level + 1))
            else:
                heappop(upcoming)

    def _admit(self) -> None:
        """Queue the first parts of makers whose first level has a better rate than the queue's best part.

        A first part is the top levels of a book that together have the best average rate after gas.
        """
        unseen, upcoming = self._unseen, self._next
        while unseen:
            ladder = self._ladders[unseen[0]]
            if upcoming and upcoming[0][0] <= ladder.keys[0]:
                return
            known = ladder.first_parts[self._fixed]
            if known is None or known[0] != self.fill_cost:
                known = ladder.first_parts[self._fixed] = (self.fill_cost, *self._first_part(ladder))
            heappush(upcoming, (known[1], unseen.popleft(), known[2]))

    def _first_part(self, ladder: DirectedLadder) -> tuple[int, int]:
        """Find the top levels of a maker's book that have the best average rate after the gas of a fill.

        Returns:
            (sort key of the rate, number of these levels).
        """
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
        return best, level


def weighed(fill_cost: int) -> int:
    """Round a fill's gas cost down to _COST_BITS significant bits, so that small changes have no effect."""
    finer = max(fill_cost.bit_length() - _COST_BITS, 0)
    return fill_cost >> finer << finer
