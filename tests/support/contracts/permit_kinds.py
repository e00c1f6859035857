"""Sales of USDC for which Delta has a permit in place of an allowance: one of each kind."""

from collections.abc import Awaitable, Callable

from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.engine.trade.delta.orders.terms import SettledOrder
from support.chain.world import ONE, USDC, World
from support.contracts import permit2
from support.contracts.permits import dai_permit, eip2612_permit, token_domain

SRC = 1_000 * USDC


async def seller(world: World) -> DeltaOrder:
    """The user sells 1,000 USDC, of which Delta may take nothing."""
    await world.mint(world.usdc, world.user, 10 * SRC)
    return await world.a_delta_order(
        src_token=world.usdc, dest_token=world.dai, src_amount=SRC, dest_amount=990 * ONE, expected_amount=0
    )


async def allowed_at_permit2(world: World, order: DeltaOrder) -> bytes:
    await world.approve(world.user, world.usdc, world.permit2)
    allow = permit2.allow(world.usdc, world.at.delta, SRC, order.deadline)
    await world.send(world.user, world.permit2, allow)
    return permit2.ALLOWED


async def permit2_transfer(world: World, order: SettledOrder) -> bytes:
    await world.approve(world.user, world.usdc, world.permit2)
    domain = permit2.permit2_domain(world.chain.chain_id, world.permit2)
    return permit2.transfer_permit(
        domain, world.user, world.at.delta, order.src_token, SRC, nonce=1 << 200 | 7, deadline=order.deadline
    )


async def permit2_allowance(world: World, order: DeltaOrder) -> bytes:
    """The user's second: Permit2 counts the permits of an owner, a token and a spender."""
    await world.approve(world.user, world.usdc, world.permit2)
    domain = permit2.permit2_domain(world.chain.chain_id, world.permit2)
    first, second = (
        permit2.allowance_permit(
            domain,
            world.user,
            world.at.delta,
            order.src_token,
            amount,
            expiration=order.deadline + 3_600,
            nonce=nonce,
            deadline=order.deadline,
        )
        for nonce, amount in enumerate((1, SRC))
    )
    shown = permit2.shown_allowance(first, world.user.address, world.at.delta, order.src_token)
    await world.send(world.stranger, world.permit2, shown)
    return second


async def eip2612(world: World, order: DeltaOrder) -> bytes:
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    return eip2612_permit(domain, world.user, world.at.delta, SRC, nonce=0, deadline=order.deadline)


async def dai(world: World, order: DeltaOrder) -> bytes:
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    return dai_permit(domain, world.user, world.at.delta, nonce=0, expiry=order.deadline)


KINDS: list[tuple[int, Callable[[World, DeltaOrder], Awaitable[bytes]]]] = [
    (1, allowed_at_permit2),
    (96, permit2_transfer),
    (192, permit2_allowance),
    (224, eip2612),
    (256, dai),
]
"""Length of a permit, and what gives the user's for an order."""
