"""Ledger of what callers cost the venue: each account's use of each thing that costs, and its bound. Pure.

    Budget          a thing that costs, its unit and the bound of one account
        held        counts until it is freed: a maker's stock, an open stream, a place in memory
        used        fades: an account that has used all of it has all of it back after `refill_s`
    take(charges)   charges all accounts or, if one of them lacks room, none
    free(hold)      held amounts end, used amounts fade
    undo(hold)      the cost was not caused: held and used amounts are given back
    rated(name)     accounts that fade at a rate of the settings: requests and wrong signatures of callers

An account belongs to the causer of a cost: a key, a network, a user who has signed, or EVERYBODY together.
`budgets` has the rule for each thing; no account is charged because a request names it.

Source: docs/explanation/security.md, "Costs and stakes".
"""

from collections.abc import Hashable, Sequence
from fractions import Fraction

from msgspec import Struct

from ....config.limits import ADMISSION_CALLERS_MAX
from ....config.sections.venue import Rate
from .buckets import Buckets, ExactRate

EVERYBODY = ""
"""Account of all callers together."""


class Causer(Struct, frozen=True):
    """Caller to which the cost of an admitted request is charged.

    Attributes:
        account: `key NAME` or `address ADDRESS`.
        network: network of the address; empty for a key, whose owner the operator knows.
    """

    account: str
    network: str

    @property
    def name(self) -> str:
        """Name of who answers for the cost: `key NAME` or `network NETWORK`."""
        return self.network or self.account


class Budget(Struct, frozen=True, kw_only=True):
    """The bound of one account on a thing that costs.

    Attributes:
        name: name of the budget, in refusals too, e.g. `stock for nothing, of a network`.
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
    """Charges that `Ledger.take` has made.

    Attributes:
        is_free: whether what is held has ended, by `Ledger.free` or `Ledger.undo`.
        is_undone: whether what is used was given back too, by `Ledger.undo`.
    """

    charges: tuple[Charge, ...]
    is_free: bool = False
    is_undone: bool = False


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
                self.undo(Hold(tuple(charges[:number])))
                return lack
        return Hold(tuple(charges))

    def free(self, hold: Hold) -> None:
        """End what a hold holds; what it uses fades. A second call does nothing."""
        if not hold.is_free:
            hold.is_free = True
            for charge in hold.charges:
                if not charge.budget.refill_s:
                    self._release(charge)

    def undo(self, hold: Hold) -> None:
        """End a hold, and give back what it uses, also after `free`. A second call does nothing."""
        self.free(hold)
        if not hold.is_undone:
            hold.is_undone = True
            for charge in hold.charges:
                if charge.budget.refill_s:
                    self._buckets(charge.budget).give_back(charge.account, charge.amount)

    def held(self, budget: Budget, account: Hashable) -> int:
        """Amount that an account holds of a budget without `refill_s`."""
        return self._held.get((budget.name, account), 0)

    def rated(self, name: str, rate: Rate | ExactRate) -> Buckets:
        """Return the accounts of a budget that fades at a rate; each request shows what is left of its own.

        Args:
            name: name of the budget, e.g. `requests of an address`; the same name gives the same accounts.
            rate: size and refill of every account; the first call of a name decides.
        """
        buckets = self._used.get(name)
        if buckets is None:
            buckets = self._used[name] = Buckets(rate, callers_max=self._accounts_max)
        return buckets

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

    def _release(self, charge: Charge) -> None:
        key = charge.budget.name, charge.account
        left = self._held[key] - charge.amount
        if left:
            self._held[key] = left
        else:
            del self._held[key]

    def _buckets(self, budget: Budget) -> Buckets:
        buckets = self._used.get(budget.name)
        if buckets is None:
            rate = ExactRate(Fraction(budget.most, budget.refill_s), Fraction(budget.most))
            buckets = self.rated(budget.name, rate)
        return buckets
