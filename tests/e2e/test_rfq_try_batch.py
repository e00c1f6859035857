"""A taker wants an exact amount, filled by whichever orders can be."""

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.eip712_orders.rfq import RfqOrder
from support.chain.evm_programs import assembled, deploys
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.rfq_stories import (
    FILLED_OR_CANCELLED,
    UNFILLED,
    filled,
    funded,
    refusal,
    remaining,
    rfq_events,
)


async def bad_orders(world: World) -> list[OrderInfo]:
    """An order for each reason why an order cannot be filled."""
    cancelled, whole = world.an_rfq_order(), world.an_rfq_order(maker_amount=USDC, taker_amount=1)
    await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(cancelled)))
    await world.send(world.taker, world.at.rfq, calldata.fill_order(whole, world.signed(whole)))
    return [
        world.info(cancelled),
        world.info(whole),
        world.info(world.an_rfq_order(expiry=1)),
        world.info(world.an_rfq_order(taker=world.user.address)),
        world.info(world.an_rfq_order(), world.stranger),
        world.info(world.an_rfq_order(), taker_fill_amount=0),
        world.info(world.an_rfq_order(), taker_fill_amount=ONE + 1),
        world.info(world.an_rfq_order(maker_amount=0)),
        world.info(world.an_rfq_order(taker_amount=0)),
        world.info(world.an_rfq_order(maker_amount=MOST, taker_amount=MOST)),
        world.info(world.an_rfq_order(maker=world.partner.address), world.partner),  # a maker without tokens
        world.info(world.an_rfq_order(maker_asset=world.stranger.address)),  # no token
        world.info(world.an_rfq_order(taker_asset=world.dai), permit_taker_asset=bytes(224)),
    ]


