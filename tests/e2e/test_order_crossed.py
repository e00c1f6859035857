"""Coincidence of wants: opposite orders are settled with each other, where that is better for both."""

from pathlib import Path

import msgspec
import pytest

from cambist.codecs.messages.agent_messages import BidPart, SolverBid, SolveRequest
from support.chain.world import ONE, USDC, World
from support.contracts.delta_agents import Offer
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.patience import GATHER_S

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


def crossed(request: SolveRequest) -> list[SolverBid]:
    """All orders of a round with each other: each is paid what the other gives."""
    if len(request.orders) != 2:
        return []
    first, second = request.orders
    parts = [
        BidPart(one.order_hash, other.src_amount, paid=other.src_amount)
        for one, other in ((first, second), (second, first))
    ]
    return [SolverBid(tuple(parts))]


def gives_of_two(story: DeltaStory, gives: Offer) -> None:
    """Bob bids on orders that are in one round: however long the second takes to come."""
    bob = story.agents["bob"]
    bob.gives = lambda order: gives(order) if len(bob.requests[-1].orders) == 2 else None


async def test_opposite_orders_are_settled_with_each_other(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=f"gather_s = {GATHER_S}") as story:
        story.agents["ann"].also = crossed
        gives_of_two(story, lambda order: int(order.dest_amount))
        before = await story.balances()
        sale = await story.submitted(await world.a_delta_order())
        counter = await story.submitted(await story.market.a_counter_order(), world.taker)
        sale, counter = await story.becomes(sale, "COMPLETED"), await story.becomes(counter, "COMPLETED")
        moved = await story.moved_since(before)
        assert {key: value for key, value in moved.items() if key[1] != "ETH"} == {
            ("user", "WETH"): -ONE,
            ("user", "USDC"): 2_500 * USDC,
            ("taker", "WETH"): ONE,
            ("taker", "USDC"): -2_500 * USDC,
        }
        assert sale["transactions"][0]["originTx"] == counter["transactions"][0]["originTx"]
        for record in (sale, counter):
            await story.heard("ann", record, "won", "settled")
            await story.heard("bob", record, "lost")


async def test_orders_are_not_crossed_where_one_has_a_better_bid(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=f"gather_s = {GATHER_S}") as story:
        story.agents["ann"].also = crossed
        gives_of_two(story, lambda order: int(order.dest_amount) * 11 // 10)
        sale = await story.submitted(await world.a_delta_order())
        counter = await story.submitted(await story.market.a_counter_order(), world.taker)
        sale, counter = await story.becomes(sale, "COMPLETED"), await story.becomes(counter, "COMPLETED")
        assert sale["output"]["executedAmount"] == str(2_640 * USDC)
        assert sale["transactions"][0]["originTx"] != counter["transactions"][0]["originTx"]


async def test_a_crossing_that_fails_leaves_both_to_their_runners_up(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=f"gather_s = {GATHER_S}") as story:
        story.agents["ann"].also = crossed
        gives_of_two(story, lambda order: int(order.dest_amount))
        await story.hold()
        sale = await story.submitted(await world.a_delta_order())
        counter = await story.submitted(await story.market.a_counter_order(), world.taker)
        await story.under_way(sale)
        await story.disallow(world.taker, "USDC")
        await story.mine()
        sale = await story.becomes(sale, "COMPLETED")
        assert sale["output"]["executedAmount"] == str(2_400 * USDC)
        now = await story.record(counter["id"])
        assert now["transactions"] == []
        story.agents["bob"].gives = lambda order: int(order.dest_amount)
        await story.world.approve(world.taker, world.usdc, world.at.delta)
        await story.becomes(counter, "COMPLETED")


async def test_a_crossing_does_not_settle_what_was_cancelled_meanwhile(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", delta=f"gather_s = {6 * GATHER_S}") as story:
        ann = story.agents["ann"]
        ann.also = crossed
        ann.waits()
        before = await story.balances()
        order = await world.a_delta_order()
        sale = await story.submitted(order)
        counter = await story.submitted(await story.market.a_counter_order(), world.taker)
        await ann.asked.wait()
        assert (await story.cancel(sale))[0] == 200
        await story.becomes(sale, "CANCELLED")
        ann.may_answer.set()
        for record in (sale, counter):
            await story.heard("ann", record, "lost")
        assert ann.told("won") == []
        assert (await story.record(counter["id"]))["status"] == "PENDING"
        assert await story.balances() == before
        again = msgspec.structs.replace(order, nonce=order.nonce + 1)
        await story.submitted(again)
        await story.becomes(counter, "COMPLETED")
