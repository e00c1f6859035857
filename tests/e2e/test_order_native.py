"""Native tokens: given by a deposit for the order's hash, and received unwrapped."""

from pathlib import Path

import pytest

from cambist.codecs.contracts import delta_calldata
from cambist.codecs.eip712_orders.delta import KIND_BUY
from support.chain.world import NATIVE, ONE, USDC, World
from support.delta.delta_stories import a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def test_a_native_source_is_settled_from_its_deposit(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        order = await world.a_delta_order(src_token=NATIVE)
        status, refused = await story.submit(order)
        assert (status, refused["errorType"]) == (400, "InsufficientBalance")
        data = delta_calldata.deposit_native_and_pre_sign(world.delta_hash(order))
        await world.send(world.user, world.at.delta, data, value_wei=ONE)
        before = await story.balances()
        await story.becomes(await story.submitted(order), "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["delta", "ETH"] == -ONE
        assert moved["user", "USDC"] == 2_500 * USDC
        assert moved["agent", "WETH"] == ONE


async def test_a_purchase_gives_back_what_its_deposit_did_not_cost(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].takes = lambda _: ONE
        order = await story.market.a_purchase(src_token=NATIVE, kind=KIND_BUY)
        data = delta_calldata.deposit_native_and_pre_sign(world.delta_hash(order))
        await world.send(world.user, world.at.delta, data, value_wei=order.src_amount)
        before = await story.balances()
        record = await story.becomes(await story.submitted(order), "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "ETH"] == order.src_amount - ONE
        assert moved["delta", "ETH"] == -order.src_amount
        assert record["input"]["executedAmount"] == str(ONE)


async def test_a_native_destination_is_received_unwrapped(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: ONE
        order = await story.market.a_counter_order(dest_token=NATIVE)
        record, moved = await story.completed(order, world.taker)
        assert moved["taker", "ETH"] == ONE
        assert moved["taker", "USDC"] == -2_500 * USDC
        assert moved["agent", "WETH"] == -ONE
        assert record["output"]["executedAmount"] == str(ONE)
