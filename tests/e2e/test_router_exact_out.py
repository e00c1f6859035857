"""A user buys on the Router: a fixed amount, for no more than a maximum; the rest stays the user's."""

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.contract_events import Transfer, decode_event
from support.chain.world import NATIVE, NOBODY, ONE, USDC, World
from support.contracts.swapping import UNFILLED, Venue, a_venue, a_wide_venue, step_failed, told

EXACT = 2_500 * USDC


async def _user_has(venue: Venue, *, weth: int, usdc: int = 0, dai: int = 0) -> None:
    world = venue.world
    held = [await world.balance(token, world.user) for token in (world.weth, world.usdc, world.dai)]
    assert held == [weth, usdc, dai]


async def test_one_hop_buys_exactly_and_gives_the_rest_back(world: World) -> None:
    venue = await a_venue(world)
    done = await venue.buy(venue.purchase(venue.hop(venue.quote(), maker_amount=EXACT)))
    assert (done.event.spent, done.event.received) == (ONE, EXACT)
    await _user_has(venue, weth=9 * ONE, usdc=EXACT)


async def test_a_part_of_an_order_is_bought_rounded_up_for_the_maker(world: World) -> None:
    venue = await a_venue(world)
    odd = venue.quote(maker_amount=3, taker_amount=ONE)
    done = await venue.buy(venue.purchase(venue.hop(odd, maker_amount=2), dest_amount=2))
    spent = 2 * ONE // 3 + 1
    assert (done.event.spent, done.event.received) == (spent, 2)
    await _user_has(venue, weth=10 * ONE - spent, usdc=2)


async def test_of_a_single_unit_the_rest_of_the_source_comes_back_too(world: World) -> None:
    venue = await a_venue(world)
    odd = venue.quote(maker_amount=3, taker_amount=ONE)
    done = await venue.buy(venue.purchase(venue.hop(odd, maker_amount=1), dest_amount=1))
    spent = ONE // 3 + 1
    assert (done.event.spent, done.event.received) == (spent, 1)
    await _user_has(venue, weth=10 * ONE - spent, usdc=1)


