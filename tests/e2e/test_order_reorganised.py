"""A settlement that the chain takes back: the order is active again, and settled again, once."""

from pathlib import Path

import pytest

from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def test_a_settlement_that_is_taken_back_is_mined_again(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        before = await story.balances()
        record = await story.becomes(await story.submitted(await world.a_delta_order()), "COMPLETED")
        await world.chain.set_automine(on=False)
        await world.chain.reorganise(1)
        now = await story.undone(record)
        assert (now["transactions"], now["output"]["executedAmount"]) == ([], None)
        await story.mine()
        await story.becomes(record, "COMPLETED")
        await story.is_final(record)
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -ONE
        assert moved["user", "USDC"] == 2_500 * USDC
        assert len(story.agents["ann"].requests) == 1, "nothing is auctioned anew while it may be mined again"


async def test_a_settlement_that_is_lost_to_an_invalidated_nonce_is_cancelled(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        order = await world.a_delta_order()
        before = await story.balances()
        record = await story.becomes(await story.submitted(order), "COMPLETED")
        await world.chain.set_automine(on=False)
        await world.chain.reorganise(1)
        await story.undone(record)
        await story.gives_up_first(world.user, order.nonce)
        await story.mine()
        await story.becomes(record, "CANCELLED")
        await story.becomes_final(record)
        assert (await story.record(record["id"]))["status"] == "CANCELLED"
        moved = await story.moved_since(before)
        assert not {token for who, token in moved if who == "user"} - {"ETH"}
