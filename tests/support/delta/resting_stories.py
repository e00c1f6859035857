"""Limit orders beside a real market: a maker on a socket, the built-in agent on another, and who listens in.

async with a_resting_story(world, tmp_path, {"WETH/USDC": PRICES}) as story:
    record = await story.submitted(order, type="LIMIT")
    await story.rests(record)
    await story.quotes({"WETH/USDC": BETTER})
    await story.becomes(record, "COMPLETED")

The maker `alpha` is polled by the venue and by the agent `filler`, which bids its firm quotes. The agent
`ann` is asked whatever `filler` is; it bids nothing unless a story says so. Sweeps come ten times as often.

Delta stories beside a vault of WETH, a strategy of the venue's settings, in which the user has 3 shares.

async with a_vault_story(world, tmp_path) as story:
    await story.vault.earns(ONE)
    record = await story.story.submitted(await story.an_order())
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cambist.codecs.eip712_orders.delta import ProductiveOrder
from cambist.config.settings import parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.signatures import to_compact64
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.agent.app import opened_agent
from cambist.engine.trade.delta.resting import price_watch
from cambist.feeds.books.pair_index import PairIndex
from support.chain.world import ONE, USDC, World
from support.contracts.delta_agents import StoryAgent
from support.contracts.settling import Market, a_market
from support.contracts.vaults import Vault, a_vault
from support.delta.delta_stories import DeltaStory, Record, a_delta_story, running_delta, stocked
from support.makers.agent_role import agent_text
from support.patience import LATE_ROUND_S, until
from support.server.asked_front import listening
from support.venue.venue_role import (
    CHAIN_ID,
    DECIMALS,
    ENVIRON,
    MAKER_KEYS,
    SECRETS,
    devnet_of,
    running_makers,
    write_grids,
)

_SWEEP_S = 0.2
Pairs = Mapping[str, Mapping[str, Any]]

_MAKER = "alpha"
_VENUE = """
[venue.makers.alpha]
credentials = {{ domain = "venue", access_key = "key-1", secret = "env:ALPHA_SECRET" }}
[venue.makers.alpha.chains.{chain_id}]
url = "http://127.0.0.1:{maker}/{chain_id}"
prices_every_s = 0.05
[venue.agents.filler]
url = "http://127.0.0.1:{filler}"
credentials = {{ domain = "venue", access_key = "key-1", secret = "env:BETA_SECRET" }}
"""


def prices(bid: str, ask: str, amount: str = "50") -> dict[str, Any]:
    """A grid with one level on either side."""
    return {"bids": [[bid, amount]], "asks": [[ask, amount]]}


class RestingStory:
    """A Delta story with a market around it; what it has not is the story's.

    Attributes:
        story: venue, agents, balances.
        home: of the maker's prices.
    """

    def __init__(self, story: DeltaStory, home: Path) -> None:
        self.story = story
        self.home = home
        self.world = story.world
        self.web = story.web

    async def submitted(self, order: Any, **changed: Any) -> Record:
        """The record of a limit order that was taken."""
        return await self.story.submitted(order, type="LIMIT", **changed)

    async def becomes(self, record: Record, *statuses: str) -> Record:
        """As the story's."""
        return await self.story.becomes(record, *statuses)

    async def quotes(self, pairs: Pairs) -> None:
        """The maker quotes something else; returns at once."""
        write_grids(self.home, _MAKER, pairs)

    async def quoted(self, base: str, quote: str, bid: str) -> None:
        """Wait until the venue has this as the maker's best bid, and has looked at what rests since."""
        ends = self.story.tokens[base], self.story.tokens[quote]
        place = self.web.app.chains[CHAIN_ID]
        wanted = Fraction(bid) * 10 ** DECIMALS[quote] / 10 ** DECIMALS[base]
        await until(lambda: _rate(place.pathfinder.best_rate(*ends)) == wanted)
        await self._looked()

    async def rests(self, record: Record) -> str:
        """Wait until an order rests, and has been looked at; what is told of that."""
        await self.story.becomes(record, "ACTIVE")
        await self._looked()
        return await self.story.says(record, "resting")

    def looks(self) -> int:
        """Number of looks that the venue took at resting orders."""
        return self.web.app.delta.chains[CHAIN_ID].prices.statistics().looks

    async def _looked(self) -> None:
        """Wait for a whole look, from its beginning to its end, sweeps included."""
        before = self.looks()
        await until(lambda: self.looks() > before + 1)

    def asked(self) -> int:
        """Rounds so far."""
        return len(self.story.agents["ann"].requests)


