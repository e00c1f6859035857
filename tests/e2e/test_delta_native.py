"""The native token in, from a deposit for the order, and out, unwrapped."""

from cambist.codecs import calldata
from cambist.codecs.abi import address_word, uint_word
from cambist.codecs.contract_events import Deposited, DepositWithdrawn
from cambist.codecs.delta_calldata import deposit, pre_sign, withdraw
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from support.evm_programs import assembled, deploys
from support.settling import AnyOrder, Market, events
from support.world import NATIVE, ONE, USDC, World


async def deposited(market: Market, order: AnyOrder, wei: int) -> None:
    """By the user."""
    world = market.world
    await world.send(world.user, world.at.delta, deposit(world.delta_hash(order)), value_wei=wei)


async def test_a_sale_from_a_deposit(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    order_hash, owner = world.delta_hash(order), world.user.address
    data = deposit(order_hash)
    receipt = await world.send(world.user, world.at.delta, data, value_wei=ONE)
    assert events(receipt, Deposited) == [Deposited(order_hash, owner, ONE)]
    quote = world.a_firm_quote()
    settled = await market.settle(order, market.fill_step(quote))
    assert (settled.event.src_token, settled.event.spent) == (NATIVE, ONE)
    assert await market.deposited(order) == 0
    assert await world.chain.balance(world.at.delta) == 0
    assert await world.balance(world.weth, world.maker) == ONE
    assert await world.balance(world.weth, world.user) == 10 * ONE
    assert events(settled.receipt, DepositWithdrawn) == []


async def test_a_deposit_that_does_not_cover_a_part(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps) == "InsufficientDeposit(deposited 0)"
    await deposited(market, order, ONE - 1)
    assert await market.refused_settlement(order, *steps) == f"InsufficientDeposit(deposited {ONE - 1})"
    half = market.agent_steps(1_250 * USDC, given=ONE // 2)
    await market.settle(order, *half, amount=ONE // 2)
    assert await market.deposited(order) == ONE // 2 - 1
    await deposited(market, order, 1)
    assert (await market.settle(order, *half, amount=ONE // 2)).event.is_closed


async def test_a_deposit_is_for_one_order_of_one_owner(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    other = await world.a_delta_order(src_token=NATIVE)
    await deposited(market, other, ONE)
    await world.send(world.stranger, world.at.delta, deposit(world.delta_hash(order)), value_wei=ONE)
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps) == "InsufficientDeposit(deposited 0)"


async def test_a_deposit_is_taken_back(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    order_hash, owner = world.delta_hash(order), world.user.address
    await deposited(market, order, ONE)
    for nobody in (world.stranger, world.relayer, world.owner):
        refused = await world.refused(nobody, world.at.delta, withdraw(order_hash))
        assert refused == "InsufficientDeposit(deposited 0)"
    before = await world.chain.balance(owner)
    receipt = await world.send(world.user, world.at.delta, withdraw(order_hash))
    assert events(receipt, DepositWithdrawn) == [DepositWithdrawn(order_hash, owner, ONE)]
    gas_wei = receipt.gas_used * receipt.gas_price_wei
    assert await world.chain.balance(owner) == before + ONE - gas_wei
    refused = await world.refused(world.user, world.at.delta, withdraw(order_hash))
    assert refused == "InsufficientDeposit(deposited 0)"
    steps = market.agent_steps(2_500 * USDC)
    assert await market.refused_settlement(order, *steps) == "InsufficientDeposit(deposited 0)"


async def test_what_is_left_of_a_deposit_is_returned_when_the_order_closes(
    world: World, market: Market
) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    await deposited(market, order, 3 * ONE)
    before = await world.chain.balance(world.user.address)
    half = market.agent_steps(1_250 * USDC, given=ONE // 2)
    first = await market.settle(order, *half, amount=ONE // 2)
    assert events(first.receipt, DepositWithdrawn) == []
    last = await market.settle(order, *half, amount=ONE // 2)
    assert events(last.receipt, DepositWithdrawn) == [
        DepositWithdrawn(world.delta_hash(order), world.user.address, 2 * ONE)
    ]
    assert await world.chain.balance(world.user.address) == before + 2 * ONE
    assert await world.chain.balance(world.at.delta) == 0


async def test_a_purchase_from_a_deposit(world: World, market: Market) -> None:
    """What it did not cost is returned unwrapped; a fee stays wrapped."""
    terms = PartnerAndFee(world.partner.address, 100, False, False)
    order = await market.a_purchase(src_token=NATIVE, partner_and_fee=pack_partner_and_fee(terms))
    await deposited(market, order, order.src_amount)
    before = await world.chain.balance(world.user.address)
    half = market.fill_step(world.a_firm_quote(), maker_amount=1_250 * USDC)
    part = {"amount": 1_250 * USDC, "src_given": 52 * ONE // 100}
    event = (await market.settle(order, half, **part)).event
    assert event.spent == ONE // 2 * 101 // 100
    assert await market.deposited(order) == order.src_amount - event.spent
    rest = market.fill_step(world.a_firm_quote(), maker_amount=1_250 * USDC)
    assert (await market.settle(order, rest, **part)).event.is_closed
    assert await market.deposited(order) == 0
    returned = await world.chain.balance(world.user.address) - before
    assert returned == order.src_amount - 2 * event.spent
    assert await market.owed(world.partner.address, world.weth) == ONE // 100
    assert await world.balance(world.weth, world.user) == 10 * ONE


async def test_slices_from_a_deposit(world: World, market: Market) -> None:
    order = await market.a_twap(src_token=NATIVE, interval=0)
    await deposited(market, order, ONE)
    for given in (ONE // 3, ONE // 3, ONE - 2 * (ONE // 3)):
        await market.settle(order, *market.agent_steps(801 * USDC, given=given))
    assert await market.deposited(order) == 0


async def test_a_contract_that_refuses_native_tokens_keeps_its_deposit(world: World, market: Market) -> None:
    """The order closes all the same, and nobody else can take what is left."""
    refuser = await a_refuser(world)
    await world.chain.set_balance(refuser, 3 * ONE)
    order = await world.a_delta_order(src_token=NATIVE, owner=refuser, beneficiary=world.stranger.address)
    order_hash = world.delta_hash(order)
    sign = forwarded(world.at.delta, pre_sign(order_hash, is_signed=True))
    await world.send(world.stranger, refuser, sign)
    await world.send(world.stranger, refuser, forwarded(world.at.delta, deposit(order_hash), 3 * ONE))
    settled = await market.settle(order, *market.agent_steps(2_500 * USDC), signature=b"")
    assert settled.event.is_closed
    assert events(settled.receipt, DepositWithdrawn) == []
    assert await market.deposited(order) == await world.chain.balance(world.at.delta) == 2 * ONE
    refused = await world.refused(world.stranger, world.at.delta, withdraw(order_hash))
    assert refused == "InsufficientDeposit(deposited 0)"
    failed = await world.forced(world.stranger, refuser, forwarded(world.at.delta, withdraw(order_hash)))
    assert not failed.succeeded
    assert await market.deposited(order) == 2 * ONE


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


async def test_nobody_sends_native_tokens_to_delta_without_a_deposit(world: World) -> None:
    refused = await world.refused(world.stranger, world.at.delta, b"", value_wei=1)
    assert refused == f"NativeTransferFailed(to 0x{world.at.delta.hex()})"


async def contract_of(world: World, program: str) -> bytes:
    """A contract of an assembly text."""
    receipt = await world.send(world.stranger, b"", deploys(assembled(program)))
    assert receipt.contract is not None
    return receipt.contract


async def a_refuser(world: World) -> bytes:
    """A contract that takes no native tokens, and does what anybody has it do: see `forwarded`."""
    return await contract_of(
        world,
        """CALLDATASIZE @go JUMPI 0 0 REVERT
        go: 64 CALLDATASIZE SUB 64 0 CALLDATACOPY
        0 0 64 CALLDATASIZE SUB 0 32 CALLDATALOAD 0 CALLDATALOAD GAS CALL @done JUMPI 0 0 REVERT
        done: STOP""",
    )


def forwarded(target: bytes, data: bytes, wei: int = 0) -> bytes:
    """Calldata that makes a refuser call something."""
    return address_word(target) + uint_word(wei) + data
