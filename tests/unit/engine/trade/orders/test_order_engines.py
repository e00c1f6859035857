"""Common duties of all engines of orders: notices, their sequence, and the receivers of each event."""

from collections.abc import AsyncIterator, Awaitable, Callable, Container, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from cambist.config.errors import StoreUnavailable
from cambist.engine.chain.port import At, Header
from cambist.engine.roles.telemetry.metrics import Metrics
from cambist.engine.roles.telemetry.order_metrics import engine_families
from cambist.engine.store.leases import SHARDS, Leases
from cambist.engine.store.rows import OrderEvent
from cambist.engine.store.store import Store
from cambist.engine.store.units import Fence
from cambist.engine.trade.orders import order_engines
from cambist.engine.trade.orders.boot import TakenUp
from cambist.engine.trade.orders.followed_chain import FollowedChains
from cambist.engine.trade.orders.order_engines import Footing, OrderEngines
from cambist.engine.trade.orders.scheduler import Scheduler
from support.chain.indexing import sqlite_engine
from support.chain.scripted_chain import ScriptedChain
from support.patience import until
from support.store.store_work import now_ms
from support.store.stores import a_delta_order, an_otc_order, hash_of, kept

Told = list[tuple[str, ...]]
Hook = Callable[[], Awaitable[None]]


async def nothing() -> None:
    """No hook."""
    await trio.lowlevel.checkpoint()


class PlayedEngine:
    """An engine that notes what it is told.

    Attributes:
        on_load: runs before each load is noted.
        loaded: hashes of its orders, by load.
        held: that it was last told of.
    """

    def __init__(self, kind: str, told: Told) -> None:
        self.kind = kind
        self.told = told
        self.on_load: Hook = nothing
        self.loaded: list[set[bytes]] = []
        self.held: Container[int] = ()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await trio.lowlevel.checkpoint()
        self.told.append(("run", self.kind))
        task_status.started()
        await trio.sleep_forever()

    async def load(self, taken_up: TakenUp) -> None:
        await self.on_load()
        rows: list[Any] = [*taken_up.delta] if self.kind == "delta" else [*taken_up.otc]
        self.told.append(("load", self.kind))
        self.loaded.append({row.order_hash for row in rows})

    async def leave(self, held: Container[int]) -> None:
        await trio.lowlevel.checkpoint()
        self.held = held

    async def hear(self, events: Sequence[OrderEvent]) -> None:
        await trio.lowlevel.checkpoint()
        self.told += [("hear", self.kind, event.surface, event.order_hash.hex()) for event in events]


class PlayedLeases:
    """Shards that come and go as the test says."""

    def __init__(self, *fences: Fence) -> None:
        self._held = {fence.shard: fence for fence in fences}
        self._changed = trio.Event()

    def hold(self, *fences: Fence) -> None:
        self._held = {fence.shard: fence for fence in fences}
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def held(self) -> dict[int, Fence]:
        return self._held

    def changed(self) -> trio.Event:
        return self._changed

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep_forever()


class ToldChain(ScriptedChain):
    """A chain that records its first request."""

    def __init__(self, told: Told) -> None:
        super().__init__()
        self.told = told

    async def block(self, at: At = None) -> Header | None:
        if ("chain",) not in self.told:
            self.told.append(("chain",))
        return await super().block(at)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with sqlite_engine(tmp_path).open() as opened:
        yield opened


def a_footing(store: Store, leases: Any, chain: ScriptedChain | None = None) -> Footing:
    """Footing of engines, which follows the given chain."""
    chain = ScriptedChain() if chain is None else chain
    place: Any = SimpleNamespace(
        chain=chain,
        followed=trio.Event(),
        settings=SimpleNamespace(rfq=True, delta=False, confirmations=1),
        rfq=b"\x0f" * 20,
        delta=b"",
    )
    chains = FollowedChains({chain.chain_id: place}, store, now_ms)
    return Footing(store, leases, Scheduler(now_ms), chains, now_ms)


async def test_whoever_boots_begins_after_what_it_needs(store: Store, nursery: trio.Nursery) -> None:
    told: Told = []
    chain = ToldChain(told)
    footing = a_footing(store, Leases(store, "one", life_s=60, now_ms=now_ms), chain)
    followed = footing.chains.of(chain.chain_id)
    footing.scheduler.at(0, "overdue", lambda: told.append(("timer",)))
    engines = [PlayedEngine("delta", told), PlayedEngine("otc", told)]
    ours, theirs = await kept(store, a_delta_order(1)), await kept(store, an_otc_order(2))
    held: list[int] = []

    async def note() -> None:
        await trio.lowlevel.checkpoint()
        held.append(len(footing.leases.held()))

    for engine in engines:
        engine.on_load = note
    running = OrderEngines(footing, engines)
    await nursery.start(running.run)
    await until(lambda: followed.read_to() is not None and running.statistics().shards)
    assert told[:2] == [("run", "delta"), ("run", "otc")]
    assert sorted(told[2:]) == [("chain",), ("load", "delta"), ("load", "otc"), ("timer",)]
    assert [engine.loaded for engine in engines] == [[{ours.order_hash}], [{theirs.order_hash}]]
    assert held == [SHARDS, SHARDS]
    statistics = running.statistics()
    assert statistics.shards == SHARDS
    assert statistics.indexers[str(chain.chain_id)].block_hash == chain.head.hash
    metrics = Metrics()
    metrics.add(engine_families, running.statistics)
    page = b"".join(metrics.render()).decode()
    assert f"cambist_delta_shards {SHARDS}.0" in page
    assert f'cambist_delta_indexed_block{{chain="{chain.chain_id}"}} {chain.head.number}.0' in page
    assert f'cambist_delta_reorganisations_total{{chain="{chain.chain_id}"}} 0.0' in page
    nursery.cancel_scope.cancel()


