"""Budgets of wrong signatures: bound how many wrong signatures the venue checks for a caller. Pure.

A request takes a unit from its caller's budget for each of its signatures, before the first is checked. A
unit returns to the budget if its signature is valid:

    enter: one unit --begin(n): n units--.--the owner's key signed: `proven`--> back at once
                                         |--the owner's contract is asked----> back once it is answered 200
                                         '--refused---------------------------> spent: refilled with time

A request whose caller has no unit left is answered with 429 before any signature, chain or store is read.

Choice: A signature that a contract verifies costs a unit, which returns only if the whole request succeeds:
    the caller may have written that contract.
Choice: A request that is refused before any contract is asked, and not for its signature, costs no unit;
    neither do failures of chain or store.
"""

from types import TracebackType
from typing import Self

from ....config.errors import CambistError, InvalidSignature, RateLimited, RequestError, ServiceUnavailable
from .buckets import Buckets


class SignatureUnits:
    """Budgets that bound how many wrong signatures the venue checks, one for each caller of a rate tier.

    A budget counts in units: each check of a signature takes one unit, which a valid signature gives back.

    Args:
        buckets: token bucket of each caller, whose tokens are the units.

    Attributes:
        buckets: as given.
        spent: number of units that wrong signatures have cost so far.
        refused: number of requests refused because the caller had too few units.
    """

    __slots__ = ("buckets", "refused", "spent")

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = buckets
        self.spent = self.refused = 0


class SignatureBudget:
    """Units that one request takes from its caller's budget, one for each of its signatures to check.

    The object is a context manager around the handling of the request. The entry takes the first unit from
    the caller's budget (see `SignatureUnits`); the exit gives back the units that no wrong signature has
    cost.

    Args:
        units: budgets of the caller's rate tier.
        caller: the caller, from whose budget the units are taken.
        now_ms: time of the request, Unix milliseconds.
    """

    __slots__ = ("_caller", "_held", "_is_chain_asked", "_now_ms", "_units")

    def __init__(self, units: SignatureUnits, caller: str, now_ms: int) -> None:
        self._units, self._caller, self._now_ms = units, caller, now_ms
        self._held = 0
        self._is_chain_asked = False

    def __enter__(self) -> Self:
        """Take one unit, i.e. one signature check, from the caller's budget before the request is handled.

        Raises:
            RateLimited: the caller's budget has no unit left.
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
        """Take units from the caller's budget until this request holds one unit for each of its signatures.

        Args:
            count: number of signatures of the request that will be checked.

        Raises:
            RateLimited: the caller has too few units; the error has the seconds until a retry.
        """
        self._is_chain_asked = False
        missing = count - self._held
        if missing <= 0:
            return
        taken = self._units.buckets.take(self._caller, missing, self._now_ms)
        if taken.wait_s:
            self._units.refused += 1
            error = RateLimited(f"too many wrong signatures: retry in {taken.wait_s} s")
            error.is_over_rate = True
            error.retry_after_s = taken.wait_s
            raise error
        self._held = count

    def proven(self, count: int) -> None:
        """Give the caller's budget back a unit for each signature that an owner's key is proven to have made.

        The units of the other signatures, which contracts have to confirm, stay with the request.

        Args:
            count: number of proven signatures, at most the `count` of `begin`.
        """
        self._give_back(count)
        self._is_chain_asked = bool(self._held)

    def refused(self, error: CambistError) -> None:
        """Spend the units that this request holds if `error` shows, or may hide, a wrong signature.

        InvalidSignature always spends the units. Any other error of the client spends them only if a contract
        had to confirm a signature; failures of the venue, its store or chain spend none.

        Args:
            error: the error that answers the request. For a repeated submission of an order, the handler
                answers with the stored order and passes the error that it found before.
        """
        is_ours = isinstance(error, ServiceUnavailable) or not isinstance(error, RequestError)
        if isinstance(error, InvalidSignature) or (self._is_chain_asked and not is_ours):
            self.wrong()

    def wrong(self) -> None:
        """Spend the units that this request still holds, i.e. one for each signature not proven valid."""
        self._units.spent += self._held
        self._held = 0

    def _give_back(self, count: int) -> None:
        if count:
            self._units.buckets.give_back(self._caller, count)
            self._held -= count
