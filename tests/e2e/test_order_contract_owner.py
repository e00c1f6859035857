"""Orders of a smart wallet: signed as EIP-1271 has it, or by a call."""

from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts import delta_calldata
from cambist.crypto.signatures import to_65
from support.chain.world import ONE, USDC, World
from support.contracts.rfq_stories import a_wallet_that_sells, execute
from support.delta.delta_stories import DeltaStory, a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def its_order(story: DeltaStory, wallet: bytes) -> Any:
    return await story.world.a_delta_order(owner=wallet, beneficiary=wallet)


async def test_a_contract_signs_by_its_owners_key(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        wallet = await a_wallet_that_sells(story.world)
        order = await its_order(story, wallet)
        signature = to_65(*world.user.sign(world.delta_hash(order)))
        forged = bytes([*signature[:-2], signature[-2] ^ 1, signature[-1]])  # of s, the last byte
        status, refused = await story.submit(order, signature=f"0x{forged.hex()}")
        assert (status, refused.get("errorType")) == (400, "InvalidSignature"), refused
        record = await story.submitted(order, signature=f"0x{signature.hex()}")
        await story.becomes(record, "COMPLETED")
        assert await world.balance(world.usdc, wallet) == 2_500 * USDC
        assert await world.balance(world.weth, wallet) == ONE


async def test_a_contract_signs_by_a_call_before_or_after_it_submits(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        wallet = await a_wallet_that_sells(story.world)
        order = await its_order(story, wallet)
        record = await story.submitted(order, signature="0x")
        assert record["status"] == "AWAITING_SIGNATURE"
        assert story.agents["ann"].requests == []
        sign = delta_calldata.set_pre_signature(world.delta_hash(order), is_signed=True)
        await world.send(world.user, wallet, execute(world.at.delta, sign))
        await story.becomes(record, "COMPLETED")
        second = await its_order(story, wallet)
        sign = delta_calldata.set_pre_signature(world.delta_hash(second), is_signed=True)
        await world.send(world.user, wallet, execute(world.at.delta, sign))
        record = await story.submitted(second, signature="0x")
        assert record["status"] == "PENDING"
        await story.becomes(record, "COMPLETED")
        assert await world.balance(world.usdc, wallet) == 5_000 * USDC


async def test_an_order_that_waits_for_its_signature_can_be_cancelled(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        wallet = await a_wallet_that_sells(story.world)
        record = await story.submitted(await its_order(story, wallet), signature="0x")
        ids = [record["id"]]
        digest65 = world.cancellation(ids)
        body = {"orderIds": ids, "signature": f"0x{digest65.hex()}"}
        status, told = await story.web.post("/v2/delta/orders/cancel", body)
        assert status == 200, told
        await story.becomes(record, "CANCELLED")
