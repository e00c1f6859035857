"""Type of a life cycle step, for any kind of orders. Pure."""

from typing import Generic

from msgspec import Struct

from ..store.units import Change
from .order_units import Intent, OrderRow


class OrderStep(Struct, Generic[OrderRow], frozen=True):
    """A life cycle step: an order's next row, and the side effects and changes stored with it in one
    transaction.

    Attributes:
        after: the order's row after the step.
        effects: side effects to execute once the step is stored.
        more: further changes to other rows in the same transaction.
    """

    after: OrderRow
    effects: tuple[Intent, ...] = ()
    more: tuple[Change, ...] = ()
