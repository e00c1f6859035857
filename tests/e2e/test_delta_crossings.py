"""Owners who want what others give: a relayer settles their orders against each other, all or none.

In every story the simulated outcome is what the mined events tell, and nothing is left in Delta or with the
executor (`Market.cross`).
"""

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import selector, uint_word
from cambist.codecs.contracts.contract_events import FeeAccrued, OrderFilled, Transfer
from cambist.codecs.contracts.delta_calldata import CROSSINGS_MAX, set_pre_signature
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.engine.chain.proceeds import of_purchase, of_sale
from support.chain.world import NATIVE, NOBODY, ONE, USDC, World
from support.contracts.permit_kinds import SRC, eip2612, seller
from support.contracts.settling import Market, events

PRICE = 2_500 * USDC


async def test_two_opposite_sales_pay_each_other_to_the_unit(world: World, market: Market) -> None:
    """Without a step, the tokens of one owner reach the other in two transfers, and no others are made."""
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    settled = await market.cross(market.crossing(sale, PRICE), market.crossing(counter, ONE))
    first, second = settled.events
    assert (first.spent, first.received, first.filled, first.is_closed) == (ONE, PRICE, ONE, True)
    assert (second.spent, second.received, second.filled, second.is_closed) == (PRICE, ONE, PRICE, True)
    delta, user, taker = world.at.delta, world.user.address, world.taker.address
    assert events(settled.receipt, Transfer) == [
        Transfer(user, delta, ONE),
        Transfer(taker, delta, PRICE),
        Transfer(delta, user, PRICE),
        Transfer(delta, taker, ONE),
    ]
    assert await world.balances(world.user, world.taker) == {
        (world.weth, user): 9 * ONE,
        (world.usdc, user): PRICE,
        (world.dai, user): 0,
        (world.weth, taker): ONE,
        (world.usdc, taker): 7_500 * USDC,
        (world.dai, taker): 0,
    }
    for order in (sale, counter):
        assert await market.is_nonce_used(order)
    alone = await market.settle(await world.a_delta_order(), *market.agent_steps(PRICE))
    assert settled.receipt.gas_used < 2 * alone.receipt.gas_used


async def test_makers_fill_what_the_orders_do_not(world: World, market: Market) -> None:
    """Two WETH for sale against 2,500 USDC: the other one goes to a maker, who quoted its owner."""
    sale = await world.a_delta_order(
        src_amount=2 * ONE, dest_amount=4_900 * USDC, expected_amount=4_990 * USDC
    )
    counter = await market.a_counter_order()
    quote = world.a_firm_quote(maker_amount=2_490 * USDC)
    settled = await market.cross(
        market.crossing(sale, 4_990 * USDC, world.fill_step(quote), traded=ONE),
        market.crossing(counter, ONE),
    )
    assert [event.received for event in settled.events] == [4_990 * USDC, ONE]
    (fill,) = events(settled.receipt, OrderFilled)
    assert (fill.order_hash, fill.taker) == (world.rfq_hash(quote), world.at.delta)
    assert await world.balance(world.weth, world.maker) == ONE
    assert await world.balance(world.weth, world.taker) == ONE
    assert await world.balance(world.usdc, world.user) == 4_990 * USDC


