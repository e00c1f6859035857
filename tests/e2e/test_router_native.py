"""Native tokens on the Router: native tokens arrive with the call and leave unwrapped; only WETH may send it
any.
"""

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.contract_events import Swapped, decode_event
from cambist.codecs.contracts.router_calldata import RouterSwap, swap_exact_in, swap_exact_out
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.engine.chain.deploy.deploy import create
from support.chain.evm_programs import assembled, deploys
from support.chain.world import NATIVE, NOBODY, ONE, USDC, World
from support.contracts.swapping import Venue, a_venue

EXECUTE = selector("execute(address,uint256,bytes)")


async def _stocked_with_weth(venue: Venue) -> None:
    await venue.world.give(venue.world.maker, venue.world.weth, 5 * ONE, venue.world.at.rfq)
    await venue.world.give(venue.world.user, venue.world.usdc, 5_000 * USDC, venue.world.at.router)


def _sale_for_native(venue: Venue, receiver: bytes) -> RouterSwap:
    """2,500 USDC for one native token."""
    world = venue.world
    quote = venue.quote(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=2_500 * USDC
    )
    return venue.swap(
        venue.hop(quote),
        src_token=world.usdc,
        dest_token=NATIVE,
        src_amount=2_500 * USDC,
        dest_amount=ONE,
        receiver=receiver,
    )


async def test_native_tokens_are_sold(world: World) -> None:
    venue = await a_venue(world)
    before = await world.chain.balance(world.user.address)
    done = await venue.sell(venue.swap(venue.hop(venue.quote()), src_token=NATIVE), value_wei=ONE)
    gas_wei = done.receipt.gas_used * done.receipt.gas_price_wei
    assert await world.chain.balance(world.user.address) == before - ONE - gas_wei
    assert await world.balance(world.usdc, world.user) == 2_500 * USDC
    assert await world.balance(world.weth, world.user) == 10 * ONE
    assert done.event.src_token == NATIVE


async def test_the_value_must_be_what_is_sold(world: World) -> None:
    venue = await a_venue(world)
    native = venue.swap(venue.hop(venue.quote()), src_token=NATIVE)
    wrapped = venue.swap(venue.hop(venue.quote()))
    for value_wei in (0, ONE - 1, ONE + 1):
        assert await venue.refused_sale(native, value_wei=value_wei) == "WRONG_VALUE"
        assert await venue.refused_purchase(native, value_wei=value_wei) == "WRONG_VALUE"
    assert await venue.refused_sale(wrapped, value_wei=1) == "WRONG_VALUE"
    assert await venue.refused_purchase(wrapped, value_wei=1) == "WRONG_VALUE"


async def test_native_tokens_are_received(world: World) -> None:
    venue = await a_venue(world)
    await _stocked_with_weth(venue)
    swap = _sale_for_native(venue, NOBODY)
    before = await world.chain.balance(world.user.address)
    done = await venue.sell(swap)
    gas_wei = done.receipt.gas_used * done.receipt.gas_price_wei
    assert await world.chain.balance(world.user.address) == before + ONE - gas_wei
    assert (done.event.dest_token, done.event.received) == (NATIVE, ONE)


async def test_a_receiver_that_takes_no_native_tokens_stops_the_swap(world: World) -> None:
    venue = await a_venue(world)
    await _stocked_with_weth(venue)
    swap = _sale_for_native(venue, world.at.fee_vault)
    assert await venue.refused_sale(swap) == "NATIVE_TRANSFER_FAILED"


async def test_a_receiver_of_native_tokens_may_use_much_gas(world: World) -> None:
    venue = await a_venue(world)
    await _stocked_with_weth(venue)
    grows = assembled("1 320000 MSTORE STOP")  # memory for 225,000 units of gas
    receiver = (await world.send(world.stranger, b"", deploys(grows))).contract
    assert receiver is not None
    await venue.sell(_sale_for_native(venue, receiver))
    assert await world.chain.balance(receiver) == ONE


