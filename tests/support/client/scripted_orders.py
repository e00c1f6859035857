"""A venue on a real socket that takes Delta orders and settles them on the world's chain; honest, unless a
story makes it lie.

async with scripted_orders(world) as venue:
    venue.order_lies = OrderLies(order=lambda order: order | {"destAmount": "1"})
    venue.at_look = venue.settle      # done before the first look at an order is answered
    venue.pushes = True               # it has GET /v2/delta/orders/events, over WebSockets

Prices are those of the scripted venue: one WETH is 2,500 USDC. The world's maker fills every order.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import msgspec
import trio

from cambist.codecs.contracts.abi import decode_uint
from cambist.codecs.contracts.calldata import allowance
from cambist.codecs.contracts.contract_events import OrderSettled
from cambist.codecs.contracts.delta_calldata import Execution, settle, settle_twap, settle_twap_buy
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    ORDER,
    ORDER_CANCELLATIONS,
    SAME_CHAIN,
    TWAP_BUY_ORDER,
    TWAP_ORDER,
    DeltaOrder,
    TwapBuyOrder,
    TwapOrder,
    delta_domain,
    order_type_of,
)
from cambist.codecs.eip712_orders.typed_struct import TypedStruct
from cambist.codecs.http1 import Request, Upgrade
from cambist.codecs.messages.vocabulary import Side
from cambist.config import limits
from cambist.config.errors import InvalidInput
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.signatures import signer
from cambist.engine.chain.port import EthCall, Receipt
from cambist.engine.trade.delta.orders.terms import SettledOrder, next_part, side_of, terms_of, whole_of
from cambist.engine.trader.client.safety import contract_events
from cambist.feeds.transport.websocket import WebSocketClosed, serve_websocket
from support.chain.world import DELTA_NAME, DELTA_VERSION, NATIVE, ONE, USDC, World
from support.client.scripted_venue import ScriptedVenue, answered, as_it_is, fault, query_of
from support.server.scripted_server import Caller

ORDERS = ["v2", "delta", "orders"]
SETTLEMENT_GAS = 3_000_000


class OrderLies(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of honest answers: JSON in, JSON out."""

    contracts: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    quote: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    price: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    order: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    build: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    record: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    cancellation: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    cancelled: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is


class Placed(msgspec.Struct):
    """An order that was submitted."""

    id: str
    order: SettledOrder
    wire: dict[str, Any]
    signature: bytes
    type: str
    partner: str
    is_partial: bool = False
    status: str = "PENDING"
    version: int = 1
    filled: int = 0
    receipts: list[Receipt] = msgspec.field(default_factory=list)

    @property
    def whole(self) -> int:
        """Value of `filled` at which the order is completed."""
        order = self.order
        return whole_of(order)


