"""Which makers are worth their fill, by the amount that they share. Pure.

A fill costs the same whatever its size. What a maker is to be taken for first is the part of its book whose
average, the fill included, is best: below it the fill weighs too much, beyond it each level stands for
itself. Such parts and levels of all makers, put in order, are the best that all of them could give if a fill
could be paid in proportion to its part: nothing that is possible is better.

So for an amount, whoever stands before it earns its fill. If its last unit belongs to one of these, they are
the best choice of makers there is; else it falls into somebody's first part, and the choice with that maker
is off by less than one fill.

Source: the fixed-charge problem's Lagrangian relaxation.
"""

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

from ....codecs.vocabulary import Side
from .directed import DirectedLadder

_KEY_BITS = 192  # of what averages compare by
_UNSEEN = 0  # the level up to which a maker's next part goes, before it is known


class Envelope:
    """All makers' parts in order, as far as amounts reach.

    Args:
        ladders: of the same units.
        fill_cost: of one fill, in units of their other token.
    """

    def __init__(self, ladders: Sequence[DirectedLadder], side: Side, fill_cost: int) -> None:
        self.fill_cost = fill_cost
        self._ladders = ladders
        self._sign = 1 if side is Side.SELL else -1
        self._owners: list[int] = []
        self._fixed_before = [0]
        self._reached = [0] * len(ladders)  # per maker, the level up to which it is in order
        self._next = [
            (self._key(ladder.other_before[1], ladder.fixed_before[1]), maker, _UNSEEN)
            for maker, ladder in enumerate(ladders)
        ]
        heapify(self._next)

    def up_to(self, wanted: int) -> tuple[set[int], int]:
        """(makers who stand before an amount, the one that its last unit belongs to).

        Args:
            wanted: above zero and within the depth, in units of the fixed token.
        """
        if wanted > self._fixed_before[-1]:
            self._reach(wanted)
        part = bisect_left(self._fixed_before, wanted) - 1
        return set(self._owners[:part]), self._owners[part]

    def _reach(self, wanted: int) -> None:
        upcoming, fixed = self._next, self._fixed_before[-1]
        while fixed < wanted:
            _, maker, level = upcoming[0]
            if level == _UNSEEN:  # until now it stood where its best level would
                heapreplace(upcoming, self._first_part(maker))
                continue
            ladder = self._ladders[maker]
            sums = ladder.fixed_before
            fixed += sums[level] - sums[self._reached[maker]]
            self._owners.append(maker)
            self._fixed_before.append(fixed)
            self._reached[maker] = level
            after = level + 1
            if after < len(sums):
                others = ladder.other_before
                key = self._key(others[after] - others[level], sums[after] - sums[level])
                heapreplace(upcoming, (key, maker, after))
            else:
                heappop(upcoming)

    def _first_part(self, maker: int) -> tuple[int, int, int]:
        ladder = self._ladders[maker]
        paid = self._sign * self.fill_cost
        best, level = self._key(ladder.other_before[1] - paid, ladder.fixed_before[1]), 1
        for after in range(2, len(ladder.fixed_before)):
            key = self._key(ladder.other_before[after] - paid, ladder.fixed_before[after])
            if key >= best:
                break
            best, level = key, after
        return best, maker, level

    def _key(self, other: int, fixed: int) -> int:
        """The better an average, the lower."""
        return (-self._sign * other << _KEY_BITS) // fixed
