"""OTC orders that the contract refuses to fill: wrong taker, excessive amount, expired order; no state
changes.
"""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from support.chain.world import MOST, ONE, USDC, World
from support.otc.otc_stories import all_of, an_otc_story, none_of, text_of

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

_YEAR_S = 365 * 86_400


async def test_only_the_named_taker_may_fill(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await world.give(world.stranger, world.weth, 2 * ONE, world.at.rfq)
        order = story.an_order()
        stored = await story.posted(order)
        assert await story.listed("taker", world.stranger) == []
        signature = world.signed(order)
        for data in (
            calldata.fill_order(order, signature),
            calldata.fill_order_with_target(order, signature, world.taker.address),
            calldata.partial_fill_order(order, signature, ONE // 2),
            calldata.batch_fill_order_with_target([world.info(order)], world.taker.address),
        ):
            assert await story.refused(stored, order, data, world.stranger) == "Access denied"
        await story.fill(order, ONE // 2)
        await story.seen(stored)
        begun = await story.becomes(stored, "PENDING", **all_of(1_250 * USDC))
        rest = story.filling(order, ONE // 2)
        assert await story.refused(begun, order, rest, world.stranger) == "Access denied"
        receipt = await story.fill(order, ONE // 2)
        assert (await story.seen(stored))["state"] == "FULFILLED"
        assert (await story.order(stored))["transactionHash"] == text_of(receipt)


async def test_more_than_is_left_is_not_filled(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        stored = await story.posted(order)
        over = story.filling(order, ONE + 1)
        assert await story.refused(stored, order, over) == "Invalid Taker amount"
        await story.fill(order, 3 * ONE // 4)
        await story.seen(stored)
        begun = await story.becomes(stored, "PENDING", **all_of(625 * USDC))
        for taker_amount in (ONE, ONE // 4 + 10**12):  # a unit of USDC, and more
            data = story.filling(order, taker_amount)
            assert await story.refused(begun, order, data) == "Invalid amount"
        whole = story.filling(order)
        assert await story.refused(begun, order, whole) == "Order already filled or expired"
        await story.fill(order, ONE // 4)
        ended = await story.seen(stored)
        assert ended["state"] == "FULFILLED"
        data = story.filling(order, 10**12)
        assert await story.refused(ended, order, data) == "Order already filled or expired"


async def test_a_signature_of_somebody_else_fills_nothing(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        assert (await story.fault(order, world.stranger))[1] == "InvalidSignature"
        stored = await story.posted(order)
        forged = story.filling(order, signer=world.stranger)
        assert await story.refused(stored, order, forged) == "Invalid Signature"


async def test_an_order_expires_and_is_not_filled_then(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        expiry = await world.now_s() + 60
        order, begun = story.an_order(expiry=expiry), story.an_order(expiry=expiry)
        first, second = await story.posted(order), await story.later(begun)
        third = await story.later(story.an_order(maker_amount=6_000 * USDC))
        await story.becomes(third, "PENDING", reservedBalance=str(5_000 * USDC))
        receipt = await story.fill(begun, ONE // 2)
        await story.becomes(second, "PENDING", **all_of(1_250 * USDC))
        await story.pass_time(70)
        ended = await story.becomes(first, "EXPIRED", transactionHash=None, **none_of(2_500 * USDC))
        other = await story.becomes(
            second, "EXPIRED", transactionHash=text_of(receipt), **none_of(1_250 * USDC)
        )
        await story.becomes(third, "PENDING", **all_of(6_000 * USDC))
        assert await story.refused(ended, order, story.filling(order)) == "Order expired"
        assert await story.refused(other, begun, story.filling(begun, ONE // 2)) == "Order expired"
        assert await story.fillable() == 2_750 * USDC
        late = story.an_order(expiry=expiry)
        assert (await story.fault(late))[:2] == (400, "OrderExpired")
        status, again = await story.submit(order)
        assert (status, again["state"]) == (200, "EXPIRED")
        await story.is_final(first)


async def test_an_expiry_of_zero_is_never(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order, dated = story.an_order(expiry=0), story.an_order(expiry=await world.now_s() + _YEAR_S - 60)
        stored, other = await story.posted(order), await story.later(dated)
        assert stored["expiry"] == 0
        assert await story.listed("maker", world.maker, orderBy="expiry") == [
            other["orderHash"],
            stored["orderHash"],
        ]
        await story.pass_time(_YEAR_S)
        await story.becomes(other, "EXPIRED")
        assert (await story.seen(stored))["state"] == "PENDING"
        receipt = await story.fill(order)
        assert (await story.seen(stored))["transactionHash"] == text_of(receipt)
        await story.becomes(stored, "FULFILLED")


async def test_a_taker_without_funds_fills_nothing(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order(taker_amount=11 * ONE)
        stored = await story.posted(order)
        data = story.filling(order)
        assert await story.refused(stored, order, data) == "TRANSFER_FROM_FAILED"
        await world.mint(world.weth, world.taker, ONE)
        await world.approve(world.taker, world.weth, world.at.rfq, 11 * ONE - 1)
        assert await story.refused(stored, order, data) == "TRANSFER_FROM_FAILED"
        await world.approve(world.taker, world.weth, world.at.rfq, MOST)
        await story.fill(order)
        assert (await story.seen(stored))["state"] == "FULFILLED"
