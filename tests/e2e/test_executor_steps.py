"""The executor takes steps for its callers only, and refuses what would leave something behind for others."""

from typing import Any

import pytest

from cambist.codecs import calldata, owner_calldata
from cambist.codecs.abi import (
    address_word,
    bytes_tail,
    decode_bytes,
    decode_uint,
    encode,
    selector,
    tuples_tail,
    uint_word,
)
from cambist.codecs.delta_calldata import Step
from cambist.codecs.transactions import create2_address
from cambist.config.errors import Reverted
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.create2_factory import FACTORY
from cambist.engine.chain.deploy import create
from cambist.engine.chain.port import Call, Receipt
from support.evm_programs import assembled, deploys
from support.swapping import step_failed, told
from support.world import MOST, NOBODY, ONE, USDC, World

STEP_GAS_MAX = 5_000_000
REASON_BYTES_MAX = 256
EXECUTE = selector("execute(address,(address,uint256,bytes)[])")
COLLECT = selector("collect(address,address)")
DELIVER = selector("deliver(address,address,uint256)")
SET_HOOK = selector("setHook(address,bytes)")
SET_BLOCKED = selector("setBlocked(address,bool)")
AGGREGATE = selector("aggregate3((address,bool,bytes)[])")
DENIED = (
    "approve(address,uint256)",
    "increaseAllowance(address,uint256)",
    "increaseApproval(address,uint256)",
    "transferFrom(address,address,uint256)",
    "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
    "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)",
    "permit(address,address,uint256,uint256,bytes)",
    "setApprovalForAll(address,bool)",
    "authorizeOperator(address)",
    "approveAndCall(address,uint256)",
    "approveAndCall(address,uint256,bytes)",
    "cancelOrder(bytes32)",
    "cancelOrders(bytes32[])",
)


def _execute(user: bytes, *steps: Step) -> bytes:
    tuples = [encode(address_word(step.target), uint_word(step.gas), bytes_tail(step.data)) for step in steps]
    return EXECUTE + encode(address_word(user), tuples_tail(tuples))


def _collect(token: bytes, to: bytes) -> bytes:
    return COLLECT + address_word(token) + address_word(to)


class Desk:
    """The taker is a caller of the executor, on behalf of the user; a DevAgent has USDC and the maker too."""

    def __init__(self, world: World, agent: bytes) -> None:
        self.world = world
        self.agent = agent

    async def take(self, *steps: Step, user: bytes | None = None) -> Receipt:
        world = self.world
        return await world.send(world.taker, world.at.executor, _execute(user or world.user.address, *steps))

    async def refused(self, *steps: Step, **how: Any) -> str:
        world = self.world
        user = how.get("user", world.user.address)
        return await world.refused(world.taker, world.at.executor, _execute(user, *steps))

    async def collect(self, token: bytes) -> int:
        """By the taker, for itself; returns how much that was."""
        world = self.world
        before = await world.balance(token, world.taker)
        await world.send(world.taker, world.at.executor, _collect(token, world.taker.address))
        assert await world.balance(token, world.at.executor) == 0
        return await world.balance(token, world.taker) - before

    async def bring(self, amount: int) -> None:
        """WETH to the executor."""
        world = self.world
        await world.mint(world.weth, world.taker, amount)
        await world.send(world.taker, world.weth, calldata.transfer(world.at.executor, amount))

    def deliver(self, amount: int, gas: int = 200_000) -> Step:
        words = address_word(self.world.usdc) + address_word(self.world.at.executor) + uint_word(amount)
        return Step(self.agent, gas, DELIVER + words)


async def _a_desk(world: World) -> Desk:
    agent = await create(world.chain, world.owner, "DevAgent")
    await world.mint(world.usdc, agent, 10_000 * USDC)
    await world.give(world.maker, world.usdc, 10_000 * USDC, world.at.rfq)
    allow = owner_calldata.set_caller(world.taker.address, allowed=True)
    await world.send(world.owner, world.at.executor, allow)
    return Desk(world, agent)


