"""Fees and surplus on the Router, to the unit: the contract pays the amounts of `proceeds`."""

import msgspec
import pytest

from cambist.codecs.contracts.contract_events import Credited, Swapped, decode_event
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.engine.chain.proceeds import Cut, of_purchase, of_sale
from support.chain.world import MOST, NOBODY, ONE, USDC, World
from support.contracts.swapping import Done, Venue, a_venue, told

PAYS_DIRECTLY = 1 << 10
PARTNER_FLAGS = (
    # fee in bps, takes surplus, capped
    (0, False, False),
    (1, False, False),
    (85, False, True),
    (200, False, False),
    (0, True, False),
    (0, True, True),
    (33, True, False),
    (200, True, True),
)
RECEIVED = 2_512_345_679  # of USDC, odd on purpose
SPENT = 987_654_321_987_654_321


def _terms(partner: bytes, flags: tuple[int, bool, bool]) -> PartnerAndFee:
    return PartnerAndFee(partner, *flags)


def _credited(done: Done) -> list[Credited]:
    events = [decode_event(log.topics, log.data) for log in done.receipt.logs]
    return [event for event in events if isinstance(event, Credited)]


def _is_split(venue: Venue, done: Done, cut: Cut, token: bytes) -> bool:
    """The vault was credited the partner's part and the protocol's, and nothing else."""
    world = venue.world
    wanted = [
        Credited(account, token, amount)
        for account, amount in (
            (world.partner.address, cut.fee + cut.share),
            (world.protocol, cut.share),
        )
        if amount
    ]
    return _credited(done) == wanted


@pytest.mark.parametrize("expected", [0, 2_405_000_001, 2_500 * USDC + 1, 3_000 * USDC])
async def test_a_sale_pays_what_proceeds_says(world: World, expected: int) -> None:
    venue = await a_venue(world)
    for flags in PARTNER_FLAGS:
        terms = _terms(world.partner.address, flags)
        swap = venue.swap(
            venue.hop(venue.quote(maker_amount=RECEIVED)),
            expected_amount=expected,
            partner_and_fee=pack_partner_and_fee(terms),
            receiver=world.taker.address,
        )
        cut = of_sale(RECEIVED, expected, swap.dest_amount, terms)
        before = await world.balance(world.usdc, world.taker)
        done = await venue.sell(swap)
        received = RECEIVED - cut.total
        assert done.event == Swapped(
            world.user.address,
            world.taker.address,
            world.weth,
            world.usdc,
            ONE,
            received,
            cut.fee,
            cut.share,
        ), flags
        assert await world.balance(world.usdc, world.taker) == before + received
        assert _is_split(venue, done, cut, world.usdc), flags


