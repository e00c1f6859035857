"""The makers' interface (spec 3.1 and 3.9) as a venue keeps it: times and texts of firm requests."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, USDC, World
from support.venue.venue_fronts import KEYS
from support.venue.venue_role import CHAIN_ID
from support.venue.venue_stories import Story, a_venue_story, makers_of

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOKS: dict[str, Any] = {"alpha": {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2510", "50"]]}}}


async def test_quotes_ask_no_maker_to_sign(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS) as story:
        for side, amount in (("SELL", ONE), ("BUY", 1_000 * USDC)):
            assert makers_of(await story.prices(side, "WETH", "USDC", amount)) == {"alpha"}
            assert makers_of((await story.quote(side, "WETH", "USDC", amount))["market"]) == {"alpha"}
        assert story.fronts["alpha"].asked == 0
        await story.build(await story.prices("SELL", "WETH", "USDC", ONE))
        assert story.fronts["alpha"].asked == 1, "the maker counts what it is asked"


@pytest.mark.parametrize(("side", "fixed"), [("SELL", "takerAmount"), ("BUY", "makerAmount")])
async def test_a_swap_is_built_of_one_firm_quote(world: World, tmp_path: Path, side: str, fixed: str) -> None:
    async with a_venue_story(world, tmp_path, BOOKS) as story:
        amount = ONE if side == "SELL" else 1_000 * USDC
        route = await story.prices(side, "WETH", "USDC", amount, partnerFeeBps=0)
        await story.build(route)
        (body,) = story.fronts["alpha"].bodies
        asked = msgspec.json.decode(body)
        (taker,) = await story.web.get("/adapters/contract-takers", network=CHAIN_ID)
        assert asked.keys() == {"makerAsset", "takerAsset", fixed, "userAddress", "takerAddress"}
        assert {name: asked[name].lower() for name in asked.keys() - {fixed}} == {
            "makerAsset": to_checksum(world.usdc).lower(),
            "takerAsset": to_checksum(world.weth).lower(),
            "userAddress": to_checksum(world.user.address).lower(),
            "takerAddress": taker.lower(),
        }
        exact = route["bestRoute"][0]["swaps"][0]["swapExchanges"][0]
        assert asked[fixed] == exact["srcAmount" if side == "SELL" else "destAmount"]


async def test_addresses_of_tokens_come_in_any_case(world: World, tmp_path: Path) -> None:
    """The maker lists its tokens in lower case, the venue has their checksums."""
    async with a_venue_story(world, tmp_path, BOOKS) as story:
        tokens = await told_by_alpha(story)
        address = tokens["tokens"]["WETH"]["address"]
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        assert address != route["srcToken"]
        assert address.lower() == route["srcToken"].lower()


async def told_by_alpha(story: Story) -> Any:
    """GET /tokens of the maker itself."""
    chain = story.web.makers["alpha"].chains[CHAIN_ID]
    return msgspec.json.decode(chain.board.tokens_body)


async def test_an_approval_of_the_router_backs_no_firm_quote(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS) as story:
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        await story.allow("USDC", 0, "alpha")
        await world.approve(KEYS["alpha"], world.usdc, world.at.router, 10**12)
        status, details = await story.not_built(route)
        assert (status, "alpha: unfunded" in details) == (400, True)
        await story.allow("USDC", 10**12, "alpha")
        assert (await story.swap(route))["user", "USDC"] == int(route["destAmount"])
