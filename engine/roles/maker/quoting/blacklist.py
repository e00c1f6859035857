"""Users who get no firm quote: permanently from the settings, or for a time. Pure; time is passed in.

A full blacklist adds no further user; a user who would be added still gets no quote for this request.

Source: spec 3.7.6 (no duplicates), 3.9.11 (a success without `order`).
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from .....config import limits

RELEASED_AT_ONCE = 1_000


class Blacklist:
    """Set of users (addresses of 20 bytes) who get no firm quote.

    Attributes:
        users: address -> the address as a JSON string; callers only read the mapping.
    """

    __slots__ = ("_added", "_json", "_until", "users")

    def __init__(self, fixed: Iterable[bytes]) -> None:
        self.users: dict[bytes, bytes] = {user: _json(user) for user in fixed}
        self._added: list[bytes] = []
        self._until: list[tuple[int, bytes]] = []
        self._json: bytes | None = None

    def __len__(self) -> int:
        """Number of blacklisted users."""
        return len(self.users)

    def add(self, user: bytes, until_s: int) -> bool:
        """Blacklist a user until `until_s`, Unix seconds.

        Returns:
            False if the user is already on the list or the list is full.
        """
        if user in self.users or len(self.users) >= limits.MAKER_BLACKLIST_MAX:
            return False
        self.users[user] = _json(user)
        heappush(self._until, (until_s, user))
        self._added.append(self.users[user])
        self._json = None
        return True

    def release_expired(self, now_s: int, count_max: int = RELEASED_AT_ONCE) -> None:
        """Remove users whose time on the blacklist is over, at most `count_max`."""
        while self._until and self._until[0][0] <= now_s and count_max:
            count_max -= 1
            del self.users[heappop(self._until)[1]]
            self._json = None

    def take_added(self) -> bytes | None:
        """Return the JSON array of users blacklisted since the last call; None without such users."""
        if not self._added:
            return None
        added, self._added = self._added, []
        return b"[%b]" % b",".join(added)

    def json(self) -> bytes:
        """Return the JSON array of all blacklisted users."""
        if self._json is None:
            self._json = b"[%b]" % b",".join(self.users.values())
        return self._json


def _json(user: bytes) -> bytes:
    return b'"0x%b"' % user.hex().encode()
