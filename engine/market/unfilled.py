"""Swaps for which makers have signed and that nobody has filled yet: who has how many. Pure.

    begun        before makers are asked: it takes a place of its caller's, and of its user's
    signed       each quote that a maker signs for it, used or not, or may have signed
    ended        no maker has signed: its places are free at once
    over         the last quote expires, or the chain has seen one of them filled, but for a tenth

A firm quote holds back a maker's stock until it expires, whether anybody means to fill it or not. So each
caller has a few at a time: those without a key by their address, and by the user that they name; those with a
key by that alone.

A maker that has not answered when a swap is given up counts as having signed.

Choice: The user of a caller with a key is not counted or checked on the chain: the key's holder answers for
    its users.
Choice: A user has more places for unfilled swaps than an address, since an anonymous caller may name any
    user; a key is independent of both.
"""

from collections import deque
from collections.abc import Iterable

from msgspec import Struct, field

from ...config.errors import RateLimited
from ..routing.firm.firm_parts import HeldQuote

_LOOKS = 4


class Asker(Struct, frozen=True):
    """Who has a swap built.

    Attributes:
        name: of the key, or the address.
        has_key: it has a key.
        places: of swaps that are not filled, at a time.
    """

    name: str
    has_key: bool
    places: int


class UnfilledSwap(Struct, eq=False):
    """One of them.

    Attributes:
        user: 20 bytes; empty where it is not counted.
    """

    caller: str
    user: bytes
    quotes: list[HeldQuote] = field(default_factory=list)
    is_ended: bool = False

    @property
    def keys(self) -> tuple[str | bytes, ...]:
        """Whose places it takes."""
        return (self.caller, self.user) if self.user else (self.caller,)

    @property
    def over_s(self) -> int:
        """Unix seconds after which none of its quotes can be filled."""
        return max((quote.expiry_s for quote in self.quotes), default=0)


class UnfilledSwaps:
    """Those of one chain.

    Args:
        user_places: of one user's, at a time.
    """

    def __init__(self, user_places: int) -> None:
        self._user_places = user_places
        self._swaps: dict[str | bytes, list[UnfilledSwap]] = {}  # by caller, and by user
        self._line: deque[UnfilledSwap] = deque()  # the first that began stands first

    def __len__(self) -> int:
        """How many callers and users have some."""
        return len(self._swaps)

    def in_the_way(self, asker: Asker, user: bytes, now_s: int) -> tuple[UnfilledSwap, ...]:
        """Swaps that leave no place for another; none where there is one."""
        of_user = () if asker.has_key else ((user, self._user_places),)
        for key, most in ((asker.name, asker.places), *of_user):
            for swap in tuple(self._swaps.get(key, ())):
                if swap.is_ended and swap.over_s < now_s:
                    self.free(swap)
            swaps = tuple(self._swaps.get(key, ()))
            if len(swaps) >= most:
                return swaps
        return ()

    def begin(self, asker: Asker, user: bytes, now_s: int) -> UnfilledSwap:
        """Take the places of a swap.

        Raises:
            RateLimited: there is none; says when to come back.
        """
        self._forget(now_s)
        others = self.in_the_way(asker, user, now_s)
        if others:
            error = RateLimited(f"{len(others)} swaps are signed and not filled")
            error.retry_after_s = max(min(swap.over_s for swap in others) - now_s + 1, 1)
            raise error
        swap = UnfilledSwap(asker.name, b"" if asker.has_key else user)
        for key in swap.keys:
            self._swaps.setdefault(key, []).append(swap)
        self._line.append(swap)
        return swap

    def end(self, swap: UnfilledSwap) -> None:
        """Nobody signs for it any more."""
        swap.is_ended = True
        if not swap.quotes:
            self.free(swap)

    def free(self, swap: UnfilledSwap) -> None:
        """Its places are free: it is filled, or cannot be any more."""
        for key in swap.keys:
            swaps = self._swaps.get(key, [])
            if swap in swaps:
                swaps.remove(swap)
            if not swaps:
                self._swaps.pop(key, None)

    def _forget(self, now_s: int) -> None:
        """Free a few that are over, more than begin."""
        for _ in range(min(_LOOKS, len(self._line))):
            if not (self._line[0].is_ended and self._line[0].over_s < now_s):
                return
            self.free(self._line.popleft())

    def free_filled(self, swaps: Iterable[UnfilledSwap], filled: set[bytes]) -> None:
        """Free those of which an order is among the filled ones, by digest."""
        for swap in swaps:
            if any(quote.digest32 in filled for quote in swap.quotes):
                self.free(swap)