async def test_each_owners_steps_are_for_its_own_quotes(world: World, market: Market) -> None:
    sale = await world.a_delta_order(src_amount=2 * ONE, dest_amount=4_900 * USDC)
    counter = await market.a_counter_order(src_amount=5_000 * USDC, dest_amount=19 * ONE // 10)
    sold = world.fill_step(world.a_firm_quote(), taker_amount=ONE)
    bought_quote = world.a_firm_quote(
        world.taker,
        maker_asset=world.weth,
        taker_asset=world.usdc,
        maker_amount=ONE,
        taker_amount=PRICE,
    )
    await world.mint(world.weth, world.maker, ONE)
    bought = world.fill_step(bought_quote, taker_amount=PRICE)
    refused = await market.refused_crossing(
        market.crossing(sale, 5_000 * USDC, sold, bought, traded=ONE), market.crossing(counter, 2 * ONE)
    )
    assert refused == f"NotTheUsers(nonceAndMeta {bought_quote.nonce_and_meta})"
    settled = await market.cross(
        market.crossing(sale, 5_000 * USDC, sold, traded=ONE),
        market.crossing(counter, 2 * ONE, bought, traded=PRICE),
    )
    assert [event.received for event in settled.events] == [5_000 * USDC, 2 * ONE]


async def test_a_purchase_against_a_sale(world: World, market: Market) -> None:
    """The purchase costs the amount that it gives; the rest of its maximum returns to the owner."""
    purchase, counter = await market.a_purchase(), await market.a_counter_order()
    settled = await market.cross(
        market.crossing(purchase, PRICE, src_given=98 * ONE // 100),
        market.crossing(counter, 98 * ONE // 100),
    )
    assert settled.outcome.spent == (98 * ONE // 100, PRICE)
    assert settled.outcome.received == (PRICE, 98 * ONE // 100)
    assert await world.balance(world.weth, world.user) == 10 * ONE - 98 * ONE // 100
    assert await world.balance(world.usdc, world.user) == PRICE


async def test_native_tokens_in_and_out(world: World, market: Market) -> None:
    sale = await world.a_delta_order(src_token=NATIVE)
    counter = await market.a_counter_order(dest_token=NATIVE)
    await market.deposit(sale, ONE + 7)
    user, taker = [await world.balance(NATIVE, key) for key in (world.user, world.taker)]
    settled = await market.cross(market.crossing(sale, PRICE), market.crossing(counter, ONE))
    assert (settled.events[0].src_token, settled.events[1].dest_token) == (NATIVE, NATIVE)
    assert await world.balance(NATIVE, world.taker) == taker + ONE
    assert await world.balance(NATIVE, world.user) == user
    assert await market.deposited(sale) == await world.balance(NATIVE, world.at.delta) == 7


async def test_a_purchase_from_a_deposit_has_back_what_it_did_not_cost(world: World, market: Market) -> None:
    purchase = await market.a_purchase(src_token=NATIVE)
    counter = await market.a_counter_order()
    await market.deposit(purchase, purchase.src_amount)
    before = await world.balance(NATIVE, world.user)
    settled = await market.cross(
        market.crossing(purchase, PRICE, src_given=ONE), market.crossing(counter, ONE)
    )
    assert settled.outcome.spent == (ONE, PRICE)
    assert await world.balance(NATIVE, world.user) == before + purchase.src_amount - ONE
    assert await world.balance(world.weth, world.taker) == ONE


async def test_fees_and_surplus_of_both(world: World, market: Market) -> None:
    """A sale's of what it is paid, a purchase's on top of what it gives."""
    shared = PartnerAndFee(world.partner.address, 50, partner_takes_surplus=True, cap_surplus=True)
    own = PartnerAndFee(NOBODY, 20, partner_takes_surplus=True, cap_surplus=False)
    purchase = await market.a_purchase(partner_and_fee=pack_partner_and_fee(shared))
    counter = await market.a_counter_order(
        partner_and_fee=pack_partner_and_fee(own), expected_amount=93 * ONE // 100
    )
    given = 95 * ONE // 100
    settled = await market.cross(
        market.crossing(purchase, PRICE, src_given=given), market.crossing(counter, given)
    )
    bought = of_purchase(given, ONE, purchase.src_amount, shared)
    assert bought is not None
    sold = of_sale(given, 93 * ONE // 100, counter.dest_amount, own)
    assert bought.fee
    assert bought.share
    assert sold.fee
    assert sold.share
    assert settled.outcome.spent == (given + bought.total, PRICE)
    assert settled.outcome.received == (PRICE, given - sold.total)
    partner, protocol = world.partner.address, world.protocol
    first, second = map(world.delta_hash, (purchase, counter))
    assert settled.fees == (
        FeeAccrued(first, partner, world.weth, bought.fee, False),
        FeeAccrued(first, partner, world.weth, bought.share, True),
        FeeAccrued(first, protocol, world.weth, bought.share, True),
        FeeAccrued(second, protocol, world.weth, sold.fee, False),
        FeeAccrued(second, protocol, world.weth, sold.share, True),
        FeeAccrued(second, protocol, world.weth, sold.share, True),
    )
    assert await market.owed(partner, world.weth) == bought.fee + bought.share
    assert await market.owed(protocol, world.weth) == bought.share + sold.total
    assert await world.balance(world.weth, world.user) == 10 * ONE - given - bought.total
    assert await world.balance(world.weth, world.taker) == given - sold.total


async def test_three_orders_in_a_ring(world: World, market: Market) -> None:
    """No two of them want what the other gives."""
    await world.give(world.stranger, world.dai, 2_480 * ONE, world.at.delta)
    sale = await world.a_delta_order()
    to_dai = await market.a_counter_order(dest_token=world.dai, dest_amount=2_400 * ONE, expected_amount=0)
    stranger = world.stranger.address
    to_weth = await world.a_delta_order(
        owner=stranger, beneficiary=NOBODY, src_token=world.dai, dest_token=world.weth,
        src_amount=2_480 * ONE, dest_amount=ONE * 9 // 10, expected_amount=0,
    )  # fmt: skip
    settled = await market.cross(
        market.crossing(sale, PRICE), market.crossing(to_dai, 2_480 * ONE), market.crossing(to_weth, ONE)
    )
    assert settled.outcome.received == (PRICE, 2_480 * ONE, ONE)
    assert await world.balance(world.dai, world.taker) == 2_480 * ONE
    assert await world.balance(world.weth, world.stranger) == ONE


@pytest.mark.parametrize("sold", [1, 7])
async def test_two_orders_of_four_tokens(world: World, market: Market, sold: int) -> None:
    """Neither wants what the other gives; steps trade for both, and name a token that is nobody's."""
    odd, none = await world.new_token(), await world.new_token()
    await world.give(world.user, odd, sold, world.at.delta)
    await world.send(world.user, world.weth, calldata.transfer(market.agent, ONE))
    await world.give(world.stranger, world.dai, 5 * ONE, world.at.delta)
    sale = await world.a_delta_order(src_token=odd, src_amount=sold)
    other = await world.a_delta_order(
        owner=world.stranger.address, beneficiary=NOBODY, src_token=world.dai, dest_token=NATIVE,
        src_amount=5 * ONE, dest_amount=ONE, expected_amount=0,
    )  # fmt: skip
    first = market.to_agent(sold, odd), market.from_agent(PRICE)
    second = market.to_agent(5 * ONE, world.dai), market.from_agent(ONE, world.weth)
    settled = await market.cross(
        market.crossing(sale, PRICE, *first, traded=sold, leftovers=(none,)),
        market.crossing(other, ONE, *second, traded=5 * ONE),
    )
    assert settled.outcome.spent == (sold, 5 * ONE)
    assert settled.outcome.received == (PRICE, ONE)


async def test_an_order_brings_its_own_permit(world: World, market: Market) -> None:
    """The first order has an allowance, the second a permit instead."""
    await world.give(world.stranger, world.dai, 1_000 * ONE, world.at.delta)
    first = await world.a_delta_order(
        owner=world.stranger.address, beneficiary=NOBODY, src_token=world.dai, dest_token=world.usdc,
        src_amount=1_000 * ONE, dest_amount=SRC, expected_amount=0,
    )  # fmt: skip
    second = await seller(world)
    second = msgspec.structs.replace(second, permit=await eip2612(world, second))
    settled = await market.cross(market.crossing(first, SRC), market.crossing(second, 1_000 * ONE))
    assert settled.outcome.spent == (1_000 * ONE, SRC)


async def test_as_many_orders_as_are_allowed(world: World, market: Market) -> None:
    """Sales of an eighth of a WETH each, against as many purchases of it."""
    eighth, price = ONE // 8, PRICE // 8
    crossings = []
    for _ in range(CROSSINGS_MAX // 2):
        sale = await world.a_delta_order(src_amount=eighth, dest_amount=price)
        counter = await market.a_counter_order(src_amount=price, dest_amount=eighth)
        crossings += [market.crossing(sale, price), market.crossing(counter, eighth)]
    settled = await market.cross(*crossings)
    assert settled.outcome.received == (price, eighth) * (CROSSINGS_MAX // 2)
    assert await world.balance(world.weth, world.taker) == ONE // 2


async def test_parts_against_each_other_until_both_are_filled(world: World, market: Market) -> None:
    """Two parts of one order may also meet in one crossing."""
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    half, third = ONE // 2, PRICE // 2
    first = await market.cross(
        market.crossing(sale, third, amount=half), market.crossing(counter, half, amount=third)
    )
    assert [event.is_closed for event in first.events] == [False, False]
    assert not await market.is_nonce_used(sale)
    quarter = ONE // 4
    last = await market.cross(
        market.crossing(sale, PRICE // 4, amount=quarter),
        market.crossing(counter, half, amount=third),
        market.crossing(sale, PRICE // 4, amount=quarter),
    )
    assert [(event.filled, event.is_closed) for event in last.events] == [
        (3 * quarter, False),
        (PRICE, True),
        (ONE, True),
    ]
    assert await market.is_nonce_used(sale)
    assert await market.is_nonce_used(counter)


async def test_what_nobody_is_paid_is_the_first_owners_who_wants_it(world: World, market: Market) -> None:
    """Not the first beneficiary's, and not the next owner's."""
    sale = await world.a_delta_order(beneficiary=world.stranger.address)
    another = await world.a_delta_order(src_amount=1, dest_amount=0)
    counter = await market.a_counter_order()
    await market.cross(
        market.crossing(another, 0),
        market.crossing(sale, 2_450 * USDC),
        market.crossing(counter, 95 * ONE // 100),
    )
    assert await world.balance(world.usdc, world.stranger) == 2_450 * USDC
    assert await world.balance(world.usdc, world.user) == 50 * USDC
    assert await world.balance(world.weth, world.taker) == ONE + 1


async def test_the_last_unit_is_paid(world: World, market: Market) -> None:
    """Without a step nothing is traded, even where a crossing names an amount to trade."""
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    crossed = await market.cross(
        market.crossing(sale, PRICE - 1, traded=ONE), market.crossing(counter, ONE - 1)
    )
    assert crossed.outcome.received == (PRICE, ONE)
    assert (
        await world.balance(world.usdc, world.at.delta)
        == await world.balance(world.weth, world.at.delta)
        == 0
    )


async def test_no_rest_escapes_fee_share_and_record(world: World, market: Market) -> None:
    """A relayer that says it pays a unit pays all, through the order's fee and its share of surplus."""
    terms = PartnerAndFee(world.partner.address, 200, partner_takes_surplus=True, cap_surplus=False)
    packed = pack_partner_and_fee(terms)
    sale = await world.a_delta_order(dest_amount=0, expected_amount=2_400 * USDC, partner_and_fee=packed)
    crossed = await market.cross(
        market.crossing(sale, 1), market.crossing(await market.a_counter_order(), ONE)
    )
    cut = of_sale(PRICE, 2_400 * USDC, 0, terms)
    assert (cut.fee, cut.share) == (50 * USDC, 25 * USDC)
    assert crossed.outcome.received == (PRICE - cut.total, ONE)
    assert await world.balance(world.usdc, world.user) == PRICE - cut.total
    assert await market.owed(world.partner.address, world.usdc) == cut.fee + cut.share
    assert await market.owed(world.protocol, world.usdc) == cut.share


async def test_an_order_for_native_tokens_receives_the_rest_of_the_wrapped(
    world: World, market: Market
) -> None:
    counter = await market.a_counter_order(dest_token=NATIVE)
    before = await world.balance(NATIVE, world.taker)
    crossed = await market.cross(
        market.crossing(await world.a_delta_order(), PRICE), market.crossing(counter, ONE - 7)
    )
    assert crossed.outcome.spent == (ONE, PRICE)
    assert crossed.outcome.received == (PRICE, ONE)
    assert await world.balance(NATIVE, world.taker) == before + ONE


async def test_what_nobody_wants_is_the_first_owners_who_gave_it(world: World, market: Market) -> None:
    """As it came: the first owner has given native tokens, the second wrapped ones."""
    stranger = world.stranger.address
    theirs = await world.a_delta_order(owner=stranger, beneficiary=stranger, src_token=NATIVE)
    await market.deposit(theirs, ONE, world.stranger)
    before = await world.balance(NATIVE, world.stranger)
    sale = await world.a_delta_order()
    first, second = (market.agent_steps(2_450 * USDC, given=9 * ONE // 10) for _ in "ab")
    crossed = await market.cross(
        market.crossing(theirs, 2_450 * USDC, *first, traded=9 * ONE // 10),
        market.crossing(sale, 2_450 * USDC, *second, traded=9 * ONE // 10, agent="ann"),
    )
    assert crossed.outcome.spent == (ONE - ONE // 5, ONE)
    assert await world.balance(NATIVE, world.stranger) == before + ONE // 5
    assert await world.balance(world.weth, world.user) == 9 * ONE


async def test_a_rest_goes_back_to_its_giver_who_is_not_the_first(world: World, market: Market) -> None:
    """The first order gives another token."""
    await world.give(world.stranger, world.dai, 7, world.at.delta)
    theirs = await world.a_delta_order(
        owner=world.stranger.address, beneficiary=world.stranger.address, src_token=world.dai,
        src_amount=7, dest_amount=0, expected_amount=0,
    )  # fmt: skip
    steps = market.agent_steps(PRICE, given=8 * ONE // 10)
    crossed = await market.cross(
        market.crossing(theirs, 0),
        market.crossing(await world.a_delta_order(), PRICE, *steps, traded=8 * ONE // 10),
    )
    assert crossed.outcome.spent == (0, 8 * ONE // 10)
    assert await world.balance(world.weth, world.user) == 10 * ONE - 8 * ONE // 10
    assert await world.balance(world.dai, world.stranger) == 7


async def test_a_purchase_receives_and_has_back_a_rest_too(world: World, market: Market) -> None:
    """The next order pays the purchase more than it buys, and its steps trade less than it gives."""
    purchase = await market.a_purchase()
    await world.give(world.stranger, world.usdc, 7, world.at.delta)
    theirs = await world.a_delta_order(
        owner=world.stranger.address, beneficiary=NOBODY, src_token=world.usdc, dest_token=world.dai,
        src_amount=7, dest_amount=0, expected_amount=0,
    )  # fmt: skip
    steps = market.agent_steps(PRICE, given=8 * ONE // 10)
    crossed = await market.cross(
        market.crossing(purchase, PRICE, *steps, src_given=ONE, traded=8 * ONE // 10),
        market.crossing(theirs, 0),
    )
    assert crossed.outcome.spent == (8 * ONE // 10, 7)
    assert crossed.outcome.received == (PRICE + 7, 0)
    assert await world.balance(world.weth, world.user) == 10 * ONE - 8 * ONE // 10


async def test_what_a_fill_leaves_of_a_traded_token_pays_the_next_order(world: World, market: Market) -> None:
    """Half of the source stays with the executor: the order that wants it gets it, not its giver."""
    sale = await world.a_delta_order()
    counter = await market.a_counter_order(src_amount=PRICE // 2, dest_amount=ONE // 2, expected_amount=0)
    quote = world.a_firm_quote(maker_amount=PRICE // 2, taker_amount=ONE // 2)
    half = world.fill_step(quote, taker_amount=ONE // 2)
    crossed = await market.cross(
        market.crossing(sale, PRICE, half, traded=ONE, leftovers=(world.weth,)),
        market.crossing(counter, ONE // 2),
    )
    assert crossed.outcome.spent == (ONE, PRICE // 2)
    assert await world.balance(world.weth, world.user) == 9 * ONE
    assert await world.balance(world.weth, world.taker) == ONE // 2


async def test_what_steps_leave_between_hops_is_their_owners(world: World, market: Market) -> None:
    """The owner receives leftovers of a token that no order gives or wants; other leftovers stay."""
    await world.give(world.stranger, world.dai, 2_490 * ONE, world.at.delta)
    partner = world.partner.address
    sale = await world.a_delta_order(
        beneficiary=partner, dest_token=world.dai, dest_amount=2_300 * ONE, expected_amount=0
    )
    counter = await world.a_delta_order(
        owner=world.stranger.address, beneficiary=NOBODY, src_token=world.dai, dest_token=world.weth,
        src_amount=2_490 * ONE, dest_amount=0, expected_amount=0,
    )  # fmt: skip
    steps = (
        market.to_agent(ONE // 2),
        market.from_agent(1_250 * USDC, to=world.at.executor),
        market.from_agent(900 * ONE, world.dai),
    )
    leftovers = (world.usdc, world.weth, world.dai)
    settled = await market.cross(
        market.crossing(counter, ONE // 2),
        market.crossing(sale, 3_390 * ONE, *steps, traded=ONE // 2, leftovers=leftovers),
    )
    assert settled.outcome.received == (ONE // 2, 3_390 * ONE)
    assert await world.balance(world.usdc, world.user) == 1_250 * USDC
    assert await world.balance(world.weth, world.user) == 9 * ONE
    assert await world.balance(world.dai, partner) == 3_390 * ONE


async def test_what_lay_around_before_is_not_traded(world: World, market: Market) -> None:
    """The executor's earlier tokens go to the order that names them; Delta's stay and pay no order."""
    await world.mint(world.usdc, world.at.executor, 7)
    await world.mint(world.usdc, world.at.delta, 5 * USDC)
    await world.send(world.user, world.weth, calldata.transfer(world.at.delta, ONE))
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    half = world.fill_step(
        world.a_firm_quote(maker_amount=PRICE // 2, taker_amount=ONE // 2), taker_amount=ONE // 2
    )
    rest = market.crossing(counter, ONE // 2, amount=PRICE // 2, leftovers=(world.usdc,))
    refused = await market.refused_crossing(market.crossing(sale, PRICE + 1, half, traded=ONE // 2), rest)
    assert refused == f"Overdrawn(token 0x{world.usdc.hex()}, paid {PRICE + 1}, left {PRICE})"
    await market.cross(market.crossing(sale, PRICE, half, traded=ONE // 2), rest)
    assert await world.balance(world.usdc, world.taker) == 10_000 * USDC - PRICE // 2 + 7
    assert await world.balance(world.usdc, world.at.delta) == 5 * USDC
    assert await world.balance(world.usdc, world.at.executor) == 0


async def test_a_token_that_takes_a_fee_pays_what_has_arrived(world: World, market: Market) -> None:
    """1 % of each transfer: to Delta and to the beneficiary, whose minimum counts there."""
    odd = await world.new_token()
    await world.give(world.user, odd, 100 * ONE, world.at.delta)
    await world.send(world.owner, odd, selector("setTransferFee(uint256)") + uint_word(100))
    arriving = 98_010_000_000_000_000_000  # 0.99 ** 2
    sale = await world.a_delta_order(src_token=odd, src_amount=100 * ONE)
    too_much, counter = [
        await market.a_counter_order(dest_token=odd, dest_amount=minimum, expected_amount=0)
        for minimum in (arriving + 1, arriving)
    ]
    refused = await market.refused_crossing(market.crossing(sale, PRICE), market.crossing(too_much, 99 * ONE))
    assert refused == f"BelowMinimum(received {arriving}, minimum {arriving + 1})"
    refused = await market.refused_crossing(market.crossing(sale, PRICE), market.crossing(counter, 100 * ONE))
    assert refused == f"Overdrawn(token 0x{odd.hex()}, paid {100 * ONE}, left {99 * ONE})"
    settled = await market.cross(market.crossing(sale, PRICE), market.crossing(counter, 99 * ONE))
    assert settled.outcome.received == (PRICE, arriving)


async def test_a_purchase_with_a_fee_of_a_token_that_takes_one_has_no_part_in_what_lies_in_delta(
    world: World, market: Market
) -> None:
    """Less than it was to give arrives, so that nothing is left for its fee."""
    odd = await world.new_token()
    await world.give(world.user, odd, 200 * ONE, world.at.delta)
    await world.mint(odd, world.at.delta, 200 * ONE)
    await world.send(world.owner, odd, selector("setTransferFee(uint256)") + uint_word(100))
    purchase = await market.a_purchase(
        src_token=odd, src_amount=200 * ONE, expected_amount=0, partner_and_fee=200
    )
    counter = await market.a_counter_order(dest_token=odd, dest_amount=0, expected_amount=0)
    bought = market.crossing(purchase, PRICE, src_given=100 * ONE)
    refused = await market.refused_crossing(bought, market.crossing(counter, 100 * ONE))
    assert refused == "Panic(17): overflow"


async def test_an_order_that_is_signed_by_a_call(world: World, market: Market) -> None:
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    unsigned = market.crossing(sale, PRICE, signature=b"")
    other = market.crossing(counter, ONE)
    assert await market.refused_crossing(unsigned, other) == "InvalidSignature()"
    await world.send(world.user, world.at.delta, set_pre_signature(world.delta_hash(sale), is_signed=True))
    assert (await market.cross(unsigned, other)).outcome.received == (PRICE, ONE)
