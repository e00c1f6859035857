"""The engine of OTC orders: starts for each order the watches, timers and steps that its state needs.

    an order is loaded, or has changed -> tend
        live                   OtcFundsWatch follows the maker's funds
        DRAFT                  Drafts polls the maker's contract for its signature
        with an expiry         a timer makes the order EXPIRED
        with a permit          a timer has the funds read again once the permit's deadline has passed
        row older than logs    a step brings the order to the state that its logs imply
        ended                  no work any more; the chain's logs may reopen the order

The indexer finds fills and cancellations: OtcProjection changes the orders' rows in the unit of
the indexer's step, and the engine learns of the changes from the log of events. An order that waits is a row
and perhaps a timer, not a task.

`order_engines` runs the parts shared with other kinds of orders: shards, timers, the chains' indexers. An
overdue order expires only once the chain is indexed up to its head, since a fill not yet indexed comes first.

`open_otc` creates the engine, and for each chain its watches and its projection.

Source: spec 2.5; ARCHITECTURE.md, "Orders", "Transitions", "Start".
Choice: OTC orders need `rfq` on the chain and no relayer.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from decimal import Decimal

import trio
from msgspec import Struct

from ....codecs.messages.vocabulary import OtcState
from ....config.limits import JSON_INT_MAX
from ....config.timeouts import EXPIRY_GRACE_S
from ...store.leases import Leases
from ...store.rows import NEVER_S, OrderEvent, OtcOrderRow, amount_of
from ..orders.accounts_watch import FundsStatistics
from ..orders.boot import TakenUp
from ..orders.followed_chain import FollowedChain
from ..orders.live_rows import LiveRowsStatistics
from ..orders.order_acts import OrderActs
from ..orders.order_engines import Footing, OrderTimers
from ..orders.order_units import OTC
from ..orders.scheduler import Scheduler
from ..orders.step import OrderStep
from ..served.served_chain import ServedChain, ServedChains
from ..served.token_permits import deadline_of
from .drafts import Drafts, DraftsStatistics
from .funds_watch import OtcFundsWatch
from .life import LIVE, expired
from .live_orders import LiveOtc, OtcOrders
from .projection import OtcProjection

_LOOK_MS = 1_000


class OtcChain(Struct, frozen=True):
    """Components that run one chain's OTC orders: log indexer, watch of funds, checks of DRAFT signatures."""

    followed: FollowedChain
    funds: OtcFundsWatch
    drafts: Drafts


class OtcChainStatistics(Struct, frozen=True):
    """Counters, for one chain, of reads of makers' funds and of signature checks of DRAFT orders."""

    funds: FundsStatistics
    drafts: DraftsStatistics


class OtcStatistics(Struct, frozen=True):
    """Counters of the engine that runs OTC orders.

    Attributes:
        orders: counters of the orders in memory.
        chains: chain id -> counters of the chain's funds reads and signature checks.
    """

    orders: LiveRowsStatistics
    chains: Mapping[str, OtcChainStatistics]


