"""The native token in, from a deposit of the owner's, and out, unwrapped."""

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.contract_events import NATIVE_DEPOSITED, NATIVE_WITHDRAWN, topic
from cambist.codecs.contracts.delta_calldata import (
    cancel_and_withdraw,
    deposit_native_and_pre_sign,
    withdraw_native,
    withdraw_to,
)
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.engine.chain.port import Receipt
from support.chain.evm_programs import assembled, deploys
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.settling import SETTLEMENT_GAS, Market

REFUSES = "0 0 REVERT"
UNWRAPPED = topic("Withdrawal(address,uint256)")


async def test_a_sale_from_a_deposit(world: World, market: Market) -> None:
    """The call that deposits signs the order too: no signature is needed."""
    order = await world.a_delta_order(src_token=NATIVE)
    data = deposit_native_and_pre_sign(world.delta_hash(order))
    receipt = await world.send(world.user, world.at.delta, data, value_wei=ONE)
    assert native_moves(receipt) == [(NATIVE_DEPOSITED, world.user.address, ONE)]
    quote = world.a_firm_quote()
    settled = await market.settle(order, market.fill_step(quote), signature=b"")
    assert (settled.event.src_token, settled.event.spent) == (NATIVE, ONE)
    assert await market.deposited(order) == 0
    assert await world.chain.balance(world.at.delta) == 0
    assert await world.balance(world.weth, world.maker) == ONE
    assert await world.balance(world.weth, world.user) == 10 * ONE
    assert native_moves(settled.receipt) == []
    assert not [log for log in settled.receipt.logs if log.topics[0] == UNWRAPPED], "nothing is left"


