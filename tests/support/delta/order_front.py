"""Delta orders over HTTP, on a chain with everything on it, and a store: submitted, read and cancelled.

async with an_order_front(tmp_path) as front:
    order = await front.a_sale()
    record = await front.submitted(order)
    assert await front.get(f"/v2/delta/orders/{record['id']}") == record

The user has 10 WETH, which the Delta contract may take; other accounts have no tokens. No auction runs: a
kept order stays as it is.
"""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import msgspec
import trio

from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
)
from cambist.config.chains import ChainSettings
from cambist.config.secret import Secret
from cambist.config.sections.bridges import BridgedToken, BridgeSettings
from cambist.config.sections.partners import RegisteredPartner
from cambist.config.sections.server import ServerSettings
from cambist.config.sections.venue import ApiKey, RateTier, VenueSettings
from cambist.config.settings import Settings, parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.host.admission.admission import Admission
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.server import Router, Server
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.store import Store
from cambist.engine.trade.api.openapi import openapi_document
from cambist.engine.trade.api.routes import Endpoint, encode_trading_error, surface_of
from cambist.engine.trade.delta.endpoints.order_reads import OrderReads
from cambist.engine.trade.delta.endpoints.order_submit import OrderSubmission
from cambist.engine.trade.delta.orders.live_orders import LiveOrders
from cambist.engine.trade.delta.orders.terms import SettledOrder
from cambist.engine.trade.served.bridge_lanes import BridgeLane, BridgeLanes
from cambist.engine.trade.served.served_chain import ServedChain
from cambist.feeds.bridges.fee_answers import FeeLane
from cambist.feeds.bridges.lane_fees import LaneFees
from cambist.feeds.transport.http_client import HttpClient
from support.chain.world import DELTA_NAME, DELTA_TYPES, DELTA_VERSION, ONE, USDC, MadeWorld, World
from support.server.asked_front import AskedFront, client_at, listening
from support.venue.market_place import a_shop_on, listed_on

CHAIN_ID, MARKET_ONLY = 31_337, 100
DOMAIN = 42
"""Of CCTP, of the chain MARKET_ONLY, to which lanes of USDC lead."""
ORDERS = "/v2/delta/orders"
CANCEL = "/v2/delta/orders/cancel"
BUILD_CANCEL = "/v2/delta/orders/build/cancellation"
API_KEY = "the-key-of-an-integrator"
OPERATOR = {"X-API-KEY": "the-key-of-the-operator"}
GENEROUS = RateTier(per_s=100_000, burst=100_000)


