"""A venue that lies about the bridge of a route or of an order: nothing is signed, and the error names it."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    fee_of,
    output_of,
    pack_terms,
)
from cambist.codecs.eip712_orders.delta import (
    DeltaBridge,
    DeltaOrder,
    TwapBuyOrder,
    TwapOrder,
    delta_domain,
)
from cambist.codecs.messages.delta_messages import BuildResponse, DeltaBlock
from cambist.codecs.messages.vocabulary import OrderType, Side
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.config import limits
from cambist.config.chains import CCTP_DOMAINS, CCTP_MESSENGER, SPOKE_POOLS
from cambist.config.errors import UnsafeTransaction
from cambist.crypto.addresses import checked_address, parse_address, to_checksum
from cambist.crypto.eip712 import domain_separator
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.trader.client.order.bridge_safety import (
    check_bridge,
    check_contract,
    entering_token,
    public_contract,
)
from cambist.engine.trader.client.order.order_safety import check_build, check_price
from cambist.engine.trader.client.order_terms import (
    BridgeWish,
    CheckedBridge,
    OrderWish,
    SignableTerms,
    SigningInputs,
    build_body,
    order_of,
    terms_of,
)
from cambist.engine.trader.client.schedule import Schedule
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.trusted_contract import SigningContract

HERE, THERE, NOW_S = 1, 8_453, 1_700_000_000
DELTA, OWNER, THIEF = b"\xde" * 20, b"\x0a" * 20, b"\x66" * 20
SRC, VIA, DEST = (
    TradedToken(b"\x51" * 20, "SRC", 18),
    TradedToken(b"\xa1" * 20, "VIA", 6),
    TradedToken(b"\xd5" * 20, "DEST", 18),
)
FEE = BridgeFee(ppm=500, fixed=30_000)
ENTERING, SCALING = 2_500_000_000, 12
ARRIVING = output_of(FEE, SCALING, ENTERING)
ACROSS = AcrossTerms(FEE, 7_200, bytes(20), 0)
CCTP = CctpTerms(FEE, 2_000, 6)
NAMED = delta_domain(limits.DELTA_DOMAIN_NAME, limits.DELTA_DOMAIN_VERSION, HERE, DELTA)
CONTRACT = SigningContract(HERE, DELTA, domain_separator(NAMED))
SIGNING = SigningInputs(NOW_S + 600, 5)
BRIDGING = BridgeWish(chain_id=THERE, fee_bps_max=20, via=VIA)
PARAMS = "route.bridge.contractParams"


def a_wish(side: Side = Side.SELL, **changed: Any) -> OrderWish:
    wish = OrderWish(
        chain_id=HERE,
        src=SRC,
        dest=DEST,
        side=side,
        amount=10**18 if side is Side.SELL else ARRIVING,
        slippage_bps=50,
        limit_amount=None,
        type=OrderType.MARKET,
        owner=OWNER,
        beneficiary=OWNER,
        life_s=600,
        bridging=BRIDGING,
    )
    return replace(wish, **changed)


def by_cctp(wish: OrderWish) -> OrderWish:
    """CCTP has no scaling: the token that arrives has the decimals of the one that leaves."""
    return replace(wish, dest=replace(DEST, decimals=6))


def a_block(terms: BridgeTerms = ACROSS, side: Side = Side.SELL) -> dict[str, Any]:
    kind, scaling = (BridgeKind.CCTP, 0) if isinstance(terms, CctpTerms) else (BridgeKind.ACROSS, SCALING)
    arriving = output_of(terms.fee, scaling, ENTERING)
    source, middle, destination = (
        {"chainId": chain_id, "address": token.text}
        for chain_id, token in ((HERE, SRC), (HERE, VIA), (THERE, DEST))
    )
    arrives = an_entry(destination, arriving)
    params = {
        "protocolSelector": to_hex(SELECTORS[kind]),
        "outputToken": DEST.text,
        "scalingFactor": scaling,
        "protocolData": to_hex(pack_terms(terms)),
    }
    route = {
        "origin": {"input": an_entry(source, 10**18), "output": an_entry(middle, ENTERING)},
        "destination": {"input": arrives, "output": arrives},
        "bridge": {
            "protocol": kind.value,
            "estimatedTimeMs": 30_000,
            "tags": ["recommended"],
            "contractParams": params,
        },
        "fees": {"gas": an_entry(middle, 1), "bridge": [an_entry(middle, fee_of(terms.fee, ENTERING))]},
    }
    return {
        "id": "1",
        "side": side.value,
        "inputToken": source,
        "outputToken": destination,
        "route": route,
        "partner": {"name": "anon", "feePercent": "0"},
        "spender": to_checksum(DELTA),
    }


def an_entry(token: dict[str, Any], amount: int) -> dict[str, Any]:
    return {"token": token, "amount": str(amount), "amountUSD": "1"}


def changed(block: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A block whose member at a path, such as "route.bridge.protocol", is another one."""
    name, _, rest = path.partition(".")
    return block | {name: changed(block[name], rest, value) if rest else value}


