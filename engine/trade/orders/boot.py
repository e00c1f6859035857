"""Loads open orders and their unfinished side effects from the store, at the start or for new shards.

    leases -> unfinished effects -> open orders
        meanwhile: the chain is read from its cursor on, and requests are answered

The process holds the leases of the shards before the first read, so that their earlier holder cannot write
any more. A cancellation or a step of the indexer may still change an order that was read: its event makes the
engine read the order again. Each unfinished effect is executed again, by the executor of its kind.

Source: ARCHITECTURE.md, "Start".
"""

from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct

from ....config.limits import BOOT_PAGE_ROWS
from ...store.queries import Query, intended_effects, open_orders
from ...store.rows import DeltaOrderRow, Effect, OtcOrderRow
from ...store.store import Store
from ...store.tables import EFFECT, Table
from ...store.units import row_of
from .order_units import DELTA, OTC


class TakenUp(Struct, frozen=True):
    """Open orders and unfinished side effects of some shards, as read from the store.

    A shard is the set of all orders whose hashes have the same first byte.

    Attributes:
        delta, otc: Delta and OTC orders that may still change, oldest first.
        effects: acts outside the store, such as settlements, that are requested by stored rows and not yet
            executed; sorted by effect key.
    """

    delta: list[DeltaOrderRow]
    otc: list[OtcOrderRow]
    effects: list[Effect]


async def take_up(store: Store, shards: Collection[int], page_rows: int = BOOT_PAGE_ROWS) -> TakenUp:
    """Read the open orders and unfinished effects of shards that this process has leased.

    Args:
        shards: numbers of the shards, 0 to 255: first bytes of the order hashes.
        page_rows: rows per read; other tasks run between two reads.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    held = sorted(shards)

    async def orders(table: Table) -> list[Any]:
        return await _all(
            store,
            table,
            lambda last: open_orders(table, held, last.order_hash if last else b"", page_rows),
            page_rows,
        )

    effects = await _all(
        store, EFFECT, lambda last: intended_effects(held, last.key if last else "", page_rows), page_rows
    )
    return TakenUp(await orders(DELTA.orders), await orders(OTC.orders), effects)


async def _all(store: Store, table: Table, page: Callable[[Any], Query], page_rows: int) -> list[Any]:
    """Read all rows that the queries of `page` select, a page at a time.

    Args:
        page: last row of the previous page -> query for the next page; None -> query for the first page.
        page_rows: most rows of a page; a page with fewer rows is the last.
    """
    found: list[Any] = []
    while True:
        (rows,) = await store.read(page(found[-1] if found else None))
        found += [row_of(table, values) for values in rows]
        if len(rows) < page_rows:
            return found
