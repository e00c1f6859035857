"""Enums and bounded scalar types that messages share: every enum of the specification, with its exact values.

Source: spec 1.4 to 1.22, 2.4, 2.5, 2.8, 3.2.9.
"""

from enum import StrEnum
from typing import Annotated, Self

from msgspec import Meta

from ...config.limits import (
    JSON_INT_MAX,
    LISTING_LIMIT_MAX,
    NAME_CHARS_MAX,
    ORDER_PAGE_LIMIT_MAX,
    PARTNER_FEE_BPS_MAX,
    PARTNER_FEE_BPS_MIN,
    SLIPPAGE_BPS_MAX,
    SLIPPAGE_BPS_MIN,
    TOKEN_DECIMALS_MAX,
)

ChainId = Annotated[int, Meta(ge=1, le=JSON_INT_MAX)]
Count = Annotated[int, Meta(ge=0, le=JSON_INT_MAX)]
UnixSeconds = Annotated[int, Meta(ge=0, le=JSON_INT_MAX)]
AnyInteger = Annotated[int, Meta(ge=-JSON_INT_MAX, le=JSON_INT_MAX)]
TokenDecimals = Annotated[int, Meta(ge=0, le=TOKEN_DECIMALS_MAX)]
SlippageBps = Annotated[int, Meta(ge=SLIPPAGE_BPS_MIN, le=SLIPPAGE_BPS_MAX)]
PartnerFeeBps = Annotated[int, Meta(ge=PARTNER_FEE_BPS_MIN, le=PARTNER_FEE_BPS_MAX)]
PageNumber = Annotated[int, Meta(ge=1, le=JSON_INT_MAX)]
PageLimit = Annotated[int, Meta(ge=1, le=ORDER_PAGE_LIMIT_MAX)]
ListingLimit = Annotated[int, Meta(ge=1, le=LISTING_LIMIT_MAX)]
Name = Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
ListedName = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
"""Name in a list of a JSON body: a list of an empty name would admit nobody, and look like an empty list."""


class AnyCase(StrEnum):
    """An enum of upper-case words, read in any case (interop.md 3) and written in upper case."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str) or not value.isascii():
            return None
        return next((word for word in cls if word.value == value.upper()), None)


class Mode(AnyCase):
    """Kind of price that a quote may return, `mode` (spec 1.12.9)."""

    ALL = "ALL"
    DELTA = "DELTA"
    MARKET = "MARKET"


class Side(AnyCase):
    """Fixed amount of a trade: of the source token (SELL) or of the destination token (BUY); spec 1.12.6."""

    SELL = "SELL"
    BUY = "BUY"


class MarketVersion(StrEnum):
    """Format version of a Market route, `version` (spec 1.13.24)."""

    V5 = "5"
    V6_2 = "6.2"


class OrderStatus(StrEnum):
    """Status of a Delta order (spec 1.11.1)."""

    PENDING = "PENDING"
    AWAITING_SIGNATURE = "AWAITING_SIGNATURE"
    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    CANCELLING = "CANCELLING"
    BRIDGING = "BRIDGING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    REFUNDING = "REFUNDING"
    CANCELLED = "CANCELLED"
    REFUNDED = "REFUNDED"


class OrderType(StrEnum):
    """Kind of a Delta order, `type` of an order record (spec 1.10.5)."""

    MARKET = "MARKET"
    LIMIT = "LIMIT"


class OnChainOrderType(StrEnum):
    """Order struct that the contract settles, `onChainOrderType` of a record (spec 1.10.6 to 1.10.8)."""

    ORDER = "Order"
    FILLABLE_ORDER = "FillableOrder"
    PRODUCTIVE_ORDER = "ProductiveOrder"
    EXTERNAL_ORDER = "ExternalOrder"
    TWAP_ORDER = "TWAPOrder"
    TWAP_BUY_ORDER = "TWAPBuyOrder"


class BuildOrderType(StrEnum):
    """Kind of order to build, `orderType` of a build request (spec 1.16.21 to 1.16.23)."""

    ORDER = "Order"
    PRODUCTIVE_ORDER = "ProductiveOrder"
    EXTERNAL_ORDER = "ExternalOrder"
    TWAP_ORDER = "TWAPOrder"
    TWAP_BUY_ORDER = "TWAPBuyOrder"


class DeliveryState(StrEnum):
    """State of a stored webhook delivery: WAITING for its next POST, or DEAD, which is given up.

    The store deletes a delivery that the receiver accepts.
    """

    WAITING = "WAITING"
    DEAD = "DEAD"


class OtcState(StrEnum):
    """State of an OTC order (spec 2.5.1)."""

    DRAFT = "DRAFT"
    PENDING = "PENDING"
    FULFILLED = "FULFILLED"
    CANCELLED = "CANCELLED"
    SUSPENDED = "SUSPENDED"
    EXPIRED = "EXPIRED"


class OtcType(StrEnum):
    """Type of an OTC order: P2P names its taker, LIMIT is open to anyone (spec 2.1.7 and 2.1.8)."""

    P2P = "P2P"
    LIMIT = "LIMIT"


class OtcOrderBy(StrEnum):
    """Sort order of an OTC listing, `orderBy` (spec 2.8.4)."""

    CREATED_AT = "createdAt"
    UPDATED_AT = "updatedAt"
    EXPIRY = "expiry"


class TokenType(StrEnum):
    """Standard of a maker's token, `type`: the specification has one value (spec 3.2.9)."""

    ERC20 = "ERC20"
