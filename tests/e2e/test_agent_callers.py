"""An agent's calls come from its own caller contract; no other agent can use its allowances or leftovers."""

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import (
    address_word,
    bytes_tail,
    decode_uint,
    encode,
    selector,
    tuples_tail,
    uint_word,
)
from cambist.codecs.contracts.contract_events import topic
from cambist.codecs.contracts.delta_calldata import (
    SettlementStep,
    agent_caller,
    agent_id,
    create_agent_caller,
)
from cambist.codecs.transactions import create2_address
from cambist.config.errors import Reverted
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.deploy.create2_factory import FACTORY
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import EthCall
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.evm_programs import assembled, deploys
from support.chain.world import MOST, NATIVE, ONE, USDC, World
from support.contracts.agent_desks import FAIR, SIGNER, STOCK, a_desk
from support.contracts.settling import AGENT, STEP_GAS, Market
from support.contracts.swapping import told

STEP_GAS_MAX = 5_000_000
REASON_BYTES_MAX = 256
ORDER_HASH = selector("orderHash()")
CALL = selector("call(bytes32,uint256,address,uint256,bytes)")
AGGREGATE = selector("aggregate3((address,bool,bytes)[])")
LEAVING = {
    "approve(address,uint256)": True,
    "increaseAllowance(address,uint256)": False,
    "approve(address)": False,
    "allow(address,uint256)": False,
    "approveDelegation(address,uint256)": False,
    "setApprovalForAll(address,bool)": False,
    "authorizeOperator(address)": False,
}
"""Functions that give somebody rights over what their caller has, and whether our tokens have them."""
TAKING = (
    "transferFrom(address,address,uint256)",
    "move(address,address,uint256)",
    "pull(address,uint256)",
    "burnFrom(address,uint256)",
    "redeem(uint256,address,address)",
    "transferFromAndCall(address,address,uint256)",
)
"""Functions with which a spender takes what its allowance covers."""


async def _program(world: World, text: str) -> bytes:
    init_code = deploys(assembled(text))
    await world.send(world.stranger, FACTORY, bytes(32) + init_code)
    return create2_address(FACTORY, bytes(32), init_code)


# --- Whose they are ----------------------------------------------------------------------------------------


async def test_each_agent_has_one_where_its_first_settlement_or_anybody_creates_it(
    world: World, market: Market
) -> None:
    created = topic("AgentCallerCreated(bytes32,address)")
    places = {name: caller_of(world.at.delta, name) for name in (AGENT, "ann", "bob")}
    assert len(set(places.values())) == 3
    for name, place in places.items():
        assert await world.ask(world.at.delta, agent_caller(agent_id(name))) == int.from_bytes(place)
        assert await world.chain.code(place) == b""
    first = [(agent_id(AGENT), address_word(places[AGENT]))]
    for expected in (first, []):  # the second settlement finds it there
        settled = await market.settle(await world.a_delta_order(), *market.agent_steps(FAIR))
        logs = [log for log in settled.receipt.logs if log.topics[0] == created]
        assert [(log.topics[1], log.data) for log in logs] == expected
    for _ in range(2):
        await world.send(world.stranger, world.at.delta, create_agent_caller(agent_id("ann")))
    await market.settle(await world.a_delta_order(), *market.agent_steps(FAIR), agent="ann")
    await market.settle(await world.a_delta_order(), market.fill_step(world.a_firm_quote()), agent="bob")
    codes = [await world.chain.code(places[name]) for name in (AGENT, "ann", "bob")]
    assert codes[0] == codes[1] != b"" == codes[2]


async def test_nobody_but_delta_has_it_call(world: World, market: Market) -> None:
    await market.settle(await world.a_delta_order(), *market.agent_steps(FAIR))
    words = bytes(32) + uint_word(0) + address_word(world.usdc) + uint_word(STEP_GAS)
    take = calldata.transfer(world.stranger.address, 1)
    data = CALL + encode(words, bytes_tail(take))
    await world.mint(world.usdc, market.caller, USDC)
    for key in (world.stranger, world.owner, world.relayer, world.user):
        assert await world.refused(key, market.caller, data) == "NotDelta()"
    functions = [entry.name for entry in artifact("AgentCaller").abi if entry.type == "function"]
    assert sorted(functions) == ["STEP_GAS_MAX", "call", "delta", "orderHash"]


