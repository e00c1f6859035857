"""Several orders with the same nonce: the accepted order, and the end of the others."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cambist.codecs.contracts.owner_calldata import set_relayer
from cambist.codecs.eip712_orders.delta import DeltaOrder
from support.chain.world import ONE, USDC, World
from support.contracts.settling import SETTLEMENT_GAS
from support.delta.delta_stories import DeltaStory, a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def settled_elsewhere(story: DeltaStory, order: DeltaOrder, amount: int = ONE) -> None:
    """By a relayer that is not this venue's, at 2,500 USDC a WETH."""
    world = story.world
    await world.send(world.owner, world.at.delta, set_relayer(world.stranger.address, allowed=True))
    steps = story.market.agent_steps(2_500 * USDC * amount // ONE, amount)
    data = story.market.settlement(order, *steps, amount=amount)
    await world.send(world.stranger, world.at.delta, data, gas=SETTLEMENT_GAS)


async def test_the_nonce_of_an_expired_order_may_be_signed_again(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        order = await world.a_delta_order(deadline=await world.now_s() + 60)
        record = await story.submitted(order)
        again = replace(order, deadline=order.deadline + 3_600)
        status, refused = await story.submit(again)
        assert (status, refused["errorType"]) == (400, "NonceUsed")
        await story.pass_time(70)
        await story.becomes(record, "EXPIRED")
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        await story.becomes(await story.submitted(again), "COMPLETED")
        assert (await story.record(record["id"]))["status"] == "EXPIRED"


async def test_the_nonce_of_a_filled_order_is_used_up(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        order = await world.a_delta_order()
        record = await story.becomes(await story.submitted(order), "COMPLETED")
        another = replace(order, dest_amount=1)
        status, refused = await story.submit(another)
        assert (status, refused["errorType"]) == (400, "NonceUsed")
        assert refused["details"].startswith("Nonce already used")
        await story.is_final(record)
        assert (await story.submit(another))[0] == 400


async def test_an_order_fails_when_another_uses_its_nonce(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        order = await world.a_delta_order(dest_amount=2_600 * USDC)
        record = await story.submitted(order, type="LIMIT")
        await story.becomes(record, "ACTIVE")
        await settled_elsewhere(story, replace(order, dest_amount=2_400 * USDC))
        before = await story.balances()
        record = await story.becomes(record, "FAILED")
        assert record["transactions"] == []
        story.agents["ann"].gives = lambda _: 2_700 * USDC
        for _ in range(2):
            await story.confirm()
        assert (await story.record(record["id"]))["status"] == "FAILED"
        assert await story.balances() == before
        assert (await story.cancel(record))[1]["errorType"] == "OrderAlreadySettled"


async def test_what_is_settled_elsewhere_counts_and_the_rest_is_settled_here(
    world: World, tmp_path: Path
) -> None:
    """The contract counts by the order's hash and holds each part to its share of the limit."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        order = await world.a_delta_order()
        before = await story.balances()
        record = await story.submitted(order, partiallyFillable=True)
        assert record["onChainOrderType"] == "FillableOrder"
        await settled_elsewhere(story, order, ONE // 4)
        part = await story.with_fills(record, 1)
        assert (part["status"] in {"PENDING", "ACTIVE"}, part["transactions"][0]["filledPercent"]) == (
            True,
            25,
        )
        ann.gives = lambda asked: int(asked.dest_amount)
        record = await story.becomes(record, "COMPLETED")
        assert [one["filledPercent"] for one in record["transactions"]] == [25, 75]
        (rest,) = [one for one in ann.requests[-1].orders if one.order_hash == record["orderHash"]]
        assert (rest.src_amount, rest.dest_amount) == (str(3 * ONE // 4), str(1_800 * USDC))
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -ONE
        assert moved["user", "USDC"] == 2_500 * USDC // 4 + 1_800 * USDC
