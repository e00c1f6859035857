"""Messages about chains, tokens, contracts and makers' scores, the error catalogue, and the bodies of errors.

config.catalogue makes the resources under /resources; these types serve their readers.

Source: interop.md 3; choices.md#requests-and-errors, choices.md#firm-quotes. Keys are spelled as clients
    expect them.
Choice: An error body never repeats an internal text. A failed dependency is `Service unavailable` (503), a
    fault of the venue `Internal error` (500).
Choice: Error bodies of trading endpoints are `{errorType, details, description, error, requestId}` with one
    text under three keys, since clients differ. Bodies of /ft are `{errorType, details, requestId}`, those of
    makers `{error}`.
Choice: GET /chains lists `{chainId, name, delta, market, rfq, explorerUrl}`. A flag is true exactly where
    such an order is accepted: Delta needs a relayer, OTC an RFQ contract. `explorerUrl` is null if none is
    set.
"""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ...config.errors import (
    AuthError,
    CambistError,
    ChainError,
    InternalError,
    MakerError,
    RequestError,
    ServiceUnavailable,
    StoreUnavailable,
)
from .maker_messages import ErrorBody
from .query import query_decoder
from .vocabulary import ChainId, Count, Name, TokenDecimals
from .wire import check_number

_AWAY = ServiceUnavailable()
_FAULT = InternalError()


# --- Chains, tokens, contracts ------------------------------------------------------------------------


class ChainEntry(Struct, frozen=True, rename="camel"):
    """A chain and the roles served on it, item of GET /chains (choices.md#requests-and-errors).

    Attributes:
        wallet_url: node whose own accounts sign for pages in browsers; on development chains only.
        explorer_url: URL of the chain's block explorer, to which `/tx/HASH`, `/address/ADDRESS` and
            `/block/NUMBER` are appended; null without an explorer.
    """

    chain_id: ChainId
    name: str
    delta: bool
    market: bool
    rfq: bool
    wallet_url: str | UnsetType = UNSET
    explorer_url: str | None = None


ChainList = tuple[ChainEntry, ...]  # GET /chains


# --- History of prices --------------------------------------------------------------------------------

HISTORY_STEPS_S = (15, 60, 300, 900, 3_600)
"""Seconds of a point in GET /prices/history."""

PricePoint = tuple[int, str, str, str, str]
"""Start of a step, Unix seconds; its first, highest, lowest and last price as decimal texts."""


class PriceHistoryQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /prices/history.

    Attributes:
        base, quote: addresses or symbols of listed tokens.
        span: seconds, up to now, that the answer covers.
        step: seconds of a point, one of HISTORY_STEPS_S; None for the least that makes few enough points.
    """

    chain_id: ChainId
    base: str
    quote: str
    span: Annotated[int, Meta(ge=HISTORY_STEPS_S[0], le=86_400)]
    step: Annotated[int, Meta(ge=HISTORY_STEPS_S[0], le=HISTORY_STEPS_S[-1])] | None = None


class PriceHistoryAnswer(Struct, frozen=True, rename="camel", kw_only=True):
    """Answer of GET /prices/history: prices of one `base` token in `quote` tokens.

    Attributes:
        step: seconds of a point.
        points: points by rising time; a step without a price has none.
    """

    chain_id: ChainId
    base: str
    quote: str
    step: Count
    points: tuple[PricePoint, ...]


DepthLevel = tuple[str, str]
"""A size of the base token, and the amount of the quote token for it; raw units."""


class PriceDepthQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /prices/depth: addresses or symbols of two listed tokens of a chain."""

    chain_id: ChainId
    base: str
    quote: str


class PriceDepthAnswer(Struct, frozen=True, rename="camel", kw_only=True):
    """Answer of GET /prices/depth: what sizes of `base` cost in `quote`, the least size first.

    Attributes:
        unit: the least size, raw units of `base`.
        bids, asks: levels of selling, and of buying, `base`; a side ends at the first size without a route.
    """

    chain_id: ChainId
    base: str
    quote: str
    unit: str
    bids: tuple[DepthLevel, ...]
    asks: tuple[DepthLevel, ...]


# --- Tokens -------------------------------------------------------------------------------------------


