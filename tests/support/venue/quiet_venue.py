"""A whole venue without a socket: books are put into its index, requests go through its router.

async with a_quiet_venue(tmp_path) as venue:
    status, told = await venue.get("/v2/quote", **A_SALE)

Chain 31337 serves Delta and Market, 100 only Market, 130 only Delta, with a relayer where there is Delta;
nothing happens on them. On each the makers `alpha` and `beta` quote WETH/USDC, and `beta` WETH/DAI; nobody is
asked anything.

Orders that are built over HTTP, on the routes of a quiet venue.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import trio

from cambist.codecs.http1 import Request
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.errors import CambistError
from cambist.config.settings import parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.port import At, EthCall, GasFees, Header
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.server.routing import HttpCall, Reply
from cambist.engine.roles.venue.app import VenueApp, opened_venue
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook
from support.patience import until
from support.server.asked_front import AskedFront

CHAIN_ID, MARKET_ONLY, DELTA_ONLY = 31_337, 100, 130
CHAINS = (CHAIN_ID, MARKET_ONLY, DELTA_ONLY)
NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
WETH, USDC, DAI, LONELY, SPARE = (to_checksum(bytes([byte]) * 20) for byte in (0xE0, 0x5D, 0xDA, 0x10, 0x7A))
ROUTER, DELTA, RFQ, EXECUTOR, VAULT = (to_checksum(bytes([byte]) * 20) for byte in (1, 2, 3, 4, 5))
PARTNER = to_checksum(b"\xaa" * 20)
USER = to_checksum(b"\xbb" * 20)
ONE, GWEI = 10**18, 10**9
DECIMALS = {WETH: 18, USDC: 6, DAI: 18, LONELY: 18, SPARE: 18, NATIVE: 18}
BOOKS = (
    ("alpha", WETH, USDC, (("2500", "5"), ("2490", "50")), (("2501", "5"), ("2510", "50"))),
    ("beta", WETH, USDC, (("2499", "5"), ("2480", "50")), (("2502", "5"), ("2520", "50"))),
    ("beta", WETH, DAI, (("2498", "5"),), (("2503", "5"),)),
    ("beta", SPARE, WETH, (("0.5", "100"),), (("0.51", "100"),)),
)
"""Maker, base, quote, bids, asks."""
A_SALE: dict[str, Any] = {
    "chainId": CHAIN_ID,
    "srcToken": WETH,
    "destToken": USDC,
    "amount": str(ONE),
    "srcDecimals": 18,
    "destDecimals": 6,
}
"""Query of a sale of one WETH for USDC."""
A_PURCHASE: dict[str, Any] = A_SALE | {"side": "BUY", "amount": str(1_000 * 10**6)}
"""Query of a purchase of 1,000 USDC for WETH."""

_CHAIN = """
[chains.{id}]
name = "chain {id}"
delta = {delta}
market = {market}
wrapped_native = "{weth}"
router = "{router}"
delta_contract = "{delta_contract}"
rfq_contract = "{rfq}"
executor = "{executor}"
fee_vault = "{vault}"
"""
_TOKEN = '[[tokens]]\nchain_id = {chain}\naddress = "{address}"\nsymbol = "{symbol}"\ndecimals = {decimals}\n'
_REST = f"""
[partners.acme]
address = "{PARTNER}"
fee_bps = 10
[partners.small]
address = "{PARTNER}"
fee_bps = 5
tier = "low"
[tiers.low]
fee_bps_max = 20
[venue]
[venue.rate_tiers]
public = {{ per_s = 100000, burst = 100000 }}
keyed = {{ per_s = 100000, burst = 100000 }}
[venue.api_keys.known]
secret = "env:API_KEY"
partner = "acme"
"""
_RELAYER = '[relayers.{chain_id}]\nkey = "relayer"\n'
ENVIRON = {
    "ROUTE_SEAL": "the seal of all routes",
    "API_KEY": "a-key-of-an-integrator",
    "RELAYER_KEY": "59" * 32,
}


def settings_text(
    folder: Path,
    more: str = "",
    permit_only: str = "",
    relayers: Iterable[int] = (CHAIN_ID, DELTA_ONLY),
    priced: Iterable[int] = CHAINS,
) -> str:
    """TOML of the venue's settings."""
    text = f'state_dir = "{folder}"\nroute_seal_keys = ["env:ROUTE_SEAL"]\n{more}'
    for chain_id in CHAINS:
        text += _CHAIN.format(
            id=chain_id,
            delta=str(chain_id != MARKET_ONLY).lower(),
            market=str(chain_id != DELTA_ONLY).lower(),
            weth=WETH,
            router=ROUTER,
            delta_contract=DELTA,
            rfq=RFQ,
            executor=EXECUTOR,
            vault=VAULT,
        )
        for symbol, address in (("WETH", WETH), ("USDC", USDC), ("DAI", DAI), ("LONELY", LONELY)):
            text += _TOKEN.format(chain=chain_id, address=address, symbol=symbol, decimals=DECIMALS[address])
            text += f"stable_usd = {str(symbol in ('USDC', 'DAI')).lower()}\n"
            text += f"permit_only = {str(address == permit_only).lower()}\n"
        text += _TOKEN.format(chain=chain_id, address=SPARE, symbol="SPARE", decimals=18)
    makers = "".join(
        f'[venue.makers.{name}.chains.{chain_id}]\nurl = "http://127.0.0.1:9/{chain_id}"\n'
        for name in ("alpha", "beta")
        for chain_id in priced
    )
    text += '[keys.relayer]\nsource = "env:RELAYER_KEY"\n'
    text += "".join(_RELAYER.format(chain_id=chain_id) for chain_id in relayers)
    return text + _REST + makers


