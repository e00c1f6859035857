"""Runs the engines of a venue, one for each kind of orders (Delta, OTC), and their shared parts.

    leases -> the engines' own tasks -> the present position in the log of events
        -> open orders and unfinished effects of the shards, a part at a time
        -> meanwhile, the engines handle later events, timers, requests, and the chains from their cursors on

An engine loads the orders of shards that this process gains, drops the orders of shards that it loses, and
receives each event of its kind from any process. The engines share one set of leases, one reader of the log
of events, one scheduler, and one indexer for each chain that some engine follows.

A start is handled like a later gain of shards. An event of an order that is not loaded yet makes the engine
read that order at once. Orders that wait for an auction round are loaded before limit orders, which may be
very many.

Source: ARCHITECTURE.md, "Orders", "Transitions", "Start".
"""

import secrets
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Protocol

import structlog
import trio
from msgspec import Struct

from ....config.errors import StoreUnavailable
from ....config.settings import Settings
from ....config.timeouts import SETTLING_PAUSE_S
from ...chain.index.indexer import IndexerStatistics
from ...store.follower import EventFollower, latest
from ...store.leases import Leases
from ...store.rows import OrderEvent
from ...store.store import Store
from ...store.units import Fence
from ..served.served_chain import ServedChains
from .boot import TakenUp, take_up
from .followed_chain import FollowedChains
from .scheduler import Scheduler

_log = structlog.get_logger("cambist.venue")


class OrderEngine(Protocol):
    """Protocol of the engine that runs one kind of orders, Delta or OTC; `OrderEngines` runs the engines."""

    @property
    def kind(self) -> str:
        """Name of the engine's kind of orders in the log of events: `delta` or `otc`."""
        ...

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the engine's own tasks until cancelled; report as started once the engine accepts orders."""
        ...

    async def load(self, taken_up: TakenUp) -> None:
        """Load the open orders and unfinished effects of shards that this process has gained.

        The caller repeats a failed call.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        ...

    async def leave(self, held: Container[int]) -> None:
        """Drop the orders of shards that this process does not hold any more.

        Args:
            held: numbers of the shards that the process holds.
        """
        ...

    async def hear(self, events: Sequence[OrderEvent]) -> None:
        """Update the engine's orders after new events of its kind of orders, caused by any process.

        Guarantees: raises no error.
        """
        ...


class OrderTimer(Struct, frozen=True, gc=False):
    """Key and callback of an order's timer in one object, which saves memory when timers are many."""

    timers: "OrderTimers"
    order_hash: bytes

    def __call__(self) -> None:
        """Call `timers.look` with the order's hash."""
        self.timers.look(self.order_hash)


class OrderTimers:
    """Timers of one purpose (such as expiry), at most one for each order.

    Args:
        look: called with the hash of an order whose time has come; must be short and not wait.
    """

    def __init__(self, scheduler: Scheduler, look: Callable[[bytes], None]) -> None:
        self._scheduler = scheduler
        self.look = look

    def at(self, order_hash: bytes, at_ms: int) -> None:
        """Set the timer of an order to a time, Unix milliseconds, in place of the order's earlier timer."""
        timer = OrderTimer(self, order_hash)
        self._scheduler.at(at_ms, timer, timer)

    def cancel(self, order_hash: bytes) -> None:
        """Cancel the timer of an order, if it has one."""
        self._scheduler.cancel(OrderTimer(self, order_hash))


class Footing(Struct, frozen=True):
    """Store, leases, timers, chain indexers and clock that a venue's Delta and OTC order engines share.

    Attributes:
        leases: leases of this process's shards; other tasks of the process use them too.
        scheduler: runs the timers of orders.
        chains: chains whose logs are indexed; a chain is added once an engine asks for it.
        wall_ms: returns the time, Unix milliseconds.
    """

    store: Store
    leases: Leases
    scheduler: Scheduler
    chains: FollowedChains
    wall_ms: Callable[[], int]


