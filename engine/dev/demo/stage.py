"""The stage of the demo: the market place of `cambist up` with fixed prices, a clock that jumps, balances.

All roles run in this process and share a clock, so that a scene can let minutes pass at once. A scene changes
a maker's prices by the maker's file, as a desk would.
"""

import os
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import trio
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from ....codecs.amounts import format_units
from ....codecs.contracts.calldata import balance_of
from ....codecs.messages.maker_messages import PriceGrid
from ....config.chains import ChainSettings
from ....crypto.secp256k1 import SigningKey
from ....feeds.books.book import build_book
from ....feeds.books.pair_index import PairIndex
from ....feeds.supervisor import MakerFeed
from ...chain.port import DevChain, EthCall
from ...host.process.clock import WallClock
from ...trader.client.public.results import DeltaOrderState
from ...trader.client.public.venue import Venue
from ..devnet.bridge_places import bridge_keys
from ..place.layout import CHAIN_ID, FAR_CHAIN_ID, SHARES, VENUE, Layout
from ..place.up import UpOptions, UpPlace, running_up

WAIT_S = 60.0
"""Longest wait for an answer or an event of the demo, seconds: long enough for a busy machine."""
FILL_WITHIN_S = 120
"""Seconds after which a transfer by Across that nobody has filled is refunded."""
SIZE = "20"
"""Amount of the base token that a maker offers at each price, whole tokens as decimal text."""
PRICES = {
    "alpha": {"WETH/USDC": ("2500", "2501"), "WBTC/USDC": ("59900", "60200")},
    "beta": {"WETH/USDC": ("2498", "2503"), "DAI/USDC": ("0.9999", "1.0001")},
    "gamma": {"WBTC/USDC": ("59950", "60000"), "DAI/USDC": ("0.9998", "1.0002")},
}
"""Name of a maker -> its pairs -> best bid and best ask."""
PEOPLE = {"deployer": 0, "relayer": 1, "user": 2, "taker": 3, "stranger": 4, "desk": 5, "borrower": 6}
"""Name of a person -> index of its account on the devnet."""
_CONTRACTS = ("fee_vault", "spoke_pool", "vault", "router", "executor", "delta", "rfq")
_TOKENS = ("WETH", "USDC", "WBTC", "DAI")
THERE = ", there"
"""Ending of the name of an account on the second chain."""

_PRICES_FILE = "prices.json"
_STATIC = f"""
price_source = "static"
price_options.path = "{_PRICES_FILE}"
price_options.refresh_ms = 100
"""
_PATIENT = "soft_s = 10\nhard_s = 12\n"
_ROUND = "[venue.delta]\nround_s = 15\n"
_STALE_S = 300  # longer than the demo moves the clock, so that books and chain reads do not become stale
_NS = 10**9
LOOK_S = 0.05

Balances = dict[tuple[str, str], int]
"""(name of an account, symbol of a token, or ETH) -> raw units."""
BalanceMoves = Mapping[str, Mapping[str, int]]
"""Name of an account -> symbol -> change of its balance, raw units; without unchanged balances."""


