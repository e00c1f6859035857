"""Partner fee and surplus, to the unit: payments, credits in the vault, and claims."""

import pytest

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.contract_events import Claimed, Credited, FeeAccrued, Transfer
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.engine.chain.proceeds import Cut, of_purchase, of_sale
from support.chain.world import NOBODY, ONE, USDC, World
from support.contracts.settling import Market, claim, events

FEE_ONLY, TAKES, CAPPED, TAKES_CAPPED = (False, False), (True, False), (False, True), (True, True)
SALES = (
    # fee_bps, flags, received
    (0, FEE_ONLY, 2_600 * USDC),
    (100, FEE_ONLY, 2_600 * USDC + 99),
    (200, FEE_ONLY, 2_460 * USDC),
    (0, TAKES, 2_500 * USDC),
    (0, TAKES, 2_500 * USDC + 1),
    (0, TAKES, 2_500 * USDC + 3),
    (30, TAKES, 2_600 * USDC + 1),
    (30, CAPPED, 2_600 * USDC + 1),
    (30, TAKES_CAPPED, 2_600 * USDC + 1),
    (0, TAKES_CAPPED, 2_510 * USDC + 1),
)
PURCHASES = (
    # fee_bps, flags, spent
    (0, FEE_ONLY, ONE * 9 // 10),
    (100, FEE_ONLY, ONE - 1),
    (200, FEE_ONLY, 1_078_431_372_549_019_607),  # with the fee just the maximum
    (0, TAKES, ONE),
    (0, TAKES, ONE - 1),
    (0, TAKES, ONE - 3),
    (30, TAKES, ONE * 9 // 10 + 1),
    (30, CAPPED, ONE * 9 // 10 + 1),
    (30, TAKES_CAPPED, ONE * 9 // 10 + 1),
    (0, TAKES_CAPPED, ONE * 995 // 1000 + 1),
)


def accrued(
    world: World, order_hash: bytes, terms: PartnerAndFee, token: bytes, cut: Cut
) -> list[FeeAccrued]:
    """FeeAccrued events of a cut."""
    partner = world.protocol if terms.partner == NOBODY else terms.partner
    told = [(partner, cut.fee, False), (partner, cut.share, True), (world.protocol, cut.share, True)]
    return [FeeAccrued(order_hash, who, token, amount, what) for who, amount, what in told if amount]


@pytest.mark.parametrize("has_partner", [True, False])
async def test_of_a_sale(world: World, market: Market, has_partner: bool) -> None:
    owed = {world.partner.address: 0, world.protocol: 0}
    for fee_bps, (takes, capped), received in SALES:
        terms = PartnerAndFee(world.partner.address if has_partner else NOBODY, fee_bps, takes, capped)
        order = await world.a_delta_order(
            partner_and_fee=pack_partner_and_fee(terms), src_amount=1_000, dest_amount=2_400 * USDC
        )
        cut = of_sale(received, order.expected_amount, order.dest_amount, terms)
        before = await world.balance(world.usdc, world.user)
        settled = await market.settle(order, *market.agent_steps(received, given=1_000))
        assert settled.event.received == received - cut.total
        assert await world.balance(world.usdc, world.user) - before == received - cut.total
        assert list(settled.fees) == accrued(world, world.delta_hash(order), terms, world.usdc, cut)
        owed[world.partner.address if has_partner else world.protocol] += cut.fee + cut.share
        owed[world.protocol] += cut.share
    assert {who: await market.owed(who, world.usdc) for who in owed} == owed
    assert await world.balance(world.usdc, world.at.fee_vault) == sum(owed.values()) > 0


@pytest.mark.parametrize("has_partner", [True, False])
async def test_of_a_purchase(world: World, market: Market, has_partner: bool) -> None:
    owed = {world.partner.address: 0, world.protocol: 0}
    await world.mint(world.weth, world.user, 10 * ONE)
    for fee_bps, (takes, capped), spent in PURCHASES:
        terms = PartnerAndFee(world.partner.address if has_partner else NOBODY, fee_bps, takes, capped)
        order = await market.a_purchase(partner_and_fee=pack_partner_and_fee(terms), dest_amount=1_000)
        cut = of_purchase(spent, order.expected_amount, order.src_amount, terms)
        assert cut is not None
        before = await world.balance(world.weth, world.user)
        settled = await market.settle(order, *market.agent_steps(1_000, given=spent), src_given=spent)
        assert settled.event.spent == spent + cut.total
        assert before - await world.balance(world.weth, world.user) == spent + cut.total
        assert list(settled.fees) == accrued(world, world.delta_hash(order), terms, world.weth, cut)
        owed[world.partner.address if has_partner else world.protocol] += cut.fee + cut.share
        owed[world.protocol] += cut.share
    assert {who: await market.owed(who, world.weth) for who in owed} == owed
    assert await world.balance(world.weth, world.at.fee_vault) == sum(owed.values()) > 0


async def test_a_twap_pays_the_fee_and_keeps_its_surplus(world: World, market: Market) -> None:
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 100, True, False))
    sale = await market.a_twap(partner_and_fee=terms)
    settled = await market.settle(sale, *market.agent_steps(1_000 * USDC, given=ONE // 3))
    assert settled.event.received == 990 * USDC
    assert [fee.amount for fee in settled.fees] == [10 * USDC]
    purchase = await market.a_twap_purchase(partner_and_fee=terms)
    settled = await market.settle(
        purchase, *market.agent_steps(2_500 * USDC // 3, given=1_000), src_given=1_000
    )
    assert settled.event.spent == 1_010
    assert [(fee.token, fee.amount) for fee in settled.fees] == [(world.weth, 10)]


async def test_a_fee_above_two_per_cent_is_refused(world: World, market: Market) -> None:
    packed = int.from_bytes(world.partner.address, "big") << 96 | 201
    sale = await world.a_delta_order(partner_and_fee=packed)
    assert await market.refused_settlement(sale, *market.agent_steps(2_500 * USDC)) == (
        "InvalidFee(feeBps 201)"
    )
    purchase = await market.a_purchase(partner_and_fee=packed)
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(purchase, *steps, src_given=ONE) == "InvalidFee(feeBps 201)"


@pytest.mark.parametrize(("most", "expected"), [(11 * ONE // 10, ONE), (ONE, 11 * ONE // 10)])
async def test_shares_of_a_purchase_are_there_also_where_a_unit_comes_back(
    world: World, market: Market, most: int, expected: int
) -> None:
    """The less is spent, the more is shared: of an odd surplus what is taken at first covers a unit more."""
    terms = PartnerAndFee(world.partner.address, 0, True, False)
    order = await market.a_purchase(
        src_amount=most, expected_amount=expected, partner_and_fee=pack_partner_and_fee(terms)
    )
    back = market.from_agent(2_500 * USDC), market.from_agent(1, world.weth)
    event = (await market.settle(order, *back, receiver=market.agent, src_given=ONE - 1)).event
    assert event.spent == ONE
    assert await market.owed(world.partner.address, world.weth) == 1
    assert await market.owed(world.protocol, world.weth) == 1


async def test_limits_hold_after_the_fee(world: World, market: Market) -> None:
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 100, False, False))
    sale = await world.a_delta_order(partner_and_fee=terms)
    assert (
        await market.refused_settlement(sale, *market.agent_steps(2_424_242_423))
        == "BelowMinimum(received 2399999999, minimum 2400000000)"
    )
    assert (await market.settle(sale, *market.agent_steps(2_424_242_424))).event.received == 2_400 * USDC
    purchase = await market.a_purchase(partner_and_fee=terms, src_amount=1_010_000)
    steps = market.agent_steps(2_500 * USDC, given=1_000_100)
    assert (
        await market.refused_settlement(purchase, *steps, src_given=1_000_100)
        == "AboveMaximum(spent 1010101, maximum 1010000)"
    )
    steps = market.agent_steps(2_500 * USDC, given=1_000_000)
    settled = await market.settle(purchase, *steps, src_given=1_000_000)
    assert settled.event.spent == 1_010_000


async def test_fees_are_credited_and_claimed_by_whom_they_belong_to(world: World, market: Market) -> None:
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 100, True, False))
    sale = await world.a_delta_order(partner_and_fee=terms)
    settled = await market.settle(sale, *market.agent_steps(2_600 * USDC))
    fee, share = 26 * USDC, 37 * USDC  # half of 2,574 - 2,500
    assert events(settled.receipt, Credited) == [
        Credited(world.partner.address, world.usdc, fee),
        Credited(world.partner.address, world.usdc, share),
        Credited(world.protocol, world.usdc, share),
    ]
    purchase = await market.a_purchase(partner_and_fee=terms)
    await market.settle(purchase, *market.agent_steps(2_500 * USDC), src_given=ONE)

    receipt = await world.send(
        world.partner, world.at.fee_vault, claim([world.usdc, world.weth], world.stranger.address)
    )
    assert events(receipt, Claimed) == [
        Claimed(world.partner.address, world.usdc, world.stranger.address, fee + share),
        Claimed(world.partner.address, world.weth, world.stranger.address, ONE // 100),
    ]
    assert events(receipt, Transfer)[0] == Transfer(world.at.fee_vault, world.stranger.address, fee + share)
    assert await world.balance(world.usdc, world.stranger) == fee + share
    assert await world.balance(world.weth, world.stranger) == ONE // 100
    assert await world.balance(world.usdc, world.at.fee_vault) == share
    assert await market.owed(world.protocol, world.usdc) == share
    for key in (world.partner, world.stranger, world.owner):
        again = claim([world.usdc], key.address)
        assert (
            await world.refused(key, world.at.fee_vault, again)
            == f"NothingToClaim(token 0x{world.usdc.hex()})"
        )


async def test_nobody_credits_but_delta_and_the_router(world: World, market: Market) -> None:
    data = selector("credit(address,address,uint256)")
    data += address_word(world.stranger.address) + address_word(world.usdc) + uint_word(1)
    await world.mint(world.usdc, world.at.fee_vault, 1)
    for key in (world.stranger, world.owner, world.relayer):
        assert await world.refused(key, world.at.fee_vault, data) == "NotCollector()"


async def test_no_more_is_credited_than_arrives(world: World, market: Market) -> None:
    """Of a token that takes a fee on transfers; and what somebody left there is nobody's."""
    odd = await world.new_token()
    await world.mint(odd, market.agent, 1_000_000)
    await world.send(world.owner, odd, selector("setTransferFee(uint256)") + uint_word(100))
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 200, False, False))
    order = await world.a_delta_order(
        dest_token=odd, dest_amount=900_000, expected_amount=0, partner_and_fee=terms
    )
    await market.settle(order, market.to_agent(ONE), market.from_agent(1_000_000, odd))
    kept = await market.owed(world.partner.address, odd)
    assert 0 < kept == await world.balance(odd, world.at.fee_vault) < 1_000_000 * 99 * 2 // 10**4
    await world.send(world.partner, world.at.fee_vault, claim([odd], world.partner.address))
    assert await world.balance(odd, world.at.fee_vault) == 0


async def test_a_claim_that_a_token_refuses_keeps_what_is_owed(world: World, market: Market) -> None:
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 100, False, False))
    order = await world.a_delta_order(partner_and_fee=terms)
    await market.settle(order, *market.agent_steps(2_500 * USDC))
    blocked = selector("setBlocked(address,bool)") + address_word(world.partner.address) + uint_word(1)
    await world.send(world.owner, world.usdc, blocked)
    data = claim([world.usdc], world.partner.address)
    assert (
        await world.refused(world.partner, world.at.fee_vault, data)
        == f"TransferFailed(token 0x{world.usdc.hex()})"
    )
    assert await market.owed(world.partner.address, world.usdc) == 25 * USDC
    await world.send(world.partner, world.at.fee_vault, claim([world.usdc], world.stranger.address))
    assert await world.balance(world.usdc, world.stranger) == 25 * USDC


async def test_a_token_that_claims_while_it_is_claimed(world: World, market: Market) -> None:
    terms = pack_partner_and_fee(PartnerAndFee(world.partner.address, 100, False, False))
    await market.settle(await world.a_delta_order(partner_and_fee=terms), *market.agent_steps(2_500 * USDC))
    again = claim([], world.stranger.address)
    hook = address_word(world.at.fee_vault), bytes_tail(again)
    await world.send(world.owner, world.usdc, selector("setHook(address,bytes)") + encode(*hook))
    refused = await world.refused(
        world.partner, world.at.fee_vault, claim([world.usdc], world.partner.address)
    )
    assert refused == f"TransferFailed(token 0x{world.usdc.hex()})"
