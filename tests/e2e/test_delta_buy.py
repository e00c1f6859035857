"""A user buys an exact amount for at most what was signed, and gets back what it did not cost."""

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.delta_calldata import EXECUTOR
from support.chain.world import ONE, USDC, World
from support.contracts.settling import Market


async def test_a_firm_quote_fills_a_purchase_and_the_rest_is_returned(world: World, market: Market) -> None:
    order = await market.a_purchase()
    quote = world.a_firm_quote()
    step = market.fill_step(quote, maker_amount=2_500 * USDC)
    settled = await market.settle(order, step, src_given=order.src_amount, promised=ONE)
    assert (settled.event.spent, settled.event.received) == (ONE, 2_500 * USDC)
    assert (settled.event.filled, settled.event.is_closed) == (2_500 * USDC, True)
    assert await world.balance(world.weth, world.user) == 9 * ONE
    assert await world.balance(world.usdc, world.user) == 2_500 * USDC
    for emptied in (world.at.delta, world.at.executor):
        assert set((await world.balances(emptied)).values()) == {0}
    again = await market.refused_settlement(order, step, amount=1, src_given=ONE)
    assert again == f"NonceUsed(nonce {order.nonce})"


async def test_what_the_executor_is_not_given_never_leaves(world: World, market: Market) -> None:
    order = await market.a_purchase()
    settled = await market.settle(order, *market.agent_steps(2_500 * USDC), src_given=ONE)
    assert settled.event.spent == ONE
    assert await world.balance(world.weth, world.user) == 9 * ONE


async def test_no_more_is_taken_than_what_is_given_and_shared(world: World, market: Market) -> None:
    """Of a unit less than expected, nobody has a share, so an allowance of as much will do."""
    order = await market.a_purchase()
    given = order.expected_amount - 1
    await world.approve(world.user, world.weth, world.at.delta, given)
    settled = await market.settle(order, *market.agent_steps(2_500 * USDC, given=given), src_given=given)
    assert settled.event.spent == given


async def test_more_than_the_maximum_is_not_given(world: World, market: Market) -> None:
    order = await market.a_purchase()
    steps = market.agent_steps(2_500 * USDC, given=order.src_amount)
    assert (
        await market.refused_settlement(order, *steps, src_given=order.src_amount + 1)
        == "AboveMaximum(spent 1100000000000000001, maximum 1100000000000000000)"
    )
    assert (await market.settle(order, *steps, src_given=order.src_amount)).event.spent == order.src_amount


async def test_no_less_than_wanted_is_bought(world: World, market: Market) -> None:
    order = await market.a_purchase()
    assert (
        await market.refused_settlement(order, *market.agent_steps(2_500 * USDC - 1), src_given=ONE)
        == "BelowMinimum(received 2499999999, minimum 2500000000)"
    )


async def test_more_than_wanted_is_the_users(world: World, market: Market) -> None:
    order = await market.a_purchase()
    settled = await market.settle(order, *market.agent_steps(2_600 * USDC), src_given=ONE)
    assert settled.event.received == 2_600 * USDC
    assert settled.event.filled == 2_500 * USDC


async def test_two_hops_to_an_exact_amount(world: World, market: Market) -> None:
    order = await market.a_purchase(dest_token=world.dai, dest_amount=2_490 * ONE)
    second = world.a_firm_quote(
        maker_asset=world.dai, taker_asset=world.usdc, maker_amount=4_980 * ONE, taker_amount=5_000 * USDC
    )
    settled = await market.settle(
        order,
        market.fill_step(world.a_firm_quote(), maker_amount=2_500 * USDC, receiver=world.at.executor),
        market.fill_step(second, maker_amount=2_490 * ONE),
        src_given=order.src_amount,
    )
    assert (settled.event.spent, settled.event.received) == (ONE, 2_490 * ONE)
    assert await world.balance(world.dai, world.user) == 2_490 * ONE


async def test_tokens_that_somebody_left_with_the_executor_stop_no_purchase(
    world: World, market: Market
) -> None:
    """The executor returns more than it was given: the purchase is free and the user keeps the rest."""
    await world.mint(world.weth, world.stranger, ONE)
    await world.send(world.stranger, world.weth, calldata.transfer(world.at.executor, ONE))
    order = await market.a_purchase()
    settled = await market.settle(order, market.from_agent(2_500 * USDC), receiver=EXECUTOR)
    assert settled.event.spent == 0
    assert await world.balance(world.weth, world.user) == 11 * ONE
