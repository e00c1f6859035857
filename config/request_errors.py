"""Rows of the error catalogue: one class per fault of a caller.

Source: spec 1.25, 2.14, 3.12.
"""

from collections.abc import Mapping
from typing import ClassVar

from .error_root import RequestError


class InvalidInput(RequestError):
    """A field, parameter or document is malformed."""

    messages = ("Invalid input",)
    cause = "a field or parameter is missing, of the wrong type or out of range"
    fix = "correct the field that the details name"


class MissingSlippage(RequestError):
    """A swap or transaction request has neither a slippage nor a limit amount (spec 1.25.1 and 1.25.2)."""

    messages = ("missing slippage",)
    endpoint = "POST /transactions/{chainId}, GET /swap"
    cause = "quote request incomplete"
    fix = "add `slippage` in basis points and retry"


class NoRoute(RequestError):
    """A trade has no liquidity or supported route (spec 1.25.3 to 1.25.5, choices.md#quotes-and-routes)."""

    messages = ("No route", "No route (crosschain)")
    endpoint = "GET /v2/quote, GET /prices, GET /swap, GET /v2/delta/prices"
    cause = "no liquidity, wrong decimals, or lane unsupported"
    fix = "check decimals; retry with `mode=ALL`; reduce size"


class PricingError(RequestError):
    """Gas has no price in a token of the trade.

    A quote of mode ALL has a Market route in place of this error if the chain serves Market swaps
    (interop.md 3).
    """

    messages = ("Price not available",)
    endpoint = "GET /v2/quote, GET /v2/delta/prices"
    cause = "the cost of gas cannot be valued in a token of the trade"
    fix = "retry with `mode=ALL` or `mode=MARKET`"


class GasCostExceedsTradeAmount(RequestError):
    """Gas and fee consume the whole trade.

    A quote of mode ALL has a Market route in place of this error if the chain serves Market swaps
    (interop.md 3).
    """

    messages = ("Gas cost exceeds trade amount",)
    endpoint = "GET /v2/quote, GET /v2/delta/prices, POST /v2/delta/orders"
    cause = "the gas of the settlement costs as much as the trade brings"
    fix = "trade a larger amount, or retry with `mode=ALL` or `mode=MARKET`"


class TokenNotSupported(RequestError):
    """The venue does not list a token on the chain (spec 1.25.6 and 1.25.7)."""

    messages = ("Token not supported",)
    endpoint = "GET /v2/quote, GET /prices, GET /swap, GET /v2/delta/prices, POST /v2/delta/orders"
    cause = "token not whitelisted on the chain"
    fix = "check support before quoting"


class InvalidToken(RequestError):
    """The source or destination token is malformed (spec 1.25.8 to 1.25.10, choices.md#chains-and-tokens)."""

    messages = ("Invalid srcToken", "Invalid destToken")
    endpoint = "GET /v2/quote, GET /prices, GET /swap, POST /transactions/{chainId}, GET /v2/delta/prices"
    cause = "native token sent as `0x0` or lowercase form, or not a token address"
    fix = "use the mixed-case placeholder 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE for the native token"


class UnsupportedChain(RequestError):
    """The venue does not serve the chain (spec 1.25.11 and 1.25.12, choices.md#chains-and-tokens)."""

    status = 422
    messages = ("Unsupported chain",)
    cause = "`network` not supported by this host"
    fix = "check GET /chains"


class RouteValidationFailed(RequestError):
    """The route sent to build a Delta order was changed, or has expired.

    Source: spec 1.25.13 and 1.25.14, choices.md#delta-orders.
    """

    messages = ("route validation failed",)
    endpoint = "POST /v2/delta/orders/build"
    cause = "route mutated, re-stringified, or amounts cast to numbers"
    fix = "pass the route verbatim"


class MissingDeadline(RequestError):
    """An order to build has no deadline (spec 1.25.15 and 1.25.16)."""

    messages = ("missing deadline",)
    endpoint = "POST /v2/delta/orders/build"
    cause = "`deadline` absent on build"
    fix = "pass Unix seconds"


