"""Amounts at the ends of their range: a fill moves exactly the order's amounts, or no tokens."""

from cambist.codecs.contracts import calldata
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.rfq_stories import (
    FILLED_OR_CANCELLED,
    TRANSFER_FAILED,
    UNFILLED,
    filled,
    funded,
    refusal,
    remaining,
    rfq_events,
)

NOTHING = "Maker token fill amount cannot be 0"
OVERFLOW = "Panic(17): overflow"


async def test_an_order_that_gives_nothing_is_refused(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(maker_amount=0)
    signature, info, target = world.signed(order), world.info(order), world.user.address
    for data in (
        calldata.fill_order(order, signature),
        calldata.partial_fill_order(order, signature, ONE),
        calldata.batch_fill_order_with_target([info], target),
    ):
        assert await refusal(world, world.taker, data, order) == NOTHING
    for data in (
        calldata.try_batch_fill_taker_amount([info], 1, target),
        calldata.try_batch_fill_maker_amount([info], 1, target),
    ):
        assert await refusal(world, world.taker, data, order) == UNFILLED


async def test_an_order_that_asks_nothing_is_refused(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(taker_amount=0)
    signature, target = world.signed(order), world.user.address
    for amount in (0, 1, MOST):
        data = calldata.partial_fill_order(order, signature, amount)
        assert await refusal(world, world.taker, data, order) == "Invalid Taker amount"
    whole = calldata.fill_order(order, signature)
    assert await refusal(world, world.taker, whole, order) == "Invalid Taker amount"
    data = calldata.try_batch_fill_maker_amount([world.info(order)], 1, target)
    assert await refusal(world, world.taker, data, order) == UNFILLED


async def test_the_least_order_is_filled(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(maker_amount=1, taker_amount=1)
    data = calldata.partial_fill_order(order, world.signed(order), 1)
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
    assert await remaining(world, order) == FILLED_OR_CANCELLED


async def test_the_largest_order_is_filled_whole(world: World) -> None:
    coin, token = await world.new_token(symbol="COIN"), await world.new_token(symbol="TOKEN")
    await world.give(world.maker, coin, MOST, world.at.rfq)
    await world.give(world.taker, token, MOST, world.at.rfq)
    order = world.an_rfq_order(maker_asset=coin, taker_asset=token, maker_amount=MOST, taker_amount=MOST)
    signature = world.signed(order)
    for part in (MOST, 2, MOST // 2):  # a product of 256 bits and more
        data = calldata.partial_fill_order(order, signature, part)
        assert await refusal(world, world.taker, data, order) == OVERFLOW
    data = calldata.try_batch_fill_taker_amount([world.info(order)], MOST, world.taker.address)
    assert await refusal(world, world.taker, data, order) == UNFILLED
    data = calldata.fill_order(order, signature)
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
    assert await remaining(world, order) == FILLED_OR_CANCELLED
    assert await world.balance(coin, world.taker) == MOST
    assert await world.balance(token, world.maker) == MOST


async def test_a_unit_of_the_largest_order_leaves_the_rest(world: World) -> None:
    coin, token = await world.new_token(symbol="COIN"), await world.new_token(symbol="TOKEN")
    await world.give(world.maker, coin, MOST, world.at.rfq)
    await world.give(world.taker, token, MOST, world.at.rfq)
    order = world.an_rfq_order(maker_asset=coin, taker_asset=token, maker_amount=MOST, taker_amount=MOST)
    for data in (
        calldata.partial_fill_order(order, world.signed(order), 1),
        calldata.try_batch_fill_taker_amount([world.info(order)], 1, world.taker.address),
    ):
        before = await world.chain.snapshot()
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == [filled(world, order, 1, 1)]
        assert await remaining(world, order) == MOST
        await world.chain.restore(before)


async def test_more_than_anybody_has_is_refused(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(maker_amount=MOST)
    data = calldata.fill_order(order, world.signed(order))
    assert await refusal(world, world.taker, data, order) == TRANSFER_FAILED
    dear = world.an_rfq_order(taker_amount=MOST)
    data = calldata.fill_order(dear, world.signed(dear))
    assert await refusal(world, world.taker, data, dear) == TRANSFER_FAILED


async def test_who_has_too_little_or_allowed_too_little_is_not_drawn_on(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    data = calldata.fill_order(order, world.signed(order))
    for owner, token, short in (
        (world.maker, world.usdc, 2_500 * USDC - 1),
        (world.taker, world.weth, ONE - 1),
    ):
        await world.approve(owner, token, world.at.rfq, short)
        assert await refusal(world, world.taker, data, order) == TRANSFER_FAILED
        await world.approve(owner, token, world.at.rfq, short + 1)
    before = await world.chain.snapshot()
    await world.send(world.maker, world.usdc, calldata.transfer(world.user.address, 7_500 * USDC + 1))
    assert await refusal(world, world.taker, data, order) == TRANSFER_FAILED
    await world.chain.restore(before)
    receipt = await world.send(world.taker, world.at.rfq, data)  # to the unit
    assert rfq_events(world, receipt) == [filled(world, order)]
    for owner, token in ((world.maker, world.usdc), (world.taker, world.weth)):
        assert await world.ask(token, calldata.allowance(owner.address, world.at.rfq)) == 0
