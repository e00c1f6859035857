"""A single step of the chain that changes very many orders at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.limits import VENUE_LOAD_ORDERS
from cambist.engine.chain.index.indexer import Advance
from cambist.engine.chain.index.ring import Mark
from cambist.engine.delta.orders.document import encode_document
from cambist.engine.delta.orders.live_orders import LiveOrders
from cambist.engine.delta.settlement.projection import DeltaProjection
from cambist.engine.store.leases import Leases
from cambist.engine.store.queries import IDS_MAX
from cambist.engine.store.rows import DeltaFill, DeltaOrderRow, OrderDocument, amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELTA_DOCUMENT, DELTA_FILL, DELTA_ORDER
from cambist.engine.store.units import Done, Unit, new, put
from support.delta.bidding import a_round_order
from support.store.store_work import now_ms
from support.store.stores import NOW_MS, Engine, a_delta_order, found, hash_of

MANY = max(IDS_MAX, 2 * VENUE_LOAD_ORDERS) + 100
CONFIRMATIONS = 3
TOP = 50


@asynccontextmanager
async def many_orders(
    folder: Path, status: OrderStatus
) -> AsyncIterator[tuple[Store, LiveOrders, DeltaProjection, list[DeltaOrderRow]]]:
    """A store with MANY orders of a status, which are in memory."""
    body = encode_document(a_round_order(1).document)
    rows = [a_delta_order(number, status=status) for number in range(MANY)]
    async with Engine("sqlite:cambist.sqlite3", folder, in_process=True).open() as store:
        for at in range(0, MANY, 100):
            some = rows[at : at + 100]
            documents = [put(DELTA_DOCUMENT, OrderDocument(row.order_hash, body)) for row in some]
            assert await store.write(Unit((*(new(DELTA_ORDER, row) for row in some), *documents))) == Done()
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        orders = LiveOrders(store, leases)
        projection = DeltaProjection(
            store,
            orders,
            confirmations=CONFIRMATIONS,
            failures_max=3,
            now_ms=lambda: NOW_MS,
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            await orders.load(rows, ())
            assert len(orders) == MANY
            yield store, orders, projection, rows
            nursery.cancel_scope.cancel()


def a_step(number: int, *fills: DeltaFill) -> Advance:
    return Advance(1, Mark(number, hash_of(number)), (), (), tuple((DELTA_FILL, fill) for fill in fills))


def a_fill(row: DeltaOrderRow, at: int) -> DeltaFill:
    block = row.chain_id, hash_of(TOP), hash_of(TOP + 1), at, TOP
    amounts = amount32(5), amount32(9), NOW_MS, amount32(5)
    return DeltaFill(*block, row.order_hash, None, *amounts, is_closed=True)


async def test_a_step_may_settle_more_orders_than_the_store_is_asked_about_at_once(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.ACTIVE) as (store, _, projection, rows):
        fills = [a_fill(row, at) for at, row in enumerate(rows)]
        changes = await projection.changes(a_step(TOP, *fills))
        assert await store.write(Unit(tuple(changes))) == Done()
        after = [await found(store, row) for row in rows]
    assert {(one.status, one.spent) for one in after if one is not None} == {
        (OrderStatus.COMPLETED, amount32(5))
    }
    assert len(after) == MANY


async def test_orders_that_have_ended_become_final_by_so_many_a_step(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.EXPIRED) as (store, orders, projection, rows):
        assert not await projection.changes(a_step(TOP))
        finals: list[int] = []
        for number in range(TOP + CONFIRMATIONS - 1, TOP + CONFIRMATIONS + 3):
            changes = await projection.changes(a_step(number))
            if changes:
                assert await store.write(Unit(tuple(changes))) == Done()
            kept = [await found(store, row) for row in rows if orders.get(row.order_hash) is not None]
            ended = [one for one in kept if one is not None and one.is_final]
            finals.append(len(ended))
            await orders.step_all([one.order_hash for one in ended], lambda _: None, is_fenced=False)
    rest = MANY - 2 * VENUE_LOAD_ORDERS
    assert finals == [VENUE_LOAD_ORDERS, VENUE_LOAD_ORDERS, rest, 0]
