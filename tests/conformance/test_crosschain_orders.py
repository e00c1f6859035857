"""Orders across chains: built from quoted routes (spec 1.16), submitted and read (spec 1.17, 1.10)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    input_of,
    output_of,
    pack_terms,
)
from cambist.codecs.eip712_orders.delta import SAME_CHAIN, DeltaBridge
from cambist.config.limits import UINT256_MAX
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.typed_data import hash_typed_data
from support.chain.world import NATIVE as NATIVE_TOKEN
from support.chain.world import USDC as USD
from support.contracts.settling import Market
from support.delta.order_front import DOMAIN, MARKET_ONLY, ORDERS, OrderFront, an_order_front, told, wire_of
from support.oracles import javascript_oracle
from support.venue.bridge_apis import A_BRIDGED_PURCHASE, A_BRIDGED_SALE, THERE, a_bridged_venue, bridge_apis
from support.venue.quiet_venue import (
    CHAIN_ID,
    DAI,
    NATIVE,
    ONE,
    OTHER,
    USDC,
    USER,
    WETH,
    QuietVenue,
    asked_to_build,
    fault,
    order,
)

INVALID = 400, "InvalidInput"


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[QuietVenue]:
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis) as venue:
        yield venue


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    async with an_order_front(tmp_path) as front:
        yield front


async def quoted(
    venue: QuietVenue, asked: dict[str, Any] = A_BRIDGED_SALE, **more: Any
) -> list[dict[str, Any]]:
    """All routes of a quote, the recommended one first."""
    delta = (await venue.get("/v2/quote", **asked | more))["delta"]
    return [delta["route"], *delta["alternatives"]]


def bridge_in(route: dict[str, Any]) -> dict[str, Any]:
    """Member `bridge` of an order on a route."""
    params = route["bridge"]["contractParams"]
    return {**params, "destinationChainId": route["destination"]["output"]["token"]["chainId"]}


# --- Builds ---------------------------------------------------------------------------------------------


async def test_a_sale_over_each_bridge(venue: QuietVenue) -> None:
    routes = await quoted(venue)
    assert len(routes) == 3
    for route in routes:
        value = await order(venue, route=route, slippage=50)
        arrives = int(route["destination"]["output"]["amount"])
        assert value["bridge"] == bridge_in(route)
        assert value["bridge"]["destinationChainId"] == THERE
        assert (value["srcToken"], value["destToken"]) == (WETH, USDC)
        assert value["srcAmount"] == str(ONE)
        assert value["destAmount"] == str(arrives * 9_950 // 10_000)
        assert value["expectedAmount"] == str(arrives)
        assert (value["owner"], value["beneficiary"], value["kind"]) == (USER, USER, 0)


async def test_amounts_are_of_the_token_that_arrives(venue: QuietVenue) -> None:
    (route,) = await quoted(venue, destToken=DAI, destDecimals=18)
    value = await order(venue, route=route, slippage=0, beneficiary=OTHER)
    assert int(value["destAmount"]) > 2_400 * ONE
    assert (value["destToken"], value["bridge"]["outputToken"]) == (USDC, DAI)
    assert value["bridge"]["scalingFactor"] == 12
    assert value["beneficiary"] == OTHER
    value = await order(venue, route=route, limitAmount=str(2_600 * ONE))
    assert value["destAmount"] == value["expectedAmount"] == str(2_600 * ONE)


async def test_a_purchase(venue: QuietVenue) -> None:
    for route in await quoted(venue, A_BRIDGED_PURCHASE):
        value = await order(venue, route=route, slippage=100)
        spent = int(route["origin"]["input"]["amount"])
        assert value["kind"] == 1
        assert value["destAmount"] == A_BRIDGED_PURCHASE["amount"]
        assert value["srcAmount"] == str(spent * 10_100 // 10_000)
        assert value["expectedAmount"] == str(spent)
        assert value["bridge"] == bridge_in(route)


async def test_a_native_source(venue: QuietVenue) -> None:
    route, *_ = await quoted(venue, srcToken=NATIVE)
    value = await order(venue, route=route)
    assert (value["srcToken"], value["destToken"]) == (NATIVE, USDC)


async def test_the_bridge_s_own_token_is_built_as_one_order(venue: QuietVenue) -> None:
    sent = A_BRIDGED_SALE | {"srcToken": USDC, "srcDecimals": 6, "amount": str(1_000 * USD)}
    routes = await quoted(venue, sent)
    for route in routes:
        value = await order(venue, route=route, slippage=50)
        assert (value["srcToken"], value["destToken"], value["srcAmount"]) == (USDC, USDC, sent["amount"])
        assert value["bridge"] == bridge_in(route)
    twap = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 2, "totalSrcAmount": str(2_000 * USD)}
    status, error, details = await fault(venue, route=routes[0], slippage=50, **twap)
    assert (status, error) == INVALID
    assert "orderType: expected Order, got 'TWAPOrder'" in details
    assert "USDC is the token that the bridge takes: one order can send it all" in details


async def test_a_scheduled_sale(venue: QuietVenue) -> None:
    route, *_ = await quoted(venue)
    arrives = int(route["destination"]["output"]["amount"])
    schedule = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 3, "totalSrcAmount": str(3 * ONE + 2)}
    value = await order(venue, route=route, slippage=100, **schedule)
    assert value["destAmountPerSlice"] == str(arrives * 9_900 // 10_000)
    assert value["totalSrcAmount"] == str(3 * ONE + 2)
    assert value["bridge"] == bridge_in(route)


async def test_a_scheduled_purchase(venue: QuietVenue) -> None:
    route, *_ = await quoted(venue, A_BRIDGED_PURCHASE)
    total = 2 * int(A_BRIDGED_PURCHASE["amount"])
    schedule = {"orderType": "TWAPBuyOrder", "interval": 60, "numSlices": 2, "maxSrcAmount": str(ONE)}
    value = await order(venue, route=route, totalDestAmount=str(total), **schedule)
    assert (value["totalDestAmount"], value["maxSrcAmount"]) == (str(total), str(ONE))
    assert value["bridge"] == bridge_in(route)
    refusal = await fault(venue, route=route, totalDestAmount=str(2 * total), **schedule)
    assert refusal[:2] == (400, "InvalidTWAPBuyDestAmount")
    assert "route.destination.output.amount" in refusal[2]


async def test_an_order_across_chains_is_not_filled_in_parts(venue: QuietVenue) -> None:
    route, *_ = await quoted(venue)
    refusal = await fault(venue, route=route, partiallyFillable=True)
    assert refusal[:2] == INVALID
    assert refusal[2].startswith("Invalid input: partiallyFillable: expected false across chains")


@pytest.mark.parametrize("member", ["protocolSelector", "outputToken", "scalingFactor", "protocolData"])
async def test_a_changed_bridge_is_refused(venue: QuietVenue, member: str) -> None:
    route, *_ = await quoted(venue)
    params = route["bridge"]["contractParams"]
    changed = params[member] + 1 if member == "scalingFactor" else params[member][:-1] + "f0"
    bridge = route["bridge"] | {"contractParams": params | {member: changed}}
    refusal = await fault(venue, route=route | {"bridge": bridge})
    assert refusal[:2] == (400, "RouteValidationFailed")


async def test_the_hash_is_the_typed_data_s(venue: QuietVenue) -> None:
    for route in await quoted(venue):
        status, built = await asked_to_build(venue, route=route)
        assert status == 200
        assert built["orderHash"] == "0x" + hash_typed_data(built["toSign"]).digest.hex()
        assert built["toSign"]["domain"]["chainId"] == CHAIN_ID


@pytest.mark.oracle
async def test_ethers_and_viem_sign_an_order_across_chains_unchanged(venue: QuietVenue) -> None:
    with javascript_oracle() as wallets:
        for route in await quoted(venue):
            _, built = await asked_to_build(venue, route=route)
            signed = wallets.ask(**built["toSign"], primaryType="Order", key="0x" + "11" * 32)
            assert signed["ethersDigest"] == signed["viemDigest"] == built["orderHash"]


# --- Submissions ----------------------------------------------------------------------------------------

ACROSS = AcrossTerms(BridgeFee(400, 20_000), 7_200, bytes(20), 0)
CCTP = CctpTerms(BridgeFee(130, 0), 1_000, DOMAIN)


def a_bridge(front: OrderFront, terms: BridgeTerms = ACROSS, **changes: Any) -> DeltaBridge:
    """A bridge of USDC to the other chain."""
    kind = BridgeKind.CCTP if isinstance(terms, CctpTerms) else BridgeKind.ACROSS
    bridge = DeltaBridge(SELECTORS[kind], MARKET_ONLY, front.world.usdc, 0, pack_terms(terms))
    return msgspec.structs.replace(bridge, **changes)


@pytest.mark.parametrize(
    "terms",
    [
        ACROSS,
        CCTP,
        AcrossTerms(BridgeFee(0, 0), 21_600, b"\7" * 20, 0),
        CctpTerms(BridgeFee(999_999, 2**128 - 1), 1_000, DOMAIN),
    ],
)
async def test_a_sale_across_chains_is_taken(front: OrderFront, terms: BridgeTerms) -> None:
    signed = await front.a_sale(bridge=a_bridge(front, terms))
    record = await front.submitted(signed)
    usdc = to_checksum(front.world.usdc)
    assert record["status"] == "PENDING"
    assert record["onChainOrderType"] == "Order"
    assert record["input"] == {
        "chainId": CHAIN_ID,
        "token": to_checksum(front.world.weth),
        "amount": str(ONE),
    }
    assert record["output"] == {
        "chainId": MARKET_ONLY,
        "token": usdc,
        "expectedAmount": str(2_500 * USD),
        "executedAmount": None,
        "minAmount": str(2_400 * USD),
    }
    assert record["order"] == wire_of(signed)
    assert (await front.get(f"{ORDERS}/{record['id']}")) == record


async def test_a_purchase_and_twaps_across_chains_are_taken(front: OrderFront) -> None:
    bridge = a_bridge(front, CCTP)
    bought = await front.submitted(await front.a_purchase(bridge=bridge))
    assert bought["output"] == {
        "chainId": MARKET_ONLY,
        "token": to_checksum(front.world.usdc),
        "amount": str(2_500 * USD),
    }
    market = Market(front.world, b"")
    sale = await front.submitted(await market.a_twap(interval=61, bridge=bridge), type="LIMIT")
    assert (sale["onChainOrderType"], sale["output"]["chainId"]) == ("TWAPOrder", MARKET_ONLY)
    purchase = await front.submitted(await market.a_twap_purchase(bridge=bridge), type="LIMIT")
    assert purchase["onChainOrderType"] == "TWAPBuyOrder"


async def test_the_bridge_s_own_token_is_taken_without_a_swap(front: OrderFront) -> None:
    """Whatever its fees leave at most: a unit more could never be settled."""
    world, fee = front.world, BridgeFee(1_000, 30_000)
    await world.give(world.user, world.usdc, 10_000 * USD, world.at.delta)
    bridge = a_bridge(front, AcrossTerms(fee, 7_200, bytes(20), 0))
    terms: dict[str, Any] = {"src_token": world.usdc, "bridge": bridge, "expected_amount": 0}
    sent = 1_000 * USD
    most = output_of(fee, 0, sent)
    sale = await front.a_sale(**terms, src_amount=sent, dest_amount=most)
    record = await front.submitted(sale)
    assert record["input"]["token"] == record["output"]["token"] == to_checksum(world.usdc)
    assert record["output"]["chainId"] == MARKET_ONLY
    refusal = await front.fault(await front.a_sale(**terms, src_amount=sent, dest_amount=most + 1))
    assert refusal[:2] == INVALID
    assert refusal[2] == (
        "Invalid input: order.destAmount: expected at most what the bridge delivers of srcAmount less the "
        f"fees, got {most + 1}: the fees that the order signs leave too little"
    )
    needed = input_of(fee, 0, sent)
    bought: dict[str, Any] = terms | {"kind": 1, "dest_amount": sent}
    await front.submitted(await front.a_sale(**bought, src_amount=needed))
    refusal = await front.fault(await front.a_sale(**bought, src_amount=needed - 1))
    assert refusal[:2] == INVALID
    assert (
        "order.srcAmount: expected at least what the bridge takes for destAmount, with the fees" in refusal[2]
    )


NO_FEE = BridgeFee(0, 0)
ALL_AS_FEE = AcrossTerms(BridgeFee(10**6, 0), 7_200, bytes(20), 0)
LITTLE_TIME, LONG_TIME = (AcrossTerms(NO_FEE, time_s, bytes(20), 0) for time_s in (7_199, 21_601))
EXCLUSIVE = AcrossTerms(NO_FEE, 7_200, b"\7" * 20, 9)
OTHER_TIER, OTHER_DOMAIN = CctpTerms(NO_FEE, 2_000, DOMAIN), CctpTerms(NO_FEE, 1_000, 6)
NO_LANE = "bridge: expected a lane of GET /v2/delta/prices/bridge-routes"
TIMES = "bridge.protocolData: expected 7200 s to fill, 0 s of exclusivity"
TIERS = f"bridge.protocolData: expected finality 1000 to domain {DOMAIN}"
REFUSED: dict[str, tuple[BridgeTerms, dict[str, Any], str]] = {
    "a protocol of nobody": (ACROSS, {"protocol_selector": b"abcd"}, "bridge.protocolSelector: expected 0x"),
    "a bridge to nowhere": (ACROSS, {"destination_chain_id": 0}, NO_LANE),
    "a bridge to this chain": (ACROSS, {"destination_chain_id": CHAIN_ID}, NO_LANE),
    "a chain that is not served": (ACROSS, {"destination_chain_id": 10}, NO_LANE),
    "another token there": (CCTP, {"output_token": b"\x55" * 20}, NO_LANE),
    "other decimals": (ACROSS, {"scaling_factor": 12}, "bridge.scalingFactor: expected 0, got 12"),
    "decimals of CCTP": (CCTP, {"scaling_factor": 1}, "bridge.scalingFactor: expected at most 0"),
    "data of another length": (ACROSS, {"protocol_data": b"\0" * 128}, "bridge.protocolData: expected 160"),
    "all as fee": (ALL_AS_FEE, {}, "bridge.protocolData: expected fee"),
    "little time": (LITTLE_TIME, {}, TIMES),
    "too long": (LONG_TIME, {}, TIMES),
    "exclusive": (EXCLUSIVE, {}, TIMES),
    "another tier": (OTHER_TIER, {}, TIERS),
    "another domain": (OTHER_DOMAIN, {}, TIERS),
}


@pytest.mark.parametrize(("terms", "changes", "said"), REFUSED.values(), ids=REFUSED)
async def test_a_bridge_that_is_not_served(
    front: OrderFront, terms: BridgeTerms, changes: dict[str, Any], said: str
) -> None:
    refusal = await front.fault(await front.a_sale(bridge=a_bridge(front, terms, **changes)))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith(f"Invalid input: order: {said}"), refusal


async def test_the_token_on_the_origin_is_the_bridge_s(front: OrderFront) -> None:
    world, bridge = front.world, a_bridge(front)
    for token in (world.dai, NATIVE_TOKEN):
        refusal = await front.fault(await front.a_sale(src_token=world.usdc, dest_token=token, bridge=bridge))
        assert refusal[:2] == INVALID
        assert "order: bridge: expected a lane of GET /v2/delta/prices/bridge-routes" in refusal[2]
    for kept in (await Market(world, b"").a_twap(src_token=world.usdc, bridge=bridge),):
        refusal = await front.fault(kept)
        assert refusal[:2] == INVALID
        assert refusal[2].startswith("Invalid input: order.destToken: expected another token than srcToken")


async def test_parts_of_an_order_across_chains_are_refused(front: OrderFront) -> None:
    refusal = await front.fault(await front.a_sale(bridge=a_bridge(front)), partiallyFillable=True)
    assert refusal[:2] == INVALID
    assert refusal[2].startswith("Invalid input: partiallyFillable: expected false across chains")


@pytest.mark.parametrize("name", ["dest_amount", "expected_amount"])
async def test_amounts_that_the_bridge_s_fee_lifts_beyond_the_contract_s_words(
    front: OrderFront, name: str
) -> None:
    steep = a_bridge(front, AcrossTerms(BridgeFee(999_999, 0), 7_200, bytes(20), 0))
    refusal = await front.fault(
        await front.a_sale(bridge=steep, src_amount=1, **{name: UINT256_MAX // 10**11})
    )
    assert refusal[:2] == INVALID
    member = "destAmount" if name == "dest_amount" else "expectedAmount"
    assert refusal[2].startswith(f"Invalid input: order.{member}: expected an amount that the bridge's terms")


@pytest.mark.parametrize("member", ["destinationChainId", "scalingFactor", "protocolData"])
async def test_an_order_on_one_chain_has_no_bridge(front: OrderFront, member: str) -> None:
    wire = wire_of(await front.a_sale())
    value = {"destinationChainId": MARKET_ONLY, "scalingFactor": 1, "protocolData": "0x01"}[member]
    assert wire["bridge"]["protocolSelector"] == to_hex(SAME_CHAIN.protocol_selector)
    body = front.world.delta_body(await front.a_sale()) | {
        "order": wire | {"bridge": wire["bridge"] | {member: value}}
    }
    refusal = told(await front.post(ORDERS, body))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith("Invalid input: order: bridge.protocolSelector: expected")