async def test_each_event_is_heard_by_the_engine_of_its_kind(store: Store, nursery: trio.Nursery) -> None:
    told: Told = []
    engines = [PlayedEngine("delta", told), PlayedEngine("otc", told)]
    await kept(store, a_delta_order(1))

    async def written_meanwhile() -> None:
        await kept(store, an_otc_order(2))
        engines[0].on_load = nothing

    engines[0].on_load = written_meanwhile
    leases = Leases(store, "one", life_s=60, now_ms=now_ms)
    await nursery.start(OrderEngines(a_footing(store, leases), engines).run)
    await until(lambda: engines[1].loaded)
    await kept(store, a_delta_order(3))
    await kept(store, an_otc_order(4))

    def heard() -> list[tuple[str, ...]]:
        return [one[1:] for one in told if one[0] == "hear"]

    await until(lambda: len(heard()) == 3)
    assert heard() == [
        ("otc", "otc", hash_of(2).hex()),
        ("delta", "delta", hash_of(3).hex()),
        ("otc", "otc", hash_of(4).hex()),
    ], "what was there before is taken up, and not heard"
    nursery.cancel_scope.cancel()


async def test_events_of_a_kind_that_nobody_runs_are_passed_over(store: Store, nursery: trio.Nursery) -> None:
    told: Told = []
    footing = a_footing(store, Leases(store, "one", life_s=60, now_ms=now_ms))
    await nursery.start(OrderEngines(footing, [PlayedEngine("delta", told)]).run)
    await kept(store, an_otc_order(1))
    await kept(store, a_delta_order(2))
    await until(lambda: ("hear", "delta", "delta", hash_of(2).hex()) in told)
    assert [one[2] for one in told if one[0] == "hear"] == ["delta"]
    nursery.cancel_scope.cancel()


async def test_orders_come_and_go_with_their_shards(store: Store, nursery: trio.Nursery) -> None:
    rows = [await kept(store, a_delta_order(number, shard=number)) for number in range(1, 4)]
    one, two, three = ({row.order_hash} for row in rows)
    engine, leases = PlayedEngine("delta", []), PlayedLeases(Fence(1, 1))
    await nursery.start(OrderEngines(a_footing(store, leases), [engine]).run)
    await until(lambda: engine.loaded)
    assert (engine.loaded, engine.held) == ([one], {1: Fence(1, 1)})
    leases.hold(Fence(1, 1), Fence(2, 1), Fence(3, 1))
    await until(lambda: len(engine.loaded) == 2)
    assert engine.loaded[1] == two | three, "those that it has are not read again"
    leases.hold(Fence(2, 1), Fence(3, 2))
    await until(lambda: len(engine.loaded) == 3)
    assert engine.loaded[2] == three, "somebody else had it meanwhile"
    assert engine.held == {2: Fence(2, 1), 3: Fence(3, 2)}
    nursery.cancel_scope.cancel()


async def test_chains_and_events_are_followed_beside_orders_that_are_taken_up(
    store: Store, nursery: trio.Nursery
) -> None:
    told: Told = []
    engine, is_read = PlayedEngine("delta", told), trio.Event()
    engine.on_load = is_read.wait
    chain = ToldChain(told)
    footing = a_footing(store, Leases(store, "one", life_s=60, now_ms=now_ms), chain)
    followed = footing.chains.of(chain.chain_id)
    running = OrderEngines(footing, [engine])
    await nursery.start(running.run)
    await kept(store, a_delta_order(1))
    await until(lambda: followed.read_to() is not None)
    await until(lambda: ("hear", "delta", "delta", hash_of(1).hex()) in told)
    assert (engine.loaded, running.statistics().shards) == ([], 0)
    is_read.set()
    await until(lambda: running.statistics().shards == SHARDS)
    assert len(engine.loaded) == 1
    nursery.cancel_scope.cancel()


async def test_orders_are_taken_up_again_where_the_store_was_away(
    store: Store, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_engines, "SETTLING_PAUSE_S", 0.001)
    told: Told = []
    engines = [PlayedEngine("delta", told), PlayedEngine("otc", told)]
    tries = 0

    async def away() -> None:
        nonlocal tries
        await trio.lowlevel.checkpoint()
        tries += 1
        if tries < 3:
            raise StoreUnavailable("gone")

    engines[1].on_load = away
    footing = a_footing(store, Leases(store, "one", life_s=60, now_ms=now_ms))
    running = OrderEngines(footing, engines)
    await nursery.start(running.run)
    await until(lambda: running.statistics().shards == SHARDS)
    assert told.count(("load", "delta")) == 3, "what is loaded again is known already"
    assert told.count(("load", "otc")) == 1
    nursery.cancel_scope.cancel()
