"""Attacks on a user's swap: re-entry, tokens left behind, copied calldata, makers that waste gas."""

import secrets

import msgspec
import pytest

from cambist.codecs.contracts import calldata, owner_calldata
from cambist.codecs.contracts.abi import (
    Dynamic,
    address_word,
    bytes_tail,
    encode,
    selector,
    tuples_tail,
    uint_word,
)
from cambist.codecs.contracts.router_calldata import RouterSwap, claim, swap_exact_in, swap_exact_out
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.transactions import create2_address
from cambist.engine.chain.deploy.create2_factory import FACTORY
from cambist.engine.chain.deploy.deploy import create
from support.chain.evm_programs import assembled, deploys
from support.chain.world import MOST, NATIVE, ONE, USDC, World
from support.contracts.swapping import UNFILLED, Venue, a_venue, a_wide_venue, step_failed, told

SET_HOOK = selector("setHook(address,bytes)")
AGGREGATE = selector("aggregate3((address,bool,bytes)[])")
COLLECT = selector("collect(address,address)")
EXECUTE = selector("execute(address,(address,uint256,bytes)[])")
ACCEPTED = "0x1626ba7e" + 28 * "00"

# --- Re-entry -----------------------------------------------------------------------------------------


async def _hooked(venue: Venue, token: bytes, target: bytes, data: bytes) -> None:
    """Each transfer of the token makes a call, and fails if that does."""
    world = venue.world
    words = encode(address_word(target), bytes_tail(data))
    await world.send(world.stranger, token, SET_HOOK + words)


def _careless(target: bytes, data: bytes) -> bytes:
    """Calldata of a DevMulticall that makes a call and does not mind if it fails."""
    call = encode(address_word(target), uint_word(1), bytes_tail(data))
    return AGGREGATE + encode(tuples_tail([call]))


async def _odd_venue(world: World) -> tuple[Venue, bytes, RouterSwap, RouterSwap]:
    """A swap from and one to a token whose transfers may call anything; the maker has WETH and that token."""
    venue = await a_venue(world)
    odd = await world.new_token()
    await world.give(world.user, odd, ONE, world.at.router)
    await world.give(world.maker, odd, ONE, world.at.rfq)
    await world.give(world.maker, world.weth, ONE, world.at.rfq)
    sold = venue.quote(maker_asset=world.weth, taker_asset=odd, maker_amount=ONE, taker_amount=ONE)
    bought = venue.quote(maker_asset=odd, taker_asset=world.weth, maker_amount=ONE, taker_amount=ONE)
    selling = venue.swap(venue.hop(sold), src_token=odd, dest_token=world.weth, dest_amount=ONE)
    buying = venue.swap(venue.hop(bought), dest_token=odd, dest_amount=ONE)
    return venue, odd, selling, buying


def _entries(world: World, swap: RouterSwap) -> dict[str, tuple[bytes, bytes]]:
    """Calls of a hostile token in the middle of a swap."""
    at = world.at
    return {
        "the Router, to sell": (at.router, swap_exact_in(swap)),
        "the Router, to buy": (at.router, swap_exact_out(swap)),
        "the executor, to take": (
            at.executor,
            COLLECT + address_word(world.weth) + address_word(world.taker.address),
        ),
        "the executor, to trade": (
            at.executor,
            EXECUTE + encode(address_word(world.user.address), tuples_tail([])),
        ),
        "the vault": (at.fee_vault, claim([world.weth], world.taker.address)),
        "the Rfq": (at.rfq, calldata.try_batch_fill_taker_amount([], 1, world.taker.address)),
    }  # fmt: skip


async def test_a_token_that_calls_back_cannot_swap_within_a_swap(world: World) -> None:
    venue, odd, selling, buying = await _odd_venue(world)
    for what, (target, data) in _entries(world, selling).items():
        await _hooked(venue, odd, target, data)
        assert await venue.refused_sale(selling) == "TRANSFER_FROM_FAILED", what
        assert await venue.refused_sale(buying) == step_failed(UNFILLED), what


async def test_a_token_that_calls_back_and_hides_the_refusal_gains_nothing(world: World) -> None:
    venue, odd, selling, buying = await _odd_venue(world)
    helper = await create(world.chain, world.owner, "DevMulticall")
    for what, (target, data) in _entries(world, selling).items():
        snapshot = await world.chain.snapshot()
        await _hooked(venue, odd, helper, _careless(target, data))
        before = await venue.state()
        assert (await venue.sell(selling)).event.received == ONE, what
        assert (await venue.sell(buying)).event.received == ONE, what
        assert await venue.state() == before, what  # the tokens returned
        assert await world.balance(odd, world.user) == ONE
        await world.chain.restore(snapshot)


