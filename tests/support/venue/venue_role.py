"""A venue in one process with all that it trades with: a devnet chain behind JSON-RPC, makers, the venue.

async with running_venue(tmp_path) as venue:
    quote = await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC"))

Two makers stand on the chain: `alpha` over the WebSocket, `beta` polled. Both quote WETH/USDC and WETH/DAI,
the latter a little worse; both have funds and have allowed them to the RFQ contract.

A chain as `cambist devnet` furnishes it, made once in each test process.

Contracts, tokens and balances are those of `furnish`; a snapshot leads back to them. A test that takes the
chain has it alone; another test meanwhile, or a test after too many blocks, gets a newly furnished chain.
"""

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio
from msgspec import Struct

from cambist.codecs.contracts.calldata import approve, balance_of
from cambist.codecs.http1 import Response
from cambist.config import limits
from cambist.config.chains import ChainSettings
from cambist.config.errors import ChainError
from cambist.config.sections.venue import FirmSettings
from cambist.config.settings import Settings, parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.custody.mnemonic import DEV_MNEMONIC, account_keys
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.address_book import DeployedChain, chain_entry, write_entries
from cambist.engine.chain.port import DevChain, EthCall
from cambist.engine.chain.transact import DEV_GAS, transact
from cambist.engine.dev.devnet.furnish import furnish
from cambist.engine.dev.devnet.node import DevNode
from cambist.engine.dev.devnet.serve import EMBEDDED, DevnetOptions, RunningChain, running_chain
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.dev.embedded.evm import IS_INSTALLED
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.maker.app import MakerApp
from cambist.engine.roles.venue.app import VenueApp, opened_venue
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.streams import listen
from support.chain.world import World
from support.patience import FIRM_HARD_S, FIRM_SOFT_S, until
from support.programs import program
from support.server.asked_front import AskedFront, client_at, listening


class _Made(Struct):
    """A furnished chain that no test uses, and the snapshot that leads back to it."""

    chain: EmbeddedChain
    entry: DeployedChain
    snapshot: int


_free: list[_Made] = []


@asynccontextmanager
async def warm_chain(
    chain_id: int,
    keys: Sequence[SigningKey],
    more: Callable[[EmbeddedChain, DeployedChain], Awaitable[None]],
) -> AsyncIterator[tuple[EmbeddedChain, DeployedChain]]:
    """A furnished chain whose latest block is of now.

    Args:
        chain_id, keys: as of a devnet; the same in all calls of a process.
        more: what is done to a chain once it is furnished, the same in all calls as well.
    """
    made = await _restored() or await _new(chain_id, keys, more)
    await made.chain.set_automine(on=True)
    await made.chain.mine()  # its time is now, however long ago it was made
    yield made.chain, made.entry
    _free.append(made)  # a story that failed does not come here, and the next one gets a new chain


async def _restored() -> _Made | None:
    """The free chain, restored; None if no chain is free or its snapshot cannot be restored."""
    while _free:
        made = _free.pop()
        try:
            await made.chain.restore(made.snapshot)
        except ChainError:
            continue
        made.snapshot = await made.chain.snapshot()
        return made
    return None


async def _new(
    chain_id: int,
    keys: Sequence[SigningKey],
    more: Callable[[EmbeddedChain, DeployedChain], Awaitable[None]],
) -> _Made:
    chain = EmbeddedChain(chain_id, lambda: int(time.time()), {}, known_errors())
    entry = await furnish(chain, keys, ChainSettings(name="devnet"))
    await more(chain, entry)
    return _Made(chain, entry, await chain.snapshot())