class OrderVenue(ScriptedVenue):
    """See the module.

    Attributes:
        placed: orders by id.
        builds, submissions, cancellations: bodies as they came.
        at_look: done with an order before a look at it is answered.
        drops: how many of the next submissions are taken and not answered.
        pushes: it has events; `events` are those of so far, and a token is the number of events before it.
        listening: queries of the sockets that were opened.
        order_lies: what is changed in its answers.
    """

    events_path = "/v2/delta/orders/events"
    event_members = {  # noqa: RUF012  nobody changes it
        "orderId": "id",
        "orderHash": "orderHash",
        "userAddress": "owner",
        "partner": "partner",
    }

    def __init__(self, world: World, port: int = 0) -> None:
        super().__init__(world, port)
        self.order_lies = OrderLies()
        self.placed: dict[str, Placed] = {}
        self.builds: list[dict[str, Any]] = []
        self.submissions: list[dict[str, Any]] = []
        self.cancellations: list[dict[str, Any]] = []
        self.at_look: Callable[[Placed], Awaitable[None]] | None = None
        self.drops = 0
        self.fee_bps = 0
        self.pushes = False
        self.events: list[dict[str, Any]] = []
        self.listening: list[dict[str, str]] = []
        self._pushed = trio.Event()
        self._cut = trio.Event()

    async def served(self, request: Request) -> bytes:
        """As the scripted venue, and the endpoints of Delta."""
        path = request.path.decode().strip("/").split("/")
        lies = self.order_lies
        match request.method, path:
            case b"GET", ["resources", "contracts.json"]:
                return answered(200, {}, lies.contracts(self._contracts()))
            case b"GET", ["v2", "quote"]:
                query = query_of(request)
                assert query["mode"] == "DELTA"
                return answered(200, {}, lies.quote({"delta": lies.price(self._price(query))}))
            case b"POST", [*start, "build"] if start == ORDERS:
                return answered(200, {}, lies.build(self._build(json.loads(request.body))))
            case b"POST", path if path == ORDERS:
                return self._submit(json.loads(request.body))
            case b"POST", [*start, "build", "cancellation"] if start == ORDERS:
                return answered(200, {}, lies.cancellation(self._cancellation(json.loads(request.body))))
            case b"POST", [*start, "cancel"] if start == ORDERS:
                return self._cancel(json.loads(request.body))
            case b"GET", [*start, "hash", order_hash] if start == ORDERS:
                return await self._look(order_hash)
            case b"GET", [*start, order_id, "explain"] if start == ORDERS:
                return answered(200, {}, self._explanation(order_id))
            case b"GET", path if path == ORDERS:
                return answered(200, {}, self._page(query_of(request)))
            case b"GET", [*start, order_id] if start == ORDERS:
                return await self._look(order_id)
        return await super().served(request)

    # --- Life -----------------------------------------------------------------------------------------

    async def settle(self, placed: Placed, amount: int | None = None) -> None:
        """The relayer settles all that is left, or the next slice of a TWAP; nothing once it is completed.

        Args:
            amount: of the fixed side, where it is less than all.
        """
        part = next_part(placed.order, placed.filled)
        if part is None:
            return
        if amount is not None:
            part = msgspec.structs.replace(part, amount=amount, src_amount=amount, is_last=False)
        world, order = self.world, placed.order
        buys = side_of(order) is Side.BUY
        src = world.weth if order.src_token == NATIVE else order.src_token
        dest = world.weth if order.dest_token == NATIVE else order.dest_token
        fixed = part.dest_amount if buys else part.src_amount
        taker, maker = self.exchanged(src, fixed, is_sale=not buys)
        firm = world.a_firm_quote(taker_asset=src, maker_asset=dest, taker_amount=taker, maker_amount=maker)
        step = world.fill_step(firm, maker_amount=maker) if buys else world.fill_step(firm)
        execution = Execution(taker if buys else 0, taker if buys else 0, (step,))
        match order:
            case DeltaOrder():
                data = settle(order, placed.signature, part.amount, execution)
            case TwapOrder():
                data = settle_twap(order, placed.signature, execution)
            case TwapBuyOrder():
                data = settle_twap_buy(order, placed.signature, execution)
            case _:
                raise TypeError("no trader of these tests places such an order")
        placed.receipts.append(await world.send(world.relayer, world.at.delta, data, gas=SETTLEMENT_GAS))
        placed.filled += part.amount if isinstance(order, DeltaOrder) else 1
        self.change(placed, "COMPLETED" if part.is_last else "ACTIVE")

    async def settle_on_schedule(self, placed: Placed) -> None:
        """All slices of a TWAP, one after another, each when it is due."""
        assert isinstance(placed.order, TwapOrder | TwapBuyOrder)
        while placed.status != "COMPLETED":
            if placed.filled:
                await self.world.pass_time(placed.order.interval)
            await self.settle(placed)

    def change(self, placed: Placed, status: str) -> None:
        """Set an order's status, and push the change to all listeners."""
        placed.status, placed.version = status, placed.version + 1
        self._push(placed)

    def cut(self) -> None:
        """Close all open WebSockets."""
        self._cut.set()
        self._cut = trio.Event()

    async def allowed(self, token: bytes, owner: bytes) -> int:
        """Allowance of an owner for the Delta contract, raw units."""
        return decode_uint(await self.world.chain.call(EthCall(token, allowance(owner, self.world.at.delta))))

    @property
    def only(self) -> Placed:
        """The only placed order; fails if the venue has none or several."""
        (placed,) = self.placed.values()
        return placed

    @property
    def only_order(self) -> DeltaOrder:
        """The signed struct of the only order, which must not be a TWAP."""
        assert isinstance(self.only.order, DeltaOrder)
        return self.only.order

    # --- Answers --------------------------------------------------------------------------------------

    def _price(self, query: dict[str, str]) -> dict[str, Any]:
        side = query["side"]
        src, dest = self.quoted(query, self.fee_bps)
        chain_id = int(query["chainId"])
        source, destination = (
            {"chainId": chain_id, "address": query[name]} for name in ("srcToken", "destToken")
        )
        leg = {
            "input": {"token": source, "amount": str(src), "amountUSD": "2500"},
            "output": {"token": destination, "amount": str(dest), "amountUSD": "2490"},
        }
        gas = {"token": destination, "amount": "1", "amountUSD": "0.5"}
        return {
            "id": str(UUID(int=1, version=4)),
            "side": side,
            "inputToken": source,
            "outputToken": destination,
            "route": {"origin": leg, "destination": leg, "bridge": None, "fees": {"gas": gas, "bridge": []}},
            "partner": {"name": query.get("partner", "anon"), "feePercent": self.fee_bps / 100},
            "spender": to_checksum(self.world.at.delta),
            "alternatives": [],
        }

    def _domain(self) -> dict[str, object]:
        return delta_domain(DELTA_NAME, DELTA_VERSION, self.chain_id, self.world.at.delta)

    def _build(self, body: dict[str, Any]) -> dict[str, Any]:
        self.builds.append(body)
        order_type, order = self._twap(body) if "numSlices" in body else self._order(body)
        value = self.order_lies.order(order_type.to_wire(order))
        try:
            order_hash = f"0x{self.world.delta_hash(order_type.from_wire(value)).hex()}"
        except InvalidInput:
            order_hash = "0x" + "00" * 32
        to_sign = {"domain": self._domain(), "types": order_type.wire_types, "value": value}
        return {"toSign": to_sign, "orderHash": order_hash}

    def _order(self, body: dict[str, Any]) -> tuple[TypedStruct[Any], DeltaOrder]:
        leg = body["route"]["origin"]
        sells = body.get("side", "SELL") == "SELL"
        src, dest = int(leg["input"]["amount"]), int(leg["output"]["amount"])
        quoted = dest if sells else src
        bps = body.get("slippage", limits.BUILD_SLIPPAGE_BPS_DEFAULT)
        limit = quoted * (10_000 - bps if sells else 10_000 + bps) // 10_000
        if "limitAmount" in body:
            limit = quoted = int(body["limitAmount"])
        return ORDER, DeltaOrder(
            **self._said(body),
            src_amount=src if sells else limit,
            dest_amount=limit if sells else dest,
            expected_amount=quoted,
            kind=KIND_SELL if sells else KIND_BUY,
        )

    def _twap(self, body: dict[str, Any]) -> tuple[TypedStruct[Any], TwapOrder | TwapBuyOrder]:
        said = self._said(body) | {"interval": body["interval"], "num_slices": body["numSlices"]}
        leg = body["route"]["origin"]
        if body["orderType"] == "TWAPOrder":
            total = int(body["totalSrcAmount"])
            assert int(leg["input"]["amount"]) == total // body["numSlices"]
            least = int(body["limitAmount"])
            return TWAP_ORDER, TwapOrder(**said, dest_amount_per_slice=least, total_src_amount=total)
        assert body["orderType"] == "TWAPBuyOrder"
        total = int(body["totalDestAmount"])
        assert int(leg["output"]["amount"]) == total // body["numSlices"]
        most = int(body["maxSrcAmount"])
        return TWAP_BUY_ORDER, TwapBuyOrder(**said, total_dest_amount=total, max_src_amount=most)

    def _said(self, body: dict[str, Any]) -> dict[str, Any]:
        """Members of a record that all kinds of order have."""
        leg = body["route"]["origin"]
        tokens = [
            NATIVE if text == limits.NATIVE_PLACEHOLDER else parse_address(text)
            for text in (leg["input"]["token"]["address"], leg["output"]["token"]["address"])
        ]
        fee = int.from_bytes(self.world.partner.address, "big") << 96 | self.fee_bps if self.fee_bps else 0
        return {
            "owner": parse_address(body["owner"]),
            "beneficiary": parse_address(body.get("beneficiary", body["owner"])),
            "src_token": tokens[0],
            "dest_token": tokens[1],
            "deadline": body["deadline"],
            "nonce": int(body["nonce"]),
            "partner_and_fee": 1 << 9 | fee,
            "permit": parse_hex(body.get("permit", "0x"), "permit"),
            "metadata": b"",
            "bridge": SAME_CHAIN,
        }

    def _submit(self, body: dict[str, Any]) -> bytes:
        self.submissions.append(body)
        order = order_type_of(body["order"]).from_wire(body["order"])
        signature = parse_hex(body["signature"], "signature")
        assert len(signature) == 64
        assert signer(self.world.delta_hash(order), signature) == order.owner
        placed = Placed(
            str(UUID(int=len(self.placed) + 1, version=4)),
            order,
            body["order"],
            signature,
            body.get("type", "MARKET"),
            body["partner"],
            is_partial=body.get("partiallyFillable", False),
        )
        self.placed[placed.id] = placed
        self._push(placed)
        if self.drops:
            self.drops -= 1
            return fault(504, "Timeout", "a proxy gave up")
        return answered(200, {}, self.order_lies.record(self._record(placed)))

    async def _look(self, name: str) -> bytes:
        for placed in self.placed.values():
            if name in (placed.id, f"0x{self.world.delta_hash(placed.order).hex()}"):
                if self.at_look is not None:
                    await self.at_look(placed)
                return answered(200, {}, self.order_lies.record(self._record(placed)))
        return fault(404, "OrderNotFound", "Order not found")

    def _record(self, placed: Placed) -> dict[str, Any]:
        order, terms = placed.order, terms_of(placed.order)
        sells = terms.side is Side.SELL
        src, dest = (
            limits.NATIVE_PLACEHOLDER if token == NATIVE else to_checksum(token)
            for token in (order.src_token, order.dest_token)
        )
        fills = [self.settled_in(receipt) for receipt in placed.receipts]
        transactions = [
            {
                "originTx": f"0x{receipt.tx_hash.hex()}",
                "destinationTx": f"0x{receipt.tx_hash.hex()}",
                "filledPercent": 100 * (fill.filled - before) / placed.whole,
                "spentAmount": str(fill.spent),
                "receivedAmount": str(fill.received),
            }
            for receipt, fill, before in zip(
                placed.receipts, fills, [0, *(fill.filled for fill in fills)], strict=False
            )
        ]
        executed = str(sum(fill.received if sells else fill.spent for fill in fills)) if fills else None
        expected = str(order.expected_amount) if isinstance(order, DeltaOrder) else None
        guessed = {"expectedAmount": expected, "executedAmount": executed}
        source = {"amount": str(terms.src_total)} if sells else guessed | {"maxAmount": str(terms.src_total)}
        got = guessed | {"minAmount": str(terms.dest_total)} if sells else {"amount": str(terms.dest_total)}
        kind = order_type_of(placed.wire).name
        return {
            "id": placed.id,
            "status": placed.status,
            "side": terms.side.value,
            "type": placed.type,
            "onChainOrderType": "FillableOrder" if placed.is_partial else kind,
            "input": {"chainId": self.chain_id, "token": src} | source,
            "output": {"chainId": self.chain_id, "token": dest} | got,
            "owner": to_checksum(order.owner),
            "beneficiary": to_checksum(terms.beneficiary),
            "orderHash": self._hash(placed),
            "partner": placed.partner,
            "order": placed.wire,
            "transactions": transactions,
            "refunds": [],
            "createdAt": "2026-01-01T00:00:00Z",
            "updatedAt": "2026-01-01T00:00:00Z",
            "expiresAt": "2026-01-01T01:00:00Z",
        }

    def settled_in(self, receipt: Receipt) -> OrderSettled:
        """The settlement that a receipt tells of."""
        (settled,) = contract_events(receipt, self.world.at.delta, OrderSettled)
        return settled

    def _explanation(self, order_id: str) -> dict[str, Any]:
        placed = self.placed[order_id]
        return {
            "orderId": order_id,
            "orderHash": self._hash(placed),
            "status": placed.status,
            "reasons": [{"code": "noBids", "text": "no agent bid for the order"}],
            "lastRounds": [],
        }

    def _hash(self, placed: Placed) -> str:
        return f"0x{self.world.delta_hash(placed.order).hex()}"

    def _page(self, query: dict[str, str]) -> dict[str, Any]:
        """A page of orders, newest first."""
        statuses = query.get("status", "").split(",") if "status" in query else None
        wanted = [
            self.order_lies.record(self._record(placed))
            for placed in reversed(self.placed.values())
            if query.get("userAddress") in (None, to_checksum(placed.order.owner))
            and query.get("chainId") in (None, str(self.chain_id))
            and (statuses is None or placed.status in statuses)
        ]
        page, limit = int(query.get("page", "1")), int(query.get("limit", "100"))
        return {
            "data": wanted[(page - 1) * limit : page * limit],
            "total": len(wanted),
            "page": page,
            "limit": limit,
            "hasMore": page * limit < len(wanted),
        }

    # --- Pushes ---------------------------------------------------------------------------------------

    async def upgraded(self, caller: Caller, upgrade: Upgrade) -> None:
        """Send a listener the events after its token, then each new event."""
        if not self.pushes or upgrade.request.path != self.events_path.encode():
            await super().upgraded(caller, upgrade)
            return
        query = query_of(upgrade.request)
        self.listening.append(query)
        place = int(query["after"]) if "after" in query else len(self.events)
        cut = self._cut
        async with serve_websocket(
            caller.stream, upgrade, message_bytes_max=1_000, send_bytes_max=1 << 20
        ) as socket:
            try:
                if place > len(self.events):
                    await socket.aclose(1008, "after: expected a token of this venue's events")
                    return
                await socket.send(_text({"event": "open", "token": f"{place}"}))
                while not cut.is_set():
                    pushed = self._pushed
                    for event in self.events[place:]:
                        if _is_wanted(event, query, self.event_members):
                            await socket.send(_text(event))
                    place = len(self.events)
                    await _either(pushed, cut)
            except WebSocketClosed:
                return

    def _push(self, placed: Placed) -> None:
        record = self._record(placed)
        self.push(
            {
                "surface": "delta",
                "id": placed.id,
                "orderHash": record["orderHash"],
                "owner": record["owner"],
                "partner": placed.partner,
                "status": placed.status,
                "version": placed.version,
            }
        )

    def push(self, event: dict[str, Any]) -> None:
        """Tell those who listen of one more event; the next token is its own."""
        place = {"event": "order", "token": f"{len(self.events) + 1}", "chainId": self.chain_id}
        self.events.append(place | {"at": "2026-01-01T00:00:00.000Z"} | event)
        self._pushed.set()
        self._pushed = trio.Event()

    # --- Cancellations --------------------------------------------------------------------------------

    def _cancellation(self, body: dict[str, Any]) -> dict[str, Any]:
        types = ORDER_CANCELLATIONS.wire_types
        to_sign = {"domain": self._domain(), "types": types, "value": {"orderIds": body["orderIds"]}}
        return {"toSign": to_sign, "hash": f"0x{self.world.cancel_hash(body['orderIds']).hex()}"}

    def _cancel(self, body: dict[str, Any]) -> bytes:
        self.cancellations.append(body)
        owner = signer(self.world.cancel_hash(body["orderIds"]), parse_hex(body["signature"], "signature"))
        for order_id in body["orderIds"]:
            assert owner == self.placed[order_id].order.owner
            self.change(self.placed[order_id], "CANCELLING")
        told = self.order_lies.cancelled({"success": True, "cancelled": body["orderIds"]})
        return answered(200, {}, told)


def _text(message: dict[str, Any]) -> str:
    return json.dumps(message)


def _is_wanted(event: dict[str, Any], query: dict[str, str], members: dict[str, str]) -> bool:
    chains = query.get("chainId", "").split(",") if "chainId" in query else None
    return all(query.get(name, event[member]) == event[member] for name, member in members.items()) and (
        chains is None or str(event["chainId"]) in chains
    )


async def _either(*events: trio.Event) -> None:
    """Return once any of the events has happened."""
    async with trio.open_nursery() as nursery:

        async def wait(event: trio.Event) -> None:
            await event.wait()
            nursery.cancel_scope.cancel()

        for event in events:
            nursery.start_soon(wait, event)


async def endow(world: World) -> None:
    """Give the maker both tokens, with allowances, and the user ten WETH and 10,000 USDC."""
    await world.give(world.maker, world.usdc, 100_000 * USDC, world.at.rfq)
    await world.give(world.maker, world.weth, 100 * ONE, world.at.rfq)
    await world.mint(world.weth, world.user, 10 * ONE)
    await world.mint(world.usdc, world.user, 10_000 * USDC)


scripted_orders = OrderVenue.opened
