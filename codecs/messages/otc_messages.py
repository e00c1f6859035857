"""OTC (bilateral RFQ) orders on the wire: spec 2.3, 2.4, 2.6 to 2.10 with interop.md 1.

Choice: A listing `limit` above 1000 is refused, not cut.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ...config.limits import (
    AS_OF_CHARS_MAX,
    LISTING_LIMIT_DEFAULT,
    LISTING_OFFSET_DEFAULT,
    ORDER_BODY_BYTES_MAX,
)
from .query import query_decoder
from .vocabulary import ChainId, Count, ListingLimit, OtcOrderBy, OtcState, OtcType, UnixSeconds
from .wire import decoder


class OtcOrderBody(Struct, frozen=True, rename="camel"):
    """Order (spec 2.3): the signed fields and the post body. `expiry` 0 means never
    (choices.md#otc-orders)."""

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
    """Stored order (spec 2.4): the order, its permit and signature, and the venue's knowledge of it."""

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
    """interop.md 1, POST /ft/p2p/{chainId}, response: the stored order, and itself under `order`."""

    order: StoredOrder


class OtcListing(Struct, frozen=True, rename="camel"):
    """Answer of the maker's and the taker's listing: spec 2.8.6 and 2.9.2; `asOf`: docs/otc.md."""

    orders: tuple[StoredOrder, ...]
    limit: ListingLimit
    offset: Count
    total: Count
    has_more: bool
    as_of: str


class OtcListingQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of the maker's and the taker's listing: spec 2.8.1 to 2.8.5, 2.9.2."""

    type: OtcType | None = None
    limit: ListingLimit = LISTING_LIMIT_DEFAULT
    offset: Count = LISTING_OFFSET_DEFAULT
    order_by: OtcOrderBy = OtcOrderBy.CREATED_AT
    hide_small_balances: bool = False
    as_of: Annotated[str, Meta(max_length=AS_OF_CHARS_MAX)] | None = None


class OtcBalanceQuery(Struct, frozen=True):
    """Query of GET /ft/fillablebalance/{chainId}/{account}; the path may have `token` (spec 2.10.1)."""

    token: str | None = None


OtcFillableBalance = dict[str, str]  # spec 2.10.3 and 2.10.4: lowercase token address -> raw units


def posted(stored: StoredOrder) -> PostedOrder:
    """The answer to a post, which one client family reads at the top level and another under `order`."""
    return PostedOrder(order=stored, **msgspec.structs.asdict(stored))


decode_otc_order = decoder(
    OtcOrderBody, bytes_max=ORDER_BODY_BYTES_MAX, unique_keys=True, takes_numerals=True
)
decode_otc_listing_query = query_decoder(OtcListingQuery)
decode_otc_balance_query = query_decoder(OtcBalanceQuery)