class OtcEngine:
    """The `OrderEngine` of OTC orders: follows funds, signatures, expiries and permits of open orders.

    Args:
        leases: leases of this process's shards.
        scheduler: the venue's scheduler of timers.
        orders: orders in memory, whose changes the engine watches.
        chains: chain id -> components that run the chain's OTC orders.
        wall_ms: returns the time, Unix milliseconds.
    """

    kind = OTC.name

    def __init__(
        self,
        leases: Leases,
        scheduler: Scheduler,
        *,
        orders: OtcOrders,
        chains: Mapping[int, OtcChain],
        wall_ms: Callable[[], int],
    ) -> None:
        self._leases = leases
        self._expiries = OrderTimers(scheduler, self.look_at_expiry)
        self._permit_ends = OrderTimers(scheduler, self.look_at_permit)
        self._wall_ms = wall_ms
        self._acts = OrderActs(self._tend_again)
        self.orders = orders
        self.chains = chains
        orders.watch(self.tend)

    def statistics(self) -> OtcStatistics:
        """Return the counters of orders in memory, and each chain's counters of reads and DRAFT checks."""
        return OtcStatistics(
            self.orders.statistics(),
            {
                str(chain_id): OtcChainStatistics(chain.funds.statistics(), chain.drafts.statistics())
                for chain_id, chain in self.chains.items()
            },
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the watch of makers' funds and the checks of DRAFT orders on every chain until cancelled."""
        async with trio.open_nursery() as nursery:
            self._acts.open(nursery)
            for chain in self.chains.values():
                await nursery.start(chain.funds.run)
                await nursery.start(chain.drafts.run)
            task_status.started()

    async def load(self, taken_up: TakenUp) -> None:
        """Load the OTC orders of shards that this process has gained; see `OrderEngine.load`."""
        await self.orders.load(taken_up.otc, ())

    async def leave(self, held: Container[int]) -> None:
        """Drop the OTC orders of shards that this process does not hold any more; see `OrderEngine.leave`."""
        self.orders.leave(held)
        for chain in self.chains.values():
            chain.funds.leave(held)
            chain.drafts.leave(held)

    async def hear(self, events: Sequence[OrderEvent]) -> None:
        """Update the orders in memory after events of OTC orders; see `OrderEngine.hear`.

        For each event of an order that another process runs, the engine queues a read of the maker's funds,
        since the maker's orders in this process share these funds with that order.
        """
        await self.orders.hear(events)
        for event in events:
            chain = self.chains.get(event.chain_id)
            if chain is not None and self._leases.fence(event.shard) is None:
                chain.funds.others_changed(event.owner)

    # --- Tending an order -------------------------------------------------------------------------------

    def tend(self, live: LiveOtc) -> None:
        """Start or stop an order's watches, timers and changes, as the order's state requires."""
        row = live.row
        chain = self.chains.get(row.chain_id)
        if chain is None:
            return
        chain.funds.watch_maker(live)
        chain.drafts.queue_or_drop(live)
        if row.status not in LIVE:
            self._expiries.cancel(row.order_hash)
            self._permit_ends.cancel(row.order_hash)
        else:
            if row.expires_s != NEVER_S:
                self._expire_at(row, (row.expires_s + EXPIRY_GRACE_S) * 1_000)
            if live.document.permit:
                self._look_when_over(row.order_hash, live.document.permit)
        if live.is_behind or _is_begun_draft(row):
            self._acts.start(self._catch_up, row.order_hash)

    def look_at_expiry(self, order_hash: bytes) -> None:
        """Start the change of an overdue order to EXPIRED, when the timer of the order's expiry fires.

        If the indexer has not read the order's chain to its latest block, the method only sets the timer
        again, since a fill may not be indexed yet.
        """
        live = self.orders.get(order_hash)
        if live is not None and not self._is_read(live.row):
            self._expire_at(live.row, self._wall_ms())
        else:
            self._acts.start(self._expire, order_hash)

    def look_at_permit(self, order_hash: bytes) -> None:
        """Queue a read of the funds of an order's maker, since the order's permit has expired."""
        live = self.orders.get(order_hash)
        if live is not None:
            self.chains[live.row.chain_id].funds.read_again(live)

    def _look_when_over(self, order_hash: bytes, permit: bytes) -> None:
        """Set the timer of a permit's deadline, unless the deadline is past or too far in the future.

        A deadline is too far if it is above `JSON_INT_MAX`, Unix seconds.
        """
        deadline = deadline_of(permit)
        if deadline is not None and self._wall_ms() // 1_000 <= deadline <= JSON_INT_MAX:
            self._permit_ends.at(order_hash, (deadline + 1) * 1_000)

    def _tend_again(self, order_hash: bytes) -> None:
        live = self.orders.get(order_hash)
        if live is not None:
            self.tend(live)

    def _expire_at(self, row: OtcOrderRow, at_ms: int) -> None:
        """Set the timer of an order's expiry to `at_ms`, Unix milliseconds, at least `_LOOK_MS` from now."""
        self._expiries.at(row.order_hash, max(at_ms, self._wall_ms() + _LOOK_MS))

    async def _expire(self, order_hash: bytes) -> None:
        """Set an overdue order to EXPIRED, if the indexer has read the order's chain to its latest block."""
        now_ms = self._wall_ms()

        def decide(row: OtcOrderRow) -> OrderStep[OtcOrderRow] | None:
            if not self._is_read(row) or self.orders.get(order_hash) is None:
                return None
            return expired(row, now_ms // 1_000, now_ms)

        await self.orders.step(order_hash, decide)

    def _is_read(self, row: OtcOrderRow) -> bool:
        """Whether the indexer has read the order's chain to its latest block, i.e. no log is missing."""
        return self.chains[row.chain_id].followed.read_to() is not None

    async def _catch_up(self, order_hash: bytes) -> None:
        live = self.orders.get(order_hash)
        if live is not None:
            is_short = self.chains[live.row.chain_id].funds.is_short
            await self.orders.catch_up(order_hash, self._wall_ms(), is_short)


def _is_begun_draft(row: OtcOrderRow) -> bool:
    """Whether an order is a DRAFT with a fill, i.e. the maker's contract has accepted the signature."""
    return row.status is OtcState.DRAFT and row.remaining != row.maker_amount


def open_otc(footing: Footing, served_chains: ServedChains, small_usd: Decimal = Decimal(0)) -> OtcEngine:
    """Create the engine of OTC orders, for the chains that have an RFQ contract.

    Args:
        footing: parts shared with the other order engines.
        served_chains: served chains by chain id.
        small_usd: worth in US dollars below which an order's funds are no stake.
    """

    def is_listed(chain_id: int, token: bytes) -> bool:
        served = served_chains.get(chain_id)
        return served is not None and token in served.tokens.by_address

    def is_small(row: OtcOrderRow) -> bool:
        served = served_chains.get(row.chain_id)
        least = None if served is None else served.usd.least_worth(row.maker_asset, small_usd)
        return least is not None and amount_of(row.maker_amount) < least

    orders = OtcOrders(footing.store, footing.leases, is_listed, is_small)
    chains = {
        chain_id: _chain(footing, served, orders)
        for chain_id, served in served_chains.items()
        if served.settings.rfq and served.rfq
    }
    return OtcEngine(footing.leases, footing.scheduler, orders=orders, chains=chains, wall_ms=footing.wall_ms)


def _chain(footing: Footing, served: ServedChain, orders: OtcOrders) -> OtcChain:
    followed = footing.chains.of(served.chain_id)
    funds = OtcFundsWatch(
        served.chain,
        footing.store,
        orders,
        followed.watch,
        rfq=served.rfq,
        read_to=followed.read_to,
        wall_ms=footing.wall_ms,
    )
    drafts = Drafts(
        served.chain,
        orders,
        rfq=served.rfq,
        read_to=followed.read_to,
        is_short=funds.is_short,
        wall_ms=footing.wall_ms,
    )
    projection = OtcProjection(
        footing.store,
        orders,
        confirmations=served.settings.confirmations,
        is_short=funds.is_short,
        now_ms=footing.wall_ms,
    )
    followed.join(projection, funds.touched)
    return OtcChain(followed, funds, drafts)
