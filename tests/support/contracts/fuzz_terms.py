"""Bounds that a settlement has to keep, for each kind of Delta order. Pure."""

from cambist.codecs.contracts.contract_events import OrderSettled
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    AnyDeltaOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from support.contracts.fuzz_bridges import entering


def check_terms(order: AnyDeltaOrder, amount: int, event: OrderSettled) -> None:
    """Assert that a settlement of `amount` (raw units of the fixed side, or slices) keeps its order."""
    if isinstance(order, TwapOrder | TwapBuyOrder):
        assert (amount, event.is_closed) == (1, event.filled == order.num_slices)
        _check_slice(order, event)
    elif isinstance(order, ProductiveOrder):
        whole = order.shares if order.use_shares else order.src_amount
        assert event.received >= entering(order, -(-order.dest_amount * amount // whole))
        assert order.use_shares or event.spent <= amount
        assert event.filled <= whole
    elif order.kind == KIND_BUY:
        assert event.received >= entering(order, amount)
        assert event.spent <= order.src_amount * amount // order.dest_amount
        assert event.filled <= order.dest_amount
    else:
        assert event.received >= entering(order, -(-order.dest_amount * amount // order.src_amount))
        assert event.spent <= amount
        assert event.filled <= order.src_amount


def shares_given(order: AnyDeltaOrder, amount: int) -> int:
    """Most shares that a settlement of `amount` may take from the owner; 0 of an order without a vault."""
    if not isinstance(order, ProductiveOrder):
        return 0
    return amount if order.use_shares else -(-order.shares * amount // order.src_amount)


def _check_slice(order: TwapOrder | TwapBuyOrder, event: OrderSettled) -> None:
    if isinstance(order, TwapOrder):
        least = order.total_src_amount // order.num_slices
        given = order.total_src_amount - least * (order.num_slices - 1) if event.is_closed else least
        assert event.spent <= given
        assert event.received >= entering(order, -(-order.dest_amount_per_slice * given // least))
    else:
        least = order.total_dest_amount // order.num_slices
        bought = order.total_dest_amount - least * (order.num_slices - 1) if event.is_closed else least
        assert event.received >= entering(order, bought)
        assert event.spent <= order.max_src_amount * bought // order.total_dest_amount