async def test_an_exact_amount_is_spent_and_bad_orders_are_passed_over(world: World) -> None:
    await funded(world)
    first, second, third = an_order(world, 2_500), an_order(world, 2_400), an_order(world, 2_300)
    bad = await bad_orders(world)
    infos = [*bad[:6], world.info(first), *bad[6:], world.info(second), world.info(third)]
    target = world.user.address
    spent = ONE + ONE // 2 + 1
    before = await world.balance(world.weth, world.taker)
    data = calldata.try_batch_fill_taker_amount(infos, spent, target)
    receipt = await world.send(world.taker, world.at.rfq, data)
    second_amount = (ONE // 2 + 1) * 2_400 * USDC // ONE
    assert rfq_events(world, receipt) == [
        filled(world, first, target=target),
        filled(world, second, second_amount, ONE // 2 + 1, target),
    ]
    assert await world.balance(world.weth, world.taker) == before - spent
    assert await world.balance(world.usdc, target) == 2_500 * USDC + second_amount
    assert await remaining(world, first) == FILLED_OR_CANCELLED
    assert await remaining(world, second) == 2_400 * USDC - second_amount + 1
    assert await remaining(world, third) == 0
    data = calldata.try_batch_fill_taker_amount(bad, 2, target)
    assert await refusal(world, world.taker, data, *(info.order for info in bad)) == UNFILLED


async def test_an_exact_amount_is_received_and_bad_orders_are_passed_over(world: World) -> None:
    await funded(world)
    first, second = an_order(world, 2_500), world.an_rfq_order(maker_amount=2_399_999_999)
    bad = await bad_orders(world)
    infos = [*bad[:6], world.info(first), *bad[6:], world.info(second)]
    target = world.user.address
    before = await world.balance(world.weth, world.taker)
    data = calldata.try_batch_fill_maker_amount(infos, 2_500 * USDC + 7, target)
    receipt = await world.send(world.taker, world.at.rfq, data)
    cost = -(-7 * ONE // 2_399_999_999)
    assert rfq_events(world, receipt) == [
        filled(world, first, target=target),
        filled(world, second, 7, cost, target),
    ]
    assert await world.balance(world.usdc, target) == 2_500 * USDC + 7
    assert await world.balance(world.weth, world.taker) == before - ONE - cost
    assert await remaining(world, second) == 2_399_999_999 - 7 + 1
    data = calldata.try_batch_fill_maker_amount(bad, 2, target)
    assert await refusal(world, world.taker, data, *(info.order for info in bad)) == UNFILLED


async def test_a_batch_that_has_all_asks_no_further_maker(world: World) -> None:
    """The last order's maker is a contract that wastes a million of gas on each signature."""
    await funded(world)
    wastes = deploys(assembled("for_ever: @for_ever JUMP"))
    wallet = (await world.send(world.stranger, b"", wastes)).contract
    assert wallet is not None
    for fill, amount in (
        (calldata.try_batch_fill_taker_amount, ONE),
        (calldata.try_batch_fill_maker_amount, 2_500 * USDC),
    ):
        infos = [world.info(an_order(world, 2_500)), world.info(world.an_rfq_order(maker=wallet))]
        data = fill(infos, amount, world.taker.address)
        receipt = await world.forced(world.taker, world.at.rfq, data)
        assert receipt.succeeded
        assert receipt.gas_used < 200_000


async def test_no_more_is_taken_of_an_order_than_is_said(world: World) -> None:
    await funded(world)
    first, second = an_order(world, 2_500), an_order(world, 2_400)
    infos = [world.info(first, taker_fill_amount=ONE // 4), world.info(second, taker_fill_amount=ONE // 2)]
    over_taker = calldata.try_batch_fill_taker_amount(infos, 3 * ONE // 4 + 1, world.taker.address)
    over_maker = calldata.try_batch_fill_maker_amount(infos, 1_825 * USDC + 1, world.taker.address)
    for data in (over_taker, over_maker):
        assert await refusal(world, world.taker, data, first, second) == UNFILLED
    before = await world.chain.snapshot()
    expected = [
        filled(world, first, 625 * USDC, ONE // 4),
        filled(world, second, 1_200 * USDC, ONE // 2),
    ]
    for data in (
        calldata.try_batch_fill_taker_amount(infos, 3 * ONE // 4, world.taker.address),
        calldata.try_batch_fill_maker_amount(infos, 1_825 * USDC, world.taker.address),
    ):
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == expected
        await world.chain.restore(before)
        before = await world.chain.snapshot()


async def test_an_order_begun_gives_what_is_left_of_it(world: World) -> None:
    await funded(world)
    begun, fresh = an_order(world, 2_500), an_order(world, 2_400)
    part = calldata.partial_fill_order(begun, world.signed(begun), 3 * ONE // 4)
    await world.send(world.taker, world.at.rfq, part)
    infos = [world.info(begun), world.info(fresh)]
    expected = [
        filled(world, begun, 625 * USDC, ONE // 4),
        filled(world, fresh, 1_800 * USDC, 3 * ONE // 4),
    ]
    before = await world.chain.snapshot()
    for data in (
        calldata.try_batch_fill_taker_amount(infos, ONE, world.taker.address),
        calldata.try_batch_fill_maker_amount(infos, 2_425 * USDC, world.taker.address),
    ):
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == expected
        assert await remaining(world, begun) == FILLED_OR_CANCELLED
        await world.chain.restore(before)
        before = await world.chain.snapshot()


async def test_what_a_begun_order_may_still_ask_rounds_down(world: World) -> None:
    """7 of 10 are left, which is 2.1 of 3: for 2 the order gives 6; for 3 it would give more than is left."""
    await funded(world)
    begun, fresh = world.an_rfq_order(maker_amount=10, taker_amount=3), an_order(world, 2_500)
    part = calldata.partial_fill_order(begun, world.signed(begun), 1)
    await world.send(world.taker, world.at.rfq, part)
    infos = [world.info(begun), world.info(fresh)]
    data = calldata.try_batch_fill_taker_amount(infos, 2 + ONE // 2, world.taker.address)
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [
        filled(world, begun, 6, 2),
        filled(world, fresh, 1_250 * USDC, ONE // 2),
    ]
    assert await remaining(world, begun) == 1 + 1


async def test_what_an_order_gives_for_so_much_rounds_down(world: World) -> None:
    """For 2 of 3 an order of 10 gives 6, not 7: the eighth and last unit of the batch is the next order's."""
    await funded(world)
    first, second = world.an_rfq_order(maker_amount=10, taker_amount=3), an_order(world, 2_500)
    infos = [world.info(first, taker_fill_amount=2), world.info(second)]
    cost = -(-2 * ONE // (2_500 * USDC))
    for data in (
        calldata.try_batch_fill_maker_amount(infos, 8, world.taker.address),
        calldata.try_batch_fill_taker_amount(infos, 2 + cost, world.taker.address),
    ):
        before = await world.chain.snapshot()
        assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [
            filled(world, first, 6, 2),
            filled(world, second, 2, cost),
        ]
        await world.chain.restore(before)


async def test_one_order_twice_gives_no_more_than_it_has(world: World) -> None:
    await funded(world)
    order = an_order(world, 2_500)
    infos = [world.info(order, taker_fill_amount=3 * ONE // 4)] * 2
    over = calldata.try_batch_fill_taker_amount(infos, ONE + 1, world.taker.address)
    assert await refusal(world, world.taker, over, order) == UNFILLED
    data = calldata.try_batch_fill_taker_amount(infos, ONE, world.taker.address)
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [
        filled(world, order, 1_875 * USDC, 3 * ONE // 4),
        filled(world, order, 625 * USDC, ONE // 4),
    ]


async def test_the_taker_is_who_sends_and_not_the_contract(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(taker=world.taker.address)
    data = calldata.try_batch_fill_taker_amount([world.info(order)], ONE, world.user.address)
    assert await refusal(world, world.stranger, data, order) == UNFILLED
    own = world.an_rfq_order(taker=world.at.rfq)
    data = calldata.try_batch_fill_taker_amount([world.info(own)], ONE, world.user.address)
    assert await refusal(world, world.taker, data, own) == UNFILLED
    data = calldata.try_batch_fill_taker_amount([world.info(order)], ONE, world.user.address)
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, order, target=world.user.address)]


async def test_nothing_wanted_is_nothing_filled(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    for infos, amount, succeeds in (([world.info(order)], 0, True), ([], 0, True), ([], 1, False)):
        for data in (
            calldata.try_batch_fill_taker_amount(infos, amount, world.taker.address),
            calldata.try_batch_fill_maker_amount(infos, amount, world.taker.address),
        ):
            if succeeds:
                assert (await world.send(world.taker, world.at.rfq, data)).logs == ()
            else:
                assert await refusal(world, world.taker, data, order) == UNFILLED
    assert await remaining(world, order) == 0


async def test_the_largest_amounts_are_more_than_there_is(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    for data in (
        calldata.try_batch_fill_taker_amount([world.info(order)], MOST, world.taker.address),
        calldata.try_batch_fill_maker_amount([world.info(order)], MOST, world.taker.address),
    ):
        assert await refusal(world, world.taker, data, order) == UNFILLED


def an_order(world: World, dollars: int) -> RfqOrder:
    """Order of `dollars` USDC for one WETH."""
    return world.an_rfq_order(maker_amount=dollars * USDC)
