"""OTC orders over HTTP, on a chain with everything on it, and a store: posted, read, filled and cancelled.

async with an_otc_front(tmp_path) as front:
    order = front.an_order()
    stored = await front.posted(order)
    assert await front.get(f"/ft/order/{stored['orderHash']}") == stored

The maker has 10,000 USDC and the taker 10 WETH, which the RFQ contract may take. Chain 31337 has RFQ, and so
has 31338, whose contract nobody calls; 100 is a Market chain. The engine of OTC orders runs unless told
otherwise; then what is kept stays as it is.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.nonce_and_meta import pack_otc
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from cambist.config.chains import ChainSettings
from cambist.config.secret import Secret
from cambist.config.sections.server import ServerSettings
from cambist.config.sections.venue import ApiKey, RateTier, VenueSettings
from cambist.config.settings import parse_settings
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import Receipt
from cambist.engine.host.admission.admission import Admission
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.server import Router, Server
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.queries import by
from cambist.engine.store.rows import OtcOrderRow
from cambist.engine.store.store import Store
from cambist.engine.store.tables import OTC_ORDER
from cambist.engine.trade.api.openapi import openapi_document
from cambist.engine.trade.api.routes import encode_trading_error, mount_endpoints
from cambist.engine.trade.orders.order_engines import OrderEngines, open_footing
from cambist.engine.trade.orders.order_units import OTC
from cambist.engine.trade.orders.scheduler import Scheduler
from cambist.engine.trade.otc.endpoints import OtcEndpoints
from cambist.engine.trade.otc.engine import OtcEngine, open_otc
from cambist.engine.trade.otc.purge import OtcPurge
from cambist.engine.trade.served.served_chain import ServedChain
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.books.usd_prices import UsdPrices
from support.chain.world import MadeWorld, World
from support.contracts.rfq_stories import funded
from support.patience import until_found
from support.server.asked_front import AskedFront, client_at, listening
from support.venue.market_place import a_shop_on, listed_on

CHAIN_ID, OTHER_RFQ, MARKET_ONLY = 31_337, 31_338, 100
P2P = f"/ft/p2p/{CHAIN_ID}"
FILLABLE = f"/ft/fillablebalance/{CHAIN_ID}"
OPERATOR_KEY = "the-key-of-the-operator"
OTHER_CONTRACT = b"\x5f" * 20
GENEROUS = RateTier(per_s=100_000, burst=100_000)


class OtcFront(AskedFront):
    """Asks a server that takes OTC orders.

    Attributes:
        world: the chain.
        engine: of the orders.
        document: what OpenAPI says of it.
        later_s: by which the venue's clock is ahead.
        port: of the server.
        places: chains that the endpoints serve, by chain id.
    """

    def __init__(self, world: World, store: Store) -> None:
        self.world = world
        self.store = store
        self.later_s = self.port = 0
        self.engine: OtcEngine
        self.scheduler: Scheduler
        self.places: dict[int, ServedChain]
        self.document: dict[str, Any]
        self._nonce = 0

    def now_ms(self) -> int:
        """The venue's clock."""
        return WallClock().now_ms() + 1_000 * self.later_s

    # --- Orders -----------------------------------------------------------------------------------------

    def an_order(self, **changed: Any) -> RfqOrder:
        """The maker offers the taker 2,500 USDC for one WETH, for ever."""
        self._nonce += 1
        meta = pack_otc(self.world.maker.address, self._nonce)
        given = {"nonce_and_meta": meta, "taker": self.world.taker.address} | changed
        return self.world.an_rfq_order(**given)

    def body(
        self, order: RfqOrder, key: SigningKey | None = None, *, signature: bytes | None = None, **more: Any
    ) -> dict[str, Any]:
        """Body of a post, by default signed by the maker."""
        signed = self.world.signed(order, key) if signature is None else signature
        wire: dict[str, Any] = RFQ_ORDER.to_wire(order)
        return {
            **wire,
            "nonceAndMeta": str(order.nonce_and_meta),
            "expiry": order.expiry,
            "signature": to_hex(signed),
            **more,
        }

    async def submit(self, order: RfqOrder, key: SigningKey | None = None, **more: Any) -> tuple[int, Any]:
        """Status and JSON of a post."""
        return await self.post(P2P, self.body(order, key, **more))

    async def posted(self, order: RfqOrder, key: SigningKey | None = None, **more: Any) -> dict[str, Any]:
        """The stored order of a post that is taken, which holds itself twice."""
        status, told = await self.submit(order, key, **more)
        assert status == 200, told
        stored = told.pop("order")
        assert stored == told
        assert isinstance(stored, dict)
        return stored

    async def fault(
        self, order: RfqOrder, key: SigningKey | None = None, **more: Any
    ) -> tuple[int, str, str]:
        """(status, errorType, details) of an order that is refused: nothing is kept of it."""
        refusal = told(await self.submit(order, key, **more))
        assert (await self.answer(f"/ft/order/{self.hash_of(order)}"))[0] == 404
        return refusal

    def hash_of(self, order: RfqOrder) -> str:
        """Hash of an order, as answers write it."""
        return to_hex(self.world.rfq_hash(order))

    async def order(self, stored: dict[str, Any]) -> dict[str, Any]:
        """The order's present record."""
        found: dict[str, Any] = await self.get(f"/ft/order/{stored['orderHash']}")
        return found

    async def until(self, stored: dict[str, Any], **wanted: Any) -> dict[str, Any]:
        """The order, once its members are these."""
        ask = partial(self.order, stored)
        return await until_found(ask, lambda found: wanted.items() <= found.items())

    async def row(self, stored: dict[str, Any]) -> OtcOrderRow:
        """The order in the store."""
        (rows,) = await self.store.read(by(OTC_ORDER, parse_hex(stored["orderHash"], "orderHash")))
        return OTC.found(rows[0])

    # --- Time and the chain ------------------------------------------------------------------------------

    async def pass_time(self, seconds: int) -> None:
        """Move the clocks of the venue and the chain forward by `seconds`."""
        self.later_s += seconds
        await self.world.chain.set_time(self.now_ms() // 1_000)
        await self.world.chain.mine()
        self.scheduler.at(0, "time has passed", lambda: None)

    async def fill(self, order: RfqOrder, taker_amount: int | None = None) -> Receipt:
        """Fill the whole order, or a part, by the taker."""
        signature, rfq = self.world.signed(order), self.world.at.rfq
        data = calldata.fill_order(order, signature)
        if taker_amount is not None:
            data = calldata.partial_fill_order(order, signature, taker_amount)
        return await self.world.send(self.world.taker, rfq, data)


def told(answer: tuple[int, Any]) -> tuple[int, str, str]:
    """(status, errorType, details) of a refusal."""
    status, refusal = answer
    assert status != 200, refusal
    assert refusal.keys() == {"errorType", "details", "requestId"}
    assert refusal["requestId"]
    return status, refusal["errorType"], refusal["details"]


@asynccontextmanager
async def an_otc_front(
    folder: Path,
    *,
    runs: bool = True,
    chain: Any = None,
    tier: RateTier = GENEROUS,
    small_usd: Decimal = Decimal(1),
) -> AsyncIterator[OtcFront]:
    """The server, on a world that has its money.

    Args:
        runs: the engine does.
        chain: makes another chain of the world's, which the venue asks.
        tier: of callers.
    """
    world = await _MADE.again()
    settings = parse_settings('[store]\nurl = "sqlite:orders.sqlite3"\n', {}, folder)
    async with open_store(settings, {}, folder, WallClock().now_ms, in_process=True) as store:
        front = OtcFront(world, store)
        front.places = places = _places(world, world.chain if chain is None else chain(world.chain))
        followed = {CHAIN_ID: places[CHAIN_ID]}
        footing = open_footing(settings, store, followed, front.now_ms)
        front.engine = engine = open_otc(footing, followed, small_usd)
        front.scheduler = footing.scheduler
        engines = OrderEngines(footing, [engine])
        admission = Admission(
            VenueSettings(
                rate_tiers={"public": tier, "keyed": tier},
                trusted_proxies=("127.0.0.1",),
                api_keys={"operator": ApiKey(secret=Secret(OPERATOR_KEY, "env:O"), operator=True)},
            ),
            bytes(32),
            Ledger(),
        )
        endpoints = OtcEndpoints(
            places,
            engine.orders,
            store,
            small_usd=small_usd,
            causer_of=admission.causer,
            signatures_of=admission.signatures,
        ).endpoints()
        endpoints += OtcPurge(engine.orders, store, admission.check_operator).endpoints()
        front.document = openapi_document(endpoints, {})
        router = Router(encode_trading_error)
        mount_endpoints(router, endpoints, admission, body_bytes_max=1 << 20)
        async with trio.open_nursery() as nursery:
            await nursery.start(engines.run if runs else footing.leases.run)
            if not runs:
                places[CHAIN_ID].followed.set()
            server = Server(router, ServerSettings(), wall_ms=front.now_ms)
            async with listening(server.serve) as front.port, client_at(front.port, 8) as front.client:
                yield front
            nursery.cancel_scope.cancel()


_MADE = MadeWorld(funded)


def _places(world: World, chain: Any) -> dict[int, ServedChain]:
    usd = UsdPrices(PairIndex(), {world.usdc: 6, world.dai: 18}, frozenset({world.usdc, world.dai}))
    place = msgspec.structs.replace(
        a_shop_on(world, chain).place,
        settings=ChainSettings(name="devnet", rfq=True),
        tokens=listed_on(world),
        usd=usd,
    )
    return {
        CHAIN_ID: place,
        OTHER_RFQ: msgspec.structs.replace(place, chain_id=OTHER_RFQ, rfq=OTHER_CONTRACT),
        MARKET_ONLY: msgspec.structs.replace(
            place, chain_id=MARKET_ONLY, settings=ChainSettings(name="market", market=True)
        ),
    }
