"""Parses requests for a price, Market or Delta. Pure; the caller passes the time.

GET /prices, GET /swap, GET /v2/quote and GET /v2/delta/prices become a `MarketAsk`, which is priced on the
live books of a chain.

Source: spec 1.13, 1.12; interop.md 3; choices.md#chains-and-tokens, choices.md#quotes-and-routes.
Choice: Decimals may be absent, since those of listed tokens are known.
Choice: A token for itself, and the native token for its wrapped form, is `No route`.
Choice: includeDEXS and excludeDEXS name makers exactly, case included; excludeRFQ leaves no source. Unknown
    names are ignored, but includeDEXS without any maker's name is `No route` with the known names.
Choice: Contract methods are the Router's functions, also under the names swapExactAmountIn and
    swapExactAmountOut, and swapOnAugustusRFQTryBatchFill for either.
Choice: excludeContractMethodsWithoutFeeModel and an exclusion of swapOnAugustusRFQTryBatchFill exclude
    nothing: both functions of the Router take a fee, and no swap calls swapOnAugustusRFQTryBatchFill.
Choice: `route` names all tokens of the only permitted path, both ends included, each at most once; the native
    token equals its wrapped form.
Choice: `receiver` is checked and changes no price; makers that have blacklisted `userAddress` or `txOrigin`
    are left out.
"""

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from ....codecs.amounts import parse_positive_amount
from ....codecs.messages.delta_messages import BuildBody, DeltaPricesQuery, QuoteParameters
from ....codecs.messages.market_messages import PricesQuery, QuoteQuery, SwapQuery, TransactionBody
from ....codecs.messages.vocabulary import MarketVersion, Side
from ....config.errors import InvalidInput, InvalidToken, NoRoute, TokenNotSupported
from ....config.limits import BPS_ONE, MAX_IMPACT_PERCENT_DEFAULT, ROUTE_TOKENS_MAX
from ....config.sections.partners import RegisteredPartner, ResolvedFee, Tier, resolve_fee
from ....crypto.addresses import parse_address
from ..routing.search.plan import SwapRequest, Taxes
from ..routing.tokens import ListedToken, TokenTable
from .price_route import METHODS

if TYPE_CHECKING:
    from ..served.served_chain import ServedChain

_METHODS_ELSEWHERE = {METHODS[Side.SELL]: "swapExactAmountIn", METHODS[Side.BUY]: "swapExactAmountOut"}
_RFQ_METHOD = "swapOnAugustusRFQTryBatchFill"

Q = TypeVar("Q", QuoteQuery, DeltaPricesQuery, PricesQuery, SwapQuery, TransactionBody, BuildBody)


class FeeRules(Struct, frozen=True):
    """Configured partners and fee tiers, which bound the partner fees that requests may ask for."""

    partners: Mapping[str, RegisteredPartner]
    tiers: Mapping[str, Tier]


class ImpactBounds(Struct, frozen=True):
    """Bounds on price impact (value lost in a swap), above which a route is marked `maxImpactReached`.

    Attributes:
        percent_max: largest impact, percent of the source amount's value.
        usd_max: largest loss of value between source and destination, US dollars; None for no such bound.
        ignores_unpriced: whether an impact that is unknown for lack of dollar prices counts as within the
            bounds.
    """

    percent_max: Decimal
    usd_max: Decimal | None = None
    ignores_unpriced: bool = False


class MarketAsk(Struct, frozen=True):
    """A parsed request for a price, Market or Delta.

    Attributes:
        wanted: the request's terms for the pathfinder; a Market route carries them in its `hmac`, so that
            they are known when a client sends the route back.
        barred: makers that have blacklisted the user or that the operator excludes. A Market route does not
            carry these names: the venue reads them anew when a client sends the route back.
        has_others: whether the request also asks for the best route of each maker alone.
    """

    src: ListedToken
    dest: ListedToken
    wanted: SwapRequest
    fee: ResolvedFee
    version: MarketVersion
    impact: ImpactBounds
    barred: frozenset[str]
    has_others: bool = False

    @property
    def among(self) -> SwapRequest:
        """Request to the pathfinder, in which the makers of `barred` are excluded, too."""
        if not self.barred:
            return self.wanted
        return msgspec.structs.replace(self.wanted, without=self.wanted.without | self.barred)


