"""Makers flap, cut, drip, flood and lie all at once: the good ones stay current, quotes and swaps go on.

The bad makers are processes of their own, so that this process's CPU is the venue's and its clients'. A
quote's speed is its number of passes of the loop, the same on any machine, and the CPU time of the longest
pass.
"""

import gc
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from subprocess import PIPE
from time import thread_time
from typing import Any
from urllib.parse import urlencode

import pytest
import trio
from bench.peers.ports import held_port, port_of
from msgspec.structs import replace

from cambist.codecs.http1 import Request
from cambist.config.sections.venue import FirmSettings
from cambist.config.settings import Settings
from cambist.feeds import backoff, poll
from cambist.feeds.standing import PairStanding
from cambist.feeds.transport import http_client
from cambist.feeds.transport.streams import listen
from support.events.event_streams import EventStream
from support.examples import IS_LONG
from support.makers import bad_makers
from support.makers.bad_makers import MORTAL, NAMES, SOCKETS
from support.makers.memory_maker import MemoryMaker
from support.patience import PATIENCE, PATIENCE_S, until
from support.venue.venue_role import (
    CHAIN_ID,
    GRIDS,
    MAKER_KEYS,
    RunningVenue,
    running_makers,
    served_devnet,
    serving,
)

pytestmark = pytest.mark.seldom

ATTEMPTS = 5 if IS_LONG else 3
QUOTES = 60  # in one attempt
SWAPS = 8 if IS_LONG else 3
PRICES = 5 if IS_LONG else 3  # of a good maker, one after the other
SPOILT_MAX = 6  # swaps whose time bad makers used up, one after the other, before these rest
STREAMS = 3
KILLS = 3 if IS_LONG else 2
PASS_S_MAX = 0.25  # the longest turn of the loop; a decoded snapshot of 500 pairs is a few milliseconds
PASSES_MAX = 20  # of the loop, from a quote's request to its answer: 2 to 7 as a rule
FIRM = FirmSettings(soft_s=8 * PATIENCE, hard_s=12 * PATIENCE)
"""A busy machine makes no good maker late; a stand-in is asked after a third of the soft bound."""


