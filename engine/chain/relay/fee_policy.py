"""Compute gas prices: the first price of a transaction, and the price of its replacement. Pure.

    first        tip: the chain's suggestion, within bounds; maximum fee: twice the base fee, plus the tip
    replacement  both fees at least `bump_bps` above the replaced transaction's, and at least a first price

No price is above the cap: if a higher price would be needed, the result is None and no transaction is signed.
A maximum of twice the base fee suffices for six full blocks in a row.

Source: EIP-1559; the replacement rule of nodes' mempools (10 % on both fees).
"""

from msgspec import Struct

from ....config.limits import BPS_ONE
from ..port import GasFees


class GasPrice(Struct, frozen=True):
    """Fees that a transaction offers, in wei per unit of gas.

    Attributes:
        fee_max_wei: most that the sender pays, tip included.
        tip_wei: most that goes to the block's maker (priority fee).
    """

    fee_max_wei: int
    tip_wei: int


class FeePolicy(Struct, frozen=True):
    """Bounds of the gas prices that a relayer offers, in wei per unit of gas.

    Attributes:
        cap_wei: upper bound of `fee_max_wei`.
        tip_min_wei, tip_max_wei: bounds of the tip of a nonce's first transaction; the tip of a replacement
            may exceed the upper bound.
        bump_bps: least rise of both fees in a replacement, basis points.
    """

    cap_wei: int
    tip_min_wei: int
    tip_max_wei: int
    bump_bps: int


def first_price(fees: GasFees, policy: FeePolicy) -> GasPrice | None:
    """Gas price of the first transaction of a nonce; None if base fee plus least tip exceeds the cap.

    The maximum fee is twice the base fee, plus the tip, but at most the cap; the tip shrinks only if the
    tip alone exceeds the cap.
    """
    if fees.base_fee_wei + policy.tip_min_wei > policy.cap_wei:
        return None
    tip_wei = min(max(fees.tip_wei, policy.tip_min_wei), policy.tip_max_wei)
    fee_max_wei = min(2 * fees.base_fee_wei + tip_wei, policy.cap_wei)
    return GasPrice(fee_max_wei, min(tip_wei, fee_max_wei))


def replacement_price(before: GasPrice, fees: GasFees, policy: FeePolicy) -> GasPrice | None:
    """Gas price of a transaction that replaces one of price `before`; None if it would exceed the cap."""
    least = GasPrice(_raised(before.fee_max_wei, policy), _raised(before.tip_wei, policy))
    now = first_price(fees, policy)
    if now is None or least.fee_max_wei > policy.cap_wei:
        return None
    return GasPrice(max(least.fee_max_wei, now.fee_max_wei), max(least.tip_wei, now.tip_wei))


def _raised(wei: int, policy: FeePolicy) -> int:
    return max(-(-wei * (BPS_ONE + policy.bump_bps) // BPS_ONE), wei + 1)
