"""Agents that deliver less in a block than in the simulation of it: another agent keeps what the user was
promised, or nothing is settled; the liar rests, and everybody can read why."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.calldata import APPROVE, approve, transfer
from cambist.codecs.messages.agent_messages import AuctionOrder, BidStep, SolverBid, SolveRequest
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.dev.devnet.anvil import AnvilChain
from support.chain.evm_programs import assembled, deploys
from support.chain.world import ONE, USDC, World
from support.contracts.delta_agents import StoryAgent
from support.contracts.settling import STEP_GAS
from support.delta.delta_stories import DeltaStory, Record, a_delta_story
from support.patience import until, until_found

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

DELIVER = selector("deliver(uint8,uint256,address,address,uint256,uint256)")
SET_FLAG, ACT = selector("setFlag(bool)"), selector("act(address,bytes)")
BETTER, FAIR, ADDED = 2_500 * USDC, 2_490 * USDC, 5 * USDC
SLICE_COST = 11 * ONE // 10 * (2_500 * USDC // 3) // (2_500 * USDC) * 101 // 110  # of a purchase in three


class Sign(IntEnum):
    """Signs by which a contract distinguishes mining from simulation, numbered as in
    contracts/dev/DevTurncoat.sol.
    """

    GAS_PRICE = 0
    BASE_FEE = 1
    COINBASE = 2
    BLOCK_NUMBER = 3
    BALANCE = 4
    FLAG = 5


BY_ITSELF = {Sign.GAS_PRICE, Sign.BLOCK_NUMBER, Sign.BALANCE}
"""Signs that every block has; for each other sign, the test makes the block by hand."""


def turncoat(sign: Sign, bound: int, token: bytes, to: bytes, amount: int, percent: int = 97) -> bytes:
    """The call that delivers an amount in a simulation, and a part of it when it is mined."""
    words = uint_word(sign) + uint_word(bound) + address_word(token) + address_word(to)
    return DELIVER + words + uint_word(amount) + uint_word(amount * percent // 100)


def honest(token: bytes, to: bytes, amount: int) -> bytes:
    """The call that delivers an amount, mined or not."""
    return ACT + encode(address_word(token), bytes_tail(transfer(to, amount)))


async def a_turncoat(story: DeltaStory, sign: Sign) -> StoryAgent:
    """Ann, with a contract and a stock of her own, who gives the best price."""
    world, ann = story.world, story.agents["ann"]
    ann.contract = await create(world.chain, world.owner, "DevTurncoat")
    await world.mint(world.usdc, ann.contract, 100_000 * USDC)
    head = await world.chain.block()
    assert head is not None
    bounds = {
        Sign.BASE_FEE: head.base_fee_wei,
        Sign.BLOCK_NUMBER: head.number,
        Sign.BALANCE: await world.chain.balance(world.relayer.address),
    }
    ann.delivers = partial(turncoat, sign, bounds.get(sign, 0))
    ann.gives = lambda order: BETTER * int(order.src_amount) // ONE
    return ann


async def is_found_out(story: DeltaStory, record: Record) -> None:
    """Ann won and did not deliver; she rests, and all of that is public."""
    ann = story.agents["ann"]
    await story.heard("ann", record, "won", "settling", "reverted")
    await until(lambda: bool(ann.told("banned")))
    assert not ann.told("settled") + ann.told("settledBelow")
    tried = await settlements_of(story, record, "ann")
    assert {one["state"] for one in tried} == {"reverted"}
    assert all(one["settledAmount"] is None and one["txHash"] and one["detail"] for one in tried)
    (score, *_) = await story.web.get("/v2/delta/agents/scores/31337")
    assert (score["agent"], score["delivered"]) == ("ann", 0)
    assert score["faults"]["reverted"] >= 1
    assert score["restsUntil"]


async def settlements(story: DeltaStory, record: Record) -> list[Any]:
    """Settlements of an order's last rounds, the latest round first."""
    rounds = (await story.explain(record))["lastRounds"]
    return [one for told in rounds for one in told["order"]["settlements"]]


async def settlements_of(story: DeltaStory, record: Record, agent: str) -> list[Any]:
    """Settlements of an agent's bids in an order's last rounds, the latest round first."""
    return [one for one in await settlements(story, record) if one["agent"] == agent]


