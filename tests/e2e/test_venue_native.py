"""Native tokens in and out over HTTP: native tokens are the transaction's value and arrive unwrapped."""

from pathlib import Path
from typing import Any

import pytest

from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, USDC, World
from support.venue.venue_stories import RECEIVER, a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOK: dict[str, Any] = {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2501", "50"]]}}


async def test_native_tokens_are_sold_and_sold_for(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        await story.allow("WETH", 0)  # native tokens need no approval
        route = await story.prices("SELL", "ETH", "USDC", ONE)
        built = await story.build(route)
        assert built["value"] == str(ONE)
        assert await story.send(built, route) == {
            ("user", "ETH"): -ONE,
            ("user", "USDC"): 2_499_750_000,
            ("vault", "USDC"): 250_000,
            ("alpha", "WETH"): ONE,
            ("alpha", "USDC"): -2_500 * USDC,
        }
        route = await story.prices("SELL", "USDC", "ETH", 2_501 * USDC)
        built = await story.build(route)
        assert built["value"] == "0"
        assert await story.send(built, route) == {
            ("user", "USDC"): -2_501 * USDC,
            ("user", "ETH"): ONE - ONE // 10_000,
            ("vault", "WETH"): ONE // 10_000,  # fees stay wrapped
            ("alpha", "USDC"): 2_501 * USDC,
            ("alpha", "WETH"): -ONE,
        }


async def test_a_purchase_gives_back_what_native_tokens_it_does_not_need(
    world: World, tmp_path: Path
) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        route = await story.prices("BUY", "ETH", "USDC", 2_500 * USDC)
        cost = ONE + ONE // 10_000
        assert route["srcAmount"] == str(cost)
        built = await story.build(route, slippage=300)
        assert built["value"] == str(cost * 10_300 // 10_000)
        assert await story.send(built, route, slippage=300) == {
            ("user", "ETH"): -cost,
            ("user", "USDC"): 2_500 * USDC,
            ("vault", "WETH"): ONE // 10_000,
            ("alpha", "WETH"): ONE,
            ("alpha", "USDC"): -2_500 * USDC,
        }


async def test_native_tokens_are_bought_for_another(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        route = await story.prices("BUY", "USDC", "ETH", ONE)
        moved = await story.swap(route, receiver=to_checksum(RECEIVER))
        assert moved == {
            ("user", "USDC"): -2_501_250_100,
            ("receiver", "ETH"): ONE,
            ("vault", "USDC"): 250_100,
            ("alpha", "USDC"): 2_501 * USDC,
            ("alpha", "WETH"): -ONE,
        }


async def test_the_value_is_neither_less_nor_more_than_what_is_sold(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        built = await story.build(await story.prices("SELL", "ETH", "USDC", ONE))
        for value in (ONE - 1, ONE + 1, 0):
            assert await story.reverted(built | {"value": str(value)}) == "WRONG_VALUE"