CHAIN_ID = 31_337
KEYS = tuple(account_keys(DEV_MNEMONIC, limits.DEVNET_ACCOUNTS))
RELAYER = KEYS[1]
MAKER_KEYS = {"alpha": KEYS[2], "beta": KEYS[3]}
USER, STRANGER = KEYS[4], KEYS[5]
SECRETS = {"alpha": "the secret of alpha", "beta": "the secret of beta"}
DECIMALS = {"ETH": 18, "WETH": 18, "USDC": 6, "DAI": 18, "WBTC": 8}
ROUTE_SEAL = "the seal of all routes"
API_KEY = "the-key-of-a-tester"
ENVIRON = {
    "ROUTE_SEAL": ROUTE_SEAL,
    "TESTER_KEY": API_KEY,
    **{f"{name.upper()}_SECRET": secret for name, secret in SECRETS.items()},
    **{f"{name.upper()}_KEY": key.secret32().hex() for name, key in MAKER_KEYS.items()},
    "RELAYER_KEY": RELAYER.secret32().hex(),
}
GRIDS: dict[str, dict[str, Any]] = {
    "alpha": {
        "WETH/USDC": {
            "bids": [["2500", "5"], ["2499", "20"], ["2490", "20"]],
            "asks": [["2501", "5"], ["2502", "20"], ["2510", "20"]],
        },
        "WETH/DAI": {"bids": [["2498", "20"]], "asks": [["2503", "20"]]},
    },
    "beta": {
        "WETH/USDC": {"bids": [["2499.5", "5"], ["2495", "20"]], "asks": [["2501.5", "5"], ["2506", "20"]]},
        "WETH/DAI": {"bids": [["2497", "20"]], "asks": [["2504", "20"]]},
        "WBTC/USDC": {"bids": [["60000", "2"]], "asks": [["60100", "2"]]},
    },
}
"""Maker -> pair -> what it quotes."""

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
[auth.domains.other]
keys = [{{ access_key = "key-1", secret = "env:{NAME}_SECRET" }}]
[maker.chains.{chain_id}]
key = "maker"
takers = ["{executor}"]
price_source = "static"
price_options = {{ path = "{name}.json" }}
"""
_VENUE = """
state_dir = "."
route_seal_keys = ["env:ROUTE_SEAL"]
[server]
port = {port}
[chains.{chain_id}]
name = "devnet"
{chain}
[chains.{chain_id}.node]
urls = ["{url}"]
{node}
[venue]
blacklist_s = 60
trusted_proxies = ["127.0.0.1"]
[venue.rate_tiers]
public = {{ per_s = 100000, burst = 100000 }}
keyed = {{ per_s = 100000, burst = 100000 }}
[venue.api_keys.tester]
secret = "env:TESTER_KEY"
operator = true
"""
_RELAYER = """
[keys.relayer]
source = "env:RELAYER_KEY"
[relayers.{chain_id}]
key = "relayer"
"""
_VENUE_AGENT = """
[venue.agents.{name}]
url = "{url}"
credentials = {{ domain = "venue", access_key = "key-1", secret = "env:{NAME}_SECRET" }}
"""
_TOKEN = """
[[tokens]]
chain_id = {chain_id}
address = "{address}"
symbol = "{symbol}"
decimals = {decimals}
stable_usd = {stable}
"""
_VENUE_MAKER = """
[venue.makers.{name}]
credentials = {{ domain = "venue", access_key = "key-1", secret = "env:{NAME}_SECRET" }}
{accounts}
[venue.makers.{name}.chains.{chain_id}]
url = "http://127.0.0.1:{port}/{chain_id}"
prices_every_s = 0.1
"""


class Devnet:
    """A chain that is served.

    Attributes:
        chain: itself; `running` says where its node and its contracts are.
    """

    def __init__(self, chain: DevChain, running: RunningChain) -> None:
        self.chain = chain
        self.running = running

    @property
    def entry(self) -> DeployedChain:
        """Its contracts and tokens."""
        return self.running.entry

    def at(self, name: str) -> bytes:
        """The address of a token by its symbol, or of a contract: `rfq`, `router`, `executor`, `delta`."""
        return parse_hex(self.text(name), name)

    def text(self, name: str) -> str:
        """As `at`, as text; ETH is the placeholder."""
        if name == "ETH":
            return limits.NATIVE_PLACEHOLDER
        token = self.entry.tokens.get(name)
        return token.address if token else getattr(self.entry, name)

    async def allow(
        self, owner: SigningKey, token: str, spender: str, amount: int = limits.UINT256_MAX
    ) -> None:
        """Let a contract take an owner's tokens."""
        await transact(self.chain, owner, self.at(token), approve(self.at(spender), amount), gas=DEV_GAS)

    async def balance(self, who: SigningKey | bytes, token: str) -> int:
        """Raw units."""
        address = who.address if isinstance(who, SigningKey) else who
        if token == "ETH":
            return await self.chain.balance(address)
        return int.from_bytes(await self.chain.call(EthCall(self.at(token), balance_of(address))), "big")