async def mined_with(story: DeltaStory, sign: Sign) -> None:
    """Mine what the relayer has handed in, in a block that has the sign."""
    world = story.world
    chain = world.chain
    if sign is Sign.BASE_FEE:
        head = await chain.block()
        assert head is not None
        await chain.set_base_fee(head.base_fee_wei + 1)
    elif sign is Sign.FLAG:
        flips = SET_FLAG + uint_word(1)
        await story.first_in_block(world.stranger, story.agents["ann"].contract, flips)
    async with AsyncExitStack() as after:
        if sign is Sign.COINBASE and isinstance(chain, AnvilChain):
            await chain._do("anvil_setCoinbase", to_hex(world.stranger.address))
            after.push_async_callback(chain._do, "anvil_setCoinbase", to_hex(bytes(20)))
        await story.mine()


# --- Each kind of settlement: Ann's bid promises the best and lies, Bob's is the next best and true ---------


async def a_sale(story: DeltaStory) -> Record:
    return await story.submitted(await story.world.a_delta_order())


async def a_part(story: DeltaStory) -> Record:
    """Half of a sale, and the other half later."""
    for agent in story.agents.values():
        agent.settles = lambda order: ONE // 2 if int(order.src_amount) == ONE else None
    return await story.submitted(await story.world.a_delta_order(), partiallyFillable=True)


async def a_slice_of_a_sale(story: DeltaStory) -> Record:
    return await story.submitted(await story.market.a_twap())


async def a_purchase(story: DeltaStory) -> Record:
    gives_back(story.agents["ann"])
    return await story.submitted(await story.market.a_purchase())


async def a_slice_of_a_purchase(story: DeltaStory) -> Record:
    gives_back(story.agents["ann"])
    return await story.submitted(await story.market.a_twap_purchase())


async def a_crossing(story: DeltaStory, paid: int = BETTER + ADDED) -> Record:
    """Ann crosses a sale with its counter order, and adds to the proceeds; Bob bids on each of the two."""
    crosses(story.agents["ann"], paid)
    bob, world = story.agents["bob"], story.world

    def gives(order: AuctionOrder) -> int | None:
        if len(bob.requests[-1].orders) < 2:
            return None
        return FAIR if int(order.src_amount) == ONE else 99 * ONE // 100

    bob.gives = gives
    record = await story.submitted(await world.a_delta_order())
    await story.submitted(await story.market.a_counter_order(), world.taker)
    return record


async def a_crossing_with_a_rest(story: DeltaStory) -> Record:
    """Ann's bid names no payment for the added tokens: the contract gives the sale the rest of a pool."""
    return await a_crossing(story, BETTER)


def gives_back(ann: StoryAgent) -> None:
    """Ann takes all that a purchase may cost, and gives an eleventh of it back in the simulation alone."""
    lie, world = ann.delivers, ann.market.world

    def purchase(order: AuctionOrder) -> SolverBid:
        most = int(order.src_amount)
        part, rest = ann.part(order, most), most // 11
        back = BidStep(to_hex(ann.contract), to_hex(lie(world.weth, world.at.delta, rest)), STEP_GAS)
        return SolverBid((replace(part, promised_amount=str(most - rest), steps=(*part.steps, back)),))

    ann.delivers = honest
    ann.also = lambda request: [purchase(order) for order in request.orders]


def crosses(ann: StoryAgent, paid: int) -> None:
    """Each of two orders gets what the other gives, and Ann adds to the sale's in the simulation alone."""
    lie, world = ann.delivers, ann.market.world

    def crossed(request: SolveRequest) -> list[SolverBid]:
        if len(request.orders) < 2:
            return []
        sale, counter = sorted(request.orders, key=lambda order: int(order.src_amount) != ONE)
        adds = BidStep(to_hex(ann.contract), to_hex(lie(world.usdc, world.at.delta, ADDED)), STEP_GAS)
        parts = (
            replace(ann.part(sale, BETTER + ADDED), steps=(adds,), paid=str(paid)),
            replace(ann.part(counter, ONE), steps=(), paid=str(ONE)),
        )
        return [SolverBid(parts)]

    ann.gives, ann.also = (lambda _: None), crossed


