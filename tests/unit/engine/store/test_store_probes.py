"""The store tells those who ask whether a write succeeds now, and is not written while nobody asks."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from cambist.config.errors import StoreError, StoreFull, StoreUnavailable
from cambist.config.timeouts import READY_LOOK_S
from cambist.engine.store import store as of_store
from cambist.engine.store.store import Store
from cambist.engine.store.tables import NONCE_USED
from cambist.engine.store.units import DONE, Put, Unit, UnitOutcome
from support.store.write_link import WriteLink
from support.stretched_bounds import OWN_S, own_bounds

SOON_S, READY_ANSWER_S = 2.0, OWN_S["READY_ANSWER_S"]
LARGE = Unit((Put(NONCE_USED.name, ()),))
FULL = StoreUnavailable("the database cannot be used: database or disk is full")


class ScriptedLink(WriteLink):
    """A database that takes everything, or fails as it is told.

    Attributes:
        error: raised for each batch.
        answers: batches are answered while it is set.
        changes_max: of a unit that fits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        self.answers = trio.Event()
        self.answers.set()
        self.changes_max = 1

    async def apply(self, number: int, units: Sequence[Any]) -> list[UnitOutcome]:
        self.batches.append(len(units))
        await trio.lowlevel.checkpoint()
        await self.answers.wait()
        if self.error is not None:
            raise self.error
        if any(len(unit.changes) > self.changes_max for unit in units):
            raise FULL
        return [DONE for _ in units]


@pytest.fixture
def link() -> ScriptedLink:
    return ScriptedLink()


@pytest.fixture
async def store(link: ScriptedLink, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Store:
    own_bounds(monkeypatch, of_store)
    store = Store(link, queue_max=2, batch_max=16)
    await nursery.start(store.run)
    return store


@pytest.mark.parametrize("error", [FULL, StoreError("the database failed: malformed")], ids=["full", "bad"])
async def test_a_store_that_refuses_says_so_and_when_it_is_back(
    store: Store, link: ScriptedLink, nursery: trio.Nursery, autojump_clock: MockClock, error: StoreError
) -> None:
    nursery.start_soon(store.run_probes)
    await trio.sleep(10.1)
    assert await store.probe() == store.away == store.statistics().away == ""
    link.error = error
    await trio.sleep(READY_LOOK_S)
    assert await store.probe() == store.away == store.statistics().away == error.detail
    await trio.sleep(30)
    link.error = None
    await trio.sleep(SOON_S)
    assert store.away == ""


async def test_a_store_that_hangs_says_so_and_when_it_is_back(
    store: Store, link: ScriptedLink, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    nursery.start_soon(store.run_probes)
    await trio.sleep(10.1)
    link.answers = trio.Event()
    said = f"the store does not answer within {READY_ANSWER_S:g} s"
    for _ in range(10):
        assert await store.probe() == said
    assert store.away == said
    assert store.statistics().batcher.queued == 0  # those who asked waited for one write
    link.answers.set()
    await trio.sleep(SOON_S)
    assert await store.probe() == store.away == ""


async def test_a_write_that_is_refused_says_so_until_none_was_for_a_second(
    store: Store, link: ScriptedLink, autojump_clock: MockClock
) -> None:
    link.error = FULL
    with pytest.raises(StoreUnavailable):
        await store.write(Unit(()))
    assert store.away == FULL.detail
    link.error = None
    await trio.sleep(0.9)
    await store.write(Unit(()))
    assert store.away == FULL.detail
    await trio.sleep(0.2)
    await store.write(Unit(()))
    assert store.away == ""


async def test_what_is_small_enough_for_a_disk_that_is_nearly_full_is_no_return(
    store: Store, link: ScriptedLink, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """Probes pass, and nothing else does."""
    link.changes_max = 0
    nursery.start_soon(store.run_probes)
    for _ in range(20):
        with pytest.raises(StoreUnavailable):
            await store.write(LARGE)
        for _ in range(7):
            assert store.away == FULL.detail
            await trio.sleep(0.1)
    link.changes_max = 1
    await trio.sleep(SOON_S)
    assert store.away == ""


async def test_a_store_that_was_opened_again_is_back_with_its_first_write(
    store: Store, link: ScriptedLink, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    nursery.start_soon(store.run_probes)
    store.lose(StoreUnavailable("the store process ended"))
    assert await store.probe() == store.away == "the store process ended"
    link.answers = trio.Event()
    store.recover()
    assert store.away == "no write has succeeded since the store was opened again"
    await trio.sleep(SOON_S)
    assert store.away
    link.answers.set()
    await trio.sleep(SOON_S)
    assert store.away == ""


async def test_a_full_queue_takes_nothing(store: Store, link: ScriptedLink, nursery: trio.Nursery) -> None:
    link.answers = trio.Event()
    for _ in range(3):  # one is in flight
        nursery.start_soon(store.write, Unit(()))
        await trio.testing.wait_all_tasks_blocked()
    assert store.away == "2 writes wait for the store"
    with pytest.raises(StoreFull):
        await store.write(Unit(()))
    link.answers.set()
    await store.drained()
    assert store.away == ""


async def test_a_store_that_nobody_asks_is_not_written(
    store: Store, link: ScriptedLink, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    nursery.start_soon(store.run_probes)
    await trio.sleep(60)
    assert link.batches == []


async def test_probes_are_few_and_one_at_a_time(
    store: Store, link: ScriptedLink, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def ask() -> None:
        while True:
            assert await store.probe() == ""
            await trio.sleep(0.01)

    for _ in range(20):
        nursery.start_soon(ask)
    await trio.sleep(10)
    assert 15 <= len(link.batches) <= 21
    assert set(link.batches) == {1}
    nursery.cancel_scope.cancel()


async def test_a_store_that_refuses_is_asked_four_times_a_second_at_most_whoever_asks(
    store: Store, link: ScriptedLink, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    link.error = FULL

    async def ask() -> None:
        while True:
            await store.probe()
            await trio.sleep(0.01)

    nursery.start_soon(store.run_probes)
    for _ in range(20):
        nursery.start_soon(ask)
    await trio.sleep(10)
    assert 20 <= len(link.batches) <= 42
    nursery.cancel_scope.cancel()


async def test_a_write_just_now_is_probe_enough(store: Store, link: ScriptedLink) -> None:
    await store.write(Unit(()))
    assert await store.probe() == ""
    assert link.batches == [1]
