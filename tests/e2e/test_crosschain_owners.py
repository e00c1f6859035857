"""Contracts that own orders across chains: tokens go to no account that the owner does not have there."""

from pathlib import Path

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word
from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.signatures import to_65
from cambist.engine.chain.deploy.deploy import create
from support.bridge.bridged_stories import ACROSS, BridgedStory, a_bridged_story, arriving
from support.bridge.two_chains import TwoChains
from support.chain.world import MOST, NOBODY, ONE
from support.contracts.rfq_stories import execute


async def a_wallet(story: BridgedStory) -> bytes:
    """A smart wallet of the user's key on the first chain, with a WETH that Delta may take."""
    world = story.world
    wallet = await create(world.chain, world.owner, "DevWallet", address_word(world.user.address))
    await world.send(world.user, world.weth, calldata.transfer(wallet, ONE))
    await world.send(world.user, wallet, execute(world.weth, calldata.approve(world.at.delta, MOST)))
    return wallet


def signed(story: BridgedStory, order: DeltaOrder) -> str:
    return to_hex(to_65(*story.world.user.sign(story.world.delta_hash(order))))


async def test_a_contract_buys_for_an_account_that_exists_there(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        wallet = await a_wallet(story)
        for beneficiary in (NOBODY, wallet):
            order = await story.an_order(ACROSS, owner=wallet, beneficiary=beneficiary)
            status, refused = await story.submit(order, signature=signed(story, order))
            assert (status, refused["errorType"]) == (400, "InvalidInput")
            assert "order.beneficiary: expected an account of the owner on chain 31338" in refused["details"]
        order = await story.an_order(ACROSS, owner=wallet, beneficiary=story.world.user.address)
        record = await story.submitted(order, signature=signed(story, order))
        before = await story.far.balance(story.far.usdc, story.world.user)
        await story.becomes(record, "COMPLETED")
        assert await story.far.balance(story.far.usdc, story.world.user) == before + arriving()


async def test_a_contract_buys_for_itself_where_it_exists_too(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        wallet, far = await a_wallet(story), story.far
        there = await create(far.chain, far.owner, "DevWallet", address_word(story.world.user.address))
        assert there == wallet
        order = await story.an_order(ACROSS, owner=wallet, beneficiary=wallet)
        record = await story.submitted(order, signature=signed(story, order))
        await story.becomes(record, "COMPLETED")
        assert await far.balance(far.usdc, wallet) == arriving()