class TokenEntry(Struct, frozen=True):
    """A listed token, item of GET /tokens/{chainId} (interop.md 3)."""

    symbol: str
    address: str
    decimals: TokenDecimals
    network: ChainId


class TokenList(Struct, frozen=True):
    """Answer of GET /tokens/{chainId} (interop.md 3)."""

    tokens: tuple[TokenEntry, ...]


class TokenCategory(StrEnum):
    """Category of listed tokens, parameter of GET /fiat/tokens/{chainId} (interop.md 3)."""

    STABLECOIN = "stablecoin"  # counts as one US dollar
    NATIVE = "native"  # the chain's native token, and its wrapped form


class CategoryEntry(Struct, frozen=True):
    """A category of tokens, item of GET /fiat/tokens/categories (interop.md 3)."""

    id: TokenCategory
    name: str


class CategoryList(Struct, frozen=True):
    """Answer of GET /fiat/tokens/categories (interop.md 3)."""

    categories: tuple[CategoryEntry, ...]


class FiatTokensQuery(Struct, frozen=True):
    """Query of GET /fiat/tokens/{chainId} and /fiat/tokens/all (interop.md 3).

    Attributes:
        category: category of the listed tokens; None for all tokens.
    """

    category: TokenCategory | None = None


class FiatTokenEntry(Struct, frozen=True, kw_only=True):
    """A listed token, item of GET /fiat/tokens/{chainId}, as the newest public SDK reads it (interop.md 3).

    Attributes:
        name: name for people.
        logo: URL of a picture; absent if the settings have none.
        sources: names of the token lists that have the token; the venue has its own alone.
    """

    chain_id: ChainId = field(name="chainId")
    address: str
    name: str
    symbol: str
    decimals: TokenDecimals
    logo: str | UnsetType = field(name="logoURI", default=UNSET)
    sources: tuple[str, ...] = ()
    categories: tuple[TokenCategory, ...] = ()


class FiatTokenList(Struct, frozen=True):
    """Answer of GET /fiat/tokens/{chainId} and /fiat/tokens/all (interop.md 3)."""

    tokens: tuple[FiatTokenEntry, ...]


class UserToken(TokenEntry, frozen=True):
    """A user's balance and allowance of a token, item of GET /users/tokens/{chainId}/{user} (interop.md 3).

    Attributes:
        balance: raw units.
        allowance: raw units that the Router may take from the user.
    """

    balance: str
    allowance: str


class UserTokens(Struct, frozen=True):
    """Answer of GET /users/tokens/{chainId}/{user} (interop.md 3)."""

    tokens: tuple[UserToken, ...]


class OneUserToken(Struct, frozen=True):
    """Answer of GET /users/tokens/{chainId}/{user}/{token} (interop.md 3)."""

    token: UserToken


class PartnerFeeQuery(Struct, frozen=True):
    """Query of GET /prices/partnerfee/{chainId} (interop.md 3).

    A query without `partner` asks for the fee of an anonymous request.
    """

    partner: Name | None = None


class PartnerFee(Struct, frozen=True, rename="camel"):
    """Answer of GET /prices/partnerfee/{chainId} (interop.md 3). `partnerFee` is in percent."""

    partner_fee: Decimal
    partner_address: str
    take_surplus: bool

    def __post_init__(self) -> None:
        check_number("partnerFee", self.partner_fee)


class AdaptersQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /adapters/contracts and /adapters/contract-takers (interop.md 3)."""

    network: ChainId | None = None
    chain_id: ChainId | None = None
    version: Name | None = None


class AdaptersContracts(Struct, frozen=True):
    """Answer of GET /adapters/contracts (interop.md 3). `Executors` maps a name to an address."""

    router: str = field(name="AugustusSwapper")
    token_transfer_proxy: str = field(name="TokenTransferProxy")
    rfq: str = field(name="AugustusRFQ")
    delta: str = field(name="ParaswapDelta")
    executors: dict[str, str] = field(name="Executors")


ContractTakers = tuple[str, ...]  # GET /adapters/contract-takers


class PairScore(Struct, frozen=True, rename="camel"):
    """Record of a maker's last firm quotes of one pair, item of `pairs` in MakerScore.

    MakerScore lists only pairs that have a fault, a refusal or a cool-down.

    Attributes:
        tokens: addresses of the pair's tokens.
        score, quotes, reasons, block_until: as in MakerScore, for this pair alone.
    """

    tokens: tuple[str, str]
    score: int
    quotes: int
    reasons: dict[str, int]
    block_until: int | None


class MakerBound(Struct, frozen=True, rename="camel"):
    """Largest amount that the venue still requests from a maker after the maker refused a larger one.

    Attributes:
        src_token, dest_token: direction: tokens that the user gives and gets.
        amount: most raw units of the pair's base token in one quote.
        until: time at which the bound ends, Unix milliseconds.
    """

    src_token: str
    dest_token: str
    amount: str
    until: int


class MakerFault(Struct, frozen=True, rename="camel"):
    """A maker's faulty or refused firm quote.

    Attributes:
        at: time of the fault, Unix milliseconds.
        src_token, dest_token: tokens that the user gives and gets.
        detail: text with the expected and the received value.
    """

    at: int
    kind: str
    src_token: str
    dest_token: str
    detail: str


class MakerFaults(Struct, frozen=True, rename="camel"):
    """A maker's faults and refusals on one chain, the oldest first: the body posted to its `notify_url`."""

    maker: str
    network: int
    faults: tuple[MakerFault, ...]


class MakerScore(Struct, frozen=True, rename="camel", kw_only=True):
    """Record of a maker's last firm quotes, item of GET /makers/scores.

    Attributes:
        network: chain id.
        score: share of quotes without a fault, percent.
        quotes: number of quotes, refusals left out.
        reasons: kind of fault -> number of quotes; the key `refused` counts refusals.
        p50_ms, p99_ms: times within which half, and 99 of 100, of the requests for firm quotes since the
            venue's start were answered, milliseconds with one digit, estimated from a histogram; null without
            requests.
        block_until: end of the maker's cool-down, Unix milliseconds; null without a cool-down.
        block_reason: reason for the cool-down; empty without a cool-down.
        pairs: records of the pairs that have a fault, a refusal or a cool-down.
        bounds: largest amounts that the venue still requests, per direction of a pair.
        last_faults: the maker's latest faults; null for a caller that is neither the maker itself, nor an
            operator, nor on the venue's machine.
        refused: id of a pair whose data are refused -> reason; null as `last_faults`.
    """

    network: int
    maker: str
    score: int
    quotes: int
    reasons: dict[str, int]
    p50_ms: float | None = field(name="p50Ms")
    p99_ms: float | None = field(name="p99Ms")
    block_until: int | None
    block_reason: str
    pairs: tuple[PairScore, ...]
    bounds: tuple[MakerBound, ...]
    last_faults: tuple[MakerFault, ...] | None
    refused: dict[str, str] | None


MakerScores = tuple[MakerScore, ...]  # GET /makers/scores


class MakerBooksQuery(AdaptersQuery, frozen=True, rename="camel", kw_only=True):
    """Query of GET /makers/books.

    Attributes:
        maker_name: name of the only maker to list, with its pairs; None lists all makers, without pairs.
        pair: id of one of the maker's pairs, whose levels the answer is to contain; None for no levels.
    """

    maker_name: Name | None = None
    pair: Name | None = None


class ViewedPair(Struct, frozen=True, rename="camel", kw_only=True):
    """A pair of a maker as the venue sees it.

    Attributes:
        base, quote: addresses of the tokens; null while unknown.
        standing: `live`, or the reason why the venue does not route the pair.
        reason: sentence for people why the pair is not routed; empty for a live pair.
        confirmed: time of the last report of the prices, Unix milliseconds; null before the first.
        best_bid, best_ask: best prices, routed or not; null for an empty side.
        bids, asks: levels, (price, amount), best first, of the requested pair; null for any other pair.
    """

    pair: str
    base: str | None
    quote: str | None
    standing: str
    reason: str
    confirmed: int | None
    best_bid: str | None
    best_ask: str | None
    bids: tuple[tuple[str, str], ...] | None = None
    asks: tuple[tuple[str, str], ...] | None = None


