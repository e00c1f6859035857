"""TWAPs from their first slice to their remainder: waits, costs and ends."""

from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.messages.agent_messages import AuctionOrder
from support.chain.world import HOUR_S, NATIVE, ONE, USDC, World
from support.delta.delta_stories import DeltaStory, Record, a_delta_story
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

PRICE = 2_500 * USDC


def at_price(order: AuctionOrder) -> int:
    """USDC units for a sale of WETH at PRICE."""
    return PRICE * int(order.src_amount) // ONE


def spent(record: Record) -> list[int]:
    return [int(fill["spentAmount"]) for fill in record["transactions"]]


def received(record: Record) -> list[int]:
    return [int(fill["receivedAmount"]) for fill in record["transactions"]]


async def next_slice(story: DeltaStory, record: Record, done: int) -> Record:
    """The record once the slice after `done` others is settled, an interval later."""
    await story.pass_time(61)
    return await story.with_fills(record, done + 1)


async def asked_again(story: DeltaStory, rounds: int = 2) -> None:
    """Wait until so many further rounds were held."""
    ann = story.agents["ann"]
    asked = len(ann.requests)
    await until(lambda: len(ann.requests) >= asked + rounds)


async def test_a_sale_gives_its_remainder_with_the_last_slice(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = at_price
        total = ONE + 2
        await world.approve(world.user, world.weth, world.at.delta, total)
        before = await story.balances()
        record = await story.submitted(await story.market.a_twap(total_src_amount=total))
        await story.with_fills(record, 1)
        await next_slice(story, record, 1)
        await story.pass_time(61)
        record = await story.becomes(record, "COMPLETED")
        slice_amount = total // 3
        assert spent(record) == [slice_amount, slice_amount, total - 2 * slice_amount]
        assert sum(fill["filledPercent"] for fill in record["transactions"]) == 100
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -total
        assert (
            moved["user", "USDC"]
            == sum(received(record))
            == sum(PRICE * part // ONE for part in spent(record))
        )


async def test_a_purchase_gets_its_remainder_with_the_last_slice(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].takes = lambda order: int(order.src_amount) * 9 // 10
        total, most = 2_500 * USDC + 1, 11 * ONE // 10
        order = await story.market.a_twap_purchase(total_dest_amount=total, max_src_amount=most)
        before = await story.balances()
        record = await story.submitted(order)
        await story.with_fills(record, 1)
        await next_slice(story, record, 1)
        await story.pass_time(61)
        record = await story.becomes(record, "COMPLETED")
        slice_amount = total // 3
        parts = [slice_amount, slice_amount, total - 2 * slice_amount]
        assert received(record) == parts
        assert spent(record) == [most * part // total * 9 // 10 for part in parts]
        moved = await story.moved_since(before)
        assert (moved["user", "USDC"], -moved["user", "WETH"]) == (total, sum(spent(record)))


async def test_what_a_slice_of_a_purchase_leaves_is_not_for_the_next(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        order = await story.market.a_twap_purchase(num_slices=2)
        most = order.max_src_amount // 2
        ann.takes = lambda _: most // 2
        record = await story.submitted(order)
        await story.with_fills(record, 1)
        ann.takes = lambda _: most + 1
        await story.pass_time(61)
        await asked_again(story)
        assert ann.requests[-1].orders[0].src_amount == str(most)
        await story.says(record, "belowLimit")
        assert spent(await story.record(record["id"])) == [most // 2]
        ann.takes = lambda _: most
        record = await story.becomes(record, "COMPLETED")
        assert spent(record) == [most // 2, most]


async def test_a_slice_that_nobody_takes_is_late_and_none_is_lost(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = at_price
        record = await story.submitted(await story.market.a_twap())
        await story.with_fills(record, 1)
        ann.gives = lambda _: None
        await story.pass_time(61)
        await asked_again(story)
        await story.pass_time(120)
        await asked_again(story)
        assert len((await story.record(record["id"]))["transactions"]) == 1
        ann.gives = at_price
        await story.with_fills(record, 2)
        await story.says(record, "sliceNotDue")
        await story.pass_time(50)
        assert "sliceNotDue" in await story.reasons(record), "an interval after the slice that came late"
        await story.pass_time(11)
        record = await story.becomes(record, "COMPLETED")
        assert sum(spent(record)) == ONE
        times = [(await world.chain.block((await story.receipt(record, at)).block_hash)) for at in range(3)]
        seconds = [header.time_s for header in times if header is not None]
        assert seconds[1] - seconds[0] >= 180
        assert 60 <= seconds[2] - seconds[1] < 120


async def test_a_balance_that_moves_between_slices_suspends_until_a_slice_is_there(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = at_price
        record = await story.submitted(await story.market.a_twap())
        await story.with_fills(record, 1)
        slice_amount = ONE // 3
        left = await world.balance(world.weth, world.user)
        await world.send(
            world.user, world.weth, calldata.transfer(world.stranger.address, left - slice_amount + 1)
        )
        await story.becomes(record, "SUSPENDED")
        told = await story.reasons(record)
        assert list(told) == ["suspended", "balanceLacks"]
        assert told["balanceLacks"].endswith(f" {slice_amount}")
        asked = len(ann.requests)
        await story.pass_time(61)
        await world.chain.mine()
        assert len(ann.requests) == asked
        await world.send(world.stranger, world.weth, calldata.transfer(world.user.address, 1))
        await story.with_fills(record, 2)
        await story.becomes(record, "SUSPENDED")
        await world.send(world.stranger, world.weth, calldata.transfer(world.user.address, slice_amount))
        await story.pass_time(61)
        now = await story.becomes(record, "SUSPENDED")
        assert len(now["transactions"]) == 2, "the last slice takes the remainder, a unit more"
        await world.send(world.stranger, world.weth, calldata.transfer(world.user.address, 1))
        record = await story.becomes(record, "COMPLETED")
        assert spent(record) == [slice_amount, slice_amount, ONE - 2 * slice_amount]
        assert await world.balance(world.weth, world.user) == 0


async def test_an_allowance_that_falls_below_all_slices_that_are_left_suspends(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = at_price
        record = await story.submitted(await story.market.a_twap(total_src_amount=3 * ONE))
        await story.with_fills(record, 1)
        await world.approve(world.user, world.weth, world.at.delta, 2 * ONE - 1)
        await story.becomes(record, "SUSPENDED")
        assert (await story.reasons(record))["allowanceLacks"].endswith(f" {2 * ONE}")
        await world.approve(world.user, world.weth, world.at.delta, 2 * ONE)
        await next_slice(story, record, 1)
        await story.pass_time(61)
        await story.becomes(record, "COMPLETED")


async def test_native_slices_are_deposited_one_by_one(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = at_price
        order = await story.market.a_twap(src_token=NATIVE, num_slices=2)
        deposit = delta_calldata.deposit_native_and_pre_sign(world.delta_hash(order))
        await world.send(world.user, world.at.delta, deposit, value_wei=ONE // 2)
        record = await story.submitted(order)
        await story.with_fills(record, 1)
        await story.becomes(record, "SUSPENDED")
        assert list(await story.reasons(record)) == ["suspended", "depositLacks"]
        await story.pass_time(61)
        await world.send(world.user, world.at.delta, deposit, value_wei=ONE // 2)
        record = await story.becomes(record, "COMPLETED")
        assert spent(record) == [ONE // 2, ONE // 2]


async def test_a_twap_is_cancelled_between_slices_and_keeps_what_is_settled(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives, ann.takes = at_price, lambda order: int(order.src_amount)
        orders: list[Any] = [await story.market.a_twap(), await story.market.a_twap_purchase()]
        records = [await story.submitted(order) for order in orders]
        for record in records:
            await story.with_fills(record, 1)
        assert (await story.cancel(*records))[0] == 200
        for record in records:
            await story.becomes(record, "CANCELLED")
        before = await story.balances()
        await story.pass_time(61)
        await world.chain.mine(2)
        for record in records:
            now = await story.record(record["id"])
            assert (now["status"], len(now["transactions"])) == ("CANCELLED", 1)
        assert await story.balances() == before


async def test_orders_end_by_the_clock_of_a_chain_that_is_ahead(world: World, tmp_path: Path) -> None:
    """The contract judges by the chain's clock; the venue's may be behind it for hours, as on a devnet."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: None
        records = [
            await story.submitted(await story.market.a_twap()),
            await story.submitted(await world.a_delta_order()),
            await story.submitted(await world.a_delta_order(deadline=await world.now_s() + 10 * HOUR_S)),
        ]
        await world.pass_time(HOUR_S + 1)
        for record in records[:2]:
            await story.becomes(record, "EXPIRED")
        assert (await story.record(records[2]["id"]))["status"] in ("PENDING", "ACTIVE")
