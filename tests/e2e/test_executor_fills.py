"""The executor fills firm quotes for its callers alone, and calls nothing but the RFQ contract and tokens."""

import pytest

from cambist.codecs.contracts import calldata, owner_calldata
from cambist.codecs.contracts.abi import (
    address_word,
    bytes_tail,
    decode_uint,
    encode,
    selector,
    tuples_tail,
    uint_word,
)
from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import EthCall
from support.chain.evm_programs import assembled, deploys
from support.chain.world import MOST, NOBODY, ONE, USDC, World
from support.contracts.swapping import step_failed, told

FILL = selector("fill(address,uint256,bytes)")
COLLECT = selector("collect(address,address)")
SET_HOOK = selector("setHook(address,bytes)")
SET_BLOCKED = selector("setBlocked(address,bool)")
SET_ALLOWANCE_MAX = selector("setAllowanceMax(uint256)")
AGGREGATE = selector("aggregate3((address,bool,bytes)[])")


def _fill(user: bytes, step: SettlementStep, number: int = 0) -> bytes:
    return FILL + encode(address_word(user) + uint_word(number), bytes_tail(step.data))


def _collect(token: bytes, to: bytes) -> bytes:
    return COLLECT + address_word(token) + address_word(to)


class Desk:
    """The taker is a caller of the executor, on behalf of the user; the maker has USDC."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def take(self, *steps: SettlementStep, user: bytes | None = None) -> None:
        world = self.world
        for step in steps:
            await world.send(world.taker, world.at.executor, _fill(user or world.user.address, step))

    async def refused(self, step: SettlementStep, user: bytes | None = None) -> str:
        world = self.world
        return await world.refused(world.taker, world.at.executor, _fill(user or world.user.address, step))

    async def collect(self, token: bytes) -> int:
        """By the taker, for itself; returns how much that was."""
        world = self.world
        before = await world.balance(token, world.taker)
        data = _collect(token, world.taker.address)
        returned = decode_uint(await world.chain.call(EthCall(world.at.executor, data, world.taker.address)))
        await world.send(world.taker, world.at.executor, data)
        assert await world.balance(token, world.at.executor) == 0
        assert await world.balance(token, world.taker) - before == returned
        return returned

    async def bring(self, amount: int) -> None:
        """WETH to the executor."""
        world = self.world
        await world.mint(world.weth, world.taker, amount)
        await world.send(world.taker, world.weth, calldata.transfer(world.at.executor, amount))


async def _a_desk(world: World) -> Desk:
    await world.give(world.maker, world.usdc, 10_000 * USDC, world.at.rfq)
    allow = owner_calldata.set_caller(world.taker.address, allowed=True)
    await world.send(world.owner, world.at.executor, allow)
    return Desk(world)


async def test_only_its_callers_have_it_fill_and_give(world: World) -> None:
    await world.mint(world.usdc, world.at.executor, USDC)
    fill = world.fill_step(world.an_rfq_order())
    for key in (world.stranger, world.owner, world.relayer, world.user):
        for data in (_fill(key.address, fill), _collect(world.usdc, key.address)):
            assert await world.refused(key, world.at.executor, data) == "NotCaller()"
    assert await world.balance(world.usdc, world.at.executor) == USDC


async def test_a_caller_that_is_struck_off_is_none_any_more(world: World) -> None:
    desk = await _a_desk(world)
    strike = owner_calldata.set_caller(world.taker.address, allowed=False)
    await world.send(world.owner, world.at.executor, strike)
    assert await desk.refused(world.fill_step(world.an_rfq_order())) == "NotCaller()"


async def test_what_fills_bring_goes_to_the_caller_or_to_whom_it_names(world: World) -> None:
    desk = await _a_desk(world)
    await desk.bring(ONE)
    order = world.an_rfq_order()
    receivers = (NOBODY, world.at.executor, world.stranger.address)
    held = [await world.balance(world.usdc, one) for one in (world.taker.address, *receivers[1:])]
    await desk.take(*(world.fill_step(order, taker_amount=ONE // 4, receiver=one) for one in receivers))
    for before, one in zip(held, (world.taker.address, *receivers[1:]), strict=True):
        assert await world.balance(world.usdc, one) == before + 625 * USDC


async def test_nothing_but_fills_reaches_the_rfq(world: World) -> None:
    """The executor reads data for the RFQ contract as fills; a cancellation has no effect."""
    desk = await _a_desk(world)
    order_hash = world.rfq_hash(world.an_rfq_order(maker=world.at.executor))
    for data in (calldata.cancel_order(order_hash), calldata.cancel_orders([order_hash]), b""):
        assert await desk.refused(SettlementStep(world.at.rfq, 0, data)) == ""
    kept = await world.ask(world.at.rfq, calldata.remaining(world.at.executor, order_hash))
    assert kept == 0


async def test_fills_are_of_one_pair_and_of_the_users_quotes(world: World) -> None:
    desk = await _a_desk(world)
    await desk.bring(ONE)
    quote = world.a_firm_quote()
    assert await desk.refused(world.fill_step()) == "NoOrders()"
    for other in (world.a_firm_quote(maker_asset=world.dai), world.a_firm_quote(taker_asset=world.dai)):
        assert await desk.refused(world.fill_step(quote, other)) == "MixedPair()"
        mixed = world.fill_step(world.an_rfq_order(), other)
        assert await desk.refused(mixed, user=world.stranger.address) == "MixedPair()"
    others = told("NotTheUsers", nonceAndMeta=quote.nonce_and_meta)
    for user in (world.stranger.address, world.taker.address, NOBODY):
        assert await desk.refused(world.fill_step(world.an_rfq_order(), quote), user=user) == others
    step = world.fill_step(world.an_rfq_order(), receiver=world.at.executor)
    await desk.take(step, user=world.stranger.address)
    assert await desk.collect(world.usdc) == 2_500 * USDC


async def test_fills_spend_all_or_so_much_or_buy_so_much(world: World) -> None:
    desk = await _a_desk(world)
    await desk.bring(ONE)
    order = world.an_rfq_order(maker_amount=10_000 * USDC, taker_amount=4 * ONE)
    for amounts, bought in (
        ({"taker_amount": ONE // 4}, 625),
        ({"maker_amount": 625 * USDC}, 625),
        ({}, 1_250),
    ):
        await desk.take(world.fill_step(order, receiver=world.at.executor, **amounts))
        assert await desk.collect(world.usdc) == bought * USDC
    assert await world.balance(world.weth, world.at.executor) == 0
    assert await desk.refused(world.fill_step(order, taker_amount=1)) == step_failed()


async def test_the_first_fill_of_a_token_allows_what_it_gives(world: World) -> None:
    """Each of the three ways is the first here: no earlier one has left an allowance."""
    desk = await _a_desk(world)
    await desk.bring(ONE)
    ways: tuple[dict[str, int], ...] = ({}, {"taker_amount": ONE}, {"maker_amount": 2_500 * USDC})
    for amounts in ways:
        before = await world.chain.snapshot()
        await desk.take(world.fill_step(world.an_rfq_order(), receiver=world.at.executor, **amounts))
        assert await desk.collect(world.usdc) == 2_500 * USDC
        await world.chain.restore(before)


async def test_tokens_that_answer_nothing_and_want_allowances_from_zero_are_given(world: World) -> None:
    desk = await _a_desk(world)
    odd = await world.new_token("DevTokenWithoutReturn", "USDT", 6)
    for most in (MOST, 0):  # the second fill must not ask for the allowance that is there
        await world.send(world.stranger, odd, SET_ALLOWANCE_MAX + uint_word(most))
        await world.mint(odd, world.at.executor, 2_500 * USDC)
        order = world.an_rfq_order(taker_asset=odd, taker_amount=2_500 * USDC, maker_amount=2_499 * USDC)
        await desk.take(world.fill_step(order, receiver=world.at.executor))
        assert await desk.collect(world.usdc) == 2_499 * USDC
    await world.mint(odd, world.at.executor, 7)
    assert await desk.collect(odd) == 7


async def test_a_token_that_keeps_small_allowances_is_allowed_from_zero_again(world: World) -> None:
    """A fill that takes less than there is leaves an allowance, which the next fill has to replace.

    The last fill finds an allowance of what it gives.
    """
    desk = await _a_desk(world)
    odd = await world.new_token("DevTokenWithoutReturn", "COMP", 6)
    for brought, given, most in ((10, 7, 10**12), (10, 10, 10**12), (0, 3, 0)):
        await world.send(world.stranger, odd, SET_ALLOWANCE_MAX + uint_word(most))
        await world.mint(odd, world.at.executor, brought * USDC)
        order = world.an_rfq_order(taker_asset=odd, taker_amount=given * USDC, maker_amount=USDC)
        await desk.take(world.fill_step(order, taker_amount=given * USDC, receiver=world.at.executor))
        assert await desk.collect(world.usdc) == USDC
    assert await desk.collect(odd) == 0
    await world.send(world.stranger, odd, SET_ALLOWANCE_MAX + uint_word(10**12))
    await world.mint(odd, world.at.executor, 10**12 + 1)
    order = world.an_rfq_order(taker_asset=odd, taker_amount=USDC, maker_amount=USDC)
    assert await desk.refused(world.fill_step(order, taker_amount=USDC)) == told("TransferFailed", token=odd)


REFUSALS = ("0 0 REVERT", "1 0 MSTORE 32 0 REVERT", "32 0 RETURN", "2 0 MSTORE 32 0 RETURN", "31 0 RETURN")
"""Programs of a failing token function: revert, or return 0, 2 or less than a word."""


@pytest.mark.parametrize("answer", REFUSALS)
async def test_a_token_that_cannot_be_allowed_or_sent_is_named(world: World, answer: str) -> None:
    """All else about the token is in order: each balance is 1."""
    await _a_desk(world)
    for refused in ("approve(address,uint256)", "transfer(address,uint256)"):
        program = (
            f"0 CALLDATALOAD 224 SHR DUP1 0x{selector(refused).hex()} EQ @refused JUMPI "
            "0xdd62ed3e EQ @allowance JUMPI 1 0 MSTORE 32 0 RETURN "
            f"allowance: 32 0 RETURN refused: {answer}"
        )
        token = (await world.send(world.stranger, b"", deploys(assembled(program)))).contract
        assert token is not None
        if refused.startswith("approve"):
            data = _fill(world.user.address, world.fill_step(world.an_rfq_order(taker_asset=token)))
        else:
            data = _collect(token, world.taker.address)
        refusal = await world.refused(world.taker, world.at.executor, data)
        assert refusal == told("TransferFailed", token=token)


async def test_what_is_not_there_is_not_sent(world: World) -> None:
    desk = await _a_desk(world)
    block = SET_BLOCKED + address_word(world.taker.address) + uint_word(1)
    await world.send(world.stranger, world.usdc, block)
    data = _collect(world.usdc, world.taker.address)
    assert (await world.send(world.taker, world.at.executor, data)).logs == ()
    assert await desk.collect(world.usdc) == 0


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
    """A token calls back in the middle of a fill, by a contract that is a caller itself."""
    desk = await _a_desk(world)
    helper = await create(world.chain, world.owner, "DevMulticall")
    allow = owner_calldata.set_caller(helper, allowed=True)
    await world.send(world.owner, world.at.executor, allow)
    odd = await world.new_token()
    await world.mint(odd, world.at.executor, ONE)
    step = world.fill_step(world.an_rfq_order(taker_asset=odd, taker_amount=ONE))
    for entry in (_collect(odd, helper), _fill(world.user.address, step)):
        tried = encode(address_word(world.at.executor), uint_word(0), bytes_tail(entry))
        hook = encode(address_word(helper), bytes_tail(AGGREGATE + encode(tuples_tail([tried]))))
        await world.send(world.stranger, odd, SET_HOOK + hook)
        assert await desk.refused(step) == step_failed()
        collecting = _collect(odd, world.taker.address)
        assert await world.refused(world.taker, world.at.executor, collecting) == (
            told("TransferFailed", token=odd)
        )


def test_it_has_no_other_way_to_give_anything_away() -> None:
    entries = [
        entry for entry in artifact("RfqExecutor").abi if entry.type in ("function", "receive", "fallback")
    ]
    assert {entry.name for entry in entries} == {
        "fill", "collect", "setCaller", "proposeOwner", "acceptOwner", "owner", "proposedOwner", "rfq",
        "isCaller",
    }  # fmt: skip
