"""Agents that deliver less in a block than in the simulation of it: another agent keeps what the user was
promised, or nothing is settled; the liar rests, and everybody can read why."""

from contextlib import AsyncExitStack
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.calldata import approve, transfer
from cambist.codecs.messages.agent_messages import AuctionOrder, BidStep, SolverBid, SolveRequest
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.dev.devnet.anvil import AnvilChain
from support.chain.evm_programs import assembled, deploys
from support.chain.world import ONE, USDC, World
from support.contracts.delta_agents import StoryAgent
from support.contracts.settling import STEP_GAS
from support.delta.delta_stories import DeltaStory, Record, a_delta_story
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

DELIVER = selector("deliver(uint8,uint256,address,address,uint256,uint256)")
SET_FLAG, ACT = selector("setFlag(bool)"), selector("act(address,bytes)")
BETTER, FAIR = 2_500 * USDC, 2_490 * USDC


class Sign(IntEnum):
    """What tells a contract that it is mined, as contracts/dev/DevTurncoat.sol numbers them."""

    GAS_PRICE = 0
    BASE_FEE = 1
    COINBASE = 2
    BLOCK_NUMBER = 3
    BALANCE = 4
    FLAG = 5


def turncoat(sign: Sign, bound: int, token: bytes, to: bytes, amount: int, percent: int = 97) -> bytes:
    """The call that delivers an amount in a simulation, and a part of it when it is mined."""
    words = uint_word(sign) + uint_word(bound) + address_word(token) + address_word(to)
    return DELIVER + words + uint_word(amount) + uint_word(amount * percent // 100)


async def a_turncoat(story: DeltaStory, sign: Sign) -> StoryAgent:
    """Ann, with a contract and a stock of her own, who gives the best price."""
    world, ann = story.world, story.agents["ann"]
    ann.contract = await create(world.chain, world.owner, "DevTurncoat")
    await world.mint(world.usdc, ann.contract, 100_000 * USDC)
    bound = await world.chain.balance(world.relayer.address)
    if sign is Sign.BLOCK_NUMBER:
        head = await world.chain.block()
        assert head is not None
        bound = head.number
    ann.delivers = partial(turncoat, sign, bound)
    ann.gives = lambda order: BETTER * int(order.src_amount) // ONE
    return ann


async def is_found_out(story: DeltaStory, record: Record) -> None:
    """Ann won and did not deliver; she rests, and all of that is public."""
    ann = story.agents["ann"]
    await story.heard("ann", record, "won", "settling", "reverted")
    await until(lambda: bool(ann.told("banned")))
    assert not ann.told("settled") + ann.told("settledBelow")
    tried = [one for one in await settlements(story, record) if one["agent"] == "ann"]
    assert {one["state"] for one in tried} == {"reverted"}
    assert all(one["settledAmount"] is None and one["txHash"] and one["detail"] for one in tried)
    (score, *_) = await story.web.get("/v2/delta/agents/scores/31337")
    assert (score["agent"], score["delivered"]) == ("ann", 0)
    assert score["faults"]["reverted"] >= 1
    assert score["restsUntil"]


async def settlements(story: DeltaStory, record: Record) -> list[Any]:
    """Those of an order's last rounds, the latest round first."""
    rounds = (await story.explain(record))["lastRounds"]
    return [one for told in rounds for one in told["order"]["settlements"]]


@pytest.mark.parametrize("sign", [Sign.GAS_PRICE, Sign.BLOCK_NUMBER, Sign.BALANCE])
async def test_the_promise_of_one_that_pays_less_when_mined_is_kept_by_the_next(
    world: World, tmp_path: Path, sign: Sign
) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        await a_turncoat(story, sign)
        story.agents["bob"].gives = lambda _: FAIR
        record, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == FAIR
        await is_found_out(story, record)
        last = (await settlements(story, record))[-1]
        assert (last["agent"], last["state"], last["detail"]) == ("bob", "settled", "")
        assert last["promisedAmount"] == last["simulatedAmount"] == last["settledAmount"] == str(FAIR)


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


async def test_a_base_fee_above_that_of_the_simulation(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann = await a_turncoat(story, Sign.BASE_FEE)
        story.agents["bob"].gives = lambda _: FAIR
        await story.hold()
        head = await world.chain.block()
        assert head is not None
        ann.delivers = partial(turncoat, Sign.BASE_FEE, head.base_fee_wei)
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        await world.chain.set_base_fee(head.base_fee_wei + 1)
        await story.mine()
        await story.becomes(record, "COMPLETED")
        assert (await story.moved_since(before))["user", "USDC"] == FAIR
        await is_found_out(story, record)


async def test_a_coinbase_that_comes_after_the_simulation(world: World, tmp_path: Path) -> None:
    """Where all blocks have one coinbase, as embedded ones have, an agent can tell nothing by it."""
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann = await a_turncoat(story, Sign.COINBASE)
        story.agents["bob"].gives = lambda _: FAIR
        await story.hold()
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        async with AsyncExitStack() as after:
            if isinstance(world.chain, AnvilChain):
                await world.chain._do("anvil_setCoinbase", to_hex(world.stranger.address))
                after.push_async_callback(world.chain._do, "anvil_setCoinbase", to_hex(bytes(20)))
            await story.mine()
            await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        if isinstance(world.chain, AnvilChain):
            assert moved["user", "USDC"] == FAIR
            await is_found_out(story, record)
        else:
            assert moved["user", "USDC"] == BETTER
            await until(lambda: bool(ann.told("settled")))


async def test_a_flag_that_flips_after_the_round_in_the_same_block(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann = await a_turncoat(story, Sign.FLAG)
        story.agents["bob"].gives = lambda _: FAIR
        await story.hold()
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        await story.first_in_block(world.stranger, ann.contract, SET_FLAG + uint_word(1))
        await story.mine()
        await story.becomes(record, "COMPLETED")
        assert (await story.moved_since(before))["user", "USDC"] == FAIR
        await is_found_out(story, record)


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


async def test_a_purchase_costs_no_more_than_was_promised(world: World, tmp_path: Path) -> None:
    """Ann is given all that the user would spend, and gives a part of it back in the simulation alone."""

    def bids(request: SolveRequest) -> list[SolverBid]:
        return [SolverBid((purchase(order),)) for order in request.orders]

    def purchase(order: AuctionOrder) -> Any:
        part = ann.part(order, int(order.src_amount))
        back = turncoat(Sign.GAS_PRICE, 0, world.weth, world.at.delta, ONE // 10, percent=0)
        pays_back = BidStep(to_hex(ann.contract), to_hex(back), STEP_GAS)
        return replace(part, promised_amount=str(ONE), steps=(*part.steps, pays_back))

    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = await a_turncoat(story, Sign.GAS_PRICE), story.agents["bob"]
        ann.delivers = partial(turncoat, Sign.FLAG, 0)
        ann.gives, ann.also = (lambda _: None), bids
        bob.takes = lambda _: 101 * ONE // 100
        record, moved = await story.completed(await story.market.a_purchase())
        assert moved["user", "WETH"] == -101 * ONE // 100
        await is_found_out(story, record)


async def test_a_part_is_held_to_its_promise(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = await a_turncoat(story, Sign.GAS_PRICE), story.agents["bob"]
        bob.gives = lambda order: FAIR * int(order.src_amount) // ONE
        ann.settles = bob.settles = lambda order: ONE // 2 if int(order.src_amount) == ONE else None
        parted, moved = await story.completed(await world.a_delta_order(), partiallyFillable=True)
        assert moved["user", "USDC"] == FAIR
        await is_found_out(story, parted)


async def test_a_slice_is_held_to_its_promise(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        await a_turncoat(story, Sign.GAS_PRICE)
        story.agents["bob"].gives = lambda order: FAIR * int(order.src_amount) // ONE
        order = await story.market.a_twap()
        record = await story.with_fills(await story.submitted(order), 1)
        fill = record["transactions"][0]
        assert int(fill["receivedAmount"]) == FAIR * int(fill["spentAmount"]) // ONE
        await is_found_out(story, record)


async def test_a_crossing_is_held_to_its_promises(world: World, tmp_path: Path) -> None:
    """Each of two orders is paid what the other gives, and Ann adds to it in the simulation alone."""

    def crosses(request: SolveRequest) -> list[SolverBid]:
        if len(request.orders) < 2:
            return []
        sale, counter = sorted(request.orders, key=lambda order: order.src_token != to_hex(world.weth))
        add = turncoat(Sign.GAS_PRICE, 0, world.usdc, world.at.delta, 5 * USDC, percent=0)
        adds = BidStep(to_hex(ann.contract), to_hex(add), STEP_GAS)
        parts = [
            replace(ann.part(order, offer), steps=steps, paid=str(offer))
            for order, offer, steps in ((sale, BETTER + 5 * USDC, (adds,)), (counter, ONE, ()))
        ]
        return [SolverBid(tuple(parts))]

    async with a_delta_story(world, tmp_path, "ann", delta="gather_s = 0.3") as story:
        ann = await a_turncoat(story, Sign.GAS_PRICE)
        ann.gives, ann.also = (lambda _: None), crosses
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order())
        await story.submitted(await story.market.a_counter_order(), world.taker)
        await is_found_out(story, record)
        moved = await story.moved_since(before)
        assert not [key for key in moved if key[1] != "ETH"]


async def test_an_owners_wallet_that_signs_in_simulations_alone_frames_nobody(
    world: World, tmp_path: Path
) -> None:
    """Nobody can tell from outside which of the two refused: the agent has a doubt, and no strike."""
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
        assert score["faults"] == {"inDoubt": 2}
        assert score["restsUntil"] is None
        assert not ann.told("banned")
        _, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == BETTER


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
