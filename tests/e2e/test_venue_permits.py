"""A permit in place of an approval: EIP-2612, DAI's, and the three of Permit2, over HTTP to a mined swap."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts.calldata import allowance
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.permit2 import ALLOWED, allow, allowance_permit, permit2_domain, transfer_permit
from support.contracts.permits import dai_permit, eip2612_permit, token_domain
from support.venue.venue_role import CHAIN_ID
from support.venue.venue_stories import Story, a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOKS: dict[str, Any] = {
    "WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2501", "50"]]},
    "WETH/DAI": {"bids": [["2500", "50"]], "asks": [["2501", "50"]]},
}
SOLD = 2_501 * USDC
Permit = Callable[[World, int], Awaitable[bytes]]


async def eip2612(world: World, deadline: int) -> bytes:
    domain = token_domain("USDC", CHAIN_ID, world.usdc)
    return eip2612_permit(domain, world.user, world.at.router, SOLD, nonce=0, deadline=deadline)


async def permit2_transfer(world: World, deadline: int) -> bytes:
    await world.approve(world.user, world.usdc, world.permit2)
    return transfer_permit(
        permit2_domain(CHAIN_ID, world.permit2), world.user, world.at.router, world.usdc, SOLD,
        nonce=7, deadline=deadline,
    )  # fmt: skip


async def permit2_allowance(world: World, deadline: int) -> bytes:
    await world.approve(world.user, world.usdc, world.permit2)
    return allowance_permit(
        permit2_domain(CHAIN_ID, world.permit2), world.user, world.at.router, world.usdc, SOLD,
        expiration=deadline + 3_600, nonce=0, deadline=deadline,
    )  # fmt: skip


async def permit2_existing(world: World, deadline: int) -> bytes:
    await world.approve(world.user, world.usdc, world.permit2)
    await world.send(world.user, world.permit2, allow(world.usdc, world.at.router, SOLD, deadline))
    return ALLOWED


@pytest.fixture
async def story(world: World, tmp_path: Path) -> AsyncIterator[Story]:
    """The Router may take nothing of the user's."""
    async with a_venue_story(world, tmp_path, {"alpha": BOOKS}) as story:
        for token in ("WETH", "USDC", "DAI"):
            await story.allow(token, 0)
        yield story


@pytest.mark.parametrize("permit", [eip2612, permit2_transfer, permit2_allowance, permit2_existing])
async def test_a_permit_takes_the_place_of_an_approval(story: Story, permit: Permit) -> None:
    route = await story.prices("SELL", "USDC", "WETH", SOLD)
    status, details = await story.not_built(route)
    assert (status, details.partition(":")[0]) == (400, "InsufficientAllowance")
    deadline = await story.world.now_s() + 120
    raw = await permit(story.world, deadline)
    moved = await story.swap(route, permit=f"0x{raw.hex()}", deadline=deadline)
    assert moved == {
        ("user", "USDC"): -SOLD,
        ("user", "WETH"): ONE - ONE // 10_000,
        ("vault", "WETH"): ONE // 10_000,
        ("alpha", "USDC"): SOLD,
        ("alpha", "WETH"): -ONE,
    }
    if raw != ALLOWED:
        status, details = await story.not_built(route, permit=f"0x{raw.hex()}", deadline=deadline)
        assert (status, details.partition(":")[0]) == (400, "InsufficientAllowance")
        assert "the permit is refused" in details


async def test_an_exact_permit_leaves_an_unlimited_approval(story: Story) -> None:
    world = story.world
    await story.allow("USDC", MOST)
    route = await story.prices("SELL", "USDC", "WETH", SOLD)
    deadline = await world.now_s() + 120
    raw = await eip2612(world, deadline)
    moved = await story.swap(route, permit=f"0x{raw.hex()}", deadline=deadline)
    assert moved["user", "USDC"] == -SOLD
    assert await world.ask(world.usdc, allowance(world.user.address, world.at.router)) == MOST


async def test_a_permit_for_less_counts_beside_an_approval_that_covers_the_swap(story: Story) -> None:
    world = story.world
    await story.allow("USDC", 2 * SOLD)
    route = await story.prices("SELL", "USDC", "WETH", SOLD)
    domain = token_domain("USDC", CHAIN_ID, world.usdc)
    deadline = await world.now_s() + 120
    raw = eip2612_permit(domain, world.user, world.at.router, 1, nonce=0, deadline=deadline)
    await story.swap(route, permit=f"0x{raw.hex()}", deadline=deadline)
    assert await world.ask(world.usdc, allowance(world.user.address, world.at.router)) == SOLD


async def test_a_dai_permit_serves_a_purchase(story: Story) -> None:
    world = story.world
    deadline = await world.now_s() + 120
    domain = token_domain("DAI", CHAIN_ID, world.dai)
    raw = dai_permit(domain, world.user, world.at.router, nonce=0, expiry=deadline)
    route = await story.prices("BUY", "DAI", "WETH", ONE)
    moved = await story.swap(route, permit=f"0x{raw.hex()}")
    assert moved["user", "DAI"] == -2_501 * ONE - 2_501 * ONE // 10_000
    assert moved["user", "WETH"] == ONE
    assert await world.ask(world.dai, allowance(world.user.address, world.at.router)) == MOST


async def test_a_permit_for_somebody_else_is_refused_by_name(story: Story) -> None:
    world = story.world
    deadline = await world.now_s() + 120
    domain = token_domain("USDC", CHAIN_ID, world.usdc)
    route = await story.prices("SELL", "USDC", "WETH", SOLD)
    for owner, spender, role in (
        (world.user, world.at.delta, "spender"),
        (world.stranger, world.at.router, "owner"),
    ):
        raw = eip2612_permit(domain, owner, spender, SOLD, nonce=0, deadline=deadline)
        status, details = await story.not_built(route, permit=f"0x{raw.hex()}")
        assert status == 400
        assert f"permit: expected the {role}" in details
    short = await story.not_built(route, permit="0x" + "00" * 100)
    assert short[0] == 400
    assert "permit" in short[1]
