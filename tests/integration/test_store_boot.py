"""A start after an end, good or bad: the new process takes up unfinished work, and no other process can write
it.
"""

import trio

from cambist.codecs.messages.vocabulary import OrderStatus, OtcState
from cambist.engine.store.leases import Leases
from cambist.engine.store.rows import DeltaOrderRow, OtcOrderRow
from cambist.engine.store.units import Fence, Fenced
from cambist.engine.trade.orders.boot import take_up
from cambist.engine.trade.orders.order_units import Intent, effect_key, finished
from support.store.stores import (
    NOW_MS,
    Engine,
    a_delta_order,
    a_step,
    an_otc_order,
    effect_of,
    kept,
    moved,
)

SHARDS = 256


async def test_a_new_engine_takes_up_what_the_one_before_left(engine: Engine) -> None:
    open_delta: list[DeltaOrderRow] = []
    open_otc: list[OtcOrderRow] = []
    intended = []
    async with engine.open() as store:
        before = {lease.shard: lease for lease in await store.lease("before", SHARDS, NOW_MS, 1_000)}
        for number in range(7):
            order = await kept(store, a_delta_order(number), Intent("auction"))
            key = effect_key(order.order_hash, 1, "auction")
            if number == 3:
                done = finished(await effect_of(store, key), NOW_MS)
                await moved(store, order, status=OrderStatus.EXPIRED, is_final=True, more=[done])
            else:
                open_delta.append(order)
                intended.append(key)
        for number in range(10, 15):
            otc = await kept(store, an_otc_order(number))
            if number == 12:
                await moved(store, otc, status=OtcState.CANCELLED, is_final=True)
            else:
                open_otc.append(await moved(store, otc, status=OtcState.SUSPENDED))
    async with engine.open() as store, trio.open_nursery() as nursery:
        leases = Leases(store, "after", life_s=10.0, now_ms=lambda: NOW_MS + 2_000)
        await nursery.start(leases.run)
        taken = await take_up(store, leases.held(), page_rows=2)
        assert taken.delta == open_delta
        assert taken.otc == open_otc
        assert [effect.key for effect in taken.effects] == sorted(intended)
        first = taken.delta[0]
        late = a_step(first, status=OrderStatus.ACTIVE, fence=Fence(first.shard, before[first.shard].epoch))
        assert await store.write(late) == Fenced(first.shard)
        await moved(store, first, status=OrderStatus.ACTIVE, fence=leases.fence(first.shard))
        nursery.cancel_scope.cancel()


async def test_only_shards_that_are_held_are_read(engine: Engine) -> None:
    async with engine.open() as store:
        orders = [await kept(store, a_delta_order(number, shard=number % 4)) for number in range(12)]
        taken = await take_up(store, {1, 3}, page_rows=5)
        assert taken.delta == [order for order in orders if order.shard in (1, 3)]
        assert await take_up(store, ()) == type(taken)([], [], [])