class InvalidTWAPParams(RequestError):
    """A TWAP sale has missing or out-of-range parameters (spec 1.25.17 and 1.25.18)."""

    messages = ("InvalidTWAPParams",)
    endpoint = "POST /v2/delta/orders/build, POST /v2/delta/orders"
    cause = (
        "TWAP missing `interval`, `numSlices` or `totalSrcAmount`, "
        "or `interval` below 60 or `numSlices` below 2"
    )
    fix = "provide all required fields"


class InvalidTWAPBuyParams(RequestError):
    """A TWAP purchase has missing or out-of-range parameters (spec 1.25.19 and 1.25.20)."""

    messages = ("InvalidTWAPBuyParams",)
    endpoint = "POST /v2/delta/orders/build, POST /v2/delta/orders"
    cause = (
        "TWAP buy missing `interval`, `numSlices`, `totalDestAmount` or `maxSrcAmount`, "
        "or `interval` below 60 or `numSlices` below 2"
    )
    fix = "provide all required fields"


class InvalidTWAPSrcAmount(RequestError):
    """The slice amount of a TWAP sale does not fit its total (spec 1.25.21 and 1.25.22)."""

    messages = ("InvalidTWAPSrcAmount",)
    endpoint = "POST /v2/delta/orders/build"
    cause = "slice amount differs from floor(totalSrcAmount / numSlices)"
    fix = "requote the per-slice amount"


class InvalidTWAPBuyDestAmount(RequestError):
    """The slice amount of a TWAP purchase does not fit its total (spec 1.25.22 and 1.25.23)."""

    messages = ("InvalidTWAPBuyDestAmount",)
    endpoint = "POST /v2/delta/orders/build"
    cause = "slice amount differs from floor(totalDestAmount / numSlices)"
    fix = "requote the per-slice amount"


class InvalidExternalOrderParams(RequestError):
    """An ExternalOrder lacks `handler` or `data`, or has a refused member (spec 1.25.24 and 1.25.25)."""

    messages = ("InvalidExternalOrderParams",)
    endpoint = "POST /v2/delta/orders/build, POST /v2/delta/orders"
    cause = "ExternalOrder without `handler` and `data`, or with a `beneficiary`, which it has not"
    fix = "supply both"


class InvalidProductiveOrderParams(RequestError):
    """A ProductiveOrder has a missing or refused `strategy` or number of shares (spec 1.25.26, 1.25.27)."""

    messages = ("InvalidProductiveOrderParams",)
    endpoint = "POST /v2/delta/orders/build, POST /v2/delta/orders"
    cause = "ProductiveOrder without `strategy`, or with one that is not listed, or holds another token"
    fix = "supply it, as GET /v2/delta/prices/strategies/{chainId} lists it for `srcToken`"


class PermitRequired(RequestError):
    """The order lacks a permit, which its token requires.

    Source: spec 1.25.28 and 1.25.29, choices.md#signatures-and-permits.
    """

    messages = ("Permit / Permit2 required",)
    endpoint = "POST /v2/delta/orders/build, POST /v2/delta/orders"
    cause = "token requires a permit and none attached"
    fix = "attach a signed payload; a separate approval is not accepted for these tokens"


class InvalidSignature(RequestError):
    """An order's signature is wrong (spec 1.25.30 and 1.25.31, for OTC orders choices.md#otc-orders)."""

    messages = ("Invalid signature",)
    endpoint = "POST /v2/delta/orders, POST /ft/p2p/{chainId}, POST /transactions/{chainId}"
    cause = "signed payload differs from the built order"
    fix = "sign `toSign` exactly; submit `toSign.value`"


class InvalidCancelSignature(InvalidSignature):
    """The signature of a cancellation is wrong (spec 1.25.44 and 1.25.45)."""

    error_type = "InvalidSignature"
    endpoint = "POST /v2/delta/orders/cancel"
    cause = "wrong cancel typed data"
    fix = "sign the payload of POST /v2/delta/orders/build/cancellation"


class OrderExpired(RequestError):
    """An order's deadline has passed (spec 1.25.32 and 1.25.33)."""

    messages = ("Order expired",)
    endpoint = (
        "POST /v2/delta/orders/build, POST /v2/delta/orders, POST /ft/p2p/{chainId}, "
        "POST /transactions/{chainId}, GET /swap"
    )
    cause = "`deadline` passed before validation"
    fix = "rebuild or use a later deadline"


