"""What a strategy works with in one round: the orders, the makers, and the time that there is."""

from collections.abc import Callable

import structlog
import trio
from msgspec import Struct

from ...config.errors import RequestError
from ..chain.port import Chain
from ..routing.firm_parts import indicative_within
from ..routing.firm_route import FirmRoute
from ..routing.makers import OpenMakers
from ..routing.plan import Wanted
from ..routing.served import ServedChain
from .orders import OpenOrder

_log = structlog.get_logger("cambist.agent")


class Place(Struct, frozen=True):
    """A chain that the agent serves.

    Attributes:
        served: of the settings: addresses, tokens.
        makers: their books, their routes, their firm quotes.
    """

    served: ServedChain
    chain: Chain
    makers: OpenMakers


class Market(Struct, frozen=True):
    """A round.

    Attributes:
        place: the chain's makers, contracts and node.
        orders: those of the request, parsed.
        gas_price_wei: what a unit of gas is expected to cost.
        margin_bps: to be kept back from promises.
        orders_at_once: for which makers may be asked at the same time.
        deadline: in trio's time: bids are to be there by then; soon after it a strategy is cut off.
        wall_ms: Unix milliseconds.
    """

    place: Place
    orders: tuple[OpenOrder, ...]
    gas_price_wei: int
    margin_bps: int
    orders_at_once: int
    deadline: float
    wall_ms: Callable[[], int]

    @property
    def rfq(self) -> bytes:
        """The RFQ contract, 20 bytes."""
        return self.place.served.addresses["rfq_contract"]

    def left_s(self) -> float:
        """How long there is until the deadline."""
        return self.deadline - trio.current_time()

    def alone(self, order: OpenOrder) -> int:
        """Raw units, before fees, that the makers' books give for a sale now; 0 where they do not fill it."""
        total = self.place.makers.pathfinder.total(self._wanted(order, order.fixed_amount))
        return 0 if total is None else total.dest_amount

    async def signed(
        self, order: OpenOrder, *, amount: int | None = None, limit: int | None = None
    ) -> FirmRoute | None:
        """Have makers sign the best route for an order, or for a part of it.

        Args:
            amount: raw units of the side that is fixed; all of it unless given.
            limit: before fees, of the other side: the order's own unless given.

        Returns:
            A route for the order's owner; None where nobody signs within the limit.
        """
        makers = self.place.makers
        wanted = self._wanted(order, order.fixed_amount if amount is None else amount)
        least_or_most = order.limit if limit is None else limit
        plan = makers.pathfinder.find(wanted)
        if plan is None or not indicative_within(plan, least_or_most):
            return None
        try:
            return await makers.desk.fill(plan, wanted, user=order.owner, limit=least_or_most)
        except RequestError as error:
            _log.debug("not signed", order=order.order_hash, reason=error.detail)
            return None

    def _wanted(self, order: OpenOrder, amount: int) -> Wanted:
        return Wanted(
            order.src_token,
            order.dest_token,
            amount,
            order.side,
            without=self.place.makers.barred(order.owner, now_ms=self.wall_ms()),
            gas_price_wei=self.gas_price_wei,
        )
