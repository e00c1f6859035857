"""Messages of quotes and Market swaps (spec 1.5, 1.8, 1.9, 1.12 to 1.14, interop.md 3).

Token texts are kept raw until the native-placeholder check (choices.md#chains-and-tokens); amounts are
strings of raw units. Percentages are JSON numbers and exact: `Decimal` in Python, the same digits on the
wire.

Choice: In request bodies null counts as absent where the specification gives no default, and is refused where
    it gives one.
Choice: A transfer tax (`srcTokenTransferFee` and the like) is an integer from 0 to 10000.
Choice: `chainId` and `network` are synonyms; unequal values are refused.
Choice: `others` is an object keyed by maker, with each maker's best route alone.
"""

from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from ...config.errors import InvalidInput
from ...config.limits import (
    BPS_ONE,
    JSON_BYTES_MAX,
    NETWORK_DEFAULT,
    ORDER_BODY_BYTES_MAX,
    VENUE_SWAP_ORDERS_MAX,
)
from .delta_messages import DeltaBlock, QuoteParameters
from .dialects import NumeralText
from .otc_messages import OtcOrderBody
from .query import query_decoder
from .vocabulary import (
    ChainId,
    Count,
    MarketVersion,
    Mode,
    Name,
    PartnerFeeBps,
    Side,
    SlippageBps,
    TokenDecimals,
    UnixSeconds,
)
from .wire import check_number, decoder

TaxBps = Annotated[int, Meta(ge=0, le=BPS_ONE)]
Names = tuple[Name, ...]


# --- Quotes -------------------------------------------------------------------------------------------


