"""Odd tokens on the Router: swaps of tokens without return values; refusals of transfer fees."""

import msgspec

from cambist.codecs.contracts import owner_calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.router_calldata import RouterSwap
from support.chain.world import ONE, USDC, World
from support.contracts.swapping import Venue, a_venue, a_wide_venue, step_failed

SET_TRANSFER_FEE = selector("setTransferFee(uint256)")
SET_BLOCKED = selector("setBlocked(address,bool)")
PAYS_DIRECTLY = 1 << 10


async def _both_ways(world: World, name: str) -> tuple[Venue, bytes, RouterSwap, RouterSwap]:
    """A new token of that kind, and swaps from and to it at one for one."""
    venue = await a_venue(world)
    odd = await world.new_token(name)
    for owner, token, spender in (
        (world.user, odd, world.at.router),
        (world.maker, odd, world.at.rfq),
        (world.maker, world.weth, world.at.rfq),
    ):
        await world.give(owner, token, 2 * ONE, spender)
    sold = venue.quote(maker_asset=world.weth, taker_asset=odd, maker_amount=ONE, taker_amount=ONE)
    bought = venue.quote(maker_asset=odd, taker_asset=world.weth, maker_amount=ONE, taker_amount=ONE)
    selling = venue.swap(venue.hop(sold), src_token=odd, dest_token=world.weth, dest_amount=ONE // 2)
    buying = venue.swap(venue.hop(bought), dest_token=odd, dest_amount=ONE // 2)
    return venue, odd, selling, buying


async def _block(world: World, token: bytes, account: bytes) -> None:
    await world.send(world.stranger, token, SET_BLOCKED + address_word(account) + uint_word(1))


async def test_a_token_that_answers_nothing_is_sold_and_bought(world: World) -> None:
    venue, odd, selling, buying = await _both_ways(world, "DevTokenWithoutReturn")
    terms = int.from_bytes(world.partner.address, "big") << 96 | 100
    assert (await venue.sell(selling)).event.received == ONE
    done = await venue.sell(msgspec.structs.replace(buying, partner_and_fee=terms))
    assert done.event.received == 99 * ONE // 100
    assert await world.balance(odd, world.user) == ONE + 99 * ONE // 100
    assert await venue.claim(odd) == ONE // 100


async def test_a_token_that_takes_a_fee_is_refused_either_way(world: World) -> None:
    venue, odd, selling, buying = await _both_ways(world, "DevToken")
    await world.send(world.stranger, odd, SET_TRANSFER_FEE + uint_word(100))
    assert await venue.refused_sale(selling) == step_failed()
    assert await venue.refused_sale(buying) == step_failed()
    purchase = msgspec.structs.replace(
        buying, hops=(msgspec.structs.replace(buying.hops[0], maker_amount=ONE),), dest_amount=ONE
    )
    assert await venue.refused_purchase(purchase) == step_failed()
    assert await world.balance(odd, world.user) == 2 * ONE


async def test_a_token_that_rounds_is_bought_for_what_arrives(world: World) -> None:
    """A unit is missing of what the maker sends, and another one of what the Router sends."""
    venue, odd, _, buying = await _both_ways(world, "DevToken")
    await world.send(world.stranger, odd, selector("setRounding(uint256)") + uint_word(1))
    before = await world.balance(odd, world.user)
    more = msgspec.structs.replace(buying, dest_amount=ONE - 1)
    assert await venue.refused_sale(more) == "INSUFFICIENT_OUTPUT"
    done = await venue.sell(msgspec.structs.replace(buying, dest_amount=ONE - 2))
    assert (done.event.spent, done.event.received) == (ONE, ONE - 2)
    assert await world.balance(odd, world.user) == before + ONE - 2


async def test_what_is_no_contract_is_no_token(world: World) -> None:
    venue = await a_venue(world)
    nobody = b"\x66" * 20
    await world.send(world.owner, world.at.router, owner_calldata.set_cap(nobody, ONE))
    hop = venue.hop(venue.quote(taker_asset=nobody))
    assert await venue.refused_sale(venue.swap(hop, src_token=nobody)) == ""
    assert await venue.refused_sale(venue.swap(venue.hop(venue.quote()), dest_token=nobody)) == ""


async def test_a_blocked_receiver_stops_the_swap(world: World) -> None:
    venue = await a_venue(world)
    await _block(world, world.usdc, world.taker.address)
    swap = venue.swap(venue.hop(venue.quote()), receiver=world.taker.address)
    assert await venue.refused_sale(swap) == "TRANSFER_FAILED"
    bought = venue.hop(venue.quote(), maker_amount=2_500 * USDC)
    purchase = venue.purchase(bought, receiver=world.taker.address)
    assert await venue.refused_purchase(purchase) == "TRANSFER_FAILED"
    # The Router does not even send too small an amount.
    more = 2_500 * USDC + 1
    short = msgspec.structs.replace(swap, dest_amount=more)
    assert await venue.refused_sale(short) == "INSUFFICIENT_OUTPUT"
    short = msgspec.structs.replace(purchase, dest_amount=more)
    assert await venue.refused_purchase(short) == "INSUFFICIENT_OUTPUT"


async def test_a_blocked_maker_is_passed_over(world: World) -> None:
    venue = await a_wide_venue(world)
    await _block(world, world.usdc, world.maker.address)
    rival = venue.quote(maker=venue.rival.address, maker_amount=2_450 * USDC)
    done = await venue.sell(venue.swap(venue.hop(venue.quote(), rival)))
    assert done.event.received == 2_450 * USDC


async def test_a_blocked_partner_stops_nothing_unless_it_is_paid_at_once(world: World) -> None:
    venue = await a_venue(world)
    await _block(world, world.usdc, world.partner.address)
    terms = int.from_bytes(world.partner.address, "big") << 96 | 100
    swap = venue.swap(venue.hop(venue.quote()), partner_and_fee=terms | PAYS_DIRECTLY)
    assert await venue.refused_sale(swap) == "TRANSFER_FAILED"
    done = await venue.sell(msgspec.structs.replace(swap, partner_and_fee=terms))
    assert done.event.fee == 25 * USDC
    assert await venue.owed(world.partner.address, world.usdc) == 25 * USDC
