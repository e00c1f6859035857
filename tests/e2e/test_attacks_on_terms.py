"""Attacks by a relayer, an agent or a stranger to pay an owner less than was signed, or nothing."""

from typing import Any

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, tuples_tail, uint_word
from cambist.codecs.contracts.delta_calldata import (
    DELTA,
    SettlementStep,
    deposit_native_and_pre_sign,
    invalidate_nonces,
    set_pre_signature,
)
from cambist.codecs.contracts.router_calldata import swap_exact_in
from cambist.codecs.eip712_orders.delta import TwapBuyOrder, TwapOrder
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.trade.delta.orders.terms import SettledOrder
from support.chain.world import NOBODY, ONE, USDC, World
from support.contracts.settling import Market
from support.contracts.swapping import a_venue

FAIR = 2_500 * USDC
AGGREGATE = selector("aggregate3((address,bool,bytes)[])")
SET_HOOK = selector("setHook(address,bytes)")
SET_TRANSFER_FEE = selector("setTransferFee(uint256)")


def forwarded(target: bytes, data: bytes) -> bytes:
    """Calldata of a DevMulticall: one call, which must not fail."""
    call = encode(address_word(target), uint_word(0), bytes_tail(data))
    return AGGREGATE + encode(tuples_tail([call]))


# --- Parts -------------------------------------------------------------------------------------------------


async def test_an_order_cut_into_units_brings_and_costs_no_less(world: World, market: Market) -> None:
    """Tokens of two decimals, say: rounding is the owner's in each part, whatever the parts are."""
    sale = await world.a_delta_order(src_amount=7, dest_amount=10, expected_amount=11)
    brought = 0
    for _ in range(7):
        refused = await market.refused_settlement(sale, *market.agent_steps(1, given=1), amount=1)
        assert refused == "BelowMinimum(received 1, minimum 2)"
        brought += (await market.settle(sale, *market.agent_steps(2, given=1), amount=1)).event.received
    assert brought >= sale.dest_amount
    purchase = await market.a_purchase(src_amount=10, dest_amount=7, expected_amount=9)
    cost = 0
    for _ in range(7):
        refused = await market.refused_settlement(
            purchase, *market.agent_steps(1, given=2), amount=1, src_given=2
        )
        assert refused == "AboveMaximum(spent 2, maximum 1)"
        steps = market.agent_steps(1, given=1)
        cost += (await market.settle(purchase, *steps, amount=1, src_given=1)).event.spent
    assert cost <= purchase.src_amount


