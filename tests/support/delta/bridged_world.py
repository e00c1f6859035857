"""Orders across two chains made by hand, with the real indexer, projection, watches and store between them.

async with a_bridged_world(engine) as world:
    order = await world.placed(slices=2)
    sent = world.settles(order)              a slice is settled and deposited at the bridge
    world.fills(sent)                        a relayer pays on the destination
    await world.looks()                      everything that follows is followed
    assert (await world.row(order)).status is OrderStatus.ACTIVE

Blocks are 12 seconds apart on both chains, so that heights are times.
"""

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import trio
from msgspec import Struct
from msgspec.structs import replace

from cambist.codecs.bridges.across import (
    FILL_STATUS_FILLED,
    FILL_STATUSES,
    FILLED_RELAY,
    RelayData,
    relay_hash,
)
from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    pack_terms,
)
from cambist.codecs.bridges.cctp import CctpBurn, CctpMessage, pack_burn, pack_message
from cambist.codecs.contracts import contract_events as events
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.eip712_orders.delta import DeltaBridge, TwapOrder
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus
from cambist.config.errors import NodeUnavailable
from cambist.engine.chain.index.indexer import Indexer
from cambist.engine.chain.port import At, EthCall, Header, Log, LogFilter
from cambist.engine.store.leases import Leases
from cambist.engine.store.queries import among, by
from cambist.engine.store.rows import DeltaFill, DeltaOrderRow
from cambist.engine.store.store import Store
from cambist.engine.store.tables import (
    BRIDGE_END,
    BRIDGE_TRANSFER,
    DELTA_FILL,
    DELTA_ORDER,
    DELTA_REFUND,
)
from cambist.engine.store.units import row_of
from cambist.engine.trade.delta.bridge_desk import BridgeDesk
from cambist.engine.trade.delta.bridging import courier
from cambist.engine.trade.delta.bridging.attestations import AttestedMessage
from cambist.engine.trade.delta.bridging.bridge_places import BridgeBounds, BridgePlace
from cambist.engine.trade.delta.orders.document import DeltaDocument, order_json
from cambist.engine.trade.delta.orders.life import rested
from cambist.engine.trade.delta.orders.live_orders import LiveOrders
from cambist.engine.trade.delta.orders.record import order_record
from cambist.engine.trade.delta.orders.terms import terms_of
from cambist.engine.trade.delta.orders.transfers import OrderTransfer, followed
from cambist.engine.trade.delta.settlement.projection import DeltaProjection
from cambist.engine.trade.orders.order_units import DELTA as DELTA_KIND
from support.chain.bridge_logs import deposited, filled, message_received, message_sent, minted, refunded
from support.chain.indexing import DELTA, an_indexer, run_dry
from support.chain.log_emitter import Record, record
from support.chain.scripted_chain import ScriptedChain, tx
from support.store.stores import ALICE, BOB, ONE, USDC, WETH, Engine, a_delta_order

ORIGIN_POOL, DESTINATION_POOL = b"\x0a" * 20, b"\x1a" * 20
OUTPUT = b"\x0d" * 20
"""Token that arrives."""
PART, ARRIVES, SPENT = 1_000 * 10**6, 990 * 10**6, ONE // 2
"""Of each settlement: raw units that enter the bridge, that are promised, that are spent."""
FILL_WITHIN_S, BLOCK_S = 120, 12
CONFIRMATIONS = 3
START_S = 1_700_000_000
ORIGIN_TRANSMITTER, DESTINATION_TRANSMITTER = b"\x0b" * 20, b"\x1b" * 20
MESSENGER, DOMAINS = b"\x1c" * 20, (7, 0)  # Ethereum has 0
MINTED = PART - 5
"""Raw units that arrive by CCTP."""
_FEE = BridgeFee(10_000, 0)
TERMS: dict[BridgeKind, BridgeTerms] = {
    BridgeKind.ACROSS: AcrossTerms(_FEE, FILL_WITHIN_S, bytes(20), 0),
    BridgeKind.CCTP: CctpTerms(_FEE, 2_000, DOMAINS[1]),
}
_BURN = CctpBurn(address_word(USDC), address_word(BOB), PART, address_word(b"\x0e" * 20), PART - ARRIVES)
BURNED = CctpMessage(
    *DOMAINS,
    bytes(32),
    address_word(b"\x0c" * 20),
    address_word(MESSENGER),
    bytes(32),
    2_000,
    0,
    pack_burn(_BURN),
)
"""Message of each settlement by CCTP: all are equal."""
BOUNDS = BridgeBounds(dict.fromkeys(BridgeKind, 60_000), 120_000)


