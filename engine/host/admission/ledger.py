"""Ledger of what callers cost the venue: each account's use of each thing that costs, and its bound. Pure.

    Budget          a thing that costs, its unit and the bound of one account
        held        counts until it is freed: a maker's stock, an open stream, a place in memory
        used        fades: an account that has used all of it has all of it back after `refill_s`
    take(charges)   charges all accounts or, if one of them lacks room, none
    free(hold)      what is held ends, what is used goes on fading
    undo(hold)      nothing was caused after all: both are given back

An account is whoever caused the cost: a key, a network, a user who has signed, or EVERYBODY together. Who is
charged follows from a rule for each thing (`budgets`); nobody is charged because a request names it.

Source: docs/explanation/security.md, "Costs and stakes".
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct

from ....config.limits import ADMISSION_CALLERS_MAX
from .buckets import Buckets, ExactRate

EVERYBODY = ""
"""Account of all callers together."""


class Budget(Struct, frozen=True, kw_only=True):
    """The bound of one account on a thing that costs.

    Attributes:
        name: name in metrics and on the page of costs, e.g. `stock without consent, of a network`.
        unit: unit of the amounts, e.g. `quotes`.
        most: greatest amount of one account, in units.
        refill_s: seconds in which a wholly used budget returns; 0 for what is held until it is freed.
    """

    name: str
    unit: str
    most: int
    refill_s: int = 0


class Charge(Struct, frozen=True):
    """An amount of a thing that costs, charged to an account.

    Attributes:
        amount: units, above 0.
        most: greatest amount of this account where it differs from the budget's; 0 for the budget's.
    """

    budget: Budget
    account: Hashable
    amount: int = 1
    most: int = 0

    @property
    def bound(self) -> int:
        """Greatest amount of the charged account."""
        return self.most or self.budget.most


class Hold(Struct, eq=False):
    """What `Ledger.take` has charged; `Ledger.free` or `Ledger.undo` ends it once."""

    charges: tuple[Charge, ...]
    is_over: bool = False


class Lack(Struct, frozen=True):
    """The first of several charges for which an account lacks room.

    Attributes:
        wait_s: seconds until the account has room, above 0; 0 if the amount exceeds the whole budget or the
            room depends on what others free.
    """

    charge: Charge
    wait_s: int


class Ledger:
    """Use of each budget by each account.

    Args:
        accounts_max: greatest number of accounts of one fading budget; beyond it a new account has no room.
    """

    def __init__(self, *, accounts_max: int = ADMISSION_CALLERS_MAX) -> None:
        self._accounts_max = accounts_max
        self._held: dict[tuple[str, Hashable], int] = {}
        self._used: dict[str, Buckets] = {}
        self._refused: Counter[str] = Counter()

    def take(self, charges: Sequence[Charge], now_ms: int) -> Hold | Lack:
        """Charge all accounts, or none if an account lacks room.

        Args:
            now_ms: wall clock, Unix milliseconds.

        Returns:
            The hold; or the first charge without room.
        """
        for number, charge in enumerate(charges):
            lack = self._add(charge, now_ms)
            if lack is not None:
                for earlier in charges[:number]:
                    self._subtract(earlier, is_undone=True)
                self._refused[charge.budget.name] += 1
                return lack
        return Hold(tuple(charges))

    def free(self, hold: Hold) -> None:
        """End a hold: what it held is free, what it used goes on fading. A second call does nothing."""
        self._end(hold, is_undone=False)

    def undo(self, hold: Hold) -> None:
        """End a hold as if nothing had been charged. A call after the hold's end does nothing."""
        self._end(hold, is_undone=True)

    def held(self, budget: Budget, account: Hashable) -> int:
        """Amount that an account holds of a budget without `refill_s`."""
        return self._held.get((budget.name, account), 0)

    def statistics(self) -> Mapping[str, int]:
        """Number of refused charges since the start of the process, by the name of the budget."""
        return dict(self._refused)

    def _add(self, charge: Charge, now_ms: int) -> Lack | None:
        budget = charge.budget
        if budget.refill_s:
            if charge.amount > budget.most:
                return Lack(charge, 0)
            wait_s = self._buckets(budget).take(charge.account, charge.amount, now_ms).wait_s
            return Lack(charge, wait_s) if wait_s else None
        key = budget.name, charge.account
        amount = self._held.get(key, 0) + charge.amount
        if amount > charge.bound:
            return Lack(charge, 0)
        self._held[key] = amount
        return None

    def _subtract(self, charge: Charge, *, is_undone: bool) -> None:
        budget = charge.budget
        if budget.refill_s:
            if is_undone:
                self._buckets(budget).give_back(charge.account, charge.amount)
            return
        key = budget.name, charge.account
        left = self._held[key] - charge.amount
        if left:
            self._held[key] = left
        else:
            del self._held[key]

    def _end(self, hold: Hold, *, is_undone: bool) -> None:
        if hold.is_over:
            return
        hold.is_over = True
        for charge in hold.charges:
            self._subtract(charge, is_undone=is_undone)

    def _buckets(self, budget: Budget) -> Buckets:
        buckets = self._used.get(budget.name)
        if buckets is None:
            rate = ExactRate(Fraction(budget.most, budget.refill_s), Fraction(budget.most))
            buckets = self._used[budget.name] = Buckets(rate, callers_max=self._accounts_max)
        return buckets
