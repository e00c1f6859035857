"""Chains, tokens, contracts, the error catalogue and the bodies of errors.

config.catalogue makes the resources under /resources; these types serve their readers.

Source: interop.md 3; choices.md#requests-and-errors, choices.md#firm-quotes. Spelling of keys is that of the
    clients.
Choice: An error body never repeats an internal text. A failed dependency is `Service unavailable` (503), a
    fault of the venue `Internal error` (500).
Choice: Error bodies of trading endpoints are `{errorType, details, description, error, requestId}` with one
    text under three keys, since clients differ. Bodies of /ft are `{errorType, details, requestId}`, those of
    makers `{error}`.
Choice: GET /chains lists `{chainId, name, delta, market, rfq}`. A flag is true exactly where such an order is
    accepted: Delta needs a relayer, OTC an RFQ contract.
"""

from decimal import Decimal

from msgspec import UNSET, Struct, UnsetType, field

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
from .vocabulary import ChainId, Name, TokenDecimals
from .wire import check_number

_AWAY = ServiceUnavailable()
_FAULT = InternalError()


# --- Chains, tokens, contracts ------------------------------------------------------------------------


class ChainEntry(Struct, frozen=True, rename="camel"):
    """choices.md#requests-and-errors, item of GET /chains: the roles served on the chain."""

    chain_id: ChainId
    name: str
    delta: bool
    market: bool
    rfq: bool


ChainList = tuple[ChainEntry, ...]  # GET /chains


class TokenEntry(Struct, frozen=True):
    """interop.md 3, item of GET /tokens/{chainId}."""

    symbol: str
    address: str
    decimals: TokenDecimals
    network: ChainId


class TokenList(Struct, frozen=True):
    """interop.md 3, GET /tokens/{chainId}."""

    tokens: tuple[TokenEntry, ...]


class UserToken(TokenEntry, frozen=True):
    """interop.md 3, item of GET /users/tokens/{chainId}/{user}.

    Attributes:
        balance: raw units.
        allowance: raw units that the Router may take from the user.
    """

    balance: str
    allowance: str


class UserTokens(Struct, frozen=True):
    """interop.md 3, GET /users/tokens/{chainId}/{user}."""

    tokens: tuple[UserToken, ...]


class OneUserToken(Struct, frozen=True):
    """interop.md 3, GET /users/tokens/{chainId}/{user}/{token}."""

    token: UserToken


class PartnerFeeQuery(Struct, frozen=True):
    """interop.md 3, GET /prices/partnerfee/{chainId}. Absent: the anonymous partner."""

    partner: Name | None = None


class PartnerFee(Struct, frozen=True, rename="camel"):
    """interop.md 3, GET /prices/partnerfee/{chainId}, response; `partnerFee` in percent."""

    partner_fee: Decimal
    partner_address: str
    take_surplus: bool

    def __post_init__(self) -> None:
        check_number("partnerFee", self.partner_fee)


class AdaptersQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """interop.md 3, GET /adapters/contracts and /adapters/contract-takers: `chainId` or `network`."""

    network: ChainId | None = None
    chain_id: ChainId | None = None
    version: Name | None = None


class AdaptersContracts(Struct, frozen=True):
    """interop.md 3, GET /adapters/contracts; `Executors` maps a name to an address."""

    router: str = field(name="AugustusSwapper")
    token_transfer_proxy: str = field(name="TokenTransferProxy")
    rfq: str = field(name="AugustusRFQ")
    delta: str = field(name="ParaswapDelta")
    executors: dict[str, str] = field(name="Executors")


ContractTakers = tuple[str, ...]  # GET /adapters/contract-takers


class PairScore(Struct, frozen=True, rename="camel"):
    """A pair of a maker with a fault among its last quotes, or at rest. See MakerScore."""

    tokens: tuple[str, str]
    score: int
    quotes: int
    reasons: dict[str, int]
    block_until: int | None


class MakerBound(Struct, frozen=True, rename="camel"):
    """The largest amount for which a maker is asked, after it refused a larger one.

    Attributes:
        amount: raw units of the pair's base token in one quote.
        until: Unix milliseconds.
    """

    src_token: str
    dest_token: str
    amount: str
    until: int


class MakerFault(Struct, frozen=True, rename="camel"):
    """A fault or refusal of a maker.

    Attributes:
        at: Unix milliseconds.
        src_token, dest_token: tokens that the user gives and gets.
        detail: the expected and the received value.
    """

    at: int
    kind: str
    src_token: str
    dest_token: str
    detail: str