class RunningVenue(AskedFront):
    """A venue that serves, and a client of it.

    Attributes:
        devnet: the chain it trades on.
        makers: those that it routes to, by name.
    """

    def __init__(
        self, app: VenueApp, devnet: Devnet, makers: Mapping[str, MakerApp], client: HttpClient, port: int
    ) -> None:
        self.app = app
        self.devnet = devnet
        self.makers = makers
        self.client = client
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._key: dict[str, str] = {}

    @contextmanager
    def with_key(self, key: str = API_KEY) -> Iterator[None]:
        """All that is asked meanwhile carries an API key; none if the key is empty."""
        before, self._key = self._key, {"x-api-key": key} if key else {}
        try:
            yield
        finally:
            self._key = before

    async def ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Response:
        """As a front's, with the API key of `with_key`."""
        return await super().ask(method, target, body, self._key | dict(headers or {}))

    def selling(self, src: str, whole: float, dest: str, **more: Any) -> dict[str, Any]:
        """Parameters of GET /v2/quote: sell so many whole tokens."""
        return self._trade("SELL", src, dest, round(whole * 10 ** DECIMALS[src]), more)

    def buying(self, dest: str, whole: float, src: str, **more: Any) -> dict[str, Any]:
        """Parameters of GET /v2/quote: buy so many whole tokens."""
        return self._trade("BUY", src, dest, round(whole * 10 ** DECIMALS[dest]), more)

    def _trade(self, side: str, src: str, dest: str, amount: int, more: dict[str, Any]) -> dict[str, Any]:
        return {
            "chainId": CHAIN_ID,
            "srcToken": self.devnet.text(src),
            "destToken": self.devnet.text(dest),
            "amount": str(amount),
            "srcDecimals": DECIMALS[src],
            "destDecimals": DECIMALS[dest],
            "side": side,
        } | more

    def quote_prices(self, maker: str, folder: Path, **pairs: Any) -> None:
        """Change what a maker quotes: all of its pairs."""
        write_grids(folder, maker, pairs)


def write_grids(folder: Path, maker: str, pairs: Mapping[str, Any]) -> None:
    """The static price source of a maker, replaced in one step."""
    beside = folder / f"{maker}.json.new"
    beside.write_bytes(msgspec.json.encode({"prices": pairs}))
    beside.replace(folder / f"{maker}.json")


@asynccontextmanager
async def served_devnet(folder: Path) -> AsyncIterator[Devnet]:
    """An embedded chain behind JSON-RPC, with makers who have allowed their tokens to the RFQ contract."""
    async with _running_chain(folder) as devnet:
        write_entries(folder, {CHAIN_ID: devnet.running.entry})
        yield devnet


@asynccontextmanager
async def _running_chain(folder: Path) -> AsyncIterator[Devnet]:
    if not IS_INSTALLED:
        program("anvil")
        async with _running_anvil(folder) as devnet:
            yield devnet
        return
    async with (
        warm_chain(CHAIN_ID, KEYS, _allow_makers_tokens) as (chain, entry),
        DevNode.opened(chain, KEYS, are_public=True) as node,
        listening(node.server.serve) as port,
    ):
        yield Devnet(chain, RunningChain(CHAIN_ID, EMBEDDED, f"http://127.0.0.1:{port}", entry))


@asynccontextmanager
async def _running_anvil(folder: Path) -> AsyncIterator[Devnet]:
    wanted = DevnetOptions(
        chains={CHAIN_ID: ChainSettings(name="devnet")},
        host="127.0.0.1",
        port=0,
        keys=KEYS,
        mnemonic=DEV_MNEMONIC,
        block_time_s=0,
        anvil=True,
        state_dir=folder,
    )
    async with running_chain(wanted, os.environ, CHAIN_ID) as (chain, running):
        await _allow_makers_tokens(chain, running.entry)
        yield Devnet(chain, running)


async def _allow_makers_tokens(chain: DevChain, entry: DeployedChain) -> None:
    devnet = Devnet(chain, RunningChain(CHAIN_ID, "", "", entry))
    for key in MAKER_KEYS.values():
        for token in ("WETH", "USDC", "DAI", "WBTC"):
            await devnet.allow(key, token, "rfq")


