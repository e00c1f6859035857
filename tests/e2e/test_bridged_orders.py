"""Orders across two chains, settled by the contract: delivered, refunded, re-organised, over crashes."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    output_of,
    pack_terms,
)
from cambist.codecs.bridges.cctp import FINALITY_CONFIRMED, FINALITY_FINALIZED
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
from support.bridge.two_chains import RECIPIENT, START_S, TwoChains, two_chains
from support.chain.indexing import an_indexer, sqlite_engine
from support.chain.world import HOUR_S, NOBODY, ONE, USDC, World, person
from support.contracts.settling import Market, Settled, a_market
from support.delta.waiting_venue import SimulatedClock
from support.patience import PATIENCE_S, until_told
from support.store.stores import a_delta_order, events_of

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


_S = OrderStatus
ARRIVES = output_of(FEE, 0, FAIR)
TO: dict[str, Any] = {"beneficiary": RECIPIENT.address}


async def arrived(story: FollowedOrders) -> int:
    return await story.two.balance(story.two.second, "USDC", RECIPIENT)


async def is_delivered(story: FollowedOrders, order: bytes) -> bool:
    return (await story.record(order)).output.executed_amount is not None


async def is_final(story: FollowedOrders) -> None:
    """Wait until the venue has nothing more to do."""
    with trio.fail_after(300):
        while len(story.orders):
            for chain_id in (story.two.first, story.two.second):
                await story.mines(chain_id, 1)
            await trio.sleep(1)


async def test_a_swap_by_across_is_paid_by_a_relayer_on_the_other_chain(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        order = await story.placed(story.by_across(), **TO)
        settled = await story.settles(order)
        bridging = await story.until(order, _S.BRIDGING)
        assert (bridging.transactions[0].destination_tx, bridging.output.executed_amount) == (None, None)
        done = await story.until(order, _S.COMPLETED)
        (part,) = done.transactions
        assert (part.received_amount, done.output.executed_amount) == (str(ARRIVES), str(ARRIVES))
        assert (done.input.chain_id, done.output.chain_id) == (story.two.first, story.two.second)
        receipt = await story.two.chains[story.two.second].receipt(
            bytes.fromhex((part.destination_tx or "")[2:])
        )
        assert receipt is not None
        assert bytes.fromhex(part.origin_tx[2:]) == settled.receipt.tx_hash
        assert await arrived(story) == ARRIVES
        await is_final(story)


async def test_a_relayer_that_never_fills_leads_to_the_owners_refund(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        story.two.relayer.order(is_silent=True)
        order = await story.placed(story.by_across(600), **TO)
        await story.settles(order)
        await story.until(order, _S.BRIDGING)
        before = await story.two.balance(story.two.first, "USDC", story.two.user)
        await trio.sleep(700)  # no stranger's block shows the destination's time; the bridge's own do
        done = await story.until(order, _S.REFUNDED)
        (refund,) = done.refunds
        assert (refund.chain_id, refund.amount) == (story.two.first, str(FAIR))
        assert await story.two.balance(story.two.first, "USDC", story.two.user) == before + FAIR
        assert await arrived(story) == 0
        await is_final(story)


async def test_a_burn_is_attested_and_handed_in_by_the_venue(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        order = await story.placed(story.by_cctp(), **TO)
        await story.settles(order)
        await story.until(order, _S.BRIDGING)
        done = await story.until(order, _S.COMPLETED)
        assert done.output.executed_amount == str(FAIR)
        assert await arrived(story) == FAIR
        assert await story.two.chains[story.two.second].nonce(COURIER.address) == 1
        await is_final(story)


async def test_a_fast_burn_costs_its_fee_and_an_expired_message_is_attested_anew(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        story.two.attester.order(expires_after_blocks=2)
        chain = story.two.chains[story.two.second]
        await chain.set_balance(COURIER.address, 0)
        order = await story.placed(story.by_cctp(FINALITY_CONFIRMED), **TO)
        await story.settles(order)
        await story.until(order, _S.BRIDGING)
        await trio.sleep(20)
        await story.mines(story.two.second, 5)
        await trio.sleep(20)
        await chain.set_balance(COURIER.address, 10 * ONE)
        done = await story.until(order, _S.COMPLETED)
        assert done.output.executed_amount == str(await arrived(story))
        assert ARRIVES <= await arrived(story) < FAIR


async def test_anybody_may_hand_the_message_in_first(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        await story.two.chains[story.two.second].set_balance(COURIER.address, 0)
        order = await story.placed(story.by_cctp(), **TO)
        settled = await story.settles(order)
        message, attestation = await story.two.attested(story.two.first, settled.receipt.tx_hash)
        await story.two.receive(story.two.second, message, attestation)
        done = await story.until(order, _S.COMPLETED)
        assert done.output.executed_amount == str(FAIR)
        assert await story.two.chains[story.two.second].nonce(COURIER.address) == 0


@pytest.mark.parametrize("is_cctp", [False, True], ids=["across", "cctp"])
async def test_slices_with_equal_terms_are_delivered_each_once_over_crashes(
    tmp_path: Path, autojump_clock: MockClock, *, is_cctp: bool
) -> None:
    async with bridged_orders(tmp_path) as (story, nursery):
        order = await story.placed(story.by_cctp() if is_cctp else story.by_across(), slices=2, **TO)
        half, given = FAIR // 2, ONE // 2
        await story.settles(order, half, given)
        story.dies()
        await trio.sleep(30)
        await story.lives(nursery)
        await until_told(lambda: is_delivered(story, order))
        assert (await story.record(order)).status is _S.ACTIVE
        await trio.sleep(60)
        await story.settles(order, half, given)
        await story.until(order, _S.BRIDGING)
        story.dies()
        await story.lives(nursery)
        await story.until(order, _S.COMPLETED)
        each = half if is_cctp else output_of(FEE, 0, half)
        record = await story.record(order)
        assert [one.received_amount for one in record.transactions] == [str(each)] * 2
        assert len({one.destination_tx for one in record.transactions}) == 2
        assert await arrived(story) == 2 * each
        await is_final(story)


async def test_a_destination_that_loses_the_delivery_gets_it_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The message of CCTP is handed in again; nobody but the venue does it here."""
    async with bridged_orders(tmp_path) as (story, _):
        order = await story.placed(story.by_cctp(), **TO)
        await story.settles(order)
        await story.until(order, _S.COMPLETED)
        await story.two.chains[story.two.second].reorganise(1)
        assert await arrived(story) == 0
        await story.mines(story.two.second, 1)
        await is_final(story)
        assert await arrived(story) == FAIR
        statuses = [event.status for event in await events_of(story.store)]
        assert list(dict.fromkeys(statuses)) == [_S.PENDING, _S.BRIDGING, _S.COMPLETED]
        assert "".join(status[0] for status in statuses).startswith("PBCBC")


async def test_a_settlement_that_leaves_the_origin_takes_its_transfer_with_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        story.two.relayer.order(is_silent=True)
        order = await story.placed(story.by_across(), **TO)
        await story.settles(order)
        await story.until(order, _S.BRIDGING)
        await story.two.chains[story.two.first].reorganise(1)
        await story.mines(story.two.first, 1)
        back = await story.until(order, _S.ACTIVE)
        assert back.transactions == ()
        story.two.relayer.order(is_silent=False)
        await story.settles(order)
        await story.until(order, _S.COMPLETED)
        assert await arrived(story) == ARRIVES
