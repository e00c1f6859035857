"""Keeps signed routes of lost bids, so that an order's next round needs no new maker signatures. Pure.

    signed                                                        --> kept, the last route of each order
    a notice of its bid other than `lost` and `late`              --> forgotten: used up, or of no use
    expires soon, or the books are better by over ROUTE_DRIFT_BPS --> not bid again

A maker reserves the amount that it signs: new signatures in each round would take its funds from other users.

Source: ARCHITECTURE.md, "Auction".
"""

from ....codecs.messages.agent_messages import Notice
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import mul_div_down, mul_div_up
from ....config.limits import AGENT_ROUTES_KEPT_MAX
from ....config.timeouts import AGENT_ROUTE_LEFT_S
from ...chain.proceeds import BPS
from ...trade.routing.firm.firm_route import FirmRoute

ROUTE_DRIFT_BPS = 1
"""Largest advantage of current book prices over a stored signed route, basis points.

The agent does not bid a route again that current prices beat by more.
"""

_STAYS = frozenset({Notice.LOST, Notice.LATE})


class KeptRoutes:
    """Routes that makers signed in earlier rounds on one chain, by order hash, for use in later bids."""

    def __init__(self) -> None:
        self._routes: dict[str, tuple[int, FirmRoute]] = {}

    def __len__(self) -> int:
        return len(self._routes)

    def keep(self, order_hash: str, amount: int, route: FirmRoute) -> None:
        """Store an order's signed route; above AGENT_ROUTES_KEPT_MAX routes, drop the oldest route.

        Args:
            amount: raw units that the route trades, of the source token (sale) or destination token
                (purchase).
        """
        self._routes.pop(order_hash, None)
        self._routes[order_hash] = amount, route
        if len(self._routes) > AGENT_ROUTES_KEPT_MAX:
            del self._routes[next(iter(self._routes))]

    def get(self, order_hash: str, amount: int, *, limit: int, shown: int, now_s: int) -> FirmRoute | None:
        """Return the stored signed route of an order; None if no stored route may be bid again.

        A route may be bid again if makers signed it for `amount`, if it does not expire within
        AGENT_ROUTE_LEFT_S seconds, and if its proceeds or cost meet `limit` and are worse than `shown` by at
        most ROUTE_DRIFT_BPS basis points.

        Args:
            amount: raw units of the source token (sale) or destination token (purchase) to trade.
            limit: least proceeds (sale) or greatest cost (purchase), raw units.
            shown: proceeds (sale) or cost (purchase) at the books' present prices, raw units.
            now_s: present time, Unix seconds.
        """
        kept_amount, route = self._routes.get(order_hash, (0, None))
        if route is None or kept_amount != amount:
            return None
        if route.expiry_s - now_s < AGENT_ROUTE_LEFT_S:
            del self._routes[order_hash]
            return None
        if route.side is Side.SELL:
            least = max(limit, mul_div_down(shown, BPS - ROUTE_DRIFT_BPS, BPS))
            return route if route.dest_amount >= least else None
        most = min(limit, mul_div_up(shown, BPS + ROUTE_DRIFT_BPS, BPS))
        return route if route.src_amount <= most else None

    def told(self, notice: Notice, order_hash: str) -> None:
        """Drop an order's stored route after a notice about a bid, unless the bid lost or came late.

        Args:
            notice: outcome of a bid on the order.
        """
        if notice not in _STAYS:
            self._routes.pop(order_hash, None)
