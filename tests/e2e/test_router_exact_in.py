"""A user sells on the Router: over one hop or two, to several makers, with orders to fall back on."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts import calldata, owner_calldata, router_calldata
from cambist.codecs.contracts.contract_events import OrderFilled, Swapped, decode_event
from cambist.codecs.eip712_orders.rfq import RfqOrder
from support.chain.world import HOUR_S, MOST, NOBODY, ONE, USDC, World
from support.contracts.swapping import UNFILLED, Done, Venue, a_venue, a_wide_venue, step_failed, told


def _makers(done: Done) -> list[bytes]:
    events = [decode_event(log.topics, log.data) for log in done.receipt.logs]
    return [event.maker for event in events if isinstance(event, OrderFilled)]


async def _user_has(venue: Venue, *, weth: int, usdc: int = 0, dai: int = 0) -> None:
    world = venue.world
    held = [await world.balance(token, world.user) for token in (world.weth, world.usdc, world.dai)]
    assert held == [weth, usdc, dai]


async def test_one_hop_sells_to_a_firm_quote(world: World) -> None:
    venue = await a_venue(world)
    done = await venue.sell(venue.swap(venue.hop(venue.quote())))
    assert done.event == Swapped(
        sender=world.user.address,
        receiver=world.user.address,
        src_token=world.weth,
        dest_token=world.usdc,
        spent=ONE,
        received=2_500 * USDC,
        fee=0,
        share=0,
    )
    await _user_has(venue, weth=9 * ONE, usdc=2_500 * USDC)
    assert await world.balance(world.weth, world.maker) == ONE
    assert await world.balance(world.usdc, world.maker) == 97_500 * USDC
    assert done.receipt.gas_used < 300_000


async def test_two_hops_sell_on_what_the_first_brought(world: World) -> None:
    venue = await a_wide_venue(world)
    swap = venue.swap(
        venue.hop(venue.quote()),
        venue.hop(venue.second_quote()),
        dest_token=world.dai,
        dest_amount=2_490 * ONE,
    )
    done = await venue.sell(swap)
    assert (done.event.spent, done.event.received) == (ONE, 2_490 * ONE)
    await _user_has(venue, weth=9 * ONE, dai=2_490 * ONE)
    assert await world.balance(world.usdc, world.maker) == 100_000 * USDC


async def test_several_makers_share_a_hop(world: World) -> None:
    venue = await a_wide_venue(world)
    part = {"maker_amount": 1_000 * USDC, "taker_amount": 4 * ONE // 10}
    rest = {"maker_amount": 1_510 * USDC, "taker_amount": 6 * ONE // 10, "maker": venue.rival.address}
    done = await venue.sell(venue.swap(venue.hop(venue.quote(**part), venue.quote(**rest))))
    assert _makers(done) == [world.maker.address, venue.rival.address]
    await _user_has(venue, weth=9 * ONE, usdc=2_510 * USDC)
    assert await world.balance(world.weth, venue.rival) == 6 * ONE // 10


async def test_a_part_of_a_larger_order_is_filled(world: World) -> None:
    venue = await a_venue(world)
    large = venue.quote(maker_amount=25_000 * USDC, taker_amount=10 * ONE)
    await venue.sell(venue.swap(venue.hop(large)))
    await _user_has(venue, weth=9 * ONE, usdc=2_500 * USDC)
    kept = await world.ask(world.at.rfq, calldata.remaining(world.maker.address, world.rfq_hash(large)))
    assert kept == 22_500 * USDC + 1


async def _without_balance(venue: Venue, order: RfqOrder) -> None:
    world = venue.world
    usdc = await world.balance(world.usdc, world.maker)
    await world.send(world.maker, world.usdc, calldata.transfer(world.stranger.address, usdc))


async def _without_allowance(venue: Venue, order: RfqOrder) -> None:
    await venue.world.approve(venue.world.maker, venue.world.usdc, venue.world.at.rfq, 0)


async def _expired(venue: Venue, order: RfqOrder) -> None:
    await venue.world.pass_time(61)


async def _cancelled(venue: Venue, order: RfqOrder) -> None:
    world = venue.world
    await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(order)))


FAILURES = (_without_balance, _without_allowance, _expired, _cancelled)


async def test_the_next_order_takes_over_where_one_cannot_be_filled(world: World) -> None:
    venue = await a_wide_venue(world)
    for fail in FAILURES:
        snapshot = await world.chain.snapshot()
        best = venue.quote(expiry=await world.now_s() + 60)
        fallback = venue.quote(maker=venue.rival.address, maker_amount=2_450 * USDC)
        swap = venue.swap(venue.hop(best, fallback))
        await fail(venue, best)
        before = await venue.state()
        alone = msgspec.structs.replace(swap, hops=(venue.hop(best),))
        assert await venue.refused_sale(alone) == step_failed(), fail
        assert await venue.state() == before
        done = await venue.sell(swap)
        assert _makers(done) == [venue.rival.address]
        await _user_has(venue, weth=9 * ONE, usdc=2_450 * USDC)
        await world.chain.restore(snapshot)


async def test_a_forged_quote_is_passed_over(world: World) -> None:
    venue = await a_venue(world)
    forged = world.info(venue.quote(maker_amount=9_000 * USDC), world.stranger)
    done = await venue.sell(venue.swap(venue.hop(forged, venue.quote())))
    assert done.event.received == 2_500 * USDC


async def test_the_second_hop_falls_back_too_and_names_itself_when_it_cannot(world: World) -> None:
    venue = await a_wide_venue(world)
    gone = venue.second_quote(expiry=1)
    wanted = {"dest_token": world.dai, "dest_amount": 2_400 * ONE}
    first = venue.hop(venue.quote())
    refused = venue.swap(first, venue.hop(gone), **wanted)
    assert await venue.refused_sale(refused) == step_failed(UNFILLED, step=1)
    rival = venue.second_quote(maker=venue.rival.address, maker_amount=2_480 * ONE)
    done = await venue.sell(venue.swap(first, venue.hop(gone, rival), **wanted))
    assert done.event.received == 2_480 * ONE


async def test_less_than_the_minimum_is_refused(world: World) -> None:
    venue = await a_venue(world)
    hop = venue.hop(venue.quote())
    assert await venue.refused_sale(venue.swap(hop, dest_amount=2_500 * USDC + 1)) == "INSUFFICIENT_OUTPUT"
    done = await venue.sell(venue.swap(hop, dest_amount=2_500 * USDC))
    assert done.event.received == 2_500 * USDC


async def test_the_minimum_holds_after_the_fee(world: World) -> None:
    venue = await a_venue(world)
    terms = int.from_bytes(world.partner.address, "big") << 96 | 100
    swap = venue.swap(venue.hop(venue.quote()), partner_and_fee=terms, dest_amount=2_475 * USDC)
    more = msgspec.structs.replace(swap, dest_amount=2_475 * USDC + 1)
    assert await venue.refused_sale(more) == "INSUFFICIENT_OUTPUT"
    assert (await venue.sell(swap)).event.received == 2_475 * USDC


async def test_what_brings_nothing_is_refused_even_without_a_minimum(world: World) -> None:
    venue = await a_wide_venue(world)
    elsewhere = venue.hop(venue.second_quote())  # spends USDC, of which there is none
    assert await venue.refused_sale(venue.swap(elsewhere, dest_amount=0)) == "INSUFFICIENT_OUTPUT"


@pytest.mark.one_chain
async def test_a_swap_ends_with_its_deadline(world: World) -> None:
    venue = await a_venue(world)
    swap = venue.swap(venue.hop(venue.quote()))
    await world.chain.set_time(venue.deadline + 1)
    await world.chain.mine()
    assert await venue.refused_sale(swap) == "DEADLINE_PASSED"
    last = await world.now_s() + HOUR_S
    await world.chain.set_time(last)
    await world.chain.set_automine(on=False)
    signed = await world.signed_tx(
        world.user,
        world.at.router,
        router_calldata.swap_exact_in(msgspec.structs.replace(swap, deadline=last)),
    )
    tx_hash = await world.chain.send_raw(signed.raw)
    await world.chain.mine()
    receipt = await world.chain.receipt(tx_hash)
    assert receipt is not None
    assert receipt.succeeded
    assert await world.now_s() == last


async def test_a_purchase_ends_with_its_deadline(world: World) -> None:
    venue = await a_venue(world)
    late = venue.purchase(venue.hop(venue.quote(), maker_amount=2_500 * USDC), deadline=1)
    assert await venue.refused_purchase(late) == "DEADLINE_PASSED"


async def test_what_is_bought_goes_to_the_receiver(world: World) -> None:
    venue = await a_venue(world)
    done = await venue.sell(venue.swap(venue.hop(venue.quote()), receiver=world.stranger.address))
    assert (done.event.sender, done.event.receiver) == (world.user.address, world.stranger.address)
    assert await world.balance(world.usdc, world.stranger) == 2_500 * USDC
    await _user_has(venue, weth=9 * ONE)


async def test_the_user_of_a_firm_quote_must_be_the_caller(world: World) -> None:
    venue = await a_venue(world)
    await world.give(world.stranger, world.weth, ONE, world.at.router)
    quote = venue.quote()
    swap = venue.swap(venue.hop(quote))
    refusal = told("NotTheUsers", nonceAndMeta=quote.nonce_and_meta)
    assert await venue.refused_sale(swap, world.stranger) == refusal
    open_too = venue.swap(venue.hop(world.an_rfq_order(), quote))
    assert await venue.refused_sale(open_too, world.stranger) == refusal
    assert (await venue.sell(swap)).event.received == 2_500 * USDC


async def test_an_open_order_is_anyones(world: World) -> None:
    venue = await a_venue(world)
    await world.give(world.stranger, world.weth, ONE, world.at.router)
    order = world.an_rfq_order(nonce_and_meta=int.from_bytes(world.user.address, "big"))
    assert order.taker == NOBODY
    done = await venue.sell(venue.swap(venue.hop(order)), world.stranger)
    assert done.event.received == 2_500 * USDC


async def test_an_order_for_another_taker_is_passed_over(world: World) -> None:
    venue = await a_venue(world)
    for taker in (world.user.address, world.at.router, world.at.delta):
        other = world.an_rfq_order(taker=taker)
        assert await venue.refused_sale(venue.swap(venue.hop(other))) == step_failed()
    fallback = venue.swap(venue.hop(world.an_rfq_order(taker=world.at.router), venue.quote()))
    assert (await venue.sell(fallback)).event.received == 2_500 * USDC


async def test_a_hop_has_orders_of_one_pair(world: World) -> None:
    venue = await a_wide_venue(world)
    for other in (
        venue.quote(maker_asset=world.dai),
        venue.quote(taker_asset=world.dai),
    ):
        assert await venue.refused_sale(venue.swap(venue.hop(venue.quote(), other))) == "MixedPair()"


async def test_a_swap_has_hops_and_a_hop_orders(world: World) -> None:
    venue = await a_venue(world)
    assert await venue.refused_sale(venue.swap(dest_amount=0)) == "INSUFFICIENT_OUTPUT"
    assert await venue.refused_sale(venue.swap(venue.hop(), dest_amount=0)) == "NoOrders()"
    assert await venue.refused_sale(venue.swap(venue.hop(venue.quote()), venue.hop())) == "NoOrders()"
    assert await venue.refused_purchase(venue.purchase(venue.hop(maker_amount=1))) == "NoOrders()"


async def test_a_swap_with_several_faults_is_refused_for_the_first(world: World) -> None:
    """Its deadline, its tokens, a pause, the cap, its hops, the native tokens that come with it."""
    venue = await a_venue(world)
    set_paused, set_cap = owner_calldata.set_paused, owner_calldata.set_cap
    for call in (set_paused(paused=True), set_cap(world.weth, ONE)):
        await world.send(world.owner, world.at.router, call)
    hop = venue.hop(venue.quote(), taker_amount=1, maker_amount=1)
    swap = venue.swap(hop, venue.hop(), deadline=1, dest_token=world.weth, src_amount=ONE + 1)
    exceeded = told("CapExceeded", token=world.weth, amount=ONE + 1, left=ONE)
    mended: tuple[tuple[str, dict[str, Any]], ...] = (
        ("DEADLINE_PASSED", {"deadline": venue.deadline}),
        ("SAME_TOKEN", {"dest_token": world.usdc}),
        ("Paused()", {}),
        (exceeded, {"src_amount": ONE}),
        ("BOTH_AMOUNTS", {"hops": (venue.hop(), hop)}),
        ("NoOrders()", {"hops": (venue.hop(venue.quote()),)}),
        ("WRONG_VALUE", {}),
    )
    for reason, changed in mended:
        assert await venue.refused_sale(swap, value_wei=1) == reason
        assert await venue.refused_purchase(swap, value_wei=1) == reason
        if reason == "Paused()":
            await world.send(world.owner, world.at.router, set_paused(paused=False))
        swap = msgspec.structs.replace(swap, **changed)
    await venue.sell(swap)


async def test_a_token_is_not_swapped_for_itself(world: World) -> None:
    venue = await a_venue(world)
    same = venue.swap(venue.hop(venue.quote()), dest_token=world.weth)
    assert await venue.refused_sale(same) == "SAME_TOKEN"
    assert await venue.refused_purchase(same) == "SAME_TOKEN"


async def test_nothing_is_taken_without_allowance_or_balance(world: World) -> None:
    venue = await a_venue(world)
    swap = venue.swap(venue.hop(venue.quote()))
    await world.approve(world.user, world.weth, world.at.router, ONE - 1)
    assert await venue.refused_sale(swap) == "TRANSFER_FROM_FAILED"
    assert await venue.refused_purchase(swap) == "TRANSFER_FROM_FAILED"
    await world.approve(world.user, world.weth, world.at.router, MOST)
    await world.send(world.user, world.weth, calldata.transfer(world.stranger.address, 9 * ONE + 1))
    assert await venue.refused_sale(swap) == "TRANSFER_FROM_FAILED"


async def test_a_sale_that_buys_a_fixed_amount_gives_the_rest_back(world: World) -> None:
    venue = await a_venue(world)
    await venue.sell(
        venue.swap(venue.hop(venue.quote(), maker_amount=1_250 * USDC), dest_amount=1_250 * USDC)
    )
    await _user_has(venue, weth=9 * ONE + ONE // 2, usdc=1_250 * USDC)


async def test_what_a_later_hop_leaves_of_a_sale_goes_to_the_caller(world: World) -> None:
    venue = await a_wide_venue(world)
    second = venue.hop(venue.second_quote(), maker_amount=1_245 * ONE)
    swap = venue.swap(
        venue.hop(venue.quote()),
        second,
        dest_token=world.dai,
        dest_amount=1_245 * ONE,
        receiver=world.stranger.address,
    )
    await venue.sell(swap)
    await _user_has(venue, weth=9 * ONE, usdc=1_250 * USDC)
    assert await world.balance(world.dai, world.stranger) == 1_245 * ONE
