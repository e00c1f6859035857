"""Permits that an order carries instead of an allowance; their length gives their kind."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.codecs.eip712_orders.delta import KIND_BUY, DeltaOrder, TwapBuyOrder, TwapOrder
from support.chain.world import MOST, ONE, USDC, World
from support.contracts import permit2
from support.contracts.permit_kinds import KINDS, SRC, allowed_at_permit2, permit2_transfer, seller
from support.contracts.permits import eip2612_permit, shown, token_domain
from support.contracts.settling import Market

BY_LENGTH = dict(KINDS)
each_kind = pytest.mark.parametrize(("length", "permit_of"), KINDS)


def deliver(market: Market, part: int = 1) -> tuple[SettlementStep, SettlementStep]:
    """The agent takes a part of the source and gives a part of the destination."""
    world = market.world
    return market.to_agent(SRC // part, world.usdc), market.from_agent(1_000 * ONE // part, world.dai)


def pull_failed(world: World) -> str:
    return f"PullFailed(token 0x{world.usdc.hex()})"


@each_kind
async def test_each_form_lets_an_order_be_settled_once(
    world: World,
    market: Market,
    length: int,
    permit_of: Callable[[World, DeltaOrder], Awaitable[bytes]],
) -> None:
    order = await seller(world)
    permit = await permit_of(world, order)
    assert len(permit) == length
    order = msgspec.structs.replace(order, permit=permit)
    event = (await market.settle(order, *deliver(market))).event
    assert (event.spent, event.received) == (SRC, 1_000 * ONE)
    assert await world.balance(world.usdc, world.user) == 9 * SRC
    replayed = msgspec.structs.replace(order, nonce=order.nonce + 1)
    if length == 256:  # DAI's way is all or nothing
        assert (await market.settle(replayed, *deliver(market))).event.spent == SRC
    else:
        assert await market.refused_settlement(replayed, *deliver(market)) == pull_failed(world)


@each_kind
async def test_parts_share_a_permit_unless_it_is_for_one_transfer(
    world: World,
    market: Market,
    length: int,
    permit_of: Callable[[World, DeltaOrder], Awaitable[bytes]],
) -> None:
    order = await seller(world)
    order = msgspec.structs.replace(order, permit=await permit_of(world, order))
    await market.settle(order, *deliver(market, 2), amount=SRC // 2)
    if length == 96:
        refused = await market.refused_settlement(order, *deliver(market, 2), amount=SRC // 2)
        assert refused == pull_failed(world)
    else:
        await market.settle(order, *deliver(market, 2), amount=SRC // 2)
        assert await world.balance(world.usdc, world.user) == 9 * SRC


@pytest.mark.parametrize("length", [192, 224, 256])
async def test_a_permit_that_somebody_showed_first_still_counts(
    world: World, market: Market, length: int
) -> None:
    order = await seller(world)
    permit = await BY_LENGTH[length](world, order)
    order = msgspec.structs.replace(order, permit=permit)
    if length == 192:
        data = permit2.shown_allowance(permit, world.user.address, world.at.delta, world.usdc)
        await world.send(world.stranger, world.permit2, data)
    else:
        await world.send(world.stranger, world.usdc, shown(permit))
    assert (await market.settle(order, *deliver(market))).event.spent == SRC


async def test_a_permit_for_no_more_than_the_allowance_leaves_the_allowance(
    world: World, market: Market
) -> None:
    order = await seller(world)
    order = msgspec.structs.replace(order, permit=await BY_LENGTH[224](world, order))
    await world.approve(world.user, world.usdc, world.at.delta, MOST)
    await market.settle(order, *deliver(market, 2), amount=SRC // 2)
    await market.settle(order, *deliver(market, 2), amount=SRC // 2)
    assert await world.ask(world.usdc, calldata.allowance(world.user.address, world.at.delta)) == MOST


@pytest.mark.parametrize("length", [96, 192, 224, 256])
async def test_a_permit_that_was_not_signed_so_does_not_count(
    world: World, market: Market, length: int
) -> None:
    """A bit of the signature, or of what it is of, is another."""
    order = await seller(world)
    permit = await BY_LENGTH[length](world, order)
    for at in (length - 1, 31):
        forged = permit[:at] + bytes([permit[at] ^ 1]) + permit[at + 1 :]
        changed = msgspec.structs.replace(order, permit=forged)
        assert await market.refused_settlement(changed, *deliver(market)) == pull_failed(world)


async def test_a_permit_for_less_or_for_another_does_not_cover_an_order(world: World, market: Market) -> None:
    order = await seller(world)
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    for spender, value in ((world.at.delta, SRC - 1), (world.stranger.address, SRC)):
        permit = eip2612_permit(domain, world.user, spender, value, nonce=0, deadline=order.deadline)
        changed = msgspec.structs.replace(order, permit=permit)
        assert await market.refused_settlement(changed, *deliver(market)) == pull_failed(world)


async def test_an_allowance_at_permit2_that_has_ended(world: World, market: Market) -> None:
    order = await seller(world)
    order = msgspec.structs.replace(order, permit=await allowed_at_permit2(world, order))
    ended = permit2.allow(world.usdc, world.at.delta, SRC, await world.now_s() + 10)
    await world.send(world.user, world.permit2, ended)
    await world.pass_time(11)
    assert await market.refused_settlement(order, *deliver(market)) == pull_failed(world)


async def test_a_permit2_transfer_is_the_orders_alone(world: World, market: Market) -> None:
    """Its signature names Delta, the whole amount and the deadline: another deadline is another permit."""
    order = await seller(world)
    order = msgspec.structs.replace(order, permit=await permit2_transfer(world, order))
    other = msgspec.structs.replace(order, deadline=order.deadline + 1)
    assert await market.refused_settlement(other, *deliver(market)) == pull_failed(world)
    smaller = msgspec.structs.replace(order, src_amount=SRC // 2, dest_amount=1)
    assert await market.refused_settlement(smaller, *deliver(market, 2)) == pull_failed(world)


async def test_a_permit2_transfer_is_for_a_purchases_most_and_its_first_part(
    world: World, market: Market
) -> None:
    order = msgspec.structs.replace(await seller(world), kind=KIND_BUY, dest_amount=1_000 * ONE)
    order = msgspec.structs.replace(order, permit=await permit2_transfer(world, order))
    part: dict[str, Any] = {"amount": 500 * ONE, "src_given": SRC // 2}
    assert (await market.settle(order, *deliver(market, 2), **part)).event.spent == SRC // 2
    assert await market.refused_settlement(order, *deliver(market, 2), **part) == pull_failed(world)


@pytest.mark.parametrize("side", ["sale", "purchase"])
async def test_a_permit2_transfer_is_for_a_twaps_total_and_its_first_slice(
    world: World, market: Market, side: str
) -> None:
    await world.mint(world.usdc, world.user, 10 * SRC)
    pair = {"src_token": world.usdc, "dest_token": world.dai, "interval": 0, "num_slices": 2}
    order: TwapOrder | TwapBuyOrder
    if side == "sale":
        order = await market.a_twap(**pair, total_src_amount=SRC, dest_amount_per_slice=490 * ONE)
    else:
        order = await market.a_twap_purchase(**pair, max_src_amount=SRC, total_dest_amount=1_000 * ONE)
    order = msgspec.structs.replace(order, permit=await permit2_transfer(world, order))
    steps = deliver(market, 2)
    settled = await market.settle(order, *steps, src_given=SRC // 2)
    assert (settled.event.spent, settled.event.received) == (SRC // 2, 500 * ONE)
    assert await market.refused_settlement(order, *steps, src_given=SRC // 2) == pull_failed(world)


async def test_without_a_permit_the_allowance_counts(world: World, market: Market) -> None:
    order = await seller(world)
    assert await market.refused_settlement(order, *deliver(market)) == pull_failed(world)
    await world.approve(world.user, world.usdc, world.at.delta, SRC - 1)
    assert await market.refused_settlement(order, *deliver(market)) == pull_failed(world)
    await world.approve(world.user, world.usdc, world.at.delta, SRC)
    assert (await market.settle(order, *deliver(market))).event.spent == SRC
    assert await world.ask(world.usdc, calldata.allowance(world.user.address, world.at.delta)) == 0


async def test_no_other_length_counts_not_even_with_an_allowance(world: World, market: Market) -> None:
    order = await seller(world)
    await world.approve(world.user, world.usdc, world.at.delta, MOST)
    for length in (2, 32, 64, 95, 97, 191, 193, 223, 225, 255, 257, 1_024):
        odd = msgspec.structs.replace(order, permit=bytes(length))
        assert await market.refused_settlement(odd, *deliver(market)) == pull_failed(world), length


async def test_an_owner_with_too_little(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_amount=10 * ONE + 1)
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps) == f"PullFailed(token 0x{world.weth.hex()})"


async def test_all_that_permit2_can_count_is_taken_by_it(world: World, market: Market) -> None:
    most = (1 << 160) - 1
    order = msgspec.structs.replace(await seller(world), src_amount=most, permit=permit2.ALLOWED)
    await world.mint(world.usdc, world.user, most)
    await world.approve(world.user, world.usdc, world.permit2)
    await world.send(
        world.user, world.permit2, permit2.allow(world.usdc, world.at.delta, most, order.deadline)
    )
    settled = await market.settle(
        order, market.to_agent(most, world.usdc), market.from_agent(1_000 * ONE, world.dai)
    )
    assert settled.event.spent == most


async def test_an_amount_that_permit2_cannot_take_is_refused(world: World, market: Market) -> None:
    """Permit2 counts in 160 bits: of 2^160 more it would take none of it, and all would count as spent."""
    order = await seller(world)
    order = msgspec.structs.replace(order, src_amount=(1 << 160) + SRC, dest_amount=1)
    order = msgspec.structs.replace(order, permit=await allowed_at_permit2(world, order))
    assert await market.refused_settlement(order, *deliver(market)) == pull_failed(world)
