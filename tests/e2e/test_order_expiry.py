"""Deadlines: an unfilled order expires; an order whose settlement is under way waits for the result."""

from pathlib import Path

import pytest

from support.chain.world import USDC, World
from support.delta.delta_stories import a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def test_an_order_that_nobody_fills_expires(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        before = await story.balances()
        order = await world.a_delta_order(deadline=await world.now_s() + 60)
        record = await story.submitted(order)
        await story.heard_of("ann", record)
        await story.pass_time(70)
        await story.becomes(record, "EXPIRED")
        assert await story.balances() == before
        assert [reason["code"] for reason in (await story.explain(record))["reasons"]] == ["expired"]
        status, refused = await story.submit(await world.a_delta_order(deadline=order.deadline))
        assert (status, refused["errorType"]) == (400, "OrderExpired")


async def test_a_settlement_under_way_at_the_deadline_is_waited_for(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        await story.hold()
        order = await world.a_delta_order(deadline=await world.now_s() + 60)
        record = await story.submitted(order)
        await story.under_way(record)
        story.clock.passes(64)
        assert (await story.record(record["id"]))["status"] == "ACTIVE"
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(2_500 * USDC)
