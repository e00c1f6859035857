"""Accounts with a key and code (EIP-7702) as owners, makers and takers: the key's signature counts first.

Their contract is a wallet that takes native tokens, and has no key of its own in their storage.
"""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from cambist.crypto.hexadecimal import to_hex
from support.bridge.bridged_stories import ACROSS, a_bridged_story
from support.bridge.two_chains import TwoChains
from support.chain.delegating import delegate
from support.chain.evm_programs import assembled, deploys
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.rfq_stories import a_wallet, filled, funded, refusal, rfq_events
from support.contracts.settling import Market
from support.delta.delta_stories import a_delta_story

FAIR = 2_500 * USDC
SIGNS_ALL = assembled(f"{0x1626BA7E << 224} 0 MSTORE 32 0 RETURN")
"""Code of a wallet that takes every signature for its own (EIP-1271)."""


@pytest.mark.one_chain
async def test_a_delegated_owners_orders_are_settled_by_its_keys_signature(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: FAIR
        await delegate(world, world.user, await a_wallet(world, world.owner))
        before = await world.balance(world.usdc, world.user)
        record = await story.submitted(await world.a_delta_order())
        await story.becomes(record, "COMPLETED")
        assert await world.balance(world.usdc, world.user) == before + FAIR
        later = await story.submitted(await world.a_delta_order(src_amount=ONE // 2))
        await delegate(world, world.user, bytes(20))
        await story.becomes(later, "COMPLETED")


@pytest.mark.one_chain
async def test_what_a_delegated_owners_contract_takes_for_its_signature_counts_too(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: FAIR
        order = await world.a_delta_order()
        foreign = to_hex(world.delta_signed(order, world.stranger))
        status, refused = await story.submit(order, signature=foreign)
        assert (status, refused["errorType"]) == (400, "InvalidSignature")
        signs_all = await world.send(world.owner, b"", deploys(SIGNS_ALL))
        assert signs_all.contract is not None
        await delegate(world, world.user, signs_all.contract)
        record = await story.submitted(order, signature=foreign)
        await story.becomes(record, "COMPLETED")


async def test_a_delegated_account_receives_native_tokens(world: World, market: Market) -> None:
    await delegate(world, world.stranger, await a_wallet(world, world.owner))
    order = await market.a_purchase(
        kind=0, src_amount=FAIR, src_token=world.usdc, dest_token=NATIVE, dest_amount=ONE // 2,
        expected_amount=0, beneficiary=world.stranger.address,
    )  # fmt: skip
    await world.give(world.user, world.usdc, FAIR, world.at.delta)
    await world.mint(world.weth, world.maker, ONE)
    await world.send(world.maker, world.weth, calldata.transfer(market.agent, ONE))
    before = await world.balance(NATIVE, world.stranger)
    steps = market.to_agent(FAIR, world.usdc), market.from_agent(ONE // 2, world.weth)
    await market.settle(order, *steps)
    assert await world.balance(NATIVE, world.stranger) == before + ONE // 2


async def test_delegated_makers_and_takers_fill_rfq_orders(world: World) -> None:
    await funded(world)
    wallet = await a_wallet(world, world.owner)
    for key in (world.maker, world.taker):
        await delegate(world, key, wallet)
    order = world.an_rfq_order()
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert rfq_events(world, receipt) == [filled(world, order)]
    stranger = world.signed(order := world.an_rfq_order(), world.stranger)
    data = calldata.fill_order(order, stranger)
    assert await refusal(world, world.taker, data, order) == "Invalid Signature"


async def test_a_delegated_owners_order_may_arrive_at_its_own_address(two: TwoChains, tmp_path: Path) -> None:
    """Its key holds that address on each chain, though its contract signs on one alone."""
    async with a_bridged_story(two, tmp_path) as story:
        world = story.world
        signs_all = await world.send(world.owner, b"", deploys(SIGNS_ALL))
        assert signs_all.contract is not None
        await delegate(world, world.user, signs_all.contract)
        order = await story.an_order(ACROSS)
        foreign = to_hex(world.delta_signed(order, world.stranger))
        status, placed = await story.submit(order, signature=foreign)
        assert status == 200, placed
        await story.becomes(placed, "COMPLETED")
