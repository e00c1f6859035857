"""Shards: their holders on every engine, and the task that claims, renews and releases them in time."""

from collections.abc import AsyncIterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
import trio
from hypothesis import given
from trio.testing import MockClock

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import StoreUnavailable
from cambist.config.timeouts import STORE_LEASE_EVERY_S, STORE_LEASE_SOON_S
from cambist.engine.store.backend import Lease
from cambist.engine.store.leases import SHARDS, Leases, fair_share
from cambist.engine.store.store import Store
from cambist.engine.store.units import Done, Fence, Fenced
from support.store.stores import (
    NOW_MS,
    Engine,
    a_delta_order,
    a_step,
    all_at_once,
    found,
    kept,
    moved,
    submission,
)

_D = OrderStatus
LIFE_S = 9.0


# --- The store ------------------------------------------------------------------------------------------


async def test_a_shard_has_one_holder(store: Store) -> None:
    first = await store.lease("first", 100, NOW_MS, 10_000)
    second = await store.lease("second", 256, NOW_MS, 10_000)
    assert len(first) == 100
    assert len(second) == 156
    assert len({lease.shard for lease in (*first, *second)}) == 256
    assert await store.lease("third", 256, NOW_MS, 10_000) == []


async def test_a_renewed_shard_stays_with_its_epoch(store: Store) -> None:
    held = await store.lease("first", 256, NOW_MS, 10_000)
    assert await store.lease("first", 256, NOW_MS + 9_000, 10_000) == held
    assert await store.lease("second", 256, NOW_MS + 18_000, 10_000) == []


async def test_an_overdue_shard_is_taken_over_and_late_writes_are_fenced(store: Store) -> None:
    order = await kept(store, a_delta_order(shard=7))
    before = {lease.shard: lease.epoch for lease in await store.lease("first", 256, NOW_MS, 10_000)}
    order = await moved(store, order, status=_D.ACTIVE, fence=Fence(7, before[7]))
    after = {lease.shard: lease.epoch for lease in await store.lease("second", 256, NOW_MS + 10_001, 10_000)}
    assert all(after[shard] > epoch for shard, epoch in before.items())

    late = a_step(order, status=_D.EXPIRED, fence=Fence(7, before[7]))
    assert await store.write(late) == Fenced(7)
    assert await found(store, order) == order
    await moved(store, order, status=_D.SUSPENDED, fence=Fence(7, after[7]))
    assert await store.lease("first", 256, NOW_MS + 10_002, 10_000) == []


async def test_in_one_batch_only_what_is_fenced_is_left_out(store: Store) -> None:
    (lease,) = await store.lease("first", 1, NOW_MS, 10_000)
    orders = [await kept(store, a_delta_order(n, shard=lease.shard)) for n in range(2)]
    came = await all_at_once(
        store,
        a_step(orders[0], status=_D.ACTIVE, fence=Fence(lease.shard, lease.epoch - 1)),
        a_step(orders[1], status=_D.ACTIVE, fence=Fence(lease.shard, lease.epoch)),
        submission(a_delta_order(3)),
    )
    assert came == [Fenced(lease.shard), Done(), Done()]


async def test_a_shard_that_was_given_back_is_free_with_a_higher_epoch(store: Store) -> None:
    before = await store.lease("first", 256, NOW_MS, 10_000)
    await store.release("first")
    after = await store.lease("second", 256, NOW_MS, 10_000)
    assert [lease.shard for lease in after] == [lease.shard for lease in before]
    assert all(new.epoch > old.epoch for new, old in zip(after, before, strict=True))


async def test_some_shards_are_given_back_and_the_others_stay(store: Store) -> None:
    await store.lease("first", 256, NOW_MS, 10_000)
    await store.release("first", [3, 200])
    await store.release("second", [4])
    assert await store.lease("second", 256, NOW_MS, 10_000) == [Lease(3, 2), Lease(200, 2)]
    assert len(await store.lease("first", 0, NOW_MS, 10_000)) == 254


async def test_holders_live_until_they_end_or_are_not_heard_of(store: Store) -> None:
    assert await store.attend("second", NOW_MS, 10_000) == ["second"]
    assert await store.attend("first", NOW_MS + 5_000, 10_000) == ["first", "second"]
    assert await store.attend("first", NOW_MS + 10_001, 10_000) == ["first"]
    await store.attend("second", NOW_MS + 10_002, 10_000)
    await store.release("first")
    assert await store.attend("second", NOW_MS + 10_003, 10_000) == ["second"]


