"""A sale, from its submission to its settlement: the winning agent and the moved balances."""

from pathlib import Path

import msgspec
import pytest

from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def test_a_sale_is_settled_by_the_better_of_two_agents(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        story.agents["ann"].gives = lambda _: 2_490 * USDC
        story.agents["bob"].gives = lambda _: 2_500 * USDC
        record, moved = await story.completed(await world.a_delta_order())
        assert moved == {
            ("user", "WETH"): -ONE,
            ("user", "USDC"): 2_500 * USDC,
            ("agent", "WETH"): ONE,
            ("agent", "USDC"): -2_500 * USDC,
        }
        (settled,) = record["transactions"]
        assert (settled["spentAmount"], settled["receivedAmount"]) == (str(ONE), str(2_500 * USDC))
        assert settled["filledPercent"] == 100
        assert record["output"]["executedAmount"] == str(2_500 * USDC)
        await story.heard("bob", record, "won", "settling", "settled")
        await story.heard("ann", record, "lost")
        assert story.agents["ann"].told("lost")[0].best_amount == str(2_500 * USDC)


async def test_another_may_receive_and_what_is_signed_is_the_least(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda order: int(order.dest_amount)
        order = await world.a_delta_order(beneficiary=world.stranger.address)
        record, moved = await story.completed(order)
        assert moved["stranger", "USDC"] == 2_400 * USDC
        assert ("user", "USDC") not in moved
        assert record["output"]["minAmount"] == str(2_400 * USDC)


async def test_a_bid_below_the_limit_settles_nothing_and_is_told_so(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda order: int(order.dest_amount) - 1
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order())
        await story.heard("ann", record, "belowLimit", "belowLimit")
        assert (await story.record(record["id"]))["status"] == "PENDING"
        assert "belowLimit" in {reason["code"] for reason in (await story.explain(record))["reasons"]}
        assert await story.balances() == before
        ann.gives = lambda order: int(order.dest_amount)
        await story.becomes(record, "COMPLETED")


async def test_many_orders_at_once_are_all_settled_once(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        story.agents["ann"].gives = lambda order: int(order.dest_amount) + 1
        story.agents["bob"].gives = lambda order: int(order.dest_amount) + 2
        order = await world.a_delta_order(
            src_amount=ONE // 10, dest_amount=240 * USDC, expected_amount=250 * USDC
        )
        before = await story.balances()
        records = [
            await story.submitted(msgspec.structs.replace(order, nonce=number)) for number in range(1, 11)
        ]
        for record in records:
            await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -ONE
        assert moved["user", "USDC"] == 10 * (240 * USDC + 2)
        listed = await story.web.get("/v2/delta/orders", userAddress=f"0x{world.user.address.hex()}", limit=4)
        assert (listed["total"], len(listed["data"]), listed["hasMore"]) == (10, 4, True)