def with_partner(query: Q, partner: str) -> Q:
    """Return a request's query or body, with `partner` filled in if the request names no partner."""
    return msgspec.structs.replace(query, partner=partner) if partner and query.partner is None else query


def ask_of_prices(
    served: "ServedChain",
    query: PricesQuery,
    fees: FeeRules,
    now_ms: int,
    *,
    tx_origin: str | None = None,
) -> MarketAsk:
    """Parse a GET /prices or GET /swap query into a request for a Market quote.

    Args:
        tx_origin: the member `txOrigin` (sender of the transaction), which only GET /swap has.

    Raises:
        InvalidInput, InvalidToken, TokenNotSupported, NoRoute, PartnerNotAllowed: the query is refused, as
            spec 1.25 says.
        ServiceUnavailable: the price of gas is unknown.
    """
    src, dest = ends_of(
        served.tokens, query.src_token, query.dest_token, (query.src_decimals, query.dest_decimals)
    )
    amount = parse_positive_amount(query.amount)
    route = _route_of(served.tokens, query.route, src, dest) if query.route else ()
    if query.receiver is not None:
        parse_address(query.receiver, "receiver")
    users = _addresses({"userAddress": query.user_address or None, "txOrigin": tx_origin})
    _check_sources(query)
    _check_makers(query, served.feeds)
    wanted = SwapRequest(
        src_token=src.routed,
        dest_token=dest.routed,
        amount=amount,
        side=query.side,
        only=None if query.include_dexs is None else frozenset(query.include_dexs),
        without=frozenset(query.exclude_dexs or ()),
        route=route,
        taxes=_taxes_of(query),
        gas_price_wei=served.gas.gas_price_wei,
    )
    return MarketAsk(
        src=src,
        dest=dest,
        wanted=wanted,
        fee=resolve_fee(query.partner, query.partner_fee_bps, fees.partners, fees.tiers),
        version=query.version,
        impact=ImpactBounds(_percent_max(query.max_impact), None, query.ignore_bad_usd_price),
        barred=served.barred(*users, now_ms=now_ms),
        has_others=query.other_exchange_prices,
    )


def ask_of_quote(
    served: "ServedChain",
    query: QuoteParameters,
    fees: FeeRules,
    now_ms: int,
    *,
    bridge_only: bool = False,
) -> MarketAsk:
    """Parse a query of GET /v2/quote or GET /v2/delta/prices into a request for a price, Market or Delta.

    A Market route has version 6.2 (choices.md#quotes-and-routes).

    Args:
        bridge_only: whether source and destination are one token, which a bridge takes as it is.

    Raises:
        InvalidInput, InvalidToken, TokenNotSupported, NoRoute, PartnerNotAllowed: the query is refused, as
            spec 1.25 says.
        ServiceUnavailable: the price of gas is unknown.
    """
    decimals = query.src_decimals, query.dest_decimals
    src, dest = ends_of(served.tokens, query.src_token, query.dest_token, decimals, may_be_one=bridge_only)
    amount = parse_positive_amount(query.amount)
    users = _addresses({"userAddress": query.user_address})
    if query.beneficiary is not None:
        parse_address(query.beneficiary, "beneficiary")
    return MarketAsk(
        src=src,
        dest=dest,
        wanted=SwapRequest(
            src_token=src.routed,
            dest_token=dest.routed,
            amount=amount,
            side=query.side,
            gas_price_wei=served.gas.gas_price_wei,
        ),
        fee=resolve_fee(query.partner, query.partner_fee_bps, fees.partners, fees.tiers),
        version=MarketVersion.V6_2,
        impact=ImpactBounds(_percent_max(query.max_impact), query.max_usd_impact),
        barred=served.barred(*users, now_ms=now_ms),
    )


def _percent_max(requested: Decimal | None) -> Decimal:
    return Decimal(MAX_IMPACT_PERCENT_DEFAULT) if requested is None else requested