# --- A desk that trusts its own caller alone ---------------------------------------------------------------


async def test_a_desk_trades_in_its_own_agents_settlement_of_the_order_that_it_signed_for(
    world: World, market: Market
) -> None:
    desk, order = await a_desk(world), await world.a_delta_order()
    settled = await market.settle(order, *desk.steps(desk.terms(order)), agent="ann")
    assert settled.event.received == FAIR
    assert await world.balance(world.weth, desk.address) == ONE
    assert await world.balance(world.usdc, desk.address) == STOCK - FAIR
    caller = caller_of(world.at.delta, "ann")
    assert set((await world.balances(caller)).values()) == {0}
    assert await world.ask(world.weth, calldata.allowance(caller, desk.address)) == 0
    assert await world.ask(caller, ORDER_HASH) == 0


async def test_no_other_agent_spends_a_desks_stock(world: World, market: Market) -> None:
    """Bob settles an order over dust, with a call to Ann's desk, whose signature he has seen in public."""
    desk = await a_desk(world)
    order, dust = await world.a_delta_order(), await world.a_delta_order(src_amount=1, dest_amount=0)
    public = desk.steps(desk.terms(order))
    mallory = world.stranger.address
    stolen = desk.steps(desk.terms(dust, taken=0, given=STOCK, receiver=mallory))
    for settled, steps in ((order, public), (dust, stolen)):
        refused = await market.refused_settlement(settled, *steps, agent="bob")
        assert refused == "StepFailed(step 1, reason NotOurCaller())"
    for key in (world.stranger, world.relayer, world.owner):
        assert await world.refused(key, desk.address, public[1].data) == "NotOurCaller()"
    assert await world.balance(world.usdc, desk.address) == STOCK


