"""Parts of orders across chains, as the venue computes them: to the unit those of the contract."""

from typing import Any

import pytest

from cambist.codecs.bridges.bridge_terms import BridgeFee, BridgeKind
from cambist.engine.trade.delta.orders.terms import SettledOrder, next_part, part_of
from support.chain.world import ONE, USDC, World
from support.contracts.bridging import Bridging, a_bridging
from support.contracts.settling import Market

LEAST = 2_400 * USDC + 1


@pytest.fixture
async def bridging(market: Market) -> Bridging:
    return await a_bridging(market)


async def settles_exactly(bridging: Bridging, order: SettledOrder, filled: int) -> int:
    """Settle the next part with the least that the venue asks for; return what is settled then."""
    part = next_part(order, filled)
    assert part is not None
    market, given = bridging.market, part.src_amount
    how: dict[str, Any] = {} if part.amount == given else {"src_given": given}
    short = market.agent_steps(part.dest_amount - 1, given=given)
    refused = await market.refused_settlement(order, *short, **how)
    assert refused == f"BelowMinimum(received {part.dest_amount - 1}, minimum {part.dest_amount})"
    settled = await market.settle(order, *market.agent_steps(part.dest_amount, given=given), **how)
    assert settled.event.is_closed == part.is_last
    return settled.event.filled


@pytest.mark.parametrize("fee", [BridgeFee(0, 0), BridgeFee(130, 0), BridgeFee(333_333, 7_777_777)])
@pytest.mark.parametrize("kind", BridgeKind)
async def test_the_next_part_is_the_contract_s(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind, fee: BridgeFee
) -> None:
    bridge = bridging.by(kind, fee)
    sale = await world.a_delta_order(bridge=bridge, dest_amount=LEAST, expected_amount=0)
    assert await settles_exactly(bridging, sale, 0) == ONE
    purchase = await market.a_purchase(bridge=bridge)
    assert await settles_exactly(bridging, purchase, 0) == purchase.dest_amount
    twap = await market.a_twap(bridge=bridge, dest_amount_per_slice=800 * USDC + 1)
    bought = await market.a_twap_purchase(bridge=bridge)
    for done in range(twap.num_slices):
        assert await settles_exactly(bridging, twap, done) == done + 1
        assert await settles_exactly(bridging, bought, done) == done + 1
        await world.pass_time(60)


async def test_a_part_of_a_sale_is_the_contract_s(world: World, market: Market, bridging: Bridging) -> None:
    bridge = bridging.by_across(BridgeFee(333_333, 7_777_777))
    order = await world.a_delta_order(bridge=bridge, dest_amount=LEAST, expected_amount=0)
    part = part_of(order, ONE, ONE // 7)
    how: dict[str, Any] = {"amount": part.amount}
    short = market.agent_steps(part.dest_amount - 1, given=part.amount)
    assert (await market.refused_settlement(order, *short, **how)).startswith("BelowMinimum(")
    settled = await market.settle(order, *market.agent_steps(part.dest_amount, given=part.amount), **how)
    assert settled.event.filled == part.amount