@asynccontextmanager
async def a_resting_story(
    world: World,
    folder: Path,
    pairs: Pairs,
    *,
    market: Market | None = None,
    again_s: float = 0.1,
    policy: str = "",
    more: str = "",
) -> AsyncGenerator[RestingStory]:
    """A story whose books are live.

    Args:
        folder: for its state; a second story in the same folder is a restart.
        market: of the story before.
        again_s: the auctioneer's pause after a round without a settlement.
        policy: TOML of `[venue.delta]` that is added.
        more: TOML that is added to the venue's settings.
    """
    market = market or await stocked_with_maker(world)
    home = folder / "filler"
    home.mkdir(exist_ok=True)
    devnet = devnet_of(world, home)
    async with AsyncExitStack() as owned:
        owned.enter_context(patch.object(price_watch, "RESTING_SWEEP_S", _SWEEP_S))
        makers = await owned.enter_async_context(running_makers(folder, devnet, {_MAKER: pairs}))
        _, maker_port = makers[_MAKER]
        environ = ENVIRON | {"VENUE_SECRET": SECRETS["beta"]}
        text = agent_text(devnet, {_MAKER: maker_port})
        filler = await owned.enter_async_context(
            opened_agent(
                parse_settings(text, environ, home),
                environ=environ,
                folder=home,
                clock=WallClock(),
                chains={CHAIN_ID: world.chain},
            )
        )
        port = await owned.enter_async_context(listening(filler.run))
        text = _VENUE.format(chain_id=CHAIN_ID, maker=maker_port, filler=port)
        agents = {"ann": StoryAgent("ann", market)}
        delta = f"round_s = {LATE_ROUND_S}\nagain_s = {again_s}\nagain_s_max = {again_s}\n{policy}"
        async with running_delta(market, folder, agents, delta=delta, more=text + more) as story:
            resting = RestingStory(story, folder / f"maker-{_MAKER}")
            for index in (
                story.web.app.chains[CHAIN_ID].index,
                filler.chains[CHAIN_ID].makers.index,
            ):
                await until(partial(_has_books, index, len(pairs)))
            yield resting


async def stocked_with_maker(world: World) -> Market:
    """A market whose maker has WETH, USDC and DAI."""
    market = await a_market(world)
    key = MAKER_KEYS[_MAKER]
    await world.chain.set_balance(key.address, 2_000 * ONE)
    for token, amount in ((world.weth, 1_000 * ONE), (world.usdc, 10**6 * USDC), (world.dai, 10**6 * ONE)):
        await world.give(key, token, amount, world.at.rfq)
    return market


def _has_books(index: PairIndex, count: int) -> bool:
    return len(list(index.books())) == count


def _rate(found: tuple[int, int] | None) -> Fraction:
    return Fraction(0) if found is None else Fraction(*found)


HOUR_S = 3_600
STRATEGY = """
[[chains.{chain_id}.strategies]]
vault = "{vault}"
name = "Fickle WETH"
fee_bps = 1000
"""


class VaultStory:
    """A Delta story with a vault.

    Attributes:
        story: venue, agents, balances; the vault's shares are the token `SHARE`.
    """

    def __init__(self, story: DeltaStory, vault: Vault) -> None:
        self.story = story
        self.vault = vault
        self.market: Market = story.market
        story.tokens["SHARE"] = vault.address

    async def an_order(self, **changed: Any) -> ProductiveOrder:
        """The user sells one share for 2,400 USDC at least, 2,500 expected; `changed` are members."""
        terms: dict[str, Any] = {"strategy": self.vault.address, "use_shares": True, "shares": ONE}
        return await self.market.a_productive_order(**terms | changed)


class BuiltStory:
    """A resting story with a vault, whose orders are quoted and built over HTTP.

    Attributes:
        resting: venue, maker, agents.
    """

    def __init__(self, resting: RestingStory, vault: Vault) -> None:
        self.resting = resting
        self.story = resting.story
        self.world = resting.world
        self.vault = vault

    async def build(self, **body: Any) -> tuple[int, Any]:
        """Status and JSON of a build on a quote of one WETH for USDC; `body` are members of it."""
        web, world = self.story.web, self.world
        quote = await web.get("/v2/quote", **web.selling("WETH", 1, "USDC", mode="DELTA"))
        given = {
            "route": quote["delta"]["route"],
            "owner": to_checksum(world.user.address),
            "deadline": await world.now_s() + HOUR_S,
        }
        return await web.post("/v2/delta/orders/build", given | body)

    async def placed(self, built: Any, signature: str = "", **body: Any) -> Record:
        """The record of a built order, which the user has signed and submitted.

        Args:
            signature: of `toSign`; the user's unless given.
        """
        digest = bytes.fromhex(built["orderHash"][2:])
        sent = {
            "chainId": CHAIN_ID,
            "order": built["toSign"]["value"],
            "signature": signature or to_hex(to_compact64(*self.world.user.sign(digest))),
            "partner": "anon",
        }
        status, told = await self.story.web.post("/v2/delta/orders", sent | body)
        assert status == 200, told
        record: Record = told
        return record


def strategy_text(vault: bytes) -> str:
    """The vault as a strategy of the venue's settings."""
    return STRATEGY.format(chain_id=CHAIN_ID, vault=to_checksum(vault))


@asynccontextmanager
async def a_vault_story(
    world: World, folder: Path, *, before: VaultStory | None = None
) -> AsyncGenerator[VaultStory]:
    """A story with the agent `ann` and a vault; `before` is one on the same world, which has ended."""
    market = await stocked(world) if before is None else before.market
    vault = await a_vault(world) if before is None else before.vault
    text = strategy_text(vault.address)
    async with a_delta_story(world, folder, "ann", more=text, market=market) as story:
        yield VaultStory(story, vault)


@asynccontextmanager
async def a_built_story(world: World, folder: Path, pairs: Pairs) -> AsyncGenerator[BuiltStory]:
    """A story whose books are live, with a vault."""
    market = await stocked_with_maker(world)
    vault = await a_vault(world)
    more = strategy_text(vault.address)
    async with a_resting_story(world, folder, pairs, market=market, more=more) as resting:
        resting.story.tokens["SHARE"] = vault.address
        yield BuiltStory(resting, vault)
