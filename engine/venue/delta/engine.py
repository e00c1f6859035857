"""The part of a venue that runs Delta orders: what each of them waits for, and who does it.

    an order is taken in, or has changed -> tend
        ended                       nothing is done for it any more
        a settlement has not ended  Settling
        CANCELLING                  CANCELLED, once no settlement is under way
        PENDING, ACTIVE             the auctioneer of its chain; a limit order its price first, see PriceWatch
        SUSPENDED                   its owner's funds, which FundsWatch follows
        whatever can be cancelled  expires, by the scheduler

Waiting orders are rows and timers; a task exists for a round or a settlement under way.

Boot: leases -> open orders and unfinished effects -> the chain from its cursor. An order that is overdue
expires only once the chain is read up to the head: a fill that nobody has seen yet comes first.

Source: design, "Orders"; storage.md, "Transactions", Boot; performance.md, "Orders in memory".
"""

from collections.abc import Awaitable, Callable, Mapping

import structlog
import trio
from msgspec import Struct

from ....codecs.vocabulary import OrderStatus
from ....config.errors import ChainError, OrderNotFound, StoreUnavailable
from ....config.timeouts import EXPIRY_GRACE_S, SETTLING_PAUSE_S
from ....crypto.hexadecimal import to_hex
from ...chain.indexer import Indexer, IndexerState, IndexerStatistics
from ...chain.relayer import Relayer, RelayerStatistics
from ...events.follower import latest
from ...scheduler import Scheduler
from ...store.boot import take_up
from ...store.leases import Leases
from ...store.queries import among
from ...store.rows import DeltaOrder, Effect
from ...store.store import Store
from ...store.tables import EFFECT
from ...store.units import Fence, row_of
from .auctioneer import Auctioneer, AuctioneerStatistics
from .funds_watch import FundsStatistics, FundsWatch
from .life import CANCEL, CANCELLABLE, ENDED, OPEN, Step, cancel_done, expired, rested
from .live_orders import LiveOrder, LiveOrders, LiveOrdersStatistics
from .price_watch import PriceWatch, RestingStatistics
from .resting_price import RestingFacts
from .settling import Settling, SettlingStatistics
from .terms import fits_until

_LOOK_MS = 1_000

_log = structlog.get_logger("cambist.venue")


class _Expiry(Struct, frozen=True):
    """An order's timer: its key and what it runs are one object, as there are many of them."""

    engine: "DeltaEngine"
    order_hash: bytes

    def __call__(self) -> None:
        self.engine.look_at_expiry(self.order_hash)


class DeltaChain(Struct, frozen=True):
    """What runs the orders of one chain."""

    relayer: Relayer
    indexer: Indexer
    settling: Settling
    auctioneer: Auctioneer
    prices: PriceWatch
    funds: FundsWatch


class DeltaChainStatistics(Struct, frozen=True):
    """One chain's."""

    relayer: RelayerStatistics
    indexer: IndexerStatistics
    settling: SettlingStatistics
    auctions: AuctioneerStatistics
    resting: RestingStatistics
    funds: FundsStatistics


class DeltaStatistics(Struct, frozen=True):
    """How the engine stands.

    Attributes:
        shards: of 256, that it runs the orders of.
        chains: by chain id.
    """

    shards: int
    orders: LiveOrdersStatistics
    chains: Mapping[str, DeltaChainStatistics]


