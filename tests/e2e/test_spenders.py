"""Spenders (spec 1.3): an allowance for one contract authorises no other way to trade."""

from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts import calldata
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.rfq_stories import TRANSFER_FAILED, funded, refusal
from support.delta.delta_stories import a_delta_story
from support.venue.venue_stories import a_venue_story

BOOKS: dict[str, Any] = {"alpha": {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2510", "50"]]}}}
CONTRACTS = ("delta", "router", "rfq")


async def allow_all_but(world: World, name: str, owner: Any) -> None:
    """Allow all contracts except `name` to spend the owner's WETH."""
    for contract in CONTRACTS:
        amount = 0 if contract == name else MOST
        await world.approve(owner, world.weth, getattr(world.at, contract), amount)


@pytest.mark.one_chain
async def test_a_market_swap_needs_the_routers(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS) as story:
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        built = await story.build(route)
        await allow_all_but(world, "router", world.user)
        status, details = await story.not_built(route)
        assert (status, details.partition(":")[0]) == (400, "InsufficientAllowance")
        assert await story.reverted(built) == "TRANSFER_FROM_FAILED"
        await world.approve(world.user, world.weth, world.at.router, ONE)
        assert (await story.send(built, route))["user", "USDC"] == int(route["destAmount"])


@pytest.mark.one_chain
async def test_a_delta_order_needs_deltas(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        order = await world.a_delta_order()
        await allow_all_but(world, "delta", world.user)
        status, told = await story.submit(order)
        assert (status, told["errorType"]) == (400, "InsufficientAllowance")
        await world.approve(world.user, world.weth, world.at.delta, ONE)
        _, moved = await story.completed(order)
        assert moved["user", "USDC"] == 2_500 * USDC


async def test_an_otc_fill_needs_the_rfq_contracts(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    fill = calldata.fill_order(order, world.signed(order))
    await allow_all_but(world, "rfq", world.taker)
    assert await refusal(world, world.taker, fill, order) == TRANSFER_FAILED
    await world.approve(world.taker, world.weth, world.at.rfq, ONE)
    assert (await world.send(world.taker, world.at.rfq, fill)).succeeded