class OrderEnginesStatistics(Struct, frozen=True):
    """Numbers of order shards and of engine processes, and the state of each chain's log indexer.

    Attributes:
        shards: number of shards, of 256, whose orders this process has loaded and runs.
        engines: number of processes that share the shards.
        indexers: statistics of the followed chains' indexers, by chain id.
    """

    shards: int
    engines: int
    indexers: Mapping[str, IndexerStatistics]


def open_footing(
    settings: Settings, store: Store, served_chains: ServedChains, wall_ms: Callable[[], int]
) -> Footing:
    """Create the store leases, timers and chain indexers that a venue's order engines share.

    This process holds its leases under a random name.

    Args:
        served_chains: served chains by chain id.
        wall_ms: returns the time, Unix milliseconds.
    """
    leases = Leases(store, f"venue-{secrets.token_hex(8)}", life_s=settings.store.lease_s, now_ms=wall_ms)
    return Footing(store, leases, Scheduler(wall_ms), FollowedChains(served_chains, store, wall_ms), wall_ms)


class OrderEngines:
    """Runs a venue's order engines, tells them of gained and lost shards, and passes them order events.

    The method `run` does this until cancelled.

    Args:
        footing: leases, timers and chain indexers that all engines share; `run` runs these too.
        engines: one engine of each kind of orders.

    Attributes:
        leases: leases of this process's shards.
    """

    def __init__(self, footing: Footing, engines: Sequence[OrderEngine]) -> None:
        self._store = footing.store
        self.leases = footing.leases
        self._scheduler = footing.scheduler
        self._chains = footing.chains
        self._engines = {engine.kind: engine for engine in engines}
        self._taken_up = 0

    def statistics(self) -> OrderEnginesStatistics:
        """Return the numbers of shards and processes, and the statistics of the followed chains' indexers."""
        return OrderEnginesStatistics(
            self._taken_up,
            self.leases.statistics().holders,
            {str(chain_id): chain.indexer.statistics() for chain_id, chain in self._chains},
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the order engines and their shared parts until cancelled.

        The task reports as started once new orders are accepted and the loading of stored orders has begun.
        """
        async with trio.open_nursery() as nursery:
            await nursery.start(self.leases.run)
            for engine in self._engines.values():
                await nursery.start(engine.run)
            # Read before the orders: a change after this place is heard as an event, and the rows that
            # `_follow_shards` reads later hold every change before it.
            place = await latest(self._store)
            nursery.start_soon(self._follow_shards)
            nursery.start_soon(self._follow_events, place)
            await nursery.start(self._scheduler.run)
            for _, chain in self._chains:
                await nursery.start(chain.indexer.run)
            task_status.started()

    async def _follow_shards(self) -> None:
        """Make all engines load orders of gained shards and drop orders of lost shards, until cancelled."""
        known: Mapping[int, Fence] = {}
        while True:
            changed = self.leases.changed()  # before `held`: a change while orders load also sets it
            held = self.leases.held()
            for engine in self._engines.values():
                await engine.leave(held)
            known = {shard: fence for shard, fence in known.items() if held.get(shard) == fence}
            fresh = [shard for shard in held if shard not in known]
            self._taken_up = len(known)
            try:
                taken_up = await take_up(self._store, fresh)
                for engine in self._engines.values():
                    await engine.load(taken_up)
            except StoreUnavailable as error:
                _log.warning("orders wait for the store", detail=error.detail)
                await trio.sleep(SETTLING_PAUSE_S)
                continue
            known = held
            self._taken_up = len(known)
            await changed.wait()

    async def _follow_events(self, after: str) -> None:
        """Pass each event of the log to the engine of the event's kind of orders, until cancelled.

        Args:
            after: resume token of a place in the log; the first event passed is the one after this place.
        """
        follower = EventFollower(self._store, after)
        while True:
            events = [event for _, event in await follower.page()]
            for kind, engine in self._engines.items():
                await engine.hear([event for event in events if event.surface == kind])
