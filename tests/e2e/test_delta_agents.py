"""Agents that refuse, lie, waste gas, re-enter or reach for what is not theirs: the owner loses nothing."""

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import (
    address_word,
    bytes_tail,
    encode,
    selector,
    tuples_tail,
    uint_word,
)
from cambist.codecs.contracts.delta_calldata import (
    EXECUTOR,
    SettlementStep,
    deposit_native_and_pre_sign,
    withdraw_native,
)
from cambist.codecs.contracts.owner_calldata import set_relayer
from cambist.engine.chain.deploy.deploy import create
from support.chain.evm_programs import assembled, deploys
from support.chain.world import ONE, USDC, World
from support.contracts.settling import REFUSE, STEP_GAS, Market

FAIR = 2_500 * USDC
FILL = selector("fill(address,uint256,bytes)")
COLLECT = selector("collect(address,address)")
CALL = selector("call(bytes32,uint256,address,uint256,bytes)")
SET_HOOK = selector("setHook(address,bytes)")


async def test_an_agent_that_refuses(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    refused = await market.refused_settlement(
        order, market.to_agent(ONE), SettlementStep(market.agent, STEP_GAS, REFUSE)
    )
    assert refused == "StepFailed(step 1, reason Refused())"


async def test_an_agent_that_lies(world: World, market: Market) -> None:
    """The agent keeps the source and delivers too little, nothing, another token, or to another address."""
    order = await world.a_delta_order()
    elsewhere = address_word(world.usdc) + address_word(world.stranger.address) + uint_word(FAIR)
    lies: list[tuple[SettlementStep, ...]] = [
        (market.from_agent(2_400 * USDC - 1),),
        (),
        (market.from_agent(2_400 * ONE, world.dai),),
        (SettlementStep(market.agent, STEP_GAS, selector("deliver(address,address,uint256)") + elsewhere),),
        (SettlementStep(world.stranger.address, STEP_GAS, REFUSE),),  # a call of nobody succeeds
    ]
    for lie in lies:
        refused = await market.refused_settlement(order, market.to_agent(ONE), *lie)
        received = 2_400 * USDC - 1 if lie is lies[0] else 0
        assert refused == f"BelowMinimum(received {received}, minimum 2400000000)"


async def test_an_agent_that_cannot_deliver(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    refused = await market.refused_settlement(order, *market.agent_steps(1_000_000 * USDC))
    assert refused == "StepFailed(step 1, reason TransferFailed())"


async def test_an_agent_keeps_what_it_does_not_need_for_its_bid(world: World, market: Market) -> None:
    """The rest of the source stays with its caller: its next settlement moves it, another agent's cannot."""
    kept, promised = ONE // 10, 2_450 * USDC
    order = await world.a_delta_order(expected_amount=0)
    settled = await market.settle(order, *market.agent_steps(promised, ONE - kept), promised=promised)
    assert (settled.event.spent, settled.event.received) == (ONE, promised)
    assert await world.balance(world.weth, market.caller) == kept
    later = await world.a_delta_order()
    steps = market.to_agent(kept), *market.agent_steps(FAIR)
    refused = await market.refused_settlement(later, *steps, agent="another")
    assert refused.startswith("StepFailed(step 1,")
    before = await world.balance(world.weth, market.agent)
    await market.settle(later, *steps)
    assert await world.balance(world.weth, market.agent) == before + ONE + kept
    assert await world.balance(world.weth, market.caller) == 0


async def test_no_step_cancels_a_makers_order(world: World, market: Market) -> None:
    """The executor reads the data of every step to the RFQ contract as a batch of fills."""
    order = await world.a_delta_order()
    quote = world.a_firm_quote()
    cancel = SettlementStep(world.at.rfq, STEP_GAS, calldata.cancel_order(world.rfq_hash(quote)))
    assert await market.refused_settlement(order, cancel) == ""
    assert (await market.settle(order, market.fill_step(quote))).event.is_closed


async def test_a_quote_made_for_another_user(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    theirs = world.a_firm_quote(world.stranger)
    refused = await market.refused_settlement(order, market.fill_step(theirs))
    assert refused == f"NotTheUsers(nonceAndMeta {theirs.nonce_and_meta})"
    own = world.a_firm_quote(maker_amount=FAIR // 2, taker_amount=ONE // 2)
    refused = await market.refused_settlement(order, market.fill_step(own, theirs))
    assert refused == f"NotTheUsers(nonceAndMeta {theirs.nonce_and_meta})"
    anybodys = world.an_rfq_order()
    assert (await market.settle(order, market.fill_step(anybodys))).event.is_closed


async def test_a_batch_of_nothing_or_of_two_pairs(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    assert await market.refused_settlement(order, market.fill_step()) == "NoOrders()"
    quotes = world.a_firm_quote(), world.a_firm_quote(maker_asset=world.dai)
    assert await market.refused_settlement(order, market.fill_step(*quotes)) == "MixedPair()"
    reverse = world.a_firm_quote(maker_asset=world.weth, taker_asset=world.usdc)
    assert await market.refused_settlement(order, market.fill_step(quotes[0], reverse)) == "MixedPair()"


@pytest.mark.parametrize("signature", ["InvalidSignature()", "NonceUsed(uint256)", "PullFailed(address)"])
async def test_no_token_of_a_fill_speaks_for_delta(world: World, market: Market, signature: str) -> None:
    """An agent names the tokens of its fills: their errors must not pass for those that excuse an agent."""
    asked = selector("allowance(address,address)").hex()
    token = await world.send(
        world.owner,
        b"",
        deploys(
            assembled(
                f"0 CALLDATALOAD 0xe0 SHR 0x{asked} EQ @refuse JUMPI 1 0 MSTORE 32 0 RETURN "
                f"refuse: 0x{selector(signature).hex()} 0xe0 SHL 0 MSTORE 36 0 REVERT"
            )
        ),
    )
    assert token.contract
    quote = world.a_firm_quote(taker_asset=token.contract)
    refused = await market.refused_settlement(await world.a_delta_order(), market.fill_step(quote))
    assert refused == f"TransferFailed(token 0x{token.contract.hex()})"


async def test_a_quote_that_cannot_be_filled(world: World, market: Market) -> None:
    """In the Rfq's own words."""
    order = await world.a_delta_order()
    for quote in (
        world.a_firm_quote(expiry=await world.now_s() - 1),
        world.a_firm_quote(taker_amount=ONE // 2),
        world.a_firm_quote(maker_amount=1_000_000 * USDC),
    ):
        for amounts in ({}, {"maker_amount": quote.maker_amount + 1}):
            fill = market.fill_step(quote, **amounts)
            for number, before in enumerate(((), (market.from_agent(1),))):
                refused = await market.refused_settlement(order, *before, fill, receiver=EXECUTOR)
                reason = "Couldn't swap the requested fill amount"
                assert refused == f"StepFailed(step {number}, reason {reason})"


async def test_a_maker_that_takes_its_signature_elsewhere(world: World, market: Market) -> None:
    """The same quote cannot be filled twice, by two owners' orders or one."""
    quote = world.a_firm_quote()
    await market.settle(await world.a_delta_order(), market.fill_step(quote))
    refused = await market.refused_settlement(await world.a_delta_order(), market.fill_step(quote))
    assert refused.startswith("StepFailed(step 0, reason Couldn't swap")


async def test_what_somebody_left_with_the_executor_is_nobodys_who_does_not_name_it(
    world: World, market: Market
) -> None:
    await world.mint(world.usdc, world.at.executor, 7)
    steps = market.agent_steps(FAIR)
    assert (await market.settle(await world.a_delta_order(), *steps)).event.received == FAIR
    order = await world.a_delta_order(beneficiary=world.stranger.address)
    named = await market.settle(order, *steps, leftovers=(world.usdc,))
    assert named.event.received == FAIR
    assert await world.balance(world.usdc, world.user) == FAIR + 7, "it is the owner's"
    await world.send(world.user, world.weth, calldata.transfer(world.at.executor, 7))
    purchase = await market.settle(await market.a_purchase(), *steps, src_given=ONE)
    assert purchase.event.spent == ONE
    assert await world.balance(world.weth, world.at.executor) == 7


async def test_what_somebody_left_in_delta_is_nobodys(world: World, market: Market) -> None:
    await world.mint(world.usdc, world.at.delta, 7)
    await world.send(world.user, world.weth, calldata.transfer(world.at.delta, 5))
    for order, how in ((await world.a_delta_order(), {}), (await market.a_purchase(), {"src_given": ONE})):
        event = (await market.settle(order, *market.agent_steps(FAIR), **how)).event
        assert (event.spent, event.received) == (ONE, FAIR)
    odd = await world.new_token()
    await world.give(world.user, odd, ONE, world.at.delta)
    await world.mint(odd, world.at.delta, ONE)
    await world.send(world.owner, odd, selector("setTransferFee(uint256)") + uint_word(100))
    purchase = await market.a_purchase(src_token=odd)
    refused = await market.refused_settlement(purchase, market.from_agent(FAIR), src_given=ONE)
    assert refused == "Panic(17): overflow", "less arrives than is given"


# --- Hostile tokens ---------------------------------------------------------------------------------------


def hooked(target: bytes, data: bytes) -> bytes:
    """Calldata: from now on a token calls this in the middle of each transfer."""
    return SET_HOOK + encode(address_word(target), bytes_tail(data))


@pytest.mark.parametrize("entered", ["settle", "withdraw", "call"])
async def test_a_token_that_enters_again_is_refused(world: World, market: Market, entered: str) -> None:
    """The token is even a relayer; its refused call fails the transfer."""
    order, second = await world.a_delta_order(), await world.a_delta_order()
    await world.send(world.owner, world.at.delta, set_relayer(world.usdc, allowed=True))
    steps = market.agent_steps(FAIR)
    target, data = {
        "settle": (world.at.delta, market.settlement(second, *steps)),
        "withdraw": (world.at.delta, withdraw_native(0)),
        "call": (market.caller, CALL + encode(bytes(128), bytes_tail(b""))),
    }[entered]
    await world.send(world.owner, world.usdc, hooked(target, data))
    refused = await market.refused_settlement(order, *steps)
    assert refused == "StepFailed(step 1, reason TransferFailed())"


async def test_a_token_that_tries_again_and_again_gets_nothing(world: World, market: Market) -> None:
    """The token swallows the failures of its calls: the settlement goes on and the calls have no effect."""
    order, second = await world.a_delta_order(), await world.a_delta_order()
    hash_of_second = world.delta_hash(second)
    await world.send(world.user, world.at.delta, deposit_native_and_pre_sign(hash_of_second), value_wei=ONE)
    many = await create(world.chain, world.owner, "DevMulticall")
    await world.send(world.owner, world.at.delta, set_relayer(many, allowed=True))
    steps = [msgspec.structs.replace(step, gas=1_000_000) for step in market.agent_steps(FAIR)]
    collect = COLLECT + address_word(world.weth) + address_word(many)
    tried = [
        (world.at.delta, market.settlement(second, *steps)),
        (world.at.delta, withdraw_native(0)),
        (world.at.executor, collect),
        (world.at.executor, FILL + encode(address_word(many) + bytes(32), bytes_tail(b""))),
        (market.caller, CALL + encode(bytes(128), bytes_tail(b""))),
    ]
    calls = [encode(address_word(target), uint_word(1), bytes_tail(data)) for target, data in tried]
    data = selector("aggregate3((address,bool,bytes)[])") + encode(tuples_tail(calls))
    await world.send(world.owner, world.usdc, hooked(many, data))
    event = (await market.settle(order, *steps)).event
    assert (event.spent, event.received) == (ONE, FAIR)
    assert await market.filled(second) == 0
    assert await market.deposited(second) == ONE
    assert await world.balance(world.weth, world.user) == 9 * ONE
    assert await world.balance(world.weth, many) == 0


@pytest.mark.parametrize("blocked", ["the beneficiary", "Delta"])
async def test_a_token_that_blocks_somebody(world: World, market: Market, blocked: str) -> None:
    order = await world.a_delta_order()
    who = {
        "the beneficiary": world.user.address,
        "Delta": world.at.delta,
    }[blocked]
    data = selector("setBlocked(address,bool)") + address_word(who) + uint_word(1)
    await world.send(world.owner, world.usdc, data)
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
    token = f"TransferFailed(token 0x{world.usdc.hex()})"
    agents = "StepFailed(step 1, reason TransferFailed())"
    assert refused == (agents if blocked == "Delta" else token)
