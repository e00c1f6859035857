"""Two venues share a maker: the callers of one reserve its stock, and the other is not the one that pays."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cambist.config.sections.maker import MakerPair
from cambist.crypto.hmac_auth import RequestSigner
from support.chain.world import ONE, World
from support.venue.venue_role import ENVIRON
from support.venue.venue_stories import Story, a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2510", "50"]]}}
}
OPEN_MAX = 20_000
"""USDC: eight swaps of 1 WETH, of which each of two venues finds two."""


def limited(_: str, ports: Mapping[str, int]) -> Mapping[str, Any]:
    """A maker with a bound of all that it has signed."""
    assert not ports
    pair = MakerPair(
        base="WETH", quote="USDC", liquidity_usd=Decimal(1_000_000), open_notional_max=str(OPEN_MAX)
    )
    return {"pairs": {"WETH/USDC": pair}}


async def sold(story: Story, amount: int = ONE) -> None:
    """The user sells WETH to alpha by our venue."""
    moved = await story.swap(await story.prices("SELL", "WETH", "USDC", amount))
    assert moved["alpha", "WETH"] == amount


async def emptied(story: Story) -> int:
    """Have callers of the other venue reserve all that the maker gives them: how many half WETHs."""
    front = story.fronts["alpha"]
    other = RequestSigner("other", "key-1", ENVIRON["ALPHA_SECRET"].encode())
    for taken in range(100):
        now_ms = story.clock.now_ms() + taken
        if await front.asked_by_another(other, now_ms, takerAmount=str(ONE // 2)) != 200:
            return taken
    pytest.fail("nothing bounds the other venue")


async def test_the_callers_of_one_venue_leave_a_part_of_a_makers_stock_to_another(
    world: World, tmp_path: Path
) -> None:
    async with a_venue_story(world, tmp_path, BOOKS, changed=limited) as story:
        await sold(story)
        assert await emptied(story) == 12, "three quarters"
        await sold(story)


async def test_refusals_that_callers_of_another_venue_cause_cost_a_maker_no_standing(
    world: World, tmp_path: Path
) -> None:
    """A swap of more than what is left is refused: the maker is asked for less, and for all once it can."""
    async with a_venue_story(world, tmp_path, BOOKS, changed=limited) as story:
        await sold(story)
        await emptied(story)
        for _ in range(3):
            status, _ = await story.ask_transaction(await story.prices("SELL", "WETH", "USDC", 3 * ONE))
            assert status != 200
            await story.pass_time(20)
            await emptied(story)
        score = await story.score("alpha")
        assert (score["score"], score["blockUntil"]) == (100, None)
        assert [pair["blockUntil"] for pair in score["pairs"]] == [None]
        await sold(story)
        await story.pass_time(1_000)
        await sold(story, 3 * ONE)
