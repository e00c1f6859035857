"""What is kept of a Delta order for good: what was signed and what came with it. Pure.

The signed struct is kept as JSON written anew, members in the type's order, since every read shows it again;
the signature as the contract is given it.

Source: spec 1.17; ARCHITECTURE.md, "Databases" (the signed document is a row of its own).
"""

import msgspec
from msgspec import Raw, Struct

from ....codecs.eip712_orders.delta import ORDER_TYPES, AnyDeltaOrder
from ....codecs.messages.wire import encode

_TYPES = {order_type.name: order_type for order_type in ORDER_TYPES}


class DeltaDocument(Struct, frozen=True, omit_defaults=True):
    """One order's.

    Attributes:
        order_type: name of its struct type.
        order: the struct, as JSON.
        signature: 64 bytes of an account; of a contract any, or none for a pre-signature.
        partially_fillable: it may be settled in parts (choices.md#delta-orders).
        include_agents: only these may bid; none names all.
        exclude_agents: these may not.
        referrer: 20 bytes, or empty.
    """

    order_type: str
    order: bytes
    signature: bytes
    partially_fillable: bool = False
    include_agents: tuple[str, ...] = ()
    exclude_agents: tuple[str, ...] = ()
    referrer: bytes = b""

    def admits(self, agent: str) -> bool:
        """Whether an agent may bid for it."""
        if agent in self.exclude_agents:
            return False
        return not self.include_agents or agent in self.include_agents


_decoder = msgspec.msgpack.Decoder(DeltaDocument)
encode_document = msgspec.msgpack.Encoder().encode
decode_document = _decoder.decode


def order_json(order_type: str, order: AnyDeltaOrder) -> bytes:
    """The struct as a document keeps it."""
    return encode(_TYPES[order_type].to_wire(order))


def order_of(document: DeltaDocument) -> AnyDeltaOrder:
    """The struct that a document holds."""
    found: AnyDeltaOrder = _TYPES[document.order_type].from_wire(msgspec.json.decode(document.order))
    return found


def without_struct(document: DeltaDocument) -> DeltaDocument:
    """What is kept in memory beside the struct, which is read already: most of a kilobyte less."""
    return msgspec.structs.replace(document, order=b"")


def shown_order(document: DeltaDocument) -> Raw:
    """The struct as records show it."""
    return Raw(document.order)
