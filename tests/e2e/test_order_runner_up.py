"""A settlement that fails: the runner-up of the same round is next, and it costs the user nothing."""

from pathlib import Path

import pytest

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.engine.chain.deploy.deploy import create
from support.chain.world import ONE, USDC, World
from support.contracts.settling import DELIVER
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def emptied(story: DeltaStory, contract: bytes) -> None:
    """An agent's stock is gone with the next block, before anything else in it."""
    world = story.world
    words = address_word(world.usdc) + address_word(world.stranger.address)
    stock = await world.balance(world.usdc, contract)
    await story.first_in_block(world.stranger, contract, DELIVER + words + uint_word(stock))


async def with_its_own_stock(story: DeltaStory, name: str) -> bytes:
    """An agent delivers from a contract that nobody else uses."""
    world = story.world
    contract = await create(world.chain, world.owner, "DevAgent", salt32=b"\x01" * 32)
    await world.mint(world.usdc, contract, 100_000 * USDC)
    story.agents[name].contract = contract
    return contract


async def test_the_runner_up_settles_what_the_winner_does_not(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        story.agents["bob"].gives = lambda _: 2_450 * USDC
        stock = await with_its_own_stock(story, "ann")
        before = await story.balances()
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        await emptied(story, stock)
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -ONE
        assert moved["user", "USDC"] == 2_450 * USDC
        await story.heard("ann", record, "won", "settling", "reverted")
        await story.heard("bob", record, "lost", "settling", "settled")
        assert len(story.agents["bob"].requests) == 1, "it is of the same round"
        await until(lambda: bool(story.agents["ann"].told("banned")))


async def test_without_a_runner_up_another_round_follows(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        stock = await with_its_own_stock(story, "ann")
        before = await story.balances()
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        await emptied(story, stock)
        story.agents["bob"].gives = lambda _: 2_420 * USDC
        await story.mine()
        await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "USDC"] == 2_420 * USDC
        assert moved["user", "WETH"] == -ONE


async def test_an_order_fails_with_the_last_settlement_that_may(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", delta="failures_max = 1") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        stock = await with_its_own_stock(story, "ann")
        before = await story.balances()
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        await emptied(story, stock)
        await story.mine()
        await story.becomes(record, "FAILED")
        moved = await story.moved_since(before)
        assert not {key for key in moved if key[0] == "user"}, "nothing has left the user"