async def _program(world: World, text: str) -> bytes:
    init_code = deploys(assembled(text))
    await world.send(world.stranger, FACTORY, bytes(32) + init_code)
    return create2_address(FACTORY, bytes(32), init_code)


async def test_only_its_callers_have_it_take_steps_and_give(world: World) -> None:
    await world.mint(world.usdc, world.at.executor, USDC)
    for key in (world.stranger, world.owner, world.relayer, world.user):
        data = _execute(key.address)
        assert await world.refused(key, world.at.executor, data) == "NotCaller()"
        data = _collect(world.usdc, key.address)
        assert await world.refused(key, world.at.executor, data) == "NotCaller()"
    assert await world.balance(world.usdc, world.at.executor) == USDC


async def test_a_caller_that_is_struck_off_is_none_any_more_and_stays_no_target(world: World) -> None:
    desk = await _a_desk(world)
    await desk.take()
    strike = owner_calldata.set_caller(world.taker.address, allowed=False)
    await world.send(world.owner, world.at.executor, strike)
    assert await desk.refused() == "NotCaller()"
    back = owner_calldata.set_caller(world.taker.address, allowed=True)
    await world.send(world.owner, world.at.executor, back)
    step = Step(world.taker.address, 0, b"")
    assert await desk.refused(step) == told("TargetDenied", target=world.taker.address)


