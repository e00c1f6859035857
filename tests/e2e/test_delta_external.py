"""Orders that a handler trades: what it delivers is measured, and the example deposits into a vault."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts.abi import (
    address_word,
    bytes_tail,
    decode_uint,
    encode,
    selector,
    uint_word,
)
from cambist.codecs.contracts.calldata import allowance, approve
from cambist.codecs.contracts.delta_calldata import (
    agent_caller,
    deposit_native_and_pre_sign,
    withdraw_native,
)
from cambist.codecs.eip712_orders.delta import KIND_BUY, ExternalOrder
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.config.errors import Reverted
from cambist.engine.chain.port import EthCall
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.handlers import (
    BOMB,
    CALL,
    DELIVER,
    REFUSE,
    WASTE,
    Deposits,
    a_handler,
    a_vault_handler,
    acts,
)
from support.contracts.settling import Market

FAIR = 2_500 * USDC
HANDLE = selector("handle((bytes32,address,address,uint256,address,uint256,address),bytes)")


@pytest.fixture
async def handler(world: World, market: Market) -> bytes:
    return await a_handler(world, 10 * FAIR)


async def test_the_handler_gets_the_source_and_what_it_delivers_is_paid(
    world: World, market: Market, handler: bytes
) -> None:
    order = await market.an_external_order(handler=handler, data=acts(DELIVER, FAIR))
    settled = await market.settle(order)
    assert (settled.event.spent, settled.event.received) == (ONE, FAIR)
    assert await world.balance(world.weth, handler) == ONE
    assert await world.balance(world.usdc, world.user) == FAIR


async def test_a_purchase_gives_what_the_relayer_says_and_what_is_left_comes_back(
    world: World, market: Market, handler: bytes
) -> None:
    terms = {"kind": KIND_BUY, "src_amount": 11 * ONE // 10, "dest_amount": FAIR, "expected_amount": ONE}
    order = await market.an_external_order(handler=handler, data=acts(DELIVER, FAIR, back=7), **terms)
    settled = await market.settle(order, src_given=ONE, promised=ONE)
    assert (settled.event.spent, settled.event.received) == (ONE - 7, FAIR)
    short = await market.an_external_order(handler=handler, data=acts(DELIVER, FAIR - 1), **terms)
    refused = await market.refused_settlement(short, src_given=ONE)
    assert refused == f"BelowMinimum(received {FAIR - 1}, minimum {FAIR})"


async def test_the_handler_of_a_purchase_is_told_what_it_is_given_and_not_what_is_taken_with_the_fee(
    world: World, market: Market, handler: bytes
) -> None:
    terms = {"kind": KIND_BUY, "src_amount": 11 * ONE // 10, "dest_amount": FAIR, "expected_amount": ONE}
    fee = int.from_bytes(world.partner.address, "big") << 96 | 100
    order = await market.an_external_order(
        handler=handler, data=acts(DELIVER, FAIR), partner_and_fee=fee, **terms
    )
    settled = await market.settle(order, src_given=ONE, promised=11 * ONE // 10)
    assert settled.event.spent > ONE
    (told,) = [log.data for log in settled.receipt.logs if log.address == handler]
    # Handled_: the caller, then order, owner, source, amount given, destination, amount wanted
    assert (decode_uint(told, 4), decode_uint(told, 6)) == (ONE, FAIR)


async def test_what_a_handler_does_not_deliver_undoes_all(
    world: World, market: Market, handler: bytes
) -> None:
    least = 2_400 * USDC
    short = await market.an_external_order(handler=handler, data=acts(DELIVER, least - 1))
    assert await market.refused_settlement(short) == f"BelowMinimum(received {least - 1}, minimum {least})"
    order = await market.an_external_order(handler=handler, data=acts(DELIVER, FAIR))
    refused = await market.refused_settlement(order, promised=FAIR + 1)
    assert refused.startswith("PromiseBroken(")
    await market.settle(order, promised=FAIR)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (acts(REFUSE), "Refused()"),
        (acts(WASTE), "none"),
        (acts(BOMB, 1_000_000), "00000000"),
        (b"", "none"),
    ],
    ids=["refuses", "wastes", "bombs", "cannot read"],
)
async def test_a_handler_that_fails_costs_its_owner_nothing(
    world: World, market: Market, handler: bytes, data: bytes, says: str
) -> None:
    order = await market.an_external_order(handler=handler, data=data)
    with pytest.raises(Reverted) as refusal:
        await world.chain.call(
            EthCall(world.at.delta, market.settlement(order), world.relayer.address, gas_max=8_000_000)
        )
    assert refusal.value.reason.startswith("StepFailed(step 0, ")
    assert says in refusal.value.reason
    assert await market.filled(order) == 0


async def test_a_handler_without_code_delivers_nothing(world: World, market: Market) -> None:
    order = await market.an_external_order(handler=world.stranger.address)
    assert (await market.refused_settlement(order)).startswith("BelowMinimum(received 0,")


@pytest.mark.parametrize("what", ["settles", "withdraws", "takes"])
async def test_a_handler_that_calls_back_gets_nothing(
    world: World, market: Market, handler: bytes, what: str
) -> None:
    """A handler calls Delta in the settlement, and the token as if it were Delta."""
    other = await world.a_delta_order()
    await world.send(
        world.user, world.at.delta, deposit_native_and_pre_sign(world.delta_hash(other)), value_wei=ONE
    )
    target, data = {
        "settles": (world.at.delta, market.settlement(other, *market.agent_steps(FAIR))),
        "withdraws": (world.at.delta, withdraw_native(1)),
        "takes": (
            world.weth,
            selector("transferFrom(address,address,uint256)")
            + address_word(world.user.address)
            + address_word(handler)
            + uint_word(ONE),
        ),
    }[what]
    order = await market.an_external_order(handler=handler, data=acts(CALL, FAIR, target=target, data=data))
    before = await world.balance(world.weth, world.user), await market.deposited(order)
    settled = await market.settle(order)
    assert settled.receipt.logs[-3].data[-32:] != uint_word(1)  # of the handler's event: the call failed
    assert await market.filled(other) == 0
    assert await world.balance(world.weth, world.user) == before[0] - ONE
    assert await market.deposited(order) == before[1]


async def test_agents_have_neither_steps_nor_the_handlers_caller(
    world: World, market: Market, handler: bytes
) -> None:
    order = await market.an_external_order(handler=handler, data=acts(DELIVER, FAIR))
    all_steps = [*market.agent_steps(1)]
    assert len(all_steps) > 1
    for given in (all_steps[:1], all_steps):
        assert await market.refused_settlement(order, *given) == "InvalidSteps()"
    plain = await world.a_delta_order()
    steps = tuple(market.agent_steps(FAIR))
    execution = msgspec.structs.replace(market.execution(plain, *steps), agent=bytes(32))
    data = market.calldata_of(plain, execution, world.delta_signed(plain))
    assert await world.refused(world.relayer, world.at.delta, data) == "InvalidAgent()"


async def test_the_handlers_caller_is_the_same_for_every_agent_and_calls_for_delta_alone(
    world: World, market: Market, handler: bytes
) -> None:
    order = await market.an_external_order(handler=handler, data=acts(DELIVER, FAIR))
    settled = await market.settle(order, agent="some agent")
    caller = await world.ask(world.at.delta, agent_caller(bytes(32)))
    handled = next(log for log in settled.receipt.logs if log.address == handler)
    assert int.from_bytes(handled.data[:32], "big") == caller
    assert handled.data[32:64] == world.delta_hash(order)


async def test_the_signed_data_and_handler_bind(world: World, market: Market, handler: bytes) -> None:
    order = await market.an_external_order(handler=handler, data=acts(DELIVER, FAIR))
    signed = world.delta_signed(order)
    for changed in ({"data": acts(DELIVER, 2_400 * USDC)}, {"handler": market.agent}, {"kind": KIND_BUY}):
        other = msgspec.structs.replace(order, **changed)
        refused = await market.refused_settlement(other, signature=signed, src_given=ONE)
        assert refused == "InvalidSignature()"


async def test_native_tokens_come_from_the_deposit_and_wrapped(
    world: World, market: Market, handler: bytes
) -> None:
    order = await market.an_external_order(src_token=NATIVE, handler=handler, data=acts(DELIVER, FAIR))
    await market.deposit(order, ONE)
    await market.settle(order)
    assert await world.balance(world.weth, handler) == ONE
    assert await market.deposited(order) == 0


# --- The example ------------------------------------------------------------------------------------------


@pytest.fixture
async def deposits(world: World, market: Market) -> Deposits:
    return await a_vault_handler(world)


async def an_order(market: Market, deposits: Deposits, data: bytes, **changed: Any) -> ExternalOrder:
    """The user's WETH becomes shares of the vault, one for each USDC."""
    terms = {"dest_token": deposits.vault, "handler": deposits.handler, "data": data}
    return await market.an_external_order(**terms | changed)


