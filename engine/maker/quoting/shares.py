"""How several processes divide funds without telling one another what they promised. Pure.

Each of N processes may promise up to its share, floor(funds / N). When funds fall, by a fill or a withdrawal,
promises made under a larger share are still alive; so a process assumes the worst of the others, that each
has promised the largest share of the time that a promise lives:

    mine = min(floor(funds / N), funds - (N - 1) x largest share of that time)

Guarantees: what all processes may promise is never more than the funds, as long as all of them read the
chain more often than funds go up and down again.
"""

from collections import deque


class Share:
    """One process's part of one token's funds.

    Args:
        count: how many processes there are.
        lifetime_s: how long a promise lives at most.
    """

    __slots__ = ("_count", "_largest", "_lifetime_s")

    def __init__(self, count: int, lifetime_s: int) -> None:
        self._count = count
        self._lifetime_s = lifetime_s
        self._largest: deque[tuple[int, int]] = deque()  # (until, share): shares fall from left to right

    def of(self, funds: int, now_s: int) -> int:
        """What this process may promise, given what all of them have; raw units."""
        share = funds // self._count
        largest = self._largest
        while largest and largest[-1][1] <= share:
            largest.pop()
        largest.append((now_s + self._lifetime_s, share))
        while largest[0][0] < now_s:
            largest.popleft()
        return max(0, min(share, funds - (self._count - 1) * largest[0][1]))
