"""Describes to the client why a swap has no route. Pure.

    left out     makers that includeDEXS, excludeDEXS, `route` or a blacklist exclude could fill the swap
    books        no live books lead from one token to the other
    side         such books exist, but have no price level on the side that the swap needs
    depth        the amount is more than the live books hold
    amount       the amount buys less than one raw unit

With `books` and `depth` the text names the makers whose books are paused, stale or out of use.

Choice: The cost of gas never makes a Market swap `No route`; a Delta price below its gas is
    `GasCostExceedsTradeAmount`.
Choice: `No route` is 400, never a 200 without a block. `mode=DELTA` without a price is 400 with the reason
    that `mode=ALL` gives as `fallbackReason`. Wrong decimals of a token are `No route`, too.
"""

from typing import TYPE_CHECKING

from ....config.errors import NoRoute
from ....feeds.standing import PairStanding
from ..routing.search.pathfinder import NoPlanReason
from ..routing.search.plan import SwapRequest

if TYPE_CHECKING:
    from ..routing.tokens import ListedToken
    from ..served.served_chain import ServedChain

_SAID = {
    NoPlanReason.LEFT_OUT: "makers that could fill it are excluded by the request or do not serve this user",
    NoPlanReason.BOOKS: "no live books lead from {src} to {dest}",
    NoPlanReason.SIDE: "the books between {src} and {dest} have no level on this side",
    NoPlanReason.DEPTH: "the amount is more than the live books between {src} and {dest} hold",
    NoPlanReason.AMOUNT: "the amount is too small: it buys not one unit",
}
_AWAY = {
    PairStanding.RESTING: "{makers} at rest after faults",
    PairStanding.STALE: "{makers} with stale books",
    PairStanding.WITHHELD: "{makers} out of use",
}


def no_route(served: "ServedChain", src: "ListedToken", dest: "ListedToken", wanted: SwapRequest) -> NoRoute:
    """Make the error for a swap for which the chain's pathfinder finds no route, with the reason as text."""
    lack = served.pathfinder.lack(wanted)
    said = [_SAID[lack].format(src=src.symbol, dest=dest.symbol)]
    if lack in (NoPlanReason.BOOKS, NoPlanReason.DEPTH):
        hidden = {name: feed.cache.hidden(src.routed, dest.routed) for name, feed in served.feeds.items()}
        for standing, words in _AWAY.items():
            makers = [name for name, standings in sorted(hidden.items()) if standing in standings]
            if makers:
                said.append(words.format(makers=", ".join(makers)))
    return NoRoute("; ".join(said))