async def test_weth_becomes_yield_in_one_signature(world: World, market: Market, deposits: Deposits) -> None:
    quote = world.an_rfq_order()
    order = await an_order(market, deposits, deposits.fills(quote))
    settled = await market.settle(order)
    assert settled.event.received == quote.maker_amount
    assert await world.balance(deposits.vault, world.user) == quote.maker_amount
    for token in (world.weth, world.usdc, deposits.vault):
        assert await world.balance(token, deposits.handler) == 0
    for token, spender in ((world.weth, world.at.rfq), (world.usdc, deposits.vault)):
        assert await world.ask(token, allowance(deposits.handler, spender)) == 0


async def test_a_token_of_the_vaults_own_needs_no_maker(
    world: World, market: Market, deposits: Deposits
) -> None:
    await world.give(world.user, world.usdc, FAIR, world.at.delta)
    order = await an_order(market, deposits, b"", src_token=world.usdc, src_amount=FAIR, dest_amount=FAIR)
    await market.settle(order)
    assert await world.balance(deposits.vault, world.user) == FAIR


async def test_a_maker_that_has_gone_costs_the_owner_nothing(
    world: World, market: Market, deposits: Deposits
) -> None:
    quote = world.an_rfq_order()
    order = await an_order(market, deposits, deposits.fills(quote))
    await world.send(world.maker, world.usdc, approve(world.at.rfq, 0))
    assert (await market.refused_settlement(order)).startswith("StepFailed(step 0, ")


