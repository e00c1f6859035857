"""Addresses that a market maker does not trade with, each until it expires. Pure.

    polled   the list of /blacklist, or of the socket's first message; the next list replaces it
    added    by the socket, or by a firm answer without an order; stays until it expires, regardless of polls

A failed blacklist poll changes nothing: addresses of the last answer hold until they expire.

Source: spec 3.9.11 to 3.9.13, 3.11.13, 3.11.15 and 3.11.16.
Choice: Of the added addresses of a maker's blacklist, MAKER_BLACKLIST_MAX are kept; the oldest are forgotten
    first.
"""

from collections import OrderedDict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from ..config.limits import MAKER_BLACKLIST_MAX

_EXPIRED_AT_ONCE = 1_000


class MakerBlacklist:
    """Blacklist of one maker on one chain: users whom the maker does not serve, each until an expiry.

    Args:
        life_ms: milliseconds from the last report of an address to its expiry.
    """

    __slots__ = ("_added", "_life_ms", "_polled", "_polled_until_ms")

    def __init__(self, life_ms: int) -> None:
        self._life_ms = life_ms
        self._polled: AbstractSet[bytes] = frozenset()
        self._polled_until_ms = 0
        self._added: OrderedDict[bytes, int] = OrderedDict()  # -> expiry, Unix ms, soonest first

    def __len__(self) -> int:
        """Number of blacklisted addresses; an address given to both `replace` and `add` counts twice."""
        return len(self._polled) + len(self._added)

    def holds(self, address: bytes, now_ms: int) -> bool:
        """Whether a 20-byte address is blacklisted now."""
        if now_ms < self._polled_until_ms and address in self._polled:
            return True
        return now_ms < self._added.get(address, 0)

    def replace(self, addresses: AbstractSet[bytes], now_ms: int) -> None:
        """Replace the last complete list of addresses by a new one; addresses added singly (`add`) stay.

        Args:
            addresses: 20 bytes each, at most MAKER_BLACKLIST_MAX of them. The set is kept, not copied: the
                caller must not change it afterwards.
        """
        self._polled = addresses
        self._polled_until_ms = now_ms + self._life_ms

    def add(self, addresses: Iterable[bytes], now_ms: int) -> None:
        """Blacklist single addresses, 20 bytes each; a new report of an address postpones its expiry."""
        added, until_ms = self._added, now_ms + self._life_ms
        for address in addresses:
            added[address] = until_ms
            added.move_to_end(address)
            if len(added) > MAKER_BLACKLIST_MAX:
                added.popitem(last=False)

    def expire(self, now_ms: int) -> None:
        """Remove expired addresses: the whole list of `replace`, and up to 1,000 addresses of `add`."""
        if now_ms >= self._polled_until_ms:
            self._polled = frozenset()
        for _ in range(min(len(self._added), _EXPIRED_AT_ONCE)):
            if now_ms < next(iter(self._added.values())):
                return
            self._added.popitem(last=False)
