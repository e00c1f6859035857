"""Signed fills that together make a swap; the Router's call data is built from them. Pure.

Hops are in their order of execution: path after path, each from the source to the destination.
"""

from msgspec import Struct

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.vocabulary import Side


class SignedFill(Struct, frozen=True):
    """A maker's firm quote, checked, with the signed order that fills a part of a swap."""

    maker: str
    order: RfqOrder
    signature: bytes


class FilledHop(Struct, frozen=True):
    """A hop of a path: a pair of tokens and its signed fills, tried in turn.

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
    """A swap with signed orders, ready to be executed.

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
