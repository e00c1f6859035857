"""Accounts whose reads are paused; each is read alone when its pause ends. Pure.

    add     pause an account for a number of seconds, or, after a failed read, twice as long as the last time
    take    return an account whose pause is over; the caller then adds it again, or drops it

Source: ARCHITECTURE.md, "Funds"; choices.md#delta-orders.
"""

import heapq
import math
from typing import Generic, TypeVar

from ....config.timeouts import FUNDS_PAUSE_S, FUNDS_RECHECK_S

Account = TypeVar("Account", bound=tuple[bytes, ...])
"""Key of an account that funds orders: (token, owner), possibly with further parts."""


class Apart(Generic[Account]):
    """Set of accounts whose reads are paused. Times are seconds of the caller's clock."""

    def __init__(self) -> None:
        self._rests: dict[Account, tuple[float, float]] = {}  # (end of the rest, its length)
        self._due: list[tuple[float, Account]] = []  # a heap; only an account's last entry counts

    def __len__(self) -> int:
        """Number of accounts whose reads are paused."""
        return len(self._rests)

    def __contains__(self, account: Account) -> bool:
        """Whether the reads of an account are paused."""
        return account in self._rests

    def add(self, account: Account, now_s: float, rest_s: float = 0.0) -> None:
        """Pause the reads of an account, from now on.

        Args:
            rest_s: length of the pause, seconds. The default 0 is for an account that could not be read: its
                first pause lasts FUNDS_PAUSE_S, each further one twice as long as the account's last pause,
                up to FUNDS_RECHECK_S.
        """
        _, rested_s = self._rests.get(account, (0.0, 0.0))
        if not rest_s:
            rest_s = min(2 * rested_s, FUNDS_RECHECK_S) if rested_s else FUNDS_PAUSE_S
        self._rests[account] = now_s + rest_s, rest_s
        heapq.heappush(self._due, (now_s + rest_s, account))

    def drop(self, account: Account) -> None:
        """End the pause of an account that was read, or that need not be read any more."""
        self._rests.pop(account, None)

    def next_s(self) -> float:
        """Return the time at which the next pause ends, seconds; infinity if no account is paused."""
        while self._due and self._rests.get(self._due[0][1], (None,))[0] != self._due[0][0]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else math.inf

    def take(self, now_s: float) -> Account | None:
        """Return the account whose pause ended first; None if no pause has ended.

        Each pause makes `take` return the account once; the account counts as paused until the caller pauses
        it again (`add`) or ends the pause (`drop`).
        """
        return heapq.heappop(self._due)[1] if self.next_s() <= now_s else None
