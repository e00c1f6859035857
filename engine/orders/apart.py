"""Accounts that are read in a time of their own, each by itself: they rest. Pure.

    add     it could not be read, though it was asked for alone: it rests, twice as long each time; or it is
            to rest for a given time
    take    one whose rest is over; whoever takes it adds it again, or drops it

Source: ARCHITECTURE.md, "Funds"; choices.md#delta-orders.
"""

import heapq
import math
from typing import Generic, TypeVar

from ...config.timeouts import FUNDS_PAUSE_S, FUNDS_RECHECK_S

Account = TypeVar("Account", bound=tuple[bytes, ...])
"""(token, owner), and what else tells one of their accounts from another."""


class Apart(Generic[Account]):
    """Accounts with a rest of their own. Times are in seconds, of any clock."""

    def __init__(self) -> None:
        self._rests: dict[Account, tuple[float, float]] = {}  # (when it is due, how long it rests)
        self._due: list[tuple[float, Account]] = []  # a heap; an entry that is not the account's last is void

    def __len__(self) -> int:
        """How many."""
        return len(self._rests)

    def __contains__(self, account: Account) -> bool:
        """Whether an account is read alone, in its own time."""
        return account in self._rests

    def add(self, account: Account, now_s: float, rest_s: float = 0.0) -> None:
        """It could not be read, or is to rest for some seconds."""
        _, rested_s = self._rests.get(account, (0.0, 0.0))
        if not rest_s:
            rest_s = min(2 * rested_s, FUNDS_RECHECK_S) if rested_s else FUNDS_PAUSE_S
        self._rests[account] = now_s + rest_s, rest_s
        heapq.heappush(self._due, (now_s + rest_s, account))

    def drop(self, account: Account) -> None:
        """It was read, or need not be read any more."""
        self._rests.pop(account, None)

    def next_s(self) -> float:
        """When the next rest is over; infinity where nobody rests."""
        while self._due and self._rests.get(self._due[0][1], (None,))[0] != self._due[0][0]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else math.inf

    def take(self, now_s: float) -> Account | None:
        """The one that is due for longest; None where nobody is."""
        return heapq.heappop(self._due)[1] if self.next_s() <= now_s else None
