"""A maker is a contract, which says itself what it signed (EIP-1271)."""

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector
from cambist.codecs.contracts.contract_events import OrderCancelled
from cambist.crypto.signatures import to_compact64
from support.chain.evm_programs import assembled, deploys
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.rfq_stories import (
    FILLED_OR_CANCELLED,
    a_wallet,
    execute,
    filled,
    funded,
    refusal,
    remaining,
    rfq_events,
)

INVALID = "Invalid Signature"
MAGIC = hex(0x1626BA7E << 224)


async def test_a_wallets_order_is_filled(world: World) -> None:
    await funded(world)
    wallet = await a_wallet(world, world.partner)
    for compact in (False, True):
        order = world.an_rfq_order(maker=wallet)
        signature = world.signed(order, world.partner)
        if compact:
            signature = to_compact64(*world.partner.sign(world.rfq_hash(order)))
        receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, signature))
        assert rfq_events(world, receipt) == [filled(world, order)]
    assert await world.balance(world.weth, wallet) == 2 * ONE
    assert await world.balance(world.usdc, wallet) == 5_000 * USDC
    assert await world.balance(world.usdc, world.taker) == 5_000 * USDC


async def test_another_key_does_not_sign_for_a_wallet(world: World) -> None:
    await funded(world)
    wallet = await a_wallet(world, world.partner)
    order = world.an_rfq_order(maker=wallet)
    good = world.signed(order, world.partner)
    for signature in (world.signed(order, world.stranger), b"", good[:63], good + b"\0", bytes(1_000)):
        data = calldata.fill_order(order, signature)
        assert await refusal(world, world.taker, data, order) == INVALID


async def test_a_wallet_that_changed_its_key_gives_the_rest_of_a_begun_order(world: World) -> None:
    await funded(world)
    wallet = await a_wallet(world, world.partner)
    begun, unseen = world.an_rfq_order(maker=wallet), world.an_rfq_order(maker=wallet)
    part = calldata.partial_fill_order(begun, world.signed(begun, world.partner), ONE // 2)
    await world.send(world.taker, world.at.rfq, part)
    change = selector("setKey(address)") + address_word(world.user.address)
    await world.send(world.partner, wallet, change)
    stale = calldata.fill_order(unseen, world.signed(unseen, world.partner))
    assert await refusal(world, world.taker, stale, unseen, begun) == INVALID
    receipt = await world.send(world.taker, world.at.rfq, part)
    assert rfq_events(world, receipt) == [filled(world, begun, 1_250 * USDC, ONE // 2)]
    assert await remaining(world, begun) == FILLED_OR_CANCELLED
    fresh = calldata.fill_order(unseen, world.signed(unseen, world.user))
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, fresh)) == [filled(world, unseen)]


async def test_a_wallet_cancels_by_a_call_of_its_own(world: World) -> None:
    await funded(world)
    wallet = await a_wallet(world, world.partner)
    order = world.an_rfq_order(maker=wallet)
    cancel = calldata.cancel_order(world.rfq_hash(order))
    receipt = await world.send(world.partner, world.at.rfq, cancel)
    assert rfq_events(world, receipt) == [OrderCancelled(world.rfq_hash(order), world.partner.address)]
    assert await remaining(world, order) == 0  # the key's account is not the wallet
    receipt = await world.send(world.partner, wallet, execute(world.at.rfq, cancel))
    assert rfq_events(world, receipt) == [OrderCancelled(world.rfq_hash(order), wallet)]
    assert await remaining(world, order) == FILLED_OR_CANCELLED


async def test_a_contract_that_signs_nothing_is_no_maker(world: World) -> None:
    await funded(world)
    for contract in (world.usdc, world.weth, world.at.rfq, world.at.executor):
        order = world.an_rfq_order(maker=contract)
        data = calldata.fill_order(order, world.signed(order))
        assert await refusal(world, world.taker, data, order) == INVALID


@pytest.mark.parametrize(
    "answer",
    [
        f"{MAGIC} 0 MSTORE 4 0 RETURN",  # four bytes alone
        f"{MAGIC} 0 MSTORE 31 0 RETURN",
        "STOP",
        f"{MAGIC} 0 MSTORE 32 0 REVERT",
        f"{MAGIC} 1 ADD 0 MSTORE 32 0 RETURN",  # the word has more in it
    ],
)
async def test_a_wallet_that_answers_short_or_not_at_all_has_not_signed(world: World, answer: str) -> None:
    """Neither alone nor behind one that signs, in the same call."""
    await funded(world)
    receipt = await world.send(world.stranger, b"", deploys(assembled(answer)))
    assert receipt.contract is not None
    wallet = await a_wallet(world, world.partner)
    signed, order = world.an_rfq_order(maker=wallet), world.an_rfq_order(maker=receipt.contract)
    data = calldata.fill_order(order, world.signed(order))
    assert await refusal(world, world.taker, data, order) == INVALID
    both = [world.info(signed, world.partner), world.info(order)]
    data = calldata.batch_fill_order_with_target(both, world.taker.address)
    assert await refusal(world, world.taker, data, order, signed) == INVALID


@pytest.mark.parametrize(("words", "is_filled"), [(21_700, True), (21_900, False)])
async def test_a_wallets_answer_may_cost_a_million_of_gas(world: World, words: int, is_filled: bool) -> None:
    """The two memory sizes cost 985,000 and 1,002,000 gas."""
    await funded(world)
    answer = assembled(f"{MAGIC} 0 MSTORE 1 {32 * words} MSTORE 32 0 RETURN")
    approval = calldata.approve(world.at.rfq, MOST)
    filled_up = approval.ljust(96, b"\0")
    stores = " ".join(f"0x{filled_up[at : at + 32].hex()} {at} MSTORE" for at in (0, 32, 64))
    approves = f"{stores} 0 0 68 0 0 0x{world.usdc.hex()} GAS CALL POP"
    wallet = (await world.send(world.stranger, b"", deploys(answer, approves))).contract
    assert wallet is not None
    await world.mint(world.usdc, wallet, 2_500 * USDC)
    order = world.an_rfq_order(maker=wallet)
    data = calldata.fill_order(order, b"")
    if is_filled:
        receipt = await world.forced(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == [filled(world, order)]
    else:
        assert await refusal(world, world.taker, data, order) == INVALID


async def test_a_wallet_takes_orders(world: World) -> None:
    await funded(world)
    wallet = await a_wallet(world, world.partner)
    await world.send(world.taker, world.weth, calldata.transfer(wallet, ONE))
    approve = execute(world.weth, calldata.approve(world.at.rfq, ONE))
    await world.send(world.partner, wallet, approve)
    order = world.an_rfq_order(taker=wallet)
    fill = calldata.fill_order(order, world.signed(order))
    assert await refusal(world, world.partner, fill, order) == "Access denied"
    receipt = await world.send(world.partner, wallet, execute(world.at.rfq, fill))
    assert rfq_events(world, receipt) == [filled(world, order, target=wallet)]
    assert await world.balance(world.usdc, wallet) == 12_500 * USDC
