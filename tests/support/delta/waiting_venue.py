"""A venue that can die between any two things that it does, in one process and on a clock of the test's.

async with a_waiting_venue(folder) as venue:
    await venue.ask("GET", "/v2/delta/orders")
    venue.dies_in(5)                        at the fifth thing that it asks of the chain or the store from now
    await venue.ask(...)                    asks again until the next one of its life answers

The chain is the embedded one with the real contracts, the store the real SQL on a file; HTTP, and what the
venue asks its agent, go over memory streams. No threads, no sockets. A life that ends loses the chain, the
store and all streams first, and is then cancelled: it has no effect after its death. Only logs have funds
read again: the slow round over all accounts would hide a missed log. Chain and store are
asked once whether they answer. The end of a life waits for its store, which is lost, for the product's own
bounds: stories wait for the next life by the same clock.
"""

import inspect
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
import trio
from trio.testing import memory_stream_pair

from cambist.codecs.http1 import Http1Limits
from cambist.config.errors import NodeUnavailable
from cambist.config.settings import parse_settings
from cambist.engine.chain import pulse
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.venue.app import VenueApp, opened_venue
from cambist.engine.store import leases
from cambist.engine.store.process import open_store as store_opening
from cambist.engine.store.store import InlineLink
from cambist.engine.trade.delta import open_delta as delta_opening
from cambist.engine.trade.delta.bids.agent_client import AgentClient
from cambist.engine.trade.orders import accounts_watch
from cambist.feeds.transport.http_client import HttpClient, HttpFailure
from support.contracts.delta_agents import StoryAgent
from support.contracts.settling import Market
from support.makers.live_books import a_book
from support.patience import PATIENCE_S, STORY_S
from support.server.scripted_server import Caller
from support.stretched_bounds import own_bounds
from support.venue.venue_role import CHAIN_ID, ENVIRON, asking, devnet_at, entry_of, venue_text

CONFIRMATIONS = 4
AGAIN_S = 1.0
SETTLEMENT_S = 90.0
STORE = "cambist.sqlite3"
_NEVER_S = 1e9
_DELTA = """
[store]
url = "sqlite:{store}"
[venue.delta]
round_s = 0.5
gather_s = 0.02
again_s = 0.25
again_s_max = {again_s}
settlement_s = {settlement_s}
failures_max = 1000
rest_s = 0.1
rest_s_max = 0.1
"""


class SimulatedClock(WallClock):
    """Trio's time since the epoch that is given, and what was jumped over; also the chain's clock."""

    def __init__(self, start_s: int) -> None:
        self.jumped_s = 0

        def now_ns() -> int:
            return round((start_s + self.jumped_s + trio.current_time()) * 10**9)

        super().__init__(now_ns, now_ns)
        self._anchor_ns = 0

    def now_s(self) -> int:
        """Unix seconds."""
        return self.now_ms() // 1_000


class Life:
    """A life of a venue: its requests to chain and store, until it dies.

    Attributes:
        dies_in: so many things it still does; negative for ever.
        is_over: it has died: whatever it asks is never answered.
        is_node_away: what it asks of the chain is refused.
    """

    def __init__(self) -> None:
        self.dies_in = -1
        self.is_over = trio.Event()
        self.is_node_away = False
        self.streams: list[trio.abc.Stream] = []

    async def step(self) -> None:
        """Count an action of the venue; the life may end with it."""
        if self.dies_in >= 0:
            self.dies_in -= 1
            if self.dies_in < 0:
                self.is_over.set()
        if self.is_over.is_set():
            await trio.sleep_forever()


class _MortalChain:
    """A chain, as a life sees it."""

    def __init__(self, chain: EmbeddedChain, life: Life) -> None:
        self._chain = chain
        self._life = life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._chain, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def asked(*given: Any, **named: Any) -> Any:
            await self._life.step()
            if self._life.is_node_away:
                await trio.lowlevel.checkpoint()
                raise NodeUnavailable("nobody answers")
            answer = await found(*given, **named)
            await self._life.step()
            return answer

        return asked


class _MortalLink(InlineLink):
    """A store, as a life sees it: it dies before a write, or after that and before it hears of it."""

    def __init__(self, life: Life, *given: Any) -> None:
        super().__init__(*given)
        self._life = life

    async def apply(self, number: int, units: Any) -> Any:
        """As `InlineLink`."""
        await self._life.step()
        outcomes = await super().apply(number, units)
        await self._life.step()
        return outcomes


def _mortal(name: str) -> Any:
    """A method of `InlineLink` before which a life may end."""

    async def asked(self: _MortalLink, *given: Any) -> Any:
        await self._life.step()
        return await getattr(InlineLink, name)(self, *given)

    return asked


for _name in ("read", "lease", "attend", "release", "prune"):
    setattr(_MortalLink, _name, _mortal(_name))


class _Door(trio.abc.Listener[trio.abc.Stream]):
    """Listener that gives the venue its callers, without a socket."""

    def __init__(self) -> None:
        self.send, self._receive = trio.open_memory_channel[trio.abc.Stream](64)

    async def accept(self) -> trio.abc.Stream:
        """As a listener."""
        try:
            return await self._receive.receive()
        except trio.ClosedResourceError:
            raise
        except trio.EndOfChannel:
            raise trio.ClosedResourceError from None

    async def aclose(self) -> None:
        """As a listener."""
        await self._receive.aclose()