async def test_one_nonce_is_for_one_order_of_whatever_kind(world: World, market: Market) -> None:
    nonce = 77
    orders: list[tuple[SettledOrder, dict[str, Any]]] = [
        (await world.a_delta_order(nonce=nonce), {"amount": ONE // 2}),
        (await market.a_purchase(nonce=nonce), {"amount": FAIR // 2}),
        (await market.a_twap(nonce=nonce), {}),
        (await market.a_twap_purchase(nonce=nonce), {}),
    ]
    for first, how in orders:
        snapshot = await world.chain.snapshot()
        await market.settle(first, market.from_agent(FAIR), **how)
        for other, its in orders:
            if other is not first:
                refused = await market.refused_settlement(other, market.from_agent(FAIR), **its)
                assert refused == f"NonceUsed(nonce {nonce})"
        await world.chain.restore(snapshot)


async def test_a_signature_for_one_kind_is_none_for_another(world: World, market: Market) -> None:
    """The same members, as a sale and as a purchase in slices."""
    twap = await market.a_twap()
    as_purchase = TwapBuyOrder(
        twap.owner, twap.beneficiary, twap.src_token, twap.dest_token, twap.nonce, twap.partner_and_fee,
        twap.deadline, twap.interval, twap.num_slices, twap.dest_amount_per_slice, twap.total_src_amount,
        twap.permit, twap.metadata, twap.bridge,
    )  # fmt: skip
    assert isinstance(twap, TwapOrder)
    signature = world.delta_signed(twap)
    refused = await market.refused_settlement(as_purchase, market.from_agent(FAIR), signature=signature)
    assert refused == "InvalidSignature()"


# --- Who receives ------------------------------------------------------------------------------------------


async def test_an_order_for_no_beneficiary_is_the_owners(world: World, market: Market) -> None:
    """And not burnt, in the token or native."""
    order = await world.a_delta_order(beneficiary=NOBODY)
    await market.settle(order, *market.agent_steps(FAIR))
    assert await world.balance(world.usdc, world.user) == FAIR
    assert await world.balance(world.usdc, NOBODY) == 0


async def test_a_fee_that_begins_on_the_last_way_counts_for_the_routers_minimum(world: World) -> None:
    """A token that takes none between the maker and the Router, and one from there on."""
    venue = await a_venue(world)
    odd = await world.new_token()
    await world.give(world.maker, odd, 10_000, world.at.rfq)
    hook = encode(address_word(odd), bytes_tail(SET_TRANSFER_FEE + uint_word(100)))
    await world.send(world.stranger, odd, SET_HOOK + hook)
    quote = venue.quote(maker_asset=odd, maker_amount=10_000)
    # The maker's transfer is without; the Router's pays a hundredth.
    swap = venue.swap(venue.hop(quote), dest_token=odd, dest_amount=9_901)
    assert await venue.refused_sale(swap) == "INSUFFICIENT_OUTPUT"
    purchase = venue.swap(venue.hop(quote, maker_amount=10_000), dest_token=odd, dest_amount=9_901)
    assert await venue.refused_purchase(purchase) == "INSUFFICIENT_OUTPUT"
    done = await venue.sell(venue.swap(venue.hop(quote), dest_token=odd, dest_amount=9_900))
    assert done.event.received == 9_900
    assert await world.balance(odd, world.user) == 9_900


# --- In the way --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hops", [1, 2])
async def test_a_unit_left_with_the_executor_stops_no_sale(world: World, market: Market, hops: int) -> None:
    """Not of the source, nor of what is between the hops, where the relayer names them as leftovers."""
    for token in (world.weth, world.usdc)[:hops]:
        await world.mint(token, world.stranger, 1)
        await world.send(world.stranger, token, calldata.transfer(world.at.executor, 1))
    order = await world.a_delta_order()
    receiver = world.at.executor if hops == 2 else DELTA
    fills = [market.fill_step(world.a_firm_quote(), receiver=receiver)]
    if hops == 2:
        order = await world.a_delta_order(dest_token=world.dai, dest_amount=2_490 * ONE)
        second = world.a_firm_quote(
            maker_asset=world.dai, taker_asset=world.usdc, maker_amount=2_490 * ONE, taker_amount=FAIR
        )
        fills.append(market.fill_step(second))
    refused = await market.refused_settlement(order, *fills)
    assert refused.startswith("StepFailed(step 0,")
    settled = await market.settle(order, *fills, leftovers=(world.weth, world.usdc)[:hops])
    assert settled.event.received == (FAIR if hops == 1 else 2_490 * ONE)
    assert await world.balance(world.weth, world.user) == 9 * ONE + 1  # the unit is the owner's


async def test_an_agent_that_gives_the_source_back_to_delta_gives_it_to_the_owner(
    world: World, market: Market
) -> None:
    order = await world.a_delta_order()
    back = SettlementStep(world.weth, 200_000, calldata.transfer(world.at.delta, ONE // 10))
    await market.settle(order, back, *market.agent_steps(FAIR, given=ONE * 9 // 10))
    assert await world.balance(world.weth, world.at.delta) == 0
    assert await world.balance(world.weth, world.user) == 9 * ONE + ONE // 10


# --- Within a settlement -----------------------------------------------------------------------------------


async def test_what_an_agent_takes_from_the_executor_is_missing_from_what_it_delivers(
    world: World, market: Market
) -> None:
    """In the middle of a settlement the Router would sweep to it what fills have brought there."""
    agents = await create(world.chain, world.owner, "DevMulticall")
    order = await world.a_delta_order()
    venue = await a_venue(world)
    dust = world.an_rfq_order(maker_asset=world.dai, taker_asset=world.usdc, maker_amount=1, taker_amount=1)
    await world.give(world.maker, world.dai, 1, world.at.rfq)
    await world.mint(world.usdc, agents, 1)
    allow = SettlementStep(agents, 200_000, forwarded(world.usdc, calldata.approve(world.at.router, 1)))
    swap = venue.swap(
        venue.hop(dust), src_token=world.usdc, dest_token=world.dai, src_amount=1, dest_amount=1
    )
    steal = SettlementStep(agents, 1_000_000, forwarded(world.at.router, swap_exact_in(swap)))
    fill = market.fill_step(world.a_firm_quote(), receiver=world.at.executor)
    refused = await market.refused_settlement(order, fill, allow, steal)
    assert refused == "BelowMinimum(received 0, minimum 2400000000)"


async def test_an_order_that_its_owner_gives_up_within_a_settlement_is_given_up(
    world: World, market: Market
) -> None:
    """The token that the owner receives has the owner's contract do so; the next part is refused."""
    owner = await create(world.chain, world.owner, "DevMulticall")
    await world.send(world.user, world.weth, calldata.transfer(owner, ONE))
    await world.send(world.stranger, owner, forwarded(world.weth, calldata.approve(world.at.delta, ONE)))
    own = {"owner": owner, "beneficiary": owner}
    orders: list[tuple[SettledOrder, dict[str, Any]]] = [
        (await world.a_delta_order(**own), {"amount": ONE // 3}),
        (await market.a_twap(**own, interval=0), {}),
    ]
    steps = market.agent_steps(FAIR // 3, given=ONE // 3)
    for order, how in orders:
        sign = set_pre_signature(world.delta_hash(order), is_signed=True)
        await world.send(world.stranger, owner, forwarded(world.at.delta, sign))
        give_up = forwarded(world.at.delta, invalidate_nonces([order.nonce]))
        hook = SET_HOOK + encode(address_word(owner), bytes_tail(give_up))
        await world.send(world.stranger, world.usdc, hook)
        await market.settle(order, *steps, signature=b"", **how)
        refused = await market.refused_settlement(order, *steps, signature=b"", **how)
        assert refused == f"NonceUsed(nonce {order.nonce})"


async def test_an_agent_deposits_nothing_within_a_settlement(world: World, market: Market) -> None:
    """On a chain whose native token is an ERC-20 as well, a deposit would be received and stay a deposit."""
    agents = await create(world.chain, world.owner, "DevMulticall")
    order = await world.a_delta_order()
    step = SettlementStep(
        agents, 1_000_000, forwarded(world.at.delta, deposit_native_and_pre_sign(bytes(32)))
    )
    refused = await market.refused_settlement(order, step, *market.agent_steps(FAIR))
    assert refused.startswith("StepFailed(step 0,")
