"""Messages of Delta prices and of the life cycle of Delta orders (spec 1.4 to 1.22, interop.md 2 and 3).

Request bodies are frozen and ignore unknown keys. Members that must not be re-written on their way (the route
of a build, the order of a submit) are kept as the received bytes, in a `msgspec.Raw`.

List parameters and lists in bodies keep their order; a repeated item is not an error.

Choice: `allowBridgeAndSwap` is true by default, `page` 1 and `limit` 100; a `limit` above 1000 is refused,
    not cut.
"""

from decimal import Decimal
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from ...config.limits import (
    BUILD_SLIPPAGE_BPS_DEFAULT,
    JSON_BYTES_MAX,
    ORDER_BODY_BYTES_MAX,
    ORDER_PAGE_LIMIT_DEFAULT,
)
from .query import query_decoder
from .vocabulary import (
    AnyInteger,
    BuildOrderType,
    ChainId,
    Count,
    ListedName,
    Name,
    OnChainOrderType,
    OrderStatus,
    OrderType,
    PageLimit,
    PageNumber,
    PartnerFeeBps,
    Side,
    SlippageBps,
    TokenDecimals,
    UnixSeconds,
)
from .wire import check_number, decoder

ZERO_ADDRESS_TEXT = "0x0000000000000000000000000000000000000000"


# --- Prices -------------------------------------------------------------------------------------------


class TokenReference(Struct, frozen=True, rename="camel"):
    """A token, by chain and address (spec 1.4.2 and 1.4.3)."""

    chain_id: ChainId
    address: str


class AmountEntry(Struct, frozen=True):
    """An amount of a token: raw units, and US dollars as a decimal string (spec 1.4.4 to 1.4.6)."""

    token: TokenReference
    amount: str
    amount_usd: str = field(name="amountUSD")


class Leg(Struct, frozen=True):
    """Part of a route on one chain, `origin` or `destination`: input and output (spec 1.7.1 and 1.7.2)."""

    input: AmountEntry
    output: AmountEntry


class BridgeParams(Struct, frozen=True, rename="camel"):
    """Parameters of a bridge, part of a signed order (spec 1.7.8 to 1.7.11). `scalingFactor` is an int8."""

    protocol_selector: str
    output_token: str
    scaling_factor: Annotated[int, Meta(ge=-128, le=127)]
    protocol_data: str


class Bridge(Struct, frozen=True, rename="camel"):
    """The bridge that a cross-chain route uses (spec 1.7.4 to 1.7.12)."""

    protocol: str
    estimated_time_ms: Count
    tags: tuple[str, ...]
    contract_params: BridgeParams


class Fees(Struct, frozen=True):
    """Gas and bridge fees of a route (spec 1.7.14 to 1.7.16)."""

    gas: AmountEntry
    bridge: tuple[AmountEntry, ...]


class Route(Struct, frozen=True):
    """Route of a Delta price (spec 1.7). Its chain ids show whether it crosses chains (spec 1.7.13)."""

    origin: Leg
    destination: Leg
    bridge: Bridge | None
    fees: Fees


class Partner(Struct, frozen=True, rename="camel"):
    """Partner of a Delta price and its fee (spec 1.6.6). `feePercent` is exact: 0.01 is 1 bps."""

    name: str
    fee_percent: Decimal

    def __post_init__(self) -> None:
        check_number("feePercent", self.fee_percent)


class DeltaBlock(Struct, frozen=True, rename="camel"):
    """Delta price without `hmac` (spec 1.6): `delta` of a quote, and the answer of GET /v2/delta/prices.

    `alternatives` holds complete routes for the same trade.
    """

    id: str
    side: Side
    input_token: TokenReference
    output_token: TokenReference
    route: Route
    partner: Partner
    spender: str
    alternatives: tuple[Route, ...] = ()