async def test_nobody_else_has_the_example_called(world: World, deposits: Deposits) -> None:
    handled = (bytes(32), address_word(world.user.address), address_word(world.usdc), uint_word(0))
    words = b"".join((*handled, address_word(deposits.vault), uint_word(0), address_word(deposits.handler)))
    data = HANDLE + encode(words, bytes_tail(b""))
    for key in (world.stranger, world.relayer):
        assert await world.refused(key, deposits.handler, data) == "NotDeltas()"


async def test_a_quote_for_the_example_itself_fills_nobodys_order(
    world: World, market: Market, deposits: Deposits
) -> None:
    """Anybody could have the example fill it: what a maker signed for one user would be another's."""
    quote = world.an_rfq_order(
        taker=deposits.handler, nonce_and_meta=pack_firm(world.user.address, 7), maker_amount=2_900 * USDC
    )
    order = await an_order(market, deposits, deposits.fills(quote))
    assert await market.refused_settlement(order) == "StepFailed(step 0, reason NotOpen())"


async def test_a_maker_of_another_token_leaves_nothing_with_the_example(
    world: World, market: Market, deposits: Deposits
) -> None:
    in_usdc = world.an_rfq_order(maker_amount=2_400 * USDC, taker_amount=96 * ONE // 100)
    in_dai = world.an_rfq_order(maker_asset=world.dai, maker_amount=100 * ONE, taker_amount=4 * ONE // 100)
    order = await an_order(market, deposits, deposits.fills(in_usdc, in_dai))
    assert await market.refused_settlement(order) == "StepFailed(step 0, reason OtherTokens())"
