"""A permit instead of an approval: EIP-2612, DAI's, the three of Permit2. Showing it first does no harm."""

import msgspec

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector
from cambist.codecs.contracts.router_calldata import RouterSwap
from cambist.crypto.secp256k1 import SigningKey
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.permit2 import (
    ALLOWED,
    allow,
    allowance_permit,
    permit2_domain,
    shown_allowance,
    transfer_permit,
)
from support.contracts.permits import dai_permit, eip2612_permit, shown, token_domain
from support.contracts.swapping import Venue, a_venue

SOLD = 2_500 * USDC


async def _a_usdc_sale(world: World) -> tuple[Venue, RouterSwap]:
    """The user has USDC and has allowed the Router none of it."""
    venue = await a_venue(world)
    await world.give(world.maker, world.weth, 5 * ONE, world.at.rfq)
    await world.mint(world.usdc, world.user, 2 * SOLD)
    quote = venue.quote(maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=SOLD)
    swap = venue.swap(
        venue.hop(quote), src_token=world.usdc, dest_token=world.weth, src_amount=SOLD, dest_amount=ONE
    )
    assert await venue.refused_sale(swap) == "TRANSFER_FROM_FAILED"
    return venue, swap


def _eip2612(venue: Venue, value: int = SOLD, deadline: int = 0, nonce: int = 0) -> bytes:
    world = venue.world
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    deadline = deadline or venue.deadline
    return eip2612_permit(domain, world.user, world.at.router, value, nonce=nonce, deadline=deadline)


def _dai(venue: Venue, *, allowed: bool = True) -> bytes:
    world = venue.world
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    return dai_permit(domain, world.user, world.at.router, nonce=0, expiry=venue.deadline, allowed=allowed)


def _transfer(
    venue: Venue,
    *,
    key: SigningKey | None = None,
    spender: bytes = b"",
    token: bytes = b"",
    amount: int = SOLD,
    deadline: int = 0,
) -> bytes:
    """For the swap of this file unless something else is said."""
    world = venue.world
    return transfer_permit(
        permit2_domain(world.chain.chain_id, world.permit2),
        key or world.user,
        spender or world.at.router,
        token or world.usdc,
        amount,
        nonce=0,
        deadline=deadline or venue.deadline,
    )


def _allowance(venue: Venue, nonce: int = 0) -> bytes:
    world = venue.world
    return allowance_permit(
        permit2_domain(world.chain.chain_id, world.permit2),
        world.user,
        world.at.router,
        world.usdc,
        SOLD,
        expiration=venue.deadline + 3_600,
        nonce=nonce,
        deadline=venue.deadline,
    )


def _with(swap: RouterSwap, permit: bytes) -> RouterSwap:
    return msgspec.structs.replace(swap, permit=permit)


async def _allowed(world: World) -> int:
    """What the Router may take of the user's USDC."""
    return await world.ask(world.usdc, calldata.allowance(world.user.address, world.at.router))


async def _sold(venue: Venue, swap: RouterSwap) -> None:
    done = await venue.sell(swap)
    assert (done.event.spent, done.event.received) == (SOLD, ONE)
    assert await venue.world.balance(venue.world.usdc, venue.world.user) == SOLD