class MakerFaults(Struct, frozen=True, rename="camel"):
    """Faults and refusals of a maker on one chain, the oldest first, as its `notify_url` receives them."""

    maker: str
    network: int
    faults: tuple[MakerFault, ...]


class MakerScore(Struct, frozen=True, rename="camel", kw_only=True):
    """GET /makers/scores, item: record of a maker's last firm quotes.

    Attributes:
        network: chain id.
        score: share of clean quotes, percent.
        quotes: number of quotes, refusals left out.
        reasons: kind of fault, or `refused` -> number.
        block_until: Unix milliseconds until which the maker is not asked; null if it is asked.
        block_reason: reason for the block; empty if it is asked.
        bounds: largest requested amounts, by direction.
        last_faults: the latest first, for the maker itself and on the venue's machine; null for other
            callers.
    """

    network: int
    maker: str
    score: int
    quotes: int
    reasons: dict[str, int]
    block_until: int | None
    block_reason: str
    pairs: tuple[PairScore, ...]
    bounds: tuple[MakerBound, ...]
    last_faults: tuple[MakerFault, ...] | None


MakerScores = tuple[MakerScore, ...]  # GET /makers/scores


class DocumentMeta(Struct, frozen=True):
    """`_meta` of the resources under /resources."""

    name: str
    version: str


class ServedRoles(Struct, frozen=True):
    """choices.md#requests-and-errors: the surfaces served on a chain, as in GET /chains."""

    delta: bool
    market: bool
    rfq: bool


class ChainContracts(Struct, frozen=True):
    """choices.md#requests-and-errors, contracts.json, value of `chains`: the deployed contracts and the
    served surfaces."""

    name: str
    router: str | None = field(name="augustusV6_2")
    delta: str | None
    rfq: str | None = field(name="augustusRFQ")
    executor: str | None
    fee_claimer: str | None = field(name="feeClaimer")
    served: ServedRoles | UnsetType = UNSET


class ContractsDocument(Struct, frozen=True):
    """choices.md#requests-and-errors, GET /resources/contracts.json; chains by chain id in decimal."""

    meta: DocumentMeta = field(name="_meta")
    chains: dict[str, ChainContracts]


# --- Errors -------------------------------------------------------------------------------------------


class ErrorRow(Struct, frozen=True):
    """choices.md#requests-and-errors, errors.json, item of `errors`. `match` is the fixed beginning of the
    error text."""

    endpoint: str
    status: int
    match: str
    cause: str
    fix: str
    docs: str


class ErrorsDocument(Struct, frozen=True):
    """choices.md#requests-and-errors, GET /resources/errors.json."""

    meta: DocumentMeta = field(name="_meta")
    errors: tuple[ErrorRow, ...]


class TradingError(Struct, frozen=True, rename="camel"):
    """choices.md#requests-and-errors, error body of the trading endpoints: one text under three keys, since
    clients differ."""

    error_type: str
    details: str
    description: str
    error: str
    request_id: str


class OtcError(Struct, frozen=True, rename="camel"):
    """choices.md#requests-and-errors, error body of the /ft endpoints."""

    error_type: str
    details: str
    request_id: str


def error_status(error: CambistError) -> int:
    """The HTTP status that answers `error`."""
    return _public(error)[0]


def trading_error_body(error: CambistError, request_id: str) -> TradingError:
    """The body that answers `error` on a trading endpoint. Reveals no detail of an internal fault."""
    _, error_type, text = _public(error)
    return TradingError(error_type, text, text, text, request_id)


def otc_error_body(error: CambistError, request_id: str) -> OtcError:
    """The body that answers `error` on an /ft endpoint. Reveals no detail of an internal fault."""
    _, error_type, text = _public(error)
    return OtcError(error_type, text, request_id)


def maker_error_body(error: CambistError) -> ErrorBody:
    """The body that answers `error` on a maker's endpoints. Reveals no detail of an internal fault."""
    return ErrorBody(_public(error)[2])


def _public(error: CambistError) -> tuple[int, str, str]:
    """Status, errorType and text for the other side."""
    if isinstance(error, RequestError | AuthError):
        return error.status, error.error_type, error.detail
    if isinstance(error, ChainError | StoreUnavailable | MakerError):
        return _AWAY.status, _AWAY.error_type, _AWAY.detail
    return _FAULT.status, _FAULT.error_type, _FAULT.detail


decode_partner_fee_query = query_decoder(PartnerFeeQuery)
decode_adapters_query = query_decoder(AdaptersQuery)
