"""Computes the Market price: the best route over the makers' live books. Pure; the caller passes the time.

The price impact of a plan is its distance from the mid price, in percent:

    (USD value given - USD value received) / USD value given x 100

Both values use mid prices of live books: the impact includes the spread, the depth that the amount takes, and
taxes, but neither gas nor fees. The impact is negative if a plan beats the mid prices.

Source: spec 1.13.19, 1.13.26, 1.26.8; choices.md#quotes-and-routes.
Choice: `maxImpact` replaces the ceiling of 15 % and never makes an error: a route says `maxImpactReached`. A
    missing price in US dollars counts as reached unless `ignoreBadUsdPrice`.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal

from ....codecs.messages.market_messages import PriceRoute, QuoteQuery
from ....crypto.route_seal import RouteSeal
from ....feeds.books.usd_prices import UsdPrices
from ..routing.search.plan import RoutePlan
from ..served.served_chain import ServedChain, ServedChains, market_chain_at
from .ask import FeeRules, ImpactBounds, MarketAsk, ask_of_quote
from .no_route import no_route
from .price_route import Offered, UnsealedRoute, price_route, sealed

_PERCENT = Context(prec=28, rounding=ROUND_HALF_EVEN)


def impact(plan: RoutePlan, usd: UsdPrices) -> Decimal | None:
    """Compute a plan's price impact, percent.

    Returns:
        None if a dollar value is unknown, or if the source amount is worth 0 dollars.
    """
    hops = plan.paths[0].hops
    given = usd.value(hops[0].src_token, plan.src_amount)
    received = usd.value(hops[-1].dest_token, plan.dest_amount)
    if not given or received is None:
        return None
    return _PERCENT.divide(_PERCENT.multiply(_PERCENT.subtract(given, received), Decimal(100)), given)


def max_impact_reached(
    impact_percent: Decimal | None, max_percent: Decimal, *, ignores_bad_price: bool
) -> bool:
    """Whether a route's impact is above `max_percent`, or unknown and `ignores_bad_price` is False."""
    if impact_percent is None:
        return not ignores_bad_price
    return impact_percent > max_percent


def market_route(
    chains: ServedChains, seal: RouteSeal, fees: FeeRules, query: QuoteQuery, now_ms: int
) -> PriceRoute:
    """Find the best Market route for the `market` block of an answer to GET /v2/quote.

    Raises:
        RequestError: the request is wrong or no price can be given; the subclass has the error code.
    """
    served = market_chain_at(chains, query.chain_id, "chainId")
    return sealed(seal, best_route(served, ask_of_quote(served, query, fees, now_ms)), now_ms)


def best_route(served: ServedChain, ask: MarketAsk) -> UnsealedRoute:
    """Find the best route for a Market quote over the makers' live books.

    Raises:
        NoRoute: the books give no route.
        ServiceUnavailable: the price of gas is unknown.
    """
    plan = served.pathfinder.find(ask.among)
    if plan is None:
        raise no_route(served, ask.src, ask.dest, ask.among)
    wrapped = served.tokens.wrapped_native
    src_usd = served.usd.value(ask.src.routed, plan.src_amount)
    dest_usd = served.usd.value(ask.dest.routed, plan.dest_amount)
    offered = Offered(
        chain_id=served.chain_id,
        block_number=served.gas.head.number,
        wanted=ask.wanted,  # not `among`: the barred makers are read anew when the route comes back
        src=ask.src,
        dest=ask.dest,
        tokens=served.tokens.by_address,
        router=served.router,
        fee=ask.fee,
        version=ask.version,
        src_usd=src_usd,
        dest_usd=dest_usd,
        gas_usd=served.usd.value(wrapped, plan.gas * ask.wanted.gas_price_wei) if wrapped else None,
        is_impact_reached=_is_reached(impact(plan, served.usd), src_usd, dest_usd, ask.impact),
        others=served.pathfinder.by_maker(ask.among) if ask.has_others else None,
    )
    return price_route(offered, plan)


def _is_reached(
    percent: Decimal | None, src_usd: Decimal | None, dest_usd: Decimal | None, bounds: ImpactBounds
) -> bool:
    if max_impact_reached(percent, bounds.percent_max, ignores_bad_price=bounds.ignores_unpriced):
        return True
    if bounds.usd_max is None or src_usd is None or dest_usd is None:
        return False
    return src_usd - dest_usd > bounds.usd_max
