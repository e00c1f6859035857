"""Owners whose wallets agree in simulations and refuse when mined pay; nobody else rests or waits."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.calldata import approve, transfer
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.host.admission.budgets import GAS_OF_DOUBTS
from cambist.engine.trade.delta.settlement import owner_costs
from cambist.engine.trade.delta.settlement.settling import SettlingStatistics
from support.chain.world import ONE, USDC, World
from support.contracts.rfq_stories import a_wallet_that_sells
from support.delta.delta_stories import DeltaStory, Record, a_delta_story
from support.patience import until
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

ACT, SET_FLAG = selector("act(address,bytes)"), selector("setFlag(bool)")
DELIVER = selector("deliver(uint8,uint256,address,address,uint256,uint256)")
BETTER = 2_500 * USDC
RESTS = "rest_s = 600\nfailures_max = 10"


async def a_false_wallet(world: World, number: int = 0) -> bytes:
    """A contract with a WETH that allows Delta, and that signs in simulations alone."""
    wallet = await create(world.chain, world.owner, "DevTurncoat", salt32=number.to_bytes(32, "big"))
    await world.mint(world.weth, world.stranger, ONE)
    await world.send(world.stranger, world.weth, transfer(wallet, ONE))
    allow = ACT + encode(address_word(world.weth), bytes_tail(approve(world.at.delta, ONE)))
    await world.send(world.owner, wallet, allow)
    return wallet


async def ordered(story: DeltaStory, wallet: bytes) -> Record:
    """A new order of a wallet, which the venue takes."""
    order = replace(await story.world.a_delta_order(), owner=wallet, beneficiary=wallet)
    return await story.submitted(order, signature=f"0x{bytes(65).hex()}")


def settling(story: DeltaStory) -> SettlingStatistics:
    return story.web.app.delta.chains[CHAIN_ID].settling.statistics()


async def mined(world: World) -> int:
    """Number of the relayer's transactions."""
    return await world.chain.nonce(world.relayer.address)


async def rested(story: DeltaStory) -> list[str]:
    """Names of the agents that rest or have faults."""
    scores = await story.web.get(f"/v2/delta/agents/scores/{CHAIN_ID}")
    return [score["name"] for score in scores if score["restsUntil"] or score["faults"] or score["strikes"]]


async def test_a_wallet_that_refuses_when_mined_costs_one_settlement(world: World, tmp_path: Path) -> None:
    """Three free orders: before, each cost ten settlements, and the owner was taken again at once."""
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=RESTS) as story:
        for agent in story.agents.values():
            agent.gives = lambda _: BETTER
        wallet, before = await a_false_wallet(world), await mined(world)
        records = [await ordered(story, wallet) for _ in range(3)]
        for record in records:
            assert "the order waits until" in await story.says(record, "ownerRests")
        await until(lambda: settling(story).under_way == 0)
        assert await mined(world) - before in (1, 2), "the second may have been sent before the first failed"
        _, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == BETTER
        before = await mined(world)
        late = await ordered(story, wallet)
        await story.says(late, "ownerRests")
        _, moved = await story.completed(await world.a_delta_order())
        assert await mined(world) == before + 1, "nothing but the honest order"
        assert await rested(story) == []


async def test_an_agent_and_owners_of_one_party_waste_a_budget_of_gas(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann bids best, and her calls fail if her owner sends any transaction first; each time another owner."""
    monkeypatch.setattr(owner_costs, "GAS_OF_DOUBTS", replace(GAS_OF_DOUBTS, most=400_000))
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=RESTS) as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.contract = await create(world.chain, world.owner, "DevTurncoat")
        await world.mint(world.usdc, ann.contract, 100_000 * USDC)
        ann.delivers, ann.gives, bob.gives = unless_flagged, lambda _: BETTER, lambda _: BETTER - USDC
        reverted = 0
        for number in range(1, 6):
            await overtaken(story, ann.contract, number)
            await until(partial(_has_ended, ann, bob, reverted))
            if bob.told("settled"):
                break
            reverted += 1
        assert reverted == 2, "the second leaves ann no room"
        assert await rested(story) == []


async def test_an_agent_without_another_settles_on_whatever_it_wasted(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An owner and a maker of one party would stop a venue that has one agent."""
    monkeypatch.setattr(owner_costs, "GAS_OF_DOUBTS", replace(GAS_OF_DOUBTS, most=1))
    async with a_delta_story(world, tmp_path, "ann", delta=RESTS) as story:
        ann = story.agents["ann"]
        ann.contract = await create(world.chain, world.owner, "DevTurncoat")
        await world.mint(world.usdc, ann.contract, 100_000 * USDC)
        ann.delivers, ann.gives = unless_flagged, lambda _: BETTER
        for number in (1, 2):
            await overtaken(story, ann.contract, number)
            await until(partial(_has_ended, ann, ann, number - 1))
        await world.send(world.owner, ann.contract, SET_FLAG + uint_word(0))
        await story.completed(await world.a_delta_order())


async def overtaken(story: DeltaStory, contract: bytes, number: int) -> None:
    """Settle an order of a new owner, whose transaction comes first and has the agent's calls fail."""
    world = story.world
    await world.send(world.owner, contract, SET_FLAG + uint_word(0))
    owner = await an_owner(world, number)
    order = await world.a_delta_order(owner=owner.address, beneficiary=owner.address)
    await story.hold()
    record = await story.submitted(order, owner)
    await story.under_way(record)
    await story.first_in_block(owner, contract, SET_FLAG + uint_word(1))
    await story.mine()


def _has_ended(ann: Any, other: Any, reverted: int) -> bool:
    """Whether the other agent has settled, or one more settlement of Ann's has failed."""
    return bool(other.told("settled")) or len(ann.told("reverted")) > reverted


def unless_flagged(token: bytes, to: bytes, amount: int) -> bytes:
    """The call of a false agent that delivers an amount, and once its flag is set a part of it."""
    words = uint_word(5) + uint_word(0) + address_word(token) + address_word(to)
    return DELIVER + words + uint_word(amount) + uint_word(amount * 97 // 100)


async def an_owner(world: World, number: int) -> SigningKey:
    """A new account with a WETH that Delta may take."""
    key = SigningKey(number.to_bytes(32, "big"))
    await world.chain.set_balance(key.address, 10 * ONE)
    await world.mint(world.weth, key, ONE)
    await world.send(key, world.weth, approve(world.at.delta, ONE))
    return key


async def test_many_such_wallets_rest_no_agent_and_hold_up_nobody(world: World, tmp_path: Path) -> None:
    """More wallets than orders in doubt that an agent may have; then honest orders, one of a new contract."""
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=RESTS) as story:
        for agent in story.agents.values():
            agent.gives = lambda _: BETTER
        wallets = [await a_false_wallet(world, number) for number in range(7)]
        records = [await ordered(story, wallet) for wallet in wallets]
        for record in records:
            await story.says(record, "ownerRests")
        await until(lambda: settling(story).under_way == 0)
        assert await rested(story) == []
        _, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == BETTER
        honest = await a_wallet_that_sells(world)
        order = replace(await world.a_delta_order(), owner=honest, beneficiary=honest)
        await story.becomes(await story.submitted(order), "COMPLETED")
        assert await rested(story) == []