class Passes(trio.abc.Instrument):
    """Number of the loop's checks of its sockets, and the most CPU time between two checks, seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.longest_s = 0.0
        self._began = thread_time()

    def after_io_wait(self, timeout: float) -> None:
        self._began = thread_time()

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1
        self.longest_s = max(self.longest_s, thread_time() - self._began)


class BadProcess:
    """Bad makers in a process; calm at first."""

    def __init__(self, weth: str, usdc: str, *names: str) -> None:
        self._command = [sys.executable, "-m", "support.makers.bad_makers", weth, usdc]
        self._held = [held_port() for _ in names]
        self.ports = dict(zip(names, map(port_of, self._held), strict=True))
        self._process: trio.Process | None = None

    async def start(self) -> None:
        """On the same ports as before."""
        places = [f"{name}:{port}" for name, port in self.ports.items()]
        environ = os.environ | {"PYTHONPATH": str(Path(bad_makers.__file__).parents[2])}
        self._process = await trio.lowlevel.open_process(
            [*self._command, *places], stdin=PIPE, stdout=PIPE, env=environ
        )
        assert self._process.stdout
        with trio.fail_after(PATIENCE_S):
            line = bytearray()  # once they listen
            while not line.endswith(b"\n"):
                line += await self._process.stdout.receive_some(1_000)

    async def tell(self, word: str) -> None:
        """`chaos` or `calm`."""
        assert self._process
        assert self._process.stdin
        await self._process.stdin.send_all(f"{word}\n".encode())

    async def kill(self) -> None:
        """As the system would."""
        if self._process is None:
            return
        self._process.kill()
        with trio.CancelScope(shield=True):
            await self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe
                await pipe.aclose()
        self._process = None

    async def end(self) -> None:
        """Killed, and others may have its ports."""
        await self.kill()
        for held in self._held:
            held.close()


class Market:
    """A venue, good makers and bad ones.

    Attributes:
        statuses: of all answers.
    """

    def __init__(self, venue: RunningVenue, folder: Path, bad: BadProcess, mortal: BadProcess) -> None:
        self.venue = venue
        self.folder = folder
        self.bad = bad
        self.mortal = mortal
        self.statuses: Counter[int] = Counter()
        self.place = venue.app.chains[CHAIN_ID]

    async def get(self, path: str, **query: Any) -> Any:
        """An answer whose status is taken note of; None if it is no 200."""
        status, told = await self.venue.answer(path, **query)
        self.statuses[status] += 1
        assert status < 500, told
        return told if status == 200 else None

    def sale(self, **more: Any) -> dict[str, Any]:
        """Parameters of GET /prices for selling one WETH for USDC."""
        return self.venue.selling("WETH", 1, "USDC", network=CHAIN_ID, version="6.2", chainId=None, **more)

    async def quoted(self) -> tuple[int, float]:
        """The most passes of the loop that a quote takes, and the longest of them; of one attempt."""
        passes, most = Passes(), 0
        trio.lowlevel.add_instrument(passes)
        for number in range(QUOTES):
            before = passes.count
            mode = ("MARKET", "ALL", "DELTA")[number % 3]
            assert await self.get("/v2/quote", **self.venue.selling("WETH", 1, "USDC", mode=mode))
            most = max(most, passes.count - before)
        trio.lowlevel.remove_instrument(passes)
        return most, passes.longest_s

    async def measured(self) -> tuple[int, float]:
        """The most passes of the loop that a quote takes, and of several attempts the median longest pass."""
        attempts = [await self.quoted() for _ in range(ATTEMPTS)]
        return max(most for most, _ in attempts), median(longest for _, longest in attempts)

    async def prices_get_through(self, maker: str) -> None:
        """Each price of a good maker is quoted before it sets the next."""
        grids = dict(GRIDS[maker])
        for number in range(PRICES):
            bid = 2_400 + number
            grids["WETH/USDC"] = {"bids": [[str(bid), "20"]], "asks": [["2600", "20"]]}
            self.venue.quote_prices(maker, self.folder / f"maker-{maker}", **grids)
            with trio.fail_after(PATIENCE_S):
                while True:
                    told = await self.get("/prices", **self.sale(includeDEXS=maker))
                    received = int(told["priceRoute"]["destAmount"]) / 10**6 if told else 0
                    if bid - 1 < received <= bid:  # a fee is off
                        break
                    await trio.sleep(0.05)
        self.venue.quote_prices(maker, self.folder / f"maker-{maker}", **GRIDS[maker])

    async def swaps_are_built(self) -> None:
        """Good makers sign in place of the bad ones, who quote better; slow makers soon rest."""
        good = [key.address.hex() for key in MAKER_KEYS.values()]
        built = spoilt = 0
        while built < SWAPS:
            route = (await self.get("/prices", **self.sale()))["priceRoute"]
            body = {
                "srcToken": route["srcToken"],
                "destToken": route["destToken"],
                "srcAmount": route["srcAmount"],
                "priceRoute": route,
                "slippage": 800,
                "userAddress": f"0x{'ab' * 20}",
            }
            with self.venue.with_key():
                status, told = await self.venue.post(f"/transactions/{CHAIN_ID}", body, ignoreChecks="true")
            self.statuses[status] += 1
            if status == 200:
                built += 1
                assert any(address in told["data"] for address in good)
            else:
                spoilt += 1
                assert told["details"].startswith("No route: time is up"), told
                assert spoilt <= SPOILT_MAX, told

    async def streams_go_on(self) -> None:
        """A stream tells of prices for as long as it is open."""
        query = urlencode(self.venue.selling("WETH", 1, "USDC", mode="MARKET"))
        async with await trio.open_tcp_stream("127.0.0.1", self.venue.port) as stream:
            events = EventStream(stream)
            await events.open(b"/v2/quote/stream?" + query.encode())
            for _ in range(5):
                kind, _ = await events.event()
                assert kind == "quote"

    async def the_mortal_dies(self) -> None:
        """Its process is killed and started again, and its books come back."""
        for _ in range(KILLS):
            await self.mortal.kill()
            await until(lambda: not self.is_live(MORTAL), PATIENCE_S)
            await self.mortal.start()
            await until(lambda: self.is_live(MORTAL), PATIENCE_S)

    def is_live(self, maker: str) -> bool:
        """Whether it has a book that is routed."""
        return PairStanding.LIVE in self.place.feeds[maker].cache.statistics().pairs

    def failures(self) -> int:
        """Of all polls."""
        polls = [one for feed in self.place.feeds.values() for one in feed.statistics().polls.values()]
        return sum(one.failures for one in polls)

    def all_live(self) -> bool:
        """Whether every maker has."""
        return all(self.is_live(maker) for maker in self.place.feeds)


@pytest.fixture(autouse=True)
def never_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bad makers are asked again at once, however often they failed: more than a venue would bear."""
    monkeypatch.setattr(backoff, "FEED_PAUSE_S_MAX", 0.3)
    monkeypatch.setattr(poll, "FEED_REST_AFTER", 10**9)
    monkeypatch.setattr(http_client, "HTTP_POOL_IDLE_S", 2.0)


@asynccontextmanager
async def bad_process(*names: str, weth: str, usdc: str) -> AsyncGenerator[BadProcess]:
    process = BadProcess(weth, usdc, *names)
    try:
        await process.start()
        yield process
    finally:
        await process.end()