def expect(what: str, found: object, wanted: object) -> None:
    """Check a result of a scene.

    Raises:
        AssertionError: the result differs.
    """
    if found != wanted:
        raise AssertionError(f"{what}: expected {wanted}, got {found}")


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, which is evaluated every 50 ms.

    Raises:
        trio.TooSlowError: the condition does not hold within WAIT_S seconds.
    """
    with trio.fail_after(WAIT_S):
        while not condition():  # noqa: ASYNC110  counters and books of others have no event
            await trio.sleep(LOOK_S)


class PassingClock(WallClock):
    """Wall clock that all roles share, and that the demo can move forward."""

    __slots__ = ("_ahead_ns",)

    def __init__(self) -> None:
        self._ahead_ns = 0
        super().__init__(
            lambda: time.time_ns() + self._ahead_ns, lambda: time.monotonic_ns() + self._ahead_ns
        )

    def put_forward(self, to_s: int) -> None:
        """Move the clock forward to a time, Unix seconds; no effect if that time has passed."""
        self._ahead_ns += max(to_s * _NS - self.now_ms() * 1_000_000, 0)


class DemoStage(Struct, frozen=True):
    """The running market place, and the clients by which the scenes use it.

    Attributes:
        folder: folder with a subfolder for each role.
        venue: the public client, which all traders share.
        http: plain HTTP client, for requests that the public client does not offer.
    """

    console: Console
    folder: Path
    clock: PassingClock
    place: UpPlace
    venue: Venue
    http: httpx.AsyncClient

    @property
    def url(self) -> str:
        """URL of the venue."""
        return f"http://127.0.0.1:{self.place.layout.ports[VENUE]}"

    @property
    def node(self) -> str:
        """URL of the first chain's JSON-RPC."""
        return self.place.layout.near.url

    @property
    def near(self) -> DevChain:
        """The first chain, which all roles serve."""
        return self.place.near

    def at(self, name: str) -> bytes:
        """Address of a contract or token on the first chain, 20 bytes, e.g. `rfq`, `router`, `WETH`."""
        return self.place.layout.near.at(name)

    def key(self, name: str) -> SigningKey:
        """Key of a person or a maker."""
        return self.place.keys[PEOPLE[name] if name in PEOPLE else 7 + list(PRICES).index(name)]

    def say(self, line: str) -> None:
        """Print a result."""
        self.console.print(f"  {line}", highlight=False, soft_wrap=True)

    def tell(self, line: str) -> None:
        """Print a line of progress."""
        self.console.print(f"    {line}", style="dim", highlight=False, soft_wrap=True)

    # --- What the venue and the chains say ------------------------------------------------------------

    async def json(self, method: str, url: str, body: object = None) -> Any:
        """Ask an HTTP endpoint; return the JSON of its answer, whatever the status."""
        answer = await self.http.request(method, url, json=body, timeout=WAIT_S)
        return answer.json()

    async def rpc(self, url: str, method: str, *params: object) -> Any:
        """Call a JSON-RPC method of a chain or of the bridges; return its result."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return (await self.json("POST", url, body))["result"]

    async def settled(self, order: DeltaOrderState | str) -> DeltaOrderState:
        """Follow a Delta order to its end; return its state, which the client has proven on chain.

        Raises:
            AssertionError: the order is not settled.
        """
        end = await self.venue.follow(order, timeout_s=WAIT_S)
        if not end.is_settled:
            raise AssertionError(f"it is not settled: {end.status} {end.reason}")
        return end

    async def reason(self, order: DeltaOrderState, code: str, before: str = "") -> str:
        """Ask the venue why an order has not ended, until its first reason has this code; return the text.

        Args:
            before: earlier text of the reason, which is not accepted again.

        Raises:
            trio.TooSlowError: the venue does not give this reason within WAIT_S seconds.
        """
        with trio.fail_after(WAIT_S):
            while True:
                reasons = (await self.venue.explain(order)).reasons
                if reasons and reasons[0].code == code and reasons[0].text != before:
                    return reasons[0].text
                await trio.sleep(LOOK_S)

    async def bids(self, order: DeltaOrderState) -> list[dict[str, Any]]:
        """Bids of an order's latest auction round, best first, as GET /v2/delta/auctions/ID shows them."""
        auction_id = (await self.venue.explain(order)).last_rounds[0].auction_id
        auction = await self.json("GET", f"{self.url}/v2/delta/auctions/{auction_id}")
        (of_order,) = [each for each in auction["orders"] if each["orderHash"] == order.order_hash]
        return list(of_order["bids"])

    # --- Balances -------------------------------------------------------------------------------------

    async def balances(self) -> Balances:
        """Read the balances of everybody whom a scene may concern, on both chains."""
        layout, keys = self.place.layout, self.place.keys
        people = {name: self.key(name).address for name in (*PEOPLE, *PRICES)}
        people["carrier"] = bridge_keys(keys[0]).relayer.address
        here = people | {name: self.at(name) for name in _CONTRACTS}
        there = people | {"spoke_pool": layout.far.at("spoke_pool")}
        found = await _balances(self.near, here, {each: self.at(each) for each in _TOKENS})
        found |= await _balances(self.near, {"user": people["user"]}, {SHARES: self.at("vault")})
        far = await _balances(self.place.far, there, {each: layout.far.at(each) for each in layout.bridged})
        found |= {(who + THERE, symbol): amount for (who, symbol), amount in far.items()}
        return found | {(who, "ETH"): await self.near.balance(self.key(who).address) for who in PEOPLE}

    async def moves(self, before: Balances) -> BalanceMoves:
        """Compare the balances with earlier ones, and print whose tokens have moved.

        Raises:
            AssertionError: tokens were lost or made: the moves of a token on both chains do not add up to 0.
        """
        after, found, sums = await self.balances(), defaultdict[str, dict[str, int]](dict), Counter[str]()
        for (who, symbol), amount in after.items():
            if moved := amount - before[who, symbol]:
                found[who][symbol] = moved
                sums[symbol] += moved
        for who, of in found.items():
            if tokens := [self._signed(moved, symbol) for symbol, moved in of.items() if symbol != "ETH"]:
                self.say(f"{who.replace('_', ' '):16}{', '.join(tokens)}")
        expect("tokens that were lost or made", [each for each in _TOKENS if sums[each]], [])
        return found

    def _signed(self, amount: int, symbol: str) -> str:
        """An amount with its sign, in whole tokens; shares of the vault with the decimals of its asset."""
        decimals = self.place.layout.near.decimals("USDC" if symbol == SHARES else symbol)
        return f"{'-' if amount < 0 else '+'}{format_units(abs(amount), decimals)} {symbol}"

    # --- Prices and time ------------------------------------------------------------------------------

    async def quote(self, maker: str, pair: str, bid: str, ask: str) -> None:
        """Change a maker's prices for a pair, and wait until venue and agents have received them."""
        write_prices(self.folder, maker, PRICES[maker] | {pair: (bid, ask)})
        base, quote = pair.split("/")
        decimals = self.place.layout.near.decimals
        book = build_book(_grid(bid, ask), decimals(base), decimals(quote))
        wanted = maker, self.at(base), self.at(quote), book
        await until(
            lambda: all(
                maker not in feeds
                or any((live.maker, live.base, live.quote, live.book) == wanted for live in index.books())
                for feeds, index in self._readers()
            )
        )
        self.say(f"{maker} bids {bid} and asks {ask} for {pair} now")

    async def pass_time(self, to_s: int) -> None:
        """Move the time of the chains and of all roles forward, and wait until all are ready again.

        Afterwards each chain has enough new blocks to make all its earlier blocks final.

        Args:
            to_s: the time to move to, which is also the time of the next blocks, Unix seconds.
        """
        chains = (self.near, self.place.far)
        for chain in chains:
            await chain.set_time(to_s)
            await chain.mine()
        self.clock.put_forward(to_s)
        for chain in chains:
            for _ in range(ChainSettings(name="devnet").confirmations):
                await chain.mine()  # new heads, which the roles see at the new time
        await self.live()
        if self.place.roles.venue:
            self.place.roles.venue.delta.scheduler.at(0, "time has passed", lambda: None)

    async def live(self) -> None:
        """Wait until venue and makers are ready, and venue and agents have all books of the makers.

        A maker's WebSocket, if any, has to be open: its readers drop the books a moment after it has closed.
        """
        roles = self.place.roles
        apps = [role for role in (roles.venue, *roles.makers.values()) if role is not None]
        await until(
            lambda: (
                not any(app.not_ready() for app in apps)
                and all(
                    len(list(index.books())) == sum(len(PRICES[maker]) for maker in feeds)
                    and all(_is_up(feed) for feed in feeds.values())
                    for feeds, index in self._readers()
                )
            )
        )

    def _readers(self) -> list[tuple[Mapping[str, MakerFeed], PairIndex]]:
        """For the venue and each agent that runs here: its feeds by maker, and its index of the books."""
        roles = self.place.roles
        makers = [agent.chains[CHAIN_ID].makers for agent in roles.agents.values()]
        served = [] if roles.venue is None else [roles.venue.chains[CHAIN_ID]]
        return [(each.feeds, each.index) for each in (*served, *makers)]