async def test_steps_are_taken_in_turn_and_what_they_bring_is_collected(world: World) -> None:
    desk = await _a_desk(world)
    await desk.bring(ONE)
    half = calldata.transfer(desk.agent, ONE // 2)
    quote = world.a_firm_quote(maker_amount=1_250 * USDC, taker_amount=ONE // 2)
    steps = (
        Step(world.weth, 100_000, half),
        desk.deliver(1_300 * USDC),
        world.fill_step(quote),
    )
    await desk.take(*steps)
    assert await desk.collect(world.usdc) == 2_550 * USDC
    assert await desk.collect(world.weth) == 0
    assert await world.balance(world.weth, desk.agent) == ONE // 2


async def test_a_step_that_fails_undoes_all_of_them(world: World) -> None:
    desk = await _a_desk(world)
    refuse = Step(desk.agent, 100_000, selector("refuse()"))
    words = "StepFailed(step 1, reason Refused())"
    assert await desk.refused(desk.deliver(5 * USDC), refuse) == words
    assert await world.balance(world.usdc, desk.agent) == 10_000 * USDC


async def test_functions_that_leave_something_behind_are_denied_on_any_target(world: World) -> None:
    desk = await _a_desk(world)
    for signature in DENIED:
        denied = selector(signature)
        words = f"FunctionDenied(selector 0x{denied.hex()})"
        for target in (world.usdc, desk.agent):
            step = Step(target, 100_000, denied + bytes(96))
            assert await desk.refused(step) == words, signature
    assert await desk.refused(Step(world.usdc, 100_000, selector(DENIED[0]))) == (
        f"FunctionDenied(selector 0x{selector(DENIED[0]).hex()})"
    )
    short = Step(await _program(world, "STOP"), 100_000, selector(DENIED[0])[:3])
    await desk.take(short)  # no function at all
    for spender in (world.at.rfq, desk.agent, world.stranger.address):
        allowance = calldata.allowance(world.at.executor, spender)
        assert await world.ask(world.usdc, allowance) == 0


async def test_targets_that_hold_powers_are_denied(world: World) -> None:
    desk = await _a_desk(world)
    at = world.at
    for target in (world.permit2, at.executor, at.delta, at.router):
        assert await desk.refused(Step(target, 100_000, b"")) == told("TargetDenied", target=target)
        assert await world.ask(at.executor, selector("isDenied(address)") + address_word(target)) == 1


async def test_the_owner_denies_targets_and_admits_them_again(world: World) -> None:
    desk = await _a_desk(world)
    deny = owner_calldata.set_denied(desk.agent, denied=True)
    await world.send(world.owner, world.at.executor, deny)
    assert await desk.refused(desk.deliver(1)) == told("TargetDenied", target=desk.agent)
    admit = owner_calldata.set_denied(desk.agent, denied=False)
    await world.send(world.owner, world.at.executor, admit)
    await desk.take(desk.deliver(1))
    assert await desk.collect(world.usdc) == 1


async def test_nothing_but_fills_reaches_the_rfq(world: World) -> None:
    """What is sent to it is read as fills; a cancellation is none, whatever owner the denials have."""
    desk = await _a_desk(world)
    order_hash = world.rfq_hash(world.an_rfq_order(maker=world.at.executor))
    for data in (calldata.cancel_order(order_hash), calldata.cancel_orders([order_hash]), b""):
        assert await desk.refused(Step(world.at.rfq, 100_000, data)) == ""
    kept = await world.ask(world.at.rfq, calldata.remaining(world.at.executor, order_hash))
    assert kept == 0


async def test_a_step_gets_the_gas_it_asks_for_and_no_more_than_the_most(world: World) -> None:
    desk = await _a_desk(world)
    too_much = desk.deliver(1, gas=STEP_GAS_MAX + 1)
    assert await desk.refused(too_much) == told("TooMuchGas", gas=STEP_GAS_MAX + 1)
    assert await desk.refused(desk.deliver(1, gas=MOST)) == told("TooMuchGas", gas=MOST)
    await desk.take(desk.deliver(1, gas=STEP_GAS_MAX))
    data = _execute(world.user.address, Step(desk.agent, 100_000, selector("waste()")))
    receipt = await world.forced(world.taker, world.at.executor, data)
    assert not receipt.succeeded
    assert 100_000 < receipt.gas_used < 200_000
    assert await desk.refused(Step(desk.agent, 100_000, selector("waste()"))) == (
        "StepFailed(step 0, reason none)"
    )


async def test_a_huge_answer_is_not_copied(world: World) -> None:
    desk = await _a_desk(world)
    size = 100_000
    refuses = Step(await _program(world, f"{size} 0 REVERT"), 1_000_000, b"")
    data = _execute(world.user.address, refuses)
    with pytest.raises(Reverted) as refusal:
        await world.chain.call(Call(world.at.executor, data, world.taker.address))
    body = refusal.value.data[4:]
    assert decode_uint(body) == 0
    assert decode_bytes(body, 1) == bytes(REASON_BYTES_MAX)
    receipt = await world.forced(world.taker, world.at.executor, data)
    assert receipt.gas_used < 150_000
    answers = Step(await _program(world, f"{size} 0 RETURN"), 1_000_000, b"")
    assert (await desk.take(answers)).gas_used < 150_000


async def test_a_short_reason_is_told_whole(world: World) -> None:
    desk = await _a_desk(world)
    for size in (0, 1, 31, 200):
        step = Step(await _program(world, f"{size} 0 REVERT"), 100_000, b"")
        words = f"0x{'00' * size}" if size else "none"
        assert await desk.refused(step) == f"StepFailed(step 0, reason {words})"


async def test_a_step_to_nobody_does_nothing(world: World) -> None:
    desk = await _a_desk(world)
    await desk.take(Step(world.stranger.address, 100_000, b"\x01\x02\x03\x04"))


async def test_fills_are_of_one_pair_and_of_the_users_quotes(world: World) -> None:
    desk = await _a_desk(world)
    await desk.bring(ONE)
    quote = world.a_firm_quote()
    assert await desk.refused(world.fill_step()) == "NoOrders()"
    for other in (world.a_firm_quote(maker_asset=world.dai), world.a_firm_quote(taker_asset=world.dai)):
        assert await desk.refused(world.fill_step(quote, other)) == "MixedPair()"
    others = told("NotTheUsers", nonceAndMeta=quote.nonce_and_meta)
    for user in (world.stranger.address, world.taker.address, NOBODY):
        assert await desk.refused(world.fill_step(world.an_rfq_order(), quote), user=user) == others
    await desk.take(world.fill_step(world.an_rfq_order()), user=world.stranger.address)
    assert await desk.collect(world.usdc) == 2_500 * USDC


async def test_fills_spend_all_or_so_much_or_buy_so_much(world: World) -> None:
    desk = await _a_desk(world)
    await desk.bring(ONE)
    order = world.an_rfq_order(maker_amount=10_000 * USDC, taker_amount=4 * ONE)
    await desk.take(world.fill_step(order, taker_amount=ONE // 4))
    assert await desk.collect(world.usdc) == 625 * USDC
    await desk.take(world.fill_step(order, maker_amount=625 * USDC))
    assert await desk.collect(world.usdc) == 625 * USDC
    await desk.take(world.fill_step(order))
    assert await desk.collect(world.usdc) == 1_250 * USDC
    assert await world.balance(world.weth, world.at.executor) == 0
    assert await desk.refused(world.fill_step(order, taker_amount=1)) == step_failed()


async def test_tokens_that_answer_nothing_and_want_allowances_from_zero_are_given(world: World) -> None:
    desk = await _a_desk(world)
    odd = await world.new_token("DevTokenWithoutReturn", "USDT", 6)
    for _ in range(2):
        await world.mint(odd, world.at.executor, 2_500 * USDC)
        order = world.an_rfq_order(taker_asset=odd, taker_amount=2_500 * USDC, maker_amount=2_499 * USDC)
        await desk.take(world.fill_step(order))
        assert await desk.collect(world.usdc) == 2_499 * USDC
    await world.mint(odd, world.at.executor, 7)
    assert await desk.collect(odd) == 7


async def test_what_cannot_be_sent_is_named(world: World) -> None:
    desk = await _a_desk(world)
    assert await desk.collect(world.usdc) == 0
    await world.mint(world.usdc, world.at.executor, USDC)
    block = SET_BLOCKED + address_word(world.taker.address) + uint_word(1)
    await world.send(world.stranger, world.usdc, block)
    data = _collect(world.usdc, world.taker.address)
    refusal = await world.refused(world.taker, world.at.executor, data)
    assert refusal == told("TransferFailed", token=world.usdc)
    nothing = _collect(world.stranger.address, world.taker.address)  # no contract
    assert await world.refused(world.taker, world.at.executor, nothing) == ""


async def test_not_even_a_caller_enters_twice(world: World) -> None:
    """A token calls back in the middle of a step, by a contract that is a caller itself."""
    desk = await _a_desk(world)
    helper = await create(world.chain, world.owner, "DevMulticall")
    allow = owner_calldata.set_caller(helper, allowed=True)
    await world.send(world.owner, world.at.executor, allow)
    odd = await world.new_token()
    await world.mint(odd, world.at.executor, ONE)
    step = Step(odd, 400_000, calldata.transfer(desk.agent, 1))
    for entry in (_collect(odd, helper), _execute(world.user.address)):
        tried = encode(address_word(world.at.executor), uint_word(0), bytes_tail(entry))
        hook = encode(address_word(helper), bytes_tail(AGGREGATE + encode(tuples_tail([tried]))))
        await world.send(world.stranger, odd, SET_HOOK + hook)
        assert await desk.refused(step) == "StepFailed(step 0, reason CallFailed(call 0))"
        collecting = _collect(odd, world.taker.address)
        assert await world.refused(world.taker, world.at.executor, collecting) == (
            told("TransferFailed", token=odd)
        )


def test_it_has_no_other_way_to_give_anything_away() -> None:
    entries = [
        entry for entry in artifact("RfqExecutor").abi if entry.type in ("function", "receive", "fallback")
    ]
    assert {entry.name for entry in entries} == {
        "execute", "collect", "setCaller", "setDenied", "proposeOwner", "acceptOwner",
        "owner", "proposedOwner", "rfq", "isCaller", "isDenied", "STEP_GAS_MAX",
    }  # fmt: skip
