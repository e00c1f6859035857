"""Orders to store as load: new orders that never repeat, and their rows for writers that bypass the store."""

import os
from collections.abc import Iterator

import msgspec

from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.engine.store.rows import NEVER_S, DeltaOrderRow, amount32
from cambist.engine.store.units import Change, New, Put, Unit, values_of
from cambist.engine.trade.orders.order_units import DELTA

DOCUMENT_BYTES = 300
TABLES = ("delta_order", "delta_document", "order_event")
"""Tables to which the submission of an order writes one row each."""

Rows = list[tuple[object, ...]]

_ZERO = amount32(0)


def order() -> DeltaOrderRow:
    """Make the row of a new Delta order of a new owner."""
    order_hash = os.urandom(32)
    return DeltaOrderRow(
        order_hash,
        order_hash[0],
        1,
        os.urandom(20),
        os.urandom(32),
        OnChainOrderType.ORDER,
        OrderType.MARKET,
        Side.SELL,
        "anon",
        1_700_000_000_000,
        NEVER_S,
        1,
        OrderStatus.PENDING,
        1_700_000_000_000,
        _ZERO,
        _ZERO,
        False,
    )


def submission(new: DeltaOrderRow | None = None) -> Unit:
    """Make the unit of changes that stores a new order, its document and its event."""
    return DELTA.submitted(new or order(), os.urandom(DOCUMENT_BYTES))


def submissions(count: int) -> list[Unit]:
    """Make the units of changes that store `count` new orders."""
    return [submission() for _ in range(count)]


def rows(units: list[Unit]) -> Iterator[tuple[str, Rows]]:
    """Yield (table, rows) of submissions, as plain values that come out of a message."""
    for number, table in enumerate(TABLES):
        yield table, [_plain(unit.changes[number]) for unit in units]


def _plain(change: Change) -> tuple[object, ...]:
    assert isinstance(change, New | Put)
    return tuple(msgspec.to_builtins(values_of(change.row), builtin_types=(bytes,)))
