"""Swaps that makers have signed and that are not filled yet, counted by caller and user. Pure.

    begun        before makers are asked, the swap counts against the limits of its caller and its user
    signed       the swap keeps each quote that a maker has signed or may have signed, used or not
    ended        no more quotes are requested; the swap stops counting at once if no maker has signed
    over         the last quote has expired, or the chain shows a quote as at least nine tenths filled

A firm quote holds back a maker's stock until it expires, whether the swap is filled or not. Each caller has
therefore only a few such swaps at a time: a caller without a key is counted by its address and by the user
that it names, a caller with a key by the key alone.

A maker that has not answered when a swap is given up counts as having signed.

Choice: A swap of a caller with a key does not count towards its user's limit: the key's holder answers for
    its users.
Choice: A user has more places for unfilled swaps than an address, so that one anonymous caller, who may name
    any user, does not take them all. The places of a key are separate.
"""

from collections import deque
from collections.abc import Iterable

from msgspec import Struct, field

from ....config.errors import RateLimited
from ..routing.firm.firm_parts import HeldQuote

_LOOKS = 4  # most expired swaps dropped from `_line` when a swap begins


class Asker(Struct, frozen=True):
    """The caller of a request that builds a swap.

    Attributes:
        name: name of the caller's API key, or the caller's network address.
        has_key: whether the caller has an API key.
        places: most unfilled swaps (`UnfilledSwap`) that the caller may have at a time.
    """

    name: str
    has_key: bool
    places: int


class UnfilledSwap(Struct, eq=False):
    """A swap for which makers are asked to sign, or have signed, and which is not filled yet.

    Attributes:
        caller: name of the `Asker` whose request builds the swap.
        user: address of the user, 20 bytes; empty if the swap does not count towards a limit of the user,
            since the caller has an API key.
        quotes: quotes that makers have signed or may have signed for the swap.
        is_ended: whether the venue requests no further quotes for the swap.
    """

    caller: str
    user: bytes
    quotes: list[HeldQuote] = field(default_factory=list)
    is_ended: bool = False

    @property
    def keys(self) -> tuple[str | bytes, ...]:
        """Caller and user (if any) whose limits of unfilled swaps this swap counts towards."""
        return (self.caller, self.user) if self.user else (self.caller,)

    @property
    def over_s(self) -> int:
        """Latest expiry of the swap's quotes, Unix seconds; 0 without a quote."""
        return max((quote.expiry_s for quote in self.quotes), default=0)


class UnfilledSwaps:
    """Counter of a chain's unfilled swaps, which limits the swaps of each caller and of each user.

    Args:
        user_places: most unfilled swaps that a user may have at a time.
    """

    def __init__(self, user_places: int) -> None:
        self._user_places = user_places
        self._swaps: dict[str | bytes, list[UnfilledSwap]] = {}  # by caller, and by user
        self._line: deque[UnfilledSwap] = deque()  # in their order of beginning

    def __len__(self) -> int:
        """Number of callers and users with at least one unfilled swap."""
        return len(self._swaps)

    def in_the_way(self, asker: Asker, user: bytes, now_s: int) -> tuple[UnfilledSwap, ...]:
        """Return the earlier unfilled swaps that leave no room for a new swap of this caller and user.

        The method stops counting ended swaps whose quotes have expired.

        Returns:
            The caller's swaps if the caller has reached its limit, else the user's swaps if the user has;
            empty if a new swap is allowed.
        """
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
        """Count a new swap towards the limits of unfilled swaps of the caller and of the user.

        Raises:
            RateLimited: a limit is reached; the error carries the seconds after which to retry.
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
        """Record that the venue requests no further quotes for a swap.

        A swap that has no quotes no longer counts towards the limits of its caller and user.
        """
        swap.is_ended = True
        if not swap.quotes:
            self.free(swap)

    def free(self, swap: UnfilledSwap) -> None:
        """Stop counting a swap towards the limits, because the swap is filled or can no longer be filled."""
        for key in swap.keys:
            swaps = self._swaps.get(key, [])
            if swap in swaps:
                swaps.remove(swap)
            if not swaps:
                self._swaps.pop(key, None)

    def _forget(self, now_s: int) -> None:
        """Stop counting expired swaps, from the oldest on, at most _LOOKS.

        The method ends at the first swap that still has a valid quote or may get further quotes.
        """
        for _ in range(min(_LOOKS, len(self._line))):
            if not (self._line[0].is_ended and self._line[0].over_s < now_s):
                return
            self.free(self._line.popleft())

    def free_filled(self, swaps: Iterable[UnfilledSwap], filled: set[bytes]) -> None:
        """Stop counting each of `swaps` that has a filled quote.

        Args:
            filled: EIP-712 hashes of filled quotes, 32 bytes each.
        """
        for swap in swaps:
            if any(quote.digest32 in filled for quote in swap.quotes):
                self.free(swap)
