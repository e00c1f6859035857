"""An order is settled in parts: limits pro rata, rounded for the owner, to the last unit."""

import pytest

from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from support.chain.world import ONE, USDC, World
from support.contracts.settling import Market


async def test_a_sales_minimum_is_the_ceiling(world: World, market: Market) -> None:
    """7 wei for 10 units: parts of 3, 3 and 1 are worth 4.3, 4.3 and 1.4."""
    order = await world.a_delta_order(src_amount=7, dest_amount=10, expected_amount=0)
    filled = 0
    for amount, minimum in ((3, 5), (3, 5), (1, 2)):
        below = market.agent_steps(minimum - 1, given=amount)
        assert (
            await market.refused_settlement(order, *below, amount=amount)
            == f"BelowMinimum(received {minimum - 1}, minimum {minimum})"
        )
        steps = market.agent_steps(minimum, given=amount)
        event = (await market.settle(order, *steps, amount=amount)).event
        filled += amount
        assert (event.spent, event.received, event.filled) == (amount, minimum, filled)
        assert event.is_closed is await market.is_nonce_used(order) is (filled == 7)
        assert await market.filled(order) == filled
    assert await world.balance(world.weth, world.user) == 10 * ONE - 7
    assert await world.balance(world.usdc, world.user) == 12


async def test_a_purchases_maximum_is_the_floor(world: World, market: Market) -> None:
    """7 units for 10 wei: parts of 3, 3 and 1 may cost 4.3, 4.3 and 1.4."""
    order = await market.a_purchase(src_amount=10, dest_amount=7, expected_amount=0)
    filled = 0
    for amount, maximum in ((3, 4), (3, 4), (1, 1)):
        steps = market.agent_steps(amount, given=maximum)
        assert (
            await market.refused_settlement(order, *steps, amount=amount, src_given=maximum + 1)
            == f"AboveMaximum(spent {maximum + 1}, maximum {maximum})"
        )
        event = (await market.settle(order, *steps, amount=amount, src_given=maximum)).event
        filled += amount
        assert (event.spent, event.received, event.filled) == (maximum, amount, filled)
        assert event.is_closed is (filled == 7)
    assert await world.balance(world.weth, world.user) == 10 * ONE - 9


