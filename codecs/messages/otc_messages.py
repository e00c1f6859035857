"""Messages of OTC (bilateral RFQ) orders (spec 2.3, 2.4, 2.6 to 2.10, interop.md 1).

Choice: A listing `limit` above 1000 is refused, not cut.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ...config.limits import (
    AS_OF_CHARS_MAX,
    JSON_BYTES_MAX,
    LISTING_LIMIT_DEFAULT,
    LISTING_OFFSET_DEFAULT,
    ORDER_BODY_BYTES_MAX,
)
from .query import query_decoder
from .vocabulary import ChainId, Count, ListingLimit, OtcOrderBy, OtcState, OtcType, UnixSeconds
from .wire import decoder


class OtcOrderBody(Struct, frozen=True, rename="camel"):
    """A posted order: the signed fields with permit and signature (spec 2.3).

    `expiry` 0 means that the order never expires (choices.md#otc-orders).
    """

    nonce_and_meta: str
    expiry: UnixSeconds
    maker_asset: str
    taker_asset: str
    maker_amount: str
    taker_amount: str
    maker: str
    taker: str
    signature: str
    permit_maker_asset: str | None = None


class StoredOrder(OtcOrderBody, frozen=True, rename="camel", kw_only=True):
    """A stored order (spec 2.4): the order, its permit and signature, and its state as the venue knows it."""

    order_hash: str
    chain_id: ChainId
    state: OtcState
    type: OtcType
    taker_from_meta: str
    maker_balance: str
    fillable_balance: str
    reserved_balance: str
    swappable_balance: str
    transaction_hash: str | None
    created_at: UnixSeconds
    updated_at: UnixSeconds


class PostedOrder(StoredOrder, frozen=True, rename="camel", kw_only=True):
    """Answer of POST /ft/p2p/{chainId}: the stored order, and a copy of it under `order` (interop.md 1)."""

    order: StoredOrder


class OtcListing(Struct, frozen=True, rename="camel"):
    """Answer of the listings of a maker's and of a taker's OTC orders (spec 2.8.6 and 2.9.2).

    Attributes:
        as_of: text that a client sends back with the next `offset`, so that new orders do not shift the pages
            (docs/guides/otc.md).
    """

    orders: tuple[StoredOrder, ...]
    limit: ListingLimit
    offset: Count
    total: Count
    has_more: bool
    as_of: str


class OtcListingQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of the listings of a maker's and of a taker's OTC orders (spec 2.8.1 to 2.8.5, 2.9.2)."""

    type: OtcType | None = None
    limit: ListingLimit = LISTING_LIMIT_DEFAULT
    offset: Count = LISTING_OFFSET_DEFAULT
    order_by: OtcOrderBy = OtcOrderBy.CREATED_AT
    hide_small_balances: bool = False
    as_of: Annotated[str, Meta(max_length=AS_OF_CHARS_MAX)] | None = None


class OtcBalanceQuery(Struct, frozen=True):
    """Query of GET /ft/fillablebalance/{chainId}/{account}; the path may end with a token (spec 2.10.1)."""

    token: str | None = None


OtcFillableBalance = dict[str, str]  # spec 2.10.3 and 2.10.4: lowercase token address -> raw units


class OtcPurgeBody(Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """Body of POST /operator/otc/purge: the open OTC orders to end, which match all members that are given.

    The decoder refuses unknown members, since a mistyped one would otherwise choose more orders.

    Attributes:
        token: token that an order sells or buys.
        state: state of an order that may still change.
        unlisted: orders with a token that the operator has not listed.
        dry_run: count the orders, and end none.
        after: `after` of the answer before; empty for the first request.
    """

    chain_id: ChainId | None = None
    maker: str | None = None
    token: str | None = None
    state: OtcState | None = None
    unlisted: bool = False
    dry_run: bool = False
    after: str = ""


class OtcPurged(Struct, frozen=True):
    """Answer of POST /operator/otc/purge.

    Attributes:
        orders: number of orders that were ended, or would be.
        after: member `after` of the next request; empty if no orders are left to look at.
    """

    orders: int
    after: str


def posted(stored: StoredOrder) -> PostedOrder:
    """Make the answer to a posted order, which has the order at the top level and again under `order`."""
    return PostedOrder(order=stored, **msgspec.structs.asdict(stored))


decode_otc_order = decoder(OtcOrderBody, bytes_max=ORDER_BODY_BYTES_MAX, unique_keys=True, tolerant=True)
decode_otc_purge = decoder(OtcPurgeBody, bytes_max=JSON_BYTES_MAX, unique_keys=True)
decode_otc_listing_query = query_decoder(OtcListingQuery)
decode_otc_balance_query = query_decoder(OtcBalanceQuery)
