"""A step of an order's life, for any kind of orders. Pure."""

from typing import Generic

from msgspec import Struct

from ..store.units import Change
from .order_units import Intent, OrderRow


class OrderStep(Struct, Generic[OrderRow], frozen=True):
    """The content of one store unit.

    Attributes:
        after: the next row.
        effects: effects that the step wants.
        more: further changes.
    """

    after: OrderRow
    effects: tuple[Intent, ...] = ()
    more: tuple[Change, ...] = ()
