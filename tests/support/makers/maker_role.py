"""A market maker on one chain, from settings: two tokens, one pair, funds in the configuration.

A market maker on a loopback socket in this process, and a venue that asks it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio

from cambist.codecs.http1 import Http1Limits, Response
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.settings import Settings, parse_settings
from cambist.crypto.hmac_auth import RequestSigner
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.process.credentials import policed_key
from cambist.engine.roles.maker.app import MakerApp, random96_source
from cambist.engine.roles.maker.role import ChainRole, build_chain
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.streams import listen
from support.patience import PATIENCE_S, until

CHAIN_ID = 31_337
KEY_HEX = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
MAKER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
CONTRACT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
TAKER = "0x00000000000000000000000000000000000000aa"
USER = "0x00000000000000000000000000000000000000bb"
WETH = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
DAI = "0x6b175474e89094c44da98b954eedeac495271d0f"
SECRET = "a secret of the venue's onboarding"
NOW_MS = 1_795_000_000_000

GRID = PriceGrid(
    bids=(("2500", "1"), ("2499.5", "2"), ("2490", "10")), asks=(("2501", "1"), ("2502", "2"), ("2510", "10"))
)

TEXT = f"""
[chains.{CHAIN_ID}]
name = "devnet"
rfq = true
rfq_contract = "{CONTRACT}"
[keys.maker]
source = "env:MAKER_KEY"
[keys.maker.policy]
contracts = ["{CHAIN_ID}:{CONTRACT}"]
[auth.domains.venue]
keys = [{{ access_key = "key-1", secret = "env:VENUE_SECRET" }}]
[auth.domains.operator]
keys = [{{ access_key = "key-2", secret = "env:OPERATOR_SECRET" }}]
[maker.chains.{CHAIN_ID}]
key = "maker"
price_source = "static"
price_options = {{ path = "prices.json" }}
takers = ["{TAKER}"]
[maker.chains.{CHAIN_ID}.tokens.WETH]
address = "{WETH}"
decimals = 18
balance = "100"
[maker.chains.{CHAIN_ID}.tokens.USDC]
address = "{USDC}"
decimals = 6
balance = "250000"
[maker.chains.{CHAIN_ID}.tokens.DAI]
address = "{DAI}"
decimals = 18
balance = "250000"
[maker.chains.{CHAIN_ID}.pairs."WETH/USDC"]
base = "WETH"
quote = "USDC"
liquidity_usd = 1000000
"""
ENVIRON = {"MAKER_KEY": KEY_HEX, "VENUE_SECRET": SECRET, "OPERATOR_SECRET": "the operator's own secret"}


def settings_of(more: str = "", folder: Path = Path(), **chain: Any) -> Settings:
    """The settings above; `more` is TOML that is added, `chain` changes settings of the chain's surface."""
    settings = parse_settings(TEXT + more, ENVIRON, folder)
    assert settings.maker
    changed = msgspec.structs.replace(settings.maker.chains[CHAIN_ID], **chain)
    return msgspec.structs.replace(
        settings, maker=msgspec.structs.replace(settings.maker, chains={CHAIN_ID: changed})
    )


def a_chain(
    settings: Settings | None = None,
    *,
    grid: PriceGrid | None = GRID,
    share: int = 1,
    random96: Callable[[], bytes] | None = None,
    **chain: Any,
) -> ChainRole:
    """The chain of these settings, quoting `grid` since NOW_MS."""
    settings = settings or settings_of("", Path(), **chain)
    keys = {name: policed_key(name, key) for name, key in settings.keys.items()}
    assert settings.maker
    role = build_chain(settings, settings.maker, CHAIN_ID, keys, random96 or random96_source(), share)
    if grid is not None:
        role.board.apply("WETH/USDC", grid, NOW_MS)
    return role


def firm_request(**changes: Any) -> bytes:
    """The body of a firm request: the user sells 1 WETH; a change to None leaves the key out."""
    body: dict[str, Any] = {
        "makerAsset": USDC,
        "takerAsset": WETH,
        "takerAmount": str(10**18),
        "userAddress": USER,
        "takerAddress": TAKER,
    }
    return msgspec.json.encode({key: value for key, value in (body | changes).items() if value is not None})


PREFIX = f"/{CHAIN_ID}"


def write_prices(folder: Path, **pairs: Any) -> None:
    """The static source's file, replaced in one step; the pair's grid unless others are given."""
    prices = pairs or {"WETH/USDC": GRID}
    beside = folder / "prices.json.new"
    beside.write_bytes(msgspec.json.encode({"prices": prices}))
    beside.replace(folder / "prices.json")


class Venue:
    """Asks as the service does."""

    def __init__(self, client: HttpClient, port: int, admin_port: int, wall_ms: Callable[[], int]) -> None:
        self.client = client
        self.port = port
        self.admin_port = admin_port
        self.wall_ms = wall_ms
        self.signing = RequestSigner("venue", "key-1", SECRET.encode())
        self.operator = RequestSigner("operator", "key-2", ENVIRON["OPERATOR_SECRET"].encode())

    def headers(self, method: str, target: str, body: bytes = b"") -> list[tuple[bytes, bytes]]:
        signed = self.signing.headers(self.wall_ms(), method, target, body)
        return [(name.encode(), value.encode()) for name, value in signed.items()]

    async def ask(self, method: str, path: str, body: bytes = b"", *, signed: bool = True) -> Response:
        target = PREFIX + path
        headers = self.headers(method, target, body) if signed else []
        return await self.client.request(
            method.encode(), target.encode(), headers, body, deadline_s=PATIENCE_S
        )

    async def administer(
        self, method: str, path: str, body: bytes = b"", signing: RequestSigner | None = None
    ) -> Response:
        signed = signing.headers(self.wall_ms(), method, path, body) if signing else {}
        return await self.administer_with(method, path, body, signed)

    async def administer_with(self, method: str, path: str, body: bytes, signed: dict[str, str]) -> Response:
        headers = [(name.encode(), value.encode()) for name, value in signed.items()]
        async with HttpClient(
            "127.0.0.1", self.admin_port, connections_max=1, limits=Http1Limits()
        ) as client:
            return await client.request(method.encode(), path.encode(), headers, body, deadline_s=PATIENCE_S)

    async def get(self, path: str) -> Any:
        response = await self.ask("GET", path)
        assert response.status == 200, response.body
        return msgspec.json.decode(response.body)


@asynccontextmanager
async def running_maker(
    folder: Path, settings: Settings | None = None, *, connections: int = 8, **app: Any
) -> AsyncIterator[tuple[MakerApp, Venue]]:
    """The maker and a venue; it quotes before they are handed out, and is drained in the end."""
    settings = msgspec.structs.replace(settings or settings_of(), state_dir=str(folder))
    if not (folder / "prices.json").exists():
        write_prices(folder)
    clock = app.pop("clock", None) or WallClock()
    maker = MakerApp(settings, environ=ENVIRON, folder=folder, clock=clock, **app)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    admin = listen("127.0.0.1", 0) if maker.admin else None
    admin_port = admin.getsockname()[1] if admin else 0
    with maker.remembering():
        async with trio.open_nursery() as nursery:
            await nursery.start(maker.run, listener, admin)
            async with HttpClient(
                "127.0.0.1", port, connections_max=connections, limits=Http1Limits()
            ) as client:
                venue = Venue(client, port, admin_port, clock.now_ms)
                await until(lambda: maker.feeds[CHAIN_ID].updates + maker.feeds[CHAIN_ID].refused > 0)
                yield maker, venue
            maker.drain()