@asynccontextmanager
async def running_makers(
    folder: Path, devnet: Devnet, grids: Mapping[str, Mapping[str, Any]]
) -> AsyncIterator[dict[str, tuple[MakerApp, int]]]:
    """Makers by name, each with its port."""
    async with AsyncExitStack() as owned:
        makers: dict[str, tuple[MakerApp, int]] = {}
        for name, pairs in grids.items():
            home = folder / f"maker-{name}"
            home.mkdir(exist_ok=True)
            write_grids(home, name, pairs)
            settings = parse_settings(maker_text(devnet, name, pairs), ENVIRON, home)
            settings = msgspec.structs.replace(settings, state_dir=str(home))
            app = MakerApp(settings, environ=ENVIRON, folder=home, clock=WallClock())
            owned.enter_context(app.remembering())
            makers[name] = app, await owned.enter_async_context(drained(app))
        yield makers


def maker_text(devnet: Devnet, name: str, pairs: Mapping[str, Any]) -> str:
    """The settings of a maker that quotes these pairs."""
    text = _MAKER.format(
        chain_id=CHAIN_ID,
        name=name,
        NAME=name.upper(),
        rfq=devnet.text("rfq").lower(),
        executor=devnet.text("executor").lower(),
    )
    for symbol in sorted({token for pair in pairs for token in pair.split("/")}):
        text += (
            f"[maker.chains.{CHAIN_ID}.tokens.{symbol}]\n"
            f'address = "{devnet.text(symbol).lower()}"\ndecimals = {DECIMALS[symbol]}\nbalance = "1000000"\n'
        )
    for pair in pairs:
        base, quote = pair.split("/")
        text += (
            f'[maker.chains.{CHAIN_ID}.pairs."{pair}"]\n'
            f'base = "{base}"\nquote = "{quote}"\nliquidity_usd = 1000000\n'
        )
    return text


def venue_text(
    devnet: Devnet,
    ports: Mapping[str, int],
    *,
    streaming: frozenset[str] = frozenset({"alpha"}),
    has_relayer: bool = True,
    serves: Sequence[str] = ("delta", "market", "rfq"),
    chain: str = "",
    node: str | None = None,
    port: int = 0,
    accounts: Mapping[str, SigningKey] = MAKER_KEYS,
) -> str:
    """The settings of a venue on a chain, with makers at these ports; those `streaming` have a WebSocket.

    Args:
        serves: kinds of trade.
        chain: TOML of the chain; node: of its node, by default its WebSocket.
        port: of the venue.
        accounts: keys of makers, by name, whose addresses the venue knows.
    """
    url = devnet.running.url
    text = _VENUE.format(
        chain_id=CHAIN_ID,
        chain="".join(f"{kind} = true\n" for kind in serves) + chain,
        url=url,
        node=f'ws_urls = ["{url.replace("http", "ws", 1)}"]' if node is None else node,
        port=port,
    )
    if has_relayer:
        text += _RELAYER.format(chain_id=CHAIN_ID)
    for name, port in ports.items():
        account = accounts.get(name)
        text += _VENUE_MAKER.format(
            name=name,
            NAME=name.upper(),
            port=port,
            chain_id=CHAIN_ID,
            accounts="" if account is None else f'accounts = ["{to_checksum(account.address)}"]',
        )
        if name in streaming:
            text += f'ws_url = "ws://127.0.0.1:{port}/{CHAIN_ID}/ws"\n'
    return text + "".join(
        token_text(CHAIN_ID, symbol, devnet.text(symbol), DECIMALS[symbol])
        for symbol in ("WETH", "USDC", "DAI", "WBTC")
        if symbol in devnet.entry.tokens
    )


def token_text(chain_id: int, symbol: str, address: str, decimals: int) -> str:
    """A token in the settings of a venue; a stable coin has `USD` in its symbol, or is DAI."""
    stable = str("USD" in symbol or symbol == "DAI").lower()
    return _TOKEN.format(chain_id=chain_id, address=address, symbol=symbol, decimals=decimals, stable=stable)


def asking(name: str, url: str) -> str:
    """An agent in the settings of a venue."""
    return _VENUE_AGENT.format(name=name, NAME=name.upper(), url=url)


