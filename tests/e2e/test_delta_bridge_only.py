"""Bridge-only orders: their source token itself enters the bridge, each unit counts once, and gas is paid."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.bridges.bridge_terms import BridgeKind, input_of, output_of
from cambist.codecs.contracts.delta_calldata import EXECUTOR
from cambist.codecs.eip712_orders.delta import KIND_BUY, KIND_SELL, DeltaOrder
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.engine.chain.proceeds import of_purchase, of_sale
from cambist.engine.trade.delta.orders.terms import bridge_only_promise, bridge_only_room, next_part, terms_of
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.bridging import FEE, Bridging, a_bridging, deposit_of
from support.contracts.settling import Market

SENT = 2_500 * USDC
LEAST = 2_490 * USDC
GAS = 3 * USDC
"""Raw units that a settlement pays for its gas."""


@pytest.fixture
async def bridging(world: World, market: Market) -> Bridging:
    await world.give(world.user, world.usdc, 10_000 * USDC, world.at.delta)
    return await a_bridging(market)


def into(output: int) -> int:
    return input_of(FEE, 0, output)


async def a_bridge_only_sale(bridging: Bridging, by: BridgeKind, **changed: Any) -> DeltaOrder:
    """The user sends 2,500 USDC, of which 2,490 have to arrive."""
    world = bridging.world
    terms: dict[str, Any] = {"src_token": world.usdc, "src_amount": SENT, "dest_amount": LEAST}
    terms |= {"expected_amount": 0, "bridge": bridging.by(by), "beneficiary": world.stranger.address}
    return await world.a_delta_order(**terms | changed)


async def a_bridge_only_purchase(bridging: Bridging, by: BridgeKind, **changed: Any) -> DeltaOrder:
    """The user has 2,490 USDC arrive, for at most 2,500."""
    return await a_bridge_only_sale(bridging, by, kind=KIND_BUY, **changed)


@pytest.mark.parametrize("kind", BridgeKind)
@pytest.mark.parametrize("gas", [0, GAS])
async def test_all_that_gas_leaves_enters_the_bridge(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind, gas: int
) -> None:
    order = await a_bridge_only_sale(bridging, kind)
    before = await world.balance(world.usdc, world.user)
    paid = await world.balance(world.usdc, world.relayer)
    payee = world.relayer.address
    settled = await market.settle(order, receiver=payee, src_given=gas, promised=SENT - gas)
    assert (settled.event.spent, settled.event.received) == (SENT, SENT - gas)
    assert settled.event.is_closed
    left = bridging.left(settled.receipt)
    assert (left.amount, left.output) == (SENT - gas, output_of(FEE, 0, SENT - gas))
    assert await world.balance(world.usdc, world.user) == before - SENT
    assert await world.balance(world.usdc, world.relayer) == paid + gas
    assert await world.balance(world.usdc, world.at.delta) == 0
    await bridging.keeps_nothing()


async def test_what_a_settlement_finds_is_not_sent_with_it(
    world: World, market: Market, bridging: Bridging
) -> None:
    """Tokens at Delta are nobody's; those at the executor are the owner's, who gets them back."""
    await world.mint(world.usdc, world.at.delta, 7)
    await world.mint(world.usdc, world.at.executor, 5)
    order = await a_bridge_only_sale(bridging, BridgeKind.ACROSS)
    before = await world.balance(world.usdc, world.user)
    settled = await market.settle(order, receiver=EXECUTOR, leftovers=[world.usdc], promised=SENT)
    assert (settled.event.spent, settled.event.received) == (SENT, SENT)
    assert bridging.left(settled.receipt).amount == SENT
    assert await world.balance(world.usdc, world.user) == before - SENT + 5
    assert await world.balance(world.usdc, world.at.delta) == 7


async def test_the_partners_fee_is_of_what_is_sent(world: World, market: Market, bridging: Bridging) -> None:
    terms = PartnerAndFee(world.partner.address, 30, True, False)
    order = await a_bridge_only_sale(
        bridging,
        BridgeKind.ACROSS,
        partner_and_fee=pack_partner_and_fee(terms),
        dest_amount=LEAST - 20 * USDC,
        expected_amount=LEAST - 10 * USDC,
    )
    part = next_part(order, 0)
    assert part is not None
    promised = bridge_only_promise(terms_of(order), part, GAS)
    payee = world.relayer.address
    settled = await market.settle(order, receiver=payee, src_given=GAS, promised=promised)
    assert settled.event.received == promised
    cut = of_sale(SENT - GAS, into(order.expected_amount), into(order.dest_amount), terms)
    assert cut.fee > 0 < cut.share
    assert sum(fee.amount for fee in settled.fees) == cut.total
    assert (settled.event.spent, settled.event.received) == (SENT, SENT - GAS - cut.total)
    assert bridging.left(settled.receipt).amount == SENT - GAS - cut.total


@pytest.mark.parametrize("kind", BridgeKind)
async def test_a_purchase_takes_what_has_to_enter_and_its_fee(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind
) -> None:
    terms = PartnerAndFee(world.partner.address, 10, False, False)
    order = await a_bridge_only_purchase(bridging, kind, partner_and_fee=pack_partner_and_fee(terms))
    needed = into(LEAST)
    cut = of_purchase(needed + GAS, 0, SENT, terms)
    assert cut is not None
    before = await world.balance(world.usdc, world.user)
    paid = await world.balance(world.usdc, world.relayer)
    most = needed + GAS + cut.total
    settled = await market.settle(order, receiver=world.relayer.address, src_given=GAS, promised=most)
    assert (settled.event.spent, settled.event.received) == (most, needed)
    assert bridging.left(settled.receipt).output >= LEAST
    assert await world.balance(world.usdc, world.user) == before - most
    assert await world.balance(world.usdc, world.relayer) == paid + GAS
    assert await world.balance(world.usdc, world.at.delta) == 0
    await bridging.keeps_nothing()


async def test_what_a_purchase_pays_to_the_executor_goes_back(
    world: World, market: Market, bridging: Bridging
) -> None:
    order = await a_bridge_only_purchase(bridging, BridgeKind.ACROSS)
    before, needed = await world.balance(world.usdc, world.user), into(LEAST)
    settled = await market.settle(order, src_given=GAS)
    assert (settled.event.spent, settled.event.received) == (needed, needed)
    assert await world.balance(world.usdc, world.user) == before - needed


@pytest.mark.parametrize("kind", [KIND_SELL, KIND_BUY])
async def test_no_more_than_the_limit_leaves_pays_for_gas(
    world: World, market: Market, bridging: Bridging, kind: int
) -> None:
    order = await a_bridge_only_sale(bridging, BridgeKind.CCTP, kind=kind)
    part = next_part(order, 0)
    assert part is not None
    room = bridge_only_room(terms_of(order), part)
    payee = world.relayer.address
    refused = await market.refused_settlement(order, receiver=payee, src_given=room + 1)
    assert refused.partition("(")[0] == ("BelowMinimum" if kind == KIND_SELL else "AboveMaximum")
    assert bridge_only_promise(terms_of(order), part, room + 1) is None
    settled = await market.settle(
        order, receiver=payee, src_given=room, promised=bridge_only_promise(terms_of(order), part, room)
    )
    assert (settled.event.spent, settled.event.received) == (SENT, into(LEAST))


async def test_deposited_native_tokens_leave_wrapped(
    world: World, market: Market, bridging: Bridging
) -> None:
    bridge = bridging.by_across(output_token=bridging.far_usdc)
    sent: dict[str, Any] = {"src_token": NATIVE, "dest_token": world.weth, "src_amount": ONE}
    order = await a_bridge_only_sale(
        bridging, BridgeKind.ACROSS, **sent, dest_amount=ONE * 99 // 100, bridge=bridge
    )
    await market.deposit(order, ONE)
    gas, payee = ONE // 1_000, world.relayer.address
    settled = await market.settle(order, receiver=payee, src_given=gas, signature=b"")
    assert (settled.event.spent, settled.event.received) == (ONE, ONE - gas)
    assert deposit_of(settled.receipt).input_amount == ONE - gas
    assert await world.balance(world.weth, world.relayer) == gas
    assert await market.deposited(order) == 0


async def test_limit_and_promise_bind(world: World, market: Market, bridging: Bridging) -> None:
    dear = await a_bridge_only_sale(bridging, BridgeKind.CCTP, dest_amount=SENT)
    refused = await market.refused_settlement(dear, receiver=world.relayer.address)
    assert refused == f"BelowMinimum(received {SENT}, minimum {into(SENT)})"
    order = await a_bridge_only_sale(bridging, BridgeKind.CCTP)
    refused = await market.refused_settlement(order, receiver=world.relayer.address, promised=SENT + 1)
    assert refused.startswith("PromiseBroken(")


async def test_orders_of_one_token_need_a_bridge_and_are_not_crossed(
    world: World, market: Market, bridging: Bridging
) -> None:
    order = await a_bridge_only_sale(bridging, BridgeKind.ACROSS)
    here = msgspec.structs.replace(order, bridge=(await world.a_delta_order()).bridge)
    assert await market.refused_settlement(here, receiver=world.relayer.address) == "SameToken()"
    counter = await market.a_counter_order()
    crossed = await market.refused_crossing(market.crossing(order, SENT), market.crossing(counter, SENT))
    assert crossed == "BridgeNotEnabled()"


async def test_slices_of_a_twap_need_no_swap_either(world: World, market: Market, bridging: Bridging) -> None:
    least = output_of(FEE, 0, SENT // 3)
    order = await market.a_twap(
        src_token=world.usdc,
        total_src_amount=SENT,
        dest_amount_per_slice=least,
        bridge=bridging.by_across(),
    )
    settled = await market.settle(order, receiver=world.relayer.address)
    assert (settled.event.spent, settled.event.received) == (SENT // 3, SENT // 3)
    assert bridging.left(settled.receipt).output == least
    assert await world.balance(world.usdc, world.at.delta) == 0