class QuoteParameters(Struct, frozen=True, rename="camel", kw_only=True):
    """Query parameters that GET /v2/quote and GET /v2/delta/prices share.

    Tokens are kept as sent: the native placeholder's spelling matters (choices.md#chains-and-tokens).
    """

    chain_id: ChainId
    src_token: str
    dest_token: str
    amount: str
    src_decimals: TokenDecimals
    dest_decimals: TokenDecimals
    side: Side = Side.SELL
    dest_chain_id: ChainId | None = None
    user_address: str | None = None
    beneficiary: str | None = None
    partner: Name | None = None
    partner_fee_bps: PartnerFeeBps | None = None
    max_impact: Decimal | None = None
    max_usd_impact: Decimal | None = field(name="maxUSDImpact", default=None)
    include_bridges: tuple[ListedName, ...] | None = None
    exclude_bridges: tuple[ListedName, ...] | None = None
    allow_bridge_and_swap: bool = True

    @property
    def is_crosschain(self) -> bool:
        """Whether the destination token is on another chain than the source token."""
        return self.dest_chain_id not in (None, self.chain_id)


class DeltaPricesQuery(QuoteParameters, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/delta/prices (interop.md 3)."""

    include_agents: tuple[ListedName, ...] | None = None
    exclude_agents: tuple[ListedName, ...] | None = None


# --- Build and submit ---------------------------------------------------------------------------------


class BuildBody(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Body of POST /v2/delta/orders/build (spec 1.16). `route` is kept byte for byte.

    Without `side`, the order is a SELL, unless `orderType` demands the other side (choices.md#delta-orders).
    """

    route: Raw
    owner: str
    deadline: UnixSeconds | None = None
    side: Side | UnsetType = UNSET
    beneficiary: str | None = None
    nonce: str | None = None
    permit: str | None = None
    slippage: SlippageBps = BUILD_SLIPPAGE_BPS_DEFAULT
    limit_amount: str | None = None
    metadata: str = "0x"
    partially_fillable: bool = False
    partner: Name | None = None
    partner_address: str = ZERO_ADDRESS_TEXT
    partner_fee_bps: PartnerFeeBps = 0
    partner_takes_surplus: bool = False
    cap_surplus: bool = True
    order_type: BuildOrderType = BuildOrderType.ORDER
    handler: str | None = None
    data: str | None = None
    strategy: str | None = None
    use_shares: bool = True
    interval: AnyInteger | None = None
    num_slices: AnyInteger | None = None
    total_src_amount: str | None = None
    total_dest_amount: str | None = None
    max_src_amount: str | None = None


class TypedDomain(Struct, frozen=True, rename="camel"):
    """EIP-712 domain of an order to sign, `toSign.domain` (spec 1.16.36)."""

    name: str
    version: str
    chain_id: ChainId
    verifying_contract: str


class TypedMember(Struct, frozen=True):
    """Name and type of a member of an EIP-712 struct type, in `toSign.types`."""

    name: str
    type: str


class ToSign(Struct, frozen=True):
    """Typed data that the owner signs (spec 1.16.35). The client submits `value` verbatim."""

    domain: TypedDomain
    types: dict[str, tuple[TypedMember, ...]]
    value: Raw


class BuildResponse(Struct, frozen=True, rename="camel"):
    """Answer of POST /v2/delta/orders/build (spec 1.16.35 and 1.16.37)."""

    to_sign: ToSign
    order_hash: str


class SubmitBody(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Body of POST /v2/delta/orders: a signed order (spec 1.17).

    Attributes:
        order: the signed struct, in the JSON bytes that the client sent.
        partner: name of the partner whom the venue records for the order (choices.md#fees-and-partners).
        on_chain_order_type: type of the signed struct (choices.md#delta-orders).
    """

    chain_id: ChainId
    order: Raw
    signature: str
    partner: Name | None = None
    type: OrderType = OrderType.MARKET
    on_chain_order_type: OnChainOrderType | None = None
    referrer_address: str | None = None
    partially_fillable: bool = False
    include_agents: tuple[ListedName, ...] | None = None
    exclude_agents: tuple[ListedName, ...] | None = None


class CancelBody(Struct, frozen=True, rename="camel"):
    """Body of POST /v2/delta/orders/cancel, signed by the owner (spec 1.18.1 and 1.18.2)."""

    order_ids: tuple[Name, ...]
    signature: str


class CancelResponse(Struct, frozen=True):
    """Answer of POST /v2/delta/orders/cancel (interop.md 3)."""

    success: bool
    cancelled: tuple[str, ...]


class CancellationBuildBody(Struct, frozen=True, rename="camel"):
    """Body of POST /v2/delta/orders/build/cancellation (interop.md 3)."""

    order_ids: tuple[Name, ...]


class CancellationToSign(Struct, frozen=True):
    """Typed data that an owner signs to cancel orders, `toSign` of the answer (interop.md 2 and 3)."""

    domain: TypedDomain
    types: dict[str, tuple[TypedMember, ...]]
    value: CancellationBuildBody


class CancellationBuildResponse(Struct, frozen=True, rename="camel"):
    """Answer of POST /v2/delta/orders/build/cancellation (interop.md 3)."""

    to_sign: CancellationToSign
    hash: str


# --- Records ------------------------------------------------------------------------------------------


class OrderInput(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Source token and its amounts in an order record, `input` (spec 1.10.9 and 1.10.10).

    A SELL has `amount`. A BUY has `expectedAmount`, `executedAmount` (null until known) and `maxAmount`
    (interop.md 2).
    """

    chain_id: ChainId
    token: str
    amount: str | UnsetType = UNSET
    expected_amount: str | UnsetType | None = UNSET
    executed_amount: str | UnsetType | None = UNSET
    max_amount: str | UnsetType = UNSET


class OrderOutput(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Destination token and its amounts in an order record, `output` (spec 1.10.11 and 1.10.12).

    A SELL has `expectedAmount`, `executedAmount` (null until known) and `minAmount` (interop.md 2). A BUY has
    `amount`.
    """

    chain_id: ChainId
    token: str
    expected_amount: str | UnsetType | None = UNSET
    executed_amount: str | UnsetType | None = UNSET
    amount: str | UnsetType = UNSET
    min_amount: str | UnsetType = UNSET


class OrderTransaction(Struct, frozen=True, rename="camel"):
    """A settlement transaction of an order (spec 1.10.18 to 1.10.24). `filledPercent` is 0 to 100."""

    origin_tx: str
    destination_tx: str | None
    filled_percent: Decimal
    spent_amount: str | None
    received_amount: str | None

    def __post_init__(self) -> None:
        check_number("filledPercent", self.filled_percent)


class Refund(Struct, frozen=True, rename="camel"):
    """A refund to the user, item of `refunds` (spec 1.10.25 to 1.10.27)."""

    tx: str
    chain_id: ChainId
    token: str
    amount: str


class OrderRecord(Struct, frozen=True, rename="camel", kw_only=True):
    """Order record (spec 1.10): the answer to the submission and to each read of a Delta order."""

    id: str
    status: OrderStatus
    side: Side
    type: OrderType
    on_chain_order_type: OnChainOrderType
    input: OrderInput
    output: OrderOutput
    owner: str
    beneficiary: str
    order_hash: str
    partner: str
    order: Raw
    transactions: tuple[OrderTransaction, ...]
    refunds: tuple[Refund, ...]
    created_at: str
    updated_at: str
    expires_at: str


class OrderPage(Struct, frozen=True, rename="camel"):
    """Answer of GET /v2/delta/orders (spec 1.19.8)."""

    data: tuple[OrderRecord, ...]
    total: Count
    page: PageNumber
    limit: PageLimit
    has_more: bool


class OrdersQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/delta/orders (spec 1.19, interop.md 3).

    `chainId` and `status` are comma-separated lists. `ids` selects up to 100 orders by their ids.
    """

    ids: tuple[Name, ...] | None = None
    user_address: str | None = None
    chain_id: tuple[ChainId, ...] | None = None
    type: OrderType | None = None
    on_chain_order_type: OnChainOrderType | None = None
    status: tuple[OrderStatus, ...] | None = None
    page: PageNumber = 1
    limit: PageLimit = ORDER_PAGE_LIMIT_DEFAULT


# --- The other Delta endpoints --------------------------------------------------------------------------


class TokenSupportQuery(Struct, frozen=True, rename="camel"):
    """Query of GET /v2/delta/prices/is-token-supported (interop.md 3)."""

    chain_id: ChainId
    token: str


class IsTokenSupported(Struct, frozen=True):
    """Answer of GET /v2/delta/prices/is-token-supported (interop.md 3)."""

    supported: bool


class BridgeRoutesQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/delta/prices/bridge-routes (interop.md 3)."""

    bridges: tuple[Name, ...] | None = None
    allow_bridge_and_swap: bool = True


class BridgeRoute(Struct, frozen=True, rename="camel"):
    """A pair of chains with the tokens that bridges carry from one to the other (interop.md 3).

    The answer of bridge-routes lists such pairs in `routes`.

    Attributes:
        tokens: addresses of the tokens on the destination chain.
    """

    src_chain_id: ChainId
    dest_chain_id: ChainId
    tokens: tuple[str, ...]


class BridgeRoutes(Struct, frozen=True):
    """Answer of GET /v2/delta/prices/bridge-routes (interop.md 3)."""

    routes: tuple[BridgeRoute, ...]


class BridgeProtocol(Struct, frozen=True, rename="camel"):
    """A bridge protocol, item of the answer of GET /v2/delta/prices/bridge-protocols (interop.md 3)."""

    protocol: str
    display_name: str
    icon: str


class BridgeProtocols(Struct, frozen=True, rename="camel"):
    """Answer of GET /v2/delta/prices/bridge-protocols (interop.md 3)."""

    bridge_protocols: tuple[BridgeProtocol, ...]


class Apr(Struct, frozen=True):
    """Annual return of a yield strategy, in percent, `apr` (interop.md 3, strategies)."""

    gross: Decimal
    net: Decimal

    def __post_init__(self) -> None:
        check_number("gross", self.gross)
        check_number("net", self.net)


class Strategy(Struct, frozen=True):
    """A yield strategy, item of `strategies` (interop.md 3, strategies)."""

    vault: str
    name: str
    apr: Apr | None


class StrategyToken(Struct, frozen=True):
    """An underlying token and its yield strategies (interop.md 3, strategies)."""

    address: str
    strategies: tuple[Strategy, ...]


Strategies = dict[str, StrategyToken]  # GET /v2/delta/prices/strategies/{chainId}, by underlying
AgentList = tuple[str, ...]  # GET /v2/delta/agents/list/{chainId}
FillableBalance = dict[str, str]  # GET /v2/delta/orders/{fillable,available}balance/..., token -> raw units

decode_delta_prices_query = query_decoder(DeltaPricesQuery)
decode_orders_query = query_decoder(OrdersQuery)
decode_token_support_query = query_decoder(TokenSupportQuery)
decode_bridge_routes_query = query_decoder(BridgeRoutesQuery)
decode_route = decoder(Route, bytes_max=JSON_BYTES_MAX)
decode_build_body = decoder(BuildBody, bytes_max=ORDER_BODY_BYTES_MAX, unique_keys=True, tolerant=True)
decode_submit_body = decoder(SubmitBody, bytes_max=ORDER_BODY_BYTES_MAX, unique_keys=True, tolerant=True)
decode_cancel_body = decoder(CancelBody, bytes_max=ORDER_BODY_BYTES_MAX, unique_keys=True)
decode_cancellation_build_body = decoder(
    CancellationBuildBody, bytes_max=ORDER_BODY_BYTES_MAX, unique_keys=True
)
