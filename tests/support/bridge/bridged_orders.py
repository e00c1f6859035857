"""Orders across two embedded chains: settled by the contract, followed by the venue's own parts.

async with bridged_orders(folder) as story:
    order = await story.placed(story.by_cctp(), beneficiary=RECIPIENT.address)
    await story.settles(order)
    await story.until(order, OrderStatus.COMPLETED)

Indexer, projection, watches, courier, relayer and store are the venue's; the bridges' relayer and attester
are the dev ones, and know nothing of the venue. The time is the test's.
"""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import trio

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    pack_terms,
)
from cambist.codecs.bridges.cctp import FINALITY_FINALIZED
from cambist.codecs.eip712_orders.delta import DeltaBridge, DeltaOrder, TwapOrder
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.delta_messages import OrderRecord
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus
from cambist.crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from cambist.engine.chain.index.applied import IndexedContracts
from cambist.engine.chain.relay.fee_policy import FeePolicy
from cambist.engine.chain.relay.relay_state import RelayPolicy
from cambist.engine.chain.relay.relayer import Relayer
from cambist.engine.store.follower import EventFollower, latest
from cambist.engine.store.leases import SHARDS, Leases
from cambist.engine.store.rows import amount32
from cambist.engine.store.store import Store
from cambist.engine.trade.delta.bridge_desk import BridgeDesk
from cambist.engine.trade.delta.bridging.attester_client import AttesterClient
from cambist.engine.trade.delta.bridging.bridge_places import BridgeBounds, BridgePlace
from cambist.engine.trade.delta.intake.stored_orders import StoredOrders
from cambist.engine.trade.delta.orders.document import DeltaDocument, order_json
from cambist.engine.trade.delta.orders.life import rested
from cambist.engine.trade.delta.orders.live_orders import LiveOrders
from cambist.engine.trade.delta.orders.terms import terms_of
from cambist.engine.trade.delta.settlement.projection import DeltaProjection
from cambist.engine.trade.orders.boot import take_up
from cambist.feeds.transport.httpx_transport import DialTransport
from support.bridge.two_chains import START_S, TwoChains, two_chains
from support.chain.indexing import an_indexer, sqlite_engine
from support.chain.world import HOUR_S, NOBODY, ONE, USDC, World, person
from support.contracts.settling import Market, Settled, a_market
from support.delta.waiting_venue import SimulatedClock
from support.patience import PATIENCE_S
from support.store.stores import a_delta_order

CONFIRMATIONS = 2
FAIR = 2_500 * USDC
FEE = BridgeFee(ppm=2_000, fixed=2 * USDC)
COURIER = person(95)
"""The venue's relayer on the destination."""
_CAP_WEI = 10**12


