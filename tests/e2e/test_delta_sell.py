"""A user sells: a relayer settles the signed order through makers' firm quotes, an agent's stock, or both."""

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import selector, uint_word
from cambist.codecs.contracts.contract_events import OrderFilled, OrderSettled, Transfer
from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.codecs.eip712_orders.delta import DeltaOrder
from support.chain.world import ONE, USDC, World
from support.contracts.settling import STEP_GAS, Market, events


async def test_a_firm_quote_fills_an_order_whole(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    quote = world.a_firm_quote()
    settled = await market.settle(order, market.fill_step(quote))
    assert settled.event == OrderSettled(
        order_hash=world.delta_hash(order),
        owner=world.user.address,
        nonce=order.nonce,
        src_token=world.weth,
        dest_token=world.usdc,
        spent=ONE,
        received=2_500 * USDC,
        filled=ONE,
        is_closed=True,
    )
    assert settled.fees == ()
    (fill,) = events(settled.receipt, OrderFilled)
    assert fill == OrderFilled(
        order_hash=world.rfq_hash(quote),
        maker=world.maker.address,
        maker_asset=world.usdc,
        maker_amount=2_500 * USDC,
        taker=world.at.delta,
        taker_asset=world.weth,
        taker_amount=ONE,
    )
    assert await world.balance(world.weth, world.user) == 9 * ONE
    assert await world.balance(world.usdc, world.user) == 2_500 * USDC
    assert await world.balance(world.weth, world.maker) == ONE
    assert await market.filled(order) == ONE
    assert await market.is_nonce_used(order)
    for emptied in (world.at.delta, world.at.executor, world.at.fee_vault):
        assert set((await world.balances(emptied)).values()) == {0}
    assert (
        await market.refused_settlement(order, market.fill_step(quote)) == f"NonceUsed(nonce {order.nonce})"
    )


async def test_the_next_quote_fills_what_a_cancelled_one_does_not(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    cancelled, half, rest = (
        world.a_firm_quote(maker_amount=1_250 * USDC, taker_amount=ONE // 2) for _ in range(3)
    )
    await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(cancelled)))
    step = market.fill_step(cancelled, half, rest)
    assert (await market.settle(order, step)).event.received == 2_500 * USDC


async def test_two_hops(world: World, market: Market) -> None:
    order = await world.a_delta_order(dest_token=world.dai, dest_amount=2_400 * ONE, expected_amount=0)
    first = world.a_firm_quote()
    second = world.a_firm_quote(
        maker_asset=world.dai, taker_asset=world.usdc, maker_amount=2_490 * ONE, taker_amount=2_500 * USDC
    )
    settled = await market.settle(
        order, market.fill_step(first, receiver=world.at.executor), market.fill_step(second)
    )
    assert (settled.event.dest_token, settled.event.received) == (world.dai, 2_490 * ONE)
    assert await world.balance(world.dai, world.user) == 2_490 * ONE
    assert await world.balance(world.usdc, world.user) == 0


async def test_the_owner_gets_what_is_left_between_hops_and_of_the_source(
    world: World, market: Market
) -> None:
    """Also where somebody else is the beneficiary."""
    order = await world.a_delta_order(
        dest_token=world.dai, dest_amount=2_000 * ONE, beneficiary=world.stranger.address
    )
    first = world.a_firm_quote(taker_amount=ONE * 9 // 10)
    second = world.a_firm_quote(
        maker_asset=world.dai, taker_asset=world.usdc, maker_amount=2_390 * ONE, taker_amount=2_400 * USDC
    )
    settled = await market.settle(
        order,
        market.fill_step(first, taker_amount=ONE * 9 // 10, receiver=world.at.executor),
        market.fill_step(second, taker_amount=2_400 * USDC),
        leftovers=(world.usdc, world.weth),
    )
    assert (settled.event.spent, settled.event.received) == (ONE * 9 // 10, 2_390 * ONE)
    owner = world.user.address
    # Delta pays only after the executor is empty
    *_, usdc, back, weth, dai = events(settled.receipt, Transfer)
    assert usdc == Transfer(world.at.executor, owner, 100 * USDC)
    assert back == Transfer(world.at.executor, world.at.delta, ONE // 10)
    assert weth == Transfer(world.at.delta, owner, ONE // 10)
    assert dai == Transfer(world.at.delta, world.stranger.address, 2_390 * ONE)
    assert await world.balances(world.stranger) == {
        (world.weth, world.stranger.address): 0,
        (world.usdc, world.stranger.address): 0,
        (world.dai, world.stranger.address): 2_390 * ONE,
    }
    assert await world.balances(world.user) == {
        (world.weth, world.user.address): 9 * ONE + ONE // 10,
        (world.usdc, world.user.address): 100 * USDC,
        (world.dai, world.user.address): 0,
    }


async def test_an_agents_own_contract(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    settled = await market.settle(order, *market.agent_steps(2_450 * USDC))
    assert settled.event.received == 2_450 * USDC
    assert await world.balance(world.weth, market.agent) == ONE
    assert await world.balance(world.usdc, world.user) == 2_450 * USDC


async def test_an_agent_mixes_its_own_stock_and_a_firm_quote(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    quote = world.a_firm_quote(maker_amount=1_500 * USDC, taker_amount=ONE * 6 // 10)
    steps = market.agent_steps(980 * USDC, given=ONE * 4 // 10)
    rest = SettlementStep(world.weth, STEP_GAS, calldata.transfer(world.at.executor, ONE * 6 // 10))
    settled = await market.settle(order, *steps, rest, market.fill_step(quote))
    assert settled.event.received == 2_480 * USDC
    assert await world.balance(world.weth, world.maker) == ONE * 6 // 10
    assert await world.balance(world.weth, market.agent) == ONE * 4 // 10


async def test_the_minimum_is_met_to_the_unit(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    below = market.agent_steps(2_400 * USDC - 1)
    assert (
        await market.refused_settlement(order, *below)
        == "BelowMinimum(received 2399999999, minimum 2400000000)"
    )
    settled = await market.settle(order, *market.agent_steps(2_400 * USDC))
    assert settled.event.received == 2_400 * USDC


async def test_the_promise_is_met_to_the_unit(world: World, market: Market) -> None:
    """Of a sale by what arrives, of a purchase by what is spent; a refusal tells both amounts."""
    sale, purchase = await world.a_delta_order(), await market.a_purchase()
    promised = 2_450 * USDC
    refused = await market.refused_settlement(sale, *market.agent_steps(promised - 1), promised=promised)
    assert refused == broken(world, sale, promised - 1, promised)
    settled = await market.settle(sale, *market.agent_steps(promised), promised=promised)
    assert settled.event.received == promised
    dear = market.agent_steps(2_500 * USDC, given=ONE + 1)
    back = SettlementStep(world.weth, STEP_GAS, calldata.transfer(world.at.delta, 7))
    refused = await market.refused_settlement(purchase, *dear, back, src_given=ONE + 8, promised=ONE)
    assert refused == broken(world, purchase, ONE + 1, ONE)
    settled = await market.settle(purchase, *market.agent_steps(2_500 * USDC), src_given=ONE, promised=ONE)
    assert settled.event.spent == ONE


def broken(world: World, order: DeltaOrder, amount: int, promised: int) -> str:
    """The refusal of a settlement that does not keep its promise."""
    order_hash = world.delta_hash(order).hex()
    return f"PromiseBroken(orderHash 0x{order_hash}, amount {amount}, promised {promised})"


async def test_the_minimum_counts_where_it_arrives(world: World, market: Market) -> None:
    """A token that takes 1 % of each transfer: to Delta and to the beneficiary."""
    odd = await world.new_token()
    await world.mint(odd, market.agent, 200 * ONE)
    await world.send(world.owner, odd, selector("setTransferFee(uint256)") + uint_word(100))
    arriving = 98_010_000_000_000_000_000  # 0.99 ** 2
    asked_too_much = await world.a_delta_order(dest_token=odd, dest_amount=arriving + 1, expected_amount=0)
    steps = (market.to_agent(ONE), market.from_agent(100 * ONE, odd))
    assert (
        await market.refused_settlement(asked_too_much, *steps)
        == f"BelowMinimum(received {arriving}, minimum {arriving + 1})"
    )
    promising = await world.a_delta_order(dest_token=odd, dest_amount=arriving - 1, expected_amount=0)
    refused = await market.refused_settlement(promising, *steps, promised=arriving + 1)
    assert refused == broken(world, promising, arriving, arriving + 1)
    order = await world.a_delta_order(dest_token=odd, dest_amount=arriving, expected_amount=0)
    assert (await market.settle(order, *steps)).event.received == arriving
    assert await world.balance(odd, world.user) == arriving
    purchase = await market.a_purchase(dest_token=odd, dest_amount=99 * ONE)
    refused = await market.refused_settlement(purchase, market.from_agent(100 * ONE, odd), src_given=ONE)
    assert refused == f"BelowMinimum(received {arriving}, minimum {99 * ONE})"


@pytest.mark.parametrize("name", ["DevTokenWithoutReturn", "DevToken"])
async def test_a_token_of_eight_decimals_that_may_return_nothing(
    world: World, market: Market, name: str
) -> None:
    odd = await world.new_token(name, decimals=8)
    await world.give(world.user, odd, 10**8, world.at.delta)
    order = await world.a_delta_order(src_token=odd, src_amount=10**8)
    halves = [
        world.a_firm_quote(taker_asset=odd, taker_amount=10**8 // 2, maker_amount=1_250 * USDC) for _ in "ab"
    ]
    for half in halves:  # the second time with what the executor has allowed before
        await market.settle(order, market.fill_step(half), amount=10**8 // 2)
    assert await world.balance(odd, world.maker) == 10**8
    assert await world.balance(world.usdc, world.user) == 2_500 * USDC


async def test_a_token_that_takes_a_fee_is_sold_for_what_the_executor_gets(
    world: World, market: Market
) -> None:
    odd = await world.new_token()
    await world.give(world.user, odd, 100 * ONE, world.at.delta)
    await world.send(world.owner, odd, selector("setTransferFee(uint256)") + uint_word(100))
    order = await world.a_delta_order(src_token=odd, src_amount=100 * ONE)
    steps = (market.to_agent(99 * ONE, odd), market.from_agent(2_500 * USDC))
    assert (await market.settle(order, *steps)).event.spent == 100 * ONE
    assert await world.balance(odd, world.user) == 0
