"""Orders in slices: when each is due, what it gives and asks, and what the last one takes."""

from typing import Any

import pytest

from cambist.codecs.contracts.abi import decode_uint
from cambist.codecs.contracts.delta_calldata import order_state
from cambist.codecs.eip712_orders.delta import TwapBuyOrder, TwapOrder
from cambist.engine.chain.port import EthCall
from support.chain.world import ONE, USDC, World
from support.contracts.settling import Market

SLICE, LAST = ONE // 3, ONE - 2 * (ONE // 3)


async def kept(market: Market, order: TwapOrder | TwapBuyOrder) -> tuple[int, int]:
    """(Slices that are settled, time of the last)."""
    world = market.world
    question = order_state(order.owner, order.nonce, world.delta_hash(order))
    last_s, done = divmod(decode_uint(await world.chain.call(EthCall(world.at.delta, question)), 2), 1 << 64)
    return done, last_s


async def test_a_sale_slice_by_slice(world: World, market: Market) -> None:
    order = await market.a_twap(beneficiary=world.stranger.address)
    start_s = await world.now_s() + 10
    for done, at_s in ((1, start_s), (2, start_s + 60), (3, start_s + 120)):
        given = LAST if done == 3 else SLICE
        steps = market.agent_steps(800 * USDC + 1, given=given)
        event = (await market.settle(order, *steps, at_s=at_s)).event
        assert (event.spent, event.received) == (given, 800 * USDC + 1)
        assert (event.filled, event.is_closed) == (done, done == 3)
        assert await market.is_nonce_used(order) is (done == 3)
        assert await kept(market, order) == ((0, 0) if done == 3 else (done, at_s))
        assert await market.filled(order) == done
    assert await world.balance(world.weth, world.user) == 9 * ONE
    assert await world.balance(world.usdc, world.stranger) == 3 * (800 * USDC + 1)
    more = market.agent_steps(800 * USDC, given=SLICE)
    assert await market.refused_at(start_s + 180, order, *more) == f"NonceUsed(nonce {order.nonce})"


@pytest.mark.one_chain
async def test_each_slice_is_due_an_interval_after_the_one_before(world: World, market: Market) -> None:
    """At the second, not one before; and one that comes late moves all that follow."""
    order = await market.a_twap(deadline=await world.now_s() + 86_400)
    steps = market.agent_steps(800 * USDC, given=SLICE)
    start_s = await world.now_s() + 10
    await market.settle(order, *steps, at_s=start_s)
    assert await market.refused_at(start_s + 59, order, *steps) == f"TooEarly(notBefore {start_s + 60})"
    late_s = start_s + 1_000
    await market.settle(order, *steps, at_s=late_s)
    last = market.agent_steps(800 * USDC + 1, given=LAST)
    assert await market.refused_at(late_s, order, *last) == f"TooEarly(notBefore {late_s + 60})"
    assert await market.refused_at(late_s + 59, order, *last) == f"TooEarly(notBefore {late_s + 60})"
    assert (await market.settle(order, *last, at_s=late_s + 60)).event.is_closed


@pytest.mark.one_chain
async def test_the_first_slice_is_due_at_once_whatever_the_interval(world: World, market: Market) -> None:
    """Of the longest that there is, the second one is due never."""
    order = await market.a_twap(interval=(1 << 64) - 1)
    steps = market.agent_steps(800 * USDC, given=SLICE)
    start_s = await world.now_s() + 10
    await market.settle(order, *steps, at_s=start_s)
    due_s = start_s + order.interval
    assert await market.refused_settlement(order, *steps) == f"TooEarly(notBefore {due_s})"


async def test_each_slice_asks_its_minimum_and_the_last_its_part_rounded_up(
    world: World, market: Market
) -> None:
    order = await market.a_twap(interval=0)
    for minimum, given in ((800 * USDC, SLICE), (800 * USDC, SLICE), (800 * USDC + 1, LAST)):
        below = market.agent_steps(minimum - 1, given=given)
        assert (
            await market.refused_settlement(order, *below)
            == f"BelowMinimum(received {minimum - 1}, minimum {minimum})"
        )
        await market.settle(order, *market.agent_steps(minimum, given=given))


async def test_a_purchase_slice_by_slice(world: World, market: Market) -> None:
    """2,500 USDC in three: the last slice is one unit more."""
    order = await market.a_twap_purchase(beneficiary=world.stranger.address)
    wanted = 2_500 * USDC // 3
    start_s = await world.now_s() + 10
    spent = 0
    for done, at_s in ((1, start_s), (2, start_s + 60), (3, start_s + 120)):
        buys = wanted + (done == 3)
        maximum = order.max_src_amount * buys // order.total_dest_amount
        steps = market.agent_steps(buys, given=maximum)
        if done > 1:
            assert await market.refused_at(at_s - 1, order, *steps, src_given=maximum) == (
                f"TooEarly(notBefore {at_s})"
            )
        event = (await market.settle(order, *steps, src_given=maximum, at_s=at_s)).event
        spent += maximum
        assert (event.spent, event.received) == (maximum, buys)
        assert (event.filled, event.is_closed) == (done, done == 3)
    assert order.max_src_amount - 3 < spent <= order.max_src_amount
    assert await world.balance(world.usdc, world.stranger) == 2_500 * USDC
    more = market.agent_steps(wanted)
    assert (
        await market.refused_at(start_s + 180, order, *more, src_given=ONE)
        == f"NonceUsed(nonce {order.nonce})"
    )


