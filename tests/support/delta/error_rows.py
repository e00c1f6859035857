"""Errors of spec 1.25, word for word, and the classes of ours that carry them."""

from cambist.config import errors
from cambist.config.errors import RequestError

SPEC_ROWS: list[tuple[str, dict[str, type[RequestError]]]] = [
    ("400 missing slippage", {"missing slippage": errors.MissingSlippage}),
    (
        "400 No route (same-chain or crosschain)",
        {"No route": errors.NoRoute, "No route (crosschain)": errors.NoRoute},
    ),
    ("400 Token not supported", {"Token not supported": errors.TokenNotSupported}),
    (
        "400 Invalid srcToken / Invalid destToken",
        {"Invalid srcToken": errors.InvalidToken, "Invalid destToken": errors.InvalidToken},
    ),
    ("422 Unsupported chain", {"Unsupported chain": errors.UnsupportedChain}),
    ("400 route validation failed", {"route validation failed": errors.RouteValidationFailed}),
    ("400 missing deadline", {"missing deadline": errors.MissingDeadline}),
    (
        "400 InvalidTWAPParams / InvalidTWAPBuyParams",
        {
            "InvalidTWAPParams": errors.InvalidTWAPParams,
            "InvalidTWAPBuyParams": errors.InvalidTWAPBuyParams,
        },
    ),
    (
        "400 InvalidTWAPSrcAmount / InvalidTWAPBuyDestAmount",
        {
            "InvalidTWAPSrcAmount": errors.InvalidTWAPSrcAmount,
            "InvalidTWAPBuyDestAmount": errors.InvalidTWAPBuyDestAmount,
        },
    ),
    ("400 InvalidExternalOrderParams", {"InvalidExternalOrderParams": errors.InvalidExternalOrderParams}),
    (
        "400 InvalidProductiveOrderParams",
        {"InvalidProductiveOrderParams": errors.InvalidProductiveOrderParams},
    ),
    ("400 Permit / Permit2 required (build)", {"Permit / Permit2 required": errors.PermitRequired}),
    ("400 Invalid signature (submit)", {"Invalid signature": errors.InvalidSignature}),
    ("400 Order expired", {"Order expired": errors.OrderExpired}),
    ("400 InsufficientAllowance", {"InsufficientAllowance": errors.InsufficientAllowance}),
    ("400 InsufficientBalance", {"InsufficientBalance": errors.InsufficientBalance}),
    (
        "400 deadline must allow enough time for all slices to execute",
        {"deadline must allow enough time for all slices to execute": errors.TwapDeadlineTooShort},
    ),
    (
        "400 totalSrcAmount must be >= numSlices (also totalDestAmount, maxSrcAmount)",
        {
            "totalSrcAmount must be >= numSlices": errors.TwapTotalTooSmall,
            "totalDestAmount must be >= numSlices": errors.TwapTotalTooSmall,
            "maxSrcAmount must be >= numSlices": errors.TwapTotalTooSmall,
        },
    ),
    ("400 Invalid signature (cancel)", {"Invalid signature": errors.InvalidCancelSignature}),
    ("400 Order already settled", {"Order already settled": errors.OrderAlreadySettled}),
    ("400 orderIds.length > 100", {"orderIds.length > 100": errors.TooManyOrderIds}),
    (
        "400 Invalid priceRoute / Stale priceRoute",
        {"Invalid priceRoute": errors.InvalidPriceRoute, "Stale priceRoute": errors.StalePriceRoute},
    ),
    ("422 Partner not allowed", {"Partner not allowed": errors.PartnerNotAllowed}),
    ("429", {"rate limit exceeded": errors.RateLimited}),
]
"""The first column of the table, and what it says: message -> the class that carries it."""
