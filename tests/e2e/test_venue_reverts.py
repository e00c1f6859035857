"""Documented error that a user reads when a built swap fails on the chain."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts.abi import address_word, selector, uint_word
from support.chain.world import ONE, USDC, World
from support.contracts.swapping import UNFILLED
from support.venue.venue_stories import Story, a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

SET_TRANSFER_FEE = selector("setTransferFee(uint256)")
SET_BLOCKED = selector("setBlocked(address,bool)")
BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2501", "50"]]}},
    "beta": {"DAI/USDC": {"bids": [["0.9", "9"]], "asks": [["1", "800"]]}},
    "gamma": {"DAI/USDC": {"bids": [["0.9", "9"]], "asks": [["1.1", "500000"]]}},
}


@pytest.fixture
async def story(world: World, tmp_path: Path) -> AsyncIterator[Story]:
    async with a_venue_story(world, tmp_path, BOOKS) as story:
        yield story


async def test_insufficient_output(story: Story) -> None:
    """Beta, with the best price for a small part, takes its allowance back: gamma's spare part stands in."""
    route = await story.prices("SELL", "WETH", "DAI", 40 * ONE)
    strict = await story.build(route, slippage=5)
    loose = await story.build(route, slippage=100)
    await story.allow("DAI", 0, "beta")
    assert await story.reverted(strict) == "INSUFFICIENT_OUTPUT"
    moved = await story.send(loose, route)
    assert ("beta", "DAI") not in moved
    assert moved["user", "DAI"] < int(route["destAmount"])


async def test_a_token_that_begins_to_keep_a_part_of_what_is_sent(story: Story) -> None:
    """The fill is refused, so that no user gets less than the bound."""
    world = story.world
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    built = await story.build(route)
    await world.send(world.stranger, world.usdc, SET_TRANSFER_FEE + uint_word(100))
    assert UNFILLED in await story.reverted(built)
    status, details = await story.not_built(route)
    assert status == 400
    assert details.startswith("Simulation failed: ")


async def test_transfer_from_failed(story: Story) -> None:
    for side, amount in (("SELL", ONE), ("BUY", 2_500 * USDC)):
        route = await story.prices(side, "WETH", "USDC", amount)
        built = await story.build(route)
        await story.allow("WETH", ONE - 1)
        assert await story.reverted(built) == "TRANSFER_FROM_FAILED"
        status, details = await story.not_built(route)
        assert (status, details.partition(":")[0]) == (400, "InsufficientAllowance")
        await story.allow("WETH", 200 * ONE)
        assert (await story.send(built, route))["user", "USDC"] == int(route["destAmount"])


async def test_transfer_from_failed_where_what_was_there_is_gone(story: Story) -> None:
    world = story.world
    route = await story.prices("SELL", "WETH", "USDC", 100 * ONE // 3)
    built = await story.build(route)
    for _ in range(2):
        await story.swap(route)
    await story.swap(await story.prices("SELL", "WETH", "USDC", 100 * ONE // 3 + 1))
    assert await world.balance(world.weth, world.user) < ONE
    assert await story.reverted(built) == "TRANSFER_FROM_FAILED"
    status, details = await story.not_built(route)
    assert (status, details.partition(":")[0]) == (400, "InsufficientBalance")


async def test_a_token_that_blocks_the_user(story: Story) -> None:
    world = story.world
    route = await story.prices("SELL", "USDC", "WETH", 2_501 * USDC)
    built = await story.build(route)
    blocked = SET_BLOCKED + address_word(world.user.address) + uint_word(1)
    await world.send(world.stranger, world.usdc, blocked)
    assert await story.reverted(built) == "TRANSFER_FROM_FAILED"
    assert await story.not_built(route) == (400, "Simulation failed: TRANSFER_FROM_FAILED")


async def test_a_maker_that_takes_back_what_it_promised(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    built = await story.build(route)
    await story.allow("USDC", 0, "alpha")
    assert await story.reverted(built) == f"StepFailed(step 0, reason {UNFILLED})"
    status, details = await story.not_built(route)
    assert status == 400
    assert details.startswith("No route")
    assert "alpha: unfunded" in details
