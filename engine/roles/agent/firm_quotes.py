"""Strategy that fills single orders with makers' firm quotes, up to the depth of the makers' books.

The strategy fills a partially fillable order up to the largest part that the books hold within the order's
limit.

If makers do not sign quotes for a partially fillable order, or for a part of it, the agent asks them once
more, for half the amount.

Source: ARCHITECTURE.md, "Auction".
"""

from collections.abc import Mapping, Sequence
from typing import Any

import trio

from ....codecs.messages.agent_messages import SolverBid, SolveRequest
from .market import RoundMarket
from .orders import SOLVABLE, OpenOrder
from .strategy import StrategyContext, without_options


class FirmQuotes:
    """Strategy `firm_quotes`: fills each order of a round on its own, by quotes that makers sign."""

    def __init__(self, options: Mapping[str, Any], context: StrategyContext) -> None:
        without_options(options, context)

    async def solve(self, request: SolveRequest, market: RoundMarket) -> Sequence[SolverBid]:  # noqa: ARG002
        """Return a bid for each order that makers fill within its limit and before the round's deadline."""
        bids: dict[int, SolverBid] = {}
        solvable = {
            at: order
            for at, order in enumerate(market.orders)
            if order.order_type in SOLVABLE and order.fixed_amount
        }
        # Added before the tasks start: orders that the deadline below cuts off stay in the set.
        market.not_reached.update(order.order_hash for order in solvable.values())

        async def solve_one(at: int, order: OpenOrder) -> None:
            bid = await _bid(order, market)
            market.not_reached.discard(order.order_hash)
            if bid:
                bids[at] = bid

        with trio.move_on_at(market.deadline):
            async with trio.open_nursery() as nursery:
                for at, order in solvable.items():
                    nursery.start_soon(solve_one, at, order)
        return [bids[at] for at in sorted(bids)]


async def _bid(order: OpenOrder, market: RoundMarket) -> SolverBid | None:
    part = market.largest_part(order)
    if part is None:
        return None
    sizes = [part]
    half = part.fixed_amount // 2
    if order.part_min and order.part_min <= half:
        sizes.append(order.part(half))
    for size in sizes:
        bid = market.bid(size, await market.signed(size))
        if bid:
            return bid
    return None
