"""Amounts of tokens that an account's Delta orders commit, and the amounts left for new orders. Pure.

    committed   amount of a token that the account's open limit orders may still take
    available   min(balance, allowance to the Delta contract), less the amount that the account's open and
                cancelling orders may still take; at least 0

Addresses of tokens are in lower case in answers; an unlisted token has "0".

Source: interop.md 3, fillablebalance; spec 1.22.6 and 1.22.7 (sizes of limit orders).
Choice: An order from a vault commits the vault's shares, at most as many as its owner signed.
Choice: An order that cannot settle, suspended or still unsigned on chain, commits nothing. A purchase commits
    the most that it may spend.
Choice: An order that is being cancelled commits nothing and still reduces `availablebalance`, since a
    settlement under way may win.
Choice: Orders that sell deposited native tokens commit nothing of the balance.
Choice: Delta's `fillablebalance` is the amount that open limit orders have committed, `"0"` without any,
    which clients subtract from the wallet's balance. `availablebalance` is the amount that new orders can
    still give.
"""

from collections.abc import Iterable

from .....codecs.eip712_orders.delta import ProductiveOrder, TwapBuyOrder, TwapOrder
from .....codecs.messages.vocabulary import OrderStatus
from .....codecs.rounding import mul_div_down, mul_div_up
from .....codecs.trading_token import NATIVE_TOKEN
from .life import OPEN
from .terms import SettledOrder, next_part

MAY_BE_SETTLED = OPEN | {OrderStatus.CANCELLING}
"""States of orders of which a settlement may still be mined."""


def still_given(order: SettledOrder, filled: int) -> int:
    """Compute the raw units of the source token, or of a vault's shares, that an order may still take.

    Args:
        filled: settled raw units of the source token (SELL) or the destination token (BUY); of a TWAP, the
            number of settled slices.
    """
    part = next_part(order, filled)
    if part is None:
        return 0
    match order:
        case ProductiveOrder():
            return shares_at_most(order, part.amount)
        case TwapOrder():
            return order.total_src_amount - order.total_src_amount // order.num_slices * filled
        case TwapBuyOrder():
            slice_amount = order.total_dest_amount // order.num_slices
            whole_slices = order.num_slices - 1 - filled
            last = order.total_dest_amount - slice_amount * (order.num_slices - 1)
            each = mul_div_down(order.max_src_amount, slice_amount, order.total_dest_amount)
            return each * whole_slices + mul_div_down(order.max_src_amount, last, order.total_dest_amount)
        case _:
            return part.src_amount


def shares_at_most(order: ProductiveOrder, amount: int) -> int:
    """Compute the most shares of a vault that a part of an order takes from its owner.

    Args:
        amount: raw units of the source token; of a sale of shares, the shares themselves.
    """
    return amount if order.use_shares else mul_div_up(order.shares, amount, order.src_amount)


def promised(orders: Iterable[tuple[SettledOrder, int]]) -> dict[bytes, int]:
    """Sum the raw units that orders may still take from their owners, by token taken.

    An order from a vault takes the vault's shares, any other order its source token. Orders that sell native
    tokens do not count.

    Args:
        orders: pairs of (order, settled amount), the amount as `filled` in `still_given`.
    """
    taken: dict[bytes, int] = {}
    for order, filled in orders:
        token = order.strategy if isinstance(order, ProductiveOrder) else order.src_token
        if token != NATIVE_TOKEN:
            taken[token] = taken.get(token, 0) + still_given(order, filled)
    return taken


def fillable(usable: int, taken: int) -> int:
    """Return an account's usable raw units of a token less the raw units that orders may take; at least 0."""
    return max(0, usable - taken)
