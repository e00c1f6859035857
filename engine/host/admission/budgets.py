"""Budgets of the things that cost: the bound of each, by what its causer has shown. Data alone.

Source: docs/explanation/security.md, "Costs and stakes", which has a row for each budget.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from ....config import limits
from .ledger import Budget

_DAY_S = 86_400
PPM = 1_000_000
"""Parts of a maker's stock: the amount of a token that the maker's book gives in one direction."""


class Stake(StrEnum):
    """Proof that a caller has shown for the user that its swap names, the weakest kind first."""

    NOTHING = "nothing"
    ALLOWANCE = "allowance"  # the user lets the Router take the token: only the user can have done so, once
    CONSENT = "consent"  # the user has signed this swap, or has filled one that the same network asked for


class StockWay(Struct, frozen=True):
    """One way to reserve a maker's stock: a request is charged to all these budgets, or takes another way.

    Attributes:
        network: share of the callers of one network, which returns with time unless the quotes are filled.
        together: shares of all callers together that take this way, and of a user who has signed.
    """

    network: Budget
    together: tuple[Budget, ...]
    user: Budget | None = None


def _stock(name: str, most: int, *, refill_s: int = 0) -> Budget:
    """Make a budget of `most` parts per million of a maker's stock."""
    return Budget(name=f"stock for {name}", unit="ppm of a maker's stock", most=most, refill_s=refill_s)


def _unsigned(stake: Stake, small: int) -> tuple[StockWay, StockWay]:
    """Make the ways of callers without a user's signature: a small share for each network, or a large one.

    All large shares together are at most half of what such callers may reserve, so that networks which come
    later find their small share. Parts are per million of a maker's stock.
    """
    everybody = _stock(f"{stake.value}, of everybody", PPM // 4)
    large = _stock(f"{stake.value}, of everybody with much", PPM // 8)
    refill_s = limits.VENUE_STOCK_REFILL_S
    return (
        StockWay(_stock(f"{stake.value}, of a network", small, refill_s=refill_s), (everybody,)),
        StockWay(
            _stock(f"{stake.value}, of a network with much", PPM // 8, refill_s=refill_s), (large, everybody)
        ),
    )


STOCK: Mapping[Stake, tuple[StockWay, ...]] = MappingProxyType(
    {
        Stake.NOTHING: _unsigned(Stake.NOTHING, PPM // 64),
        Stake.ALLOWANCE: _unsigned(Stake.ALLOWANCE, PPM // 32),
        Stake.CONSENT: (
            StockWay(
                _stock("consent, of a network", PPM // 4, refill_s=limits.VENUE_STOCK_REFILL_S),
                (_stock("consent, of everybody", PPM * 3 // 8),),
                _stock("consent, of a user", PPM // 4),
            ),
        ),
    }
)
"""Ways to reserve a maker's stock by what a caller has shown, to be tried in turn. An eighth of each maker's
stock is thus for callers with an API key alone.
"""

STOCK_RESERVED = Budget(name="stock reserved", unit="ppm of a maker's stock", most=limits.UINT256_MAX)
"""All that callers have reserved of a maker's stock; not a bound."""

SWAPS_OF_KEY = Budget(name="unfilled swaps, of a key", unit="swaps", most=limits.UINT256_MAX)
SWAPS_OF_NETWORK = Budget(name="unfilled swaps, of a network", unit="swaps", most=limits.UINT256_MAX)
SWAPS_OF_USER = Budget(name="unfilled swaps, of a user", unit="swaps", most=limits.UINT256_MAX)
"""Charged with the bounds of the settings, `[venue.firm]`."""
FUNDS_OF_USER = Budget(name="funds in unfilled swaps, of a user", unit="raw units", most=limits.UINT256_MAX)
"""Charged with the user's balance as its bound, so that the same funds are shown once."""

STREAMS_OF_CALLER = Budget(
    name="open streams, of a caller", unit="streams", most=limits.ADMISSION_STREAMS_PER_CALLER_MAX
)
STREAMS_OF_NETWORK = Budget(name="open streams, of a network", unit="streams", most=limits.UINT256_MAX)
"""Charged with the number of streams that are free: a network may have as many."""
STREAMS = Budget(name="open streams, of everybody", unit="streams", most=limits.UINT256_MAX)
"""Charged with the bound of the settings."""

GAS_OF_OWNER = Budget(name="failed gas, of an owner", unit="gas", most=1_000_000, refill_s=_DAY_S)
GAS_OF_CODE = Budget(name="failed gas, of the code of new owners", unit="gas", most=4_000_000, refill_s=3_600)
GAS_OF_NETWORK = Budget(
    name="failed gas, of new owners' orders from a network", unit="gas", most=2_000_000, refill_s=3_600
)
GAS_OF_NEW_OWNERS = Budget(
    name="failed gas, of all contracts that have not settled", unit="gas", most=8_000_000, refill_s=3_600
)
GAS_OF_DOUBTS = Budget(
    name="gas in doubt, of an agent", unit="gas", most=limits.AGENT_GAS_IN_DOUBT_MAX, refill_s=3_600
)
"""Gas of an agent's calls that failed in a block in which the owner acted: the two may be one party."""
PLACES_OF_NEW_OWNERS = Budget(
    name="settlements under way, of all contracts that have not settled", unit="settlements", most=4
)
"""A settlement that runs an owner's code is charged with its gas limit until its outcome is known."""

GAS_GIVEN_TO_OWNER = Budget(name="given gas, of an owner", unit="gas", most=1_000_000, refill_s=_DAY_S)
GAS_GIVEN = Budget(name="given gas, of all owners", unit="gas", most=10_000_000, refill_s=_DAY_S)
"""Gas of settlements that do not cover it; the settings say how much is given a day."""