@given(st.sets(st.text(max_size=3), min_size=1, max_size=300))
def test_shares_are_even_and_make_up_all_shards(names: set[str]) -> None:
    holders = sorted(names)
    shares = [fair_share(holders, name) for name in holders]
    assert sum(shares) == SHARDS
    assert max(shares) - min(shares) <= 1


# --- An engine that starts where another ended ----------------------------------------------------------


async def test_on_a_file_the_engine_before_has_ended_and_its_shards_are_free(tmp_path: Path) -> None:
    engine = Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)
    async with engine.open() as store:
        await store.attend("killed", NOW_MS, 10_000)
        await store.lease("killed", 256, NOW_MS, 10_000)
    async with engine.open() as store:
        assert await store.attend("next", NOW_MS + 1, 10_000) == ["next"]
        assert set(await store.lease("next", 256, NOW_MS + 1, 10_000)) == {Lease(n, 2) for n in range(256)}


async def test_a_store_that_is_opened_again_under_its_engine_costs_it_no_shard(tmp_path: Path) -> None:
    engine = Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)
    async with engine.open() as store:
        await store.attend("engine", NOW_MS, 10_000)
        held = await store.lease("engine", 256, NOW_MS, 10_000)
    async with engine.open() as store:
        await store.attend("engine", NOW_MS + 1, 10_000)
        assert await store.lease("engine", 256, NOW_MS + 1, 10_000) == held


# --- The task -------------------------------------------------------------------------------------------


def now_ms() -> int:
    return NOW_MS + round(trio.current_time() * 1_000)


class Moody(Store):
    """A store of which the shards cannot be asked for at times, because it is away or does not answer."""

    mood = "well"

    async def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """As told by the mood."""
        if self.mood == "away":
            raise StoreUnavailable("away")
        if self.mood == "silent":
            await trio.sleep_forever()
        return await super().lease(holder, count, now_ms, life_ms)


@pytest.fixture
async def moody(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[Moody]:
    async with Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True).open() as store:
        store.__class__ = Moody
        assert isinstance(store, Moody)
        yield store


def a_holder(store: Store, name: str = "first", count: int = SHARDS) -> Leases:
    return Leases(store, name, life_s=LIFE_S, now_ms=now_ms, count=count)


async def test_shards_are_held_for_as_long_as_they_are_renewed(
    moody: Moody, autojump_clock: MockClock
) -> None:
    leases = a_holder(moody)
    assert leases.fence(0) is None
    async with trio.open_nursery() as nursery:
        await nursery.start(leases.run)
        assert len(leases.held()) == SHARDS
        fence = leases.fence(7)
        assert fence == Fence(7, 1)
        changed = leases.changed()
        await trio.sleep(100 * LIFE_S)
        assert leases.fence(7) == fence
        assert not changed.is_set()
        assert leases.statistics().renewed == pytest.approx(100 * LIFE_S / STORE_LEASE_EVERY_S, abs=3)
        assert await moody.lease("second", SHARDS, now_ms(), 1_000) == []
        nursery.cancel_scope.cancel()


async def test_at_a_good_end_shards_are_free_at_once(moody: Moody, autojump_clock: MockClock) -> None:
    leases = a_holder(moody)
    async with trio.open_nursery() as nursery:
        await nursery.start(leases.run)
        changed = leases.changed()
        nursery.cancel_scope.cancel()
    assert changed.is_set()
    assert leases.fence(7) is None
    assert leases.held() == {}
    taken = await moody.lease("second", SHARDS, now_ms(), 1_000)
    assert {lease.epoch for lease in taken} == {2}


