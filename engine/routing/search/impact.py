"""How much worse than the mid price a plan is, in percent. Pure.

    (USD value of what is given - USD value of what is received) / USD value of what is given x 100

Both values are by mid prices of live books, so what remains is the spread, the depth that the amount takes,
and taxes; gas and fees are not in it. Below zero where a plan beats the mid prices.

Source: spec 1.13.19, 1.13.26, 1.26.8.
Choice: `maxImpact` replaces the ceiling of 15 % and never makes an error: a route says `maxImpactReached`. A
    missing price in US dollars counts as reached unless `ignoreBadUsdPrice`.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal

from ....feeds.books.usd_prices import UsdPrices
from .plan import RoutePlan

_PERCENT = Context(prec=28, rounding=ROUND_HALF_EVEN)


def impact(plan: RoutePlan, usd: UsdPrices) -> Decimal | None:
    """Percent; None where a price in dollars is missing, or what is given is worth none."""
    hops = plan.paths[0].hops
    given = usd.value(hops[0].src_token, plan.src_amount)
    received = usd.value(hops[-1].dest_token, plan.dest_amount)
    if not given or received is None:
        return None
    return _PERCENT.divide(_PERCENT.multiply(_PERCENT.subtract(given, received), Decimal(100)), given)


def max_impact_reached(
    impact_percent: Decimal | None, max_percent: Decimal, *, ignores_bad_price: bool
) -> bool:
    """Whether a route is marked `maxImpactReached`: above the ceiling, or unknown unless that is ignored."""
    if impact_percent is None:
        return not ignores_bad_price
    return impact_percent > max_percent