class Destination(ScriptedChain):
    """The chain on which transfers arrive.

    Attributes:
        is_away: the node does not answer.
        hides_logs: the node shows no logs.
        relays: hash of a relay -> its deposit's id, as a topic.
    """

    chain_id = 10
    is_away = hides_logs = False

    def __init__(self) -> None:
        super().__init__()
        self.relays: dict[bytes, bytes] = {}

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        found = await super().logs(wanted, first, last)
        return [] if self.hides_logs else found

    async def call(self, call: EthCall, at: At = None) -> bytes:
        """`fillStatuses` of the pool."""
        await trio.lowlevel.checkpoint()
        assert (call.to, call.data[:4]) == (DESTINATION_POOL, FILL_STATUSES)
        deposit = self.relays[call.data[4:]]
        height = next(number for number, block in enumerate(self.line) if block.header.hash == at)
        logs = [log for block in self.line[: height + 1] for log in block.logs]
        is_filled = any(
            log.address == DESTINATION_POOL
            and log.topics[:1] == (FILLED_RELAY.topic,)
            and log.topics[2] == deposit
            for log in logs
        )
        return uint_word(FILL_STATUS_FILLED if is_filled else 0)

    async def block(self, at: At = None) -> Header | None:
        if self.is_away:
            raise NodeUnavailable("away")
        return await super().block(at)


class SentDeposit(Struct, frozen=True):
    """A settlement with its deposit or burn, as logs that can be mined (again).

    Attributes:
        relay: of the deposit; of a burn, a deposit without an end that nobody made.
        attested: of a burn, its message as the attester signs it.
    """

    name: bytes
    order_hash: bytes
    relay: RelayData
    logs: tuple[tuple[bytes, Record], ...]
    attested: CctpMessage | None = None


class AttestsWhatIsThere:
    """An attester that signs each message whose burn is in the origin as it is now, maybe falsely."""

    def __init__(self, world: "BridgedWorld") -> None:
        self._world = world

    async def attested(self, tx_hash: bytes, _: object) -> AttestedMessage | str:
        """The attested message of a transaction."""
        await trio.lowlevel.checkpoint()
        sent = self._world.burns.get(tx_hash)
        if sent is None or await self._world.origin.receipt(tx_hash) is None:
            return ""
        nonce = self._world.false_nonce or sent.nonce
        return AttestedMessage(pack_message(replace(sent, nonce=nonce)), b"", nonce, 0)


