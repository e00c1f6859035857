"""A purchase: the user gets what is wanted, and pays what it costs and no more."""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def test_a_purchase_is_settled_by_who_takes_least(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        story.agents["ann"].takes = lambda _: ONE
        story.agents["bob"].takes = lambda _: 101 * ONE // 100
        record, moved = await story.completed(await story.market.a_purchase())
        assert moved == {
            ("user", "WETH"): -ONE,
            ("user", "USDC"): 2_500 * USDC,
            ("agent", "WETH"): ONE,
            ("agent", "USDC"): -2_500 * USDC,
        }
        assert record["side"] == "BUY"
        assert record["input"]["executedAmount"] == str(ONE)
        assert record["input"]["maxAmount"] == str(11 * ONE // 10)
        assert record["output"]["amount"] == str(2_500 * USDC)
        await story.heard("bob", record, "lost")


async def test_a_purchase_that_costs_more_than_signed_settles_nothing(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.takes = lambda order: int(order.src_amount) + 1
        before = await story.balances()
        record = await story.submitted(await story.market.a_purchase())
        await story.heard("ann", record, "belowLimit")
        assert await story.balances() == before
        ann.takes = lambda order: int(order.src_amount)
        record = await story.becomes(record, "COMPLETED")
        assert record["input"]["executedAmount"] == str(11 * ONE // 10)


async def test_a_user_who_has_what_it_costs_buys_though_it_may_cost_more(
    world: World, tmp_path: Path
) -> None:
    """1.05 WETH are there, the order says 1.1 at most, and it costs 1."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        has = await world.balance(world.weth, world.user)
        give_away = calldata.transfer(world.stranger.address, has - 105 * ONE // 100)
        await world.send(world.user, world.weth, give_away)
        story.agents["ann"].takes = lambda _: ONE
        record, moved = await story.completed(await story.market.a_purchase())
        assert moved["user", "WETH"] == -ONE
        assert record["input"]["executedAmount"] == str(ONE)
        assert await world.balance(world.weth, world.user) == 5 * ONE // 100
