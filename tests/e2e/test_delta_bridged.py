"""Orders whose purchase leaves by a bridge: the signed least arrives, or nothing happens."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.bridges.across import ExecutedRelayerRefundRoot, decode_across_log, execute_refund_leaf
from cambist.codecs.bridges.bridge_terms import SELECTORS, BridgeFee, BridgeKind, input_of, output_of
from cambist.codecs.bridges.cctp import parse_burn
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.contract_events import OrderBridged
from cambist.codecs.contracts.delta_calldata import settle_crossed
from cambist.codecs.eip712_orders.delta import DeltaBridge, TwapBuyOrder, TwapOrder
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.config.errors import Reverted
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.proceeds import of_sale
from support.chain.evm_programs import deploys
from support.chain.world import HOUR_S, NATIVE, NOBODY, ONE, USDC, World
from support.contracts.bridging import (
    FAR,
    FEE,
    PAUSE_DEPOSITS,
    SET_LIMIT,
    Bridging,
    a_bridging,
    attested,
    deposit_of,
    message_of,
)
from support.contracts.fuzz_parts import module_call
from support.contracts.settling import Market

FAIR = 2_500 * USDC
LEAST = 2_400 * USDC
DEAR = BridgeFee(ppm=999_999, fixed=2**128 - 1)


@pytest.fixture
async def bridging(market: Market) -> Bridging:
    return await a_bridging(market)


def out(amount: int, fee: BridgeFee = FEE, scaling: int = 0) -> int:
    return output_of(fee, scaling, amount)


def into(output: int, fee: BridgeFee = FEE, scaling: int = 0) -> int:
    return input_of(fee, scaling, output)


# --- What arrives -----------------------------------------------------------------------------------------


async def test_a_sale_leaves_by_across_and_arrives_to_the_unit(
    world: World, market: Market, bridging: Bridging
) -> None:
    order = await world.a_delta_order(bridge=bridging.by_across(), beneficiary=world.stranger.address)
    settled = await market.settle(order, *market.agent_steps(FAIR))
    assert (settled.event.spent, settled.event.received) == (ONE, FAIR)
    wanted = (
        world.delta_hash(order),
        SELECTORS[BridgeKind.ACROSS],
        FAR,
        bridging.far_usdc,
        FAIR,
        out(FAIR),
        0,
    )
    assert bridging.left(settled.receipt) == OrderBridged(*wanted)
    deposit = deposit_of(settled.receipt)
    now = await world.now_s()
    assert (deposit.input_token, deposit.input_amount) == (address_word(world.usdc), FAIR)
    assert (deposit.output_token, deposit.output_amount) == (address_word(bridging.far_usdc), out(FAIR))
    assert deposit.depositor == address_word(world.user.address)
    assert deposit.recipient == address_word(world.stranger.address)
    assert (deposit.destination_chain_id, deposit.deposit_id, deposit.message) == (FAR, 0, b"")
    assert (deposit.quote_timestamp, deposit.fill_deadline) == (now, now + HOUR_S)
    assert (deposit.exclusive_relayer, deposit.exclusivity_deadline) == (bytes(32), 0)
    assert await world.balance(world.usdc, world.spoke_pool) == FAIR
    await bridging.fill(settled.receipt)
    assert await world.balance(bridging.far_usdc, world.stranger) == out(FAIR)
    assert await world.balance(world.usdc, world.stranger) == 0
    await bridging.keeps_nothing()


async def test_a_sale_leaves_by_cctp_and_the_fee_is_at_most_what_was_signed(
    world: World, market: Market, bridging: Bridging
) -> None:
    order = await world.a_delta_order(bridge=bridging.by_cctp(), beneficiary=world.stranger.address)
    settled = await market.settle(order, *market.agent_steps(FAIR))
    assert bridging.left(settled.receipt) == OrderBridged(
        world.delta_hash(order), SELECTORS[BridgeKind.CCTP], FAR, bridging.far_usdc, FAIR, out(FAIR), 0
    )
    message = message_of(settled.receipt)
    burn = parse_burn(message.body)
    assert (message.min_finality, message.destination_caller) == (2_000, bytes(32))
    assert (burn.burn_token, burn.amount, burn.max_fee) == (address_word(world.usdc), FAIR, FAIR - out(FAIR))
    assert burn.message_sender == address_word(world.at.bridges)
    assert burn.mint_recipient == address_word(world.stranger.address)
    dear = attested(settled.receipt, fee=burn.max_fee + 1)
    assert await world.refused(world.taker, bridging.far_transmitter, dear) == "Fee exceeds max fee"
    await world.send(world.taker, bridging.far_transmitter, attested(settled.receipt, fee=burn.max_fee))
    assert await world.balance(bridging.far_usdc, world.stranger) == out(FAIR)
    await bridging.keeps_nothing()


@pytest.mark.parametrize("kind", BridgeKind)
async def test_the_least_is_what_has_to_arrive(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind
) -> None:
    """To the unit: one unit less than the least that has to enter the bridge is refused."""
    order = await world.a_delta_order(bridge=bridging.by(kind), expected_amount=0)
    needed = into(LEAST)
    assert out(needed) >= LEAST > out(needed - 1)
    refused = await market.refused_settlement(order, *market.agent_steps(needed - 1))
    assert refused == f"BelowMinimum(received {needed - 1}, minimum {needed})"
    settled = await market.settle(order, *market.agent_steps(needed))
    assert bridging.left(settled.receipt).output == out(needed)


@pytest.mark.parametrize("kind", BridgeKind)
async def test_a_purchase_buys_what_has_to_arrive(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind
) -> None:
    needed = into(FAIR)
    order = await market.a_purchase(bridge=bridging.by(kind))
    short = await market.refused_settlement(order, *market.agent_steps(needed - 1), src_given=ONE)
    assert short == f"BelowMinimum(received {needed - 1}, minimum {needed})"
    settled = await market.settle(order, *market.agent_steps(needed), src_given=ONE)
    assert (settled.event.spent, settled.event.received) == (ONE, needed)
    assert (settled.event.filled, settled.event.is_closed) == (FAIR, True)
    assert bridging.left(settled.receipt).output >= FAIR
    await bridging.keeps_nothing()


async def test_parts_round_in_the_owners_favour(world: World, market: Market, bridging: Bridging) -> None:
    """Each part has its own deposit, and each pays the bridge's fixed fee."""
    order = await world.a_delta_order(bridge=bridging.by_across(), dest_amount=LEAST + 1, expected_amount=0)
    needed = into(LEAST // 2 + 1)
    half: dict[str, Any] = {"amount": ONE // 2}
    steps = market.agent_steps(needed - 1, given=ONE // 2)
    refused = await market.refused_settlement(order, *steps, **half)
    assert refused == f"BelowMinimum(received {needed - 1}, minimum {needed})"
    for number in range(2):
        settled = await market.settle(order, *market.agent_steps(needed, given=ONE // 2), **half)
        assert bridging.left(settled.receipt).id == number
        assert deposit_of(settled.receipt).deposit_id == number
    assert await market.is_nonce_used(order)


async def test_parts_of_a_purchase_count_what_arrives(
    world: World, market: Market, bridging: Bridging
) -> None:
    order = await market.a_purchase(bridge=bridging.by_across())
    part = FAIR // 4
    steps = market.agent_steps(into(part), given=ONE // 4)
    settled = await market.settle(order, *steps, amount=part, src_given=ONE // 4)
    assert settled.event.filled == await market.filled(order) == part


@pytest.mark.parametrize("kind", BridgeKind)
async def test_slices_leave_one_by_one(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind
) -> None:
    sale: TwapOrder = await market.a_twap(bridge=bridging.by(kind))
    purchase: TwapBuyOrder = await market.a_twap_purchase(bridge=bridging.by(kind))
    for number in range(sale.num_slices):
        is_last = number == sale.num_slices - 1
        given = ONE // 3 + (ONE % 3 if is_last else 0)
        least = (
            -(-sale.dest_amount_per_slice * given // (ONE // 3)) if is_last else sale.dest_amount_per_slice
        )
        needed = into(least)
        refused = await market.refused_settlement(sale, *market.agent_steps(needed - 1, given=given))
        assert refused == f"BelowMinimum(received {needed - 1}, minimum {needed})"
        settled = await market.settle(sale, *market.agent_steps(needed, given=given))
        assert bridging.left(settled.receipt).output == out(needed) >= least
        bought = FAIR // 3 + (FAIR % 3 if is_last else 0)
        given = purchase.max_src_amount // 4
        steps = market.agent_steps(into(bought), given=given)
        settled = await market.settle(purchase, *steps, src_given=given)
        assert bridging.left(settled.receipt).output >= bought
        await world.pass_time(60)
    assert await market.is_nonce_used(sale)
    assert await market.is_nonce_used(purchase)
    await bridging.keeps_nothing()


async def test_fee_and_surplus_are_of_what_enters_the_bridge(
    world: World, market: Market, bridging: Bridging
) -> None:
    terms = PartnerAndFee(world.partner.address, 100, True, False)
    order = await world.a_delta_order(
        bridge=bridging.by_across(), partner_and_fee=pack_partner_and_fee(terms)
    )
    brought = 2_700 * USDC
    settled = await market.settle(order, *market.agent_steps(brought))
    cut = of_sale(brought, into(order.expected_amount), into(order.dest_amount), terms)
    assert cut.share > 0
    assert sum(fee.amount for fee in settled.fees) == cut.total
    assert settled.event.received == brought - cut.total == bridging.left(settled.receipt).amount
    assert bridging.left(settled.receipt).output == out(brought - cut.total)


async def test_the_promise_is_of_what_enters_the_bridge(
    world: World, market: Market, bridging: Bridging
) -> None:
    order = await world.a_delta_order(bridge=bridging.by_across())
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR), promised=FAIR + 1)
    assert refused.startswith("PromiseBroken(")
    await market.settle(order, *market.agent_steps(FAIR), promised=FAIR)


@pytest.mark.parametrize("scaling", [12, -12, 30, -18])
async def test_decimals_of_the_two_ends_may_differ(
    world: World, market: Market, bridging: Bridging, scaling: int
) -> None:
    """USDC of 6 decimals arrives with more; DAI of 18 with fewer, and what is lost is rounded down."""
    token = world.usdc if scaling > 0 else world.dai
    brought = 2_500 * 10 ** (6 if scaling > 0 else 18) + 999_999
    least = out(brought, scaling=scaling)
    order = await world.a_delta_order(
        bridge=bridging.by_across(scaling_factor=scaling),
        dest_token=token,
        dest_amount=least,
        expected_amount=0,
    )
    needed = into(least, scaling=scaling)
    assert needed <= brought
    steps = market.to_agent(ONE), market.from_agent(needed - 1, token)
    assert (await market.refused_settlement(order, *steps)).startswith("BelowMinimum(")
    settled = await market.settle(order, market.to_agent(ONE), market.from_agent(needed, token))
    assert deposit_of(settled.receipt).output_amount == least == out(needed, scaling=scaling)


async def test_what_rests_in_a_vault_leaves_too(world: World, market: Market, bridging: Bridging) -> None:
    vault = await create(world.chain, world.owner, "DevFickleVault", address_word(world.weth))
    await world.approve(world.user, world.weth, vault)
    await world.approve(world.user, vault, world.at.delta)
    deposit = selector("deposit(uint256,address)") + uint_word(ONE) + address_word(world.user.address)
    await world.send(world.user, vault, deposit)
    order = await market.a_productive_order(strategy=vault, bridge=bridging.by_across())
    settled = await market.settle(order, *market.agent_steps(FAIR))
    assert bridging.left(settled.receipt).output == out(FAIR)


# --- Refunds ----------------------------------------------------------------------------------------------


async def test_an_unfilled_deposit_comes_back_to_the_owner(
    world: World, market: Market, bridging: Bridging
) -> None:
    order = await world.a_delta_order(bridge=bridging.by_across(), beneficiary=world.stranger.address)
    await market.settle(order, *market.agent_steps(FAIR))
    data = execute_refund_leaf(1, world.chain.chain_id, world.usdc, [(world.user.address, FAIR)])
    receipt = await world.send(world.owner, world.spoke_pool, data)
    refund = decode_across_log(receipt.logs[-1].topics, receipt.logs[-1].data)
    assert isinstance(refund, ExecutedRelayerRefundRoot)
    assert (refund.refund_addresses, refund.refund_amounts) == ((world.user.address,), (FAIR,))
    assert await world.balance(world.usdc, world.user) == FAIR


# --- What is refused --------------------------------------------------------------------------------------


def word_at(bridge: DeltaBridge, number: int, value: int) -> DeltaBridge:
    """The bridge with another word in its protocolData."""
    data = bridge.protocol_data
    changed = data[: 32 * number] + uint_word(value) + data[32 * (number + 1) :]
    return msgspec.structs.replace(bridge, protocol_data=changed)


BAD_WORDS = {
    BridgeKind.ACROSS: ((0, 10**6), (1, 2**128), (2, 2**32), (3, 2**160), (4, 2**32)),
    BridgeKind.CCTP: ((0, 10**6), (1, 2**128), (2, 2**32), (3, 2**32)),
}


@pytest.mark.parametrize("kind", BridgeKind)
async def test_terms_that_are_none_are_refused(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind
) -> None:
    good = bridging.by(kind)
    data = good.protocol_data
    changes: list[dict[str, Any]] = [
        {"destination_chain_id": 0},
        {"destination_chain_id": world.chain.chain_id},
        {"output_token": NOBODY},
        {"scaling_factor": 31 if kind is BridgeKind.ACROSS else 1},
        {"scaling_factor": -31 if kind is BridgeKind.ACROSS else -1},
        {"scaling_factor": -128},
        {"protocol_data": data[:-1]},
        {"protocol_data": data[:-32]},
        {"protocol_data": data + b"\0"},
        {"protocol_data": data + bytes(32)},
        {"protocol_data": b""},
    ]
    bad = [msgspec.structs.replace(good, **changed) for changed in changes]
    bad += [word_at(good, number, value) for number, value in BAD_WORDS[kind]]
    for bridge in bad:
        order = await world.a_delta_order(bridge=bridge)
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
        assert refused == "InvalidBridge()", bridge
    for twap in (await market.a_twap(bridge=bad[1]), await market.a_twap_purchase(bridge=bad[1])):
        assert await market.refused_settlement(twap, *market.agent_steps(FAIR)) == "InvalidBridge()"


@pytest.mark.parametrize("kind", BridgeKind)
async def test_the_largest_terms_are_read(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind
) -> None:
    """The fee takes it all: nothing would arrive."""
    order = await world.a_delta_order(bridge=bridging.by(kind, DEAR), dest_amount=0, expected_amount=0)
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
    assert refused == f"BelowBridgeFee(amount {FAIR})"


@pytest.mark.parametrize(
    "function",
    [
        "carry((address,address,address,uint256,(bytes4,uint256,address,int8,bytes)))",
        "inputsOf((bytes4,uint256,address,int8,bytes),uint256,uint256)",
        "outputOf((bytes4,uint256,address,int8,bytes),uint256)",
        "spokePool()",
        "across()",
    ],
)
async def test_a_selector_of_no_bridge_is_refused(
    world: World, market: Market, bridging: Bridging, function: str
) -> None:
    bridge = bridging.by_across(protocol_selector=selector(function))
    order = await world.a_delta_order(bridge=bridge)
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
    assert refused == f"UnknownBridge(protocolSelector 0x{selector(function).hex()})"


async def test_native_tokens_leave_wrapped(world: World, market: Market, bridging: Bridging) -> None:
    terms = {"src_token": world.usdc, "src_amount": FAIR, "dest_amount": 1, "expected_amount": 0}
    await world.give(world.user, world.usdc, 2 * FAIR, world.at.delta)
    steps = market.to_agent(FAIR, world.usdc), market.from_agent(ONE, world.weth)
    await world.give(world.stranger, world.weth, ONE, market.agent)
    await world.send(
        world.stranger,
        world.weth,
        selector("transfer(address,uint256)") + address_word(market.agent) + uint_word(ONE),
    )
    native = await world.a_delta_order(dest_token=NATIVE, bridge=bridging.by_across(), **terms)
    assert await market.refused_settlement(native, *steps) == "InvalidBridge()"
    wrapped = await world.a_delta_order(dest_token=world.weth, bridge=bridging.by_across(), **terms)
    settled = await market.settle(wrapped, *steps)
    assert deposit_of(settled.receipt).input_token == address_word(world.weth)


async def test_orders_against_each_other_have_no_bridge(
    world: World, market: Market, bridging: Bridging
) -> None:
    order = await world.a_delta_order(bridge=bridging.by_across())
    crossings = market.crossing(order, FAIR), market.crossing(await market.a_counter_order(), ONE)
    assert await market.refused_crossing(*crossings) == "BridgeNotEnabled()"
    with pytest.raises(Reverted, match="BridgeNotEnabled"):
        await world.chain.call(EthCall(world.at.delta, settle_crossed(crossings), world.relayer.address))


@pytest.mark.parametrize("odd", ["setTransferFee(uint256)", "setRounding(uint256)"])
async def test_a_token_of_which_less_arrives_cannot_leave(
    world: World, market: Market, bridging: Bridging, odd: str
) -> None:
    token = await world.new_token()
    await world.mint(token, market.agent, 10 * ONE)
    terms = {"dest_token": token, "dest_amount": 1, "expected_amount": 0}
    order = await world.a_delta_order(bridge=bridging.by_across(), **terms)
    await world.send(world.owner, token, selector(odd) + uint_word(100))
    steps = market.to_agent(ONE), market.from_agent(ONE, token)
    assert await market.refused_settlement(order, *steps) == "TransferFailed()"
    await world.send(world.owner, token, selector(odd) + uint_word(0))
    await market.settle(order, *steps)
    await bridging.keeps_nothing(token)


async def test_a_token_that_returns_nothing_leaves(world: World, market: Market, bridging: Bridging) -> None:
    token = await world.new_token("DevTokenWithoutReturn")
    await world.mint(token, market.agent, 10 * ONE)
    for _ in range(2):
        order = await world.a_delta_order(
            bridge=bridging.by_across(), dest_token=token, dest_amount=1, expected_amount=0
        )
        await market.settle(order, market.to_agent(ONE), market.from_agent(ONE, token))
    await bridging.keeps_nothing(token)


async def test_a_bridge_that_refuses_undoes_all(world: World, market: Market, bridging: Bridging) -> None:
    """Tokens stay with the owner, and the order stays open."""
    pool, messenger = world.spoke_pool, world.token_messenger
    order = await world.a_delta_order(bridge=bridging.by_across())
    await world.send(world.owner, pool, PAUSE_DEPOSITS + uint_word(1))
    assert await market.refused_settlement(order, *market.agent_steps(FAIR)) == "DepositsArePaused()"
    await world.send(world.owner, pool, PAUSE_DEPOSITS + uint_word(0))
    late = await world.a_delta_order(bridge=bridging.by_across(fill_within_s=7 * HOUR_S))
    assert await market.refused_settlement(late, *market.agent_steps(FAIR)) == "InvalidFillDeadline()"
    endless = await world.a_delta_order(bridge=bridging.by_across(fill_within_s=2**32 - 1))
    assert await market.refused_settlement(endless, *market.agent_steps(FAIR)) == "InvalidBridge()"
    exclusive = await world.a_delta_order(bridge=bridging.by_across(exclusivity_s=60))
    assert (
        await market.refused_settlement(exclusive, *market.agent_steps(FAIR)) == "InvalidExclusiveRelayer()"
    )
    burnt = await world.a_delta_order(bridge=bridging.by_cctp())
    await world.send(world.owner, messenger, SET_LIMIT + address_word(world.usdc) + uint_word(FAIR - 1))
    refused = await market.refused_settlement(burnt, *market.agent_steps(FAIR))
    assert refused == "Burn amount exceeds per tx limit"
    nowhere = await world.a_delta_order(bridge=bridging.by_cctp(domain=77))
    refused = await market.refused_settlement(nowhere, *market.agent_steps(FAIR))
    assert refused == "No TokenMessenger for domain"
    await market.settle(order, *market.agent_steps(FAIR))


async def test_the_exclusive_relayer_is_the_signed_one(
    world: World, market: Market, bridging: Bridging
) -> None:
    terms: dict[str, Any] = {"exclusive_relayer": world.maker.address, "exclusivity_s": 60}
    order = await world.a_delta_order(bridge=bridging.by_across(**terms))
    settled = await market.settle(order, *market.agent_steps(FAIR))
    deposit = deposit_of(settled.receipt)
    assert deposit.exclusive_relayer == address_word(world.maker.address)
    assert deposit.exclusivity_deadline == deposit.quote_timestamp + 60


async def test_the_signed_bridge_binds(world: World, market: Market, bridging: Bridging) -> None:
    order = await world.a_delta_order(bridge=bridging.by_across())
    signed = world.delta_signed(order)
    for bridge in (
        bridging.by_cctp(),
        bridging.by_across(BridgeFee(501, 30_000)),
        bridging.by_across(output_token=b"\1" * 20),
    ):
        other = msgspec.structs.replace(order, bridge=bridge)
        refused = await market.refused_settlement(other, *market.agent_steps(FAIR), signature=signed)
        assert refused == "InvalidSignature()"


# --- Bridges, called by others ----------------------------------------------------------------------------


def transfer(world: World, bridge: DeltaBridge, kind: BridgeKind, amount: int) -> bytes:
    """A call of the module by the stranger, to its own benefit."""
    return module_call(bridge, kind, world.usdc, amount, world.stranger.address)


@pytest.mark.parametrize("kind", BridgeKind)
async def test_a_stranger_gains_nothing_at_the_module(
    world: World, market: Market, bridging: Bridging, kind: BridgeKind
) -> None:
    """Others' allowances are to Delta: the module has what somebody gave away, and nothing else."""
    bridges = world.at.bridges
    await world.give(world.user, world.usdc, FAIR, world.at.delta)
    call = transfer(world, bridging.by(kind), kind, FAIR)
    says = "TransferFailed()" if kind is BridgeKind.ACROSS else "Transfer operation failed"
    assert await world.refused(world.stranger, bridges, call) == says
    await world.mint(world.usdc, bridges, FAIR)
    order = await world.a_delta_order(bridge=bridging.by(kind))
    await market.settle(order, *market.agent_steps(FAIR))
    assert await world.balance(world.usdc, bridges) == FAIR
    await world.send(world.stranger, bridges, call)
    await bridging.keeps_nothing()
    assert await world.balance(world.usdc, world.user) == FAIR


async def test_a_token_that_calls_the_module_between_two_steps_undoes_all(
    world: World, market: Market, bridging: Bridging
) -> None:
    token = await world.new_token()
    await world.mint(token, market.agent, 10 * ONE)
    steal = transfer(world, bridging.by_across(), BridgeKind.ACROSS, ONE)
    steal = steal.replace(address_word(world.usdc), address_word(token), 1)
    order = await world.a_delta_order(
        bridge=bridging.by_across(), dest_token=token, dest_amount=1, expected_amount=0
    )
    hook = selector("setHook(address,bytes)") + encode(address_word(world.at.bridges), bytes_tail(steal))
    await world.send(world.owner, token, hook)
    await market.refused_settlement(order, market.to_agent(ONE), market.from_agent(ONE, token))


async def test_a_chain_without_bridges_refuses(world: World, market: Market, bridging: Bridging) -> None:
    bare = await create(world.chain, world.owner, "Bridges", bytes(64))
    for kind in BridgeKind:
        call = transfer(world, bridging.by(kind), kind, FAIR)
        assert await world.refused(world.stranger, bare, call) == "BridgeNotEnabled()"


async def idle_bridges(world: World) -> tuple[bytes, bytes]:
    """A contract that answers every call with a zero, and a module for which it is both bridges."""
    idle = (await world.send(world.stranger, b"", deploys(bytes.fromhex("60206000f3")))).contract
    assert idle is not None
    return idle, await create(world.chain, world.owner, "Bridges", 2 * address_word(idle))


async def test_a_bridge_that_takes_nothing_undoes_all(
    world: World, market: Market, bridging: Bridging
) -> None:
    """The bridge answers every call with a zero; tokens that it left would be anybody's."""
    idle, bridges = await idle_bridges(world)
    await world.mint(world.usdc, bridges, FAIR)
    for kind in BridgeKind:
        call = transfer(world, bridging.by(kind), kind, FAIR)
        refused = await world.refused(world.stranger, bridges, call)
        assert refused == f"BridgeFailed(bridge 0x{idle.hex()})"


async def test_a_token_that_refuses_approvals_is_carried_by_no_bridge(
    world: World, market: Market, bridging: Bridging
) -> None:
    """Token and bridge answer every call with a zero: the bridge would seem to have taken all."""
    idle, bridges = await idle_bridges(world)
    for kind in BridgeKind:
        call = transfer(world, bridging.by(kind), kind, FAIR)
        call = call.replace(address_word(world.usdc), address_word(idle), 1)
        refused = await world.refused(world.stranger, bridges, call)
        assert refused == f"BridgeFailed(bridge 0x{idle.hex()})"


async def test_each_function_of_the_module_takes_its_own_terms(
    world: World, market: Market, bridging: Bridging
) -> None:
    await world.mint(world.usdc, world.at.bridges, FAIR)
    for kind, other in ((BridgeKind.ACROSS, BridgeKind.CCTP), (BridgeKind.CCTP, BridgeKind.ACROSS)):
        call = transfer(world, bridging.by(other), kind, FAIR)
        refused = await world.refused(world.stranger, world.at.bridges, call)
        assert refused == f"UnknownBridge(protocolSelector 0x{SELECTORS[other].hex()})"