@pytest.mark.parametrize("expected", [0, SPENT + 5, SPENT + 3 * ONE // 100 + 1, 2 * ONE])
async def test_a_purchase_costs_what_proceeds_says(world: World, expected: int) -> None:
    venue = await a_venue(world)
    for flags in PARTNER_FLAGS:
        terms = _terms(world.partner.address, flags)
        swap = venue.purchase(
            venue.hop(venue.quote(taker_amount=SPENT), maker_amount=2_500 * USDC),
            expected_amount=expected,
            partner_and_fee=pack_partner_and_fee(terms),
        )
        cut = of_purchase(SPENT, expected, swap.src_amount, terms)
        assert cut is not None
        before = await world.balance(world.weth, world.user)
        done = await venue.buy(swap)
        spent = SPENT + cut.total
        assert (done.event.spent, done.event.fee, done.event.share) == (spent, cut.fee, cut.share), flags
        assert await world.balance(world.weth, world.user) == before - spent
        assert _is_split(venue, done, cut, world.weth), flags


async def test_a_purchase_beyond_the_maximum_is_refused_where_proceeds_says_so(world: World) -> None:
    venue = await a_venue(world)
    terms = _terms(world.partner.address, (85, True, False))
    total = SPENT + SPENT * 85 // 10_000
    for maximum in (total, total - 1):
        swap = venue.purchase(
            venue.hop(venue.quote(taker_amount=SPENT), maker_amount=2_500 * USDC),
            src_amount=maximum,
            expected_amount=SPENT,
            partner_and_fee=pack_partner_and_fee(terms),
        )
        if of_purchase(SPENT, SPENT, maximum, terms) is None:
            reason = await venue.refused_purchase(swap)
            assert reason == told("AboveMaximum", spent=total, maximum=maximum)
        else:
            assert (await venue.buy(swap)).event.spent == total == maximum


async def test_fees_are_kept_until_they_are_claimed(world: World) -> None:
    venue = await a_venue(world)
    terms = _terms(world.partner.address, (100, True, False))
    for _ in range(2):
        swap = venue.swap(
            venue.hop(venue.quote()),
            expected_amount=2_400 * USDC,
            partner_and_fee=pack_partner_and_fee(terms),
        )
        await venue.sell(swap)
    cut = of_sale(2_500 * USDC, 2_400 * USDC, 2_400 * USDC, terms)
    assert await venue.owed(world.protocol, world.usdc) == 2 * cut.share == 75 * USDC
    assert await venue.owed(world.partner.address, world.usdc) == 2 * (cut.fee + cut.share)
    assert await world.balance(world.usdc, world.at.fee_vault) == 2 * cut.total
    assert await venue.claim(world.usdc) == 2 * (cut.fee + cut.share)
    assert await venue.owed(world.partner.address, world.usdc) == 0
    assert await world.balance(world.usdc, world.at.fee_vault) == 2 * cut.share


async def test_fees_are_paid_at_once_where_the_terms_say_so(world: World) -> None:
    venue = await a_venue(world)
    terms = _terms(world.partner.address, (100, True, False))
    packed = pack_partner_and_fee(terms) | PAYS_DIRECTLY
    sale = venue.swap(venue.hop(venue.quote()), expected_amount=2_400 * USDC, partner_and_fee=packed)
    done = await venue.sell(sale)
    cut = of_sale(2_500 * USDC, 2_400 * USDC, 2_400 * USDC, terms)
    assert _credited(done) == []
    assert await world.balance(world.usdc, world.partner) == cut.fee + cut.share
    assert await world.balance(world.usdc, world.protocol) == cut.share
    purchase = venue.purchase(
        venue.hop(venue.quote(), maker_amount=2_500 * USDC),
        expected_amount=105 * ONE // 100,
        partner_and_fee=packed,
    )
    bought = await venue.buy(purchase)
    cost = of_purchase(ONE, 105 * ONE // 100, purchase.src_amount, terms)
    assert cost is not None
    assert _credited(bought) == []
    assert await world.balance(world.weth, world.partner) == cost.fee + cost.share
    assert await world.balance(world.weth, world.protocol) == cost.share
    assert await venue.owed(world.partner.address, world.weth) == 0


async def test_without_a_partner_all_is_the_protocols(world: World) -> None:
    """Of a fee, of surplus, and of both."""
    venue = await a_venue(world)
    owed = 0
    for fee_bps, takes_surplus, cut_usdc in ((100, True, 100), (100, False, 25), (0, True, 100)):
        terms = _terms(NOBODY, (fee_bps, takes_surplus, False))
        swap = venue.swap(
            venue.hop(venue.quote()),
            expected_amount=2_400 * USDC,
            partner_and_fee=pack_partner_and_fee(terms),
        )
        await venue.sell(swap)
        cut = of_sale(2_500 * USDC, 2_400 * USDC, 2_400 * USDC, terms)
        owed += cut.total
        assert cut.total == cut_usdc * USDC
        assert await venue.owed(world.protocol, world.usdc) == owed
        assert await venue.owed(NOBODY, world.usdc) == 0


async def test_a_fee_of_one_raw_unit_without_a_partner_is_the_protocols(world: World) -> None:
    venue = await a_venue(world)
    swap = venue.swap(
        venue.hop(venue.quote(maker_amount=10_000)),
        dest_amount=1,
        partner_and_fee=pack_partner_and_fee(_terms(NOBODY, (1, False, False))),
    )
    assert (await venue.sell(swap)).event.fee == 1
    assert await venue.owed(world.protocol, world.usdc) == 1


async def test_a_fee_above_two_percent_is_refused(world: World) -> None:
    venue = await a_venue(world)
    for bps in (201, 255):
        swap = venue.swap(venue.hop(venue.quote()), partner_and_fee=bps)
        assert await venue.refused_sale(swap) == told("InvalidFee", feeBps=bps)
        bought = venue.purchase(venue.hop(venue.quote(), maker_amount=2_500 * USDC), partner_and_fee=bps)
        assert await venue.refused_purchase(bought) == told("InvalidFee", feeBps=bps)


async def test_an_expectation_beyond_all_numbers_is_refused_or_means_no_surplus(world: World) -> None:
    venue = await a_venue(world)
    terms = pack_partner_and_fee(_terms(world.partner.address, (0, True, True)))
    sale = venue.swap(venue.hop(venue.quote()), expected_amount=MOST, partner_and_fee=terms)
    assert (await venue.sell(sale)).event.share == 0
    hop = venue.hop(venue.quote(), maker_amount=2_500 * USDC)
    purchase = venue.purchase(hop, expected_amount=MOST, partner_and_fee=terms)
    assert (await venue.buy(purchase)).event.share == 11 * ONE // 10 // 100 // 2
    below = msgspec.structs.replace(sale, hops=(venue.hop(venue.quote()),), expected_amount=1, dest_amount=1)
    assert (await venue.sell(below)).event.share == 0  # 1 % of next to nothing
