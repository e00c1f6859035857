"""The counters of a store, over a sequence of writes whose outcome and duration are known."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing

from cambist.config.errors import StoreFull, StoreUnavailable
from cambist.engine.store import store as store_module
from cambist.engine.store.batcher import SIZES
from cambist.engine.store.store import COMMIT_BOUNDS_S, Store
from cambist.engine.store.units import DONE, Unit, UnitOutcome
from support.store.write_link import WriteLink

UNIT = Unit(())


class ScriptedLink(WriteLink):
    """Takes as long for each batch as the script says, or fails; `go` lets one batch through."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._script, self._take = trio.open_memory_channel[float | StoreUnavailable](16)

    def go(self, what: float | StoreUnavailable) -> None:
        self._script.send_nowait(what)

    async def apply(self, number: int, units: Sequence[Any]) -> list[UnitOutcome]:
        self.batches.append(len(units))
        what = await self._take.receive()
        if isinstance(what, StoreUnavailable):
            raise what
        self.now_s += what
        return [DONE] * len(units)


async def test_the_counters_are_those_of_what_happened(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = ScriptedLink()
    monkeypatch.setattr(store_module, "perf_counter", lambda: link.now_s)
    store = Store(link, queue_max=4, batch_max=3)
    await nursery.start(store.run)
    ended: list[str] = []

    async def write() -> None:
        try:
            await store.write(UNIT)
            ended.append("done")
        except StoreFull:
            ended.append("full")
        except StoreUnavailable:
            ended.append("unavailable")

    async def start(count: int) -> None:
        for _ in range(count):
            nursery.start_soon(write)
            await trio.testing.wait_all_tasks_blocked()

    await start(1)  # in flight alone
    await start(5)  # four wait, one finds the queue full
    statistics = store.statistics()
    assert (statistics.batcher.queued, statistics.batcher.in_flight, statistics.batcher.full) == (4, 1, 1)

    link.go(0.0015)
    await trio.testing.wait_all_tasks_blocked()
    link.go(StoreUnavailable("away"))  # three of the four
    await trio.testing.wait_all_tasks_blocked()
    link.go(9.0)
    await trio.testing.wait_all_tasks_blocked()

    assert link.batches == [1, 3, 1]
    assert sorted(ended) == ["done"] * 2 + ["full"] + ["unavailable"] * 3
    statistics = store.statistics()
    batcher = statistics.batcher
    assert (batcher.queued, batcher.in_flight, batcher.units, batcher.batches) == (0, 0, 2, 2)
    assert (batcher.full, batcher.unavailable) == (1, 3)
    assert batcher.sizes == (2, *([0] * len(SIZES)))
    commits = [0] * (len(COMMIT_BOUNDS_S) + 1)
    commits[COMMIT_BOUNDS_S.index(0.002)] = 1  # 1.5 ms
    commits[-1] = 1  # 9 s, beyond the last bound
    assert statistics.commits == tuple(commits)
    assert statistics.commit_s == pytest.approx(9.0015)
    assert statistics.away == "away", "it refused a batch just now"

    store.lose(StoreUnavailable("gone"))
    await start(1)
    assert (store.statistics().away, store.statistics().batcher.unavailable) == ("gone", 4)
    store.recover()
    await start(3)
    link.go(0.0)
    await trio.testing.wait_all_tasks_blocked()
    link.go(0.0)
    await trio.testing.wait_all_tasks_blocked()
    batcher = store.statistics().batcher
    assert link.batches[3:] == [1, 2]
    assert (batcher.units, batcher.batches, batcher.sizes[:2]) == (5, 4, (3, 1))
    assert store.statistics().commits[0] == 2
    nursery.cancel_scope.cancel()