class FollowedOrders:
    """See the module.

    Attributes:
        two: the chains; orders go from the first to the second.
        market: whose agents settle on the first.
    """

    def __init__(
        self, two: TwoChains, market: Market, store: Store, leases: Leases, wall: SimulatedClock
    ) -> None:
        self.two = two
        self.market = market
        self.store = store
        self._leases = leases
        self._wall = wall
        self._life = trio.CancelScope()
        self._signed: dict[bytes, Any] = {}
        self.orders: LiveOrders
        self.desk: BridgeDesk
        self.relayer: Relayer

    @property
    def world(self) -> World:
        """The world of the origin."""
        return self.market.world

    # --- Orders -----------------------------------------------------------------------------------------

    def by_across(self, fill_within_s: int = HOUR_S) -> DeltaBridge:
        """A bridge by Across to the second chain."""
        return self._bridge(BridgeKind.ACROSS, AcrossTerms(FEE, fill_within_s, NOBODY, 0))

    def by_cctp(self, finality: int = FINALITY_FINALIZED) -> DeltaBridge:
        """A bridge by CCTP to the second chain."""
        domain = self.two.places[self.two.second].domain
        return self._bridge(BridgeKind.CCTP, CctpTerms(FEE, finality, domain))

    def _bridge(self, kind: BridgeKind, terms: BridgeTerms) -> DeltaBridge:
        token = self.two.tokens["USDC"][self.two.second]
        return DeltaBridge(SELECTORS[kind], self.two.second, token, 0, pack_terms(terms))

    async def placed(self, bridge: DeltaBridge, *, slices: int = 0, **changed: Any) -> bytes:
        """Place a sale of one WETH, in slices if need be; its hash."""
        order: DeltaOrder | TwapOrder = await self.world.a_delta_order(bridge=bridge, **changed)
        if slices:
            order = TwapOrder(
                order.owner, order.beneficiary, order.src_token, order.dest_token, order.nonce, 0,
                order.deadline, 60, slices, 2_400 * USDC // slices, ONE, b"", b"", bridge,
            )  # fmt: skip
        kind = OnChainOrderType.TWAP_ORDER if slices else OnChainOrderType.ORDER
        order_hash = self.world.delta_hash(order)
        row = a_delta_order(
            order_hash=order_hash,
            shard=order_hash[0],
            chain_id=self.two.first,
            owner=order.owner,
            nonce=amount32(order.nonce),
            kind=kind,
            expires_s=order.deadline,
        )
        document = DeltaDocument(kind.value, order_json(kind.value, order), b"")
        await self.orders.add(row, document, order, terms_of(order))
        await self.orders.step(order_hash, lambda row: rested(row, self._wall.now_ms()))
        self._signed[order_hash] = order
        return order_hash

    async def settles(self, order_hash: bytes, received: int = FAIR, given: int = ONE) -> Settled:
        """Settle an order, or its next slice, on the first chain."""
        return await self.market.settle(self._signed[order_hash], *self.market.agent_steps(received, given))

    async def record(self, order_hash: bytes) -> OrderRecord:
        """The order's public record."""
        found = await StoredOrders(self.store).record(order_hash)
        assert found is not None
        return found

    async def until(self, order_hash: bytes, status: OrderStatus) -> OrderRecord:
        """Wait until an order has a status; its record."""
        with trio.fail_after(100 * PATIENCE_S):
            while (record := await self.record(order_hash)).status is not status:  # noqa: ASYNC110
                await trio.sleep(0.25)
        return record

    async def mines(self, chain_id: int, blocks: int = 2 * CONFIRMATIONS) -> None:
        """Make empty blocks on a chain."""
        await self.two.chains[chain_id].mine(blocks)

    # --- Life -------------------------------------------------------------------------------------------

    def dies(self) -> None:
        """End the venue wherever it is; `lives` begins it anew."""
        self._life.cancel()

    async def lives(self, nursery: trio.Nursery) -> None:
        """Make the venue's parts, which take up the orders in the store, and run them."""
        self._life = trio.CancelScope()
        self.orders = LiveOrders(self.store, self._leases)
        now_ms = self._wall.now_ms
        self.relayer = self._relayer()
        places = {
            chain_id: BridgePlace(
                chain,
                CONFIRMATIONS,
                self.two.places[chain_id].spoke_pool,
                self.two.places[chain_id].transmitter,
                self.two.places[chain_id].domain,
                self.relayer if chain_id == self.two.second else None,
            )
            for chain_id, chain in self.two.chains.items()
        }
        dial: Any = self.two.dial
        transport = DialTransport(
            tls=ssl.create_default_context(), connections_max=2, limits=Http1Limits(), dial=dial
        )
        http = httpx.AsyncClient(transport=transport)
        self.desk = BridgeDesk(
            self.store,
            self.orders,
            places,
            attester=AttesterClient("http://bridge.example", http, 5.0),
            bounds=BridgeBounds(dict.fromkeys(BridgeKind, 600_000), 3_600_000),
            wall_ms=now_ms,
        )
        self.orders.watch(self.desk.look_at_transfers)
        await nursery.start(self._live, http)

    async def _live(self, http: httpx.AsyncClient, *, task_status: trio.TaskStatus[None]) -> None:
        projection = DeltaProjection(
            self.store,
            self.orders,
            confirmations=CONFIRMATIONS,
            failures_max=3,
            now_ms=self._wall.now_ms,
        )
        indexer = an_indexer(
            self.two.chains[self.two.first],
            self.store,
            contracts=IndexedContracts(delta=self.world.at.delta),
            projection=projection,
        )
        with self._life:
            async with http, trio.open_nursery() as nursery:
                place = await latest(self.store)
                taken_up = await take_up(self.store, range(SHARDS))
                await self.orders.load(taken_up.delta, taken_up.effects)
                nursery.start_soon(self._follow, EventFollower(self.store, place))
                await nursery.start(indexer.run)
                await nursery.start(self.relayer.run)
                await nursery.start(self.desk.run)
                task_status.started()

    async def _follow(self, follower: EventFollower) -> None:
        async for _, event in follower:
            await self.orders.hear([event])

    def _relayer(self) -> Relayer:
        second = self.two.second
        allowed = frozenset({(second, COURIER.address), (second, self.two.places[second].transmitter)})
        key = PolicedRelayKey(COURIER, TransactionPolicy(allowed, _CAP_WEI, 1_000_000))
        policy = RelayPolicy(FeePolicy(_CAP_WEI, 0, 10**9, 1_250), CONFIRMATIONS, 12_000, 4, 0)
        return Relayer(self.two.chains[second], self.store, key, self._leases, policy, self._wall.now_ms)


@asynccontextmanager
async def bridged_orders(folder: Path) -> AsyncGenerator[tuple[FollowedOrders, trio.Nursery]]:
    """A venue's parts between two chains, which live in the nursery."""
    wall = SimulatedClock(START_S)
    async with two_chains() as two, sqlite_engine(folder).open() as store, trio.open_nursery() as nursery:
        await two.chains[two.second].set_balance(COURIER.address, 100 * ONE)
        market = await a_market(two.worlds[two.first])
        leases = Leases(store, "one", life_s=60, now_ms=wall.now_ms)
        await nursery.start(leases.run)
        story = FollowedOrders(two, market, store, leases, wall)
        await story.lives(nursery)
        yield story, nursery
        nursery.cancel_scope.cancel()
