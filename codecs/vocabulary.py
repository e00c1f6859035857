"""The words and bounded scalars that messages share: every enum of the documents, with its exact values.

Source: document 1 "Resources and their fields", "States and transitions" and the endpoint tables;
document 2 "Stored order" and the maker listing; document 3 "Token".
"""

from enum import StrEnum
from typing import Annotated, Self

from msgspec import Meta

from ..config.limits import (
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


class AnyCase(StrEnum):
    """An enum of upper-case words that are taken in any case (interop.md 3) and written in upper case."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str) or not value.isascii():
            return None
        return next((word for word in cls if word.value == value.upper()), None)


class Mode(AnyCase):
    """Document 1, GET /v2/quote, `mode`."""

    ALL = "ALL"
    DELTA = "DELTA"
    MARKET = "MARKET"


class Side(AnyCase):
    """Document 1: which amount is fixed, the source (SELL) or the destination (BUY)."""

    SELL = "SELL"
    BUY = "BUY"


class MarketVersion(StrEnum):
    """Document 1, GET /prices, `version`."""

    V5 = "5"
    V6_2 = "6.2"


class OrderStatus(StrEnum):
    """Document 1, "States and transitions"."""

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
    """Document 1, Delta order record, `type`."""

    MARKET = "MARKET"
    LIMIT = "LIMIT"


class OnChainOrderType(StrEnum):
    """Document 1, Delta order record, `onChainOrderType`."""

    ORDER = "Order"
    FILLABLE_ORDER = "FillableOrder"
    PRODUCTIVE_ORDER = "ProductiveOrder"
    EXTERNAL_ORDER = "ExternalOrder"
    TWAP_ORDER = "TWAPOrder"
    TWAP_BUY_ORDER = "TWAPBuyOrder"


class BuildOrderType(StrEnum):
    """Document 1, POST /v2/delta/orders/build, `orderType`."""

    ORDER = "Order"
    PRODUCTIVE_ORDER = "ProductiveOrder"
    EXTERNAL_ORDER = "ExternalOrder"
    TWAP_ORDER = "TWAPOrder"
    TWAP_BUY_ORDER = "TWAPBuyOrder"


class DeliveryState(StrEnum):
    """Where a delivery to a webhook stands; one that was taken is not kept."""

    WAITING = "WAITING"
    DEAD = "DEAD"


class OtcState(StrEnum):
    """Document 2, "States and transitions"."""

    DRAFT = "DRAFT"
    PENDING = "PENDING"
    FULFILLED = "FULFILLED"
    CANCELLED = "CANCELLED"
    SUSPENDED = "SUSPENDED"
    EXPIRED = "EXPIRED"


class OtcType(StrEnum):
    """Document 2: P2P names its taker, LIMIT is open to anyone."""

    P2P = "P2P"
    LIMIT = "LIMIT"


class OtcOrderBy(StrEnum):
    """Document 2, maker listing, `orderBy`."""

    CREATED_AT = "createdAt"
    UPDATED_AT = "updatedAt"
    EXPIRY = "expiry"


class TokenType(StrEnum):
    """Document 3, Token, `type`: one value only."""

    ERC20 = "ERC20"
