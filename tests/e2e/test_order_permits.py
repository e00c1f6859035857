"""A permit in place of an approval: each kind is proven at submission, and settled by."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from cambist.codecs.contracts.calldata import allowance
from cambist.codecs.eip712_orders.delta import DeltaOrder
from support.chain.world import MOST, ONE, World
from support.contracts.permit_kinds import KINDS, SRC, eip2612, seller
from support.delta.delta_stories import a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

each_kind = pytest.mark.parametrize(("length", "permit_of"), KINDS)
PermitOf = Callable[[World, DeltaOrder], Awaitable[bytes]]


@each_kind
async def test_an_order_with_a_permit_is_settled(
    world: World, tmp_path: Path, length: int, permit_of: PermitOf
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 1_000 * ONE
        order = await seller(world)
        status, refused = await story.submit(order)
        assert (status, refused["errorType"]) == (400, "InsufficientAllowance")
        order = msgspec.structs.replace(order, permit=await permit_of(world, order))
        assert len(order.permit) == length
        _, moved = await story.completed(order)
        assert moved["user", "USDC"] == -SRC
        assert moved["user", "DAI"] == 1_000 * ONE


async def test_an_exact_permit_suspends_no_order_that_rests_on_an_unlimited_approval(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        order = await seller(world)
        await world.approve(world.user, world.usdc, world.at.delta, MOST)
        wish = msgspec.structs.replace(order, dest_amount=2_000 * ONE, nonce=order.nonce + 1)
        resting = await story.submitted(wish, type="LIMIT")
        await story.becomes(resting, "ACTIVE")
        story.agents["ann"].gives = lambda asked: (
            None if asked.order_hash == resting["orderHash"] else 1_000 * ONE
        )
        swap = msgspec.structs.replace(order, permit=await eip2612(world, order))
        _, moved = await story.completed(swap)
        assert moved["user", "USDC"] == -SRC
        assert await world.ask(world.usdc, allowance(world.user.address, world.at.delta)) == MOST
        await story.confirm()
        assert (await story.record(resting["id"]))["status"] == "ACTIVE"


@pytest.mark.parametrize("length", [96, 192, 224, 256])
async def test_a_permit_that_was_not_signed_so_is_refused_at_submission(
    world: World, tmp_path: Path, length: int
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        order = await seller(world)
        permit = await dict(KINDS)[length](world, order)
        forged = permit[:-1] + bytes([permit[-1] ^ 1])
        status, refused = await story.submit(msgspec.structs.replace(order, permit=forged))
        assert (status, refused["errorType"]) == (400, "InsufficientAllowance")
        assert "permit" in refused["details"]
