"""What a unit of gas may cost: the first price of a transaction, and the price of what replaces it. Pure.

    first        tip: what the chain suggests, within bounds; most: twice the base fee and the tip
    replacement  both at least `bump_bps` above those of the transaction before, and at least a first price

Neither is ever above the cap: where it would have to be, there is no price, and the transaction waits. Twice
the base fee holds for six full blocks in a row.

Source: EIP-1559; the replacement rule of nodes' mempools (10 % on both fees).
"""

from msgspec import Struct

from ....config.limits import BPS_ONE
from ..port import GasFees


class GasPrice(Struct, frozen=True):
    """The most that is offered for a unit of gas, and what of it goes to the block's maker."""

    fee_max_wei: int
    tip_wei: int


class FeePolicy(Struct, frozen=True):
    """Bounds of prices.

    Attributes:
        cap_wei: of `fee_max_wei`.
        tip_min_wei, tip_max_wei: of a first price's tip; replacements may go beyond.
        bump_bps: least rise of both fees in a replacement, basis points.
    """

    cap_wei: int
    tip_min_wei: int
    tip_max_wei: int
    bump_bps: int


def first_price(fees: GasFees, policy: FeePolicy) -> GasPrice | None:
    """The price to begin with; None while not even the base fee is within the cap.

    Head-room over the base fee shrinks first under the cap, the tip only after it.
    """
    if fees.base_fee_wei + policy.tip_min_wei > policy.cap_wei:
        return None
    tip_wei = min(max(fees.tip_wei, policy.tip_min_wei), policy.tip_max_wei)
    fee_max_wei = min(2 * fees.base_fee_wei + tip_wei, policy.cap_wei)
    return GasPrice(fee_max_wei, min(tip_wei, fee_max_wei))


def replacement_price(before: GasPrice, fees: GasFees, policy: FeePolicy) -> GasPrice | None:
    """The price of what replaces a transaction; None where it would be above the cap."""
    least = GasPrice(_raised(before.fee_max_wei, policy), _raised(before.tip_wei, policy))
    now = first_price(fees, policy)
    if now is None or least.fee_max_wei > policy.cap_wei:
        return None
    return GasPrice(max(least.fee_max_wei, now.fee_max_wei), max(least.tip_wei, now.tip_wei))


def _raised(wei: int, policy: FeePolicy) -> int:
    return max(-(-wei * (BPS_ONE + policy.bump_bps) // BPS_ONE), wei + 1)