@pytest.mark.parametrize("mood", ["away", "silent"])
async def test_what_cannot_be_renewed_is_given_up_before_another_can_have_it(
    moody: Moody, mood: str, autojump_clock: MockClock
) -> None:
    leases = a_holder(moody)
    async with trio.open_nursery() as nursery:
        await nursery.start(leases.run)
        began = trio.current_time()
        changed = leases.changed()
        moody.mood = mood
        await trio.sleep(LIFE_S - 0.001)
        assert leases.fence(7) == Fence(7, 1)
        assert await Store.lease(moody, "second", SHARDS, now_ms(), 1_000) == []
        with trio.fail_after(1):
            await changed.wait()
        assert trio.current_time() - began == pytest.approx(LIFE_S)
        assert leases.fence(7) is None
        assert leases.statistics().held == 0
        assert leases.statistics().given_up == 1

        moody.mood = "well"
        await trio.sleep(LIFE_S)
        assert leases.fence(7) == Fence(7, 1), "nobody else had it meanwhile"
        nursery.cancel_scope.cancel()


async def test_one_renewal_that_fails_costs_nothing(moody: Moody, autojump_clock: MockClock) -> None:
    leases = a_holder(moody)
    async with trio.open_nursery() as nursery:
        await nursery.start(leases.run)
        moody.mood = "silent"
        await trio.sleep(LIFE_S / 3)
        moody.mood = "well"
        changed = leases.changed()
        await trio.sleep(10 * LIFE_S)
        assert not changed.is_set()
        assert leases.statistics().given_up == 0
        assert leases.statistics().failed == 1
        nursery.cancel_scope.cancel()


async def test_an_engine_that_stood_still_learns_the_new_epoch_and_its_late_write_is_fenced(
    moody: Moody, autojump_clock: MockClock
) -> None:
    leases = a_holder(moody)
    order = await kept(moody, a_delta_order(shard=7))
    async with trio.open_nursery() as nursery:
        await nursery.start(leases.run)
        frozen = leases.fence(7)
        moody.mood = "silent"
        await trio.sleep(LIFE_S + 1)
        await Store.lease(moody, "second", SHARDS, now_ms(), 100)
        assert await moody.write(a_step(order, status=_D.ACTIVE, fence=frozen)) == Fenced(7)
        moody.mood = "well"
        await trio.sleep(2 * LIFE_S)
        assert leases.fence(7) == Fence(7, 3)
        await moved(moody, order, status=_D.ACTIVE, fence=leases.fence(7))
        nursery.cancel_scope.cancel()


async def test_the_task_starts_once_the_store_answers(moody: Moody, autojump_clock: MockClock) -> None:
    moody.mood = "away"
    leases = a_holder(moody)

    async def recover() -> None:
        await trio.sleep(3 * LIFE_S)
        moody.mood = "well"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(recover)
        await nursery.start(leases.run)
        assert 3 * LIFE_S <= trio.current_time() <= 3.5 * LIFE_S
        assert leases.statistics().failed >= 9
        nursery.cancel_scope.cancel()


async def test_holders_share_evenly_and_each_inherits_from_those_that_end(
    moody: Moody, autojump_clock: MockClock
) -> None:
    first, second, third = (a_holder(moody, name) for name in ("first", "second", "third"))
    async with trio.open_nursery() as nursery:
        await nursery.start(first.run)
        assert len(first.held()) == SHARDS
        second_scope = await nursery.start(_in_a_scope, second)
        assert second.held() == {}, "nobody has given any back yet"
        await trio.sleep(STORE_LEASE_EVERY_S + 2 * STORE_LEASE_SOON_S)
        assert (len(first.held()), len(second.held())) == (128, 128)
        third_scope = await nursery.start(_in_a_scope, third)
        await trio.sleep(STORE_LEASE_EVERY_S + 2 * STORE_LEASE_SOON_S)
        assert [len(one.held()) for one in (first, second, third)] == [86, 85, 85]
        assert len({*first.held(), *second.held(), *third.held()}) == SHARDS
        kept = first.held()
        second_scope.cancel()
        await trio.sleep(STORE_LEASE_EVERY_S + 2 * STORE_LEASE_SOON_S)
        assert (len(first.held()), len(third.held())) == (128, 128)
        assert kept.items() <= first.held().items(), "what stays keeps its epoch"
        third_scope.cancel()
        await trio.sleep(STORE_LEASE_EVERY_S + 2 * STORE_LEASE_SOON_S)
        assert len(first.held()) == SHARDS
        assert first.statistics().given_back == 128 + 42
        nursery.cancel_scope.cancel()


async def _in_a_scope(
    leases: Leases, *, task_status: trio.TaskStatus[trio.CancelScope] = trio.TASK_STATUS_IGNORED
) -> None:
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            task_status.started(scope)
