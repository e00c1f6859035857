"""Which makers are worth their fill, by the amount that they share. Pure.

A fill costs the same whatever its size. What a maker is to be taken for first is the part of its book whose
average, the fill included, is best: below it the fill weighs too much, beyond it each level stands for
itself. Such parts and levels of all makers, put in order, are the best that all of them could give if a fill
could be paid in proportion to its part: nothing that is possible is better.

So for an amount, whoever stands before it earns its fill. If its last unit belongs to one of these, they are
the best choice of makers there is; else it falls into somebody's first part, and the choice with that maker
is off by less than one fill, and by the part of the fills' cost by which `weighed` is.

Source: the fixed-charge problem's Lagrangian relaxation.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from itertools import islice

from .directed import DirectedLadder, rate_key

_COST_BITS = 6  # of the cost of a fill, as it is weighed here: for a while it stays the same


class Envelope:
    """All makers' parts in order, as far as amounts reach.

    Args:
        ladders: of the same units.
        by_first_rate: their numbers, the best first level first.
        fixed: 0 where amounts are of what is given, 1 of what is received.
        fill_cost: of one fill, in units of their other token, as `weighed` says.
    """

    def __init__(
        self, ladders: Sequence[DirectedLadder], by_first_rate: Sequence[int], fixed: int, fill_cost: int
    ) -> None:
        self.fill_cost = fill_cost
        self._ladders = ladders
        self._fixed = fixed
        self._owners: list[int] = []
        self._levels: list[int] = []  # of the owner's ladder, this part with them
        self._fixed_before = [0]
        self._unseen = deque(by_first_rate)
        self._next: list[tuple[int, int, int]] = []  # a heap: key, maker, the level up to which its part goes
        self._reached = [0] * len(ladders)  # per maker, the level up to which it is in order

    def up_to(self, wanted: int) -> tuple[dict[int, int], int]:
        """(maker that stands before an amount -> the level up to which it does, the last unit's maker).

        Args:
            wanted: above zero and within the depth, in units of the fixed token.
        """
        if wanted > self._fixed_before[-1]:
            self._reach(wanted)
        part = bisect_left(self._fixed_before, wanted) - 1
        return dict(zip(islice(self._owners, part), self._levels, strict=False)), self._owners[part]

    def _reach(self, wanted: int) -> None:
        upcoming, reached, total = self._next, self._reached, self._fixed_before[-1]
        while total < wanted:
            self._admit()
            _, maker, level = upcoming[0]
            ladder = self._ladders[maker]
            sums = ladder.sums[self._fixed]
            total += sums[level] - sums[reached[maker]]
            self._owners.append(maker)
            self._levels.append(level)
            self._fixed_before.append(total)
            reached[maker] = level
            if level < len(ladder.keys):
                heapreplace(upcoming, (ladder.keys[level], maker, level + 1))
            else:
                heappop(upcoming)

    def _admit(self) -> None:
        """At all makers whose first level alone is better than the next part of those who were looked at."""
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
        """(its key, the level up to which it goes)."""
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
    """A cost of a fill, to the sixty-fourth part: who is worth it hardly depends on less."""
    finer = max(fill_cost.bit_length() - _COST_BITS, 0)
    return fill_cost >> finer << finer