class WaitingVenue:
    """A venue through all its lives.

    Attributes:
        agent: its only one.
        deaths: so far.
        app: of the present life.
    """

    def __init__(self, market: Market, clock: SimulatedClock, folder: Path, nursery: trio.Nursery) -> None:
        self.market = market
        self.world = market.world
        self.clock = clock
        self.folder = folder
        self.agent = StoryAgent("ann", market)
        self.deaths = 0
        self.life = Life()
        self._is_up = trio.Event()
        self._nursery = nursery
        self._app: VenueApp | None = None
        self._door: _Door | None = None
        self._books: dict[str, tuple[bytes, bytes, str]] = {}
        self._client = HttpClient(
            "venue.example", 80, tls=None, connections_max=8, limits=Http1Limits(), dial=self._dial
        )

    @property
    def app(self) -> VenueApp:
        """See the class. AssertionError: it is between two lives."""
        assert self._app is not None
        return self._app

    # --- Lives ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Live, and begin anew after each death."""
        async with self._client:
            while True:
                self.life = life = Life()
                with trio.CancelScope() as scope:
                    self._nursery.start_soon(self._bury, life, scope)
                    await self._live(life)
                self._app = self._door = None
                self.deaths += 1

    async def _bury(self, life: Life, scope: trio.CancelScope) -> None:
        await life.is_over.wait()
        self._is_up = trio.Event()
        for stream in life.streams:
            await trio.aclose_forcefully(stream)
        scope.cancel()

    async def _live(self, life: Life) -> None:
        world = self.world
        environ = ENVIRON | {"RELAYER_KEY": world.relayer.secret32().hex(), "ANN_SECRET": self.agent.secret}
        text = venue_text(
            devnet_at(world, entry_of(world, self.folder)),
            {},
            chain=f"confirmations = {CONFIRMATIONS}",
            node="",
        )
        text += _DELTA.format(store=STORE, again_s=AGAIN_S, settlement_s=SETTLEMENT_S)
        text += asking("ann", "http://ann.example")
        chain: Any = _MortalChain(world.chain, life)  # type: ignore[arg-type]
        with (
            patch.object(store_opening, "InlineLink", partial(_MortalLink, life)),
            patch.object(pulse, "READY_LOOK_S", _NEVER_S),
            patch.object(accounts_watch, "FUNDS_SLICE_S", _NEVER_S),
            patch.object(accounts_watch, "FUNDS_RECHECK_S", 60 * _NEVER_S),
            patch.object(delta_opening, "AgentClient", partial(AgentClient, dial=self._dial_agent)),
        ):
            async with opened_venue(
                parse_settings(text, environ, self.folder),
                environ=environ,
                folder=self.folder,
                clock=self.clock,
                chains={CHAIN_ID: chain},
                store_in_process=True,
            ) as app:
                self._door = _Door()
                self._app = app
                for name in self._books:
                    self._show(name)
                async with trio.open_nursery() as nursery:
                    await nursery.start(app.run, self._door)
                    self._is_up.set()

    @property
    def is_serving(self) -> bool:
        """Whether it lives and serves now."""
        return self._is_up.is_set()

    async def is_up(self) -> VenueApp:
        """The application, once it serves."""
        await self._is_up.wait()
        return self.app

    # --- Callers and the agent ----------------------------------------------------------------------------

    async def _dial(self, *_: object, **__: object) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        if self._door is None or not self._is_up.is_set() or self.life.is_over.is_set():
            raise ConnectionRefusedError
        near, far = memory_stream_pair()
        self.life.streams += (near, far)
        self._door.send.send_nowait(far)
        return near

    async def _dial_agent(self, *_: object, **__: object) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        near, far = memory_stream_pair()
        self.life.streams += (near, far)
        self._nursery.start_soon(self._serve_agent, far)
        return near

    async def _serve_agent(self, stream: trio.abc.Stream) -> None:
        try:
            async with stream:
                await self.agent.script(Caller(stream))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def ask(self, method: str, target: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON; asked again, as a client does, until a life of the venue has answered."""
        raw = b"" if body is None else msgspec.json.encode(body)
        with trio.fail_after(STORY_S):
            while True:
                await self._is_up.wait()
                try:
                    answer = await self._client.request(
                        method.encode(),
                        target.encode(),
                        [(b"content-type", b"application/json")],
                        raw,
                        deadline_s=PATIENCE_S,
                        may_repeat=True,
                    )
                except HttpFailure:
                    await trio.sleep(0.5)
                    continue
                if answer.status < 500:
                    return answer.status, msgspec.json.decode(answer.body)
                await trio.sleep(0.5)

    # --- Books ------------------------------------------------------------------------------------------

    def quotes(self, name: str, base: bytes, quote: bytes, bids: str) -> None:
        """A maker's book from now on; without bids it has none."""
        self._books[name] = base, quote, bids
        if self._app is not None:
            self._show(name)

    def _show(self, name: str) -> None:
        base, quote, bids = self._books[name]
        index = self.app.chains[CHAIN_ID].index
        if not bids:
            index.drop(name, base, quote)
            return
        decimals = {self.world.weth: 18, self.world.usdc: 6, self.world.dai: 18}
        index.put(a_book(name, base, quote, bids=bids, decimals=decimals))


@asynccontextmanager
async def a_waiting_venue(
    market: Market, clock: SimulatedClock, folder: Path
) -> AsyncGenerator[WaitingVenue]:
    """A venue that serves."""
    with pytest.MonkeyPatch.context() as patched:
        own_bounds(patched, leases, store_opening)
        async with trio.open_nursery() as nursery:
            venue = WaitingVenue(market, clock, folder, nursery)
            nursery.start_soon(venue.run)
            await venue.is_up()
            yield venue
            nursery.cancel_scope.cancel()
