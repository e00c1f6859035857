"""The demo's venue with two market makers and two agents, all started in this process.

`place_settings` generates their settings. Each application has its own secrets, state directory and listener;
the makers have keys, and funds on the chain, and the venue has the relayer's key. All applications share a
clock, so that the demo can move the time forward for all at once.
"""

import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from socket import socket

import msgspec
import trio
from msgspec import Struct

from ....codecs.contracts.calldata import approve
from ....codecs.messages.maker_messages import PriceGrid
from ....config import limits
from ....config.chains import ChainSettings
from ....config.settings import Settings, parse_settings
from ....crypto.secp256k1 import SigningKey
from ....feeds.books.book import build_book
from ....feeds.net.streams import listen
from ...agent.app import AgentApp, opened_agent
from ...chain.deploy.address_book import write_entries
from ...chain.transact import transact
from ...maker.app import MakerApp
from ...process.clock import WallClock
from ...venue.app import VenueApp, opened_venue
from .place_settings import AGENTS, GRIDS, QUOTED, TOKENS, agent_text, maker_text, shared_secrets, venue_text
from .settlement import CHAIN_ID, DemoChain

_NS = 10**9


class PassingClock(WallClock):
    """Wall clock that all applications of the demo share, and that the demo can move forward."""

    __slots__ = ("_ahead_ns",)

    def __init__(self) -> None:
        self._ahead_ns = 0
        super().__init__(
            lambda: time.time_ns() + self._ahead_ns, lambda: time.monotonic_ns() + self._ahead_ns
        )

    def put_forward(self, to_s: int) -> None:
        """Move the clock forward to a time, Unix seconds; no effect if that time has passed."""
        self._ahead_ns += max(to_s * _NS - self.now_ms() * 1_000_000, 0)


_RELAYER = 1  # account of the devnet that may settle
_READY_S = 20.0
_LOOK_S = 0.02
_CONFIRMATIONS = ChainSettings(name="devnet").confirmations
_REFRESHED_S = 0.5  # time for makers to confirm their prices, and for all applications to see the head


class MarketPlace(Struct, frozen=True):
    """The demo's running applications: a venue, and the makers and agents that trade with it.

    Attributes:
        stage: chain with its contracts and accounts.
        url: URL of the venue.
        makers, agents: the applications, by name.
        keys: keys of the makers, by name.
        relayer: address of the account that settles Delta orders.
        folder: folder with a subfolder for each application.
    """

    stage: DemoChain
    folder: Path
    clock: PassingClock
    url: str
    venue: VenueApp
    makers: Mapping[str, MakerApp]
    agents: Mapping[str, AgentApp]
    keys: Mapping[str, SigningKey]
    relayer: bytes

    async def live(self) -> None:
        """Wait until venue and makers are ready, and venue and agents have the price books of their makers.

        Raises:
            trio.TooSlowError: the applications are not ready within 20 seconds.
        """
        venue = self.venue.places[CHAIN_ID]
        wanted = [(venue.index, tuple(GRIDS))]
        wanted += [(agent.places[CHAIN_ID].makers.index, AGENTS[name]) for name, agent in self.agents.items()]
        with trio.fail_after(_READY_S):
            while True:
                waiting = self.venue.not_ready()
                waiting += [reason for app in self.makers.values() for reason in app.not_ready()]
                lacking = [
                    makers
                    for index, makers in wanted
                    if len(list(index.books())) != sum(len(GRIDS[maker]) for maker in makers)
                ]
                if not waiting and not lacking:
                    return
                await trio.sleep(_LOOK_S)

    async def quote(self, maker: str, pair: str, bid: str, ask: str) -> None:
        """Change a maker's prices for a pair, and wait until all readers of the prices have received them.

        The readers are the venue, and the agents that trade with the maker.

        Args:
            pair: symbols of base and quote, as `WETH/USDC`.
            bid, ask: price of the only bid and of the only ask that the maker then offers, in quote tokens
                per base token, as decimal text.
        """
        base, quote = pair.split("/")
        sides = {"bids": [[bid, QUOTED]], "asks": [[ask, QUOTED]]}
        path = self.folder / maker / "prices.json"
        written = trio.Path(path.with_suffix(".new"))
        await written.write_bytes(msgspec.json.encode({"prices": {**GRIDS[maker], pair: sides}}))
        await written.rename(path)
        grid = PriceGrid(bids=((bid, QUOTED),), asks=((ask, QUOTED),))
        wanted = build_book(grid, TOKENS[base], TOKENS[quote])
        ends = self.stage.at(base), self.stage.at(quote)
        indexes = [self.venue.places[CHAIN_ID].index]
        indexes += [
            self.agents[name].places[CHAIN_ID].makers.index for name in AGENTS if maker in AGENTS[name]
        ]
        with trio.fail_after(_READY_S):
            for index in indexes:
                while not any(  # noqa: ASYNC110  books of others have no event
                    live.book == wanted and (live.maker, live.base, live.quote) == (maker, *ends)
                    for live in index.books()
                ):
                    await trio.sleep(_LOOK_S)

    async def pass_time(self, to_s: int) -> None:
        """Move the time of the chains and of all applications forward, and wait until all are ready again.

        Afterwards each chain has enough new blocks to make all its earlier blocks final.

        Args:
            to_s: the time to move to, which is also the time of the next blocks, Unix seconds.
        """
        chains = (self.stage.chain, self.stage.far.chain)
        for chain in chains:
            await chain.set_time(to_s)
            await chain.mine()
        self.clock.put_forward(to_s)
        for chain in chains:
            for _ in range(_CONFIRMATIONS):
                await chain.mine()  # new heads, which the applications see at the new time
        await trio.sleep(_REFRESHED_S)
        await self.live()
        self.venue.delta.scheduler.at(0, "time has passed", lambda: None)


