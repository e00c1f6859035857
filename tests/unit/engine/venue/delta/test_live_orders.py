"""What is in memory of Delta orders, where others change them at the same time."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from cambist.codecs.vocabulary import OrderStatus
from cambist.config.settings import parse_settings
from cambist.engine.store.boot import TakenUp
from cambist.engine.store.leases import Leases
from cambist.engine.store.opening import open_store
from cambist.engine.store.orders import DELTA, Intent, effect_key, step
from cambist.engine.store.rows import DeltaFill, DeltaOrder, amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELTA_FILL
from cambist.engine.store.units import Change, Done, put
from cambist.engine.venue.delta.life import SETTLE, Step
from cambist.engine.venue.delta.live_orders import LiveOrder, LiveOrders
from support.bidding import a_round_order
from support.store_work import eventually, now_ms
from support.stores import NOW_MS, a_delta_order, hash_of


@asynccontextmanager
async def one_order(folder: Path) -> AsyncIterator[tuple[Store, LiveOrders, DeltaOrder]]:
    """A store, the orders in memory, which follow nothing, and the row of the one there is."""
    asked = a_round_order(1)
    settings = parse_settings('state_dir = "."', {}, folder)
    async with open_store(settings, {}, folder, now_ms, in_process=True) as store:
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        orders = LiveOrders(store, leases)
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            row = a_delta_order()
            await orders.submit(row, asked.document, asked.order, asked.terms)
            yield store, orders, row
            nursery.cancel_scope.cancel()


async def changed_by_another(
    store: Store, row: DeltaOrder, after: DeltaOrder, *intents: Intent, more: Sequence[Change] = ()
) -> None:
    assert await store.write(DELTA.advanced(row, after, effects=intents, more=more)) == Done()


def live(orders: LiveOrders, row: DeltaOrder) -> LiveOrder:
    found = orders.get(row.order_hash)
    assert found is not None
    return found


async def test_a_step_that_meets_another_learns_of_the_settlement_that_it_intended(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (store, orders, row):
        won = step(row, NOW_MS, status=OrderStatus.ACTIVE)
        await changed_by_another(store, row, won, Intent(SETTLE, b"payload"))
        seen: list[str | None] = []

        def decide(found: DeltaOrder) -> Step:
            seen.append(live(orders, row).settling)
            return Step(step(found, NOW_MS))

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
        await orders.step(row.order_hash, lambda row: Step(step(row, NOW_MS, status=OrderStatus.ACTIVE)))
        assert live(orders, row).filled == 5


async def test_what_was_read_before_a_step_does_not_undo_it(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (_, orders, row):
        won = step(row, NOW_MS, status=OrderStatus.ACTIVE)
        await orders.step(row.order_hash, lambda _: Step(won, (Intent(SETTLE, b"payload"),)))
        await orders.load(TakenUp([row], [], []))
        assert live(orders, row).settling == effect_key(row.order_hash, won.version, SETTLE)


async def test_what_others_change_is_followed(tmp_path: Path) -> None:
    async with one_order(tmp_path) as (store, orders, row), trio.open_nursery() as nursery:
        nursery.start_soon(orders.follow, "0" * 32)
        won = step(row, NOW_MS, status=OrderStatus.ACTIVE)
        await changed_by_another(store, row, won, Intent(SETTLE, b"payload"))
        await eventually(lambda: live(orders, row).settling)
        assert live(orders, row).row == won
        nursery.cancel_scope.cancel()
