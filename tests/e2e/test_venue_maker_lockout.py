"""Strangers try to use up a maker's limits, and to push it out of routing; the maker is the kit's."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cambist.config.sections.maker import MakerPair
from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, World
from support.patience import FIRM
from support.venue.venue_role import CHAIN_ID
from support.venue.venue_stories import Route, Story, a_venue_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2510", "50"]]}}
}
OPEN_MAX = 10_000
"""USDC: four swaps of 1 WETH."""


def limited(_: str, ports: Mapping[str, int]) -> Mapping[str, Any]:
    """A maker with a bound of all that it has signed."""
    assert not ports
    pair = MakerPair(
        base="WETH", quote="USDC", liquidity_usd=Decimal(1_000_000), open_notional_max=str(OPEN_MAX)
    )
    return {"pairs": {"WETH/USDC": pair}}


async def sold(story: Story, amount: int = ONE) -> Route:
    return await story.prices("SELL", "WETH", "USDC", amount)


async def honest_swaps(story: Story, times: int = 4) -> None:
    """A user with funds fills what it has signed."""
    for _ in range(times):
        moved = await story.swap(await sold(story))
        assert moved["alpha", "WETH"] == ONE


async def test_strangers_without_funds_reserve_a_small_share_alone(world: World, tmp_path: Path) -> None:
    """Each way in: POST /transactions for somebody without anything, without checks too, and GET /swap."""
    async with a_venue_story(world, tmp_path, BOOKS, firm=f"{FIRM}\nunfilled_max = 64") as story:
        story.is_anonymous = True
        strangers = [to_checksum(bytes([number]) * 20) for number in range(1, 31)]
        for stranger in strangers[:3]:
            status, told = await story.ask_transaction(await sold(story), userAddress=stranger)
            assert (status, told["errorType"]) == (400, "InsufficientBalance")
        assert story.fronts["alpha"].asked == 0
        outcomes: list[str] = []
        reasons: list[str] = []
        for stranger in strangers:
            route = await sold(story)
            status, told = await story.ask_transaction(route, {"ignoreChecks": "true"}, userAddress=stranger)
            outcomes.append("" if status == 200 else told["errorType"])
            terms = {"srcToken": route["srcToken"], "destToken": route["destToken"], "amount": str(ONE)}
            swap = {"network": CHAIN_ID, "slippage": 100, "version": "6.2", "userAddress": stranger}
            status, told = await story.web.answer("/swap", **terms, **swap)
            outcomes.append("" if status == 200 else told["errorType"])
            reasons.append("" if status == 200 else told["details"])
        signed = outcomes.count("")
        assert 0 < signed <= 6, outcomes  # of 50 WETH, an eighth at most: a network's largest share
        assert set(outcomes) == {"", "RateLimited"}
        assert "(stock for nothing, of a network with much)" in reasons[-1]
        await honest_swaps(story)
        score = await story.score("alpha")
        assert (score["score"], score["reasons"], score["blockUntil"]) == (100, {}, None)


async def test_one_with_funds_who_never_fills_runs_out_and_rests_nobody(world: World, tmp_path: Path) -> None:
    """Alpha refuses what goes beyond its limits, which costs it neither score nor pair."""
    async with a_venue_story(
        world, tmp_path, BOOKS, changed=limited, firm=f"{FIRM}\nunfilled_max = 1"
    ) as story:
        story.is_anonymous = True
        await story.build(await sold(story, ONE // 2))
        of_ether = await story.prices("SELL", "ETH", "USDC", ONE // 2)
        status, told = await story.ask_transaction(of_ether)
        assert (status, told["errorType"]) == (429, "RateLimited")
        terms = {"network": CHAIN_ID, "slippage": 100, "version": "6.2", "amount": str(ONE // 2)}
        ends = {"srcToken": of_ether["srcToken"], "destToken": to_checksum(world.usdc)}
        user = to_checksum(world.user.address)
        status, told = await story.web.answer("/swap", **terms, **ends, userAddress=user)
        assert (status, told["errorType"]) == (429, "RateLimited"), "GET /swap counts as well"
        await story.pass_time(200)
        for _ in range(4):
            await story.build(await sold(story))
        status, told = await story.ask_transaction(await sold(story))
        assert (status, told["errorType"]) == (400, "NoRoute"), "the maker's limit"
        score = await story.score("alpha")
        assert (score["score"], score["reasons"], score["blockUntil"]) == (100, {"refused": 1}, None)
        assert [pair["blockUntil"] for pair in score["pairs"]] == [None]
        await story.pass_time(200)
        await honest_swaps(story)


async def test_what_is_filled_counts_for_nobody(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS, firm=f"{FIRM}\nunfilled_max = 1") as story:
        story.is_anonymous = True
        await honest_swaps(story, 6)
        await story.build(await sold(story, ONE // 10))
        status, told = await story.ask_transaction(await story.prices("SELL", "ETH", "USDC", ONE // 10))
        assert (status, told["errorType"]) == (429, "RateLimited")
        response = await story.web.ask("POST", f"/transactions/{CHAIN_ID}", b"{}")
        assert response.status == 400
        story.is_anonymous = False
        await story.build(await sold(story, ONE // 10))
