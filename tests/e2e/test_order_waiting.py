"""Orders that wait: a limit order for its price, a TWAP for its next slice."""

from pathlib import Path

import pytest

from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import a_delta_story
from support.patience import until
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def test_a_limit_order_rests_active_while_no_maker_has_its_price(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: 3_000 * USDC
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order(), type="LIMIT")
        record = await story.becomes(record, "ACTIVE")
        resting = story.web.app.delta.chains[CHAIN_ID].prices.statistics
        looks = resting().looks
        await until(lambda: resting().looks > looks)
        swap, _ = await story.completed(await world.a_delta_order())
        assert {order.order_hash for request in ann.requests for order in request.orders} == {
            swap["orderHash"]
        }, "of a market order it is asked"
        (reason,) = (await story.explain(record))["reasons"]
        assert reason["code"] == "resting"
        assert (await story.moved_since(before))["user", "WETH"] == -ONE


async def test_a_twap_settles_slice_by_slice_and_is_completed_by_the_last(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda order: int(order.dest_amount)
        order = await story.market.a_twap(
            num_slices=2, total_src_amount=ONE + 1, dest_amount_per_slice=1_200 * USDC
        )
        before = await story.balances()
        record = await story.submitted(order)
        first = await story.with_fills(record, 1)
        assert first["status"] == "ACTIVE"
        assert (await story.moved_since(before))["user", "WETH"] == -(ONE // 2)
        await story.says(record, "sliceNotDue")
        asked = len(ann.requests)
        await story.pass_time(55)
        assert len(ann.requests) == asked
        await story.pass_time(6)
        record = await story.becomes(record, "COMPLETED")
        assert [fill["spentAmount"] for fill in record["transactions"]] == [str(ONE // 2), str(ONE // 2 + 1)]
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -(ONE + 1)


async def test_a_scheduled_purchase_buys_its_slices(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].takes = lambda order: int(order.src_amount) * 9 // 10
        order = await story.market.a_twap_purchase(num_slices=2)
        before = await story.balances()
        record = await story.submitted(order)
        await story.with_fills(record, 1)
        await story.pass_time(61)
        record = await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "USDC"] == 2_500 * USDC
        assert -moved["user", "WETH"] == 2 * (11 * ONE // 20 * 9 // 10)