def checked(block: dict[str, Any], wish: OrderWish) -> CheckedBridge:
    """The bridge of a price, as the trader checks it once the token's decimals are read."""
    decoded = msgspec.convert(block, DeltaBlock, strict=False)
    check_price(decoded, wish, DELTA)
    assert wish.bridging is not None
    assert entering_token(decoded.route, wish, wish.bridging)
    return check_bridge(decoded.route, wish, wish.bridging, VIA)


@pytest.mark.parametrize("side", Side)
def test_an_honest_route_is_taken(side: Side) -> None:
    bridge = checked(a_block(side=side), a_wish(side))
    assert bridge.signed == DeltaBridge(
        SELECTORS[BridgeKind.ACROSS], THERE, DEST.address, SCALING, pack_terms(ACROSS)
    )
    assert (bridge.name, bridge.token, bridge.fee) == ("across", VIA, fee_of(FEE, ENTERING))
    assert checked(a_block(CCTP), by_cctp(a_wish())).terms == CCTP


WRAPPED = TradedToken(b"\x3e" * 20, "WETH", 18)
FOR_NATIVE: dict[str, Any] = {
    "dest": TradedToken(NATIVE_TOKEN, "ETH", 18),
    "bridging": replace(BRIDGING, wrapped=WRAPPED),
}


def a_native_block(terms: BridgeTerms = ACROSS, output: TradedToken = WRAPPED) -> dict[str, Any]:
    """A price for native tokens of the destination."""
    block = changed(a_block(terms), "route.bridge.contractParams.outputToken", output.text)
    for end in ("outputToken", "route.destination.input.token", "route.destination.output.token"):
        block = changed(block, f"{end}.address", limits.NATIVE_PLACEHOLDER)
    return block


def test_native_tokens_come_by_across_as_the_wrapped_ones_that_the_trader_knows() -> None:
    wish = a_wish(**FOR_NATIVE)
    assert checked(a_native_block(), wish).signed.output_token == WRAPPED.address
    for output in (TradedToken(THIEF, "WETH", 18), FOR_NATIVE["dest"]):
        with pytest.raises(UnsafeTransaction, match=r"contractParams\.outputToken"):
            checked(a_native_block(output=output), wish)
    with pytest.raises(UnsafeTransaction, match="protocolSelector"):
        checked(a_native_block(CCTP), wish)
    with pytest.raises(UnsafeTransaction, match=r"address of outputToken"):
        checked(a_block(), wish)


def test_native_tokens_that_the_venue_would_wrap_are_not_taken() -> None:
    """The contract that wraps them is the venue's choice."""
    wrapping = changed(a_block(), "route.destination.input.token.address", limits.NATIVE_PLACEHOLDER)
    with pytest.raises(UnsafeTransaction, match=r"address of route\.destination\.input"):
        checked(wrapping, a_wish())


def test_a_token_is_taken_as_the_venue_chooses_only_if_the_trader_lets_it() -> None:
    block = changed(a_block(), "route.origin.output.token.address", to_checksum(THIEF))
    with pytest.raises(UnsafeTransaction, match=r"address of route\.origin\.output"):
        checked(block, a_wish())
    assert checked(block, a_wish(bridging=replace(BRIDGING, via=None))).token == VIA


