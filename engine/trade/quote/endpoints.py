"""GET /v2/quote and the Delta prices: from a query to an answer without an await.

    query -> chain -> tokens -> fee -> plan over live books --+--> Delta block; digest kept for the build
                                                              +--> Market route, sealed
    to another chain: lanes, with the fees that their feeds keep current -> a plan for each -> Delta block;
                      a lane of the source token itself needs no swap

Source: spec 1.12, 1.2, 1.22; interop.md 3; choices.md#chains-and-tokens, choices.md#quotes-and-routes.
Choice: `mode=MARKET` on a chain without Market is `No route`, and so is `mode=DELTA` on one without Delta;
    `mode=ALL` falls back to Market.
Choice: If both Delta and Market refuse, the error is Market's; it is Delta's on a chain without Market, and
    across chains.
Choice: `maxImpact` and `maxUSDImpact` apply to the Market route; a Delta price has no `maxImpactReached`.
Choice: GET /v2/delta/prices accepts names of agents, which do not change a price. It and GET /v2/quote accept
    names of bridges, which choose among the lanes of a quote across chains and change no other quote.
Choice: Market swaps stay on one chain: `mode=MARKET` with another `destChainId` is 400
    `No route (crosschain)`, and `mode=ALL` does not fall back to Market.
Choice: A quote across chains for which no lane has a price is refused with the reason of each lane.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import replace

from ....codecs.amounts import parse_positive_amount
from ....codecs.messages.delta_messages import (
    DeltaBlock,
    DeltaPricesQuery,
    IsTokenSupported,
    QuoteParameters,
    TokenSupportQuery,
    decode_delta_prices_query,
    decode_token_support_query,
)
from ....codecs.messages.market_messages import (
    FallbackReason,
    PriceRoute,
    QuoteQuery,
    QuoteResponse,
    decode_quote_query,
)
from ....codecs.messages.vocabulary import Mode, Side
from ....codecs.messages.wire import encode
from ....config.errors import (
    GasCostExceedsTradeAmount,
    InvalidToken,
    NoRoute,
    PricingError,
    RequestError,
    TokenNotSupported,
)
from ....config.limits import ARRIVAL_SWAP_GAS_USED, ARRIVAL_WRAP_GAS_USED, BRIDGE_ONLY_GAS_USED
from ....config.settings import Settings
from ....crypto.addresses import parse_address, to_checksum
from ....crypto.route_seal import RouteSeal
from ...host.server.routing import HttpCall, Reply
from ..api.routes import Endpoint
from ..routing.search.gas import swap_gas
from ..routing.search.plan import PlanTotal, SwapRequest
from ..served.bridge_lanes import BridgeLane, BridgeLanes
from ..served.delivery_gas import delivery_wei
from ..served.served_chain import ServedChain, ServedChains, delta_chain_at, served_chain_at
from .ask import FeeRules, ask_of_quote, with_partner
from .crosschain import (
    Passage,
    all_given,
    amount_to_plan,
    crosschain_block,
    current_fee,
    passage,
    swapped_there,
    wrapped_there,
)
from .delta_price import DeltaAsk, canonical_route, delta_block
from .issued import IssuedRoutes, quoted_as
from .market_price import market_route
from .no_route import no_route


class Quotes:
    """HTTP endpoints of quotes: GET /v2/quote and the Delta prices.

    Args:
        chains: served chains by chain id.
        settings: settings of the venue; their partners and fee tiers are used.
        seal: signs issued Market routes.
        bridges: lanes between the chains.
        issued: keeps digests of the Delta routes that quotes issue.
        delta_gas: units of gas that a Delta settlement uses besides its fills.
        random16: returns 16 random bytes for the id of a price.
        partner_of: returns the partner of a request's API key, used if the query names none; empty for none.

    Attributes:
        outcomes: number of answers of GET /v2/quote by (mode, outcome); the outcome is `delta`, `market` or
            an errorType.
    """

    def __init__(
        self,
        chains: ServedChains,
        settings: Settings,
        seal: RouteSeal,
        bridges: BridgeLanes,
        issued: IssuedRoutes,
        *,
        delta_gas: int,
        random16: Callable[[], bytes],
        partner_of: Callable[[HttpCall], str],
    ) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self._chains = chains
        self._fees = FeeRules(settings.partners, settings.tiers)
        self._seal = seal
        self._bridges = bridges
        self._issued = issued
        self._delta_gas = delta_gas
        self._random16 = random16
        self._partner_of = partner_of
        self._spenders = {
            chain_id: to_checksum(served.delta) for chain_id, served in chains.items() if served.delta
        }

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints GET /v2/quote and GET /v2/delta/prices with its sub-paths."""
        row = partial(Endpoint, method="GET", group="Quotes")
        return (
            row(
                path="/v2/quote",
                plain=self._quote,
                cost=1,
                summary="A price: Delta, or Market where Delta cannot price",
                query=QuoteQuery,
                answer=QuoteResponse,
            ),
            row(
                path="/v2/delta/prices",
                plain=self._delta_prices,
                summary="The Delta price alone",
                query=DeltaPricesQuery,
                answer=DeltaBlock,
            ),
            row(
                path="/v2/delta/prices/is-token-supported",
                plain=self._is_supported,
                summary="Whether a token can be traded with Delta orders",
                query=TokenSupportQuery,
                answer=IsTokenSupported,
            ),
        )

    def body(self, raw_query: bytes, now_ms: int, partner: str = "") -> bytes:
        """Compute the response body of GET /v2/quote.

        Args:
            raw_query: query after the `?`.
            now_ms: the time, Unix milliseconds.
            partner: partner to assume if the query names none; empty for no partner.

        Raises:
            RequestError: the request is wrong or no price can be given; the subclass has the error code.
        """
        query = with_partner(decode_quote_query(raw_query), partner)
        mode = query.mode.value
        try:
            response = self._response(query, now_ms)
        except RequestError as error:
            self.outcomes[mode, error.error_type] += 1
            raise
        self.outcomes[mode, "market" if response.delta is UNSET else "delta"] += 1
        return encode(response)

    def _response(self, query: QuoteQuery, now_ms: int) -> QuoteResponse:
        served = served_chain_at(self._chains, query.chain_id, "chainId")
        mode, has_market = query.mode, served.settings.market
        if query.dest_chain_id is not None and query.is_crosschain:
            has_market = False
        if mode is Mode.MARKET:
            if query.is_crosschain:
                raise NoRoute(
                    "Market swaps stay on one chain",
                    field="mode",
                    expected="ALL or DELTA",
                    message="No route (crosschain)",
                )
            if not has_market:
                raise NoRoute("Market is not served on this chain")
            return QuoteResponse(market=self._market(query, now_ms))
        try:
            block = self._delta(served, query, now_ms)
        except RequestError as error:
            if mode is Mode.DELTA or not has_market:
                raise
            reason = FallbackReason(error.error_type, error.detail)
            return QuoteResponse(market=self._market(query, now_ms), fallback_reason=reason)
        return QuoteResponse(delta=block, delta_address=block.spender)

    def _quote(self, call: HttpCall) -> Reply:
        return Reply(200, self.body(call.request.query or b"", call.now_ms, self._partner_of(call)))

    def _delta_prices(self, call: HttpCall) -> Reply:
        query = decode_delta_prices_query(call.request.query or b"")
        query = with_partner(query, self._partner_of(call))
        served = delta_chain_at(self._chains, query.chain_id, "chainId")
        return Reply(200, encode(self._delta(served, query, call.now_ms)))

    def _is_supported(self, call: HttpCall) -> Reply:
        query = decode_token_support_query(call.request.query or b"")
        tokens = delta_chain_at(self._chains, query.chain_id, "chainId").tokens
        try:
            tokens.find(query.token, "srcToken", None)
        except InvalidToken:
            parse_address(query.token, "token")  # a malformed address is an error, not an unsupported token
            return Reply(200, encode(IsTokenSupported(supported=False)))
        except TokenNotSupported:
            return Reply(200, encode(IsTokenSupported(supported=False)))
        return Reply(200, encode(IsTokenSupported(supported=True)))

    def _market(self, query: QuoteQuery, now_ms: int) -> PriceRoute:
        return market_route(self._chains, self._seal, self._fees, query, now_ms)

    def _delta(self, served: ServedChain, query: QuoteParameters, now_ms: int) -> DeltaBlock:
        if query.dest_chain_id not in (None, query.chain_id):
            return self._crosschain(served, query, now_ms)
        if served.no_delta:
            raise NoRoute(served.no_delta)
        block = delta_block(*self._swap(served, query, now_ms), served.usd, self._id())
        self._issued.add(quoted_as(block.side, canonical_route(block.route)), served.chain_id, now_ms)
        return block

    def _id(self) -> str:
        return str(UUID(bytes=self._random16(), version=4))

    def _swap(
        self, served: ServedChain, query: QuoteParameters, now_ms: int, *, bridge_only: bool = False
    ) -> tuple[DeltaAsk, PlanTotal]:
        """Plan the swap of a query on one chain; raise NoRoute if the books give none.

        Args:
            bridge_only: whether source and destination are one token, which a bridge takes as it is.
        """
        ask = ask_of_quote(served, query, self._fees, now_ms, bridge_only=bridge_only)
        plan = all_given(ask.wanted) if bridge_only else served.pathfinder.total(ask.among)
        if plan is None:
            raise no_route(served, ask.src, ask.dest, ask.among)
        delta = DeltaAsk(
            chain_id=served.chain_id,
            side=ask.wanted.side,
            src=ask.src,
            dest=ask.dest,
            native=served.tokens.wrapped_native,
            gas_wei=(BRIDGE_ONLY_GAS_USED if bridge_only else self._gas(plan)) * ask.wanted.gas_price_wei,
            fee=ask.fee,
            spender=self._spenders[served.chain_id],
        )
        return delta, plan

    def _crosschain(self, served: ServedChain, query: QuoteParameters, now_ms: int) -> DeltaBlock:
        """Price a query to another chain over each lane.

        Raises:
            NoRoute: no lane has a price; the error gives the reason of each lane.
        """
        amount = parse_positive_amount(query.amount)
        found: list[Passage] = []
        refused: list[str] = []
        lanes = self._bridges.wanted(query)
        for lane in lanes:
            try:
                found.append(self._passage(served, query, lane, amount, now_ms))
            except (NoRoute, PricingError, GasCostExceedsTradeAmount) as error:
                way = (
                    lane.name
                    if self._bridges.is_direct(lane, query)
                    else f"{lane.name} by {lane.origin.symbol}"
                )
                refused.append(f"{way}: {error.detail.removeprefix('No route: ')}")
        if not found:
            raise NoRoute("; ".join(refused), message="No route (crosschain)")
        there = self._chains[lanes[0].destination_chain]
        block = crosschain_block(found, served.usd, there.usd, self._id())
        for route in (block.route, *block.alternatives):
            self._issued.add(quoted_as(block.side, canonical_route(route)), served.chain_id, now_ms)
        return block

    def _passage(
        self, served: ServedChain, query: QuoteParameters, lane: BridgeLane, amount: int, now_ms: int
    ) -> Passage:
        fee = current_fee(lane, now_ms)
        on_origin = replace(
            query,
            dest_token=lane.origin.text,
            dest_decimals=lane.origin.decimals,
            amount=str(amount_to_plan(lane, fee, query.side, amount)),
        )
        src = served.tokens.find(query.src_token, "srcToken", None)
        bridge_only = src.routed == lane.origin.routed
        delta, plan = self._swap(served, on_origin, now_ms, bridge_only=bridge_only)
        there = self._chains[lane.destination_chain]
        dest = there.tokens.find(query.dest_token, "destToken", None)
        is_wrapped = lane.native is not None and dest is lane.destination
        is_swapped = not is_wrapped and dest is not lane.delivers
        after = ARRIVAL_WRAP_GAS_USED if is_wrapped else 0
        if is_swapped and bridge_only:  # the settlement pays for both chains' gas
            after = ARRIVAL_SWAP_GAS_USED
        there_wei = delivery_wei(lane.kind, served, there, after)
        delta = replace(delta, gas_wei=delta.gas_wei + there_wei)
        found = passage(delta, plan, lane, fee, served.usd, amount)
        if is_wrapped:
            return wrapped_there(found)
        return self._swapped_there(query, found, now_ms, paid=after) if is_swapped else found

    def _swapped_there(self, query: QuoteParameters, found: Passage, now_ms: int, paid: int) -> Passage:
        """Add the swap, on the destination, into the token that the query wants.

        Args:
            paid: units of gas of the swap that are in the price on the origin.
        """
        there = self._chains[found.lane.destination_chain]
        src, dest = found.lane.destination, there.tokens.find(query.dest_token, "destToken", None)
        gas_price_wei = there.gas.gas_price_wei
        users = [parse_address(text, "userAddress") for text in (query.user_address,) if text]
        wanted = SwapRequest(
            src.routed,
            dest.routed,
            found.arriving,
            Side.SELL,
            without=there.barred(*users, now_ms=now_ms),
            gas_price_wei=gas_price_wei,
        )
        plan = there.pathfinder.total(wanted)
        if plan is None:
            raise no_route(there, src, dest, wanted)
        # The venue judges an order's worth by the gas of one fill (`gas_after`); a longer route takes more.
        gas_wei = (ARRIVAL_SWAP_GAS_USED - paid + plan.gas - swap_gas(Side.SELL, 0, 1)) * gas_price_wei
        return swapped_there(found, dest, plan, gas_wei, there.tokens.wrapped_native, there.usd)

    def _gas(self, plan: PlanTotal) -> int:
        """Estimate the gas units of a Delta settlement: the route's fills and hops, plus `delta_gas`."""
        return plan.gas - swap_gas(plan.side, 0, 0) + self._delta_gas