class QuietChain:
    """A chain without transactions and balances: a latest block and a price of gas."""

    def __init__(self, chain_id: int, clock: WallClock) -> None:
        self.chain_id = chain_id
        self._head = Header(1, b"\1" * 32, bytes(32), clock.now_ms() // 1_000, GWEI)

    async def block(self, at: At = None) -> Header:
        assert at in (None, self._head.hash)
        return self._head

    async def recent_block(self, age_s: float) -> Header:
        return self._head

    async def fees(self) -> GasFees:
        return GasFees(base_fee_wei=GWEI, tip_wei=GWEI)

    async def balance(self, _: bytes, at: At = None) -> int:
        assert at in (None, self._head.hash)
        return 0

    async def code(self, _: bytes, at: At = None) -> bytes:
        assert at in (None, self._head.hash)
        return b""

    async def call_many(self, calls: Sequence[EthCall], at: At = None) -> list[bytes]:
        assert at in (None, self._head.hash)
        return [bytes(32) for _ in calls]

    async def wait_head(self, known: bytes) -> None:
        assert known == self._head.hash
        await trio.sleep_forever()


class QuietVenue(AskedFront):
    """Asks the venue."""

    def __init__(self, app: VenueApp, clock: WallClock) -> None:
        self.app = app
        self.clock = clock

    async def ask(  # type: ignore[override]
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        later_ms: int = 0,
    ) -> Reply:
        """Answer to a request `later_ms` from now, refusals included."""
        path, _, query = target.encode().partition(b"?")
        fields = {name.lower().encode(): value.encode() for name, value in (headers or {}).items()}
        request = Request(
            method.encode(), target.encode(), path, query or None, 1, [*fields.items()], True, fields, body
        )
        route, parameters = self.app.router.resolve(request)
        call = HttpCall(request, "127.0.0.1", "request-1", self.clock.now_ms() + later_ms, parameters)
        try:
            if route.plain:
                return route.plain(call)
            assert route.coroutine
            reply = await route.coroutine(call)
            assert isinstance(reply, Reply)
        except CambistError as error:
            return route.surface.refusal(error, call.request_id)
        return reply

    def show(self, books: Iterable[tuple[str, str, str, Any, Any]], *chain_ids: int) -> None:
        """Put books into the index of chains."""
        for chain_id in chain_ids or tuple(self.app.chains):
            for maker, base, quote, bids, asks in books:
                book = build_book(PriceGrid(bids=bids, asks=asks), DECIMALS[base], DECIMALS[quote])
                tokens = parse_hex(base, "base"), parse_hex(quote, "quote")
                self.app.chains[chain_id].index.put(LiveBook(maker, *tokens, book, Decimal(1_000_000)))


@asynccontextmanager
async def a_quiet_venue(
    folder: Path,
    *,
    more: str = "",
    environ: Mapping[str, str] | None = None,
    books: Iterable[tuple[str, str, str, Any, Any]] = BOOKS,
    permit_only: str = "",
    relayers: Iterable[int] = (CHAIN_ID, DELTA_ONLY),
    priced: Iterable[int] = CHAINS,
    clock: WallClock | None = None,
) -> AsyncIterator[QuietVenue]:
    """The venue, once each chain has answered and its gas price is known.

    Args:
        more: TOML ahead of all tables.
        environ: settings that it overrides.
        permit_only: a token that takes permits only.
        relayers: ids of the chains that have one.
        priced: ids of the chains that have makers.
        clock: where it is not the system's.
    """
    clock = clock or WallClock()
    text = settings_text(folder, more, permit_only, relayers, priced)
    settings = parse_settings(text, ENVIRON | dict(environ or {}), folder)
    chains: Any = {chain_id: QuietChain(chain_id, clock) for chain_id in CHAINS}
    async with opened_venue(
        settings, environ=ENVIRON, folder=folder, clock=clock, chains=chains, store_in_process=True
    ) as app:
        venue = QuietVenue(app, clock)
        venue.show(books)
        async with trio.open_nursery() as nursery:
            for place in app.chains.values():
                nursery.start_soon(place.gas.run)
                nursery.start_soon(place.pulse.run)
                place.followed.set()
            for lane in app.bridges:
                nursery.start_soon(lane.fees.run)
            places = app.chains.values()
            await until(lambda: all(place.gas.is_fresh and not place.pulse.fault for place in places))
            yield venue
            nursery.cancel_scope.cancel()


BUILD = "/v2/delta/orders/build"
HOUR_S = 3_600
OTHER = to_checksum(b"\xcc" * 20)
ZERO = "0x" + "00" * 20


async def routed(venue: QuietVenue, **asked: Any) -> dict[str, Any]:
    """Route of a quote, by default of one WETH for USDC."""
    quote = await venue.get("/v2/quote", **{**A_SALE, **asked, "mode": "DELTA"})
    route: dict[str, Any] = quote["delta"]["route"]
    return route


async def asked_to_build(venue: QuietVenue, **body: Any) -> tuple[int, Any]:
    """Status and JSON of a build. Owner and deadline have defaults; a member that is None is left out."""
    given = {"owner": USER, "deadline": venue.clock.now_ms() // 1_000 + HOUR_S} | body
    told = {name: value for name, value in given.items() if value is not None}
    reply = await venue.ask("POST", BUILD, msgspec.json.encode(told))
    return reply.status, msgspec.json.decode(reply.body)


async def order(venue: QuietVenue, **body: Any) -> dict[str, Any]:
    """Build an order and return `toSign.value`."""
    status, told = await asked_to_build(venue, **body)
    assert status == 200, told
    value: dict[str, Any] = told["toSign"]["value"]
    return value


async def fault(venue: QuietVenue, **body: Any) -> tuple[int, str, str]:
    """(status, errorType, details) of a refusal."""
    status, told = await asked_to_build(venue, **body)
    assert told["details"] == told["description"] == told["error"], told
    return status, told["errorType"], told["details"]


def fee_of(value: dict[str, Any]) -> tuple[str, bool, bool, int]:
    """(partner, capped, takes surplus, basis points) of `partnerAndFee`, as clients unpack it."""
    packed = int(value["partnerAndFee"])
    assert packed >> 10 & ((1 << 86) - 1) == 0
    return f"0x{packed >> 96:040x}", bool(packed >> 9 & 1), bool(packed >> 8 & 1), packed & 0xFF