async def test_each_slice_may_cost_its_part_of_the_maximum_rounded_down(world: World, market: Market) -> None:
    order = await market.a_twap_purchase(interval=0, max_src_amount=11 * ONE // 10 + 7)
    third = 2_500 * USDC // 3
    for buys in (third, third, third + 1):
        maximum, rounded_off = divmod(order.max_src_amount * buys, order.total_dest_amount)
        assert rounded_off
        steps = market.agent_steps(buys, given=maximum)
        assert (
            await market.refused_settlement(order, *steps, src_given=maximum + 1)
            == f"AboveMaximum(spent {maximum + 1}, maximum {maximum})"
        )
        below = market.agent_steps(buys - 1, given=maximum)
        assert (
            await market.refused_settlement(order, *below, src_given=maximum)
            == f"BelowMinimum(received {buys - 1}, minimum {buys})"
        )
        await market.settle(order, *steps, src_given=maximum)


async def test_what_a_purchases_slice_leaves_is_not_for_the_next(world: World, market: Market) -> None:
    order = await market.a_twap_purchase(interval=0)
    wanted = 2_500 * USDC // 3
    maximum = order.max_src_amount * wanted // order.total_dest_amount
    cheap = await market.settle(order, *market.agent_steps(wanted, given=1), src_given=1)
    assert cheap.event.spent == 1
    steps = market.agent_steps(wanted, given=maximum + 1)
    assert (
        await market.refused_settlement(order, *steps, src_given=maximum + 1)
        == f"AboveMaximum(spent {maximum + 1}, maximum {maximum})"
    )


@pytest.mark.parametrize("side", ["sale", "purchase"])
async def test_the_deadline_is_the_last_second(world: World, market: Market, side: str) -> None:
    deadline_s = await world.now_s() + 100
    order: TwapOrder | TwapBuyOrder
    if side == "sale":
        order = await market.a_twap(deadline=deadline_s, interval=1)
    else:
        order = await market.a_twap_purchase(deadline=deadline_s, interval=1)
    steps = market.agent_steps(2_500 * USDC // 3, given=SLICE)
    await market.settle(order, *steps, src_given=SLICE, at_s=deadline_s)
    assert await market.refused_at(deadline_s + 1, order, *steps, src_given=SLICE) == "OrderExpired()"


@pytest.mark.parametrize(
    "changed",
    [{"num_slices": 0}, {"num_slices": 11, "total_src_amount": 10}, {"total_src_amount": 0}],
)
async def test_a_sale_of_no_slices_or_of_empty_ones(
    world: World, market: Market, changed: dict[str, Any]
) -> None:
    assert await market.refused_settlement(await market.a_twap(**changed)) == "InvalidSlices()"


@pytest.mark.parametrize(
    "changed",
    [{"num_slices": 0}, {"num_slices": 11, "total_dest_amount": 10}, {"total_dest_amount": 0}],
)
async def test_a_purchase_of_no_slices_or_of_empty_ones(
    world: World, market: Market, changed: dict[str, Any]
) -> None:
    assert await market.refused_settlement(await market.a_twap_purchase(**changed)) == "InvalidSlices()"


async def test_one_slice_is_all(world: World, market: Market) -> None:
    order = await market.a_twap(num_slices=1, dest_amount_per_slice=2_400 * USDC)
    event = (await market.settle(order, *market.agent_steps(2_400 * USDC))).event
    assert (event.spent, event.filled, event.is_closed) == (ONE, 1, True)


async def test_slices_of_a_unit_each(world: World, market: Market) -> None:
    sale = await market.a_twap(interval=0, total_src_amount=3, dest_amount_per_slice=2)
    purchase = await market.a_twap_purchase(interval=0, total_dest_amount=3, max_src_amount=6)
    for done in (1, 2, 3):
        event = (await market.settle(sale, *market.agent_steps(2, given=1))).event
        assert (event.spent, event.received, event.is_closed) == (1, 2, done == 3)
        event = (await market.settle(purchase, *market.agent_steps(1, given=2), src_given=2)).event
        assert (event.spent, event.received, event.is_closed) == (2, 1, done == 3)


async def test_slices_through_firm_quotes(world: World, market: Market) -> None:
    sale = await market.a_twap(interval=0, num_slices=2, dest_amount_per_slice=1_200 * USDC)
    for _ in range(2):
        quote = world.a_firm_quote(maker_amount=1_250 * USDC, taker_amount=ONE // 2)
        assert (await market.settle(sale, market.fill_step(quote))).event.received == 1_250 * USDC
    purchase = await market.a_twap_purchase(interval=0, num_slices=2)
    for _ in range(2):
        step = market.fill_step(world.a_firm_quote(), maker_amount=1_250 * USDC)
        event = (await market.settle(purchase, step, src_given=ONE * 55 // 100)).event
        assert (event.spent, event.received) == (ONE // 2, 1_250 * USDC)
    assert await world.balance(world.weth, world.user) == 8 * ONE
