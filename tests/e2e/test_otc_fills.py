"""OTC orders that are filled: whole, in parts to the last unit, by anybody, and before they were posted."""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from cambist.engine.store.follower import START
from support.chain.world import NOBODY, ONE, USDC, World
from support.contracts.rfq_stories import funded
from support.otc.otc_stories import Stored, all_of, an_otc_story, none_of, running_otc, text_of

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

CLOSED = (400, "OrderClosed")


def has(stored: Stored, state: str, tx_hash: str | None, **members: str) -> bool:
    """Whether an order has this state, this transaction, and these members."""
    wanted = {"state": state, "transactionHash": tx_hash} | members
    assert {name: stored[name] for name in wanted} == wanted
    return True


async def test_the_named_taker_fills_a_whole_order(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        assert await story.fillable() == 10_000 * USDC
        order = story.an_order()
        stored = await story.posted(order)
        assert has(stored, "PENDING", None, type="P2P", **all_of(2_500 * USDC))
        assert await story.order(stored) == stored
        assert await story.fillable() == 7_500 * USDC
        before = await story.balances()
        receipt = await story.fill(order)
        assert has(await story.seen(stored), "FULFILLED", text_of(receipt), **none_of(0))
        assert await story.moved_since(before) == {
            ("maker", "USDC"): -2_500 * USDC,
            ("taker", "USDC"): 2_500 * USDC,
            ("maker", "WETH"): ONE,
            ("taker", "WETH"): -ONE,
        }
        assert await story.fillable() == 7_500 * USDC
        for role, account in (("maker", world.maker), ("taker", world.taker)):
            assert await story.listed(role, account) == [stored["orderHash"]]
        status, again = await story.submit(order)
        assert status == 200
        assert has(again, "FULFILLED", text_of(receipt))
        await story.is_final(stored)
        assert has(await story.order(stored), "FULFILLED", text_of(receipt), **none_of(0))


async def test_odd_parts_are_filled_to_the_last_unit(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        maker_amount, taker_amount = 1_000_000_007, 3_000_000_000_000_000_019
        order = story.an_order(maker_amount=maker_amount, taker_amount=taker_amount)
        stored = await story.posted(order)
        before = await story.balances()
        left, paid = maker_amount, 0
        for part in (
            2_999_999_980,
            3_000_000_001,
            1_234_567_890_123_456_789,
            777_777_777_777_777_777,
            ONE - 7**20,
        ):
            given = part * maker_amount // taker_amount
            if not given:
                data = story.filling(order, part)
                assert await story.refused(stored, order, data) == "Maker token fill amount cannot be 0"
                continue
            receipt = await story.fill(order, part)
            left, paid = left - given, paid + part
            assert has(await story.seen(stored), "PENDING", text_of(receipt))
            await story.becomes(stored, "PENDING", **all_of(left))
            assert await story.fillable() == 10_000 * USDC - maker_amount
            assert await story.moved_since(before) == {
                ("maker", "USDC"): left - maker_amount,
                ("taker", "USDC"): maker_amount - left,
                ("maker", "WETH"): paid,
                ("taker", "WETH"): -paid,
            }
        assert 0 < left < maker_amount
        whole = story.filling(order)
        assert await story.refused(stored, order, whole) == "Order already filled or expired"
        # Measured in the maker's token, what is left can be had to the unit; its price rounds up.
        paid += -(-left * taker_amount // maker_amount)
        rest = calldata.try_batch_fill_maker_amount([world.info(order)], left, world.taker.address)
        receipt = await world.send(world.taker, world.at.rfq, rest)
        assert has(await story.seen(stored), "FULFILLED", text_of(receipt), **none_of(0))
        moved = await story.moved_since(before)
        assert moved["taker", "USDC"] == maker_amount == -moved["maker", "USDC"]
        assert moved["maker", "WETH"] == paid == -moved["taker", "WETH"]
        assert taker_amount <= paid < taker_amount + 5 * taker_amount // maker_amount


async def test_anybody_fills_an_open_order_in_parts(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await world.give(world.stranger, world.weth, ONE, world.at.rfq)
        order = story.an_order(taker=NOBODY)
        stored = await story.posted(order)
        assert has(stored, "PENDING", None, type="LIMIT", **all_of(2_500 * USDC))
        assert await story.listed("taker", NOBODY) == [stored["orderHash"]]
        before = await story.balances()
        first = await story.fill(order, ONE // 4)
        assert has(await story.seen(stored), "PENDING", text_of(first))
        await story.becomes(stored, "PENDING", **all_of(1_875 * USDC))
        target = calldata.partial_fill_order_with_target(
            order, world.signed(order), 3 * ONE // 4, world.user.address
        )
        last = await world.send(world.stranger, world.at.rfq, target)
        assert has(await story.seen(stored), "FULFILLED", text_of(last), **none_of(0))
        assert await story.moved_since(before) == {
            ("maker", "USDC"): -2_500 * USDC,
            ("taker", "USDC"): 625 * USDC,
            ("user", "USDC"): 1_875 * USDC,
            ("maker", "WETH"): ONE,
            ("taker", "WETH"): -ONE // 4,
            ("stranger", "WETH"): -3 * ONE // 4,
        }


async def test_several_orders_are_filled_by_one_transaction(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        orders = [story.an_order() for _ in range(3)]
        first, second, third = [await story.later(order) for order in orders]
        infos = [
            world.info(orders[0]),
            world.info(orders[1], taker_fill_amount=ONE // 2),
            world.info(orders[1], taker_fill_amount=ONE // 10),
        ]
        data = calldata.batch_fill_order_with_target(infos, world.taker.address)
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert has(await story.seen(first), "FULFILLED", text_of(receipt), **none_of(0))
        assert has(await story.order(second), "PENDING", text_of(receipt))
        assert has(await story.order(third), "PENDING", None, **all_of(2_500 * USDC))
        await story.becomes(second, "PENDING", **all_of(1_000 * USDC))


async def test_parts_that_were_filled_before_the_post_are_gone(world: World, tmp_path: Path) -> None:
    await funded(world)
    async with running_otc(world, tmp_path) as story:
        order, other = story.an_order(), story.an_order()
    await story.fill(order, ONE // 4)  # the venue does not read the chain
    async with running_otc(world, tmp_path / "later") as story:
        unbegun = await story.posted(other)
        assert has(unbegun, "PENDING", None, **all_of(2_500 * USDC))
        receipt = await story.fill(order, ONE // 5)
        await story.is_read()
        stored = await story.posted(order)
        assert has(stored, "PENDING", text_of(receipt), **all_of(1_375 * USDC))
        assert stored["makerAmount"] == str(2_500 * USDC)
        receipt = await story.fill(order, ONE // 10)
        assert has(await story.seen(stored), "PENDING", text_of(receipt))
        await story.becomes(stored, "PENDING", **all_of(1_125 * USDC))
        receipt = await story.fill(order, 45 * ONE // 100)
        assert has(await story.seen(stored), "FULFILLED", text_of(receipt), **none_of(0))


async def test_an_order_that_the_chain_has_closed_is_not_taken(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        filled, cancelled, begun = (story.an_order() for _ in range(3))
        await story.fill(filled)
        await story.cancel(cancelled)
        await story.fill(begun, ONE // 2)
        await story.cancel(begun)
        for order in (filled, cancelled, begun):
            assert (await story.fault(order))[:2] == CLOSED
        await story.is_read()
        for order in (filled, cancelled, begun):
            assert (await story.fault(order))[:2] == CLOSED
        assert await story.listed("maker", world.maker) == []


async def test_what_was_filled_while_the_venue_was_away_is_found_at_its_start(
    world: World, tmp_path: Path
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        orders = [story.an_order() for _ in range(4)]
        whole, part, taken_back, left = [await story.later(order) for order in orders]
    receipts = [
        await story.fill(orders[0]),
        await story.fill(orders[1], ONE // 2),
        await story.cancel(orders[2]),
    ]
    async with running_otc(world, tmp_path) as again:
        assert has(await again.seen(whole), "FULFILLED", text_of(receipts[0]), **none_of(0))
        assert has(await again.order(part), "PENDING", text_of(receipts[1]))
        assert has(await again.order(taken_back), "CANCELLED", text_of(receipts[2]), **none_of(2_500 * USDC))
        await again.becomes(part, "PENDING", **all_of(1_250 * USDC))
        await again.becomes(left, "PENDING", **all_of(2_500 * USDC))


async def test_what_happened_in_time_while_the_venue_was_away_has_not_expired(
    world: World, tmp_path: Path
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        expiry = await world.now_s() + 60
        orders = [story.an_order(expiry=expiry) for _ in range(4)]
        whole, part, taken_back, left = [await story.later(order) for order in orders]
    receipts = [
        await story.fill(orders[0]),
        await story.fill(orders[1], ONE // 2),
        await story.cancel(orders[2]),
    ]
    await world.pass_time(70)
    async with running_otc(world, tmp_path) as again:
        assert has(await again.seen(whole), "FULFILLED", text_of(receipts[0]), **none_of(0))
        assert has(await again.order(taken_back), "CANCELLED", text_of(receipts[2]), **none_of(2_500 * USDC))
        await again.becomes(part, "EXPIRED", transactionHash=text_of(receipts[1]), **none_of(1_250 * USDC))
        await again.becomes(left, "EXPIRED", transactionHash=None, **none_of(2_500 * USDC))
        for stored, statuses in ((whole, ["PENDING", "FULFILLED"]), (taken_back, ["PENDING", "CANCELLED"])):
            async with again.following(orderHash=stored["orderHash"], after=START) as events:
                await events.begun()
                assert [message.status for message in await events.take(2)] == statuses