TOKEN = {"chainId": THERE, "address": to_checksum(THIEF)}
LIES: list[tuple[str, str, object, str]] = [
    ("no bridge", "route.bridge", None, "route.bridge"),
    ("another chain's price", "outputToken", {"chainId": 10, "address": DEST.text}, "chainId of outputToken"),
    ("another token's price", "outputToken", TOKEN, "address of outputToken"),
    ("to the origin", "outputToken", {"chainId": HERE, "address": DEST.text}, "chainId of outputToken"),
    (
        "a route that ends elsewhere",
        "route.destination.output.token.chainId",
        10,
        "chainId of route.destination.output",
    ),
    (
        "a route to another token",
        "route.destination.output.token.address",
        to_checksum(THIEF),
        "address of route.destination.output",
    ),
    (
        "a swap at the destination",
        "route.destination.input.token.address",
        to_checksum(THIEF),
        "address of route.destination.input",
    ),
    (
        "a destination elsewhere",
        "route.destination.input.token.chainId",
        10,
        "chainId of route.destination.input",
    ),
    ("less that arrives", "route.destination.input.amount", "1", "route.destination.input.amount"),
    ("a token of elsewhere", "route.origin.output.token.chainId", THERE, "chainId of route.origin.output"),
    (
        "a false token in the bridge",
        "route.origin.output.token.address",
        to_checksum(THIEF),
        "address of route.origin.output",
    ),
    ("a source elsewhere", "route.origin.input.token.chainId", THERE, "chainId of route.origin.input"),
    (
        "an unknown protocol",
        f"{PARAMS}.protocolSelector",
        "0xdeadbeef",
        "bridge.protocolSelector",
    ),
    ("no selector", f"{PARAMS}.protocolSelector", "0x", "bridge.protocolSelector"),
    ("a selector of words", f"{PARAMS}.protocolSelector", "across", f"{PARAMS}.protocolSelector"),
    ("another output", f"{PARAMS}.outputToken", to_checksum(THIEF), f"{PARAMS}.outputToken"),
    ("no output", f"{PARAMS}.outputToken", "0x", f"{PARAMS}.outputToken"),
    ("another scale", f"{PARAMS}.scalingFactor", 0, f"{PARAMS}.scalingFactor"),
    ("a scale beyond all", f"{PARAMS}.scalingFactor", 31, "bridge.scalingFactor"),
    ("half a word", f"{PARAMS}.protocolData", "0x00", "bridge.protocolData"),
    (
        "the other protocol's data",
        f"{PARAMS}.protocolData",
        to_hex(pack_terms(CCTP)),
        "bridge.protocolData",
    ),
    (
        "a fee of all",
        f"{PARAMS}.protocolData",
        to_hex(pack_terms(replace(ACROSS, fee=BridgeFee(1_000_000, 0)))),
        "bridge.protocolData",
    ),
    ("a hex of words", f"{PARAMS}.protocolData", "much", f"{PARAMS}.protocolData"),
    (
        "more than arrives",
        "route.destination",
        {
            "input": an_entry({"chainId": THERE, "address": DEST.text}, ARRIVING + 1),
            "output": an_entry({"chainId": THERE, "address": DEST.text}, ARRIVING + 1),
        },
        "route.destination.output.amount",
    ),
    ("an amount of words", "route.origin.output.amount", "many", "route.origin.output.amount"),
    ("nothing that enters", "route.origin.output.amount", "0", "the bridge's fee"),
]


@pytest.mark.parametrize(("path", "value", "member"), [row[1:] for row in LIES], ids=[row[0] for row in LIES])
def test_a_lie_about_the_route_is_refused_by_name(path: str, value: object, member: str) -> None:
    with pytest.raises(UnsafeTransaction) as refused:
        checked(changed(a_block(), path, value), a_wish())
    assert refused.value.member == member


TERMS: list[tuple[str, BridgeTerms, str]] = [
    ("a fee above the bound", replace(ACROSS, fee=BridgeFee(1_990, 30_000)), "the bridge's fee"),
    ("a fixed fee above it", replace(ACROSS, fee=BridgeFee(0, 5_000_001)), "the bridge's fee"),
    ("cctp's fee above it", replace(CCTP, fee=BridgeFee(2_001, 0)), "the bridge's fee"),
    ("no time to fill", replace(ACROSS, fill_within_s=59), f"{PARAMS}.protocolData, seconds to fill"),
    ("no refund for ever", replace(ACROSS, fill_within_s=21_601), f"{PARAMS}.protocolData, seconds to fill"),
    (
        "one relayer alone",
        replace(ACROSS, exclusive_relayer=THIEF, exclusivity_s=7_200),
        f"{PARAMS}.protocolData, seconds of exclusivity",
    ),
    ("another chain's domain", replace(CCTP, domain=3), f"{PARAMS}.protocolData, domain"),
]