@asynccontextmanager
async def running_venue(
    folder: Path,
    *,
    grids: Mapping[str, Mapping[str, Any]] = GRIDS,
    changed: Callable[[Settings], Settings] = lambda settings: settings,
    more: str = "",
    environ: Mapping[str, str] | None = None,
    store_in_process: bool = True,
) -> AsyncIterator[RunningVenue]:
    """Chain, makers and venue, once every book is live; drained in the end.

    Args:
        folder: for state and price files, empty.
        grids: what each maker quotes.
        changed: makes other settings of the venue's; `more` is TOML that is added to them.
        environ: added to the environment that settings refer to.
        store_in_process: no store process.
    """
    async with (
        served_devnet(folder) as devnet,
        running_makers(folder, devnet, grids) as makers,
        serving(
            folder,
            devnet,
            {name: port for name, (_, port) in makers.items()},
            changed=changed,
            more=more,
            environ=environ,
            store_in_process=store_in_process,
        ) as (app, client, port),
    ):
        expected = sum(len(pairs) for pairs in grids.values())
        venue = RunningVenue(app, devnet, {name: maker for name, (maker, _) in makers.items()}, client, port)
        await until(lambda: len(list(app.chains[CHAIN_ID].index.books())) == expected and not app.not_ready())
        yield venue


@asynccontextmanager
async def drained(app: VenueApp | MakerApp) -> AsyncIterator[int]:
    """Port at which a role serves; it is drained in the end."""
    listener = listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        await nursery.start(app.run, listener)
        yield listener.getsockname()[1]
        app.drain()


@asynccontextmanager
async def serving(
    folder: Path,
    devnet: Devnet,
    ports: Mapping[str, int],
    *,
    changed: Callable[[Settings], Settings] = lambda settings: settings,
    more: str = "",
    environ: Mapping[str, str] | None = None,
    store_in_process: bool = True,
) -> AsyncIterator[tuple[VenueApp, HttpClient, int]]:
    """A venue with makers at these ports, a client of it, and its port."""
    environ = ENVIRON | dict(environ or {})
    settings = changed(_patient(parse_settings(venue_text(devnet, ports) + more, environ, folder)))
    async with (
        opened_venue(
            settings, environ=environ, folder=folder, clock=WallClock(), store_in_process=store_in_process
        ) as app,
        drained(app) as port,
        client_at(port) as client,
    ):
        yield app, client, port


def _patient(settings: Settings) -> Settings:
    """The same settings; a venue that sets no bounds for firm quotes waits for each maker."""
    venue = settings.venue
    if venue is None or venue.firm != FirmSettings():
        return settings
    firm = FirmSettings(soft_s=FIRM_SOFT_S, hard_s=FIRM_HARD_S)
    return msgspec.structs.replace(settings, venue=msgspec.structs.replace(venue, firm=firm))


# --- On a world's chain -----------------------------------------------------------------------------------


def entry_of(world: World, folder: Path, more: Mapping[str, bytes] | None = None) -> DeployedChain:
    """The chain's entry in the folder's address book: its contracts, WETH, USDC, DAI and more tokens."""
    tokens = {"WETH": world.weth, "USDC": world.usdc, "DAI": world.dai, **(more or {})}
    entry = chain_entry(
        "devnet",
        world.at,
        wrappedNative=to_checksum(world.weth),
        permit2=to_checksum(world.permit2),
        tokens={
            symbol: {"address": to_checksum(address), "decimals": DECIMALS[symbol]}
            for symbol, address in tokens.items()
        },
    )
    write_entries(folder, {CHAIN_ID: entry})
    return entry


def devnet_of(world: World, folder: Path) -> Devnet:
    """The chain as a venue's settings name it; its contracts and tokens stand in a file of the folder."""
    return devnet_at(world, entry_of(world, folder, {"WBTC": b"\x0d" * 20}))


def devnet_at(world: World, entry: DeployedChain, url: str = "http://127.0.0.1:9") -> Devnet:
    """A world's chain as the settings name it; by default its node is not needed."""
    return Devnet(world.chain, RunningChain(CHAIN_ID, "", url, entry))


@asynccontextmanager
async def venue_on(
    devnet: Devnet,
    folder: Path,
    text: str,
    environ: Mapping[str, str],
    clock: WallClock,
    chains: Mapping[int, DevChain] | None = None,
) -> AsyncIterator[RunningVenue]:
    """The venue that operators run, once it serves; cancelled in the end.

    Args:
        folder: of its state; a second venue in the same folder is a restart.
        text: of its settings; environ: what they refer to.
        chains: as the venue sees them, where that is not the devnet's alone.
    """
    settings = parse_settings(text, environ, folder)
    async with (
        opened_venue(
            settings,
            environ=environ,
            folder=folder,
            clock=clock,
            chains=chains or {CHAIN_ID: devnet.chain},
            store_in_process=True,
        ) as app,
        listening(app.run) as port,
        client_at(port) as client,
    ):
        yield RunningVenue(app, devnet, {}, client, port)