async def test_native_tokens_that_lie_in_the_router_stay_there(world: World) -> None:
    venue = await a_venue(world)
    await _stocked_with_weth(venue)
    await world.chain.set_balance(world.at.router, 7)
    given = venue.swap(venue.hop(venue.quote()), src_token=NATIVE)
    await world.send(world.user, world.at.router, swap_exact_in(given), value_wei=ONE)
    received = _sale_for_native(venue, b"\x77" * 20)
    await world.send(world.user, world.at.router, swap_exact_in(received))
    assert await world.chain.balance(b"\x77" * 20) == ONE
    assert await world.chain.balance(world.at.router) == 7
    assert await world.balance(world.weth, world.at.router) == 0


async def test_a_smart_wallet_buys_for_whom_it_says_and_the_rest_is_the_wallets(world: World) -> None:
    venue = await a_venue(world)
    wallet = await create(world.chain, world.owner, "DevWallet", address_word(world.stranger.address))
    for number, receiver in enumerate((world.partner.address, NOBODY)):
        await world.chain.set_balance(wallet, 2 * ONE)
        quote = world.an_rfq_order(nonce_and_meta=pack_firm(wallet, number), taker=world.at.executor)
        hop = venue.hop(quote, maker_amount=2_500 * USDC)
        data = swap_exact_out(venue.purchase(hop, src_token=NATIVE, src_amount=2 * ONE, receiver=receiver))
        call = encode(address_word(world.at.router), uint_word(2 * ONE), bytes_tail(data))
        receipt = await world.send(world.stranger, wallet, EXECUTE + call)
        (log,) = [log for log in receipt.logs if log.address == world.at.router]
        swapped = decode_event(log.topics, log.data)
        assert isinstance(swapped, Swapped)
        assert (swapped.sender, swapped.receiver) == (wallet, receiver if any(receiver) else wallet)
        assert await world.balance(world.usdc, swapped.receiver) == 2_500 * USDC
        assert await world.chain.balance(wallet) == ONE


async def test_fees_of_native_tokens_stay_wrapped(world: World) -> None:
    venue = await a_venue(world)
    await _stocked_with_weth(venue)
    terms = int.from_bytes(world.partner.address, "big") << 96 | 100
    quote = venue.quote(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=2_500 * USDC
    )
    swap = venue.swap(
        venue.hop(quote),
        src_token=world.usdc,
        dest_token=NATIVE,
        src_amount=2_500 * USDC,
        dest_amount=9 * ONE // 10,
        partner_and_fee=terms,
        receiver=b"\x77" * 20,
    )
    await venue.sell(swap)
    assert await world.chain.balance(b"\x77" * 20) == 99 * ONE // 100
    assert await venue.claim(world.weth) == ONE // 100
    bought = venue.hop(venue.quote(), maker_amount=2_500 * USDC)
    purchase = venue.purchase(bought, src_token=NATIVE, partner_and_fee=terms)
    assert (await venue.buy(purchase, value_wei=purchase.src_amount)).event.spent == ONE + ONE // 100
    assert await venue.claim(world.weth) == ONE // 100


async def test_wrapped_and_native_are_one_token(world: World) -> None:
    venue = await a_venue(world)
    for src, dest, value_wei in ((NATIVE, world.weth, ONE), (world.weth, NATIVE, 0), (NATIVE, NATIVE, ONE)):
        swap = venue.swap(venue.hop(venue.quote()), src_token=src, dest_token=dest)
        assert await venue.refused_sale(swap, value_wei=value_wei) == "SAME_TOKEN"


async def test_nobody_but_the_wrapped_token_sends_native_tokens(world: World) -> None:
    assert await world.refused(world.stranger, world.at.router, b"", value_wei=1) == "NOT_WETH"
    for contract in (world.at.executor, world.at.fee_vault, world.at.rfq):
        assert await world.refused(world.stranger, contract, b"", value_wei=1) == ""
        assert await world.refused(world.stranger, contract, selector("deposit()"), value_wei=1) == ""
