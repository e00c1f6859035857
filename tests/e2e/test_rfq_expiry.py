"""An order ends at its time."""

from cambist.codecs.contracts import calldata
from support.chain.world import HOUR_S, ONE, USDC, World
from support.contracts.rfq_stories import UNFILLED, filled, funded, refusal, remaining, rfq_events

YEARS_S = 100 * 365 * 24 * HOUR_S


async def test_an_order_is_filled_in_its_last_second_and_not_in_the_next(world: World) -> None:
    await funded(world)
    expiry = await world.now_s() + HOUR_S
    order, late = world.an_rfq_order(expiry=expiry), world.an_rfq_order(expiry=expiry)
    await world.chain.set_time(expiry)
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert await world.now_s() == expiry
    assert rfq_events(world, receipt) == [filled(world, order)]
    await world.pass_time(1)
    assert await world.now_s() == expiry + 1
    signature = world.signed(late)
    target = world.user.address
    for data in (
        calldata.fill_order(late, signature),
        calldata.fill_order_with_target(late, signature, target),
        calldata.partial_fill_order(late, signature, ONE),
        calldata.partial_fill_order_with_target(late, signature, ONE, target),
        calldata.partial_fill_order_with_target_permit(world.info(late), target),
        calldata.batch_fill_order_with_target([world.info(late)], target),
    ):
        assert await refusal(world, world.taker, data, late) == "Order expired"
    data = calldata.try_batch_fill_taker_amount([world.info(late)], ONE, target)
    assert await refusal(world, world.taker, data, late) == UNFILLED


async def test_what_is_left_of_a_part_expires_too(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(expiry=await world.now_s() + HOUR_S)
    data = calldata.partial_fill_order(order, world.signed(order), ONE // 2)
    await world.send(world.taker, world.at.rfq, data)
    await world.pass_time(HOUR_S + 1)
    assert await refusal(world, world.taker, data, order) == "Order expired"
    assert await remaining(world, order) == 1_250 * USDC + 1


async def test_an_order_without_expiry_stays_for_ever(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(expiry=0)
    await world.pass_time(YEARS_S)
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert rfq_events(world, receipt) == [filled(world, order)]


async def test_the_largest_expiry_is_a_time_and_a_larger_one_no_order(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(expiry=(1 << 128) - 1)
    beyond = world.an_rfq_order(expiry=1 << 128)
    data = calldata.fill_order(beyond, world.signed(order))
    assert await refusal(world, world.taker, data, order) == ""
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert rfq_events(world, receipt) == [filled(world, order)]
