"""Settlements of Delta that leave one world by a bridge and arrive, or come back, by relayer and attester."""

import pytest
from trio.testing import MockClock

from cambist.codecs.bridges import cctp
from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    output_of,
    pack_terms,
)
from cambist.codecs.eip712_orders.delta import DeltaBridge
from support.bridge.two_chains import RECIPIENT, RELAYER, STOCK, TwoChains, two_chains
from support.chain.world import HOUR_S, NOBODY, ONE, USDC
from support.contracts.settling import Settled, a_market

FAIR = 2_500 * USDC
FEE = BridgeFee(ppm=500, fixed=30_000)


async def settled(two: TwoChains, origin: int, kind: BridgeKind) -> Settled:
    """The user's sale of one WETH for USDC on the other chain, for RECIPIENT."""
    world, other = two.worlds[origin], two.other(origin)
    terms: BridgeTerms = AcrossTerms(FEE, HOUR_S, NOBODY, 0)
    if kind is BridgeKind.CCTP:
        terms = CctpTerms(FEE, cctp.FINALITY_CONFIRMED, two.places[other].domain)
    bridge = DeltaBridge(SELECTORS[kind], other, two.tokens["USDC"][other], 0, pack_terms(terms))
    order = await world.a_delta_order(bridge=bridge, beneficiary=RECIPIENT.address)
    market = await a_market(world)
    return await market.settle(order, *market.agent_steps(FAIR))


@pytest.mark.parametrize("is_back", [False, True])
async def test_what_is_settled_by_across_arrives(autojump_clock: MockClock, *, is_back: bool) -> None:
    async with two_chains() as two:
        origin = two.second if is_back else two.first
        await settled(two, origin, BridgeKind.ACROSS)
        arrives = output_of(FEE, 0, FAIR)
        await two.arrived(two.other(origin), "USDC", arrives)
        await two.paid_out(origin)
        assert await two.balance(origin, "USDC", RELAYER) == STOCK * USDC + FAIR
        assert await two.balance(origin, "USDC", two.places[origin].spoke_pool) == 0


async def test_what_nobody_fills_comes_back_to_the_owner(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.relayer.order(is_silent=True)
        before = await two.balance(two.first, "USDC", two.user)
        await settled(two, two.first, BridgeKind.ACROSS)
        await two.paid_out(two.first)
        assert await two.balance(two.first, "USDC", two.user) == before + FAIR
        assert await two.balance(two.first, "USDC", RECIPIENT) == 0
        assert await two.balance(two.second, "USDC", RECIPIENT) == 0


async def test_what_is_settled_by_cctp_arrives(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        done = await settled(two, two.first, BridgeKind.CCTP)
        assert await two.balance(two.first, "WETH", two.user) == (STOCK + 9) * ONE
        message, attestation = await two.attested(two.first, done.receipt.tx_hash)
        await two.receive(two.second, message, attestation)
        fee = FAIR // 10_000  # the attester's own, below the signed one
        assert await two.balance(two.second, "USDC", RECIPIENT) == FAIR - fee > output_of(FEE, 0, FAIR)
