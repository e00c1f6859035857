"""Orders whose owner's funds move: SUSPENDED while they are not there, back once they are."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts import calldata, delta_calldata
from support.chain.world import MOST, NATIVE, ONE, USDC, World
from support.contracts.permit_kinds import KINDS, seller
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def allow(story: DeltaStory, amount: int) -> None:
    """The user lets the Delta contract take so much WETH."""
    await story.world.approve(story.world.user, story.world.weth, story.world.at.delta, amount)


async def send_away(story: DeltaStory, amount: int) -> None:
    """The user's WETH go to a stranger."""
    world = story.world
    await world.send(world.user, world.weth, calldata.transfer(world.stranger.address, amount))


async def give_back(story: DeltaStory, amount: int) -> None:
    """A stranger's WETH go to the user."""
    world = story.world
    await world.send(world.stranger, world.weth, calldata.transfer(world.user.address, amount))


def funds(story: DeltaStory) -> Any:
    (chain,) = story.web.app.delta.chains.values()
    return chain.funds.statistics()


async def test_an_allowance_that_is_revoked_suspends_until_it_is_back(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        swap = await story.submitted(await world.a_delta_order())
        limit = await story.submitted(await world.a_delta_order(), type="LIMIT")
        await story.becomes(limit, "ACTIVE")
        await allow(story, ONE - 1)
        for record in (swap, limit):
            await story.becomes(record, "SUSPENDED")
            told = await story.reasons(record)
            assert list(told) == ["suspended", "allowanceLacks"]
            assert f" {ONE - 1} " in told["allowanceLacks"]
            assert told["allowanceLacks"].endswith(f" {ONE}")
        asked = len(ann.requests)
        ann.gives = lambda _: 2_500 * USDC
        await world.chain.mine(2)
        assert len(ann.requests) == asked, "a suspended order is not auctioned"
        ann.waits()
        await allow(story, ONE)
        await story.becomes(swap, "PENDING")
        await story.becomes(limit, "ACTIVE")
        ann.may_answer.set()
        await allow(story, 2 * ONE)
        await story.becomes(swap, "COMPLETED")


async def test_a_balance_that_moves_away_suspends_until_it_is_back(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        record = await story.submitted(await world.a_delta_order())
        await send_away(story, 10 * ONE - 5)
        await story.becomes(record, "SUSPENDED")
        told = await story.reasons(record)
        assert list(told) == ["suspended", "balanceLacks"]
        assert " 5 " in told["balanceLacks"]
        await give_back(story, ONE - 6)
        await story.becomes(record, "SUSPENDED")
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        await give_back(story, 1)
        record = await story.becomes(record, "COMPLETED")
        assert await world.balance(world.weth, world.user) == 0


async def test_native_tokens_that_are_unwrapped_suspend_as_if_they_were_sent(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        record = await story.submitted(await world.a_delta_order())
        data = bytes.fromhex("2e1a7d4d") + (10 * ONE).to_bytes(32, "big")
        await world.send(world.user, world.weth, data)
        await story.becomes(record, "SUSPENDED")
        await world.mint(world.weth, world.user, ONE)
        await story.becomes(record, "PENDING")


async def test_of_two_orders_on_one_balance_the_first_fill_suspends_the_second(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        sales = [
            await world.a_delta_order(src_amount=6 * ONE, dest_amount=12_000 * USDC, expected_amount=0)
            for _ in range(2)
        ]
        first, second = [await story.submitted(sale) for sale in sales]
        ann.gives = lambda order: 15_000 * USDC if order.order_hash == first["orderHash"] else None
        await story.becomes(first, "COMPLETED")
        await story.becomes(second, "SUSPENDED")
        assert (await story.reasons(second))["balanceLacks"].endswith(str(6 * ONE))
        ann.gives = lambda _: 14_000 * USDC
        await world.mint(world.weth, world.user, 2 * ONE)
        await story.becomes(second, "COMPLETED")
        assert await world.balance(world.usdc, world.user) == 29_000 * USDC


async def test_of_two_settlements_on_one_balance_the_later_one_counts_as_no_failure(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann", delta="failures_max = 1") as story:
        story.agents["ann"].gives = lambda _: 15_000 * USDC
        await story.hold()
        sales = [
            await world.a_delta_order(src_amount=6 * ONE, dest_amount=12_000 * USDC, expected_amount=0)
            for _ in range(2)
        ]
        records = [await story.submitted(sale) for sale in sales]
        (chain,) = story.web.app.delta.chains.values()
        await until(lambda: chain.relayer.statistics().counts["handed"] == 2)
        await story.mine()
        by_status = {
            (await story.becomes(record, "COMPLETED", "SUSPENDED"))["status"]: record for record in records
        }
        assert by_status.keys() == {"COMPLETED", "SUSPENDED"}
        await world.mint(world.weth, world.user, 2 * ONE)
        await story.becomes(by_status["SUSPENDED"], "COMPLETED")


async def test_a_deposit_that_is_withdrawn_suspends_until_it_is_back(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        order = await world.a_delta_order(src_token=NATIVE)
        deposit = delta_calldata.deposit_native_and_pre_sign(world.delta_hash(order))
        await world.send(world.user, world.at.delta, deposit, value_wei=ONE)
        record = await story.submitted(order)
        await world.send(world.user, world.at.delta, delta_calldata.withdraw_native(ONE))
        await story.becomes(record, "SUSPENDED")
        told = await story.reasons(record)
        assert list(told) == ["suspended", "depositLacks"]
        assert told["depositLacks"].startswith("the owner has deposited 0 wei")
        await world.send(world.user, world.at.delta, deposit, value_wei=ONE - 1)
        await story.says(record, "depositLacks", f"the owner has deposited {ONE - 1} wei")
        assert (await story.record(record["id"]))["status"] == "SUSPENDED"
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        await world.send(world.user, world.at.delta, deposit, value_wei=1)
        await story.becomes(record, "COMPLETED")


async def test_an_order_with_a_permit_is_not_suspended_for_its_allowance(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        order = await seller(world)
        order = msgspec.structs.replace(order, permit=await dict(KINDS)[224](world, order))
        record = await story.submitted(order)
        await until(lambda: funds(story).read > 0 and funds(story).waiting == 0)
        assert (await story.record(record["id"]))["status"] == "PENDING"
        balance = await world.balance(order.src_token, world.user)
        await world.send(world.user, order.src_token, calldata.transfer(world.stranger.address, balance))
        await story.becomes(record, "SUSPENDED")
        assert list(await story.reasons(record)) == ["suspended", "balanceLacks"]


async def test_funds_that_move_while_a_settlement_is_under_way_take_no_runner_up(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob", delta="failures_max = 1") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.gives = lambda _: 2_500 * USDC
        bob.gives = lambda _: 2_450 * USDC
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        await story.disallow(world.user, "WETH")
        await story.mine()
        await story.becomes(record, "SUSPENDED")
        assert list(await story.reasons(record)) == ["suspended", "allowanceLacks"]
        await story.heard("ann", record, "won", "settling", "reverted")
        assert bob.told("settling") == []
        assert ann.told("banned") == []
        await allow(story, MOST)
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(2_500 * USDC)


async def test_a_settlement_that_takes_all_there_is_suspends_nothing(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        await allow(story, ONE)
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        away = calldata.transfer(world.stranger.address, 9 * ONE)
        await story.first_in_block(world.user, world.weth, away)
        await story.mine()
        await story.becomes(record, "COMPLETED")
        await until(lambda: funds(story).orders == 0)
        assert await world.balance(world.weth, world.user) == 0
        assert funds(story).suspended == 0


async def test_funds_that_move_while_the_venue_is_away_are_found_at_its_start(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path) as story:
        native = await world.a_delta_order(src_token=NATIVE)
        deposit = delta_calldata.deposit_native_and_pre_sign(world.delta_hash(native))
        await world.send(world.user, world.at.delta, deposit, value_wei=ONE)
        kept = [await story.submitted(order) for order in (await world.a_delta_order(), native)]
        gone = await story.submitted(await world.a_delta_order(src_amount=9 * ONE))
        await send_away(story, 2 * ONE)
        await story.becomes(gone, "SUSPENDED")
    await send_away(story, 8 * ONE)
    await world.send(world.user, world.at.delta, delta_calldata.withdraw_native(ONE))
    async with a_delta_story(world, tmp_path, market=story.market) as again:
        for record in kept:
            await again.becomes(record, "SUSPENDED")
        assert (await again.says(gone, "balanceLacks")).endswith(str(9 * ONE))
    await give_back(story, 10 * ONE)
    async with a_delta_story(world, tmp_path, market=story.market) as last:
        await last.becomes(gone, "PENDING")
        await last.becomes(kept[0], "PENDING")
        assert (await last.record(kept[1]["id"]))["status"] == "SUSPENDED"


async def test_a_reorganisation_gives_back_what_moved(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        native = await world.a_delta_order(src_token=NATIVE)
        deposit = delta_calldata.deposit_native_and_pre_sign(world.delta_hash(native))
        await world.send(world.user, world.at.delta, deposit, value_wei=ONE)
        records = [await story.submitted(order) for order in (await world.a_delta_order(), native)]
        await send_away(story, 10 * ONE)
        await world.send(world.user, world.at.delta, delta_calldata.withdraw_native(ONE))
        for record in records:
            await story.becomes(record, "SUSPENDED")
        await world.chain.set_automine(on=False)
        await world.chain.reorganise(2)
        for record in records:
            await story.becomes(record, "PENDING")
        await story.mine()


async def test_a_suspended_order_expires(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path) as story:
        record = await story.submitted(await world.a_delta_order(deadline=await world.now_s() + 100))
        await allow(story, 0)
        await story.becomes(record, "SUSPENDED")
        await story.pass_time(105)
        await story.becomes(record, "EXPIRED")


async def test_a_suspended_order_is_cancelled(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path) as story:
        record = await story.submitted(await world.a_delta_order())
        await allow(story, 0)
        await story.becomes(record, "SUSPENDED")
        assert (await story.cancel(record))[0] == 200
        await story.becomes(record, "CANCELLED")
        await until(lambda: funds(story).accounts == 0)
        await allow(story, MOST)
        await story.confirm()
        assert (await story.record(record["id"]))["status"] == "CANCELLED"


async def test_a_resting_order_is_cancelled(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path) as story:
        record = await story.submitted(await world.a_delta_order(), type="LIMIT")
        await story.becomes(record, "ACTIVE")
        assert (await story.cancel(record))[0] == 200
        await story.becomes(record, "CANCELLED")
