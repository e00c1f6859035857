"""The engine of a venue's Delta orders: assigns each order to the components that its state needs.

    an order is loaded, or has changed -> tend
        ended                        no component
        with a settlement under way  Settling
        CANCELLING                   a step to CANCELLED, once no settlement is under way
        PENDING, ACTIVE              the auctioneer of its chain; for a limit order PriceWatch first
        SUSPENDED                    FundsWatch, until the owner's funds are back
        settled across chains        BridgeDesk, until its transfers are delivered or refunded
        still cancellable            a timer, or a chain's clock that is ahead, which makes it EXPIRED

An order that waits is a row and perhaps a timer; only a round or a settlement under way has a task.

`order_engines` runs the parts shared with other kinds of orders: the engine's shards, timers, the chains'
indexers. An overdue order expires only once the chain is indexed up to its head, since a fill not yet indexed
comes first.

`open_delta` creates the engine and wires the callbacks of its components: the auctioneer's `unsettled` is
`PriceWatch.again`, and the `are_lacking` of `Settling` is `FundsWatch.are_lacking`.

Source: ARCHITECTURE.md, "Orders", "Transitions", "Start"; performance.md, "Orders that wait".
"""

from collections.abc import Callable, Container, Generator, Mapping, Sequence

import trio
from msgspec import Struct

from ....codecs.messages.vocabulary import OrderStatus, OrderType
from ....config.timeouts import EXPIRY_GRACE_S, READY_LOOK_S
from ....feeds.slices import Slices
from ....feeds.ticks import tick
from ...chain.relay.relayer import Relayer, RelayerStatistics
from ...store.queries import among
from ...store.rows import DeltaOrderRow, Effect, OrderEvent
from ...store.store import Store
from ...store.tables import EFFECT
from ...store.units import row_of
from ..orders.accounts_watch import FundsStatistics
from ..orders.boot import TakenUp
from ..orders.followed_chain import FollowedChain
from ..orders.live_rows import LiveRowsStatistics
from ..orders.order_acts import OrderActs
from ..orders.order_engines import OrderTimers
from ..orders.order_units import DELTA
from ..orders.scheduler import Scheduler
from .auction.auctioneer import Auctioneer, AuctioneerStatistics
from .bridge_desk import BridgeChainStatistics, BridgeDesk
from .orders.funds import MissingFund
from .orders.life import CANCEL, CANCELLABLE, ENDED, DeltaStep, cancel_done, expired, rested
from .orders.live_orders import LiveOrder, LiveOrders
from .orders.terms import fits_until
from .resting.price_watch import PriceWatch, RestingStatistics
from .resting.resting_price import RestingFacts
from .settlement.funds_watch import FundsWatch
from .settlement.settling import Settling, SettlingStatistics

_LOOK_MS = 1_000


class DeltaChain(Struct, frozen=True):
    """The components that run one chain's Delta orders, from auctions and settlements to owners' funds.

    Attributes:
        head_time_s: returns the time of the latest block that this process has seen, Unix seconds.
    """

    relayer: Relayer
    followed: FollowedChain
    settling: Settling
    auctioneer: Auctioneer
    prices: PriceWatch
    funds: FundsWatch
    head_time_s: Callable[[], int]


class DeltaChainStatistics(Struct, frozen=True):
    """Counters of the components that run one chain's Delta orders."""

    relayer: RelayerStatistics
    settling: SettlingStatistics
    auctions: AuctioneerStatistics
    resting: RestingStatistics
    funds: FundsStatistics


class DeltaStatistics(Struct, frozen=True):
    """Counters of the engine of Delta orders.

    Attributes:
        orders: numbers of orders in memory, of life cycle steps written, and of conflicting writes.
        chains: counters of each chain, by chain id.
        bridges: counters of each chain with bridges, by chain id.
    """

    orders: LiveRowsStatistics
    chains: Mapping[str, DeltaChainStatistics]
    bridges: Mapping[str, BridgeChainStatistics]


