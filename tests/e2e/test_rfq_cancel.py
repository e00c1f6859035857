"""A maker takes orders back."""

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.contract_events import OrderCancelled, OrdersCancelledUntil
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
)


async def test_a_cancelled_order_is_not_filled(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    order_hash, signature = world.rfq_hash(order), world.signed(order)
    receipt = await world.send(world.maker, world.at.rfq, calldata.cancel_order(order_hash))
    assert rfq_events(world, receipt) == [OrderCancelled(order_hash, world.maker.address)]
    assert await remaining(world, order) == FILLED_OR_CANCELLED
    for data in (
        calldata.fill_order(order, signature),
        calldata.partial_fill_order(order, signature, 1),
        calldata.batch_fill_order_with_target([world.info(order)], world.taker.address),
    ):
        assert await refusal(world, world.taker, data, order) == ALREADY_FILLED


async def test_a_strangers_cancel_leaves_the_order_alone(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    order_hash = world.rfq_hash(order)
    receipt = await world.send(world.stranger, world.at.rfq, calldata.cancel_order(order_hash))
    assert rfq_events(world, receipt) == [OrderCancelled(order_hash, world.stranger.address)]
    assert await remaining_of(world, world.stranger.address, [order_hash]) == [FILLED_OR_CANCELLED]
    assert await remaining(world, order) == 0
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert rfq_events(world, receipt) == [filled(world, order)]


async def test_the_rest_of_a_begun_order_is_cancelled(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    part = calldata.partial_fill_order(order, world.signed(order), ONE // 2)
    await world.send(world.taker, world.at.rfq, part)
    assert await remaining(world, order) == 1_250 * USDC + 1
    receipt = await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(order)))
    assert rfq_events(world, receipt) == [OrderCancelled(world.rfq_hash(order), world.maker.address)]
    assert await remaining(world, order) == FILLED_OR_CANCELLED
    assert await refusal(world, world.taker, part, order) == ALREADY_FILLED


async def test_a_closed_order_is_not_cancelled_again(world: World) -> None:
    await funded(world)
    cancelled, whole = world.an_rfq_order(), world.an_rfq_order()
    await world.send(world.taker, world.at.rfq, calldata.fill_order(whole, world.signed(whole)))
    cancel = calldata.cancel_order(world.rfq_hash(cancelled))
    await world.send(world.maker, world.at.rfq, cancel)
    for again in (
        cancel,
        calldata.cancel_order(world.rfq_hash(whole)),
        calldata.cancel_orders([world.rfq_hash(cancelled), world.rfq_hash(whole)]),
    ):
        receipt = await world.send(world.maker, world.at.rfq, again)
        assert receipt.logs == ()
        assert await remaining(world, cancelled) == FILLED_OR_CANCELLED
        assert await remaining(world, whole) == FILLED_OR_CANCELLED


async def test_many_orders_are_cancelled_at_once(world: World) -> None:
    await funded(world)
    unseen, closed, begun, last, other = (world.an_rfq_order() for _ in range(5))
    hashes = [world.rfq_hash(order) for order in (unseen, closed, begun, last)]
    part = calldata.partial_fill_order(begun, world.signed(begun), ONE // 2)
    await world.send(world.taker, world.at.rfq, part)
    await world.send(world.maker, world.at.rfq, calldata.cancel_order(hashes[1]))
    cancel = calldata.cancel_orders([hashes[0], *hashes])
    receipt = await world.send(world.maker, world.at.rfq, cancel)
    maker = world.maker.address
    assert rfq_events(world, receipt) == [OrderCancelled(hashes[at], maker) for at in (0, 2, 3)]
    assert await remaining_of(world, maker, hashes) == [FILLED_OR_CANCELLED] * 4
    assert await remaining(world, other) == 0
    assert (await world.send(world.maker, world.at.rfq, calldata.cancel_orders([]))).logs == ()


async def test_all_orders_that_expire_until_a_time_are_cancelled(world: World) -> None:
    """A call cancels the maker's orders up to an expiry, and orders without expiry, but no other orders."""
    await funded(world)
    now_s = await world.now_s()
    dead = [world.an_rfq_order(expiry=expiry) for expiry in (0, now_s + 500, now_s + 1_000)]
    begun = world.an_rfq_order(expiry=now_s + 900)
    part = calldata.partial_fill_order(begun, world.signed(begun), ONE // 4)
    await world.send(world.taker, world.at.rfq, part)
    receipt = await world.send(world.maker, world.at.rfq, calldata.cancel_orders_until(now_s + 1_000))
    assert rfq_events(world, receipt) == [OrdersCancelledUntil(world.maker.address, now_s + 1_000)]
    assert await world.ask(world.at.rfq, calldata.cancelled_until(world.maker.address)) == now_s + 1_000
    for order in (*dead, begun):
        signature = world.signed(order)
        info = world.info(order)
        for data in (
            calldata.partial_fill_order(order, signature, ONE // 4),
            calldata.batch_fill_order_with_target([info], world.taker.address),
        ):
            assert await refusal(world, world.taker, data, order) == ALREADY_FILLED
        tried = calldata.try_batch_fill_taker_amount([info], ONE // 4, world.taker.address)
        assert "requested fill amount" in await world.refused(world.taker, world.at.rfq, tried)
    live = world.an_rfq_order(expiry=now_s + 1_001)
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(live, world.signed(live)))
    assert rfq_events(world, receipt) == [filled(world, live)]
    assert await world.ask(world.at.rfq, calldata.cancelled_until(world.stranger.address)) == 0


async def test_a_cancellation_of_all_is_not_taken_back(world: World) -> None:
    now_s = await world.now_s()
    await world.send(world.maker, world.at.rfq, calldata.cancel_orders_until(now_s + 1_000))
    for earlier in (0, now_s, now_s + 1_000):
        refused = await world.refused(world.maker, world.at.rfq, calldata.cancel_orders_until(earlier))
        assert refused == "Cancelled already"
    await world.send(world.maker, world.at.rfq, calldata.cancel_orders_until((1 << 128) - 1))