async def test_not_even_its_own_agents_settlements_trade_on_what_it_did_not_sign(
    world: World, market: Market
) -> None:
    """As somebody would try who has a relayer's key."""
    desk, order, other = await a_desk(world), await world.a_delta_order(), await world.a_delta_order()
    terms = desk.terms(order)
    refusals = (
        (other, desk.steps(terms), f"AnotherOrder(orderHash 0x{world.delta_hash(other).hex()})"),
        (order, desk.steps(terms, world.relayer), "NotSigned()"),
        (order, desk.steps(desk.terms(order, deadline=await world.now_s() - 1)), "TermsExpired()"),
        (order, desk.steps(desk.terms(order, taken=ONE + 1)), told("TransferFailed", token=world.weth)),
    )
    for settled, steps, reason in refusals:
        refused = await market.refused_settlement(settled, *steps, agent="ann")
        assert refused == f"StepFailed(step 1, reason {reason})"
    half = desk.terms(order, taken=ONE // 2, given=FAIR // 2)
    await market.settle(order, *desk.steps(half), agent="ann", amount=ONE // 2)
    refused = await market.refused_settlement(order, *desk.steps(half), agent="ann", amount=ONE // 2)
    assert refused == "StepFailed(step 1, reason TermsUsed())"
    again = desk.steps(msgspec.structs.replace(half, nonce=1))
    assert (await market.settle(order, *again, agent="ann", amount=ONE // 2)).event.is_closed


async def test_a_caller_tells_of_an_order_during_its_calls_alone(world: World, market: Market) -> None:
    """The beneficiary, paid after the calls in the same transaction, reads no order hash from the caller."""
    caller = caller_of(world.at.delta, AGENT)
    await world.send(world.stranger, world.at.delta, create_agent_caller(agent_id(AGENT)))
    ask = f"0x{ORDER_HASH.hex()} 224 SHL 0 MSTORE 32 0 4 0 0x{caller.hex()} GAS STATICCALL POP"
    asks = await _program(world, f"{ask} CALLDATASIZE 32 0 LOG1 STOP")
    await world.give(world.user, world.usdc, FAIR, world.at.delta)
    order = await world.a_delta_order(
        src_token=world.usdc, dest_token=NATIVE, src_amount=FAIR, dest_amount=ONE, expected_amount=0,
        beneficiary=asks,
    )  # fmt: skip
    await world.mint(world.weth, world.stranger, ONE)
    await world.send(world.stranger, world.weth, calldata.transfer(market.agent, ONE))
    steps = SettlementStep(asks, STEP_GAS, b"?"), market.from_agent(ONE, world.weth)
    settled = await market.settle(order, *steps)
    heard = [(log.topics[0][-1], log.data) for log in settled.receipt.logs if log.address == asks]
    assert heard == [(1, world.delta_hash(order)), (0, bytes(32))]


async def test_what_a_desk_has_its_owner_takes_out(world: World, market: Market) -> None:
    desk = await a_desk(world)
    words = address_word(world.usdc) + address_word(world.taker.address) + uint_word(STOCK)
    withdraw = selector("withdraw(address,address,uint256)") + words
    before = await world.balance(world.usdc, world.taker)
    for key in (world.stranger, world.relayer, SIGNER):
        await world.chain.set_balance(key.address, ONE)
        assert await world.refused(key, desk.address, withdraw) == "NotOwner()"
    await world.send(world.owner, desk.address, withdraw)
    assert await world.balance(world.usdc, world.taker) == before + STOCK


# --- What an agent leaves behind ---------------------------------------------------------------------------


async def test_an_allowance_that_an_agent_leaves_is_over_nothing_of_anybodys(
    world: World, market: Market
) -> None:
    """The agent's caller gives the allowance, whichever approval function is called, alone or in a batch."""
    tokens = (world.weth, world.usdc, world.dai)
    batch = await create(world.chain, world.owner, "DevMulticall")
    others = {
        "executor": world.at.executor,
        "delta": world.at.delta,
        "router": world.at.router,
        "vault": world.at.fee_vault,
        "ann": caller_of(world.at.delta, "ann"),
        "user": world.user.address,
    }
    spender = address_word(world.stranger.address)
    for function, works in LEAVING.items():
        data = selector(function) + spender + uint_word(MOST)
        steps = [SettlementStep(token, STEP_GAS, data) for token in tokens]
        inner = encode(address_word(world.usdc), uint_word(1), bytes_tail(data))
        steps.append(SettlementStep(batch, STEP_GAS, AGGREGATE + encode(tuples_tail([inner]))))
        order = await world.a_delta_order()
        if works:
            await market.settle(order, *steps, *market.agent_steps(FAIR), agent="bob")
        else:
            refused = await market.refused_settlement(order, *steps, agent="bob")
            assert refused.startswith("StepFailed(step 0,"), function
        for name, other in others.items():
            for token in tokens:
                allowed = calldata.allowance(other, world.stranger.address)
                assert await world.ask(token, allowed) == 0, (function, name)
    left = calldata.allowance(caller_of(world.at.delta, "bob"), world.stranger.address)
    assert await world.ask(world.usdc, left) == MOST
    honest = await market.settle(await world.a_delta_order(), *market.agent_steps(FAIR), agent="ann")
    assert honest.event.received == FAIR


async def test_what_a_user_has_allowed_by_mistake_is_no_agents(world: World, market: Market) -> None:
    """A settlement step cannot spend an allowance to the executor, the Router or Delta."""
    for spender in (world.at.executor, world.at.router, world.at.delta):
        await world.approve(world.user, world.weth, spender)
    order = await world.a_delta_order()
    words = address_word(world.user.address) + address_word(market.agent) + uint_word(ONE)
    take = SettlementStep(world.weth, STEP_GAS, selector("transferFrom(address,address,uint256)") + words)
    assert (await market.refused_settlement(order, take)).startswith("StepFailed(step 0,")


async def test_whoever_is_called_sees_the_agents_own_caller_alone(world: World, market: Market) -> None:
    """Not the executor or Delta, whom users allow: by whatever name a token lets a spender take."""
    asks = await _program(world, "CALLER 0 MSTORE 7 32 0 LOG1 STOP")
    words = address_word(world.user.address) + address_word(world.stranger.address) + uint_word(ONE)
    steps = [SettlementStep(asks, STEP_GAS, selector(function) + words) for function in TAKING]
    order = await world.a_delta_order()
    settled = await market.settle(order, *steps, *market.agent_steps(FAIR), agent="bob")
    seen = [log.data for log in settled.receipt.logs if log.address == asks]
    assert seen == [address_word(caller_of(world.at.delta, "bob"))] * len(TAKING)


async def test_no_call_reaches_what_contracts_keep_for_their_callers(world: World, market: Market) -> None:
    """The executor serves Delta and the Router alone, the vault its collectors, Delta its relayers."""
    order, second = await world.a_delta_order(), await world.a_delta_order()
    token, to = address_word(world.weth), address_word(world.stranger.address)
    fill = encode(address_word(world.user.address), uint_word(0), bytes_tail(b""))
    settle = market.settlement(second, *market.agent_steps(FAIR))
    tried = (
        (world.at.executor, selector("collect(address,address)") + token + to, "NotCaller()"),
        (world.at.executor, selector("fill(address,uint256,bytes)") + fill, "NotCaller()"),
        (world.at.fee_vault, selector("credit(address,address,uint256)") + to + token + to, "NotCollector()"),
        (world.at.delta, settle, "NotRelayer()"),
    )
    for target, data, reason in tried:
        refused = await market.refused_settlement(order, SettlementStep(target, 1_000_000, data))
        assert refused == f"StepFailed(step 0, reason {reason})"


# --- Gas and answers ---------------------------------------------------------------------------------------


async def test_a_call_gets_the_gas_it_asks_for_and_no_more_than_the_most(
    world: World, market: Market
) -> None:
    order = await world.a_delta_order()
    for gas in (STEP_GAS_MAX + 1, MOST):
        too_much = SettlementStep(market.agent, gas, selector("refuse()"))
        assert await market.refused_settlement(order, too_much) == told("TooMuchGas", gas=gas)
    most = SettlementStep(market.agent, STEP_GAS_MAX, selector("refuse()"))
    assert (await market.refused_settlement(order, most)).startswith("StepFailed(step 0, reason")
    waste = SettlementStep(market.agent, STEP_GAS, selector("waste()"))
    assert await market.refused_settlement(order, waste) == "StepFailed(step 0, reason none)"
    await world.send(world.stranger, world.at.delta, create_agent_caller(agent_id(AGENT)))
    receipt = await world.forced(world.relayer, world.at.delta, market.settlement(order, waste))
    assert not receipt.succeeded
    assert STEP_GAS < receipt.gas_used < STEP_GAS + 250_000


async def test_a_huge_answer_is_not_copied(world: World, market: Market) -> None:
    order, size = await world.a_delta_order(), 100_000
    await world.send(world.stranger, world.at.delta, create_agent_caller(agent_id(AGENT)))
    refuses = SettlementStep(await _program(world, f"{size} 0 REVERT"), 1_000_000, b"")
    data = market.settlement(order, refuses)
    with pytest.raises(Reverted) as refusal:
        await world.chain.call(EthCall(world.at.delta, data, world.relayer.address))
    assert len(refusal.value.data) == 4 + 3 * 32 + REASON_BYTES_MAX
    assert decode_uint(refusal.value.data[4:], 2) == REASON_BYTES_MAX
    assert (await world.forced(world.relayer, world.at.delta, data)).gas_used < 350_000
    answers = SettlementStep(await _program(world, f"{size} 0 RETURN"), 1_000_000, b"")
    settled = await market.settle(order, answers, *market.agent_steps(FAIR))
    assert settled.receipt.gas_used < 400_000


async def test_a_short_reason_is_told_whole(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    for size in (0, 1, 31, 200):
        step = SettlementStep(await _program(world, f"{size} 0 REVERT"), 100_000, b"")
        words = f"0x{'00' * size}" if size else "none"
        assert await market.refused_settlement(order, step) == f"StepFailed(step 0, reason {words})"
