"""Engines that start together on one PostgreSQL database share the shards soon, and never hold one both."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.engine.store.leases import SHARDS, Leases
from cambist.engine.store.store import Store
from cambist.engine.store.units import Done, Fence, Fenced
from support.patience import until
from support.store.stores import Engine, a_delta_order, a_step, found, kept

LIFE_S = 10.0


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
async def stores(tmp_path: Path, postgres_url: str) -> AsyncIterator[Sequence[Store]]:
    async with AsyncExitStack() as owned:
        yield [
            await owned.enter_async_context(Engine(postgres_url, tmp_path, in_process=True).open())
            for _ in range(3)
        ]


async def never_shared(engines: Sequence[Leases]) -> None:
    """Fail once two engines hold the same shard."""
    while True:
        waiting = [engine.changed() for engine in engines]
        held = [shard for engine in engines for shard in engine.held()]
        assert len(held) == len(set(held))
        async with trio.open_nursery() as nursery:
            for changed in waiting:
                nursery.start_soon(first_of, changed, nursery.cancel_scope)


async def first_of(changed: trio.Event, scope: trio.CancelScope) -> None:
    await changed.wait()
    scope.cancel()


def counted(engine: Leases) -> tuple[int, int]:
    """Number of engines that an engine knows, and of shards that it holds."""
    told = engine.statistics()
    return told.holders, told.held


@pytest.mark.parametrize("count", [2, 3])
async def test_engines_that_start_together_share_at_the_next_renewal(
    stores: Sequence[Store], count: int
) -> None:
    engines = [
        Leases(store, f"engine-{at}", life_s=LIFE_S, now_ms=wall_ms)
        for at, store in enumerate(stores[:count])
    ]
    least, more = divmod(SHARDS, count)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(never_shared, engines)
        for engine in engines:
            nursery.start_soon(engine.run)
        shares = [(count, least + (at < more)) for at in range(count)]
        await until(lambda: [counted(engine) for engine in engines] == shares)
        told = [engine.statistics() for engine in engines]
        # The engine that took all shards first gives back what is beyond its share at its second renewal.
        assert min(each.renewed for each in told) <= 2
        assert sum(each.given_back for each in told) <= SHARDS
        nursery.cancel_scope.cancel()


async def test_an_order_is_stepped_by_the_engine_that_holds_its_shard_and_by_no_other(
    stores: Sequence[Store],
) -> None:
    """The first engine holds every order and its fences when the second comes; both then try every order."""
    first, second = (
        Leases(store, name, life_s=LIFE_S, now_ms=wall_ms)
        for name, store in zip(("first", "second"), stores, strict=False)
    )
    orders = [await kept(stores[0], a_delta_order(number, shard=number)) for number in range(SHARDS)]
    async with trio.open_nursery() as nursery:
        await nursery.start(first.run)
        old = dict(first.held())
        assert len(old) == SHARDS
        await nursery.start(second.run)
        await until(lambda: (len(first.held()), len(second.held())) == (128, 128))
        steps = dict.fromkeys(range(SHARDS), 0)
        for order in orders:
            late, own = old[order.shard], second.fence(order.shard)
            for store, fence in ((stores[0], late), (stores[1], own)):
                steps[order.shard] += await stepped(store, order.shard, fence)
        assert set(steps.values()) == {1}
        for order in orders:
            row = await found(stores[2], order)
            assert row is not None
            assert (row.status, row.version) == (OrderStatus.ACTIVE, order.version + 1)
        nursery.cancel_scope.cancel()


async def stepped(store: Store, shard: int, fence: Fence | None) -> bool:
    """Whether a step of the shard's order was written; an engine without the shard does not try."""
    if fence is None:
        return False
    outcome = await store.write(
        a_step(a_delta_order(shard, shard=shard), status=OrderStatus.ACTIVE, fence=fence)
    )
    assert outcome in (Done(), Fenced(shard))
    return outcome == Done()