async def test_two_hops_buy_exactly(world: World) -> None:
    venue = await a_wide_venue(world)
    bought = 1_245 * ONE
    swap = venue.purchase(
        venue.hop(venue.quote(), maker_amount=1_250 * USDC),
        venue.hop(venue.second_quote(), maker_amount=bought),
        dest_token=world.dai,
        dest_amount=bought,
    )
    done = await venue.buy(swap)
    assert (done.event.spent, done.event.received) == (ONE // 2, bought)
    await _user_has(venue, weth=10 * ONE - ONE // 2, dai=bought)


async def test_what_is_left_between_hops_goes_to_the_caller(world: World) -> None:
    venue = await a_wide_venue(world)
    bought = 1_245 * ONE
    swap = venue.purchase(
        venue.hop(venue.quote(), maker_amount=1_300 * USDC),
        venue.hop(venue.second_quote(), maker_amount=bought),
        dest_token=world.dai,
        dest_amount=bought,
        receiver=world.stranger.address,
    )
    done = await venue.buy(swap)
    spent = 52 * ONE // 100
    assert (done.event.spent, done.event.received) == (spent, bought)
    await _user_has(venue, weth=10 * ONE - spent, usdc=50 * USDC)
    assert await world.balance(world.dai, world.stranger) == bought
    assert await world.balance(world.usdc, world.stranger) == 0


async def test_a_first_hop_that_sells_all_leaves_nothing_behind(world: World) -> None:
    venue = await a_wide_venue(world)
    swap = venue.purchase(
        venue.hop(venue.quote()),
        venue.hop(venue.second_quote(), maker_amount=1_245 * ONE),
        src_amount=ONE,
        dest_token=world.dai,
        dest_amount=1_245 * ONE,
    )
    done = await venue.buy(swap)
    assert done.event.spent == ONE
    await _user_has(venue, weth=9 * ONE, usdc=1_250 * USDC, dai=1_245 * ONE)


async def test_several_makers_and_a_fallback_serve_a_purchase(world: World) -> None:
    venue = await a_wide_venue(world)
    small = venue.quote(maker_amount=1_000 * USDC, taker_amount=4 * ONE // 10)
    gone = venue.quote(expiry=1)
    rival = venue.quote(maker=venue.rival.address, maker_amount=10_000 * USDC, taker_amount=4 * ONE)
    done = await venue.buy(venue.purchase(venue.hop(small, gone, rival, maker_amount=EXACT)))
    assert (done.event.spent, done.event.received) == (ONE, EXACT)
    assert await world.balance(world.weth, venue.rival) == 6 * ONE // 10


async def test_the_maximum_is_never_exceeded(world: World) -> None:
    venue = await a_venue(world)
    hop = venue.hop(venue.quote(), maker_amount=EXACT)
    assert await venue.refused_purchase(venue.purchase(hop, src_amount=ONE - 1)) == step_failed()
    done = await venue.buy(venue.purchase(hop, src_amount=ONE))
    await _user_has(venue, weth=9 * ONE, usdc=EXACT)
    moved = [decode_event(log.topics, log.data) for log in done.receipt.logs if log.address == world.weth]
    back = [event for event in moved if isinstance(event, Transfer) and event.receiver == world.user.address]
    assert back == []  # no rest, and no transfer


async def test_the_fee_counts_against_the_maximum(world: World) -> None:
    venue = await a_venue(world)
    terms = int.from_bytes(world.partner.address, "big") << 96 | 100
    hop = venue.hop(venue.quote(), maker_amount=EXACT)
    total = ONE + ONE // 100
    short = venue.purchase(hop, src_amount=total - 1, partner_and_fee=terms)
    assert await venue.refused_purchase(short) == told("AboveMaximum", spent=total, maximum=total - 1)
    done = await venue.buy(venue.purchase(hop, src_amount=total, partner_and_fee=terms))
    assert (done.event.spent, done.event.fee) == (total, ONE // 100)


async def test_less_than_wanted_is_refused(world: World) -> None:
    venue = await a_venue(world)
    hop = venue.hop(venue.quote(), maker_amount=EXACT - 1)
    assert await venue.refused_purchase(venue.purchase(hop)) == "INSUFFICIENT_OUTPUT"
    more = venue.hop(venue.quote(), maker_amount=EXACT + 1)
    assert await venue.refused_purchase(venue.purchase(more)) == step_failed()


async def test_a_second_hop_without_enough_of_the_first_is_refused(world: World) -> None:
    venue = await a_wide_venue(world)
    swap = venue.purchase(
        venue.hop(venue.quote(), maker_amount=1_249 * USDC),
        venue.hop(venue.second_quote(), maker_amount=1_245 * ONE),
        dest_token=world.dai,
        dest_amount=1_245 * ONE,
    )
    assert await venue.refused_purchase(swap) == step_failed(UNFILLED, step=1)


async def test_a_firm_quote_of_anothers_buys_nothing(world: World) -> None:
    venue = await a_venue(world)
    await world.give(world.stranger, world.weth, 2 * ONE, world.at.router)
    quote = venue.quote()
    swap = venue.purchase(venue.hop(quote, maker_amount=EXACT))
    refusal = told("NotTheUsers", nonceAndMeta=quote.nonce_and_meta)
    assert await venue.refused_purchase(swap, world.stranger) == refusal


async def test_native_tokens_buy_and_the_rest_comes_back_unwrapped(world: World) -> None:
    venue = await a_venue(world)
    swap = venue.purchase(venue.hop(venue.quote(), maker_amount=EXACT), src_token=NATIVE)
    before = await world.chain.balance(world.user.address)
    done = await venue.buy(swap, value_wei=swap.src_amount)
    gas_wei = done.receipt.gas_used * done.receipt.gas_price_wei
    assert await world.chain.balance(world.user.address) == before - ONE - gas_wei
    assert (done.event.src_token, done.event.spent) == (NATIVE, ONE)
    await _user_has(venue, weth=10 * ONE, usdc=EXACT)


async def test_native_tokens_are_bought(world: World) -> None:
    venue = await a_venue(world)
    await world.give(world.maker, world.weth, ONE, world.at.rfq)
    await world.give(world.user, world.usdc, 2_600 * USDC, world.at.router)
    quote = venue.quote(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=2_500 * USDC
    )
    swap = venue.purchase(
        venue.hop(quote, maker_amount=ONE),
        src_token=world.usdc,
        dest_token=NATIVE,
        src_amount=2_600 * USDC,
        dest_amount=ONE,
        receiver=b"\x77" * 20,
    )
    await venue.buy(swap)
    assert await world.chain.balance(b"\x77" * 20) == ONE
    await _user_has(venue, weth=10 * ONE, usdc=100 * USDC)


async def test_a_used_order_is_used_up_for_purchases_too(world: World) -> None:
    venue = await a_venue(world)
    quote = venue.quote()
    swap = venue.purchase(venue.hop(quote, maker_amount=EXACT))
    await venue.buy(swap)
    assert await venue.refused_purchase(swap) == step_failed()
    kept = await world.ask(world.at.rfq, calldata.remaining(world.maker.address, world.rfq_hash(quote)))
    assert kept == 1
    assert quote.taker != NOBODY