async def _signer(world: World, code: str, data: bytes, approved: bytes) -> bytes:
    """A contract that runs `code` with `data` in memory at each call, and then accepts any signature; the Rfq
    may take its tokens."""
    approval = calldata.approve(world.at.rfq, MOST)
    words = " ".join(f"0x{approval[at : at + 32].ljust(32, b'0').hex()} {at} MSTORE" for at in (0, 32, 64))
    before = f"{words} 0 0 68 0 0 0x{approved.hex()} GAS CALL POP"
    at = 0x100
    runs = assembled(f"{len(data)} {at} 0 CODECOPY {code} {ACCEPTED} 0 MSTORE 32 0 RETURN")
    init_code = deploys(runs.ljust(at, b"\0") + data, before)
    salt32 = secrets.token_bytes(32)
    await world.send(world.stranger, FACTORY, salt32 + init_code)
    return create2_address(FACTORY, salt32, init_code)


def _quote_of(venue: Venue, maker: bytes) -> RfqOrder:
    return venue.quote(maker=maker, maker_amount=2_501 * USDC)


async def test_a_signer_that_calls_back_changes_nothing(world: World) -> None:
    venue = await a_venue(world)
    swap = venue.swap(venue.hop(venue.quote()))
    calls = [*_entries(world, swap).values(), (world.at.rfq, calldata.cancel_order(bytes(32)))]
    for target, data in calls:
        code = f"0 0 {len(data)} 0 0 0x{target.hex()} 500000 CALL POP"
        maker = await _signer(world, code, data, world.usdc)
        await world.mint(world.usdc, maker, 2_501 * USDC)
        done = await venue.sell(venue.swap(venue.hop(_quote_of(venue, maker))))
        assert done.event.received == 2_501 * USDC
        assert await world.balance(world.weth, maker) == ONE
        assert await world.balance(world.weth, world.taker) == 0


async def test_a_signer_that_wastes_gas_costs_a_bounded_amount_and_the_next_order_is_filled(
    world: World,
) -> None:
    venue = await a_venue(world)
    maker = await _signer(world, "for_ever: @for_ever JUMP", b"", world.usdc)
    await world.mint(world.usdc, maker, 2_501 * USDC)
    swap = venue.swap(venue.hop(_quote_of(venue, maker), venue.quote()))
    receipt = await world.forced(world.user, world.at.router, swap_exact_in(swap), gas=3_000_000)
    assert receipt.succeeded
    assert receipt.gas_used < 1_400_000
    assert await world.balance(world.usdc, world.user) == 2_500 * USDC


async def test_a_receiver_of_native_tokens_cannot_swap_within_the_swap(world: World) -> None:
    venue = await a_venue(world)
    await world.give(world.maker, world.weth, ONE, world.at.rfq)
    await world.give(world.user, world.usdc, 2_500 * USDC, world.at.router)
    quote = venue.quote(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=2_500 * USDC
    )
    swap = venue.swap(
        venue.hop(quote),
        src_token=world.usdc,
        dest_token=NATIVE,
        src_amount=2_500 * USDC,
        dest_amount=ONE,
    )
    data = swap_exact_in(swap)
    again = f"0 0 {len(data)} 0 0 0x{world.at.router.hex()} GAS CALL"
    code = f"{again} @went JUMPI 0 0 RETURN went: 0 0 REVERT"
    receiver = await _signer(world, code, data, world.usdc)
    await venue.sell(msgspec.structs.replace(swap, receiver=receiver))
    assert await world.chain.balance(receiver) == ONE


# --- What is left with the executor -------------------------------------------------------------------


async def _leave(world: World, token: bytes, amount: int) -> None:
    await world.mint(token, world.stranger, amount)
    await world.send(world.stranger, token, calldata.transfer(world.at.executor, amount))


