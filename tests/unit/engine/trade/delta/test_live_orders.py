"""Delta orders in memory, while other tasks change them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import StoreError
from cambist.config.limits import VENUE_LOAD_ORDERS
from cambist.config.settings import parse_settings
from cambist.engine.store.follower import START, EventFollower
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import DeltaFill, DeltaOrderRow, OrderDocument, amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELTA_DOCUMENT, DELTA_FILL, DELTA_ORDER
from cambist.engine.store.units import Change, Done, Unit, new, put
from cambist.engine.trade.delta.orders.document import encode_document
from cambist.engine.trade.delta.orders.life import SETTLE, DeltaStep
from cambist.engine.trade.delta.orders.live_orders import LiveOrder, LiveOrders, Sold
from cambist.engine.trade.orders.order_units import DELTA, Intent, effect_key, step
from cambist.engine.trade.orders.step import OrderStep
from support.delta.bidding import a_round_order
from support.patience import until
from support.store.store_work import now_ms
from support.store.stores import NOW_MS, a_delta_order, hash_of


@asynccontextmanager
async def one_order(folder: Path) -> AsyncIterator[tuple[Store, LiveOrders, DeltaOrderRow]]:
    """A store, the orders in memory, which follow nothing, and the row of the one there is."""
    asked = a_round_order(1)
    settings = parse_settings('state_dir = "."', {}, folder)
    async with open_store(settings, {}, folder, now_ms, in_process=True) as store:
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        orders = LiveOrders(store, leases)
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            row = a_delta_order()
            await orders.add(row, asked.document, asked.order, asked.terms)
            yield store, orders, row
            nursery.cancel_scope.cancel()


async def changed_by_another(
    store: Store, row: DeltaOrderRow, after: DeltaOrderRow, *intents: Intent, more: Sequence[Change] = ()
) -> None:
    assert await store.write(DELTA.advanced(row, after, effects=intents, more=more)) == Done()


async def following(store: Store, orders: LiveOrders) -> None:
    """Have the orders hear every event there was, and every one that comes."""
    follower = EventFollower(store, START)
    while True:
        await orders.hear([event for _, event in await follower.page()])


def live(orders: LiveOrders, row: DeltaOrderRow) -> LiveOrder:
    found = orders.get(row.order_hash)
    assert found is not None
    return found


async def test_a_step_that_meets_another_learns_of_the_settlement_that_it_intended(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (store, orders, row):
        won = step(row, NOW_MS, status=OrderStatus.ACTIVE)
        await changed_by_another(store, row, won, Intent(SETTLE, b"payload"))
        seen: list[str | None] = []

        def decide(found: DeltaOrderRow) -> DeltaStep:
            seen.append(live(orders, row).settling)
            return OrderStep(step(found, NOW_MS))

        await orders.step(row.order_hash, decide)
        key = effect_key(row.order_hash, won.version, SETTLE)
        assert seen == [None, key]
        assert live(orders, row).settling == key
        assert live(orders, row).row.version == won.version + 1


async def test_a_step_that_meets_a_fill_learns_how_much_is_filled(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (store, orders, row):
        block = row.chain_id, hash_of(7), hash_of(8), 0, 10
        sums = amount32(5), amount32(9), NOW_MS, amount32(5)
        fill = DeltaFill(*block, row.order_hash, None, *sums, is_closed=False)
        after = step(row, NOW_MS, spent=amount32(5), received=amount32(9))
        await changed_by_another(store, row, after, more=(put(DELTA_FILL, fill),))
        await orders.step(row.order_hash, lambda row: OrderStep(step(row, NOW_MS, status=OrderStatus.ACTIVE)))
        assert live(orders, row).filled == 5


async def test_what_was_read_before_a_step_does_not_undo_it(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (_, orders, row):
        won = step(row, NOW_MS, status=OrderStatus.ACTIVE)
        await orders.step(row.order_hash, lambda _: OrderStep(won, (Intent(SETTLE, b"payload"),)))
        await orders.load([row], ())
        assert live(orders, row).settling == effect_key(row.order_hash, won.version, SETTLE)


async def test_others_have_their_turn_while_very_many_orders_are_taken_in(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (store, orders, _), trio.open_nursery() as nursery:
        body = encode_document(a_round_order(1).document)
        rows = [a_delta_order(number) for number in range(2, 2 + VENUE_LOAD_ORDERS)]
        for at in range(0, len(rows), 100):
            some = rows[at : at + 100]
            documents = [put(DELTA_DOCUMENT, OrderDocument(row.order_hash, body)) for row in some]
            assert await store.write(Unit((*(new(DELTA_ORDER, row) for row in some), *documents))) == Done()
        sizes = [len(orders)]

        async def count() -> None:
            while True:
                await trio.lowlevel.checkpoint()
                sizes.append(len(orders))

        nursery.start_soon(count)
        await orders.load(rows, ())
        assert len(orders) == 1 + VENUE_LOAD_ORDERS
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert max(after - before for before, after in pairwise(sizes)) <= VENUE_LOAD_ORDERS // 10


async def test_an_order_that_cannot_be_read_does_not_end_the_following(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with one_order(tmp_path) as (store, orders, row), trio.open_nursery() as nursery:
        read, failed = store.read, trio.Event()

        async def damaged(*queries: Query) -> Any:
            if queries and "delta_document" in queries[0].sql and not failed.is_set():
                failed.set()
                raise StoreError("a damaged row")
            return await read(*queries)

        monkeypatch.setattr(store, "read", damaged)
        nursery.start_soon(following, store, orders)
        active = step(row, NOW_MS, status=OrderStatus.ACTIVE)
        await changed_by_another(store, row, active)
        await failed.wait()
        assert live(orders, row).row == row
        again = step(active, NOW_MS)
        await changed_by_another(store, active, again)
        await until(lambda: live(orders, row).row == again)
        nursery.cancel_scope.cancel()


async def test_orders_are_counted_by_their_owner(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (_, orders, row):
        assert orders.count_of(row.owner) == 1
        ended = step(row, NOW_MS, status=OrderStatus.EXPIRED)
        await orders.step(row.order_hash, lambda _: OrderStep(ended))
        assert orders.count_of(row.owner) == 1, "that may still be undone"
        await orders.step(row.order_hash, lambda row: OrderStep(step(row, NOW_MS, is_final=True)))
        assert orders.count_of(row.owner) == orders.count_of(bytes(20)) == 0


async def test_what_others_change_is_followed(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (store, orders, row), trio.open_nursery() as nursery:
        nursery.start_soon(following, store, orders)
        won = step(row, NOW_MS, status=OrderStatus.ACTIVE)
        await changed_by_another(store, row, won, Intent(SETTLE, b"payload"))
        await until(lambda: live(orders, row).settling)
        assert live(orders, row).row == won
        nursery.cancel_scope.cancel()


def to_status(row: DeltaOrderRow, **changed: Any) -> DeltaStep:
    return OrderStep(step(row, NOW_MS, **changed))


async def test_what_an_owner_sells_follows_fills_ends_and_their_undoing(tmp_path: Path) -> None:
    """Of two orders for as much: one is filled by a third, lacks funds, ends, and is open again."""
    async with one_order(tmp_path) as (store, orders, row):
        asked = a_round_order(2)
        second = a_delta_order(2)
        before = orders.statistics().accepted
        for _ in range(2):  # an order that is stored already is not accepted anew
            await orders.add(second, asked.document, asked.order, asked.terms)
            assert orders.statistics().accepted == before + 1
        account = row.chain_id, asked.terms.owner, asked.terms.held_token
        whole = asked.terms.held_total
        assert orders.sold(*account) == Sold(2, 2 * whole)
        assert orders.sold(row.chain_id, asked.terms.owner, bytes(20)) == Sold(0, 0)

        part = whole // 3
        block = row.chain_id, hash_of(7), hash_of(8), 0, 10
        sums = amount32(part), amount32(part), NOW_MS, amount32(part)
        fill = DeltaFill(*block, row.order_hash, None, *sums, is_closed=False)
        after = step(row, NOW_MS, spent=amount32(part), received=amount32(part))
        await changed_by_another(store, row, after, more=(put(DELTA_FILL, fill),))
        for status, sold in (
            (OrderStatus.ACTIVE, Sold(2, 2 * whole - part)),
            (OrderStatus.SUSPENDED, Sold(2, 2 * whole - part)),
            (OrderStatus.CANCELLED, Sold(1, whole)),
            (OrderStatus.ACTIVE, Sold(2, 2 * whole - part)),
        ):
            await orders.step(row.order_hash, partial(to_status, status=status))
            assert orders.sold(*account) == sold, status
        for each in (row, second):
            await orders.step(each.order_hash, partial(to_status, status=OrderStatus.EXPIRED))
            await orders.step(each.order_hash, partial(to_status, is_final=True))
        assert orders.sold(*account) == Sold(0, 0)
        assert orders.statistics().fills == 1