class MakerBooks(Struct, frozen=True, rename="camel", kw_only=True):
    """A maker's books as the venue sees them, item of GET /makers/books.

    Attributes:
        network: chain id.
        withheld: reasons that keep all books of the maker out of routes; empty for none.
        updated: time of the maker's last report, Unix milliseconds; null before the first.
        standings: standing -> number of pairs.
        pairs: pairs of this maker; null if the query does not name this maker, and for a caller that is
            neither the maker itself, nor an operator, nor on the venue's machine.
    """

    network: int
    maker: str
    withheld: tuple[str, ...]
    updated: int | None
    standings: dict[str, int]
    pairs: tuple[ViewedPair, ...] | None


class DocumentMeta(Struct, frozen=True):
    """Name and version of a document under /resources, its member `_meta`."""

    name: str
    version: str


class ServedRoles(Struct, frozen=True):
    """Whether a chain serves delta, market and rfq, as in GET /chains (choices.md#requests-and-errors)."""

    delta: bool
    market: bool
    rfq: bool


class ChainContracts(Struct, frozen=True):
    """Deployed contracts and served order kinds of one chain, value of `chains` in contracts.json.

    See choices.md#requests-and-errors.
    """

    name: str
    router: str | None = field(name="augustusV6_2")
    delta: str | None
    rfq: str | None = field(name="augustusRFQ")
    executor: str | None
    fee_claimer: str | None = field(name="feeClaimer")
    served: ServedRoles | UnsetType = UNSET


class ContractsDocument(Struct, frozen=True):
    """Answer of GET /resources/contracts.json; the keys of `chains` are chain ids in decimal."""

    meta: DocumentMeta = field(name="_meta")
    chains: dict[str, ChainContracts]


# --- Errors -------------------------------------------------------------------------------------------


class ErrorRow(Struct, frozen=True):
    """Kind of error, item of `errors` in errors.json.

    Attributes:
        match: fixed beginning of the error text, by which a client recognizes the kind.
        docs: page that describes the errors.
    """

    endpoint: str
    status: int
    match: str
    cause: str
    fix: str
    docs: str


class ErrorsDocument(Struct, frozen=True):
    """Answer of GET /resources/errors.json, the error catalogue (choices.md#requests-and-errors)."""

    meta: DocumentMeta = field(name="_meta")
    errors: tuple[ErrorRow, ...]


class TradingError(Struct, frozen=True, rename="camel"):
    """Error body of the trading endpoints: one text under three keys, since clients differ."""

    error_type: str
    details: str
    description: str
    error: str
    request_id: str


class OtcError(Struct, frozen=True, rename="camel"):
    """Error body of the /ft endpoints (choices.md#requests-and-errors)."""

    error_type: str
    details: str
    request_id: str


def error_status(error: CambistError) -> int:
    """HTTP status of the response to `error`."""
    return _public(error)[0]


def trading_error_body(error: CambistError, request_id: str) -> TradingError:
    """Make the response body for `error` on a trading endpoint, without details of an internal fault."""
    _, error_type, text = _public(error)
    return TradingError(error_type, text, text, text, request_id)


def otc_error_body(error: CambistError, request_id: str) -> OtcError:
    """Make the response body for `error` on an /ft endpoint, without details of an internal fault."""
    _, error_type, text = _public(error)
    return OtcError(error_type, text, request_id)


def maker_error_body(error: CambistError) -> ErrorBody:
    """Make the response body for `error` on a maker's endpoints, without details of an internal fault."""
    return ErrorBody(_public(error)[2])


def _public(error: CambistError) -> tuple[int, str, str]:
    """Return HTTP status, errorType and text for a caller; an internal fault is shown without details."""
    if isinstance(error, RequestError | AuthError):
        return error.status, error.error_type, error.detail
    if isinstance(error, ChainError | StoreUnavailable | MakerError):
        return _AWAY.status, _AWAY.error_type, _AWAY.detail
    return _FAULT.status, _FAULT.error_type, _FAULT.detail


decode_partner_fee_query = query_decoder(PartnerFeeQuery)
decode_fiat_tokens_query = query_decoder(FiatTokensQuery)
decode_adapters_query = query_decoder(AdaptersQuery)
decode_price_history_query = query_decoder(PriceHistoryQuery)
decode_price_depth_query = query_decoder(PriceDepthQuery)
decode_maker_books_query = query_decoder(MakerBooksQuery)