@asynccontextmanager
async def a_market(folder: Path) -> AsyncIterator[Market]:
    """Market whose good and bad makers are all calm and live."""
    async with served_devnet(folder) as devnet:
        at = {"weth": devnet.text("WETH").lower(), "usdc": devnet.text("USDC").lower()}
        async with (
            running_makers(folder, devnet, GRIDS) as makers,
            bad_process(*NAMES, **at) as bad,
            bad_process(MORTAL, **at) as mortal,
            serving(
                folder,
                devnet,
                {name: port for name, (_, port) in makers.items()},
                changed=with_firm,
                more=bad_text(bad.ports | mortal.ports),
            ) as (app, client, port),
        ):
            good = {name: maker for name, (maker, _) in makers.items()}
            market = Market(RunningVenue(app, devnet, good, client, port), folder, bad, mortal)
            await until(lambda: market.all_live() and not app.not_ready(), PATIENCE_S)
            yield market


def with_firm(settings: Settings) -> Settings:
    assert settings.venue
    return replace(settings, venue=replace(settings.venue, firm=FIRM))


def bad_text(ports: dict[str, int]) -> str:
    """Settings of a venue that has these makers too, and lists their tokens."""
    text = "".join(
        f'[[tokens]]\nchain_id = {CHAIN_ID}\naddress = "{bad_makers.token_address(at)}"\n'
        f'symbol = "T{at}"\ndecimals = 18\n'
        for at in range(bad_makers.TOKENS - 2)
    )
    for name, port in ports.items():
        text += f'[venue.makers.{name}.chains.{CHAIN_ID}]\nurl = "http://127.0.0.1:{port}/1"\n'
        text += "prices_every_s = 0.5\ntokens_every_s = 1\npairs_every_s = 1\nblacklist_every_s = 1\n"
        if name in SOCKETS:
            text += f'ws_url = "ws://127.0.0.1:{port}/ws"\nstale_s = 3\n'
    return text


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


async def calmed(reading: Callable[[], int], before: int) -> None:
    """Wait until the reading is back at `before` or lower."""
    await until(lambda: reading() <= before, PATIENCE_S)


@pytest.mark.turns
async def test_chaos_among_makers_costs_nobody_else_anything(tmp_path: Path) -> None:
    async with a_market(tmp_path) as market:
        gc.collect()
        gc.freeze()  # as a venue that has warmed up
        tasks_before, descriptors_before = tasks(), descriptors()
        await market.bad.tell("chaos")
        async with trio.open_nursery() as nursery:
            for _ in range(STREAMS):
                nursery.start_soon(market.streams_go_on)
            nursery.start_soon(market.swaps_are_built)
            nursery.start_soon(market.the_mortal_dies)
            for maker in GRIDS:
                nursery.start_soon(market.prices_get_through, maker)
            most, longest = await market.measured()
        assert market.failures() >= 13 * 5
        assert most < PASSES_MAX
        assert longest < PASS_S_MAX
        gc.unfreeze()
        await market.bad.tell("calm")
        await until(market.all_live, PATIENCE_S)
        await calmed(tasks, tasks_before)
        await calmed(descriptors, descriptors_before)
        assert not any(feed.statistics().restarts for feed in market.place.feeds.values())
        for maker in GRIDS:
            told = market.place.desk.makers[maker].health.outcomes
            assert set(told) <= {"clean"}, told
        assert set(market.statuses) <= {200, 400}


class Gateway(MemoryMaker):
    """Several makers at one address; makers whose name begins with `hung` never answer."""

    async def _answer(self, stream: trio.abc.Stream, request: Request) -> None:
        if request.path.startswith(b"/hung"):
            await trio.sleep_forever()
        await super()._answer(stream, request)


async def test_makers_behind_one_gateway_do_not_take_each_others_connections(tmp_path: Path) -> None:
    async with served_devnet(tmp_path) as devnet, trio.open_nursery() as nursery:
        gateway = Gateway(nursery)
        gateway.contents = bad_makers.contents(devnet.text("WETH"), devnet.text("USDC"), 0, wide=False)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listen("127.0.0.1", 0)))
        nursery.start_soon(trio.serve_listeners, gateway.serve, [listener])
        port = listener.socket.getsockname()[1]
        more = "".join(
            f"[venue.makers.{name}.chains.{CHAIN_ID}]\n"
            f'url = "http://127.0.0.1:{port}/{name}"\nprices_every_s = 0.1\n'
            for name in ("hung-one", "hung-two", "hung-three", "sound")
        )
        async with serving(tmp_path, devnet, {}, more=more) as (app, _, _):
            feed = app.chains[CHAIN_ID].feeds["sound"]
            await until(lambda: feed.statistics().polls["prices"].answers > 10, PATIENCE_S)
            assert not any(one.failures for one in feed.statistics().polls.values())
            assert feed.statistics().cache.pairs == {PairStanding.LIVE: 1}
        nursery.cancel_scope.cancel()
