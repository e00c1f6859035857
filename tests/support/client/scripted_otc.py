"""A venue on a real socket that keeps OTC orders and reads their state from the world's chain; honest, unless
a story makes it lie.

async with scripted_otc(world) as venue:
    venue.otc_lies = OtcLies(stored=lambda stored: stored | {"makerAmount": "1"})
    venue.pushes = True               # it has GET /ft/events, over WebSockets

The venue takes posted orders without checking them.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.contract_events import ORDER_CANCELLED, ORDER_FILLED
from cambist.codecs.eip712_orders.nonce_and_meta import taker_from_meta
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from cambist.codecs.http1 import Request
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.engine.chain.port import LogFilter
from support.chain.world import NOBODY, World
from support.client.scripted_orders import OrderVenue
from support.client.scripted_venue import answered, as_it_is, fault, query_of
from support.contracts.rfq_stories import FILLED_OR_CANCELLED

_CREATED_S = 1_767_225_600


class OtcLies(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of honest answers: JSON in, JSON out."""

    posted: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    stored: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    listed: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    fillable: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is


class Kept(msgspec.Struct):
    """An order that was posted."""

    order: RfqOrder
    body: dict[str, Any]
    created_s: int
    version: int = 1


class OtcVenue(OrderVenue):
    """See the module.

    Attributes:
        kept: orders by hash, in the order in which they came.
        posts: bodies as they came.
        page_max: orders of one page at most.
        as_of: what pages were asked for as of.
        refuses_posts: status and body of the answer to every post.
        before_look: done before a look at an order is answered.
    """

    events_path = "/ft/events"
    event_members = {"orderHash": "orderHash", "maker": "owner", "taker": "taker"}  # noqa: RUF012  as above

    def __init__(self, world: World, port: int = 0) -> None:
        super().__init__(world, port)
        self.otc_lies = OtcLies()
        self.kept: dict[str, Kept] = {}
        self.posts: list[dict[str, Any]] = []
        self.page_max = 1_000
        self.as_of: list[str | None] = []
        self.refuses_posts: tuple[int, dict[str, str]] | None = None
        self.before_look: Callable[[Kept], Awaitable[None]] | None = None

    async def served(self, request: Request) -> bytes:
        """As the venue of Delta orders, and the endpoints of OTC."""
        lies = self.otc_lies
        match request.method, request.path.decode().strip("/").split("/"):
            case b"POST", ["ft", "p2p", chain_id]:
                assert int(chain_id) == self.chain_id
                return await self._post(json.loads(request.body))
            case b"GET", ["ft", "order", order_hash]:
                kept = self.kept.get(order_hash)
                if kept is None:
                    return fault(404, "OrderNotFound", f"no order {order_hash}")
                if self.before_look is not None:
                    await self.before_look(kept)
                return answered(200, {}, lies.stored(await self.stored(kept)))
            case b"GET", ["ft", "p2p", _, role, account]:
                return answered(200, {}, lies.listed(await self._listing(role, account, query_of(request))))
            case b"GET", ["ft", "fillablebalance", _, account, token]:
                return answered(200, {}, lies.fillable(await self._fillable(account, token)))
        return await super().served(request)

    def keep(self, order: RfqOrder, signature: bytes, permit: bytes | None = None) -> str:
        """Add an order to the venue and return its hash."""
        body = RFQ_ORDER.to_wire(order) | {
            "signature": f"0x{signature.hex()}",
            "permitMakerAsset": None if permit is None else f"0x{permit.hex()}",
        }
        return self._keep(body)

    async def change(self, kept: Kept) -> None:  # type: ignore[override]
        """Push an event with the order's present state to the open sockets."""
        kept.version += 1
        stored = await self.stored(kept)
        self.push(
            {
                "surface": "otc",
                "orderHash": stored["orderHash"],
                "owner": to_checksum(kept.order.maker),
                "partner": "",
                "status": stored["state"],
                "version": kept.version,
                "taker": to_checksum(kept.order.taker),
                "fillableBalance": stored["fillableBalance"],
                "swappableBalance": stored["swappableBalance"],
            }
            | ({"transactionHash": stored["transactionHash"]} if stored["transactionHash"] else {})
        )

    async def stored(self, kept: Kept) -> dict[str, Any]:
        """Honest record of an order, by the chain's present state."""
        world, order = self.world, kept.order
        order_hash = world.rfq_hash(order)
        left = await world.ask(world.at.rfq, calldata.remaining(order.maker, order_hash))
        amount = {0: order.maker_amount, FILLED_OR_CANCELLED: 0}.get(left, left - 1)
        usable = await self._usable(order.maker, order.maker_asset)
        cancelled = await self._last(ORDER_CANCELLED, order_hash)
        tx_hash = cancelled or await self._last(ORDER_FILLED, order_hash)
        if left == FILLED_OR_CANCELLED:
            state = "CANCELLED" if cancelled else "FULFILLED"
        elif order.expiry and await world.now_s() > order.expiry:
            state = "EXPIRED"
        else:
            state = "PENDING" if usable >= amount else "SUSPENDED"
        reserved = min(usable, amount) if state in ("PENDING", "SUSPENDED") else 0
        return kept.body | {
            "orderHash": f"0x{order_hash.hex()}",
            "chainId": self.chain_id,
            "state": state,
            "type": "LIMIT" if order.taker == NOBODY else "P2P",
            "takerFromMeta": to_checksum(taker_from_meta(order.nonce_and_meta, order.maker, order.taker)),
            "makerBalance": str(reserved),
            "fillableBalance": str(amount),
            "reservedBalance": str(reserved),
            "swappableBalance": str(reserved if state == "PENDING" else 0),
            "transactionHash": tx_hash,
            "createdAt": kept.created_s,
            "updatedAt": kept.created_s,
        }

    # --- Answers --------------------------------------------------------------------------------------

    async def _post(self, body: dict[str, Any]) -> bytes:
        self.posts.append(body)
        if self.refuses_posts is not None:
            status, refusal = self.refuses_posts
            return answered(status, {}, refusal)
        kept = self.kept[self._keep(body)]
        if self.drops:
            self.drops -= 1
            return fault(502, "BadGateway", "nobody knows what became of it")
        stored = self.otc_lies.posted(await self.stored(kept))
        return answered(200, {}, stored | {"order": stored})

    def _keep(self, body: dict[str, Any]) -> str:
        order = RFQ_ORDER.from_wire({name: body[name] for name in RFQ_ORDER.member_names})
        order_hash = f"0x{self.world.rfq_hash(order).hex()}"
        self.kept[order_hash] = Kept(order, body, _CREATED_S + 60 * len(self.kept))
        return order_hash

    async def _listing(self, role: str, account: str, query: dict[str, str]) -> dict[str, Any]:
        """A listing of orders, newest first."""
        self.as_of.append(query.get("asOf"))
        offset, limit = int(query["offset"]), min(int(query["limit"]), self.page_max)
        who = parse_address(account)
        found = [
            await self.stored(kept)
            for kept in reversed(self.kept.values())
            if who in ((kept.order.maker,) if role == "maker" else (kept.order.taker,))
        ]
        if "type" in query:
            found = [stored for stored in found if stored["type"] == query["type"]]
        if query.get("hideSmallBalances") == "true":
            found = [stored for stored in found if stored["swappableBalance"] != "0"]
        if query["orderBy"] == "expiry":
            found.sort(key=lambda stored: stored["expiry"])
        return {
            "orders": found[offset : offset + limit],
            "limit": limit,
            "offset": offset,
            "total": len(found),
            "hasMore": offset + limit < len(found),
            "asOf": f"as of {len(found)}",
        }

    async def _fillable(self, account: str, token: str) -> dict[str, str]:
        owner, asset = parse_address(account), parse_address(token)
        taken = 0
        for kept in self.kept.values():
            if (kept.order.maker, kept.order.maker_asset) == (owner, asset):
                taken += int((await self.stored(kept))["fillableBalance"])
        return {token.lower(): str(max(await self._usable(owner, asset) - taken, 0))}

    async def _usable(self, owner: bytes, token: bytes) -> int:
        has = await self.world.balance(token, owner)
        return min(has, await self.world.ask(token, calldata.allowance(owner, self.world.at.rfq)))

    async def _last(self, topic: bytes, order_hash: bytes) -> str | None:
        head = await self.world.chain.block()
        assert head is not None
        wanted = LogFilter((self.world.at.rfq,), ((topic,), (order_hash,)))
        logs = await self.world.chain.logs(wanted, 0, head.number)
        return f"0x{logs[-1].tx_hash.hex()}" if logs else None


scripted_otc = OtcVenue.opened
