"""An order is filled in parts, to the last unit."""

from cambist.codecs.contracts import calldata
from support.chain.world import ONE, USDC, World
from support.contracts.rfq_stories import (
    ALREADY_FILLED,
    FILLED_OR_CANCELLED,
    filled,
    funded,
    refusal,
    remaining,
    remaining_of,
    rfq_events,
    the_returned,
)

NOTHING = "Maker token fill amount cannot be 0"


async def test_parts_add_up_to_the_whole(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    signature = world.signed(order)
    left = 2_500 * USDC
    for taker_amount, maker_amount in (
        (ONE // 4, 625 * USDC),
        (ONE // 2, 1_250 * USDC),
        (ONE // 4, 625 * USDC),
    ):
        data = calldata.partial_fill_order(order, signature, taker_amount)
        assert await the_returned(world, world.taker, data) == maker_amount
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == [filled(world, order, maker_amount, taker_amount)]
        left -= maker_amount
        assert await remaining(world, order) == left + 1
    assert left == 0
    assert await remaining(world, order) == FILLED_OR_CANCELLED
    assert await world.balance(world.weth, world.maker) == ONE
    assert await world.balance(world.usdc, world.taker) == 2_500 * USDC
    data = calldata.partial_fill_order(order, signature, 1)
    assert await refusal(world, world.taker, data, order) == ALREADY_FILLED


async def test_a_part_may_be_the_whole(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    data = calldata.partial_fill_order(order, world.signed(order), ONE)
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
    assert await remaining(world, order) == FILLED_OR_CANCELLED


async def test_another_may_receive_a_part(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    target = world.user.address
    data = calldata.partial_fill_order_with_target(order, world.signed(order), ONE // 5, target)
    assert await the_returned(world, world.taker, data) == 500 * USDC
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, order, 500 * USDC, ONE // 5, target)]
    assert await world.balance(world.usdc, world.user) == 500 * USDC
    assert await world.balance(world.usdc, world.taker) == 0
    assert await world.balance(world.weth, world.maker) == ONE // 5


async def test_whoever_fills_first_anyone_fills_on(world: World) -> None:
    await funded(world)
    await world.give(world.stranger, world.weth, ONE, world.at.rfq)
    order = world.an_rfq_order()
    for filler in (world.taker, world.stranger):
        data = calldata.partial_fill_order(order, world.signed(order), ONE // 2)
        receipt = await world.send(filler, world.at.rfq, data)
        assert rfq_events(world, receipt) == [
            filled(world, order, 1_250 * USDC, ONE // 2, target=filler.address)
        ]
    assert await remaining(world, order) == FILLED_OR_CANCELLED


async def test_a_part_rounds_down_and_the_last_unit_stays_where_it_does(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(maker_amount=10, taker_amount=3)
    signature = world.signed(order)
    part = calldata.partial_fill_order(order, signature, 1)
    for left in (7, 4, 1):
        receipt = await world.send(world.taker, world.at.rfq, part)
        assert rfq_events(world, receipt) == [filled(world, order, 3, 1)]
        assert await remaining(world, order) == left + 1
    assert await refusal(world, world.taker, part, order) == "Invalid amount"
    # Measured in the maker's token the last unit can be had; what it costs rounds up.
    last = calldata.try_batch_fill_maker_amount([world.info(order)], 1, world.taker.address)
    receipt = await world.send(world.taker, world.at.rfq, last)
    assert rfq_events(world, receipt) == [filled(world, order, 1, 1)]
    assert await remaining(world, order) == FILLED_OR_CANCELLED
    assert await world.balance(world.weth, world.maker) == 4
    assert await world.balance(world.usdc, world.taker) == 10


async def test_a_part_that_is_worth_nothing_is_refused(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order(maker_amount=3, taker_amount=10)
    signature = world.signed(order)
    for worthless in (1, 3):
        data = calldata.partial_fill_order(order, signature, worthless)
        assert await refusal(world, world.taker, data, order) == NOTHING
    receipt = await world.send(world.taker, world.at.rfq, calldata.partial_fill_order(order, signature, 4))
    assert rfq_events(world, receipt) == [filled(world, order, 1, 4)]
    assert await remaining(world, order) == 3


async def test_more_than_is_left_is_refused(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    signature = world.signed(order)
    over = calldata.partial_fill_order(order, signature, ONE + 1)
    assert await refusal(world, world.taker, over, order) == "Invalid Taker amount"
    for amount in (101, 199):  # for which a whole unit would be given, no more than there is
        single = world.an_rfq_order(maker_amount=1, taker_amount=100)
        data = calldata.partial_fill_order(single, world.signed(single), amount)
        assert await refusal(world, world.taker, data, single) == "Invalid Taker amount"
    await world.send(world.taker, world.at.rfq, calldata.partial_fill_order(order, signature, ONE // 4))
    for too_much in (3 * ONE // 4 + 10**12, ONE):  # 10**12 wei are a unit of USDC and more
        data = calldata.partial_fill_order(order, signature, too_much)
        assert await refusal(world, world.taker, data, order) == "Invalid amount"
    rest = calldata.partial_fill_order(order, signature, 3 * ONE // 4)
    await world.send(world.taker, world.at.rfq, rest)
    assert await remaining(world, order) == FILLED_OR_CANCELLED


async def test_a_part_of_nothing_is_refused(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    data = calldata.partial_fill_order(order, world.signed(order), 0)
    assert await refusal(world, world.taker, data, order) == "Invalid Taker amount"


async def test_an_order_begun_is_not_filled_whole(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    signature = world.signed(order)
    await world.send(world.taker, world.at.rfq, calldata.partial_fill_order(order, signature, ONE // 2))
    for whole in (
        calldata.fill_order(order, signature),
        calldata.fill_order_with_target(order, signature, world.user.address),
    ):
        assert await refusal(world, world.taker, whole, order) == ALREADY_FILLED


async def test_what_remains_of_many_orders_is_read_at_once(world: World) -> None:
    await funded(world)
    unseen, begun, closed = (world.an_rfq_order() for _ in range(3))
    part = calldata.partial_fill_order(begun, world.signed(begun), ONE // 2)
    await world.send(world.taker, world.at.rfq, part)
    await world.send(world.taker, world.at.rfq, calldata.fill_order(closed, world.signed(closed)))
    hashes = [world.rfq_hash(order) for order in (unseen, begun, closed, begun)]
    half = 1_250 * USDC + 1
    assert await remaining_of(world, world.maker.address, hashes) == [0, half, FILLED_OR_CANCELLED, half]
    assert await remaining_of(world, world.taker.address, hashes) == [0, 0, 0, 0]
    assert await remaining_of(world, world.maker.address, []) == []