class QuoteQuery(QuoteParameters, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/quote (spec 1.12)."""

    mode: Mode = Mode.ALL


class SwapExchange(Struct, frozen=True, rename="camel"):
    """Part of a hop that one maker fills, `bestRoute[].swaps[].swapExchanges[]` (interop.md 3).

    The value of `exchange` alone determines the form of `data`.

    Attributes:
        src_amount: raw units of the hop's source token that the maker gets.
        dest_amount: raw units of the hop's destination token that the maker pays.
        percent: share of the hop's amount, percent.
    """

    exchange: str
    src_amount: str
    dest_amount: str
    percent: Decimal
    data: dict[str, Any]

    def __post_init__(self) -> None:
        check_number("percent", self.percent)


class Swap(Struct, frozen=True, rename="camel"):
    """Hop of a path, `bestRoute[].swaps[]` (interop.md 3)."""

    src_token: str
    src_decimals: TokenDecimals
    dest_token: str
    dest_decimals: TokenDecimals
    swap_exchanges: tuple[SwapExchange, ...]


class RoutePart(Struct, frozen=True):
    """Path of a route, `bestRoute[]` (interop.md 3).

    Attributes:
        percent: share of the route's amount that takes this path, percent.
        swaps: hops of the path, in order.
    """

    percent: Decimal
    swaps: tuple[Swap, ...]

    def __post_init__(self) -> None:
        check_number("percent", self.percent)


class OtherRoute(Struct, frozen=True, rename="camel"):
    """Best route through one maker alone: a value of the object `others`, whose keys are names of makers."""

    src_amount: str
    dest_amount: str
    swaps: tuple[Swap, ...]


class RouteTerms(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Terms under which the venue computed a route; the seal of the route, `hmac`, contains the terms.

    A request for the transaction of the route therefore does not repeat the terms.

    Attributes:
        src_amount, dest_amount: raw units that the user gives and gets, before the partner's fee.
        gas_price_wei: price of a unit of gas, in wei.
        include: names of the only makers that the route may use; None allows all.
        exclude: names of makers that the route may not use.
        route: tokens of the only path that the caller allows; empty if the caller allows any path.
        taxes: basis points that tokens withhold from four transfers: source token from the user, destination
            token to the user, source token into the first hop, destination token out of the last hop.
        others: SHA-256 of the canonical `others`, hex; empty for a route without `others`.
    """

    src_amount: str
    dest_amount: str
    gas_price_wei: str
    include: Names | None = None
    exclude: Names = ()
    route: tuple[str, ...] = ()
    taxes: tuple[TaxBps, TaxBps, TaxBps, TaxBps] = (0, 0, 0, 0)
    others: str = ""


class PriceRoute(Struct, frozen=True, rename="camel", kw_only=True):
    """Market route, the member `priceRoute` or `market` of answers (spec 1.8, interop.md 3).

    `hmac` is UNSET only before the route is sealed.
    """

    block_number: Count
    network: ChainId
    src_token: str
    dest_token: str
    src_decimals: TokenDecimals
    dest_decimals: TokenDecimals
    src_amount: str
    dest_amount: str
    best_route: tuple[RoutePart, ...]
    gas_cost_usd: str = field(name="gasCostUSD")
    gas_cost: str
    version: str
    contract_address: str
    token_transfer_proxy: str
    contract_method: str
    partner_fee: Decimal
    src_usd: str = field(name="srcUSD")
    dest_usd: str = field(name="destUSD")
    partner: str
    max_impact_reached: bool
    hmac: str | UnsetType = UNSET
    side: Side
    others: dict[str, OtherRoute] | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_number("partnerFee", self.partner_fee)


class FallbackReason(Struct, frozen=True, rename="camel"):
    """The reason why a quote contains a Market route and no Delta price, `fallbackReason` (interop.md 3)."""

    error_type: str
    details: str


class QuoteResponse(Struct, frozen=True, rename="camel", kw_only=True):
    """Quote response (spec 1.5): either `delta` and `deltaAddress`, or `market`."""

    delta: DeltaBlock | UnsetType = UNSET
    delta_address: str | UnsetType = UNSET
    market: PriceRoute | UnsetType = UNSET
    fallback_reason: FallbackReason | UnsetType = UNSET


class PricesQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /prices (spec 1.13). The property `chain` gives the chain id.

    The first token of `route` stands for an absent `srcToken`, the last for an absent `destToken`.
    """

    src_token: str = ""
    dest_token: str = ""
    amount: str = ""
    src_decimals: TokenDecimals | None = None
    dest_decimals: TokenDecimals | None = None
    side: Side = Side.SELL
    network: ChainId | None = None
    chain_id: ChainId | None = None
    other_exchange_prices: bool = False
    include_dexs: Names | None = field(name="includeDEXS", default=None)
    exclude_dexs: Names | None = field(name="excludeDEXS", default=None)
    exclude_rfq: bool = field(name="excludeRFQ", default=False)
    include_contract_methods: Names | None = None
    exclude_contract_methods: Names | None = None
    user_address: str | None = None
    receiver: str | None = None
    route: str | None = None
    partner: Name | None = None
    partner_fee_bps: PartnerFeeBps | None = None
    max_impact: Decimal | None = None
    src_token_transfer_fee: TaxBps = 0
    dest_token_transfer_fee: TaxBps = 0
    src_token_dex_transfer_fee: TaxBps = 0
    dest_token_dex_transfer_fee: TaxBps = 0
    version: MarketVersion = MarketVersion.V5
    exclude_contract_methods_without_fee_model: bool = False
    ignore_bad_usd_price: bool = False

    def __post_init__(self) -> None:
        first, _, rest = (self.route or "").partition("-")
        last = rest.rpartition("-")[2]
        needed = (
            ("src_token", "srcToken", first),
            ("dest_token", "destToken", last),
            ("amount", "amount", ""),
        )
        for attribute, name, otherwise in needed:
            if not getattr(self, attribute):
                if not otherwise:
                    raise InvalidInput("missing", field=name)
                msgspec.structs.force_setattr(self, attribute, otherwise)
        if self.network is not None and self.chain_id is not None and self.network != self.chain_id:
            raise InvalidInput(
                field="chainId", expected=f"the same as network, {self.network}", got=self.chain_id
            )

    @property
    def chain(self) -> int:
        """Requested chain id: `network` or `chainId`, or the default (spec 1.13.8)."""
        return self.network or self.chain_id or NETWORK_DEFAULT


class PricesResponse(Struct, frozen=True, rename="camel"):
    """Answer of GET /prices (spec 1.13.1)."""

    price_route: PriceRoute


# --- Transactions -------------------------------------------------------------------------------------


class TransactionQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of POST /transactions/{chainId} (spec 1.14.3 to 1.14.9)."""

    gas_price: str | None = None
    ignore_checks: bool = False
    ignore_gas_estimate: bool = False
    only_params: bool = False
    eip1559: bool = False


class SwapOrder(OtcOrderBody, frozen=True, rename="camel", omit_defaults=True):
    """A posted OTC order that a Market swap fills, item of `orders` (choices.md#market-swaps).

    Attributes:
        taker_token_fill_amount: most raw units of the taker's asset to fill; absent for the whole order.
    """

    taker_token_fill_amount: str | None = None


SwapOrders = Annotated[tuple[SwapOrder, ...], Meta(min_length=1, max_length=VENUE_SWAP_ORDERS_MAX)]


class ConsentBody(Struct, frozen=True, rename="camel", kw_only=True):
    """The user's signed consent to a Market swap (`codecs.eip712_orders.swap_consent`).

    Attributes:
        src_amount: most raw units of the source token that the user gives.
        deadline: Unix seconds, at most a day ahead.
    """

    src_amount: str
    deadline: UnixSeconds
    signature: str


class TransactionBody(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Body of POST /transactions/{chainId} (spec 1.14.10 to 1.14.34); `orders` may replace `priceRoute`.

    `priceRoute` is kept byte for byte. `partnerFeeBps` is a string of digits or a number (spec 1.14.26).
    With `priceRoute`, the route determines the side; with `orders`, the member `side` does. With
    `consent`, the user's own share of makers' stock counts (choices.md#market-swaps).
    """

    price_route: Raw | UnsetType = UNSET
    orders: SwapOrders | None = None
    src_token: str
    dest_token: str
    user_address: str
    side: Side | None = None
    src_decimals: TokenDecimals | None = None
    dest_decimals: TokenDecimals | None = None
    src_amount: str | None = None
    dest_amount: str | None = None
    slippage: SlippageBps | None = None
    tx_origin: str | None = None
    receiver: str | None = None
    partner: Name | None = None
    partner_address: str | None = None
    partner_fee_bps: NumeralText | None = None
    permit: str | None = None
    deadline: UnixSeconds | None = None
    is_cap_surplus: bool = True
    take_surplus: bool = False
    is_surplus_to_user: bool = False
    is_direct_fee_transfer: bool = False
    consent: ConsentBody | None = None

    def __post_init__(self) -> None:
        if self.route is None and self.orders is None:
            raise InvalidInput("missing, and the body has no orders in its place", field="priceRoute")
        if self.route is not None and self.orders is not None:
            raise InvalidInput("the body has a priceRoute already", field="orders")

    @property
    def route(self) -> bytes | None:
        """JSON of `priceRoute`, or None if the member is absent or null."""
        raw = b"null" if isinstance(self.price_route, UnsetType) else bytes(self.price_route)
        return None if raw == b"null" else raw


class TransactionEnvelope(Struct, frozen=True, rename="camel", kw_only=True):
    """Unsigned transaction for the caller to sign and send (spec 1.9).

    The envelope has either `gasPrice` or both EIP-1559 fees. `gas` is absent if the request set
    `ignoreChecks` or `ignoreGasEstimate`.
    """

    from_address: str = field(name="from")
    to: str
    value: str
    data: str
    gas_price: str | UnsetType = UNSET
    max_fee_per_gas: str | UnsetType = UNSET
    max_priority_fee_per_gas: str | UnsetType = UNSET
    gas: str | UnsetType = UNSET
    chain_id: ChainId


class ContractParams(Struct, frozen=True):
    """Answer of POST /transactions with `onlyParams`: method, parameters and address of a contract call.

    See choices.md#market-swaps.
    """

    method: str
    params: tuple[Any, ...]
    contract: str


class SwapQuery(PricesQuery, frozen=True, rename="camel", kw_only=True):
    """Query of GET /swap: parameters of GET /prices and of POST /transactions; userAddress is required.

    Choice: `version` is 6.2 by default on GET /swap and 5 on GET /prices. Routes of both are alike, but POST
        /transactions refuses version 5 and names 6.2. The Market block of GET /v2/quote is 6.2.
    """

    user_address: str = ""
    version: MarketVersion = MarketVersion.V6_2
    slippage: SlippageBps | None = None
    tx_origin: str | None = None
    partner_address: str | None = None
    permit: str | None = None
    deadline: UnixSeconds | None = None
    is_cap_surplus: bool = True
    take_surplus: bool = False
    is_surplus_to_user: bool = False
    is_direct_fee_transfer: bool = False

    def __post_init__(self) -> None:
        PricesQuery.__post_init__(self)
        if not self.user_address:
            raise InvalidInput("missing", field="userAddress")


class SwapResponse(Struct, frozen=True, rename="camel"):
    """Answer of GET /swap (interop.md 3). The transaction envelope has no `gas`."""

    price_route: PriceRoute
    tx_params: TransactionEnvelope


decode_quote_query = query_decoder(QuoteQuery)
decode_prices_query = query_decoder(PricesQuery)
decode_swap_query = query_decoder(SwapQuery)
decode_transaction_query = query_decoder(TransactionQuery)
decode_price_route = decoder(PriceRoute, bytes_max=JSON_BYTES_MAX)
decode_route_terms = decoder(RouteTerms, bytes_max=JSON_BYTES_MAX)
decode_transaction_body = decoder(
    TransactionBody, bytes_max=ORDER_BODY_BYTES_MAX, unique_keys=True, tolerant=True
)