async def test_an_eip2612_permit_allows(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await _sold(venue, _with(swap, _eip2612(venue)))


async def test_an_eip2612_permit_that_somebody_showed_first_allows_all_the_same(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    permit = _eip2612(venue)
    await world.send(world.stranger, world.usdc, shown(permit))
    await _sold(venue, _with(swap, permit))


async def test_an_eip2612_permit_in_a_strangers_swap_allows_the_user_all_the_same(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await world.give(world.stranger, world.usdc, SOLD, world.at.router)
    order = world.an_rfq_order(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=SOLD
    )
    permit = _eip2612(venue)
    theirs = msgspec.structs.replace(swap, permit=permit, hops=(venue.hop(order),))
    await venue.sell(theirs, world.stranger)
    assert await world.balance(world.usdc, world.user) == 2 * SOLD  # the stranger paid
    await _sold(venue, _with(swap, permit))


async def test_an_eip2612_permit_of_too_little_or_out_of_time_does_not_allow(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    for permit in (_eip2612(venue, value=SOLD - 1), _eip2612(venue, deadline=1), _eip2612(venue, nonce=1)):
        assert await venue.refused_sale(_with(swap, permit)) == "TRANSFER_FROM_FAILED"
        assert await venue.refused_purchase(_with(swap, permit)) == "TRANSFER_FROM_FAILED"


async def test_a_dai_permit_allows_first_or_second(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    snapshot = await world.chain.snapshot()
    await _sold(venue, _with(swap, _dai(venue)))
    await world.chain.restore(snapshot)
    await world.send(world.stranger, world.usdc, shown(_dai(venue)))
    await _sold(venue, _with(swap, _dai(venue)))


async def test_a_permit2_transfer_is_taken_once(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await world.approve(world.user, world.usdc, world.permit2)
    permit = _transfer(venue)
    await _sold(venue, _with(swap, permit))
    assert await venue.refused_sale(_with(swap, permit)) == "TRANSFER_FROM_FAILED"


async def test_a_permit2_transfer_is_the_signers_and_for_its_terms(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await world.approve(world.user, world.usdc, world.permit2)
    await world.give(world.stranger, world.usdc, SOLD, world.permit2)
    good = _transfer(venue)
    order = world.an_rfq_order(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=SOLD
    )
    stolen = msgspec.structs.replace(swap, permit=good, hops=(venue.hop(order),))
    assert await venue.refused_sale(stolen, world.stranger) == "TRANSFER_FROM_FAILED"
    for bad in (
        _transfer(venue, spender=world.at.delta),
        _transfer(venue, amount=SOLD + 1),
        _transfer(venue, token=world.weth),
        _transfer(venue, deadline=venue.deadline + 1),
        _transfer(venue, key=world.stranger),
        good[:-1] + bytes([good[-1] ^ 1]),
    ):
        assert await venue.refused_sale(_with(swap, bad)) == "TRANSFER_FROM_FAILED"


async def test_a_permit2_allowance_allows_first_or_second(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await world.approve(world.user, world.usdc, world.permit2)
    permit = _allowance(venue)
    snapshot = await world.chain.snapshot()
    await _sold(venue, _with(swap, permit))
    await world.chain.restore(snapshot)
    first = shown_allowance(permit, world.user.address, world.at.router, world.usdc)
    await world.send(world.stranger, world.permit2, first)
    await _sold(venue, _with(swap, permit))
    fresh = venue.quote(maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=SOLD)
    again = msgspec.structs.replace(swap, hops=(venue.hop(fresh),))
    assert await venue.refused_sale(_with(again, permit)) == "TRANSFER_FROM_FAILED"
    assert (await venue.sell(_with(again, _allowance(venue, nonce=1)))).event.spent == SOLD


async def test_an_allowance_that_permit2_has_is_used(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await world.approve(world.user, world.usdc, world.permit2)
    assert await venue.refused_sale(_with(swap, ALLOWED)) == "TRANSFER_FROM_FAILED"
    granted = allow(world.usdc, world.at.router, SOLD, venue.deadline)
    await world.send(world.user, world.permit2, granted)
    await _sold(venue, _with(swap, ALLOWED))
    assert await venue.refused_sale(_with(swap, ALLOWED)) == "TRANSFER_FROM_FAILED"


async def test_permits_of_other_lengths_are_refused_even_with_an_allowance(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await world.approve(world.user, world.usdc, world.at.router, MOST)
    for length in (2, 32, 95, 97, 223, 225, 257):
        assert await venue.refused_sale(_with(swap, bytes(length))) == "TRANSFER_FROM_FAILED"


async def test_a_permit_for_no_more_than_the_allowance_leaves_the_allowance(world: World) -> None:
    """As OpenZeppelin's ERC20Permit has it, a permit sets the allowance; an unlimited one stays unlimited."""
    venue, swap = await _a_usdc_sale(world)
    (hop,) = swap.hops
    bought = msgspec.structs.replace(swap, hops=(msgspec.structs.replace(hop, maker_amount=ONE),))
    snapshot = await world.chain.snapshot()
    for allowed, left in ((MOST, MOST), (2 * SOLD, SOLD), (SOLD, 0)):
        for trade, whole in ((venue.sell, swap), (venue.buy, bought)):
            await world.approve(world.user, world.usdc, world.at.router, allowed)
            done = await trade(_with(whole, _eip2612(venue)))
            assert done.event.spent == SOLD
            assert await _allowed(world) == left
            await world.chain.restore(snapshot)
            snapshot = await world.chain.snapshot()


async def test_a_dai_permit_that_forbids_leaves_the_allowance(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    forbids = _dai(venue, allowed=False)
    await world.approve(world.user, world.usdc, world.at.router, SOLD - 1)
    assert await venue.refused_sale(_with(swap, forbids)) == "TRANSFER_FROM_FAILED"
    await world.approve(world.user, world.usdc, world.at.router, MOST)
    await _sold(venue, _with(swap, forbids))
    assert await _allowed(world) == MOST


async def test_a_permit2_allowance_for_no_more_than_there_is_leaves_the_allowance(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await world.approve(world.user, world.usdc, world.permit2)
    permit2_most = (1 << 160) - 1
    await world.send(
        world.user, world.permit2, allow(world.usdc, world.at.router, permit2_most, venue.deadline)
    )
    await _sold(venue, _with(swap, _allowance(venue)))
    question = selector("allowance(address,address,address)") + b"".join(
        address_word(account) for account in (world.user.address, world.usdc, world.at.router)
    )
    assert await world.ask(world.permit2, question) == permit2_most


async def test_a_permit2_allowance_counts_where_the_present_one_has_ended(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    await world.approve(world.user, world.usdc, world.permit2)
    ended = allow(world.usdc, world.at.router, (1 << 160) - 1, await world.now_s() + 10)
    await world.send(world.user, world.permit2, ended)
    await world.pass_time(11)
    await _sold(venue, _with(swap, _allowance(venue)))


async def test_a_permit_serves_a_purchase(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    (hop,) = swap.hops
    bought = msgspec.structs.replace(
        swap, permit=_eip2612(venue), hops=(msgspec.structs.replace(hop, maker_amount=ONE),)
    )
    done = await venue.buy(bought)
    assert (done.event.spent, done.event.received) == (SOLD, ONE)


async def test_amounts_beyond_permit2s_are_refused(world: World) -> None:
    venue, swap = await _a_usdc_sale(world)
    huge = msgspec.structs.replace(swap, src_amount=1 << 160, permit=ALLOWED)
    assert await venue.refused_sale(huge) == "TRANSFER_FROM_FAILED"