class DeltaEngine:
    """The engine (`OrderEngine`) of Delta orders: auctions, settlements, funds and expiries of live orders.

    Args:
        scheduler: the venue's scheduler of timers.
        orders: live orders, whose changes the engine watches.
        chains: components by chain id.
        bridges: follows the transfers of orders across chains.
        wall_ms: returns the time, Unix milliseconds.
    """

    kind = DELTA.name

    def __init__(
        self,
        store: Store,
        scheduler: Scheduler,
        *,
        orders: LiveOrders,
        chains: Mapping[int, DeltaChain],
        bridges: BridgeDesk,
        wall_ms: Callable[[], int],
    ) -> None:
        self.store = store
        self.scheduler = scheduler
        self._wall_ms = wall_ms
        self._expiries = OrderTimers(scheduler, self.look_at_expiry)
        self._acts = OrderActs(self._tend_again)
        self._slices = Slices()
        self.orders = orders
        self.chains = chains
        self.bridges = bridges
        orders.watch(self.tend)

    def statistics(self) -> DeltaStatistics:
        """Return the numbers of orders in memory, and the counters of each chain's components."""
        return DeltaStatistics(
            self.orders.statistics(),
            {
                str(chain_id): DeltaChainStatistics(
                    chain.relayer.statistics(),
                    chain.settling.statistics(),
                    chain.auctioneer.statistics(),
                    chain.prices.statistics(),
                    chain.funds.statistics(),
                )
                for chain_id, chain in self.chains.items()
            },
            {str(chain_id): chain for chain_id, chain in self.bridges.statistics().items()},
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run relayer, auctions, settlements, watches of prices and funds of each chain, and the bridges."""
        async with trio.open_nursery() as nursery:
            self._acts.open(nursery)
            for chain in self.chains.values():
                chain.settling.start(nursery)
                await nursery.start(chain.relayer.run)
                await nursery.start(chain.auctioneer.run)
                await nursery.start(chain.prices.run)
                await nursery.start(chain.funds.run)
            await nursery.start(self.bridges.run)
            nursery.start_soon(self._watch_clocks)
            task_status.started()

    async def load(self, taken_up: TakenUp) -> None:
        """Load the Delta orders of shards that this process has gained, limit orders last.

        Args:
            taken_up: rows and unfinished effects of the orders in these shards.
        """
        rows = sorted(taken_up.delta, key=lambda row: row.type is OrderType.LIMIT)
        await self.orders.load(rows, taken_up.effects)

    async def leave(self, held: Container[int]) -> None:
        """Drop the Delta orders of shards that this process no longer holds.

        Args:
            held: shards that the process holds.
        """
        self.orders.leave(held)
        self.bridges.leave(held)
        for chain in self.chains.values():
            await chain.prices.leave(held)
            chain.auctioneer.leave(held)
            chain.settling.leave(held)

    async def hear(self, events: Sequence[OrderEvent]) -> None:
        """Update the orders in memory from events of Delta orders, which any process may have written."""
        await self.orders.hear(events)

    def resting(self, chain_id: int, order_hash: bytes) -> RestingFacts | None:
        """Return limit and present price of a limit order that waits for its price; None for other orders."""
        chain = self.chains.get(chain_id)
        return None if chain is None else chain.prices.facts(order_hash)

    def lacks(self, chain_id: int, order_hash: bytes) -> tuple[MissingFund, ...]:
        """Return the funds that an order's owner lacked when the chain was last read; empty if none."""
        chain = self.chains.get(chain_id)
        return () if chain is None else chain.funds.lacks(order_hash)

    # --- Components that orders wait for ----------------------------------------------------------------

    def tend(self, live: LiveOrder) -> None:
        """Assign an order to the components that its state needs, and withdraw it from the others."""
        row = live.row
        self.bridges.look_at_transfers(live)
        chain = self.chains.get(row.chain_id)
        if chain is None:
            return
        chain.settling.carry_on(live)
        chain.funds.watch_owner(live)
        if row.status in ENDED or row.is_final:
            self._expiries.cancel(row.order_hash)
            chain.prices.forget(row.order_hash)
            chain.auctioneer.withdraw(row.order_hash)
            return
        if row.status in CANCELLABLE:
            self._expire_at(row, (_fits_until_s(live) + EXPIRY_GRACE_S) * 1_000)
        if live.awaits_bids:
            chain.prices.rest_or_queue(live)
        else:
            chain.prices.forget(row.order_hash)
            chain.auctioneer.withdraw(row.order_hash)
        if row.status is OrderStatus.CANCELLING and live.settling is None:
            self._acts.start(self._cancel, row.order_hash)
        elif row.status is OrderStatus.PENDING and rested(row, 0) is not None:
            self._acts.start(self._rest, row.order_hash)

    def _expire_at(self, row: DeltaOrderRow, at_ms: int) -> None:
        """Set the timer of an order's expiry to `at_ms`, but at least `_LOOK_MS` milliseconds from now.

        Args:
            at_ms: time of the expiry, Unix milliseconds.
        """
        self._expiries.at(row.order_hash, max(at_ms, self._wall_ms() + _LOOK_MS))

    def look_at_expiry(self, order_hash: bytes) -> None:
        """Start a task that expires the order if it can no longer be settled in time (`_expire`)."""
        self._acts.start(self._expire, order_hash)

    def _tend_again(self, order_hash: bytes) -> None:
        live = self.orders.get(order_hash)
        if live is not None:
            self.tend(live)

    async def _rest(self, order_hash: bytes) -> None:
        await self.orders.step(order_hash, lambda row: rested(row, self._wall_ms()))

    async def _cancel(self, order_hash: bytes) -> None:
        """Move an order from CANCELLING to CANCELLED, unless a settlement of the order is under way."""
        # Only a step that also changes the row can end the effect after this read; `decide` then sees the new
        # row, whose status is no longer CANCELLING.
        (rows,) = await self.store.read(among(EFFECT, "order_hash", [order_hash]))
        effects: list[Effect] = [row_of(EFFECT, values) for values in rows]
        cancel = next((effect for effect in effects if effect.kind == CANCEL), None)

        def decide(row: DeltaOrderRow) -> DeltaStep | None:
            live = self.orders.get(order_hash)
            if live is None or live.settling is not None:
                return None
            return cancel_done(row, cancel, self._wall_ms())

        await self.orders.step(order_hash, decide)

    async def _watch_clocks(self) -> None:
        """Expire orders by the clock of a chain that is ahead of the venue's, as a development chain may be.

        The contract judges by the chain's clock, and no later block has an earlier time.
        """
        looked_s = dict.fromkeys(self.chains, 0)
        while True:
            await tick(READY_LOOK_S)
            for chain_id, chain in self.chains.items():
                time_s = chain.head_time_s()
                is_ahead = time_s > self._wall_ms() // 1_000 + EXPIRY_GRACE_S
                # The time counts as looked at only once `_expire` has an effect.
                if is_ahead and time_s != looked_s[chain_id] and chain.followed.read_to() is not None:
                    looked_s[chain_id] = time_s
                    await self._slices.work(self._look_at_expiries(chain_id, time_s))

    def _look_at_expiries(self, chain_id: int, time_s: int) -> Generator[None, None, None]:
        for live in [*self.orders]:
            row = live.row
            if row.chain_id == chain_id and row.status in CANCELLABLE and time_s > _fits_until_s(live):
                self.look_at_expiry(row.order_hash)
            yield

    async def _expire(self, order_hash: bytes) -> None:
        """Expire an order past its deadline, or a TWAP whose remaining slices do not fit before its deadline.

        The later of the venue's clock and the chain's counts, in the record's time too.

        The call has no effect while a settlement of the order is under way, or while the indexer is behind
        the latest block of the order's chain.
        """

        def decide(row: DeltaOrderRow) -> DeltaStep | None:
            live = self.orders.get(order_hash)
            chain = self.chains[row.chain_id]
            if live is None or live.settling is not None or chain.followed.read_to() is None:
                return None
            now_ms = max(self._wall_ms(), chain.head_time_s() * 1_000)
            return expired(row, _fits_until_s(live), now_ms // 1_000, now_ms)

        await self.orders.step(order_hash, decide)


def _fits_until_s(live: LiveOrder) -> int:
    return fits_until(live.order, live.filled, live.last_fill_s)
