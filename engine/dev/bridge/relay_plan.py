"""Decide what a dev relayer does next about a deposit. Pure.

    not filled, before its deadline   fill the deposit on the destination, unless the relayer's orders or
                                      funds, or the deposit's terms, forbid the fill
    after its deadline                pay the deposited amount out on the origin: to the relayer that filled
                                      the deposit, or to the depositor if no relayer did

The real bridge pays out by bundles of leaves that a dataworker proposes and others may dispute. The dev
pool's owner pays each deposit by a bundle with the deposit's id: the pool refuses a second payment.

A dev relayer fills any deposit on which the relayer loses no money; the relayer's own fees matter only for
the fees that the relayer suggests.
"""

from enum import Enum, auto
from math import inf
from typing import NamedTuple

from msgspec import Struct

from ....codecs.bridges.across import RelayData


class RelayerOrders(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Instructions that control how a dev relayer behaves.

    Attributes:
        fill_after_s: seconds from the first sight of a deposit to its fill.
        is_silent: whether the relayer fills nothing.
        is_insolvent: whether the relayer has no money on any chain.
        pays_out: whether expired deposits are refunded, and fills repaid.
    """

    fill_after_s: float = 1.0
    is_silent: bool = False
    is_insolvent: bool = False
    pays_out: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.fill_after_s <= 86_400:
            raise ValueError(f"fill_after_s is 0 to 86400, got {self.fill_after_s}")


class RelayAct(Enum):
    """Acts of a relayer about a deposit."""

    FILL = auto()
    PAY_OUT = auto()
    NOTHING = auto()


class RelayStep(NamedTuple):
    """Next act about a deposit, and the seconds until another act may be due; infinite if none will be."""

    act: RelayAct
    again_s: float


class DepositSight(Struct, frozen=True):
    """State of a deposit, as a relayer sees it.

    Attributes:
        is_filled: whether the destination's pool has a fill of the deposit.
        is_worth: whether the relayer has the lane, and the deposited amount is worth at least the output
            amount.
        funds: raw units of the output token that the relayer has on the destination.
        waited_s: seconds since the first sight of the deposit.
        time_s: time of the destination's next block, Unix seconds.
    """

    is_filled: bool
    is_worth: bool
    funds: int
    waited_s: float
    time_s: int


def next_step(relay: RelayData, sight: DepositSight, orders: RelayerOrders, relayer: bytes) -> RelayStep:
    """Decide the next act about a deposit that was not paid out.

    Args:
        relayer: account of the relayer, 32 bytes.
    """
    if sight.time_s > relay.fill_deadline:
        return RelayStep(RelayAct.PAY_OUT if orders.pays_out else RelayAct.NOTHING, inf)
    over_s = relay.fill_deadline + 1 - sight.time_s
    if sight.is_filled or not sight.is_worth or relay.message or orders.is_silent:
        return RelayStep(RelayAct.NOTHING, over_s)
    is_others = sight.time_s <= relay.exclusivity_deadline and relay.exclusive_relayer != relayer
    exclusive_s = relay.exclusivity_deadline + 1 - sight.time_s if is_others else 0
    wait_s = max(exclusive_s, orders.fill_after_s - sight.waited_s)
    if wait_s > 0:
        return RelayStep(RelayAct.NOTHING, min(wait_s, over_s))
    can_pay = sight.funds >= relay.output_amount
    return RelayStep(RelayAct.FILL if can_pay else RelayAct.NOTHING, over_s)
