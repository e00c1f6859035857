"""Bound the amounts for which a maker is asked, after it refused a larger amount. Pure.

    a refusal of an amount     the bound of that direction is half of it, for rest_ms * 2^(refusals before)
    a quote near the bound     the bound doubles, and one refusal is forgotten
    the bound's end            no bound; a refusal in the next rest_ms_max still counts the earlier refusals
    while our callers reserve  the bound ends with their quotes, which may have caused the refusal
    the maker's stock

Levels that a maker shows but does not sign are hidden in this way; the other levels of its pair are routed as
before. Levels that it signs again return step by step, and all levels return when the bound ends.

Source: ARCHITECTURE.md, "Firm quotes".
Choice: A refusal of /firm tells no reason that a program could rely on, so it bounds the requested size and
    never takes the whole pair out of routing.
"""

from collections import OrderedDict

from msgspec import Struct

from ...config import limits

Direction = tuple[bytes, bytes]
"""(token that a user gives, token that the user gets), 20 bytes each."""


class SizeBound(Struct, frozen=True):
    """Largest amount for which the venue requests a maker's firm quote, in one direction of a pair.

    Attributes:
        amount: most raw units of the pair's base token in one quote.
        until_ms: Unix milliseconds at which the bound ends.
        refusals: number of refusals, less the later signed quotes that doubled the bound; each refusal
            doubles the duration of the next bound.
    """

    amount: int
    until_ms: int
    refusals: int


class SizeBounds:
    """Bounds on the amounts for which the venue requests firm quotes of one maker on one chain.

    Args:
        rest_ms: duration of the bound after a first refusal, milliseconds.
        rest_ms_max: duration of the longest bound, milliseconds.
    """

    def __init__(self, rest_ms: int, rest_ms_max: int) -> None:
        self._rest_ms = rest_ms
        self._rest_ms_max = rest_ms_max
        self._bounds: OrderedDict[Direction, SizeBound] = OrderedDict()

    def refused(
        self, src: bytes, dest: bytes, amount: int, now_ms: int, ends_ms: int | None = None
    ) -> SizeBound:
        """Record a maker's refusal of `amount` raw base units in the direction from `src` to `dest`.

        Args:
            ends_ms: when the last quote expires that reserves the maker's stock for our callers, Unix
                milliseconds. The bound ends then at the latest, and the refusal lengthens no later bound.
                None if no such quote is valid.

        Returns:
            The direction's new bound: half of `amount`, or half of the bound in force if that is smaller.
        """
        before = self._bounds.pop((src, dest), None)
        refusals = 0
        if before is not None and now_ms < before.until_ms + self._rest_ms_max:
            refusals = before.refusals
            if now_ms < before.until_ms:
                amount = min(amount, before.amount)
        until_ms = now_ms + min(self._rest_ms << refusals, self._rest_ms_max)
        if ends_ms is not None:
            until_ms = min(until_ms, max(ends_ms, now_ms))
        counted = min(refusals + (ends_ms is None), limits.MAKER_REFUSALS_MAX)
        bound = SizeBound(amount // 2, until_ms, counted)
        self._bounds[src, dest] = bound
        if len(self._bounds) > limits.MAKER_ENTRIES_MAX:
            self._bounds.popitem(last=False)
        return bound

    def signed(self, src: bytes, dest: bytes, amount: int, now_ms: int) -> SizeBound | None:
        """Record a signed quote of `amount` raw base units in the direction from `src` to `dest`.

        Returns:
            The new bound, doubled, if `amount` is at least half of the bound in force; None if `amount` is
                smaller, or if no bound is in force.
        """
        before = self._bounds.get((src, dest))
        if before is None or now_ms >= before.until_ms or 2 * amount < before.amount:
            return None
        bound = SizeBound(2 * before.amount, before.until_ms, max(before.refusals - 1, 0))
        self._bounds[src, dest] = bound
        return bound

    def release(self) -> None:
        """Forget all size bounds, so that the maker is asked for any amount again."""
        self._bounds.clear()

    def told(self, now_ms: int) -> dict[Direction, SizeBound]:
        """Size bounds in force at `now_ms`, by (token that the user gives, token that the user gets)."""
        return {direction: bound for direction, bound in self._bounds.items() if now_ms < bound.until_ms}
