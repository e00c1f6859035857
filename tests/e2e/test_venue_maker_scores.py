"""A maker that keeps failing is left alone for a while: it reads why and until when, and comes back."""

from pathlib import Path
from typing import Any

import pytest

from support.patience import FIRM, until
from support.venue_stories import Story, a_venue_story
from support.world import ONE, World

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {
        "WETH/USDC": {"bids": [["2505", "50"]], "asks": [["2506", "50"]]},
        "WETH/DAI": {"bids": [["2505", "50"]], "asks": [["2506", "50"]]},
    },
    "beta": {
        "WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2511", "50"]]},
        "WETH/DAI": {"bids": [["2500", "50"]], "asks": [["2511", "50"]]},
    },
}
RESTS = f"{FIRM}\nrest_s = 20\nrest_s_max = 25"


async def a_failure(story: Story) -> None:
    """A swap of WETH for USDC that alpha was to fill."""
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    moved = await story.swap(route)
    assert moved["beta", "WETH"] == ONE


def pairs_of(story: Story, maker: str) -> int:
    """How many of a maker's pairs are routed."""
    index = story.web.app.places[story.world.chain.chain_id].index
    return sum(live.maker == maker for live in index.books())


async def back(story: Story, seconds: float) -> None:
    """Time passes, and all of alpha's pairs are routed again."""
    await story.pass_time(seconds)
    await until(lambda: pairs_of(story, "alpha") == len(BOOKS["alpha"]))


async def test_a_pair_that_failed_rests_and_comes_back(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        story.fronts["alpha"].habit = "refuses"
        began_ms = story.clock.now_ms()
        await a_failure(story)
        score = await story.score("alpha")
        assert (score["score"], score["quotes"], score["reasons"]) == (0, 1, {"refused": 1})
        assert score["blockUntil"] is None, "the other pair goes on"
        (pair,) = score["pairs"]
        assert {text.lower() for text in pair["tokens"]} == {
            f"0x{world.weth.hex()}",
            f"0x{world.usdc.hex()}",
        }
        assert (pair["score"], pair["reasons"]) == (0, {"refused": 1})
        assert began_ms + 20_000 <= pair["blockUntil"] <= story.clock.now_ms() + 20_000
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"beta"}
        assert await story.quoted_by("SELL", "WETH", "DAI", ONE) == {"alpha"}
        story.fronts["alpha"].habit = ""
        await back(story, 20)
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
        (pair,) = (await story.score("alpha"))["pairs"]
        assert pair["blockUntil"] is None
        moved = await story.swap(await story.prices("SELL", "WETH", "USDC", ONE))
        assert moved["alpha", "WETH"] == ONE
        score = await story.score("alpha")
        assert (score["score"], score["quotes"], score["reasons"]) == (50, 2, {"refused": 1})


async def test_a_maker_that_fails_on_and_on_rests_with_all_its_pairs(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        front = story.fronts["alpha"]
        ways = ["refuses", "babbles", "signs wrongly", "cuts", "refuses", "refuses"]
        for number, front.habit in enumerate(ways):
            if number:
                await back(story, 25)
            assert await story.quoted_by("SELL", "WETH", "DAI", ONE) == {"alpha"}
            await a_failure(story)
        score = await story.score("alpha")
        assert score["reasons"] == {"refused": 3, "invalid": 2, "unavailable": 1}
        assert score["score"] == 0
        assert score["blockUntil"] > story.clock.now_ms()
        for dest in ("USDC", "DAI"):
            assert await story.quoted_by("SELL", "WETH", dest, ONE) == {"beta"}
        front.habit = ""
        await back(story, 25)
        assert (await story.score("alpha"))["blockUntil"] is None
        for dest in ("USDC", "DAI"):
            assert await story.quoted_by("SELL", "WETH", dest, ONE) == {"alpha"}
            moved = await story.swap(await story.prices("SELL", "WETH", dest, ONE))
            assert moved["alpha", "WETH"] == ONE


@pytest.mark.parametrize("cause", ["the user's bound", "the user's blacklisting", "the user's funds"])
async def test_what_lies_with_the_user_is_not_the_makers_fault(
    world: World, tmp_path: Path, cause: str
) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOKS["alpha"]}, firm=RESTS) as story:
        front = story.fronts["alpha"]
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        slippage = 100
        if cause == "the user's bound":
            front.habit, front.worse_bps, slippage = "drifts", 40, 10
        elif cause == "the user's blacklisting":
            front.habit = "blacklists"
        else:
            await story.allow("WETH", 0)
        status, _ = await story.not_built(route, slippage=slippage)
        assert status == 400
        score = await story.score("alpha")
        assert (score["score"], score["reasons"], score["blockUntil"]) == (100, {}, None)
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
