"""The demo's venue and its two market makers, put together as `cambist serve` and `cambist maker serve` do.

    alpha    WETH/USDC the better, WBTC/USDC the worse    heard over its WebSocket
    beta     the other way round                          polled

Each has a key, a secret, a state directory, a listener and funds of its own, which it reads from the chain.
"""

import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import trio
from msgspec import Struct

from ...codecs.calldata import approve
from ...config import limits
from ...config.settings import Settings, parse_settings
from ...crypto.hexadecimal import to_hex
from ...crypto.secp256k1 import SigningKey
from ...feeds.net.streams import listen
from ..chain.address_book import write_entries
from ..chain.transact import transact
from ..maker.app import MakerApp
from ..telemetry.clock import WallClock
from ..venue.app import VenueApp, opened_venue
from .settlement import CHAIN_ID, Stage

TOKENS = {"WETH": 18, "USDC": 6, "WBTC": 8}
_STREAMING = "alpha"
_GRIDS = {
    "alpha": {
        "WETH/USDC": {"bids": [["2500", "20"]], "asks": [["2501", "20"]]},
        "WBTC/USDC": {"bids": [["59900", "2"]], "asks": [["60200", "2"]]},
    },
    "beta": {
        "WETH/USDC": {"bids": [["2498", "20"]], "asks": [["2503", "20"]]},
        "WBTC/USDC": {"bids": [["59950", "2"]], "asks": [["60000", "2"]]},
    },
}
_READY_S = 10.0
_LOOK_S = 0.02

_MAKER = """
state_dir = "."
[server]
port = 0
[chains.{chain_id}]
name = "devnet"
rfq = true
rfq_contract = "{rfq}"
[keys.maker]
source = "env:{NAME}_KEY"
policy.contracts = ["{chain_id}:{rfq}"]
[auth.domains.venue]
keys = [{{ access_key = "key-1", secret = "env:{NAME}_SECRET" }}]
[maker.chains.{chain_id}]
key = "maker"
node_url = "{url}"
node_every_ms = 100
node_head_max_s = 0
takers = ["{executor}"]
price_source = "static"
price_options.path = "prices.json"
"""
_MAKER_LISTING = """
[maker.chains.{chain_id}.tokens.{symbol}]
address = "{address}"
decimals = {decimals}
"""
_MAKER_PAIR = """
[maker.chains.{chain_id}.pairs."{pair}"]
base = "{base}"
quote = "{quote}"
liquidity_usd = 1000000
"""
_VENUE = """
state_dir = "."
route_seal_keys = ["env:ROUTE_SEAL"]
[server]
port = 0
[chains.{chain_id}]
name = "devnet"
market = true
rfq = true
[chains.{chain_id}.node]
urls = ["{url}"]
"""
_VENUE_MAKER = """
[venue.makers.{name}]
credentials = {{ domain = "venue", access_key = "key-1", secret = "env:{NAME}_SECRET" }}
[venue.makers.{name}.chains.{chain_id}]
url = "http://127.0.0.1:{port}/{chain_id}"
prices_every_s = 0.2
"""
_VENUE_LISTING = """
[[tokens]]
chain_id = {chain_id}
address = "{address}"
symbol = "{symbol}"
decimals = {decimals}
stable_usd = {stable}
"""


class MarketPlace(Struct, frozen=True):
    """A venue that serves, with live books.

    Attributes:
        url: its base.
        makers: the applications, by name.
        keys: of the makers, by name.
    """

    url: str
    makers: Mapping[str, MakerApp]
    keys: Mapping[str, SigningKey]


@asynccontextmanager
async def a_market_place(stage: Stage, folder: Path) -> AsyncIterator[MarketPlace]:
    """Have both makers allow their tokens, start them and the venue, and drain all of them in the end.

    Args:
        folder: for their state; a folder each.
    """
    keys = dict(zip(_GRIDS, stage.keys[-len(_GRIDS) :], strict=True))
    for key in keys.values():
        for token in TOKENS:
            await transact(stage.chain, key, stage.at(token), approve(stage.at("rfq"), limits.UINT256_MAX))
    environ = {"ROUTE_SEAL": secrets.token_hex(16)}
    for name, key in keys.items():
        environ[f"{name.upper()}_KEY"] = key.secret32().hex()
        environ[f"{name.upper()}_SECRET"] = secrets.token_hex(16)
    async with AsyncExitStack() as owned, trio.open_nursery() as nursery:
        makers: dict[str, MakerApp] = {}
        ports: dict[str, int] = {}
        for name in keys:
            home = folder / name
            home.mkdir()
            app = MakerApp(
                _maker_settings(stage, name, environ, home), environ=environ, folder=home, clock=WallClock()
            )
            owned.enter_context(app.remembering())
            listener = listen("127.0.0.1", 0)
            ports[name] = listener.getsockname()[1]
            await nursery.start(app.run, listener)
            makers[name] = app
        home = folder / "venue"
        write_entries(home, {CHAIN_ID: stage.running.entry})
        settings = parse_settings(_venue_text(stage, ports), environ, home)
        opening = opened_venue(settings, environ=environ, folder=home, clock=WallClock())
        async with opening as venue, trio.open_nursery() as serving:
            listener = listen("127.0.0.1", 0)
            await serving.start(venue.run, listener)
            await _live(venue, makers.values())
            yield MarketPlace(f"http://127.0.0.1:{listener.getsockname()[1]}", makers, keys)
            venue.drain()
        for app in makers.values():
            app.drain()


def _maker_settings(stage: Stage, name: str, environ: Mapping[str, str], home: Path) -> Settings:
    (home / "prices.json").write_bytes(msgspec.json.encode({"prices": _GRIDS[name]}))
    told: dict[str, object] = {"chain_id": CHAIN_ID, "NAME": name.upper(), "url": stage.running.url}
    text = _MAKER.format(**told, rfq=to_hex(stage.at("rfq")), executor=to_hex(stage.at("executor")))
    for symbol, decimals in TOKENS.items():
        text += _MAKER_LISTING.format(
            chain_id=CHAIN_ID, symbol=symbol, address=to_hex(stage.at(symbol)), decimals=decimals
        )
    for pair in _GRIDS[name]:
        base, quote = pair.split("/")
        text += _MAKER_PAIR.format(chain_id=CHAIN_ID, pair=pair, base=base, quote=quote)
    return parse_settings(text, environ, home)


def _venue_text(stage: Stage, ports: Mapping[str, int]) -> str:
    text = _VENUE.format(chain_id=CHAIN_ID, url=stage.running.url)
    for name, port in ports.items():
        text += _VENUE_MAKER.format(name=name, NAME=name.upper(), port=port, chain_id=CHAIN_ID)
        if name == _STREAMING:
            text += f'ws_url = "ws://127.0.0.1:{port}/{CHAIN_ID}/ws"\n'
    for symbol, decimals in TOKENS.items():
        text += _VENUE_LISTING.format(
            chain_id=CHAIN_ID,
            address=to_hex(stage.at(symbol)),
            symbol=symbol,
            decimals=decimals,
            stable="true" if symbol == "USDC" else "false",
        )
    return text


async def _live(venue: VenueApp, makers: Collection[MakerApp]) -> None:
    """Wait until every maker can sign, and each of its books may be routed."""
    books = sum(len(pairs) for pairs in _GRIDS.values())
    index = venue.places[CHAIN_ID].index
    with trio.fail_after(_READY_S):
        while True:
            waiting = venue.not_ready() + [reason for app in makers for reason in app.not_ready()]
            if len(list(index.books())) == books and not waiting:
                break
            await trio.sleep(_LOOK_S)
