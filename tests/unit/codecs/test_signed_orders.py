"""The signed orders: vectors, wire forms, and refusals by member."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import (
    ORDER,
    ORDER_CANCELLATIONS,
    ORDER_TYPES,
    PRODUCTIVE_ORDER,
    SAME_CHAIN,
    TWAP_ORDER,
    delta_domain,
    delta_domain_separator,
    order_type_of,
)
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm, pack_otc, taker_from_meta
from cambist.codecs.eip712_orders.partner_and_fee import (
    PartnerAndFee,
    pack_partner_and_fee,
    unpack_partner_and_fee,
)
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.config.errors import InvalidInput
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.eip712 import domain_separator
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65, to_compact64
from support.typed_data import orders

TYPES = {order_type.name: order_type for order_type in (*ORDER_TYPES, ORDER_CANCELLATIONS)}


def lower(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: lower(inner) for name, inner in value.items()}
    return value.lower() if isinstance(value, str) else value


def test_rfq_vectors(vectors: dict[str, Any]) -> None:
    assert RFQ_ORDER.compiled.type_string == vectors["rfq"]["orderTypeString"]
    assert "0x" + RFQ_ORDER.compiled.type_hash.hex() == vectors["rfq"]["orderTypehash"]["value"]
    for vector in vectors["rfq"]["orders"]:
        order = RFQ_ORDER.from_wire(vector["order"])
        separator = domain_separator(vector["domain"])
        assert "0x" + RFQ_ORDER.compiled.digest_for(separator)(order).hex() == vector["orderHash"]
        if "structHash" in vector:
            assert "0x" + RFQ_ORDER.compiled.hash_struct(order).hex() == vector["structHash"]
        assert order.nonce_and_meta >> 160 == int(vector["upper96"])
        assert "0x" + (order.nonce_and_meta % 2**160).to_bytes(20, "big").hex() == vector["lower160"]
        wire = RFQ_ORDER.to_wire(order)
        assert lower(wire) == lower({name: vector["order"][name] for name in wire})


def test_delta_vectors_hash_and_sign(vectors: dict[str, Any]) -> None:
    for vector in vectors["delta"]["vectors"]:
        order_type = TYPES[vector["primaryType"]]
        order = order_type.from_wire(vector["value"])
        digest32 = order_type.compiled.digest_for(domain_separator(vector["domain"]))(order)
        assert "0x" + digest32.hex() == vector["hash"]
        assert "0x" + order_type.compiled.hash_struct(order).hex() == vector["structHash"]
        signature = SigningKey(bytes.fromhex(vector["privateKey"][2:])).sign(digest32)
        assert "0x" + to_65(*signature).hex() == vector["signature65"]
        assert "0x" + to_compact64(*signature).hex() == vector["signature64"]
        assert lower(order_type.to_wire(order)) == lower(vector["value"])


def test_type_strings_and_wire_types(vectors: dict[str, Any]) -> None:
    for name, vector in vectors["delta"]["typeStrings"].items():
        assert TYPES[name].compiled.type_string == vector["string"]
        assert "0x" + TYPES[name].compiled.type_hash.hex() == vector["typehash"]
        assert TYPES[name].wire_types == vectors["delta"]["types"][name]


def test_to_sign_types_hold_no_domain_and_one_free_type() -> None:
    for order_type in (RFQ_ORDER, *TYPES.values()):
        referenced = {member["type"] for members in order_type.wire_types.values() for member in members}
        assert "EIP712Domain" not in order_type.wire_types
        assert [name for name in order_type.wire_types if name not in referenced] == [order_type.name]


def test_json_types_of_members(vectors: dict[str, Any]) -> None:
    swap = vectors["delta"]["vectors"][0]["value"]
    wire = ORDER.to_wire(ORDER.from_wire(swap))
    numbers = {name for name, value in wire.items() if isinstance(value, int)}
    assert numbers == {"deadline", "kind"}
    assert ORDER.from_wire(swap).bridge == SAME_CHAIN
    assert wire["bridge"] == swap["bridge"]
    addresses = [wire[name] for name in ("owner", "beneficiary", "srcToken", "destToken")]
    assert addresses == [to_checksum(parse_address(text)) for text in addresses]


def test_domains_by_name() -> None:
    contract = bytes.fromhex("0000000000bbf5c5fd284e657f01bd000933c96d")
    assert delta_domain_separator("Portikus", "2.0.0", 1, contract).hex().startswith("82ee5d4a")
    rfq = bytes.fromhex("e92b586627cca7a83dc919cc7127196d70f55a06")
    assert rfq_domain_separator("AUGUSTUS RFQ", 1, rfq).hex().startswith("6ef27d2d")
    assert delta_domain("n", "v", 5, contract)["verifyingContract"] == (
        "0x0000000000bbF5c5Fd284e657F01Bd000933C96D"
    )


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("owner", "0x12", "order.owner: expected an address"),
        ("srcAmount", "1e18", "order.srcAmount: expected uint256 as a decimal string"),
        ("srcAmount", 1.5, "order.srcAmount"),
        ("srcAmount", True, "order.srcAmount"),
        ("srcAmount", "-1", "order.srcAmount"),
        ("srcAmount", str(2**256), "order.srcAmount"),
        ("srcAmount", None, "order.srcAmount"),
        ("kind", 256, "order.kind: expected uint8"),
        ("permit", "0x1", "order.permit: expected bytes: 0x and hexadecimal digits"),
        ("permit", None, "order.permit"),
        ("bridge", None, "order.bridge: expected an object (Bridge)"),
        ("bridge", {}, "order.bridge.protocolSelector: expected to be given (Bridge)"),
        ("extra", 1, "order.extra: expected no member of Order"),
    ],
)
def test_refusals_name_the_member(vectors: dict[str, Any], member: str, value: object, said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        ORDER.from_wire({**vectors["delta"]["vectors"][0]["value"], member: value})
    assert said in refusal.value.detail


def test_bridge_members_are_named_by_path(vectors: dict[str, Any]) -> None:
    swap = vectors["delta"]["vectors"][0]["value"]
    for change, said in (
        ({"protocolSelector": "0x00"}, "order.bridge.protocolSelector: expected bytes4: 0x and 8"),
        ({"scalingFactor": 128}, "order.bridge.scalingFactor: expected int8"),
        ({"more": 1}, "order.bridge.more"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            ORDER.from_wire({**swap, "bridge": {**swap["bridge"], **change}})
        assert said in refusal.value.detail
    assert ORDER.from_wire({**swap, "bridge": {**swap["bridge"], "scalingFactor": "-128"}})


@pytest.mark.parametrize("written", [int, str])
def test_integers_are_read_from_the_least_to_the_greatest_of_their_types(
    vectors: dict[str, Any], written: Callable[[int], int | str]
) -> None:
    swap = vectors["delta"]["vectors"][0]["value"]
    kinds = {member["name"]: member["type"] for member in ORDER.wire_types["Order"]}
    bounds = {"uint8": (0, 2**8 - 1), "uint256": (0, 2**256 - 1), "int8": (-128, 127)}
    members = [name for name, kind in kinds.items() if kind in bounds]
    assert len(members) > 3
    for name in [*members, "bridge.scalingFactor"]:
        low, high = bounds[kinds.get(name, "int8")]
        for number in (low - 1, low, high, high + 1):
            part = name.removeprefix("bridge.")
            inner = {**swap["bridge"], part: written(number)}
            wire = {**swap, "bridge": inner} if part != name else {**swap, name: written(number)}
            if low <= number <= high:
                order = ORDER.from_wire(wire)
                assert wire_number(ORDER.to_wire(order), name) == number
            else:
                with pytest.raises(InvalidInput, match=f"order.{name}: expected "):
                    ORDER.from_wire(wire)


def wire_number(wire: Any, name: str) -> int:
    for part in name.split("."):
        wire = wire[part]
    return int(wire)


def test_an_integer_may_come_as_string_or_number(vectors: dict[str, Any]) -> None:
    twap = next(vector for vector in vectors["delta"]["vectors"] if vector["primaryType"] == "TWAPOrder")
    value = twap["value"]
    as_text = {**value, "deadline": str(value["deadline"]), "totalSrcAmount": int(value["totalSrcAmount"])}
    assert TWAP_ORDER.from_wire(as_text) == TWAP_ORDER.from_wire(value)


@pytest.mark.parametrize("wire", [None, [], 5, "order", {}, {"owner": "x"}])
def test_what_is_no_order_at_all(wire: object) -> None:
    with pytest.raises(InvalidInput, match="order"):
        order_type_of(wire)


def test_the_nearest_type_says_what_lacks(vectors: dict[str, Any]) -> None:
    swap = dict(vectors["delta"]["vectors"][0]["value"])
    del swap["bridge"]
    swap["bridges"] = {}
    with pytest.raises(InvalidInput, match="the members of Order: missing: bridge; unknown: bridges"):
        order_type_of(swap)


def test_partner_and_fee_vector(vectors: dict[str, Any]) -> None:
    vector = vectors["delta"]["partnerAndFee"]
    parts = unpack_partner_and_fee(int(vector["value"]))
    assert parts == PartnerAndFee(
        partner=bytes.fromhex(vector["partner"][2:]),
        fee_bps=vector["bps"],
        partner_takes_surplus=vector["partnerTakesSurplus"],
        cap_surplus=vector["capSurplus"],
    )
    assert pack_partner_and_fee(parts) == int(vector["value"])


@pytest.mark.parametrize("packed", [201, 255, 1 << 10, 1 << 95, 1 << 256])
def test_partner_and_fee_with_bits_of_no_meaning(packed: int) -> None:
    with pytest.raises(InvalidInput, match="partnerAndFee"):
        unpack_partner_and_fee(packed)


def test_packing_refuses_what_does_not_fit() -> None:
    address = bytes(range(20))
    with pytest.raises(ValueError, match="below 2\\^96"):
        pack_firm(address, 2**96)
    with pytest.raises(ValueError, match="below 2\\^96"):
        pack_otc(address, -1)
    with pytest.raises(ValueError, match="0 to 200"):
        pack_partner_and_fee(PartnerAndFee(address, 201, partner_takes_surplus=False, cap_surplus=False))


def test_a_nonce_of_zero_names_nobody() -> None:
    assert taker_from_meta(0, bytes(range(20)), b"\1" * 20) == bytes(20)


@pytest.mark.parametrize("order_ids", [None, "a", [1], ["\ud800"], [["a"]], {"a": 1}])
def test_order_ids_are_texts(order_ids: object) -> None:
    with pytest.raises(InvalidInput, match=r"order\.orderIds: expected"):
        ORDER_CANCELLATIONS.from_wire({"orderIds": order_ids})


@given(orders(PRODUCTIVE_ORDER), st.sampled_from([1, 0, "true", None]))
def test_a_bool_is_true_or_false(order: Any, value: object) -> None:
    wire = PRODUCTIVE_ORDER.to_wire(order)
    assert PRODUCTIVE_ORDER.from_wire(wire) == order
    with pytest.raises(InvalidInput, match=r"useShares: expected true or false"):
        PRODUCTIVE_ORDER.from_wire({**wire, "useShares": value})