class DeltaEngine:
    """See the module. `run` is its task.

    Args:
        leases: of this engine's own; they are run here.
        scheduler: of this engine's own; it is run here.
        orders: whose changes are told to `tend`.
        chains: by chain id.
        wall_ms: Unix milliseconds.
    """

    def __init__(
        self,
        store: Store,
        leases: Leases,
        scheduler: Scheduler,
        *,
        orders: LiveOrders,
        chains: Mapping[int, DeltaChain],
        wall_ms: Callable[[], int],
    ) -> None:
        self.store = store
        self._leases = leases
        self.scheduler = scheduler
        self._wall_ms = wall_ms
        self._nursery: trio.Nursery | None = None
        self._busy: set[bytes] = set()
        self.orders = orders
        self.chains = chains
        orders.changed = self.tend

    @property
    def leases(self) -> Leases:
        """The shards of this engine, for whoever else works for their holder."""
        return self._leases

    def statistics(self) -> DeltaStatistics:
        """Counters and present sizes."""
        return DeltaStatistics(
            len(self._leases.held()),
            self.orders.statistics(),
            {
                str(chain_id): DeltaChainStatistics(
                    chain.relayer.statistics(),
                    chain.indexer.statistics(),
                    chain.settling.statistics(),
                    chain.auctioneer.statistics(),
                    chain.prices.statistics(),
                    chain.funds.statistics(),
                )
                for chain_id, chain in self.chains.items()
            },
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the orders until cancelled. Started once what was not finished is taken up."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await nursery.start(self._leases.run)
            for chain in self.chains.values():
                chain.settling.start(nursery)
                await nursery.start(chain.relayer.run)
                await nursery.start(chain.auctioneer.run)
                await nursery.start(chain.prices.run)
                await nursery.start(chain.funds.run)
            place = await latest(self.store)
            await nursery.start(self._follow_shards)
            nursery.start_soon(self.orders.follow, place)
            await nursery.start(self.scheduler.run)
            for chain in self.chains.values():
                await nursery.start(chain.indexer.run)
            task_status.started()

    async def _follow_shards(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take up the orders of the shards that come, and leave those of the ones that go."""
        known: Mapping[int, Fence] = {}
        while True:
            changed = self._leases.changed()
            held = self._leases.held()
            self.orders.leave(held)
            for chain in self.chains.values():
                await chain.prices.leave(held)
                chain.auctioneer.leave(held)
                chain.settling.leave(held)
            known = {shard: fence for shard, fence in known.items() if held.get(shard) == fence}
            fresh = [shard for shard, fence in held.items() if known.get(shard) != fence]
            try:
                await self.orders.load(await take_up(self.store, fresh))
            except StoreUnavailable as error:
                _log.warning("orders wait for the store", detail=error.detail)
                await trio.sleep(SETTLING_PAUSE_S)
                continue
            known = held
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
            await changed.wait()

    def resting(self, chain_id: int, order_hash: bytes) -> RestingFacts | None:
        """Why an order rests; None where it does not."""
        chain = self.chains.get(chain_id)
        return None if chain is None else chain.prices.facts(order_hash)

    # --- What an order waits for ------------------------------------------------------------------------

    def tend(self, live: LiveOrder) -> None:
        """See that what an order waits for is on its way."""
        row = live.row
        chain = self.chains.get(row.chain_id)
        if chain is None:
            return
        chain.settling.tend(live)
        chain.funds.tend(live)
        if row.status in ENDED or row.is_final:
            self.scheduler.cancel(_Expiry(self, row.order_hash))
            chain.prices.forget(row.order_hash)
            chain.auctioneer.withdraw(row.order_hash)
            return
        if row.status in CANCELLABLE:
            self._expire_at(row, (_fits_until_s(live) + EXPIRY_GRACE_S) * 1_000)
        if live.settling is None and row.status in OPEN:
            chain.prices.tend(live)
        else:
            chain.prices.forget(row.order_hash)
            chain.auctioneer.withdraw(row.order_hash)
        if row.status is OrderStatus.CANCELLING and live.settling is None:
            self._start(self._cancel, row.order_hash)
        elif row.status is OrderStatus.PENDING and rested(row, 0) is not None:
            self._start(self._rest, row.order_hash)

    def _expire_at(self, row: DeltaOrder, at_ms: int) -> None:
        """Look then whether an order expires; where that time has passed, soon."""
        at_ms = max(at_ms, self._wall_ms() + _LOOK_MS)
        expiry = _Expiry(self, row.order_hash)
        self.scheduler.at(at_ms, expiry, expiry)

    def look_at_expiry(self, order_hash: bytes) -> None:
        """See whether an order expires, soon."""
        self._start(self._expire, order_hash)

    def _start(self, act: Callable[[bytes], Awaitable[None]], order_hash: bytes) -> None:
        """Do something about an order, unless something is being done: whoever changes it tends it anew."""
        if self._nursery is not None and order_hash not in self._busy:
            self._busy.add(order_hash)
            self._nursery.start_soon(self._act, act, order_hash)

    async def _act(self, act: Callable[[bytes], Awaitable[None]], order_hash: bytes) -> None:
        """Act, whatever is away meanwhile. Where that is a bug, the order waits for its next change."""
        is_done = False
        try:
            while not is_done:
                try:
                    await act(order_hash)
                    is_done = True
                except OrderNotFound:
                    is_done = True
                except (StoreUnavailable, ChainError) as error:
                    _log.warning("an order waits", order=to_hex(order_hash), detail=str(error))
                    await trio.sleep(SETTLING_PAUSE_S)
                except Exception as error:  # noqa: BLE001  one order's bug is not the others' end
                    _log.error(
                        "an order is stuck", order=to_hex(order_hash), detail=repr(error), exc_info=True
                    )
                    return
        finally:
            self._busy.discard(order_hash)
            live = self.orders.get(order_hash)
            if live is not None and is_done:  # not where it was cancelled: that would have no end
                self.tend(live)

    async def _rest(self, order_hash: bytes) -> None:
        await self.orders.step(order_hash, lambda row: rested(row, self._wall_ms()))

    async def _cancel(self, order_hash: bytes) -> None:
        """Nothing of the order is under way: it is cancelled."""
        (rows,) = await self.store.read(among(EFFECT, "order_hash", [order_hash]))
        effects: list[Effect] = [row_of(EFFECT, values) for values in rows]
        cancel = next((effect for effect in effects if effect.kind == CANCEL), None)

        def decide(row: DeltaOrder) -> Step | None:
            live = self.orders.get(order_hash)
            if live is None or live.settling is not None:
                return None
            return cancel_done(row, cancel, self._wall_ms())

        await self.orders.step(order_hash, decide)

    async def _expire(self, order_hash: bytes) -> None:
        """It is too late; nothing happens while a settlement is under way, or the chain unread."""
        now_ms = self._wall_ms()

        def decide(row: DeltaOrder) -> Step | None:
            live = self.orders.get(order_hash)
            state = self.chains[row.chain_id].indexer.statistics().state
            if live is None or live.settling is not None or state is not IndexerState.FOLLOWING:
                return None
            return expired(row, _fits_until_s(live), now_ms // 1_000, now_ms)

        await self.orders.step(order_hash, decide)


def _fits_until_s(live: LiveOrder) -> int:
    return fits_until(live.order, live.filled, live.last_fill_s)