class InsufficientAllowance(RequestError):
    """The owner has not approved enough of the token to the settling contract (spec 1.25.34 and 1.25.35)."""

    messages = ("InsufficientAllowance",)
    endpoint = "POST /v2/delta/orders, POST /transactions/{chainId}, GET /swap"
    cause = "wrong spender approved"
    fix = "approve the Delta spender, not the Market router"


class InsufficientBalance(RequestError):
    """The owner does not have enough of the token (spec 1.25.36 and 1.25.37)."""

    messages = ("InsufficientBalance",)
    endpoint = "POST /v2/delta/orders, POST /transactions/{chainId}, GET /swap"
    cause = "balance dropped after pricing"
    fix = "requote and rebuild"


class TwapDeadlineTooShort(RequestError):
    """A TWAP's deadline comes before its last slice (spec 1.25.38 and 1.25.39)."""

    messages = ("deadline must allow enough time for all slices to execute",)
    endpoint = "POST /v2/delta/orders/build, POST /v2/delta/orders"
    cause = "TWAP deadline earlier than numSlices x interval"
    fix = "extend deadline or reduce slices or interval"


class TwapTotalTooSmall(RequestError):
    """A TWAP's total is too small for its slices (spec 1.25.40 to 1.25.43)."""

    messages = (
        "totalSrcAmount must be >= numSlices",
        "totalDestAmount must be >= numSlices",
        "maxSrcAmount must be >= numSlices",
    )
    endpoint = "POST /v2/delta/orders/build, POST /v2/delta/orders"
    cause = "a slice would round to zero"
    fix = "raise total or lower `numSlices`"


class OrderAlreadySettled(RequestError):
    """An order to cancel has ended or is BRIDGING, or a newly submitted order already has fills.

    Source: spec 1.25.46 and 1.25.47.
    """

    messages = ("Order already settled",)
    endpoint = "POST /v2/delta/orders/cancel, POST /v2/delta/orders/build/cancellation, POST /v2/delta/orders"
    cause = "an id is in a terminal or post-settlement status"
    fix = "cancel only PENDING, AWAITING_SIGNATURE, ACTIVE, SUSPENDED orders"


class TooManyOrderIds(RequestError):
    """A cancellation names more than 100 orders (spec 1.25.48 and 1.25.49)."""

    messages = ("orderIds.length > 100",)
    endpoint = "POST /v2/delta/orders/cancel, POST /v2/delta/orders/build/cancellation"
    cause = "batch too large"
    fix = "chunk to at most 100"


class InvalidPriceRoute(RequestError):
    """A Market route in a request does not come from the venue, or has been changed since.

    Source: spec 1.25.50, 1.25.51, choices.md#quotes-and-routes.
    """

    messages = ("Invalid priceRoute",)
    endpoint = "POST /transactions/{chainId}"
    cause = "route modified, or built for another chain"
    fix = "requote and pass verbatim"


class StalePriceRoute(RequestError):
    """A Market route is too old (spec 1.25.52 and 1.25.53, choices.md#quotes-and-routes)."""

    messages = ("Stale priceRoute",)
    endpoint = "POST /transactions/{chainId}"
    cause = "route older than about 30 seconds"
    fix = "requote and pass verbatim"


class SimulationFailed(RequestError):
    """The requested transaction would revert, by simulation (spec 1.14.5, reasons: 1.26.1 and 1.26.2)."""

    messages = ("Simulation failed",)
    endpoint = "POST /transactions/{chainId}"
    cause = "the transaction would revert at the latest block; the details carry the revert word"
    fix = "requote; check receiver, permit and deadline; `ignoreChecks=true` builds without checks"


class PartnerNotAllowed(RequestError):
    """The partner's tier forbids a fee or surplus (spec 1.25.54, 1.25.55, choices.md#fees-and-partners)."""

    status = 422
    messages = ("Partner not allowed",)
    cause = "partner tier does not permit the fee or surplus configuration"
    fix = "drop the parameter"


class RateLimited(RequestError):
    """The caller sends too many requests (spec 1.25.56 and 1.25.57).

    Attributes:
        is_over_rate: whether the caller alone has caused the refusal, by requests beyond its own rate.
    """

    status = 429
    messages = ("rate limit exceeded",)
    cause = "rate limit exceeded"
    fix = "back off and retry"
    retry_after_s = 1
    is_over_rate = False


