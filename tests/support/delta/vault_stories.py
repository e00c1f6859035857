"""Delta stories beside a vault of WETH, a strategy of the venue's settings, in which the user has 3 shares.

async with a_vault_story(world, tmp_path) as story:
    await story.vault.earns(ONE)
    record = await story.story.submitted(await story.an_order())
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cambist.codecs.eip712_orders.delta import ProductiveOrder
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.signatures import to_compact64
from support.chain.world import ONE, World
from support.contracts.settling import Market
from support.contracts.vaults import Vault, a_vault
from support.delta.delta_stories import DeltaStory, Record, a_delta_story, stocked
from support.delta.resting_stories import Pairs, RestingStory, a_resting_story, stocked_with_maker
from support.venue.venue_role import CHAIN_ID

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
