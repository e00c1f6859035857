"""Tokens that are not as the standard has them are exchanged to the unit, or not at all."""

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from support.chain.evm_programs import assembled, deploys
from support.chain.world import ONE, USDC, World
from support.contracts.rfq_stories import (
    TRANSFER_FAILED,
    UNFILLED,
    filled,
    funded,
    refusal,
    remaining,
    rfq_events,
)

TAKES_A_FEE = "Token takes a fee on transfers"
SIDES = ("maker_asset", "taker_asset")


def amount_of(side: str, token: bytes, amount: int) -> dict[str, object]:
    """Order members that make an order give, or take, `amount` of a token."""
    return {side: token, side.replace("asset", "amount"): amount}


async def held(world: World, side: str, token: bytes, amount: int) -> None:
    """By the one who gives it, who lets the Rfq take it."""
    owner = world.maker if side == "maker_asset" else world.taker
    await world.give(owner, token, amount, world.at.rfq)


@pytest.mark.parametrize("side", SIDES)
async def test_a_token_that_returns_nothing_is_exchanged(world: World, side: str) -> None:
    await funded(world)
    token = await world.new_token("DevTokenWithoutReturn", decimals=6)
    await held(world, side, token, 100 * USDC)
    order = world.an_rfq_order(**amount_of(side, token, 60 * USDC))
    data = calldata.fill_order(order, world.signed(order))
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
    giver, getter = (world.maker, world.taker) if side == "maker_asset" else (world.taker, world.maker)
    assert await world.balance(token, giver) == 40 * USDC
    assert await world.balance(token, getter) == 60 * USDC
    short = world.an_rfq_order(**amount_of(side, token, 40 * USDC + 1))
    data = calldata.fill_order(short, world.signed(short))
    assert await refusal(world, world.taker, data, short) == TRANSFER_FAILED


@pytest.mark.parametrize("side", SIDES)
async def test_a_token_that_takes_a_fee_is_refused(world: World, side: str) -> None:
    await funded(world)
    token = await world.new_token()
    await held(world, side, token, 100 * ONE)
    order = world.an_rfq_order(**amount_of(side, token, 10 * ONE))
    data = calldata.partial_fill_order(order, world.signed(order), order.taker_amount // 2)
    await world.send(world.stranger, token, selector("setTransferFee(uint256)") + uint_word(1))
    assert await refusal(world, world.taker, data, order) == TAKES_A_FEE
    tries = calldata.try_batch_fill_taker_amount([world.info(order)], order.taker_amount, world.user.address)
    assert await refusal(world, world.taker, tries, order) == UNFILLED
    await world.send(world.stranger, token, selector("setTransferFee(uint256)") + uint_word(0))
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [
        filled(world, order, order.maker_amount // 2, order.taker_amount // 2)
    ]
    await world.send(world.stranger, token, selector("setTransferFee(uint256)") + uint_word(10_000))
    assert await refusal(world, world.taker, data, order) == TAKES_A_FEE


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("units", [1, 2])
async def test_a_token_that_rounds_is_exchanged(world: World, side: str, units: int) -> None:
    """Tokens with share-based balances lose a unit or two to rounding; a loss of three counts as a fee."""
    await funded(world)
    token = await world.new_token()
    await held(world, side, token, 100 * ONE)
    await world.send(world.stranger, token, selector("setRounding(uint256)") + uint_word(units))
    terms = {"maker_amount": USDC, "taker_amount": ONE // 100} | amount_of(side, token, ONE)
    for order in [world.an_rfq_order(**terms) for _ in range(20)]:
        data = calldata.fill_order(order, world.signed(order))
        assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
    getter = world.taker if side == "maker_asset" else world.maker
    assert await world.balance(token, getter) == 20 * (ONE - units)
    await world.send(world.stranger, token, selector("setRounding(uint256)") + uint_word(3))
    order = world.an_rfq_order(**terms)
    data = calldata.fill_order(order, world.signed(order))
    assert await refusal(world, world.taker, data, order) == TAKES_A_FEE


@pytest.mark.parametrize("side", SIDES)
async def test_a_token_that_gives_more_than_is_sent_is_refused(world: World, side: str) -> None:
    await funded(world)
    token = await world.new_token()
    await held(world, side, token, 100 * ONE)
    order = world.an_rfq_order(**amount_of(side, token, 10 * ONE))
    getter = world.taker if side == "maker_asset" else world.maker
    data = calldata.fill_order(order, world.signed(order))
    for units in (3, 2):  # two are rounding
        mint = selector("mint(address,uint256)") + address_word(getter.address) + uint_word(units)
        hook = selector("setHook(address,bytes)") + encode(address_word(token), bytes_tail(mint))
        await world.send(world.stranger, token, hook)
        if units == 3:
            assert await refusal(world, world.taker, data, order) == TAKES_A_FEE
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, order)]


async def test_a_token_that_gives_more_than_is_sent_to_oneself_is_refused(world: World) -> None:
    token = await world.new_token()
    await world.give(world.maker, token, 100 * ONE, world.at.rfq)
    mint = selector("mint(address,uint256)") + address_word(world.maker.address) + uint_word(3)
    hook = selector("setHook(address,bytes)") + encode(address_word(token), bytes_tail(mint))
    await world.send(world.stranger, token, hook)
    order = world.an_rfq_order(maker_asset=token, taker_asset=token, maker_amount=ONE)
    data = calldata.fill_order(order, world.signed(order))
    assert await refusal(world, world.maker, data, order) == TAKES_A_FEE


async def test_a_blocked_account_neither_gives_nor_gets(world: World) -> None:
    await funded(world)
    coin = await world.new_token(decimals=6)
    await world.give(world.maker, coin, 100 * USDC, world.at.rfq)
    order = world.an_rfq_order(maker_asset=coin, maker_amount=50 * USDC)
    signature = world.signed(order)
    own = calldata.fill_order(order, signature)
    for blocked, target in (
        (world.maker, world.taker), (world.taker, world.taker), (world.user, world.user),
    ):  # fmt: skip
        data = calldata.fill_order_with_target(order, signature, target.address)
        await world.send(world.stranger, coin, set_blocked(blocked.address, blocked=True))
        assert await refusal(world, world.taker, data, order) == TRANSFER_FAILED
        await world.send(world.stranger, coin, set_blocked(blocked.address, blocked=False))
    await world.send(world.stranger, coin, set_blocked(world.taker.address, blocked=True))
    assert await refusal(world, world.taker, own, order) == TRANSFER_FAILED
    data = calldata.fill_order_with_target(order, signature, world.user.address)
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, order, target=world.user.address)]


