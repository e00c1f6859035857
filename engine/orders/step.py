"""One step of an order's life, of whatever kind: what is written in one unit. Pure."""

from typing import Generic

from msgspec import Struct

from ..store.units import Change
from .order_units import Intent, OrderRow


class OrderStep(Struct, Generic[OrderRow], frozen=True):
    """What is written in one unit.

    Attributes:
        after: the next row.
        effects: that it wants.
        more: what else is written.
    """

    after: OrderRow
    effects: tuple[Intent, ...] = ()
    more: tuple[Change, ...] = ()