async def test_a_deposit_that_does_not_cover_a_part(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps) == "InsufficientDeposit(deposited 0)"
    await market.deposit(order, ONE - 1)
    assert await market.refused_settlement(order, *steps) == f"InsufficientDeposit(deposited {ONE - 1})"
    half = market.agent_steps(1_250 * USDC, given=ONE // 2)
    await market.settle(order, *half, amount=ONE // 2)
    assert await market.deposited(order) == ONE // 2 - 1
    await market.deposit(order, 1)
    assert (await market.settle(order, *half, amount=ONE // 2)).event.is_closed


async def test_a_deposit_is_for_orders_of_one_owner(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    await market.deposit(order, ONE, world.stranger)
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps) == "InsufficientDeposit(deposited 0)"
    other = await world.a_delta_order(src_token=NATIVE)
    await market.deposit(other, ONE)
    await market.settle(order, *steps)
    assert await market.refused_settlement(other, *steps) == "InsufficientDeposit(deposited 0)"


async def test_a_deposit_is_taken_back(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    owner = world.user.address
    await market.deposit(order, ONE - 7)
    receipt = await world.send(
        world.user, world.at.delta, deposit_native_and_pre_sign(world.delta_hash(order)), value_wei=7
    )
    assert native_moves(receipt) == [(NATIVE_DEPOSITED, owner, 7)], "what comes, not what is there"
    for nobody in (world.stranger, world.relayer, world.owner):
        for data in (withdraw_native(1), withdraw_to(1, nobody.address)):
            assert await world.refused(nobody, world.at.delta, data) == "InsufficientDeposit(deposited 0)"
    before = await world.chain.balance(owner)
    receipt = await world.send(world.user, world.at.delta, withdraw_native(ONE // 4))
    assert native_moves(receipt) == [(NATIVE_WITHDRAWN, owner, ONE // 4)]
    assert withdrawn_to(receipt) == owner
    gas_wei = receipt.gas_used * receipt.gas_price_wei
    assert await world.chain.balance(owner) == before + ONE // 4 - gas_wei
    stranger = await world.chain.balance(world.stranger.address)
    receipt = await world.send(world.user, world.at.delta, withdraw_to(ONE // 2, world.stranger.address))
    assert native_moves(receipt) == [(NATIVE_WITHDRAWN, owner, ONE // 2)]
    assert withdrawn_to(receipt) == world.stranger.address
    assert await world.chain.balance(world.stranger.address) == stranger + ONE // 2
    refused = await world.refused(world.user, world.at.delta, withdraw_native(ONE // 2))
    assert refused == f"InsufficientDeposit(deposited {ONE // 4})"
    refuser = await a_refuser(world)
    refused = await world.refused(world.user, world.at.delta, withdraw_to(1, refuser))
    assert refused == f"NativeTransferFailed(to 0x{refuser.hex()})"
    await world.send(world.user, world.at.delta, withdraw_native(ONE // 4))
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps) == "InsufficientDeposit(deposited 0)"


async def test_a_sale_takes_what_it_gives_of_a_deposit(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    await market.deposit(order, 3 * ONE)
    before = await world.chain.balance(world.user.address)
    await market.settle(order, *market.agent_steps(2_500 * USDC))
    assert await market.deposited(order) == await world.chain.balance(world.at.delta) == 2 * ONE
    assert await world.chain.balance(world.user.address) == before


@pytest.mark.parametrize("left", [1, ONE // 2])
async def test_what_a_sale_leaves_comes_back_as_native_tokens(
    world: World, market: Market, left: int
) -> None:
    order = await world.a_delta_order(src_token=NATIVE, dest_amount=1)
    await market.deposit(order, ONE)
    before = await world.chain.balance(world.user.address)
    fill = market.fill_step(world.a_firm_quote(), taker_amount=ONE - left)
    settled = await market.settle(order, fill, leftovers=(world.weth,))
    assert settled.event.spent == ONE - left
    assert await world.chain.balance(world.user.address) == before + left
    assert await market.deposited(order) == await world.chain.balance(world.at.delta) == 0


async def test_a_purchase_from_a_deposit(world: World, market: Market) -> None:
    """The unspent rest of a part's maximum returns with the part, unwrapped; a fee stays wrapped."""
    terms = PartnerAndFee(world.partner.address, 100, False, False)
    order = await market.a_purchase(src_token=NATIVE, partner_and_fee=pack_partner_and_fee(terms))
    await market.deposit(order, order.src_amount)
    before = await world.chain.balance(world.user.address)
    part = {"amount": 1_250 * USDC, "src_given": 52 * ONE // 100}
    for number in (1, 2):
        half = market.fill_step(world.a_firm_quote(), maker_amount=1_250 * USDC)
        event = (await market.settle(order, half, **part)).event
        assert event.spent == ONE // 2 * 101 // 100
        assert event.is_closed is (number == 2)
        assert await market.deposited(order) == order.src_amount * (2 - number) // 2
        returned = await world.chain.balance(world.user.address) - before
        assert returned == number * (order.src_amount // 2 - event.spent)
    assert await market.owed(world.partner.address, world.weth) == ONE // 100
    assert await world.balance(world.weth, world.user) == 10 * ONE


@pytest.mark.parametrize("more", [0, 1, 5])
async def test_a_purchase_from_a_deposit_of_what_it_costs(world: World, market: Market, more: int) -> None:
    """The deposit need not be as much as the purchase may cost; all of a smaller one is taken."""
    order = await market.a_purchase(src_token=NATIVE)
    assert order.src_amount > ONE
    await market.deposit(order, ONE + more)
    before = await world.chain.balance(world.user.address)
    fill = market.fill_step(world.a_firm_quote(), maker_amount=order.dest_amount)
    await market.settle(order, fill, src_given=ONE)
    assert await world.chain.balance(world.user.address) == before + more
    assert await market.deposited(order) == await world.chain.balance(world.at.delta) == 0


async def test_slices_from_a_deposit(world: World, market: Market) -> None:
    order = await market.a_twap(src_token=NATIVE, interval=0)
    await market.deposit(order, ONE)
    for given in (ONE // 3, ONE // 3, ONE - 2 * (ONE // 3)):
        await market.settle(order, *market.agent_steps(801 * USDC, given=given))
    assert await market.deposited(order) == 0


@pytest.mark.parametrize("answer", [REFUSES, "again: @again JUMP"], ids=["refuses", "wastes all gas"])
async def test_a_contract_that_refuses_native_tokens_keeps_its_deposit(
    world: World, market: Market, answer: str
) -> None:
    """The order closes all the same, nobody else can take what is left, and its owner sends it elsewhere."""
    refuser = await a_refuser(world, answer)
    await world.chain.set_balance(refuser, 2 * ONE)
    terms = {"src_token": NATIVE, "owner": refuser, "beneficiary": world.stranger.address, "dest_amount": 1}
    order = await world.a_delta_order(**terms)
    sign = deposit_native_and_pre_sign(world.delta_hash(order))
    await world.send(world.stranger, refuser, forwarded(world.at.delta, sign, ONE))
    meta = pack_firm(refuser, 7)
    fill = market.fill_step(world.a_firm_quote(nonce_and_meta=meta), taker_amount=ONE // 2)
    settled = await market.settle(order, fill, leftovers=(world.weth,), signature=b"")
    assert settled.event.is_closed
    assert settled.receipt.gas_used < SETTLEMENT_GAS // 3, "the owner has 100,000 units"
    assert native_moves(settled.receipt) == [(NATIVE_DEPOSITED, refuser, ONE // 2)]
    assert await market.deposited(order) == await world.chain.balance(world.at.delta) == ONE // 2
    back = withdraw_native(ONE // 2)
    assert await world.refused(world.stranger, world.at.delta, back) == "InsufficientDeposit(deposited 0)"
    another = await world.a_delta_order(**terms)
    for data in (back, cancel_and_withdraw(another)):
        failed = await world.forced(world.stranger, refuser, forwarded(world.at.delta, data))
        assert not failed.succeeded
        assert await market.deposited(order) == ONE // 2
    nobody = bytes(19) + b"\x77"
    await world.send(world.stranger, refuser, forwarded(world.at.delta, withdraw_to(ONE // 2, nobody)))
    assert await world.chain.balance(nobody) == ONE // 2
    order = await world.a_delta_order(**terms)
    sign = deposit_native_and_pre_sign(world.delta_hash(order))
    await world.send(world.stranger, refuser, forwarded(world.at.delta, sign, ONE))
    settled = await market.settle(order, *market.agent_steps(2_500 * USDC), signature=b"")
    assert native_moves(settled.receipt) == [], "nothing is left"


async def test_native_tokens_out(world: World, market: Market) -> None:
    await world.give(world.user, world.usdc, 5_000 * USDC, world.at.delta)
    await world.mint(world.weth, world.maker, 3 * ONE)
    terms = PartnerAndFee(world.partner.address, 100, False, False)
    order = await world.a_delta_order(
        src_token=world.usdc,
        dest_token=NATIVE,
        src_amount=2_500 * USDC,
        dest_amount=ONE * 9 // 10,
        expected_amount=0,
        beneficiary=world.stranger.address,
        partner_and_fee=pack_partner_and_fee(terms),
    )
    quote = world.a_firm_quote(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=2_500 * USDC
    )
    before = await world.chain.balance(world.stranger.address)
    event = (await market.settle(order, market.fill_step(quote))).event
    assert (event.dest_token, event.received) == (NATIVE, ONE * 99 // 100)
    assert await world.chain.balance(world.stranger.address) == before + ONE * 99 // 100
    assert await market.owed(world.partner.address, world.weth) == ONE // 100


async def test_the_minimum_of_native_tokens_is_met_to_the_wei(world: World, market: Market) -> None:
    """After the fee, with nothing promised."""
    await world.give(world.user, world.usdc, 5_000 * USDC, world.at.delta)
    await world.mint(world.weth, world.maker, 3 * ONE)
    await world.send(world.maker, world.weth, calldata.transfer(market.agent, 2 * ONE))
    terms = PartnerAndFee(world.partner.address, 100, False, False)
    order = await world.a_delta_order(
        src_token=world.usdc, dest_token=NATIVE, src_amount=2_500 * USDC, dest_amount=99 * ONE // 100,
        expected_amount=0, partner_and_fee=pack_partner_and_fee(terms),
    )  # fmt: skip
    below = market.from_agent(ONE - 2, world.weth)
    net = ONE - 2 - (ONE - 2) // 100
    reason = f"BelowMinimum(received {net}, minimum {order.dest_amount})"
    assert await market.refused_settlement(order, below, promised=0) == reason
    settled = await market.settle(order, market.from_agent(ONE, world.weth), promised=0)
    assert settled.event.received == order.dest_amount


async def test_a_beneficiary_that_refuses_native_tokens_undoes_all(world: World, market: Market) -> None:
    """Also one that would use up all the gas it could get."""
    await world.give(world.user, world.usdc, 5_000 * USDC, world.at.delta)
    await world.mint(world.weth, world.maker, 3 * ONE)
    await world.send(world.maker, world.weth, calldata.transfer(market.agent, ONE))
    steps = market.to_agent(2_500 * USDC, world.usdc), market.from_agent(ONE, world.weth)
    waster = await contract_of(world, "loop: @loop JUMP")
    for beneficiary in (await a_refuser(world), waster, world.usdc, world.at.delta):
        order = await world.a_delta_order(
            src_token=world.usdc,
            dest_token=NATIVE,
            src_amount=2_500 * USDC,
            dest_amount=ONE,
            expected_amount=0,
            beneficiary=beneficiary,
        )
        refused = await market.refused_settlement(order, *steps)
        assert refused == f"NativeTransferFailed(to 0x{beneficiary.hex()})"


async def test_a_receiver_of_native_tokens_has_so_much_gas_and_no_more(world: World, market: Market) -> None:
    """100,000 units in a settlement, which somebody else pays; all there is where the owner withdraws."""
    await world.give(world.user, world.usdc, 5_000 * USDC, world.at.delta)
    await world.send(world.user, world.weth, calldata.transfer(market.agent, 2 * ONE))
    steps = market.to_agent(2_500 * USDC, world.usdc), market.from_agent(ONE, world.weth)
    for stores, is_paid in ((4, True), (5, False)):  # 22,100 units each
        writes = " ".join(f"1 {slot} SSTORE" for slot in range(stores))
        receiver = await contract_of(world, f"{writes} STOP")
        terms = {
            "src_token": world.usdc,
            "dest_token": NATIVE,
            "src_amount": 2_500 * USDC,
            "dest_amount": ONE,
        }
        order = await world.a_delta_order(**terms, expected_amount=0, beneficiary=receiver)
        if is_paid:
            await market.settle(order, *steps)
            assert await world.chain.balance(receiver) == ONE
        else:
            refused = await market.refused_settlement(order, *steps)
            assert refused == f"NativeTransferFailed(to 0x{receiver.hex()})"
            deposit = await world.a_delta_order(src_token=NATIVE)
            await market.deposit(deposit, ONE)
            await world.send(world.user, world.at.delta, withdraw_to(ONE, receiver))
            assert await world.chain.balance(receiver) == ONE


async def test_nobody_sends_native_tokens_to_delta_without_a_deposit(world: World) -> None:
    refused = await world.refused(world.stranger, world.at.delta, b"", value_wei=1)
    assert refused == f"NativeTransferFailed(to 0x{world.at.delta.hex()})"


async def contract_of(world: World, program: str) -> bytes:
    """A contract of an assembly text."""
    receipt = await world.send(world.stranger, b"", deploys(assembled(program)))
    assert receipt.contract is not None
    return receipt.contract


async def a_refuser(world: World, answer: str = REFUSES) -> bytes:
    """A contract that takes no native tokens, and does what anybody has it do: see `forwarded`."""
    return await contract_of(
        world,
        f"""CALLDATASIZE @go JUMPI {answer}
        go: 64 CALLDATASIZE SUB 64 0 CALLDATACOPY
        0 0 64 CALLDATASIZE SUB 0 32 CALLDATALOAD 0 CALLDATALOAD GAS CALL @done JUMPI 0 0 REVERT
        done: STOP""",
    )


def forwarded(target: bytes, data: bytes, wei: int = 0) -> bytes:
    """Calldata that makes a refuser call something."""
    return address_word(target) + uint_word(wei) + data


def native_moves(receipt: Receipt) -> list[tuple[bytes, bytes, int]]:
    """(topic, owner, wei) of what came to deposits and left them."""
    topics = (NATIVE_DEPOSITED, NATIVE_WITHDRAWN)
    return [
        (log.topics[0], log.topics[1][12:], int.from_bytes(log.data[-32:], "big"))
        for log in receipt.logs
        if log.topics[0] in topics
    ]


def withdrawn_to(receipt: Receipt) -> bytes:
    """Receiver of the one withdrawal."""
    (log,) = [log for log in receipt.logs if log.topics[0] == NATIVE_WITHDRAWN]
    return log.data[12:32]