@pytest.mark.parametrize(("terms", "member"), [row[1:] for row in TERMS], ids=[row[0] for row in TERMS])
def test_terms_that_the_trader_does_not_take_are_refused_by_name(terms: BridgeTerms, member: str) -> None:
    wish = by_cctp(a_wish()) if isinstance(terms, CctpTerms) else a_wish()
    with pytest.raises(UnsafeTransaction) as refused:
        checked(a_block(terms), wish)
    assert refused.value.member == member


@pytest.mark.parametrize(
    "terms",
    [
        replace(ACROSS, fee=BridgeFee(1_988, 30_000)),
        replace(ACROSS, fee=BridgeFee(0, 5_000_000)),
        replace(ACROSS, fill_within_s=60),
        replace(ACROSS, fill_within_s=21_600, exclusive_relayer=THIEF, exclusivity_s=21_599),
    ],
)
def test_terms_at_their_bounds_are_taken(terms: BridgeTerms) -> None:
    assert checked(a_block(terms), a_wish()).terms == terms


def test_a_chain_without_a_public_number_may_have_any_domain() -> None:
    wish = by_cctp(a_wish(bridging=replace(BRIDGING, chain_id=31_338)))
    block = a_block(replace(CCTP, domain=9))
    for path in ("outputToken", "route.destination.input.token", "route.destination.output.token"):
        block = changed(block, f"{path}.chainId", 31_338)
    assert checked(block, wish).signed.destination_chain_id == 31_338


@pytest.mark.parametrize("terms", [ACROSS, CCTP])
def test_tokens_go_to_the_public_contract_of_the_bridge(terms: BridgeTerms) -> None:
    wish = by_cctp(a_wish()) if terms is CCTP else a_wish()
    bridge = checked(a_block(terms), wish)
    public = public_contract(HERE, terms)
    check_contract(HERE, replace(bridge, contract=parse_address(public)))
    for contract in (THIEF, bytes(20)):
        with pytest.raises(UnsafeTransaction, match="the bridge's contract: expected"):
            check_contract(HERE, replace(bridge, contract=contract))
    check_contract(31_337, replace(bridge, contract=THIEF))
    with pytest.raises(UnsafeTransaction, match="expected an address"):
        check_contract(31_337, replace(bridge, contract=bytes(20)))


def test_public_addresses_have_their_checksums() -> None:
    for text in (*SPOKE_POOLS.values(), CCTP_MESSENGER):
        assert to_checksum(checked_address(text, "contract")) == text
    assert set(SPOKE_POOLS) <= set(CCTP_DOMAINS)


def test_an_order_on_one_chain_takes_no_bridge() -> None:
    block = msgspec.convert(a_block(), DeltaBlock, strict=False)
    wish = a_wish(bridging=None, chain_id=HERE)
    with pytest.raises(UnsafeTransaction, match="chainId of outputToken"):
        check_price(block, wish, DELTA)
    end = {"chainId": HERE, "address": DEST.text}
    told = changed(a_block(), "outputToken", end)
    told = changed(told, "route.destination.output.token", end)
    with pytest.raises(UnsafeTransaction, match=r"route\.bridge"):
        check_price(msgspec.convert(told, DeltaBlock, strict=False), wish, DELTA)


# --- The order ----------------------------------------------------------------------------------------


def agreed(wish: OrderWish) -> SignableTerms:
    block = a_block(side=wish.side)
    decoded = msgspec.convert(block, DeltaBlock, strict=False)
    return terms_of(wish, decoded, DELTA, 0, checked(block, wish))


def built(terms: SignableTerms, **lies: object) -> BuildResponse:
    """The built order of a venue that lies about some members."""
    kind = terms.wish.struct_type
    value = kind.to_wire(order_of(terms, SIGNING, 0)) | lies
    order = kind.from_wire(msgspec.json.decode(msgspec.json.encode(value)))
    told = {
        "toSign": {"domain": NAMED, "types": kind.wire_types, "value": value},
        "orderHash": to_hex(CONTRACT.digest(kind.compiled.hash_struct(order))),
    }
    return msgspec.json.decode(msgspec.json.encode(told), type=BuildResponse)


