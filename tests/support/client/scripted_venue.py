"""A venue on a real socket that prices and builds transactions; honest, unless a story makes it lie.

async with scripted_venue(world) as venue:
    venue.lies = Lies(swap=lambda swap: replace(swap, receiver=thief))

A WETH costs 2,500 USDC, both ways; the world's maker signs. The venue builds calldata of the world's Router.
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import parse_qs

import msgspec
import trio

from cambist.codecs.contracts.router_calldata import Hop, RouterSwap, swap_exact_in, swap_exact_out
from cambist.codecs.http1 import Request, Upgrade
from cambist.codecs.messages.market_messages import TransactionBody, decode_transaction_body
from cambist.codecs.trading_token import parse_trading_token
from cambist.config import limits
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.deploy.address_book import chain_entry
from support.chain.world import NATIVE, NOBODY, ONE, USDC, World
from support.server.scripted_server import Caller, scripted_server

PRICE = 2_500 * USDC


def as_it_is(value: Any) -> Any:
    return value


class Lies(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of honest answers."""

    swap: Callable[[RouterSwap], RouterSwap] = as_it_is
    data: Callable[[bytes], bytes] = as_it_is
    envelope: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    route: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    contracts: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is


class ScriptedVenue:
    """See the module.

    Attributes:
        requests: method and path of everything that was asked.
        bodies: of POST /transactions.
        refusals: status, headers and body of the next answers, in turn, in place of what they would be.
        fee_bps: of the partner `wallet`; without a partner there is no fee.
        price: raw USDC for one WETH.
    """

    def __init__(self, world: World, port: int = 0) -> None:
        self.world = world
        self.port = port
        self.lies = Lies()
        self.requests: list[str] = []
        self.bodies: list[TransactionBody] = []
        self.headers: list[dict[bytes, bytes]] = []
        self.refusals: list[tuple[int, dict[str, str], Any]] = []
        self.fee_bps = 50
        self.price = PRICE

    @classmethod
    @asynccontextmanager
    async def opened(cls, world: World) -> AsyncGenerator[Self]:
        """Serving until the context is left."""
        venue = cls(world)
        async with scripted_server(venue.serve) as port:
            venue.port = port
            yield venue

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, caller: Caller) -> None:
        while True:
            try:
                request = await caller.asked()
            except (EOFError, trio.BrokenResourceError):
                return
            if isinstance(request, Upgrade):
                await self.upgraded(caller, request)
                return
            try:
                await caller.stream.send_all(await self._answer(request))
            except trio.BrokenResourceError:
                return

    async def upgraded(self, caller: Caller, upgrade: Upgrade) -> None:
        """The end of a connection that asks for a WebSocket: there is none."""
        await caller.stream.send_all(fault(404, "NotFound", "no socket here"))

    async def _answer(self, request: Request) -> bytes:
        self.requests.append(f"{request.method.decode()} {request.path.decode()}")
        self.headers.append(dict(request.fields))
        if self.refusals:
            return answered(*self.refusals.pop(0))
        return await self.served(request)

    async def served(self, request: Request) -> bytes:
        """The answer to a request that is not refused."""
        path = request.path.decode().strip("/").split("/")
        match path:
            case ["tokens", _]:
                return answered(200, {}, self._tokens())
            case ["resources", "contracts.json"]:
                return answered(200, {}, self.lies.contracts(self._contracts()))
            case ["prices"]:
                return answered(200, {}, {"priceRoute": self.lies.route(self._route(query_of(request)))})
            case ["transactions", _]:
                body = decode_transaction_body(request.body)
                self.bodies.append(body)
                return answered(200, {}, self.lies.envelope(self._envelope(body)))
        return fault(404, "NotFound", "there is no such endpoint")

    def _tokens(self) -> dict[str, Any]:
        world = self.world
        rows = (
            ("ETH", limits.NATIVE_PLACEHOLDER, 18),
            ("USDC", to_checksum(world.usdc), 6),
            ("WETH", to_checksum(world.weth), 18),
            ("DAI", to_checksum(world.dai), 18),
        )
        names = ("symbol", "address", "decimals")
        return {"tokens": [dict(zip(names, row, strict=True), network=self.chain_id) for row in rows]}

    @property
    def chain_id(self) -> int:
        return self.world.chain.chain_id

    def _contracts(self) -> dict[str, Any]:
        entry = msgspec.to_builtins(chain_entry("devnet", self.world.at))
        return {"_meta": {"name": "scripted", "version": "0"}, "chains": {str(self.chain_id): entry}}

    def _route(self, query: dict[str, str]) -> dict[str, Any]:
        side, fee_bps = query["side"], self.fee_bps if query.get("partner") else 0
        src, dest = self.quoted(query, fee_bps)
        router = to_checksum(self.world.at.router)
        exchange = {
            "exchange": "alpha",
            "srcAmount": str(src),
            "destAmount": str(dest),
            "percent": 100,
            "data": {},
        }
        hop = {
            "srcToken": query["srcToken"],
            "srcDecimals": int(query["srcDecimals"]),
            "destToken": query["destToken"],
            "destDecimals": int(query["destDecimals"]),
            "swapExchanges": [exchange],
        }
        return {
            "blockNumber": 1,
            "network": int(query["network"]),
            "srcToken": query["srcToken"],
            "destToken": query["destToken"],
            "srcDecimals": int(query["srcDecimals"]),
            "destDecimals": int(query["destDecimals"]),
            "srcAmount": str(src),
            "destAmount": str(dest),
            "bestRoute": [{"percent": 100, "swaps": [hop]}],
            "gasCostUSD": "1.25",
            "gasCost": "300000",
            "version": query["version"],
            "contractAddress": router,
            "tokenTransferProxy": router,
            "contractMethod": "swapExactIn" if side == "SELL" else "swapExactOut",
            "partnerFee": fee_bps / 100,
            "srcUSD": "2500",
            "destUSD": "2490",
            "partner": query.get("partner", "anon"),
            "maxImpactReached": False,
            "hmac": "0" * 64,
            "side": side,
        }

    def quoted(self, query: dict[str, str], fee_bps: int) -> tuple[int, int]:
        """Amounts of a price, (source, destination), raw units, the fee taken off."""
        amount, is_sale = int(query["amount"]), query["side"] == "SELL"
        src, dest = self.exchanged(
            parse_trading_token(query["srcToken"], "srcToken"), amount, is_sale=is_sale
        )
        if is_sale:
            return src, dest - dest * fee_bps // 10_000
        return src + src * fee_bps // 10_000, dest

    def exchanged(self, src: bytes, amount: int, *, is_sale: bool) -> tuple[int, int]:
        """Amounts of both tokens, (source, destination), raw units, at the venue's price.

        Args:
            amount: of the source token for a sale, of the destination token for a purchase.
        """
        src_units, dest_units = (self.price, ONE) if src == self.world.usdc else (ONE, self.price)
        if is_sale:
            return amount, amount * dest_units // src_units
        return -(-amount * src_units // dest_units), amount

    def _envelope(self, body: TransactionBody) -> dict[str, Any]:
        world = self.world
        route = json.loads(body.route or b"")
        side = route["side"]
        user = parse_address(body.user_address)
        src, dest = (
            NATIVE if text == limits.NATIVE_PLACEHOLDER else parse_address(text)
            for text in (body.src_token, body.dest_token)
        )
        fee_bps = round(route["partnerFee"] * 100)
        src_amount, dest_amount = int(body.src_amount or 0), int(body.dest_amount or 0)
        is_sale = side == "SELL"
        taker_amount, maker_amount = self.exchanged(
            src, src_amount if is_sale else dest_amount, is_sale=is_sale
        )
        order = world.a_firm_quote(
            taker_asset=world.weth if src == NATIVE else src,
            maker_asset=world.weth if dest == NATIVE else dest,
            taker_amount=taker_amount,
            maker_amount=maker_amount,
        )
        order = msgspec.structs.replace(
            order, nonce_and_meta=order.nonce_and_meta >> 160 << 160 | int.from_bytes(user, "big")
        )
        swap = RouterSwap(
            src_token=src,
            dest_token=dest,
            src_amount=src_amount,
            dest_amount=dest_amount,
            expected_amount=0,
            receiver=parse_address(body.receiver) if body.receiver else NOBODY,
            deadline=body.deadline or 0,
            partner_and_fee=(int.from_bytes(world.partner.address, "big") << 96 | fee_bps) if fee_bps else 0,
            permit=parse_hex(body.permit, "permit") if body.permit else b"",
            hops=(Hop(orders=(world.info(order),), maker_amount=0 if side == "SELL" else maker_amount),),
        )
        encode = swap_exact_in if side == "SELL" else swap_exact_out
        swap = self.lies.swap(swap)
        return {
            "from": body.user_address,
            "to": to_checksum(world.at.router),
            "value": str(src_amount) if src == NATIVE else "0",
            "data": f"0x{self.lies.data(encode(swap)).hex()}",
            "gasPrice": "1000000000",
            "chainId": self.chain_id,
        }


def query_of(request: Request) -> dict[str, str]:
    """The parameters of a request."""
    return {name: values[0] for name, values in parse_qs((request.query or b"").decode()).items()}


def fault(status: int, error_type: str, details: str) -> bytes:
    """The bytes of an answer that refuses a request."""
    return answered(status, {}, {"errorType": error_type, "details": details, "requestId": "r-1"})


def answered(status: int, headers: dict[str, str], body: Any) -> bytes:
    """An answer of JSON, as bytes."""
    raw = json.dumps(body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(raw)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode() + raw


scripted_venue = ScriptedVenue.opened
