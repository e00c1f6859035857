"""A bidding strategy's view of one auction round: orders, makers' prices and quotes, and the deadline."""

from collections.abc import Callable, Iterator

import structlog
import trio
from msgspec import Struct

from ....codecs.messages.agent_messages import SolverBid
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import div_down
from ....config.errors import RequestError
from ...chain.port import Chain
from ...trade.routing.firm.firm_parts import indicative_within
from ...trade.routing.firm.firm_route import FirmRoute
from ...trade.routing.makers import OpenMakers
from ...trade.routing.search.plan import SwapRequest
from ...trade.routing.served import ConfiguredChain
from .bids import Filling, bid_of_route
from .kept_routes import KeptRoutes
from .orders import OpenOrder

PART_STEPS = 8
"""Number of bisection steps in the search for the largest part of an order that makers' books fill."""

_log = structlog.get_logger("cambist.agent")


class AgentChain(Struct, frozen=True):
    """A chain on which the agent bids, with its makers and their signed routes.

    Attributes:
        served: contract addresses and tokens from the settings.
        makers: the makers' books, route search and firm quotes.
        turns: limiter of the number of orders for which makers are asked to sign at the same time.
        kept: routes that makers signed in earlier rounds, which may be bid again.
    """

    served: ConfiguredChain
    chain: Chain
    makers: OpenMakers
    turns: trio.CapacityLimiter
    kept: KeptRoutes


class RoundMarket(Struct, frozen=True):
    """A bidding strategy's view of one auction round: orders to bid for and makers to trade with.

    Attributes:
        place: the chain's makers, contracts and node.
        orders: the orders of the venue's request, parsed.
        gas_price_wei: expected gas price, wei per unit of gas.
        margin_bps: the agent's margin, basis points, by which its bids promise the user a worse price than
            the makers' quotes give.
        deadline: trio time, seconds, at which bids are due; a strategy is cancelled soon after it.
        wall_ms: function that returns the time of the wall clock, Unix milliseconds.
        not_reached: hashes of orders for which a strategy had no time; strategies add to the set. The agent's
            answer reports these orders to the venue, except orders that another strategy bids for.
    """

    place: AgentChain
    orders: tuple[OpenOrder, ...]
    gas_price_wei: int
    margin_bps: int
    deadline: float
    wall_ms: Callable[[], int]
    not_reached: set[str]

    @property
    def filling(self) -> Filling:
        """Addresses of the RFQ contract and the executor, which fill makers' firm quotes."""
        addresses = self.place.served.addresses
        return Filling(addresses["rfq_contract"], addresses["executor"])

    def left_s(self) -> float:
        """Return the seconds until bids of the round are due; negative after the deadline."""
        return self.deadline - trio.current_time()

    def alone(self, order: OpenOrder) -> int:
        """Return the proceeds of a sale at makers' current books, in raw units before fees.

        The proceeds are 0 if the books do not fill the whole sale.
        """
        total = self.place.makers.pathfinder.total(self._wanted(order, order.fixed_amount))
        return 0 if total is None else total.dest_amount

    def largest_part(self, order: OpenOrder) -> OpenOrder | None:
        """Find the largest part of an order that makers' books fill within the order's limit.

        The search tries sizes from the largest down until the books fill one, then bisects between this size
        and the next larger one tried. Bisection alone could find no part: the books may fill a larger part
        by a route whose gas a smaller part does not pay for.

        Not guaranteed: the result may be short of the largest part by up to 2^-PART_STEPS of the order.

        Returns:
            The part; None if the books fill none of the sizes tried. The part is the whole order if the books
            fill the whole. An order that may not be filled in parts is returned whole and unchecked.
        """
        if not order.part_min or self._is_filled(order):
            return order
        high = order.fixed_amount
        for low in _sizes(order):
            if self._is_filled(order.part(low)):
                break
            high = low
        else:
            return None
        most = order.fixed_amount - order.part_min
        # `low` is `most` if the books filled the first size: a larger part would leave less than `part_min`.
        for _ in range(PART_STEPS if low < most else 0):
            middle = div_down(low + high, 2)
            low, high = (middle, high) if self._is_filled(order.part(middle)) else (low, middle)
        return order.part(low)

    async def signed(
        self, order: OpenOrder, *, amount: int | None = None, limit: int | None = None
    ) -> FirmRoute | None:
        """Have makers sign the best route for an order or a part of it, or reuse a route signed before.

        The number of concurrent calls on a chain is limited (`AgentChain.turns`); a further call waits.

        Args:
            amount: raw units of the source token to sell, or of the destination token to buy; None for the
                whole order.
            limit: least proceeds (sale) or greatest cost (purchase), raw units before fees; None for the
                order's own limit.

        Returns:
            A route of quotes signed for the order's owner; None if no makers sign within the limit.
        """
        async with self.place.turns:
            # Planned only now: the books may have moved while this call waited for its turn.
            makers, kept = self.place.makers, self.place.kept
            wanted = self._wanted(order, order.fixed_amount if amount is None else amount)
            least_or_most = order.limit if limit is None else limit
            plan = makers.pathfinder.find(wanted)
            if plan is None or not indicative_within(plan, least_or_most):
                return None
            # A kept route is held against the new plan: better books are worth new signatures.
            shown = plan.dest_amount if plan.side is Side.SELL else plan.src_amount
            now_s = self.wall_ms() // 1_000
            route = kept.get(order.order_hash, wanted.amount, limit=least_or_most, shown=shown, now_s=now_s)
            if route is not None:
                return route
            try:
                route = await makers.desk.fill(plan, wanted, user=order.owner, limit=least_or_most)
            except RequestError as error:  # the strategy goes on with the other orders
                _log.debug("a route was not signed", order=order.order_hash, reason=error.detail)
                return None
            kept.keep(order.order_hash, wanted.amount, route)
            return route

    def bid(self, order: OpenOrder, route: FirmRoute | None) -> SolverBid | None:
        """Build a bid that fills an order, or a part of it, by a route that `signed` returned for it.

        The bid promises the route's amount less the agent's margin.

        Returns:
            The bid; None without a route, or if the route breaks the order's limit.
        """
        return None if route is None else bid_of_route(order, route, self.filling, self.margin_bps)

    def _is_filled(self, order: OpenOrder) -> bool:
        """Whether makers' current books fill a whole order within its limit."""
        total = self.place.makers.pathfinder.total(self._wanted(order, order.fixed_amount))
        if total is None:
            return False
        if order.side is Side.SELL:
            return total.dest_amount >= order.limit
        return total.src_amount <= order.limit

    def _wanted(self, order: OpenOrder, amount: int) -> SwapRequest:
        return SwapRequest(
            order.src_token,
            order.dest_token,
            amount,
            order.side,
            without=self.place.makers.barred(order.owner, now_ms=self.wall_ms()),
            gas_price_wei=self.gas_price_wei,
        )


def _sizes(order: OpenOrder) -> Iterator[int]:
    """Yield candidate sizes of a partial fill of an order, raw units, from the largest to the smallest."""
    most = order.fixed_amount - order.part_min
    if most < order.part_min:
        return
    yield most
    size = order.fixed_amount // 2
    while order.part_min < size < most:
        yield size
        size //= 2
    if order.part_min < most:
        yield order.part_min
