"""Random signed orders of every kind, as their Python structs."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import ORDER_CANCELLATIONS, ORDER_TYPES, DeltaBridge
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER
from cambist.codecs.eip712_orders.typed_struct import TypedStruct
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip712_compiled import attribute_name
from support.typed_data import values

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
