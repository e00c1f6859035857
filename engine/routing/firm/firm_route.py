"""Signed fills that together make a swap: what firm quotes come to, and what the Router is told. Pure.

Hops stand in the order in which they are executed: path after path, each from the source to the destination.
"""

from msgspec import Struct

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.vocabulary import Side


class SignedFill(Struct, frozen=True):
    """One maker's firm quote, checked."""

    maker: str
    order: RfqOrder
    signature: bytes


class FilledHop(Struct, frozen=True):
    """One pair of one path; the fills are tried in turn.

    Attributes:
        taker_amount: raw units of the source that it sells; 0 sells all that is there.
        maker_amount: raw units of the destination that it buys; 0 where it sells.
    """

    src_token: bytes
    dest_token: bytes
    taker_amount: int
    maker_amount: int
    fills: tuple[SignedFill, ...]


class FirmRoute(Struct, frozen=True):
    """A swap that can be executed as it stands.

    Attributes:
        src_amount, dest_amount: what goes in and comes out of the hops by the signed orders, before fees of
            partners and taxes of tokens.
        expiry_s: of the order that expires first, Unix seconds.
    """

    side: Side
    src_amount: int
    dest_amount: int
    hops: tuple[FilledHop, ...]
    expiry_s: int
