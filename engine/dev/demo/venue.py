"""The demo's venue with two market makers and two agents, all started in this process.

`place_settings` generates their settings. Each application has its own secrets, state directory and listener;
the makers have keys, and funds on the chain, and the venue has the relayer's key. All applications share a
clock, so that the demo can move the time forward for all at once.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import trio
from msgspec import Struct

from ....codecs.messages.maker_messages import PriceGrid
from ....config.chains import ChainSettings
from ....crypto.secp256k1 import SigningKey
from ....feeds.books.book import build_book
from ....feeds.books.pair_index import PairIndex
from ....feeds.supervisor import MakerFeed
from ....feeds.transport.streams import listen
from ...host.process.clock import WallClock
from ...roles.agent.app import AgentApp
from ...roles.maker.app import MakerApp
from ...roles.venue.app import VenueApp
from ..devnet.bridge_places import approve_all
from ..place.layout import VENUE
from ..place.roles import new_secrets, running_roles, write_roles
from .place_settings import AGENTS, GRIDS, PRICES_FILE, QUOTED, TOKENS, demo_layout
from .settlement import CHAIN_ID, WAIT_S, DemoChain

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


LOOK_S = 0.05
_RELAYER = 1  # account of the devnet that may settle
_CONFIRMATIONS = ChainSettings(name="devnet").confirmations


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, which is evaluated every LOOK_S seconds.

    Raises:
        trio.TooSlowError: the condition does not hold within WAIT_S seconds.
    """
    with trio.fail_after(WAIT_S):
        while not condition():  # noqa: ASYNC110  counters and books of others have no event
            await trio.sleep(LOOK_S)


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

    def _readers(self) -> list[tuple[Mapping[str, MakerFeed], PairIndex]]:
        """Return the readers of makers' prices, which are the venue and the agents.

        Returns:
            (name of a maker -> the feed of its books, index of the books) of each reader.
        """
        venue = self.venue.places[CHAIN_ID]
        makers = [agent.places[CHAIN_ID].makers for agent in self.agents.values()]
        return [(venue.feeds, venue.index), *((each.feeds, each.index) for each in makers)]

    async def live(self) -> None:
        """Wait until all are ready, and venue and agents have the makers' books, over an open WebSocket if
        the maker has one.

        A reader keeps the books of a closed WebSocket for a moment; without the wait for the WebSocket, the
        books could go away right after this call.

        Raises:
            trio.TooSlowError: the applications are not ready within WAIT_S seconds.
        """
        await until(self._is_live)

    def _is_live(self) -> bool:
        return not (self.venue.not_ready() or any(app.not_ready() for app in self.makers.values())) and all(
            len(list(index.books())) == sum(len(GRIDS[maker]) for maker in feeds)
            and all(_is_up(feed) is not False for feed in feeds.values())
            for feeds, index in self._readers()
        )

    async def stop(self, maker: str) -> None:
        """Throw a maker's kill switch, and wait until all readers of its prices have lost its WebSocket."""
        self.makers[maker].switch.stop("all")
        await until(lambda: not any(_is_up(feeds[maker]) for feeds, _ in self._readers() if maker in feeds))

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
        path = self.folder / maker / PRICES_FILE
        written = trio.Path(path.with_suffix(".new"))
        await written.write_bytes(msgspec.json.encode({"prices": {**GRIDS[maker], pair: sides}}))
        await written.rename(path)
        grid = PriceGrid(bids=((bid, QUOTED),), asks=((ask, QUOTED),))
        wanted = build_book(grid, TOKENS[base], TOKENS[quote])
        ends = self.stage.at(base), self.stage.at(quote)
        found = maker, *ends, wanted

        def is_known() -> bool:
            return all(
                maker not in feeds
                or any((live.maker, live.base, live.quote, live.book) == found for live in index.books())
                for feeds, index in self._readers()
            )

        await until(is_known)

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
        await self.live()
        self.venue.delta.scheduler.at(0, "time has passed", lambda: None)


def _is_up(feed: MakerFeed) -> bool | None:
    """Whether a maker's WebSocket is open and its first message applied; None if the maker has none."""
    stream = feed.statistics().stream
    return None if stream is None else stream.is_up


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
        await approve_all(stage.chain, key, stage.at("rfq"), map(stage.at, TOKENS))
    clock = PassingClock()
    names = (VENUE, *GRIDS, *AGENTS)
    listeners = {name: listen("127.0.0.1", 0) for name in names}
    layout = demo_layout(stage, {name: one.getsockname()[1] for name, one in listeners.items()})
    write_roles(layout, folder)
    for name in GRIDS:
        (folder / name / PRICES_FILE).write_bytes(msgspec.json.encode({"prices": GRIDS[name]}))
    environ = new_secrets(layout, {**keys, "relayer": relayer})
    async with running_roles(layout, folder, environ, clock, listeners) as roles:
        if roles.venue is None:
            raise AssertionError("the demo runs its venue")
        url = f"http://127.0.0.1:{layout.ports[VENUE]}"
        place = MarketPlace(
            stage=stage,
            folder=folder,
            clock=clock,
            url=url,
            venue=roles.venue,
            makers=roles.makers,
            agents=roles.agents,
            keys=keys,
            relayer=relayer.address,
        )
        await place.live()
        yield place
