"""Strategy that bids to settle opposite sales with each other, as the module `crossing` pairs them.

Makers buy the remainder of the larger sale by quotes signed for its owner; the agent does not bid for a pair
of sales without these signatures.

Source: contracts/Delta.sol, `settleCrossed`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import trio

from ....codecs.messages.agent_messages import SolverBid, SolveRequest
from .bids import crossed_part
from .crossing import Crossing, crossings
from .market import RoundMarket
from .orders import OpenOrder
from .strategy import StrategyContext, without_options


class Coincidence:
    """Strategy `crossing`: bids that settle two sales with each other, each selling what the other buys."""

    def __init__(self, options: Mapping[str, Any], context: StrategyContext) -> None:
        without_options(options, context)

    async def solve(self, request: SolveRequest, market: RoundMarket) -> Sequence[SolverBid]:  # noqa: ARG002
        """Return a bid for each pair of opposite sales that can be settled with each other.

        If one sale takes only a part of the other's source tokens, makers have to buy the unsold tokens: the
        pair gets a bid only if the makers sign before the round's deadline.
        """
        known: dict[str, int] = {}  # each sale is priced once, however many sales are opposite to it

        def alone(order: OpenOrder) -> int:
            if order.order_hash not in known:
                known[order.order_hash] = market.alone(order)
            return known[order.order_hash]

        found = crossings(market.orders, alone)
        bids: dict[int, SolverBid] = {}

        async def solve_one(at: int, crossing: Crossing) -> None:
            bid = await _bid(crossing, market)
            if bid:
                bids[at] = bid

        # Ends at the deadline with the bids made so far: the agent drops all bids of a strategy that is late.
        with trio.move_on_at(market.deadline):
            async with trio.open_nursery() as nursery:
                for at, crossing in enumerate(found):
                    nursery.start_soon(solve_one, at, crossing)
        return [bids[at] for at in sorted(bids)]


async def _bid(crossing: Crossing, market: RoundMarket) -> SolverBid | None:
    long, short = crossing.long, crossing.short
    route, received = None, 0
    if crossing.rest:
        least = max(long.limit - short.src_amount, 1)
        route = await market.signed(long, amount=crossing.rest, limit=least)
        if route is None or route.src_amount != crossing.rest:
            return None
        received = route.dest_amount
    parts = (
        crossed_part(long, crossing.paid_to_long(received), market.filling, route),
        crossed_part(short, crossing.to_short, market.filling),
    )
    return None if parts[0] is None or parts[1] is None else SolverBid((parts[0], parts[1]))