def ends_of(
    tokens: TokenTable,
    src: str,
    dest: str,
    decimals: tuple[int | None, int | None],
    *,
    may_be_one: bool = False,
) -> tuple[ListedToken, ListedToken]:
    """Look up the source and destination token of a swap.

    Args:
        decimals: decimals of the two tokens as stated in the request; None if not stated.
        may_be_one: whether source and destination may be the same token.

    Raises:
        InvalidToken, TokenNotSupported: a token is invalid or not listed.
        NoRoute: the stated decimals are wrong, or source and destination are the same token.
    """
    src_token = tokens.find(src, "srcToken", decimals[0])
    dest_token = tokens.find(dest, "destToken", decimals[1])
    if src_token.routed == dest_token.routed and not may_be_one:
        raise NoRoute(field="destToken", expected="another token than srcToken", got=dest)
    return src_token, dest_token


def _route_of(tokens: TokenTable, text: str, src: ListedToken, dest: ListedToken) -> tuple[bytes, ...]:
    """Parse a query's `route`, the only permitted path, into ERC-20 addresses of 20 bytes.

    Args:
        text: tokens of the path, dash-separated.
    """
    names = text.split("-")
    if not 2 <= len(names) <= ROUTE_TOKENS_MAX:
        raise InvalidInput(
            field="route", expected=f"2 to {ROUTE_TOKENS_MAX} tokens, dash-separated", got=text
        )
    route = []
    for name in names:
        try:
            route.append(tokens.find(name, "srcToken", None).routed)
        except InvalidToken:
            raise InvalidInput(field="route", expected="token addresses or symbols", got=name) from None
        except TokenNotSupported:
            raise TokenNotSupported(field="route", expected="tokens of GET /tokens", got=name) from None
    if (route[0], route[-1]) != (src.routed, dest.routed):
        raise InvalidInput(field="route", expected="a path from srcToken to destToken", got=text)
    if len(set(route)) < len(route):
        raise InvalidInput(field="route", expected="each token once", got=text)
    return tuple(route)


def _taxes_of(query: PricesQuery) -> Taxes:
    taxes = {
        "srcTokenTransferFee": query.src_token_transfer_fee,
        "destTokenTransferFee": query.dest_token_transfer_fee,
        "srcTokenDexTransferFee": query.src_token_dex_transfer_fee,
        "destTokenDexTransferFee": query.dest_token_dex_transfer_fee,
    }
    for field, bps in taxes.items():
        if bps == BPS_ONE:
            raise NoRoute("the receipt would be 0", field=field)
    return Taxes(*taxes.values())


def _addresses(named: Mapping[str, str | None]) -> Iterable[bytes]:
    return [parse_address(text, field) for field, text in named.items() if text is not None]


def _check_sources(query: PricesQuery) -> None:
    """Refuse a request that excludes all RFQ makers, or the Router's function for the swap's side
    (choices.md#quotes-and-routes).
    """
    if query.exclude_rfq:
        raise NoRoute("all sources here are RFQ", field="excludeRFQ")
    method = METHODS[Side(query.side)]
    include, exclude = query.include_contract_methods, query.exclude_contract_methods or ()
    if include is not None and not {method, _METHODS_ELSEWHERE[method], _RFQ_METHOD} & {*include}:
        raise NoRoute(
            field="includeContractMethods",
            expected=f"{method}, {_METHODS_ELSEWHERE[method]} or {_RFQ_METHOD}",
            got=",".join(include),
        )
    for name in (method, _METHODS_ELSEWHERE[method]):
        if name in exclude:
            raise NoRoute(field="excludeContractMethods", expected=f"a list without {name}")


def _check_makers(query: PricesQuery, makers: Collection[str]) -> None:
    """Refuse a request whose `includeDEXS` names none of the chain's makers.

    Unknown names beside a maker's name are ignored.
    """
    named = query.include_dexs
    if named is not None and not {*makers}.intersection(named):
        raise NoRoute(
            field="includeDEXS",
            expected=f"a name of GET /adapters/list ({', '.join(sorted(makers)) or 'none'})",
            got=",".join(named),
        )