class BridgedWorld:
    """See the module.

    Attributes:
        now_ms: the wall clock.
        names: names of all transactions ever made, by which a fork mines them again.
        burns: transaction hash -> attested message of each burn ever made.
        false_nonce: nonce that the attester gives all messages; empty for their own.
    """

    false_nonce = b""

    def __init__(self, store: Store, leases: Leases) -> None:
        self.origin, self.destination = ScriptedChain(), Destination()
        self.store = store
        self._leases = leases
        self.now_ms = START_S * 1_000
        self._deposits = self._made = 0
        self.names: list[bytes] = []
        self.burns: dict[bytes, CctpMessage] = {}
        self._kinds: dict[bytes, BridgeKind] = {}
        self._nonces: dict[bytes, int] = {}
        self.orders: LiveOrders
        self.desk: BridgeDesk
        self._indexer: Indexer

    async def starts(
        self,
        *,
        only: bytes | None = None,
        serves_origin: bool = True,
        serves_destination: bool = True,
        origin: Mapping[str, Any] = MappingProxyType({}),
        destination: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Make the engine's parts anew, with orders from the store, as after a crash.

        Args:
            only: hash of the only order whose shard the engine has; None for all.
            origin, destination: members of each end's settings that differ.
        """
        self.orders = LiveOrders(self.store, self._leases)
        places: dict[int, BridgePlace] = {}
        if serves_origin:
            of_origin = BridgePlace(self.origin, CONFIRMATIONS, ORIGIN_POOL, ORIGIN_TRANSMITTER, DOMAINS[0])
            places[self.origin.chain_id] = replace(of_origin, **origin)
        if serves_destination:
            of_destination = BridgePlace(
                self.destination, CONFIRMATIONS, DESTINATION_POOL, DESTINATION_TRANSMITTER, DOMAINS[1]
            )
            places[self.destination.chain_id] = replace(of_destination, **destination)
        attester: Any = AttestsWhatIsThere(self)
        self.desk = BridgeDesk(
            self.store, self.orders, places, attester=attester, bounds=BOUNDS, wall_ms=lambda: self.now_ms
        )
        self.orders.watch(self.desk.look_at_transfers)
        projection = DeltaProjection(
            self.store,
            self.orders,
            confirmations=CONFIRMATIONS,
            failures_max=3,
            now_ms=lambda: self.now_ms,
        )
        self._indexer = an_indexer(self.origin, self.store, projection=projection)
        (rows,) = await self.store.read(among(DELTA_ORDER, "chain_id", [self.origin.chain_id]))
        mine = [row for row in map(DELTA_KIND.found, rows) if only in (None, row.order_hash)]
        await self.orders.load([row for row in mine if not row.is_final], ())

    # --- Acts -------------------------------------------------------------------------------------------

    async def placed(self, *, slices: int = 1, kind: BridgeKind = BridgeKind.ACROSS) -> bytes:
        """Place a TWAP across the chains; its hash."""
        self._made += 1
        row = a_delta_order(
            self._made,
            chain_id=self.origin.chain_id,
            status=OrderStatus.PENDING,
            kind=OnChainOrderType.TWAP_ORDER,
            owner=ALICE,
        )
        order = TwapOrder(
            ALICE,
            BOB,
            WETH,
            USDC,
            self._made,
            0,
            2**40,
            60,
            slices,
            ARRIVES,
            SPENT * slices,
            b"",
            b"",
            DeltaBridge(SELECTORS[kind], 10, OUTPUT, 0, pack_terms(TERMS[kind])),
        )
        document = DeltaDocument("TWAPOrder", order_json("TWAPOrder", order), b"")
        await self.orders.add(row, document, order, terms_of(order))
        await self.orders.step(row.order_hash, lambda row: rested(row, self.now_ms))
        self._nonces[row.order_hash], self._kinds[row.order_hash] = self._made, kind
        return row.order_hash

    def settles(self, order_hash: bytes, *, is_last: bool = True, in_block: bool = True) -> SentDeposit:
        """Settle a slice of an order on the origin, in a block of its own."""
        number = self._deposits
        self._deposits += 1
        done = self.settled(order_hash) + 1
        time_s = self.origin.head.time_s + BLOCK_S
        relay = RelayData(
            address_word(ALICE), address_word(BOB), bytes(32), address_word(USDC), address_word(OUTPUT),
            PART, ARRIVES, self.origin.chain_id, number, time_s + FILL_WITHIN_S, 0,
        )  # fmt: skip
        kind = self._kinds[order_hash]
        is_burn = kind is BridgeKind.CCTP
        name = b"settle %d" % number
        if is_burn:
            relay = replace(relay, fill_deadline=2**32 - 1)
        bridge_id = 0 if is_burn else number
        bridged = events.OrderBridged(order_hash, SELECTORS[kind], 10, OUTPUT, PART, ARRIVES, bridge_id)
        settled = events.OrderSettled(
            order_hash, ALICE, self._nonces[order_hash], WETH, USDC, SPENT, PART, done, is_last
        )
        logs = (
            (ORIGIN_TRANSMITTER, message_sent(BURNED)) if is_burn else (ORIGIN_POOL, deposited(relay, 10)),
            (DELTA, record(bridged)),
            (DELTA, record(settled)),
        )
        sent = SentDeposit(name, order_hash, relay, logs, _attested(name) if is_burn else None)
        self.destination.relays[relay_hash(relay, 10)] = uint_word(number)
        if sent.attested is not None:
            self.burns[tx_hash_of(name)] = sent.attested
        if in_block:
            self.mines(sent)
        return sent

    def mines(self, sent: SentDeposit) -> None:
        """Mine a settlement in the origin's next block, maybe again."""
        self._mines(self.origin, sent.name, *sent.logs)

    def fills(self, sent: SentDeposit, *, pool: bytes = DESTINATION_POOL, **paid: Any) -> None:
        """Pay a deposit on the destination, or hand a burn's message in."""
        if sent.attested is not None:
            logs = (
                (MESSENGER, minted(BOB, OUTPUT, MINTED, PART - MINTED)),
                (DESTINATION_TRANSMITTER, message_received(sent.attested)),
            )
            self._mines(self.destination, b"fill " + sent.name, *logs)
            return
        self._mines(self.destination, b"fill " + sent.name, (pool, filled(sent.relay, **paid)))

    def refunds(self, *amounts: int, is_paid: bool = True, to: bytes = ALICE, leaves: int = 1) -> None:
        """Pay amounts to an account on the origin, each by an entry of each leaf."""
        self._deposits += 1
        leaf = refunded(USDC, [(to, amount) for amount in amounts], bundle=self._deposits)
        payments = [(USDC, record(events.Transfer(ORIGIN_POOL, to, amount))) for amount in amounts]
        logs = [*(payments if is_paid else []), (ORIGIN_POOL, leaf)] * leaves
        self._mines(self.origin, b"refund %d" % self._deposits, *logs)

    def _mines(self, chain: ScriptedChain, name: bytes, *logs: tuple[bytes, Record]) -> None:
        self.names.append(name)
        chain.grow([tx(name, *logs)])

    def passes(self, chain: ScriptedChain, blocks: int) -> None:
        """Let time pass on a chain."""
        chain.grow(*[[] for _ in range(blocks)])

    def settled(self, order_hash: bytes) -> int:
        """Number of an order's settlements in the origin as it is now."""
        logs = [log for block in self.origin.line for log in block.logs]
        return sum(log.topics[:2] == (events.ORDER_SETTLED, order_hash) for log in logs)

    # --- What follows -----------------------------------------------------------------------------------

    async def indexes(self) -> None:
        """Have the origin indexed up to its head, and the orders in memory take the changes in."""
        await run_dry(self._indexer)
        (rows,) = await self.store.read(among(DELTA_ORDER, "chain_id", [self.origin.chain_id]))
        await self.orders.notice(list(map(DELTA_KIND.found, rows)))

    async def glances(self) -> None:
        """Look at deliveries and refunds once; a chain that is away is looked at another time."""
        for watch in self.watches():
            with suppress(NodeUnavailable):
                await watch.look()
        await self._fetches()

    async def _fetches(self) -> bool:
        """Have the couriers ask for attestations; True if they got any."""
        before = sum(one.statistics().attested for one in self.desk._couriers.values())
        for one in self.desk._couriers.values():
            await one.look()
        return before < sum(one.statistics().attested for one in self.desk._couriers.values())

    async def looks(self, rounds: int = 60) -> None:
        """Index the origin, and look at deliveries and refunds, until nothing more changes."""
        for _ in range(rounds):
            await self.indexes()
            is_again = [await watch.look() for watch in self.watches()]
            is_again.append(await self._fetches())
            if not any(is_again):
                await self.indexes()
                return
        raise AssertionError("the watches never come to an end")

    def watches(self) -> tuple[Any, ...]:
        """The watches of both chains."""
        return (*self.desk._deliveries.values(), *self.desk._refunds.values())

    # --- What there is ----------------------------------------------------------------------------------

    async def row(self, order_hash: bytes) -> DeltaOrderRow:
        """The order as it is stored."""
        (rows,) = await self.store.read(by(DELTA_ORDER, order_hash))
        return DELTA_KIND.found(rows[0])

    async def fills_of(self, order_hash: bytes) -> list[DeltaFill]:
        """The stored settlements of an order, oldest first."""
        (rows,) = await self.store.read(among(DELTA_FILL, "order_hash", [order_hash]))
        found: list[DeltaFill] = [row_of(DELTA_FILL, values) for values in rows]
        return sorted(found, key=lambda fill: fill.block_number)

    async def transfers(self, order_hash: bytes) -> tuple[OrderTransfer, ...]:
        """The stored transfers of an order, with ends and refunds."""
        tables = BRIDGE_TRANSFER, BRIDGE_END, DELTA_REFUND
        read = await self.store.read(*(among(table, "order_hash", [order_hash]) for table in tables))
        sent, ends, refunds = (
            [row_of(table, values) for values in rows] for table, rows in zip(tables, read, strict=True)
        )
        return followed(sent, ends, refunds)

    async def record(self, order_hash: bytes) -> Any:
        """The public record of an order."""
        live = self.orders.get(order_hash)
        assert live is not None
        name = "TWAPOrder"
        document = replace(live.document, order=order_json(name, live.order))
        fills, transfers = await self.fills_of(order_hash), await self.transfers(order_hash)
        return order_record(await self.row(order_hash), document, fills, transfers)


@asynccontextmanager
async def a_bridged_world(engine: Engine) -> AsyncIterator[BridgedWorld]:
    """Two chains and a venue's parts between them, on a store."""
    with ExitStack() as owned:
        for name in ("BRIDGE_ATTEST_S", "BRIDGE_ATTEST_S_MAX", "BRIDGE_RECEIVE_LOOK_S"):
            owned.enter_context(patch.object(courier, name, 0.0))
        async with _a_world(engine) as world:
            yield world


@asynccontextmanager
async def _a_world(engine: Engine) -> AsyncIterator[BridgedWorld]:
    async with engine.open() as store, trio.open_nursery() as nursery:
        leases = Leases(store, "one", life_s=60, now_ms=lambda: START_S * 1_000)
        await nursery.start(leases.run)
        world = BridgedWorld(store, leases)
        await world.starts()
        yield world
        nursery.cancel_scope.cancel()


def tx_hash_of(name: bytes) -> bytes:
    """Hash of a transaction of a chain made by hand."""
    return hashlib.sha256(b"tx " + name).digest()


def _attested(name: bytes) -> CctpMessage:
    body = pack_burn(replace(_BURN, fee_executed=PART - MINTED))
    nonce = hashlib.sha256(b"nonce of " + name).digest()
    return replace(BURNED, nonce=nonce, finality_executed=2_000, body=body)