class UnknownApiKey(RequestError):
    """The key in X-API-KEY is unknown (interop.md 3). The error never repeats the key."""

    status = 401
    error_type = "Unauthorized"
    messages = ("X-API-KEY",)
    cause = "the key is not one of this service's"
    fix = "send the key that was issued to you, or no such header"


class NonceUsed(RequestError):
    """A live or filled order, or the chain, used this nonce (choices.md#delta-orders)."""

    messages = ("Nonce already used",)
    endpoint = "POST /v2/delta/orders"
    cause = "another live or filled order of the owner has this nonce"
    fix = "rebuild with a new nonce"


class TooManyOpenOrders(RequestError):
    """The owner already has as many open orders as an account may have (ARCHITECTURE.md, "Limits")."""

    messages = ("Too many open orders",)
    endpoint = "POST /v2/delta/orders, POST /ft/p2p/{chainId}"
    cause = "the owner has as many orders that may still change as one account may have"
    fix = "cancel orders, or wait until some have ended for good"


class OrderClosed(RequestError):
    """The order is filled or cancelled on the chain: `remaining` of the RFQ contract is 1 (interop.md 1)."""

    messages = ("Order closed on the chain",)
    endpoint = "POST /ft/p2p/{chainId}, POST /transactions/{chainId}"
    cause = "the RFQ contract has this order's hash as filled or cancelled by its maker"
    fix = "sign a new order, with another `nonceAndMeta`"


class OrderNotFound(RequestError):
    """No order has this id or hash (interop.md 1 and 3)."""

    status = 404
    messages = ("Order not found",)
    endpoint = (
        "GET /v2/delta/orders/{orderId}, GET /v2/delta/orders/{orderId}/explain, "
        "GET /v2/delta/orders/hash/{hash}, GET /ft/order/{orderHash}"
    )
    cause = "no order has this id or hash"
    fix = "check the id; an order exists from the moment its submission was answered"


class OrdersNotFound(OrderNotFound):
    """A list of ids has an unknown id; the whole request is refused (interop.md 3)."""

    status = 400
    error_type = "OrderNotFound"
    messages = ("Orders not found",)
    endpoint = "POST /v2/delta/orders/cancel, POST /v2/delta/orders/build/cancellation"
    cause = "one of the ids is no order's"
    fix = "name orders that were submitted; the details say which id it is"


class AuctionNotFound(RequestError):
    """No closed auction round has this id (ARCHITECTURE.md, "Auction")."""

    status = 404
    messages = ("Auction not found",)
    endpoint = "GET /v2/delta/auctions/{auctionId}"
    cause = "no round has this id, or it is still open: bids are sealed until it closes"
    fix = "ask again once the round is closed"


class WebhookNotFound(RequestError):
    """The caller's API key has no webhook of the requested name (ARCHITECTURE.md, "Push")."""

    status = 404
    messages = ("Webhook not found",)
    endpoint = "GET /v2/webhooks/{name}/deliveries, POST /v2/webhooks/{name}/replay"
    cause = "no webhook has this name, or the key does not manage it"
    fix = "GET /v2/webhooks lists those that your key manages"


class FirmRefused(RequestError):
    """The maker refuses a firm quote (spec 3.9.14). Each reason is a row of the error catalogue."""

    reasons: ClassVar[Mapping[str, str]] = {
        "Amount out of range": "amount",
        "Beyond depth": "depth",
        "Notional limit": "limit",
        "Not enough funds": "funds",
        "Pair not quoted": "pair",
        "Price is stale": "stale",
        "Taker not allowed": "taker",
        "Too many open quotes": "open",
        "Unknown token": "token",
    }
    """Message of a reason -> its word in the status of the maker's operator."""
    messages = tuple(reasons)
    endpoint = "POST {mm_base_url}/firm"
    cause = "the market maker does not quote this pair, amount or taker now; the message says which"
    fix = "read GET /pairs and GET /prices again, ask for less, or use a taker of /adapters/contract-takers"

    @property
    def reason(self) -> str:
        """Word of the reason, such as `stale`."""
        return self.reasons[self.message]


