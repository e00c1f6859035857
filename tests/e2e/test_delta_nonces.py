"""An order's nonce: used up once, given up by its owner or on the owner's word, never two orders'."""

import msgspec

from cambist.codecs.contracts.contract_events import NonceInvalidated
from cambist.codecs.contracts.delta_calldata import invalidate_nonces
from support.chain.world import ONE, USDC, World
from support.contracts.settling import Market, events, is_nonce_used


def used(nonce: int) -> str:
    return f"NonceUsed(nonce {nonce})"


async def test_a_nonce_is_used_up_by_what_closes_its_order(world: World, market: Market) -> None:
    """Of that owner; another has it still."""
    order = await world.a_delta_order(nonce=1 << 200 | 255)
    await market.settle(order, *market.agent_steps(2_500 * USDC))
    second = msgspec.structs.replace(order, expected_amount=0)
    refused = await market.refused_settlement(second, *market.agent_steps(2_500 * USDC))
    assert refused == used(order.nonce)
    for other in (order.nonce - 1, order.nonce + 1, 255):
        assert await world.ask(world.at.delta, is_nonce_used(world.user.address, other)) == 0
    assert await world.ask(world.at.delta, is_nonce_used(world.stranger.address, order.nonce)) == 0
    await world.give(world.stranger, world.weth, ONE, world.at.delta)
    theirs = msgspec.structs.replace(order, owner=world.stranger.address)
    signature = world.delta_signed(theirs, world.stranger)
    await market.settle(theirs, *market.agent_steps(2_500 * USDC), signature=signature)


async def test_neighbours_of_a_nonce_are_free(world: World, market: Market) -> None:
    given_up, first, second = 256, 257, 511
    await world.send(world.user, world.at.delta, invalidate_nonces([given_up]))
    half = market.agent_steps(1_250 * USDC, given=ONE // 2)
    for nonce in (first, second):
        order = await world.a_delta_order(nonce=nonce, src_amount=ONE // 2, dest_amount=1)
        await market.settle(order, *half)
    await world.send(world.user, world.at.delta, invalidate_nonces([300]))
    for nonce, is_used in ((given_up, 1), (first, 1), (second, 1), (300, 1), (258, 0), (255, 0), (512, 0)):
        assert await world.ask(world.at.delta, is_nonce_used(world.user.address, nonce)) == is_used


async def test_of_two_orders_with_a_nonce_the_first_part_decides(world: World, market: Market) -> None:
    first = await world.a_delta_order()
    second = msgspec.structs.replace(first, dest_amount=2_300 * USDC)
    slices = await market.a_twap(nonce=first.nonce)
    bought = await market.a_twap_purchase(nonce=first.nonce)
    half = market.agent_steps(1_250 * USDC, given=ONE // 2)
    await market.settle(first, *half, amount=ONE // 2)
    state = await market.order_state(first)
    assert (state.is_others, state.is_used, state.done) == (False, False, ONE // 2)
    assert await world.ask(world.at.delta, is_nonce_used(world.user.address, first.nonce)) == 0
    assert (await market.order_state(second)).is_others
    for other in (second, slices, bought):
        refused = await market.refused_settlement(other, *half, src_given=ONE // 10)
        assert refused == used(first.nonce)
    assert (await market.settle(first, *half, amount=ONE // 2)).event.is_closed
    for other in (second, slices, bought):
        refused = await market.refused_settlement(other, *half, src_given=ONE // 10)
        assert refused == used(first.nonce)


async def test_a_twaps_nonce_is_its_own_until_the_last_slice(world: World, market: Market) -> None:
    slices = await market.a_twap(interval=0, num_slices=2, dest_amount_per_slice=1_200 * USDC)
    order = await world.a_delta_order(nonce=slices.nonce)
    half = market.agent_steps(1_200 * USDC, given=ONE // 2)
    await market.settle(slices, *half)
    assert await market.refused_settlement(order, *half) == used(order.nonce)
    await market.settle(slices, *half)
    assert await market.refused_settlement(order, *half) == used(order.nonce)


async def test_an_owner_gives_nonces_up(world: World, market: Market) -> None:
    order, other = await world.a_delta_order(nonce=256), await world.a_delta_order(nonce=255)
    data = invalidate_nonces([order.nonce, 7, order.nonce])
    receipt = await world.send(world.user, world.at.delta, data)
    assert events(receipt, NonceInvalidated) == [
        NonceInvalidated(world.user.address, order.nonce),
        NonceInvalidated(world.user.address, 7),
    ]
    assert await market.is_nonce_used(order)
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps) == used(order.nonce)
    slices = await market.a_twap(nonce=7)
    assert await market.refused_settlement(slices, *steps) == used(7)
    again = await world.send(world.user, world.at.delta, data)
    assert again.logs == ()
    assert (await market.settle(other, *steps)).event.is_closed


async def test_a_strangers_nonces_are_nobody_elses(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    await world.send(world.stranger, world.at.delta, invalidate_nonces([order.nonce]))
    assert (await market.settle(order, *market.agent_steps(2_500 * USDC))).event.is_closed


async def test_what_is_left_of_an_order_is_given_up(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    half = market.agent_steps(1_250 * USDC, given=ONE // 2)
    await market.settle(order, *half, amount=ONE // 2)
    await world.send(world.user, world.at.delta, invalidate_nonces([order.nonce]))
    refused = await market.refused_settlement(order, *half, amount=ONE // 2)
    assert refused == used(order.nonce)
    assert await market.filled(order) == ONE // 2
    other = await market.order_state(msgspec.structs.replace(order, expected_amount=0))
    assert other.is_others, "the nonce stays this order's"
    slices = await market.a_twap(interval=0)
    third = market.agent_steps(800 * USDC, given=ONE // 3)
    await market.settle(slices, *third)
    await world.send(world.user, world.at.delta, invalidate_nonces([slices.nonce]))
    assert await market.refused_settlement(slices, *third) == used(slices.nonce)
