"""Executable route of a swap, made of signed fills; the Router's call data is built from it. Pure.

Hops are in their order of execution: path after path, each from the source to the destination.
"""

from msgspec import Struct

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.vocabulary import Side


class SignedFill(Struct, frozen=True):
    """A maker's signed order that fills a part of a swap, taken from a checked firm quote."""

    maker: str
    order: RfqOrder
    signature: bytes


class FilledHop(Struct, frozen=True):
    """An exchange of one token for another in a swap's route, with the signed orders that fill it in turn.

    Attributes:
        taker_amount: raw units of the source that the hop sells; 0 if it sells the whole balance, or buys.
        maker_amount: raw units of the destination that the hop buys; 0 if the hop sells.
    """

    src_token: bytes
    dest_token: bytes
    taker_amount: int
    maker_amount: int
    fills: tuple[SignedFill, ...]


class FirmRoute(Struct, frozen=True):
    """Route of a swap with the makers' signed orders, ready to be executed.

    Attributes:
        src_amount, dest_amount: raw units into and out of the hops by the signed orders, before partner fees
            and token taxes.
        expiry_s: earliest expiry among the orders, Unix seconds.
    """

    side: Side
    src_amount: int
    dest_amount: int
    hops: tuple[FilledHop, ...]
    expiry_s: int
