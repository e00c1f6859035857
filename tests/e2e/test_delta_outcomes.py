"""A settlement returns what it did: simulated, it says what the mined one tells in its event and balances."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.delta_calldata import SettlementStep, settle_crossed
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.engine.chain.port import Receipt
from cambist.engine.trade.delta.orders.terms import SettledOrder
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.settling import Market

GAS_AROUND = 6_000
"""To call the settler and check the relayer costs 4,700; a balance that ends as it began refunds 2,800."""


class Case(msgspec.Struct, frozen=True):
    """An order, how it is settled, and what that is to come to."""

    order: SettledOrder
    steps: tuple[SettlementStep, ...]
    spent: int
    received: int
    how: dict[str, Any] = {}


def terms(world: World, fee_bps: int, *, shares: bool) -> int:
    fee = PartnerAndFee(world.partner.address, fee_bps, partner_takes_surplus=shares, cap_surplus=False)
    return pack_partner_and_fee(fee)


async def sale(market: Market) -> Case:
    order = await market.world.a_delta_order()
    return Case(order, market.agent_steps(2_500 * USDC), ONE, 2_500 * USDC)


async def part_of_a_sale(market: Market) -> Case:
    order = await market.world.a_delta_order()
    steps = market.agent_steps(1_000 * USDC, given=ONE * 4 // 10)
    return Case(order, steps, ONE * 4 // 10, 1_000 * USDC, {"amount": ONE * 4 // 10})


async def sale_with_a_fee(market: Market) -> Case:
    order = await market.world.a_delta_order(partner_and_fee=terms(market.world, 100, shares=False))
    return Case(order, market.agent_steps(2_500 * USDC), ONE, 2_475 * USDC)


async def sale_with_shared_surplus(market: Market) -> Case:
    order = await market.world.a_delta_order(partner_and_fee=terms(market.world, 0, shares=True))
    return Case(order, market.agent_steps(2_600 * USDC), ONE, 2_500 * USDC)


async def purchase(market: Market) -> Case:
    """Purchase whose unspent rest returns to the owner; the spent amount includes a fee."""
    order = await market.a_purchase(partner_and_fee=terms(market.world, 100, shares=False))
    steps = market.agent_steps(2_500 * USDC + 5)
    return Case(order, steps, ONE * 101 // 100, 2_500 * USDC + 5, {"src_given": ONE})


async def sale_of_native_tokens(market: Market) -> Case:
    world = market.world
    order = await world.a_delta_order(src_token=NATIVE)
    await market.deposit(order, ONE + 1)
    return Case(order, market.agent_steps(2_450 * USDC), ONE, 2_450 * USDC)


async def sale_for_native_tokens(market: Market) -> Case:
    world = market.world
    await world.give(world.user, world.usdc, 2_500 * USDC + 1, world.at.delta)
    await world.mint(world.weth, world.maker, ONE + 1)
    quote = world.a_firm_quote(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=2_500 * USDC
    )
    order = await world.a_delta_order(
        src_token=world.usdc, dest_token=NATIVE, src_amount=2_500 * USDC, dest_amount=ONE, expected_amount=ONE
    )
    return Case(order, (world.fill_step(quote, taker_amount=2_500 * USDC),), 2_500 * USDC, ONE)


async def slice_of_a_sale(market: Market) -> Case:
    steps = market.agent_steps(810 * USDC, given=ONE // 3)
    return Case(await market.a_twap(), steps, ONE // 3, 810 * USDC)


async def slice_of_a_purchase(market: Market) -> Case:
    order = await market.a_twap_purchase()
    wanted, given = 2_500 * USDC // 3, ONE // 3
    return Case(order, market.agent_steps(wanted, given=given), given, wanted, {"src_given": given})


async def leave_units(market: Market) -> None:
    """A unit wherever a settlement may empty a balance, whose emptying would refund gas."""
    world, at = market.world, market.world.at
    for holder in (at.delta, at.executor, market.caller):
        await world.send(world.user, world.weth, calldata.transfer(holder, 1))
        for token in (world.usdc, world.dai):
            await world.mint(token, holder, 1)


def gas_around(receipt: Receipt, told: int, data: bytes) -> int:
    """Units that a transaction cost beyond its base, its calldata and the units told."""
    return receipt.gas_used - told - 21_000 - sum(16 if byte else 4 for byte in data)


CASES: list[Callable[[Market], Awaitable[Case]]] = [
    sale, part_of_a_sale, sale_with_a_fee, sale_with_shared_surplus, purchase, sale_of_native_tokens,
    sale_for_native_tokens, slice_of_a_sale, slice_of_a_purchase,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_what_is_returned_is_what_happens(
    world: World, market: Market, case: Callable[[Market], Awaitable[Case]]
) -> None:
    made = await case(market)
    src, dest = made.order.src_token, made.order.dest_token
    await leave_units(market)
    outcome = await market.outcome(made.order, *made.steps, **made.how)
    assert (outcome.spent, outcome.received) == (made.spent, made.received)
    had = await world.balance(src, world.user), await world.balance(dest, world.user)
    settled = await market.settle(made.order, *made.steps, **made.how)
    assert (settled.event.spent, settled.event.received) == (made.spent, made.received)
    deposited = src == NATIVE
    assert had[0] - await world.balance(src, world.user) == (0 if deposited else made.spent)
    assert await world.balance(dest, world.user) - had[1] == made.received
    data = market.settlement(made.order, *made.steps, **made.how)
    assert abs(gas_around(settled.receipt, outcome.gas_used, data)) < GAS_AROUND


async def test_outcomes_rank_what_is_bid_for_an_order(world: World, market: Market) -> None:
    """The same amount by a longer way costs more gas."""
    order = await world.a_delta_order()
    best = await market.outcome(order, *market.agent_steps(2_500 * USDC))
    less = await market.outcome(order, *market.agent_steps(2_450 * USDC))
    longer = await market.outcome(
        order, *market.agent_steps(1_250 * USDC, ONE // 2), *market.agent_steps(1_250 * USDC, ONE // 2)
    )
    assert best.received == longer.received > less.received
    assert longer.gas_used > best.gas_used + 10_000


async def test_a_crossing_tells_the_gas_of_all_that_it_does(world: World, market: Market) -> None:
    """From the first order's nonce to the last one's fee."""
    fee = terms(world, 100, shares=True)
    sale = await world.a_delta_order(partner_and_fee=fee, beneficiary=world.stranger.address)
    counter = await market.a_counter_order(partner_and_fee=fee, src_amount=2_700 * USDC)
    crossings = [market.crossing(sale, 2_700 * USDC), market.crossing(counter, ONE)]
    await leave_units(market)
    settled = await market.cross(*crossings)
    assert len(settled.fees) == 4
    data = settle_crossed(crossings)
    assert abs(gas_around(settled.receipt, settled.outcome.gas_used, data)) < GAS_AROUND
