"""A taker fills many orders in one transaction: all of them, or nothing."""

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.contract_events import OrderFilled
from support.chain.world import ONE, USDC, World
from support.contracts.rfq_stories import (
    ALREADY_FILLED,
    TRANSFER_FAILED,
    filled,
    funded,
    refusal,
    remaining,
    rfq_events,
)


async def test_orders_of_two_makers_are_filled_for_a_third(world: World) -> None:
    await funded(world)
    await world.give(world.partner, world.dai, 1_000 * ONE, world.at.rfq)
    usdc = world.an_rfq_order()
    dai = world.an_rfq_order(maker=world.partner.address, maker_asset=world.dai, maker_amount=900 * ONE)
    infos = [
        world.info(usdc, taker_fill_amount=ONE // 2),
        world.info(dai, world.partner, taker_fill_amount=ONE // 3),
    ]
    target = world.user.address
    data = calldata.batch_fill_order_with_target(infos, target)
    receipt = await world.send(world.taker, world.at.rfq, data)
    dai_amount = ONE // 3 * 900 * ONE // ONE
    assert rfq_events(world, receipt) == [
        filled(world, usdc, 1_250 * USDC, ONE // 2, target),
        filled(world, dai, dai_amount, ONE // 3, target),
    ]
    assert await world.balance(world.usdc, target) == 1_250 * USDC
    assert await world.balance(world.dai, target) == dai_amount
    assert await world.balance(world.weth, world.maker) == ONE // 2
    assert await world.balance(world.weth, world.partner) == ONE // 3
    assert await remaining(world, usdc) == 1_250 * USDC + 1
    assert await remaining(world, dai) == 900 * ONE - dai_amount + 1


async def test_one_order_that_cannot_be_filled_stops_them_all(world: World) -> None:
    await funded(world)
    good, cancelled = world.an_rfq_order(), world.an_rfq_order()
    cancel = calldata.cancel_order(world.rfq_hash(cancelled))
    await world.send(world.maker, world.at.rfq, cancel)
    dear = world.an_rfq_order(maker_amount=10_000 * USDC)
    for bad, reason in (
        (world.info(world.an_rfq_order(expiry=1)), "Order expired"),
        (world.info(world.an_rfq_order(taker=world.user.address)), "Access denied"),
        (world.info(world.an_rfq_order(), world.stranger), "Invalid Signature"),
        (world.info(cancelled), ALREADY_FILLED),
        (world.info(world.an_rfq_order(), taker_fill_amount=0), "Invalid Taker amount"),
        (world.info(world.an_rfq_order(), taker_fill_amount=ONE + 1), "Invalid Taker amount"),
        (world.info(world.an_rfq_order(), taker_fill_amount=1), "Maker token fill amount cannot be 0"),
        (world.info(good), "Invalid amount"),  # the second time
        (world.info(dear), TRANSFER_FAILED),
    ):
        infos = [world.info(good, taker_fill_amount=ONE // 2), bad]
        data = calldata.batch_fill_order_with_target(infos, world.taker.address)
        assert await refusal(world, world.taker, data, good, bad.order) == reason


async def test_one_order_may_stand_in_a_batch_more_than_once(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    infos = [world.info(order, taker_fill_amount=amount) for amount in (ONE // 2, ONE // 4, ONE // 4)]
    data = calldata.batch_fill_order_with_target(infos, world.taker.address)
    events = rfq_events(world, await world.send(world.taker, world.at.rfq, data))
    amounts = [event.maker_amount for event in events if isinstance(event, OrderFilled)]
    assert amounts == [1_250 * USDC, 625 * USDC, 625 * USDC]
    assert await remaining(world, order) == 1
    assert await refusal(world, world.taker, data, order) == ALREADY_FILLED


async def test_a_batch_of_none_does_nothing(world: World) -> None:
    await funded(world)
    data = calldata.batch_fill_order_with_target([], world.taker.address)
    assert (await world.send(world.taker, world.at.rfq, data)).logs == ()
