"""Users who get no firm quote: from the settings for good, or for a time. Pure; time is passed in.

Source: document 3, GET /blacklist (no duplicates) and POST /firm (a success without `order`).
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from ...config import limits


class Blacklist:
    """Addresses of 20 bytes; membership is a set lookup.

    Attributes:
        users: the members, to be read only.
        version: changes with every change of the members.
    """

    __slots__ = ("_added", "_until", "users", "version")

    def __init__(self, fixed: Iterable[bytes]) -> None:
        self.users = set(fixed)
        self._added: list[bytes] = []
        self._until: list[tuple[int, bytes]] = []
        self.version = 0

    def __len__(self) -> int:
        return len(self.users)

    def add(self, user: bytes, until_s: int) -> bool:
        """Take a user in until a time (Unix seconds); False if it is there already, or no more fit."""
        if user in self.users or len(self.users) >= limits.MAKER_BLACKLIST_MAX:
            return False
        self.users.add(user)
        heappush(self._until, (until_s, user))
        self._added.append(user)
        self.version += 1
        return True

    def release_expired(self, now_s: int) -> None:
        """Let go of those whose time is over."""
        while self._until and self._until[0][0] <= now_s:
            self.users.discard(heappop(self._until)[1])
            self.version += 1

    def take_added(self) -> list[bytes]:
        """Who was taken in since the last call."""
        added, self._added = self._added, []
        return added

    def members(self) -> list[bytes]:
        """All of them, in order of their bytes."""
        return sorted(self.users)