async def test_the_last_wei_of_a_large_order_is_sold(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    await market.settle(order, *market.agent_steps(2_400 * USDC, given=ONE - 1), amount=ONE - 1)
    nothing = (market.to_agent(1),)
    assert await market.refused_settlement(order, *nothing, amount=1) == "BelowMinimum(received 0, minimum 1)"
    event = (await market.settle(order, *market.agent_steps(1, given=1), amount=1)).event
    assert (event.filled, event.is_closed) == (ONE, True)


@pytest.mark.parametrize(
    ("received", "share"),
    [(1_400 * USDC, 0), (1_250 * USDC, 0), (1_250 * USDC + 1, 0), (1_250 * USDC + 7, 3)],
)
async def test_a_part_expects_its_part(world: World, market: Market, received: int, share: int) -> None:
    """Half of 2,500 USDC is expected of half the order; the partner shares a part's surplus above it."""
    takes = received != 1_400 * USDC
    terms = PartnerAndFee(world.partner.address, 0, takes, cap_surplus=True)
    order = await world.a_delta_order(partner_and_fee=pack_partner_and_fee(terms))
    steps = market.agent_steps(received, given=ONE // 2)
    event = (await market.settle(order, *steps, amount=ONE // 2)).event
    assert event.received == received - 2 * share
    assert await market.owed(world.partner.address, world.usdc) == share


async def test_no_part_is_empty_or_more_than_is_left(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps, amount=0) == "InvalidAmount()"
    assert await market.refused_settlement(order, *steps, amount=ONE + 1) == f"Overfilled(left {ONE})"
    await market.settle(order, *market.agent_steps(2_500 * USDC, given=ONE // 4), amount=ONE // 4)
    assert (
        await market.refused_settlement(order, *steps, amount=ONE * 3 // 4 + 1)
        == f"Overfilled(left {ONE * 3 // 4})"
    )


@pytest.mark.parametrize("nothing", ["sold", "bought"])
async def test_an_order_of_nothing_has_no_part(world: World, market: Market, nothing: str) -> None:
    if nothing == "sold":
        order = await world.a_delta_order(src_amount=0)
    else:
        order = await market.a_purchase(dest_amount=0)
    assert await market.refused_settlement(order, amount=1) == "Overfilled(left 0)"
    assert await market.refused_settlement(order, amount=0) == "InvalidAmount()"


@pytest.mark.parametrize(("received", "share"), [(7, 1), (8, 1), (9, 2)])
async def test_a_part_of_a_sale_expects_its_part_rounded_up(
    world: World, market: Market, received: int, share: int
) -> None:
    """Of 10 units for 7 wei, 3 wei are expected to bring 4.3, which is 5: of 8 units 3 are surplus."""
    terms = PartnerAndFee(world.partner.address, 0, True, False)
    order = await world.a_delta_order(
        src_amount=7, dest_amount=1, expected_amount=10, partner_and_fee=pack_partner_and_fee(terms)
    )
    event = (await market.settle(order, *market.agent_steps(received, given=3), amount=3)).event
    assert event.received == received - 2 * share
    assert await market.owed(world.partner.address, world.usdc) == share


@pytest.mark.parametrize(("given", "share"), [(1, 1), (2, 1), (3, 0), (4, 0)])
async def test_a_part_of_a_purchase_expects_its_part_rounded_down(
    world: World, market: Market, given: int, share: int
) -> None:
    """Of 10 wei for 7 units, 3 units are expected to cost 4.3, which is 4: at 1 wei 3 are surplus."""
    terms = PartnerAndFee(world.partner.address, 0, True, False)
    order = await market.a_purchase(
        src_amount=21, dest_amount=7, expected_amount=10, partner_and_fee=pack_partner_and_fee(terms)
    )
    steps = market.agent_steps(3, given=given)
    event = (await market.settle(order, *steps, amount=3, src_given=given)).event
    assert event.spent == given + 2 * share
    assert await market.owed(world.partner.address, world.weth) == share


@pytest.mark.parametrize("parts", [(-40, 100, 60, -1_000), (-40, -40, 20, 100), (100, -80, 60, 40)])
@pytest.mark.parametrize("kind", ["sale", "purchase"])
async def test_surplus_is_netted_over_parts(
    world: World, market: Market, kind: str, parts: tuple[int, ...]
) -> None:
    """A part that was worse than expected counts against those that are better, the last one too."""
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 0, True, False))
    quarter, token = ONE // 4, world.usdc if kind == "sale" else world.weth
    if kind == "sale":
        order = await world.a_delta_order(partner_and_fee=terms, dest_amount=1)
    else:
        order = await market.a_purchase(partner_and_fee=terms)
    shared, total = 0, 0
    for better in parts:
        if kind == "sale":
            unit, steps = USDC, market.agent_steps(625 * USDC + better * USDC // 10, given=quarter)
            part = {"amount": quarter}
        else:
            unit = ONE // 10_000
            given = quarter - better * unit // 10
            steps = market.agent_steps(625 * USDC, given=given)
            part = {"amount": 625 * USDC, "src_given": given}
        await market.settle(order, *steps, **part)
        total += better
        shared = max(shared, max(total, 0) // 2)
        assert await market.owed(world.partner.address, token) == shared * unit // 10
        assert await market.owed(world.protocol, token) == shared * unit // 10


async def test_surplus_is_netted_after_the_fee(world: World, market: Market) -> None:
    """With a fee of 1 % the first half is worse than expected, although without the fee it is as good."""
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 100, True, False))
    sale = await world.a_delta_order(partner_and_fee=terms, dest_amount=1)
    for received in (1_255 * USDC, 1_275 * USDC):  # 1,242.45 and 1,262.25 after the fee, of 1,250 expected
        await market.settle(sale, *market.agent_steps(received, given=ONE // 2), amount=ONE // 2)
    assert await market.owed(world.protocol, world.usdc) == 2_350_000
    purchase = await market.a_purchase(partner_and_fee=terms)
    for given in (50 * ONE // 100, 49 * ONE // 100):  # 0.505 and 0.4949 with the fee, of 0.5 expected
        steps = market.agent_steps(1_250 * USDC, given=given)
        await market.settle(purchase, *steps, amount=1_250 * USDC, src_given=given)
    assert await market.owed(world.protocol, world.weth) == ONE // 20_000


async def test_half_of_an_odd_surplus_of_parts_is_rounded_down(world: World, market: Market) -> None:
    """Parts one unit below and four above the expectation leave a surplus of three; the share is one unit."""
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 0, True, False))
    order = await world.a_delta_order(partner_and_fee=terms, dest_amount=1)
    for better in (-1, 4):
        steps = market.agent_steps(1_250 * USDC + better, given=ONE // 2)
        await market.settle(order, *steps, amount=ONE // 2)
    assert await market.owed(world.partner.address, world.usdc) == 1


async def test_a_surplus_beyond_all_bounds_is_refused(world: World, market: Market) -> None:
    """Delta stores the surplus as a signed 128-bit number: a larger surplus of a part is refused."""
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 0, True, False))
    most = (1 << 127) - 1
    await world.mint(world.dai, market.agent, 4 * most)
    order = await world.a_delta_order(
        dest_token=world.dai, dest_amount=2, expected_amount=2, partner_and_fee=terms
    )
    half = ONE // 2
    for received, reason in ((most + 2, "InvalidAmount()"), (most + 1, "")):
        steps = market.to_agent(half), market.from_agent(received, world.dai)
        if reason:
            assert await market.refused_settlement(order, *steps, amount=half) == reason
        else:
            await market.settle(order, *steps, amount=half)
            assert await market.owed(world.partner.address, world.dai) == most // 2


async def test_parts_worse_than_expected_beyond_all_bounds_are_refused(world: World, market: Market) -> None:
    """Of an order that shares surplus; parts of another order, and an only part, are counted nowhere."""
    shares = pack_partner_and_fee(PartnerAndFee(world.partner.address, 0, True, False))
    keeps = pack_partner_and_fee(PartnerAndFee(world.partner.address, 0, False, False))
    most = (1 << 127) - 1
    await world.mint(world.dai, market.agent, 2 * most)
    part = most + 3  # expected of half an order: 2 units more than can be missing
    terms = {"dest_token": world.dai, "dest_amount": 1, "expected_amount": 2 * part}
    half = ONE // 2
    order = await world.a_delta_order(**terms, partner_and_fee=shares)
    for received, reason in ((1, "InvalidAmount()"), (2, "")):
        steps = market.to_agent(half), market.from_agent(received, world.dai)
        if reason:
            assert await market.refused_settlement(order, *steps, amount=half) == reason
        else:
            await market.settle(order, *steps, amount=half)
    steps = market.to_agent(half), market.from_agent(1, world.dai)
    await market.settle(await world.a_delta_order(**terms, partner_and_fee=keeps), *steps, amount=half)
    only = market.to_agent(ONE), market.from_agent(1, world.dai)
    await market.settle(await world.a_delta_order(**terms, partner_and_fee=shares), *only)