def _is_up(feed: MakerFeed) -> bool:
    """Whether a maker's WebSocket, if it has one, is open and its first message applied."""
    stream = feed.statistics().stream
    return stream is None or stream.is_up


async def _balances(chain: DevChain, people: Mapping[str, bytes], tokens: Mapping[str, bytes]) -> Balances:
    holdings = {(who, symbol): (people[who], tokens[symbol]) for who in people for symbol in tokens}
    calls = [EthCall(token, balance_of(address)) for address, token in holdings.values()]
    return {
        key: int.from_bytes(await chain.call(call), "big") for key, call in zip(holdings, calls, strict=True)
    }


def _grid(bid: str, ask: str) -> PriceGrid:
    return PriceGrid(bids=((bid, SIZE),), asks=((ask, SIZE),))


def write_prices(folder: Path, maker: str, prices: Mapping[str, tuple[str, str]]) -> None:
    """Write the file from which a maker takes its prices: pair -> bid and ask."""
    path = folder / maker / _PRICES_FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode({"prices": {pair: _grid(*ends) for pair, ends in prices.items()}}))
    new.rename(path)


def _planned(layout: Layout) -> Layout:
    """The layout of `cambist up` with prices from files, and with longer time limits for a busy machine."""
    return replace(
        layout,
        makers={
            name: replace(plan, prices=_STATIC, far_pairs=(), far_prices="")
            for name, plan in layout.makers.items()
        },
        bridges={"across": f"fill_within_s = {FILL_WITHIN_S}", "cctp": 'tier = "fast"'},
        stale_s=_STALE_S,
        venue=layout.venue.replace("[venue.firm]\n", f"[venue.firm]\n{_PATIENT}") + _ROUND,
        agent=f"\n[agent.firm]\n{_PATIENT}",
    )


@asynccontextmanager
async def open_stage(console: Console, folder: Path) -> AsyncIterator[DemoStage]:
    """Context manager: run the market place of `cambist up` in a folder, with clients of its venue."""
    # Before the roles start: `running_up` waits for the books that the makers make of these files.
    for maker, prices in PRICES.items():
        write_prices(folder, maker, prices)
    wanted = UpOptions(
        folder=folder,
        is_kept=False,
        port=0,
        devnet_port=0,
        block_time_s=0,
        anvil=False,
        without=frozenset(),
    )

    def tell(line: str) -> None:
        stage.tell(line)  # bound once the venue's client is open, which tells nothing before

    clock = PassingClock()
    async with running_up(wanted, os.environ, clock, _planned) as place:
        layout = place.layout
        url, others = f"http://127.0.0.1:{layout.ports[VENUE]}", {FAR_CHAIN_ID: layout.far.url}
        async with (
            Venue.open(url, CHAIN_ID, rpc=layout.near.url, others=others, tell=tell) as venue,
            httpx.AsyncClient() as http,
        ):
            stage = DemoStage(
                console=console, folder=folder, clock=clock, place=place, venue=venue, http=http
            )
            await stage.live()
            yield stage