@pytest.mark.parametrize("side", Side)
def test_the_order_has_the_bridge_and_its_amounts_are_what_arrives(side: Side) -> None:
    terms = agreed(a_wish(side))
    order = check_build(built(terms), terms, SIGNING, CONTRACT).order
    assert isinstance(order, DeltaOrder)
    assert (order.dest_token, order.bridge.output_token) == (VIA.address, DEST.address)
    least = ARRIVING * 9_950 // 10_000 if side is Side.SELL else ARRIVING
    assert (order.dest_amount, order.bridge.scaling_factor) == (least, SCALING)
    assert order.expected_amount == (ARRIVING if side is Side.SELL else 10**18)


@pytest.mark.parametrize("side", Side)
def test_slices_have_the_bridge_too(side: Side) -> None:
    amount = 7 * (10**18 if side is Side.SELL else ARRIVING)
    terms = agreed(a_wish(side, amount=amount, schedule=Schedule(7, 60)))
    order = check_build(built(terms), terms, SIGNING, CONTRACT).order
    assert terms.bridge is not None
    if isinstance(order, TwapOrder):
        assert order.dest_amount_per_slice == ARRIVING * 9_950 // 10_000
    else:
        assert isinstance(order, TwapBuyOrder)
        assert order.total_dest_amount == amount
    assert (order.dest_token, order.bridge) == (VIA.address, terms.bridge.signed)


def a_bridge(**lies: object) -> dict[str, Any]:
    bridge: dict[str, Any] = a_block()["route"]["bridge"]["contractParams"]
    return bridge | {"destinationChainId": str(THERE)} | lies


ORDER_LIES: list[tuple[str, dict[str, Any], str]] = [
    ("a false token in the bridge", {"destToken": to_checksum(THIEF)}, "destToken"),
    ("the wished token on the origin", {"destToken": DEST.text}, "destToken"),
    ("less that has to arrive", {"destAmount": str(ARRIVING * 9_950 // 10_000 - 1)}, "destAmount"),
    ("units of the other token", {"destAmount": str(ENTERING * 9_950 // 10_000)}, "destAmount"),
    ("less that is expected", {"expectedAmount": str(ENTERING)}, "expectedAmount"),
    ("another receiver", {"beneficiary": to_checksum(THIEF)}, "beneficiary"),
    ("another chain", {"bridge": a_bridge(destinationChainId="10")}, "bridge"),
    ("another output", {"bridge": a_bridge(outputToken=to_checksum(THIEF))}, "bridge"),
    ("another scale", {"bridge": a_bridge(scalingFactor=0)}, "bridge"),
    (
        "another protocol",
        {"bridge": a_bridge(protocolSelector=to_hex(SELECTORS[BridgeKind.CCTP]))},
        "bridge",
    ),
    (
        "another fee",
        {"bridge": a_bridge(protocolData=to_hex(pack_terms(replace(ACROSS, fee=BridgeFee(501, 30_000)))))},
        "bridge",
    ),
    (
        "a relayer of its own",
        {"bridge": a_bridge(protocolData=to_hex(pack_terms(replace(ACROSS, exclusive_relayer=THIEF))))},
        "bridge",
    ),
    (
        "no bridge",
        {
            "bridge": {
                "protocolSelector": "0x00000000",
                "destinationChainId": "0",
                "outputToken": "0x" + "00" * 20,
                "scalingFactor": 0,
                "protocolData": "0x",
            }
        },
        "bridge",
    ),
]


@pytest.mark.parametrize(("lies", "member"), [row[1:] for row in ORDER_LIES], ids=[r[0] for r in ORDER_LIES])
def test_a_lie_about_the_order_is_refused_by_name(lies: dict[str, Any], member: str) -> None:
    terms = agreed(a_wish())
    with pytest.raises(UnsafeTransaction) as refused:
        check_build(built(terms, **lies), terms, SIGNING, CONTRACT)
    assert refused.value.member == f"toSign.value.{member}"


def test_the_route_goes_back_to_the_venue_as_it_came() -> None:
    terms = agreed(a_wish())
    raw = Raw(msgspec.json.encode(a_block()["route"]))
    assert build_body(terms, SIGNING, raw).route is raw
