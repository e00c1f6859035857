"""A venue on a real socket that takes Delta orders and settles them on the world's chain; honest, unless a
story makes it lie.

async with scripted_orders(world) as venue:
    venue.order_lies = OrderLies(order=lambda order: order | {"destAmount": "1"})
    venue.at_look = venue.settle      # done before the first look at an order is answered

Prices are those of the scripted venue: one WETH is 2,500 USDC. The world's maker fills every order.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import msgspec

from cambist.codecs.abi import decode_uint
from cambist.codecs.calldata import allowance
from cambist.codecs.contract_events import OrderSettled, decode_event
from cambist.codecs.delta_calldata import Execution, settle
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    ORDER,
    ORDER_CANCELLATIONS,
    SAME_CHAIN,
    DeltaOrder,
    OrderCancellations,
    delta_domain,
    delta_domain_separator,
)
from cambist.codecs.http1 import Request
from cambist.config import limits
from cambist.config.errors import InvalidInput
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.eip712 import signing_digest
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.signatures import signer
from cambist.engine.chain.port import Call, Receipt
from support.scripted_server import scripted_server
from support.scripted_venue import ScriptedVenue, answered
from support.world import DELTA_NAME, DELTA_VERSION, NATIVE, ONE, World

ORDERS = ["v2", "delta", "orders"]
SETTLEMENT_GAS = 3_000_000


def _as_it_is(value: Any) -> Any:
    return value


class OrderLies(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed in an honest answer: JSON in, JSON out."""

    contracts: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    quote: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    price: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    order: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    build: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    record: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    cancellation: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    cancelled: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is


class Placed(msgspec.Struct):
    """An order that was submitted."""

    id: str
    order: DeltaOrder
    wire: dict[str, Any]
    signature: bytes
    type: str
    partner: str
    status: str = "PENDING"
    receipt: Receipt | None = None


