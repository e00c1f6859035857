"""Balances and allowances of many accounts, read at one block."""

import pytest

from cambist.codecs.contracts import calldata
from cambist.config.errors import BlockGone
from cambist.engine.chain.holdings import Holding, HoldingQuestion, holdings
from cambist.engine.chain.index.ring import Mark
from support.chain.world import MOST, ONE, USDC, World


async def test_all_answers_are_of_one_block_though_the_chain_goes_on(world: World) -> None:
    await world.give(world.maker, world.usdc, 5_000 * USDC, world.at.rfq)
    await world.mint(world.dai, world.user, 7 * ONE)
    await world.approve(world.user, world.dai, world.at.delta, 3 * ONE)
    questions = [
        HoldingQuestion(world.usdc, world.maker.address, world.at.rfq),
        HoldingQuestion(world.usdc, world.maker.address, world.at.delta),
        HoldingQuestion(world.dai, world.user.address, world.at.delta),
        HoldingQuestion(world.at.rfq, world.user.address, world.at.delta),  # a contract, but no token
        HoldingQuestion(world.stranger.address, world.user.address, world.at.delta),  # no tokens or allowance
    ]
    read = await holdings(world.chain, questions)
    assert read.found == (
        Holding(5_000 * USDC, MOST), Holding(5_000 * USDC, 0), Holding(7 * ONE, 3 * ONE), None, None,
    )  # fmt: skip
    assert [found.usable for found in read.found if found] == [5_000 * USDC, 0, 3 * ONE]
    await world.send(world.maker, world.usdc, calldata.transfer(world.stranger.address, 1))
    assert await holdings(world.chain, questions, Mark(read.block_number, read.block_hash)) == read
    later = await holdings(world.chain, questions)
    assert later.block_number == read.block_number + 1
    assert later.found[0] == Holding(5_000 * USDC - 1, MOST)


@pytest.mark.one_chain
async def test_a_block_that_is_rolled_back_has_no_holdings(world: World) -> None:
    await world.mint(world.usdc, world.user, 1)
    question = HoldingQuestion(world.usdc, world.user.address, world.at.delta)
    read = await holdings(world.chain, [question])
    await world.chain.reorganise(2)
    with pytest.raises(BlockGone):
        await holdings(world.chain, [question], Mark(read.block_number, read.block_hash))
