"""Executable route of a swap, made of signed fills; the Router's call data is built from it. Pure.

Hops are in their order of execution: path after path, each from the source to the destination.
"""

from msgspec import Struct

from .....codecs.eip712_orders.rfq import RfqOrder
from .....codecs.messages.vocabulary import Side


class SignedFill(Struct, frozen=True):
    """A maker's signed order that fills a part of a swap, taken from a checked firm quote."""

    maker: str
    order: RfqOrder
    signature: bytes


class FilledHop(Struct, frozen=True):
    """An exchange of one token for another in a swap's route, with the signed orders that fill it in turn.

    Attributes:
        taker_amount: raw units of the source token that the hop sells. 0 if the hop sells the whole balance,
            or has a `maker_amount`.
        maker_amount: raw units of the destination token that the hop has to buy; 0 if the hop sells.
    """

    src_token: bytes
    dest_token: bytes
    taker_amount: int
    maker_amount: int
    fills: tuple[SignedFill, ...]


class FirmRoute(Struct, frozen=True):
    """Route of a swap with the makers' signed orders, ready to be executed.

    Attributes:
        src_amount, dest_amount: raw units that the signed orders take of the source token and give of the
            destination token, before partner fees and fees that tokens take on transfers.
        expiry_s: earliest expiry among the orders, Unix seconds.
    """

    side: Side
    src_amount: int
    dest_amount: int
    hops: tuple[FilledHop, ...]
    expiry_s: int
