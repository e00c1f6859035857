"""OTC orders that makers take back: single, many, partly filled and suspended orders; a stranger's
cancellation has no effect.
"""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from support.chain.world import MOST, ONE, USDC, World
from support.otc.otc_stories import all_of, an_otc_story, balances_of, none_of, text_of

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

CLOSED = "Order already filled or expired"


async def test_a_maker_takes_one_order_back(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order, other = story.an_order(), story.an_order(maker_amount=9_000 * USDC)
        stored, left = await story.posted(order), await story.later(other)
        assert left["reservedBalance"] == str(7_500 * USDC)
        before = await story.balances()
        receipt = await story.cancel(order)
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("CANCELLED", text_of(receipt))
        assert none_of(2_500 * USDC).items() <= ended.items()
        await story.becomes(left, "PENDING", transactionHash=None, **all_of(9_000 * USDC))
        assert await story.fillable() == 1_000 * USDC
        assert await story.refused(ended, order, story.filling(order)) == CLOSED
        assert await story.moved_since(before) == {}
        again = await story.cancel(order)
        assert again.logs == ()
        assert await story.seen(stored) == ended
        status, posted = await story.submit(order)
        assert (status, posted["state"]) == (200, "CANCELLED")
        await story.is_final(stored)
        assert await story.order(stored) == ended


async def test_many_are_taken_back_at_once(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        orders = [story.an_order(maker_amount=2_000 * USDC) for _ in range(4)]
        first, second, third, last = [await story.later(order) for order in orders]
        await story.fill(orders[1], ONE // 4)
        filled = await story.fill(orders[2])
        ended = await story.seen(third)
        assert (ended["state"], ended["transactionHash"]) == ("FULFILLED", text_of(filled))
        receipt = await story.cancel(*orders[:3], world.an_rfq_order())
        gone = await story.seen(first)
        begun = await story.order(second)
        for stored, left in ((gone, 2_000 * USDC), (begun, 1_500 * USDC)):
            assert (stored["state"], stored["transactionHash"]) == ("CANCELLED", text_of(receipt))
            assert none_of(left).items() <= stored.items()
        assert await story.order(third) == ended
        await story.becomes(last, "PENDING", transactionHash=None, **all_of(2_000 * USDC))
        for order, stored in zip(orders[:3], (gone, begun, ended), strict=True):
            assert await story.refused(stored, order, story.filling(order, ONE // 2)) == CLOSED


async def test_all_that_expire_until_a_time_are_taken_back(world: World, tmp_path: Path) -> None:
    """Known to the venue or not yet; a later one stays, and a block that is undone gives them back."""
    async with an_otc_story(world, tmp_path) as story:
        now_s = await world.now_s()
        soon = story.an_order(maker_amount=1_000 * USDC, expiry=now_s + 1_000)
        never = story.an_order(maker_amount=1_000 * USDC, expiry=0)
        late = story.an_order(maker_amount=1_000 * USDC, expiry=now_s + 5_000)
        unknown = story.an_order(maker_amount=1_000 * USDC, expiry=now_s + 2_000)
        kept = [await story.later(order) for order in (soon, never, late)]
        data = calldata.cancel_orders_until(now_s + 2_000)
        receipt = await world.send(world.maker, world.at.rfq, data)
        for stored in kept[:2]:
            ended = await story.seen(stored)
            assert (ended["state"], ended["transactionHash"]) == ("CANCELLED", text_of(receipt))
        await story.becomes(kept[2], "PENDING", transactionHash=None, **all_of(1_000 * USDC))
        status, refusal = await story.submit(unknown)
        assert (status, refusal["errorType"]) == (400, "OrderClosed"), refusal
        await world.chain.reorganise(1)
        for stored in kept[:2]:
            await story.becomes(stored, "PENDING", transactionHash=None, **all_of(1_000 * USDC))


async def test_a_strangers_call_takes_nothing_back(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order, other = story.an_order(), story.an_order()
        stored, left = await story.posted(order), await story.later(other)
        for by in (world.stranger, world.taker):
            receipt = await story.cancel(order, by=by)
            assert len(receipt.logs) == 1
            receipt = await story.cancel(order, other, by=by)
            assert await story.seen(stored) == stored
            assert await story.order(left) == left
        filled = await story.fill(order, ONE // 2)
        assert (await story.seen(stored))["transactionHash"] == text_of(filled)
        begun = await story.becomes(stored, "PENDING", **all_of(1_250 * USDC))
        await story.cancel(order, by=world.user)
        assert await story.seen(stored) == begun
        receipt = await story.cancel(order)
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("CANCELLED", text_of(receipt))
        assert none_of(1_250 * USDC).items() <= ended.items()
        await story.fill(other)
        assert (await story.seen(left))["state"] == "FULFILLED"


async def test_a_suspended_order_is_taken_back(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        stored = await story.posted(order)
        await story.allows(0)
        await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 0, 0, 0))
        receipt = await story.cancel(order)
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("CANCELLED", text_of(receipt))
        other = await story.later(story.an_order())
        assert other["state"] == "SUSPENDED"
        await story.allows(MOST)
        await story.becomes(other, "PENDING", **all_of(2_500 * USDC))
        assert await story.order(stored) == ended


@pytest.mark.parametrize("fills_first", [True, False])
async def test_a_cancellation_and_a_fill_of_one_block(
    world: World, tmp_path: Path, fills_first: bool
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order, other = story.an_order(), story.an_order()
        stored, left = await story.posted(order), await story.later(other)
        fill = world.taker, world.at.rfq, story.filling(order, ONE // 5)
        data = calldata.cancel_orders([world.rfq_hash(order), world.rfq_hash(other)])
        cancel = world.maker, world.at.rfq, data
        receipts = await story.in_one_block(*((fill, cancel) if fills_first else (cancel, fill)))
        assert [receipt.succeeded for receipt in receipts] == [True, fills_first]
        cancelled = receipts[1 if fills_first else 0]
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("CANCELLED", text_of(cancelled))
        assert none_of(2_000 * USDC if fills_first else 2_500 * USDC).items() <= ended.items()
        assert (await story.order(left))["transactionHash"] == text_of(cancelled)
