"""A permit in place of an approval: each kind is proven at submission, and settled by."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from cambist.codecs.eip712_orders.delta import DeltaOrder
from support.chain.world import ONE, World
from support.contracts.permit_kinds import KINDS, SRC, seller
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
