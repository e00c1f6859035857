"""How much of a token an account can still give with new Delta orders. Pure.

    min(balance, allowance to the Delta contract) - what its live orders of the token may still take

Source: interop.md 3, fillablebalance; document 1, "Other Delta endpoints" (limit-order sizing).
Choice: every order that has not ended counts, a suspended one and one that is being cancelled too; the rest
    is at least 0. Keys are in lower case; a token that is not listed has "0".
Choice: native tokens need no allowance, and what orders give of them is deposited already: all of the
    balance counts.
"""

from collections.abc import Iterable

from ....codecs.eip712_orders.delta import DeltaOrder, TwapBuyOrder, TwapOrder
from ....codecs.rounding import mul_div_down
from ....codecs.trading_token import NATIVE_TOKEN
from .terms import SettledOrder, next_part


def still_given(order: SettledOrder, filled: int) -> int:
    """Raw units of its source that an order may still take.

    Args:
        filled: what is settled: of the fixed side, or slices.
    """
    part = next_part(order, filled)
    if part is None:
        return 0
    match order:
        case DeltaOrder():
            return part.src_amount
        case TwapOrder():
            return order.total_src_amount - order.total_src_amount // order.num_slices * filled
        case TwapBuyOrder():
            slice_amount = order.total_dest_amount // order.num_slices
            whole_slices = order.num_slices - 1 - filled
            last = order.total_dest_amount - slice_amount * (order.num_slices - 1)
            each = mul_div_down(order.max_src_amount, slice_amount, order.total_dest_amount)
            return each * whole_slices + mul_div_down(order.max_src_amount, last, order.total_dest_amount)


def promised(orders: Iterable[tuple[SettledOrder, int]]) -> dict[bytes, int]:
    """Source token -> what orders may still take of it; of native tokens nothing, which are deposited.

    Args:
        orders: each with what is settled of it.
    """
    taken: dict[bytes, int] = {}
    for order, filled in orders:
        if order.src_token != NATIVE_TOKEN:
            taken[order.src_token] = taken.get(order.src_token, 0) + still_given(order, filled)
    return taken


def fillable(usable: int, taken: int) -> int:
    """What is left."""
    return max(0, usable - taken)