@pytest.mark.parametrize("left", [1, 3 * ONE])
async def test_what_was_left_of_the_source_is_the_next_callers_and_stops_nothing(
    world: World, left: int
) -> None:
    venue = await a_venue(world)
    terms = int.from_bytes(world.partner.address, "big") << 96 | 1 << 8 | 100
    for is_sale in (True, False):
        await _leave(world, world.weth, left)
        before = await world.balance(world.weth, world.user)
        if is_sale:
            done = await venue.sell(venue.swap(venue.hop(venue.quote())))
        else:
            hop = venue.hop(venue.quote(), maker_amount=2_500 * USDC)
            purchase = venue.purchase(hop, partner_and_fee=terms, expected_amount=102 * ONE // 100)
            done = await venue.buy(purchase)
        spent = ONE if is_sale else ONE + ONE // 100 + ONE // 100
        assert done.event.spent == spent
        assert await world.balance(world.weth, world.user) == before + left - spent


@pytest.mark.parametrize("left", [1, 9_000 * USDC])
async def test_what_was_left_between_the_hops_is_the_next_callers_and_stops_nothing(
    world: World, left: int
) -> None:
    venue = await a_wide_venue(world)
    for is_sale in (True, False):
        await _leave(world, world.usdc, left)
        before = await world.balance(world.usdc, world.user)
        bought = 2_490 * ONE
        amounts = (0, 0) if is_sale else (2_500 * USDC, bought)
        hops = (
            venue.hop(venue.quote(), maker_amount=amounts[0]),
            venue.hop(venue.second_quote(), maker_amount=amounts[1]),
        )
        swap = venue.swap(*hops, dest_token=world.dai, dest_amount=bought)
        done = await (venue.sell if is_sale else venue.buy)(swap)
        assert (done.event.spent, done.event.received) == (ONE, bought)
        assert await world.balance(world.usdc, world.user) == before + left


async def test_what_was_left_of_the_destination_is_no_part_of_a_swap(world: World) -> None:
    venue = await a_venue(world)
    await _leave(world, world.usdc, 7 * USDC)
    for is_sale in (True, False):
        hop = venue.hop(venue.quote(), maker_amount=0 if is_sale else 2_500 * USDC)
        send = swap_exact_in if is_sale else swap_exact_out
        before = await world.balance(world.usdc, world.user)
        await world.send(world.user, world.at.router, send(venue.swap(hop)))
        assert await world.balance(world.usdc, world.user) - before == 2_500 * USDC
        assert await world.balance(world.usdc, world.at.executor) == 7 * USDC


async def test_what_lies_in_the_router_stays_there(world: World) -> None:
    venue = await a_wide_venue(world)
    lying = {world.weth: 3 * ONE, world.usdc: 500 * USDC}
    for token, amount in lying.items():
        await world.mint(token, world.stranger, amount)
        await world.send(world.stranger, token, calldata.transfer(world.at.router, amount))
    for is_sale in (True, False):
        hop = venue.hop(venue.quote(), maker_amount=0 if is_sale else 2_500 * USDC)
        send = swap_exact_in if is_sale else swap_exact_out
        before = await world.balances(world.user)
        await world.send(world.user, world.at.router, send(venue.swap(hop)))
        after = await world.balances(world.user)
        gained = {token: after[token, world.user.address] - held for (token, _), held in before.items()}
        assert gained == {world.weth: -ONE, world.usdc: 2_500 * USDC, world.dai: 0}
    for token, amount in lying.items():
        assert await world.balance(token, world.at.router) == amount


# --- Copied calldata ----------------------------------------------------------------------------------


async def test_a_copy_of_a_users_swap_is_refused_and_the_users_goes_through(world: World) -> None:
    venue = await a_venue(world)
    await world.give(world.stranger, world.weth, 2 * ONE, world.at.router)
    quote = venue.quote()
    for data in (
        swap_exact_in(venue.swap(venue.hop(quote))),
        swap_exact_out(venue.purchase(venue.hop(quote, maker_amount=2_500 * USDC))),
    ):
        refusal = told("NotTheUsers", nonceAndMeta=quote.nonce_and_meta)
        assert await world.refused(world.stranger, world.at.router, data) == refusal
    await world.send(world.user, world.at.router, swap_exact_in(venue.swap(venue.hop(quote))))
    assert await world.balance(world.usdc, world.user) == 2_500 * USDC


async def test_a_copy_of_a_swap_with_open_orders_spends_the_copiers_own(world: World) -> None:
    venue = await a_venue(world)
    await world.give(world.stranger, world.weth, ONE, world.at.router)
    data = swap_exact_in(venue.swap(venue.hop(world.an_rfq_order())))
    await world.send(world.stranger, world.at.router, data)
    assert await world.balance(world.weth, world.stranger) == 0
    assert await world.balance(world.weth, world.user) == 10 * ONE
    assert await world.refused(world.user, world.at.router, data) == step_failed()


async def test_a_firm_quote_cannot_be_filled_around_the_executor(world: World) -> None:
    venue = await a_venue(world)
    await world.give(world.stranger, world.weth, ONE, world.at.rfq)
    quote = venue.quote()
    signature = world.signed(quote)
    for data in (
        calldata.fill_order(quote, signature),
        calldata.fill_order_with_target(quote, signature, world.at.executor),
        calldata.partial_fill_order(quote, signature, 1),
        calldata.batch_fill_order_with_target([venue.info(quote)], world.at.executor),
    ):
        assert await world.refused(world.stranger, world.at.rfq, data) == "Access denied"
    batch = calldata.try_batch_fill_taker_amount([venue.info(quote)], ONE, world.stranger.address)
    assert await world.refused(world.stranger, world.at.rfq, batch) == UNFILLED


async def test_the_router_holds_no_power_over_what_users_allowed(world: World) -> None:
    """A source token can be any contract: the Router's call to it spends only the caller's funds."""
    venue = await a_venue(world)
    await world.give(world.stranger, world.weth, ONE, world.at.router)
    quote = world.an_rfq_order()
    for source in (world.at.fee_vault, world.at.executor, world.at.rfq, world.at.delta):
        await world.send(world.owner, world.at.router, owner_calldata.set_cap(source, MOST))
        swap = venue.swap(venue.hop(quote), src_token=source)
        assert await venue.refused_sale(swap, world.stranger) in ("TRANSFER_FROM_FAILED", "")
    spoofed = Dynamic(bytes(224))  # a permit of zeros, for a token that has none
    swap = venue.swap(venue.hop(quote), permit=spoofed.tail)
    done = await venue.sell(swap, world.stranger)  # the allowance is there, so a bad permit does not matter
    assert done.event.sender == world.stranger.address
