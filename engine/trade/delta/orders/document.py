"""The stored document of a Delta order: the signed struct, and the members submitted with it. Pure.

The signed struct is stored as JSON, encoded anew with its members in the type's order, since every read
returns this JSON; the signature is stored as the contract receives it.

Source: spec 1.17; ARCHITECTURE.md, "Databases" (the signed document is a row of its own).
"""

import msgspec
from msgspec import Raw, Struct

from .....codecs.eip712_orders.delta import ORDER_TYPES, AnyDeltaOrder
from .....codecs.messages.wire import encode

_TYPES = {order_type.name: order_type for order_type in ORDER_TYPES}


class DeltaDocument(Struct, frozen=True, omit_defaults=True):
    """Stored document of a Delta order: signed struct, signature, and further fields of the submission.

    Attributes:
        order_type: name of the signed struct type.
        order: signed struct, as JSON.
        signature: 64 bytes if a key signed, any length if a contract signed; empty for a pre-signature (a
            call by which the owner signs on chain).
        partially_fillable: whether the order may be settled in parts (choices.md#delta-orders).
        include_agents: names of the only agents that may bid; empty for all agents.
        exclude_agents: names of agents that may not bid.
        referrer: address of the referrer, 20 bytes; empty without a referrer.
        arrivals: contract on the destination that swaps what the bridge delivers, 20 bytes; empty for an
            order without such a swap.
        by_key: whether the order was submitted with an API key.
        is_unwrapped: whether the bridge pays the beneficiary native tokens in place of `outputToken`, their
            wrapped form: an account without code, or with a delegation, as the order was submitted.
    """

    order_type: str
    order: bytes
    signature: bytes
    partially_fillable: bool = False
    include_agents: tuple[str, ...] = ()
    exclude_agents: tuple[str, ...] = ()
    referrer: bytes = b""
    arrivals: bytes = b""
    by_key: bool = False
    is_unwrapped: bool = False

    def admits(self, agent: str) -> bool:
        """Whether an agent may bid for the order, by its lists of included and excluded agents."""
        if agent in self.exclude_agents:
            return False
        return not self.include_agents or agent in self.include_agents


_decoder = msgspec.msgpack.Decoder(DeltaDocument)
encode_document = msgspec.msgpack.Encoder().encode
decode_document = _decoder.decode


def order_json(order_type: str, order: AnyDeltaOrder) -> bytes:
    """Encode the signed struct of a Delta order as JSON, for the order's stored document.

    Args:
        order_type: name of the struct type.
    """
    return encode(_TYPES[order_type].to_wire(order))


def order_of(document: DeltaDocument) -> AnyDeltaOrder:
    """Decode the signed struct of a Delta order from the order's stored document."""
    found: AnyDeltaOrder = _TYPES[document.order_type].from_wire(msgspec.json.decode(document.order))
    return found


def without_struct(document: DeltaDocument) -> DeltaDocument:
    """Return a copy of an order's document without the JSON of the signed struct, to save memory.

    Orders in memory have the decoded struct instead.
    """
    return msgspec.structs.replace(document, order=b"")


def shown_order(document: DeltaDocument) -> Raw:
    """Return the JSON of the signed struct from an order's document, for the order's public record."""
    return Raw(document.order)
