"""Orders alone, filled by makers' firm quotes, as well as the books give.

Source: design, "Auction" (the built-in agent).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import trio

from ...codecs.agent_messages import SolverBid, SolveRequest
from .bids import bid_of_route
from .market import Market
from .orders import SOLVABLE, OpenOrder
from .strategy import StrategyContext, without_options


class FirmQuotes:
    """The strategy `firm_quotes`."""

    def __init__(self, options: Mapping[str, Any], context: StrategyContext) -> None:
        without_options(options, context)

    async def solve(self, request: SolveRequest, market: Market) -> Sequence[SolverBid]:  # noqa: ARG002
        """A bid for each order that makers fill within its limit, and in time."""
        bids: dict[int, SolverBid] = {}
        turns = trio.CapacityLimiter(market.orders_at_once)

        async def solve_one(at: int, order: OpenOrder) -> None:
            async with turns:
                route = await market.signed(order)
            bid = route and bid_of_route(order, route, market.rfq, market.margin_bps)
            if bid:
                bids[at] = bid

        with trio.move_on_at(market.deadline):
            async with trio.open_nursery() as nursery:
                for at, order in enumerate(market.orders):
                    if order.order_type in SOLVABLE and order.fixed_amount:
                        nursery.start_soon(solve_one, at, order)
        return [bids[at] for at in sorted(bids)]