@asynccontextmanager
async def a_market_place(stage: DemoChain, folder: Path) -> AsyncIterator[MarketPlace]:
    """Context manager: start the demo's venue, makers and agents, and stop them at the exit.

    Before the start, both makers approve the RFQ contract for their tokens on the chain.

    Args:
        folder: folder in which each application gets a subfolder for its state.
    """
    relayer = stage.keys[_RELAYER]
    keys = dict(zip(GRIDS, stage.keys[-len(GRIDS) :], strict=True))
    for key in keys.values():
        for token in TOKENS:
            await transact(stage.chain, key, stage.at(token), approve(stage.at("rfq"), limits.UINT256_MAX))
    environ = {shared.name: secrets.token_hex(16) for shared in shared_secrets()}
    environ |= {f"{name.upper()}_KEY": key.secret32().hex() for name, key in keys.items()}
    environ |= {"ROUTE_SEAL": secrets.token_hex(16), "RELAYER_KEY": relayer.secret32().hex()}
    opening = _Opening(stage, folder, environ, PassingClock())
    async with AsyncExitStack() as owned, trio.open_nursery() as nursery:
        makers, maker_ports = await _makers(owned, nursery, opening, keys)
        agents, agent_ports = await _agents(nursery, opening, maker_ports)
        home = opening.home("venue")
        settings = parse_settings(venue_text(stage, maker_ports, agent_ports), environ, home)
        opened = opened_venue(settings, environ=environ, folder=home, clock=opening.clock)
        async with opened as venue, trio.open_nursery() as serving:
            listener = listen("127.0.0.1", 0)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            await serving.start(venue.run, listener)
            place = MarketPlace(
                stage, folder, opening.clock, url, venue, makers, agents, keys, relayer.address
            )
            await place.live()
            yield place
            venue.drain()
        for agent in agents.values():
            agent.drain()
        for maker in makers.values():
            maker.drain()


class _Opening(Struct, frozen=True):
    """Chain, folder, environment variables and clock with which all applications of the demo are started."""

    stage: DemoChain
    folder: Path
    environ: Mapping[str, str]
    clock: PassingClock

    def home(self, name: str) -> Path:
        """Create an application's state folder, and write contracts.json, the contracts' addresses, into it.

        Returns:
            The path of the folder.
        """
        home = self.folder / name
        home.mkdir()
        places = (self.stage, self.stage.far)
        write_entries(home, {place.running.chain_id: place.running.entry for place in places})
        return home


async def _makers(
    owned: AsyncExitStack, nursery: trio.Nursery, opening: _Opening, keys: Mapping[str, SigningKey]
) -> tuple[dict[str, MakerApp], dict[str, int]]:
    """Start the demo's market makers; return the applications and their TCP ports, both by name."""
    makers: dict[str, MakerApp] = {}
    ports: dict[str, int] = {}
    for name in keys:
        home = opening.home(name)
        (home / "prices.json").write_bytes(msgspec.json.encode({"prices": GRIDS[name]}))
        settings = parse_settings(maker_text(opening.stage, name), opening.environ, home)
        makers[name] = MakerApp(settings, environ=opening.environ, folder=home, clock=opening.clock)
        owned.enter_context(makers[name].remembering())
        listener = listen("127.0.0.1", 0)
        ports[name] = listener.getsockname()[1]
        await nursery.start(makers[name].run, listener)
    return makers, ports


async def _agents(
    nursery: trio.Nursery, opening: _Opening, maker_ports: Mapping[str, int]
) -> tuple[dict[str, AgentApp], dict[str, int]]:
    """Start the demo's agents; return the applications and their TCP ports, both by name."""
    agents: dict[str, AgentApp] = {}
    ports: dict[str, int] = {}
    for name in AGENTS:
        home = opening.home(name)
        settings = parse_settings(agent_text(opening.stage, name, maker_ports), opening.environ, home)
        listener = listen("127.0.0.1", 0)
        ports[name] = listener.getsockname()[1]
        agents[name] = await nursery.start(_run_agent, opening, settings, home, listener)
    return agents, ports


async def _run_agent(
    opening: _Opening,
    settings: Settings,
    home: Path,
    listener: socket,
    *,
    task_status: trio.TaskStatus[AgentApp],
) -> None:
    opened = opened_agent(settings, environ=opening.environ, folder=home, clock=opening.clock)
    async with opened as app, trio.open_nursery() as nursery:
        await nursery.start(app.run, listener)
        task_status.started(app)