class TradingStopped(RequestError):
    """The maker has stopped trading (spec 3.1.18 and 3.1.19, choices.md#makers-at-the-venue)."""

    status = 503
    messages = ("Trading is stopped",)
    endpoint = "GET {mm_base_url}/prices, POST {mm_base_url}/firm, WebSocket"
    cause = "the market maker has stopped trading on this chain, or altogether"
    fix = "retry later; quotes signed before are not taken back by this"
    retry_after_s = 10


class ServiceUnavailable(RequestError):
    """A queue is full or a dependency is unavailable; the request has no effect."""

    status = 503
    messages = ("Service unavailable",)
    cause = "a queue is full, or a node or the store cannot be reached"
    fix = "retry after the time in Retry-After; nothing was done"
    retry_after_s = 1


class InternalError(RequestError):
    """A fault of this service. The log holds the cause under the request id; the response hides it."""

    status = 500
    messages = ("Internal error",)
    cause = "a fault of this service"
    fix = "report the request id"


class HttpFault(RequestError):
    """The server refuses a malformed, too large or misdirected HTTP request before any endpoint reads it."""

    messages = ("Malformed HTTP request",)
    error_type = "MalformedRequest"
    cause = "the request breaks HTTP/1.1 framing"
    fix = "send a well-formed HTTP/1.1 request"


class PathNotFound(HttpFault):
    """No endpoint has the path of the request."""

    status = 404
    error_type = "NotFound"
    messages = ("Not found",)
    cause = "no endpoint has this path"
    fix = "check the path against the API documentation"


class MethodNotAllowed(HttpFault):
    """The requested path exists, but does not allow the HTTP method."""

    status = 405
    error_type = "MethodNotAllowed"
    messages = ("Method not allowed",)
    cause = "the path does not take this method"
    fix = "use a method of the Allow header"


class RequestTimeout(HttpFault):
    """The HTTP request did not arrive completely in time."""

    status = 408
    error_type = "RequestTimeout"
    messages = ("Request timeout",)
    cause = "the request was not complete within the time allowed"
    fix = "send the whole request at once"


class BodyTooLarge(HttpFault):
    """The request body is larger than the server allows."""

    status = 413
    error_type = "BodyTooLarge"
    messages = ("Body too large",)
    cause = "the body is larger than this listener takes"
    fix = "send less"


class TargetTooLong(HttpFault):
    """The request target (path and query) is longer than the server allows."""

    status = 414
    error_type = "TargetTooLong"
    messages = ("Request target too long",)
    cause = "the request target is longer than this listener takes"
    fix = "shorten the query"


class UnsupportedCoding(HttpFault):
    """The request body is compressed, and the server decompresses nothing."""

    status = 415
    error_type = "UnsupportedContentCoding"
    messages = ("Unsupported content coding",)
    cause = "the body has a content-encoding other than identity"
    fix = "send the body uncompressed"
    headers = ((b"accept-encoding", b"identity"),)


class ExpectationFailed(HttpFault):
    """The request has an Expect header other than `100-continue`."""

    status = 417
    error_type = "ExpectationFailed"
    messages = ("Expectation failed",)
    cause = "an Expect header other than 100-continue"
    fix = "drop the Expect header"


class HeadersTooLarge(HttpFault):
    """The request has more headers, or more bytes of headers, than the server allows."""

    status = 431
    error_type = "HeadersTooLarge"
    messages = ("Request header fields too large",)
    cause = "the header section is larger than this listener takes, in bytes or in fields"
    fix = "send fewer or shorter headers"


class UnknownMethodOrCoding(HttpFault):
    """The server does not support the HTTP method or the transfer coding of the request."""

    status = 501
    error_type = "NotImplemented"
    messages = ("Not implemented",)
    cause = "a transfer coding other than chunked, or an unknown method"
    fix = "send the body plain or chunked"


class HttpVersionNotSupported(HttpFault):
    """The request is neither HTTP/1.0 nor HTTP/1.1."""

    status = 505
    error_type = "HttpVersionNotSupported"
    messages = ("HTTP version not supported",)
    cause = "the request line names a version other than HTTP/1.0 or HTTP/1.1"
    fix = "speak HTTP/1.1"
