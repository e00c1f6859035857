"""A TWAP whose slices left do not fit before its deadline any more expires, long before that."""

from pathlib import Path

import pytest

from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import DeltaStory, Record, a_delta_story
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def is_auctioned_on(story: DeltaStory, record: Record) -> None:
    """Wait until an agent is asked about an order once more, as it is now."""
    ann = story.agents["ann"]
    asked = len(ann.requests)
    await until(lambda: len(ann.requests) > asked + 1)


async def test_a_twap_expires_as_soon_as_its_slices_do_not_fit_any_more(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        now_s = await world.now_s()
        twaps = [
            await story.market.a_twap(num_slices=2, deadline=now_s + 200),
            await story.market.a_twap_purchase(num_slices=2, deadline=now_s + 200),
        ]
        before = await story.balances()
        records = [await story.submitted(twap) for twap in twaps]
        await story.pass_time(100)
        for record in records:
            await is_auctioned_on(story, record)
            await story.becomes(record, "ACTIVE")
        await story.pass_time(30)
        for record in records:
            assert (await story.record(record["id"]))["status"] == "ACTIVE"
        await story.pass_time(15)
        for record in records:
            await story.becomes(record, "EXPIRED")
            assert [reason["code"] for reason in (await story.explain(record))["reasons"]] == ["expired"]
        assert await world.now_s() < now_s + 200
        assert await story.balances() == before


async def test_a_twap_expires_with_what_is_settled_once_its_next_slice_is_due_too_late(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda order: int(order.dest_amount)
        await story.hold()
        now_s = await world.now_s()
        before = await story.balances()
        record = await story.submitted(await story.market.a_twap(num_slices=2, deadline=now_s + 125))
        await story.under_way(record)
        await story.pass_time(70)
        record = await story.becomes(record, "EXPIRED")
        assert await world.now_s() < now_s + 125
        (fill,) = record["transactions"]
        assert (fill["filledPercent"], fill["spentAmount"]) == (50, str(ONE // 2))
        moved = await story.moved_since(before)
        assert (moved["user", "WETH"], moved["user", "USDC"]) == (-ONE // 2, 800 * USDC)
