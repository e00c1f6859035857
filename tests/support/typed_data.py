"""Random typed data: struct types, and values both as JSON gives them and as compiled hashers take them.

Random signed orders of every kind, as their Python structs.
"""

from types import SimpleNamespace
from typing import Any

import msgspec
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import ORDER_CANCELLATIONS, ORDER_TYPES, DeltaBridge
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER
from cambist.codecs.eip712_orders.typed_struct import TypedStruct
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip712 import Members, fixed_bytes, integer_bits, split_array
from cambist.crypto.eip712_compiled import attribute_name

ATOMIC = (
    "address", "bool", "string", "bytes", "bytes1", "bytes4", "bytes31", "bytes32",
    "uint8", "uint64", "uint128", "uint248", "uint256", "int8", "int128", "int256",
)  # fmt: skip


@st.composite
def struct_types(draw: st.DrawFn) -> dict[str, Members]:
    """Up to four struct types, each referring only to later ones; the first refers to every other."""
    names = [f"Struct{index}" for index in range(draw(st.integers(1, 4)))]
    structs: dict[str, Members] = {}
    for index, name in enumerate(names):
        choices = st.sampled_from(ATOMIC + tuple(names[index + 1 :]))
        members = [
            (f"member{at}", draw(choices) + draw(st.sampled_from(["", "", "", "[]", "[2]", "[][1]"])))
            for at in range(draw(st.integers(1, 6)))
        ]
        if index == 0:
            members += [(f"inner{other}", other) for other in names[1:]]
        structs[name] = tuple(members)
    return structs


def values(structs: dict[str, Members], type_name: str) -> st.SearchStrategy[Any]:
    """Values of a type as Python gives them: int, bool, str, bytes, list, dict."""
    array = split_array(type_name)
    if array is not None:
        element, length = array
        return st.lists(
            values(structs, element), min_size=length or 0, max_size=3 if length is None else length
        )
    integer, width = integer_bits(type_name), fixed_bytes(type_name)
    if integer is not None:
        signed, bits = integer
        return (
            st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)
        )
    if type_name == "address":
        return st.binary(min_size=20, max_size=20)
    if type_name == "bool":
        return st.booleans()
    if type_name == "string":
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
    if type_name in structs:
        return st.fixed_dictionaries({name: values(structs, inner) for name, inner in structs[type_name]})
    return st.binary(min_size=width or 0, max_size=width or 80)


def as_json(structs: dict[str, Members], type_name: str, value: Any) -> Any:
    """A value as wallets exchange it."""
    array = split_array(type_name)
    if array is not None:
        return [as_json(structs, array[0], item) for item in value]
    if type_name in structs:
        return {name: as_json(structs, inner, value[name]) for name, inner in structs[type_name]}
    if type_name == "address":
        return to_checksum(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_object(structs: dict[str, Members], type_name: str, value: Any) -> Any:
    """A value as compiled hashers take it."""
    array = split_array(type_name)
    if array is not None:
        return [as_object(structs, array[0], item) for item in value]
    if type_name in structs:
        return SimpleNamespace(
            **{
                attribute_name(name): as_object(structs, inner, value[name])
                for name, inner in structs[type_name]
            }
        )
    return value


@st.composite
def documents(draw: st.DrawFn) -> tuple[dict[str, Members], dict[str, Any], Any]:
    """(struct types, a typed-data document, its message as an object)."""
    structs = draw(struct_types())
    value = draw(values(structs, "Struct0"))
    domain: dict[str, Any] = {"name": draw(st.text(max_size=20)), "version": "1"}
    if draw(st.booleans()):
        domain["chainId"] = draw(st.integers(0, 2**53 - 1))
    if draw(st.booleans()):
        domain["verifyingContract"] = to_checksum(draw(st.binary(min_size=20, max_size=20)))
    document = {
        "types": {
            name: [{"name": member, "type": type_name} for member, type_name in members]
            for name, members in structs.items()
        },
        "primaryType": "Struct0",
        "domain": domain,
        "message": as_json(structs, "Struct0", value),
    }
    return structs, document, as_object(structs, "Struct0", value)


def with_domain_type(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the EIP712Domain type spelled out, as eth-account wants it."""
    types = {"name": "string", "version": "string", "chainId": "uint256", "verifyingContract": "address"}
    members = [{"name": name, "type": types[name]} for name in types if name in document["domain"]]
    return {**document, "types": {"EIP712Domain": members, **document["types"]}}


SIGNED_TYPES: tuple[TypedStruct[Any], ...] = (RFQ_ORDER, *ORDER_TYPES, ORDER_CANCELLATIONS)
SIGNED_TYPE_IDS = ["RFQ order", *(order_type.name for order_type in ORDER_TYPES), "OrderCancellations"]

DOMAIN = {
    "name": "Portikus",
    "version": "2.0.0",
    "chainId": 31337,
    "verifyingContract": to_checksum(bytes(range(20))),
}


def _member(type_name: str) -> st.SearchStrategy[Any]:
    if type_name == "Bridge":
        return st.builds(
            DeltaBridge,
            values({}, "bytes4"),
            st.integers(0, 2**53 - 1),
            values({}, "address"),
            values({}, "int8"),
            values({}, "bytes"),
        )
    if type_name == "string[]":
        return st.lists(st.uuids().map(str), max_size=5).map(tuple)
    return values({}, type_name)


def orders(order_type: TypedStruct[Any]) -> st.SearchStrategy[Any]:
    """Values of a signed type; members that travel as JSON numbers stay within 2^53."""
    members = order_type.compiled.structs[order_type.name]
    small = {"deadline": 53, "interval": 53, "expiry": 53}
    return st.builds(
        order_type.cls,
        **{
            attribute_name(name): st.integers(0, 2 ** small[name] - 1)
            if name in small
            else _member(type_name)
            for name, type_name in members
        },
    )


def typed_data_of(order_type: TypedStruct[Any], order: msgspec.Struct) -> dict[str, Any]:
    """The document that a wallet is asked to sign, as its JSON text gives it."""
    value = msgspec.json.decode(msgspec.json.encode(order_type.to_wire(order)))
    return {
        "domain": DOMAIN,
        "types": order_type.wire_types,
        "primaryType": order_type.name,
        "message": value,
    }
