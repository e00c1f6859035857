"""Type of a life cycle step: an order's next row, with effects and changes of the same transaction. Pure."""

from typing import Generic

from msgspec import Struct

from ...store.units import Change
from .order_units import Intent, OrderRow


class OrderStep(Struct, Generic[OrderRow], frozen=True):
    """A life cycle step of an order: the order's next row, and its side effects and further changes.

    The store writes all of them in one transaction.

    Attributes:
        after: the order's row after the step.
        effects: side effects to execute once the step is stored.
        more: further changes to other rows in the same transaction.
    """

    after: OrderRow
    effects: tuple[Intent, ...] = ()
    more: tuple[Change, ...] = ()