@pytest.mark.one_of(4)
@pytest.mark.parametrize("sign", Sign, ids=lambda sign: sign.name.lower())
@pytest.mark.parametrize(
    ("submitted", "fills", "token", "moves"),
    [
        pytest.param(a_sale, 1, "USDC", FAIR, id="sale"),
        pytest.param(a_part, 2, "USDC", FAIR, id="part"),
        pytest.param(a_slice_of_a_sale, 1, "USDC", FAIR * (ONE // 3) // ONE, id="slice"),
        pytest.param(a_purchase, 1, "WETH", -101 * ONE // 100, id="purchase"),
        pytest.param(a_slice_of_a_purchase, 1, "WETH", -SLICE_COST, id="purchase_slice"),
        pytest.param(a_crossing, 1, "USDC", FAIR, id="crossing"),
        pytest.param(a_crossing_with_a_rest, 1, "USDC", FAIR, id="crossing_rest"),
    ],
)
async def test_a_promise_that_is_broken_when_mined_is_kept_by_the_next(
    world: World,
    tmp_path: Path,
    submitted: Callable[[DeltaStory], Awaitable[Record]],
    fills: int,
    token: str,
    moves: int,
    sign: Sign,
) -> None:
    """Bob's promise is what the user gets or pays, and every fill is Bob's."""
    gather = "gather_s = 0.3" if submitted in {a_crossing, a_crossing_with_a_rest} else ""
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=gather) as story:
        await a_turncoat(story, sign)
        bob = story.agents["bob"]
        bob.gives = lambda order: FAIR * int(order.src_amount) // ONE
        bob.takes = lambda order: int(order.src_amount) * 101 // 110
        before = await story.balances()
        if sign in BY_ITSELF:
            record = await submitted(story)
        else:
            await story.hold()
            record = await submitted(story)
            await story.under_way(record)
            await mined_with(story, sign)
        if sign is Sign.COINBASE and not isinstance(world.chain, AnvilChain):
            # All blocks of this chain have one coinbase: Ann learns nothing by it, and keeps her promise.
            await story.heard("ann", record, "won", "settling", "settled")
            return
        await story.with_fills(record, fills)
        assert (await story.moved_since(before))["user", token] == moves
        await is_found_out(story, record)
        kept = await until_found(
            partial(settlements_of, story, record, "bob"),
            lambda found: all(one["state"] == "settled" for one in found),
        )
        assert [one["detail"] for one in kept] == [""] * fills
        assert all(one["promisedAmount"] == one["simulatedAmount"] == one["settledAmount"] for one in kept)


async def test_one_that_has_a_replay_fail_for_want_of_the_owners_tokens(world: World, tmp_path: Path) -> None:
    """The agent's token knows the call that explains a failure by its gas price, and burns the pull's gas in
    that call alone: the owner's tokens seem to lack.
    """
    burns = (
        "GASPRICE @fine JUMPI 1000000 GAS GT @fine JUMPI again: 30000 GAS GT @again JUMPI fine: 32 0 RETURN"
    )
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann = await a_turncoat(story, Sign.GAS_PRICE)
        token = await world.send(world.owner, b"", deploys(assembled(burns)))
        assert token.contract
        ann.leftovers = (token.contract,)
        story.agents["bob"].gives = lambda _: FAIR
        record, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == FAIR
        (tried,) = [one for one in await settlements(story, record) if one["agent"] == "ann"]
        assert "PullFailed" in tried["detail"]
        await is_found_out(story, record)


async def test_one_that_breaks_its_promise_in_the_first_block_of_a_slice(
    world: World, tmp_path: Path
) -> None:
    """The block before is too early for the slice for each bid: that explains no failure of a later block."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = await a_turncoat(story, Sign.GAS_PRICE)
        lies, ann.delivers = ann.delivers, honest
        record = await story.submitted(await story.market.a_twap())
        await story.with_fills(record, 1)
        await story.says(record, "sliceNotDue")
        ann.delivers = lies
        await story.hold()
        story.clock.passes(61)
        await world.chain.set_time(await world.now_s() + 61)
        await story.under_way(record)
        await world.chain.mine()
        await until(lambda: bool(ann.told("reverted")))
        (told,) = ann.told("reverted")
        assert "TooEarly" in told.detail
        (score,) = await story.web.get("/v2/delta/agents/scores/31337")
        assert score["faults"] == {"reverted": 1}


async def test_without_another_agent_nothing_is_settled_below_the_promise(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        await a_turncoat(story, Sign.GAS_PRICE)
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order())
        await is_found_out(story, record)
        moved = await story.moved_since(before)
        assert not [key for key in moved if key[1] != "ETH"]


async def test_an_owners_wallet_that_signs_in_simulations_alone_frames_nobody(
    world: World, tmp_path: Path
) -> None:
    """The venue cannot tell whether wallet or agent refused: until another agent settles for it, no fault."""
    async with a_delta_story(world, tmp_path, "ann", delta="failures_max = 2") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: BETTER
        wallet = await create(world.chain, world.owner, "DevTurncoat")
        await world.mint(world.weth, world.stranger, ONE)
        await world.send(world.stranger, world.weth, transfer(wallet, ONE))
        allow = ACT + encode(address_word(world.weth), bytes_tail(approve(world.at.delta, ONE)))
        await world.send(world.owner, wallet, allow)
        order = replace(await world.a_delta_order(), owner=wallet, beneficiary=wallet)
        record = await story.submitted(order, signature=f"0x{bytes(65).hex()}")
        await story.becomes(record, "FAILED")
        await until(lambda: len(ann.told("reverted")) == 2)
        assert {told.detail.partition(":")[0] for told in ann.told("reverted")} == {
            "code of an owner's ran in it"
        }
        (score,) = await story.web.get("/v2/delta/agents/scores/31337")
        assert score["faults"] == {}
        assert score["restsUntil"] is None
        assert not ann.told("banned")
        _, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == BETTER


async def test_an_owners_wallet_that_wastes_the_gas_of_a_settlement_frames_nobody(
    world: World, tmp_path: Path
) -> None:
    """The wallet knows a settlement by its gas, of which a simulation has more, and wastes what it gets."""
    delta = to_hex(world.at.delta)
    allows = f"{to_hex(APPROVE)} 224 SHL 0 MSTORE {delta} 4 MSTORE {ONE} 36 MSTORE"
    signs = (
        "CALLDATASIZE @signs JUMPI "
        f"{allows} 0 0 68 0 0 {to_hex(world.weth)} GAS CALL STOP "
        "signs: 900000 GAS GT @fine JUMPI again: 80000 GAS GT @again JUMPI "
        "fine: 0x1626ba7e 224 SHL 0 MSTORE 32 0 RETURN"
    )
    async with a_delta_story(world, tmp_path, "ann", delta="failures_max = 1") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: BETTER
        made = await world.send(world.stranger, b"", deploys(assembled(signs)))
        assert made.contract
        wallet = made.contract
        await world.mint(world.weth, world.stranger, ONE)
        await world.send(world.stranger, world.weth, transfer(wallet, ONE))
        await world.send(world.stranger, wallet, b"", gas=200_000)
        order = replace(await world.a_delta_order(), owner=wallet, beneficiary=wallet)
        record = await story.submitted(order, signature=f"0x{bytes(65).hex()}")
        await story.becomes(record, "FAILED")
        await until(lambda: len(ann.told("reverted")) == 1)
        (score,) = await story.web.get("/v2/delta/agents/scores/31337")
        assert (score["faults"], score["restsUntil"]) == ({}, None)


async def test_one_that_brings_less_than_simulated_and_no_less_than_promised_rests_too(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann = await a_turncoat(story, Sign.GAS_PRICE)
        ann.delivers = partial(turncoat, Sign.GAS_PRICE, 0, percent=99)
        ann.lies_by = -(BETTER // 50)
        record, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == BETTER * 99 // 100
        await story.heard("ann", record, "won", "settling", "settledBelow")
        (told,) = ann.told("settledBelow")
        assert (told.simulated_amount, told.settled_amount) == (str(BETTER), str(BETTER * 99 // 100))
        await until(lambda: bool(ann.told("banned")))
        (settled,) = await settlements(story, record)
        assert (settled["simulatedAmount"], settled["settledAmount"]) == (
            told.simulated_amount,
            told.settled_amount,
        )
        (score, _) = await story.web.get("/v2/delta/agents/scores/31337")
        assert (score["faults"], score["delivered"]) == ({"settledBelow": 1}, 0)
