"""Keeps signed routes whose bids were not settled, so that an order's next round needs no new signatures.
Pure.

    signed                                                        --> kept, the last route of each order
    settling, or refused by the chain                             --> forgotten: used up, or of no use
    expires soon, or the books are better by over ROUTE_DRIFT_BPS --> not bid again

A maker reserves the amount that it signs: new signatures in each round would take its funds from other users.

Source: ARCHITECTURE.md, "Auction".
"""

from ...codecs.messages.agent_messages import Notice
from ...codecs.messages.vocabulary import Side
from ...codecs.rounding import mul_div_down, mul_div_up
from ...config.limits import AGENT_ROUTES_KEPT_MAX
from ...config.timeouts import AGENT_ROUTE_LEFT_S
from ..chain.proceeds import BPS
from ..routing.firm.firm_route import FirmRoute

ROUTE_DRIFT_BPS = 1
"""A stored route is not bid again once the books' prices beat it by more than this, basis points."""

_STAYS = frozenset({Notice.LOST, Notice.LATE})


class KeptRoutes:
    """Signed routes of one chain that may be bid again."""

    def __init__(self) -> None:
        self._routes: dict[str, tuple[int, FirmRoute]] = {}

    def __len__(self) -> int:
        return len(self._routes)

    def keep(self, order_hash: str, amount: int, route: FirmRoute) -> None:
        """Store a route that makers have signed; beyond AGENT_ROUTES_KEPT_MAX the oldest route is dropped.

        Args:
            amount: raw units of the fixed side.
        """
        self._routes.pop(order_hash, None)
        self._routes[order_hash] = amount, route
        if len(self._routes) > AGENT_ROUTES_KEPT_MAX:
            del self._routes[next(iter(self._routes))]

    def get(self, order_hash: str, amount: int, *, limit: int, shown: int, now_s: int) -> FirmRoute | None:
        """The stored route of an order, or None if it cannot be bid again.

        Args:
            amount: raw units of the fixed side.
            limit: raw units of the other side: least proceeds of a sale, greatest cost of a purchase.
            shown: raw units of the other side at the books' present prices: proceeds (sale) or cost
                (purchase).
            now_s: Unix seconds.
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
        """Process a notice about an order's bid: drop the order's route unless the route stays usable."""
        if notice not in _STAYS:
            self._routes.pop(order_hash, None)