class OrderFront(AskedFront):
    """Asks a server that takes orders.

    Attributes:
        world: the chain.
        odd: a token that is listed as one that takes permits only.
        live: the orders in memory.
        document: what OpenAPI says of it.
        admission: what callers are held against.
    """

    def __init__(
        self,
        world: World,
        odd: bytes,
        live: LiveOrders,
        store: Store,
        client: HttpClient,
        document: dict[str, Any],
        admission: Admission,
    ) -> None:
        self.document = document
        self.admission = admission
        self.world = world
        self.odd = odd
        self.live = live
        self.store = store
        self.client = client

    # --- Requests ---------------------------------------------------------------------------------------

    async def listed(self, **query: Any) -> Any:
        """GET /v2/delta/orders with the operator's key, by default for the orders of all owners."""
        response = await self.ask("GET", f"{ORDERS}?{urlencode(query)}", headers=OPERATOR)
        assert response.status == 200, response.body
        return msgspec.json.decode(response.body)

    # --- Orders -----------------------------------------------------------------------------------------

    async def a_sale(self, **changed: Any) -> Any:
        """A sale of one WETH for 2,400 USDC at least, 2,500 expected, within the hour."""
        return await self.world.a_delta_order(**changed)

    async def a_purchase(self, **changed: Any) -> Any:
        """A purchase of 2,500 USDC for 1.1 WETH at most, 1 expected."""
        wanted = {"kind": KIND_BUY, "src_amount": 11 * ONE // 10, "dest_amount": 2_500 * USDC}
        return await self.world.a_delta_order(**wanted | {"expected_amount": ONE} | changed)

    async def submit(
        self, order: SettledOrder, key: SigningKey | None = None, **more: Any
    ) -> tuple[int, Any]:
        """Status and JSON of a submission of `World.delta_body`."""
        return await self.post(ORDERS, self.world.delta_body(order, key, **more))

    async def submitted(
        self, order: SettledOrder, key: SigningKey | None = None, **more: Any
    ) -> dict[str, Any]:
        """The record of an order that is taken."""
        status, record = await self.submit(order, key, **more)
        assert status == 200, record
        assert isinstance(record, dict)
        return record

    async def fault(
        self, order: SettledOrder, key: SigningKey | None = None, **more: Any
    ) -> tuple[int, str, str]:
        """(status, errorType, details) of an order that is refused: nothing is kept of it."""
        refusal = told(await self.submit(order, key, **more))
        assert (await self.answer(f"{ORDERS}/hash/{to_hex(self.world.delta_hash(order))}"))[0] == 404
        return refusal


def wire_of(order: Any) -> dict[str, Any]:
    """An order as `toSign.value` has it."""
    wire: dict[str, Any] = DELTA_TYPES[type(order)].to_wire(order)
    return wire


def told(answer: tuple[int, Any]) -> tuple[int, str, str]:
    """(status, errorType, details) of a refusal."""
    status, refusal = answer
    assert status != 200, refusal
    assert refusal["details"] == refusal["description"] == refusal["error"]
    return status, refusal["errorType"], refusal["details"]


@asynccontextmanager
async def an_order_front(
    folder: Path,
    *,
    strict_partner: bool = False,
    chain: Any = None,
    tier: RateTier = GENEROUS,
    now_ms: Callable[[], int] | None = None,
    odd: str = "DevToken",
) -> AsyncIterator[OrderFront]:
    """The server, on a world that has its money.

    Args:
        chain: makes another chain of the world's, which the venue asks.
        tier: of callers; what stands behind 127.0.0.1 is named by X-Forwarded-For.
        now_ms: the clock of the server, where it is not the wall's.
        odd: the contract of the token that takes permits only.
    """
    world = await _MADE.again()
    token = await world.new_token(odd, symbol="ODD")
    clock = WallClock()
    store_settings = parse_settings('[store]\nurl = "sqlite:orders.sqlite3"\n', {}, folder)
    async with open_store(store_settings, {}, folder, clock.now_ms, in_process=True) as store:
        leases = Leases(store, secrets.token_hex(8), life_s=10.0, now_ms=clock.now_ms)
        live = LiveOrders(store, leases)
        asked = world.chain if chain is None else chain(world.chain)
        endpoints, admission = _endpoints(world, token, live, store, asked, tier, strict_partner)
        router = Router(encode_trading_error)
        router.mount(surface_of(endpoints, admission, cors_origins=(), body_bytes_max=1 << 20))
        server = Server(router, ServerSettings(), wall_ms=now_ms or clock.now_ms)
        document = openapi_document(endpoints, {})
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            async with listening(server.serve) as port, client_at(port, 8) as client:
                yield OrderFront(world, token, live, store, client, document, admission)
            nursery.cancel_scope.cancel()


async def _furnish(world: World) -> None:
    await world.give(world.user, world.weth, 10 * ONE, world.at.delta)


_MADE = MadeWorld(_furnish)


def _endpoints(
    world: World,
    odd: bytes,
    live: LiveOrders,
    store: Store,
    chain: Any,
    tier: RateTier,
    strict_partner: bool,
) -> tuple[tuple[Endpoint, ...], Admission]:
    delta = ChainSettings(
        name="devnet",
        delta=True,
        delta_domain_name=DELTA_NAME,
        delta_domain_version=DELTA_VERSION,
        handlers=("*",),
    )
    place = msgspec.structs.replace(
        a_shop_on(world, chain).place, settings=delta, tokens=listed_on(world, odd), chain=chain
    )
    market_only = msgspec.structs.replace(
        place, chain_id=MARKET_ONLY, settings=ChainSettings(name="market", market=True)
    )
    partners = {"acme": RegisteredPartner(address=to_checksum(world.partner.address), fee_bps=10)}
    settings = Settings(partners=partners, strict_partner=strict_partner)
    venue = VenueSettings(
        rate_tiers={"public": tier, "keyed": tier},
        api_keys={
            "known": ApiKey(secret=Secret(API_KEY, "env:K"), partner="acme"),
            "operator": ApiKey(secret=Secret(OPERATOR["X-API-KEY"], "env:O"), operator=True),
        },
        trusted_proxies=("127.0.0.1",),
    )
    admission = Admission(venue, bytes(32), Ledger())
    places: dict[int, ServedChain] = {CHAIN_ID: place, MARKET_ONLY: market_only}
    place.followed.set()
    endpoints = (
        *OrderSubmission(
            places,
            BridgeLanes(places, lanes_of(place, market_only, world.usdc)),
            settings,
            live,
            store,
            delta_gas=150_000,
            partner_of=admission.partner,
            key_of=admission.key,
            causer_of=admission.causer,
            signatures_of=admission.signatures,
        ).endpoints(),
        *OrderReads(places, store, sees_all=admission.sees_orders).endpoints(),
    )
    return endpoints, admission


def lanes_of(origin: ServedChain, destination: ServedChain, token: bytes) -> list[BridgeLane]:
    """Lanes of a token by Across and by the fast tier of CCTP, whose fees nobody asks for."""
    text = to_checksum(token)
    carried = (BridgedToken(chains={origin.chain_id: text, destination.chain_id: text}),)
    lanes = []
    for settings in (
        BridgeSettings(kind="across", url="http://127.0.0.1:9", tokens=carried),
        BridgeSettings(kind="cctp", tier="fast", url="http://127.0.0.1:9", tokens=carried),
    ):
        chains = origin.chain_id, destination.chain_id
        lane = FeeLane(settings.kind, settings, chains, (token, token), (1, 2), b"", (40, DOMAIN), (6, 6))
        http: Any = None
        fees = LaneFees(lane, http=http, wall_ms=lambda: 0, random=Random(1))
        ends = origin.tokens.by_address[token], destination.tokens.by_address[token]
        lanes.append(BridgeLane(settings.kind, settings, *chains, *ends, fees))
    return lanes