async def test_tokens_of_six_and_eight_decimals_are_exchanged_in_raw_units(world: World) -> None:
    await funded(world)
    bitcoin = await world.new_token(symbol="WBTC", decimals=8)
    await world.give(world.taker, bitcoin, 3, world.at.rfq)
    order = world.an_rfq_order(taker_asset=bitcoin, maker_amount=6_543_211_237, taker_amount=10_000_007)
    signature = world.signed(order)
    left = order.maker_amount
    for taker_amount in (1, 2):
        maker_amount = taker_amount * order.maker_amount // order.taker_amount
        data = calldata.partial_fill_order(order, signature, taker_amount)
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == [filled(world, order, maker_amount, taker_amount)]
        left -= maker_amount
        assert await remaining(world, order) == left + 1
    assert await world.balance(bitcoin, world.maker) == 3
    assert await world.balance(world.usdc, world.taker) == 654 + 1_308


@pytest.mark.parametrize("side", SIDES)
async def test_what_is_no_token_is_refused(world: World, side: str) -> None:
    await funded(world)
    tells_no_balance = assembled(
        "1 0 MSTORE CALLDATASIZE 36 EQ @balance JUMPI 32 0 RETURN balance: 32 0 REVERT"
    )
    silent = (await world.send(world.stranger, b"", deploys(tells_no_balance))).contract
    assert silent is not None
    for nothing in (world.stranger.address, bytes(20), world.at.rfq, silent):
        order = world.an_rfq_order(**amount_of(side, nothing, 1))
        data = calldata.fill_order(order, world.signed(order))
        assert await refusal(world, world.taker, data, order) == ""


@pytest.mark.parametrize("side", SIDES)
async def test_a_token_that_answers_with_anything_but_true_has_not_moved(world: World, side: str) -> None:
    """Each token answers every call with one word and moves nothing; the Rfq takes a unit for rounding."""
    await funded(world)
    for word in (0, 2, 1 << 8, 1 << 255, 1):
        program = assembled(f"{word} 0 MSTORE 32 0 RETURN")
        token = (await world.send(world.stranger, b"", deploys(program))).contract
        assert token is not None
        order = world.an_rfq_order(**amount_of(side, token, 1))
        data = calldata.fill_order(order, world.signed(order))
        if word != 1:
            assert await refusal(world, world.taker, data, order) == TRANSFER_FAILED
        else:
            receipt = await world.send(world.taker, world.at.rfq, data)
            assert rfq_events(world, receipt) == [filled(world, order)]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("answer", ["31 0 RETURN", "0 0 REVERT", "1 0 MSTORE 32 0 REVERT"])
async def test_a_token_that_fails_or_answers_short_has_not_moved(
    world: World, side: str, answer: str
) -> None:
    """Each balance is 1, which is the word for true as well."""
    await funded(world)
    program = assembled(f"CALLDATASIZE 100 EQ @pull JUMPI 1 0 MSTORE 32 0 RETURN pull: {answer}")
    token = (await world.send(world.stranger, b"", deploys(program))).contract
    assert token is not None
    order = world.an_rfq_order(**amount_of(side, token, 1))
    data = calldata.fill_order(order, world.signed(order))
    assert await refusal(world, world.taker, data, order) == TRANSFER_FAILED


def set_blocked(account: bytes, *, blocked: bool) -> bytes:
    return selector("setBlocked(address,bool)") + address_word(account) + uint_word(blocked)
