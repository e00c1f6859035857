"""Budgets of wrong signatures: bound how many wrong signatures the venue checks for a caller. Pure.

A request takes a unit of its caller for each of its signatures, before the first is checked, and gets the
unit back if the signature proves right:

    enter: one unit --begin(n): n units--.--the owner's key signed: `proven`--> back at once
                                         |--the owner's contract is asked----> back once it is answered 200
                                         '--refused---------------------------> spent: refilled with time

Without a unit the answer is 429: no signature is checked, no chain and no store is asked.

Choice: A signature that a contract verifies costs a unit, which returns only if the whole request succeeds:
    the caller may have written that contract.
Choice: Refusals for another reason before any contract is asked cost no unit, and neither do failures of
    chain or store.
"""

from types import TracebackType
from typing import Self

from ...config.errors import CambistError, InvalidSignature, RateLimited, RequestError, ServiceUnavailable
from ...config.sections.venue import Rate
from .buckets import Buckets


class SignatureUnits:
    """Signature budgets of all callers of a tier.

    Attributes:
        buckets: a token bucket of units for each caller.
        spent: units of wrong signatures so far.
        refused: number of requests refused because the caller had too few units.
    """

    __slots__ = ("buckets", "refused", "spent")

    def __init__(self, rate: Rate) -> None:
        self.buckets = Buckets(rate)
        self.spent = self.refused = 0


class SignatureBudget:
    """Budget of signature checks for one request; a context manager around the request's handling.

    Args:
        units: budgets of the caller's tier.
        caller: the caller, whose bucket the units come from.
        now_ms: time of the request, Unix milliseconds.
    """

    __slots__ = ("_caller", "_held", "_is_chain_asked", "_now_ms", "_units")

    def __init__(self, units: SignatureUnits, caller: str, now_ms: int) -> None:
        self._units, self._caller, self._now_ms = units, caller, now_ms
        self._held = 0
        self._is_chain_asked = False

    def __enter__(self) -> Self:
        """Take the first unit.

        Raises:
            RateLimited: no unit is left.
        """
        self.begin(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, CambistError):
            self.refused(error)
        self._give_back(self._held)

    def begin(self, count: int) -> None:
        """Take units for signatures that are about to be checked.

        Args:
            count: signatures of the request, above 0.

        Raises:
            RateLimited: too few units are left; the error says when to retry.
        """
        self._is_chain_asked = False
        missing = count - self._held
        if missing <= 0:
            return
        taken = self._units.buckets.take(self._caller, missing, self._now_ms)
        if taken.wait_s:
            self._units.refused += 1
            error = RateLimited(f"too many wrong signatures: retry in {taken.wait_s} s")
            error.retry_after_s = taken.wait_s
            raise error
        self._held = count

    def proven(self, count: int) -> None:
        """Give back the units of signatures that the owners' keys made; the others need a check on the chain.

        Args:
            count: number of signatures by the owners' keys, at most the `count` of `begin`.
        """
        self._give_back(count)
        self._is_chain_asked = bool(self._held)

    def refused(self, error: CambistError) -> None:
        """Decide whether a refusal of the request spends its units.

        A handler that answers a repeated submission with the stored order also passes here the refusal that
        this answer replaces.
        """
        is_ours = isinstance(error, ServiceUnavailable) or not isinstance(error, RequestError)
        if isinstance(error, InvalidSignature) or (self._is_chain_asked and not is_ours):
            self.wrong()

    def wrong(self) -> None:
        """Spend the units still taken: those of all signatures that are not proven right."""
        self._units.spent += self._held
        self._held = 0

    def _give_back(self, count: int) -> None:
        if count:
            self._units.buckets.give_back(self._caller, count)
            self._held -= count