class OrderVenue(ScriptedVenue):
    """See the module.

    Attributes:
        placed: orders by id.
        builds, submissions, cancellations: bodies as they came.
        at_look: done with an order before a look at it is answered.
        drops: how many of the next submissions are taken and not answered.
        order_lies: what is changed in its answers.
    """

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

    async def served(self, request: Request) -> bytes:
        """As the scripted venue, and the endpoints of Delta."""
        path = request.path.decode().strip("/").split("/")
        lies = self.order_lies
        match request.method, path:
            case b"GET", ["resources", "contracts.json"]:
                return answered(200, {}, lies.contracts(self._contracts()))
            case b"GET", ["v2", "quote"]:
                query = {
                    name: values[0] for name, values in parse_qs((request.query or b"").decode()).items()
                }
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
            case b"GET", [*start, order_id] if start == ORDERS:
                return await self._look(order_id)
        return await super().served(request)

    # --- Life -----------------------------------------------------------------------------------------

    async def settle(self, placed: Placed) -> None:
        """The relayer settles it whole; not done again."""
        if placed.status == "COMPLETED":
            return
        world, order = self.world, placed.order
        buys = order.kind == KIND_BUY
        src = world.weth if order.src_token == NATIVE else order.src_token
        dest = world.weth if order.dest_token == NATIVE else order.dest_token
        src_units, dest_units = (self.price, ONE) if src == world.usdc else (ONE, self.price)
        taker = -(-order.dest_amount * src_units // dest_units) if buys else order.src_amount
        maker = order.dest_amount if buys else order.src_amount * dest_units // src_units
        firm = world.a_firm_quote(taker_asset=src, maker_asset=dest, taker_amount=taker, maker_amount=maker)
        step = world.fill_step(firm, maker_amount=maker) if buys else world.fill_step(firm)
        execution = Execution(taker if buys else 0, (step,))
        amount = order.dest_amount if buys else order.src_amount
        data = settle(order, placed.signature, amount, execution)
        placed.receipt = await world.send(world.relayer, world.at.delta, data, gas=SETTLEMENT_GAS)
        placed.status = "COMPLETED"

    async def allowed(self, token: bytes, owner: bytes) -> int:
        """What the Delta contract may take."""
        return decode_uint(await self.world.chain.call(Call(token, allowance(owner, self.world.at.delta))))

    @property
    def only(self) -> Placed:
        """The one order."""
        (placed,) = self.placed.values()
        return placed

    # --- Answers --------------------------------------------------------------------------------------

    def _price(self, query: dict[str, str]) -> dict[str, Any]:
        amount, side = int(query["amount"]), query["side"]
        is_usdc_sold = query["srcToken"] == to_checksum(self.world.usdc)
        src_units, dest_units = (self.price, ONE) if is_usdc_sold else (ONE, self.price)
        if side == "SELL":
            gross = amount * dest_units // src_units
            src, dest = amount, gross - gross * self.fee_bps // 10_000
        else:
            net = -(-amount * src_units // dest_units)
            src, dest = net + net * self.fee_bps // 10_000, amount
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
        leg = body["route"]["origin"]
        sells = body.get("side", "SELL") == "SELL"
        src, dest = int(leg["input"]["amount"]), int(leg["output"]["amount"])
        quoted = dest if sells else src
        bps = body.get("slippage", limits.BUILD_SLIPPAGE_BPS_DEFAULT)
        limit = quoted * (10_000 - bps if sells else 10_000 + bps) // 10_000
        if "limitAmount" in body:
            limit = quoted = int(body["limitAmount"])
        tokens = [
            NATIVE if text == limits.NATIVE_PLACEHOLDER else parse_address(text)
            for text in (leg["input"]["token"]["address"], leg["output"]["token"]["address"])
        ]
        fee = int.from_bytes(self.world.partner.address, "big") << 96 | self.fee_bps if self.fee_bps else 0
        order = DeltaOrder(
            owner=parse_address(body["owner"]),
            beneficiary=parse_address(body.get("beneficiary", body["owner"])),
            src_token=tokens[0],
            dest_token=tokens[1],
            src_amount=src if sells else limit,
            dest_amount=limit if sells else dest,
            expected_amount=quoted,
            deadline=body["deadline"],
            kind=KIND_SELL if sells else KIND_BUY,
            nonce=int(body["nonce"]),
            partner_and_fee=1 << 9 | fee,
            permit=parse_hex(body.get("permit", "0x"), "permit"),
            metadata=b"",
            bridge=SAME_CHAIN,
        )
        value = self.order_lies.order(ORDER.to_wire(order))
        try:
            order_hash = f"0x{self.world.delta_hash(ORDER.from_wire(value)).hex()}"
        except InvalidInput:
            order_hash = "0x" + "00" * 32
        to_sign = {"domain": self._domain(), "types": ORDER.wire_types, "value": value}
        return {"toSign": to_sign, "orderHash": order_hash}

    def _submit(self, body: dict[str, Any]) -> bytes:
        self.submissions.append(body)
        order = ORDER.from_wire(body["order"])
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
        )
        self.placed[placed.id] = placed
        if self.drops:
            self.drops -= 1
            return answered(504, {}, {"errorType": "Timeout", "details": "a proxy gave up"})
        return answered(200, {}, self.order_lies.record(self._record(placed)))

    async def _look(self, name: str) -> bytes:
        for placed in self.placed.values():
            if name in (placed.id, f"0x{self.world.delta_hash(placed.order).hex()}"):
                if self.at_look is not None:
                    await self.at_look(placed)
                return answered(200, {}, self.order_lies.record(self._record(placed)))
        return answered(
            404, {}, {"errorType": "OrderNotFound", "details": "Order not found", "requestId": "r-9"}
        )

    def _record(self, placed: Placed) -> dict[str, Any]:
        order = placed.order
        sells = order.kind == KIND_SELL
        src, dest = (
            limits.NATIVE_PLACEHOLDER if token == NATIVE else to_checksum(token)
            for token in (order.src_token, order.dest_token)
        )
        transactions: list[dict[str, Any]] = []
        executed: str | None = None
        if placed.receipt is not None:
            settled = settled_in(placed.receipt)
            executed = str(settled.received if sells else settled.spent)
            tx_hash = f"0x{placed.receipt.tx_hash.hex()}"
            transactions = [
                {
                    "originTx": tx_hash,
                    "destinationTx": tx_hash,
                    "filledPercent": 100,
                    "spentAmount": str(settled.spent),
                    "receivedAmount": str(settled.received),
                }
            ]
        guessed = {"expectedAmount": str(order.expected_amount), "executedAmount": executed}
        source = {"amount": str(order.src_amount)} if sells else guessed
        destination = guessed if sells else {"amount": str(order.dest_amount)}
        return {
            "id": placed.id,
            "status": placed.status,
            "side": "SELL" if sells else "BUY",
            "type": placed.type,
            "onChainOrderType": "Order",
            "input": {"chainId": self.chain_id, "token": src} | source,
            "output": {"chainId": self.chain_id, "token": dest} | destination,
            "owner": to_checksum(order.owner),
            "beneficiary": to_checksum(order.beneficiary),
            "orderHash": f"0x{self.world.delta_hash(order).hex()}",
            "partner": placed.partner,
            "order": placed.wire,
            "transactions": transactions,
            "refunds": [],
            "createdAt": "2026-01-01T00:00:00Z",
            "updatedAt": "2026-01-01T00:00:00Z",
            "expiresAt": "2026-01-01T01:00:00Z",
        }

    def _cancellation(self, body: dict[str, Any]) -> dict[str, Any]:
        types = ORDER_CANCELLATIONS.wire_types
        to_sign = {"domain": self._domain(), "types": types, "value": {"orderIds": body["orderIds"]}}
        return {"toSign": to_sign, "hash": f"0x{self._cancel_digest(body['orderIds']).hex()}"}

    def _cancel(self, body: dict[str, Any]) -> bytes:
        self.cancellations.append(body)
        digest = self._cancel_digest(body["orderIds"])
        owner = signer(digest, parse_hex(body["signature"], "signature"))
        for order_id in body["orderIds"]:
            assert owner == self.placed[order_id].order.owner
            self.placed[order_id].status = "CANCELLING"
        told = self.order_lies.cancelled({"success": True, "cancelled": body["orderIds"]})
        return answered(200, {}, told)

    def _cancel_digest(self, ids: list[str]) -> bytes:
        separator = delta_domain_separator(DELTA_NAME, DELTA_VERSION, self.chain_id, self.world.at.delta)
        struct_hash = ORDER_CANCELLATIONS.compiled.hash_struct(OrderCancellations(tuple(ids)))
        return signing_digest(separator, struct_hash)


def settled_in(receipt: Receipt) -> OrderSettled:
    """The settlement that a receipt tells of."""
    found: list[OrderSettled] = []
    for log in receipt.logs:
        try:
            event = decode_event(log.topics, log.data)
        except InvalidInput:
            continue
        if isinstance(event, OrderSettled):
            found.append(event)
    (settled,) = found
    return settled


@asynccontextmanager
async def scripted_orders(world: World) -> AsyncGenerator[OrderVenue]:
    """Serving until the context is left."""
    venue = OrderVenue(world)
    async with scripted_server(venue.serve) as port:
        venue.port = port
        yield venue
