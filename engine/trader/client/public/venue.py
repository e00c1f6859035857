"""A venue for programs on trio: quotes, swaps, orders of all kinds, OTC orders and their fills.

    async with Venue.open("http://127.0.0.1:8080", 31337, rpc="http://127.0.0.1:8545") as venue:
        swap = await venue.swap("WETH", "USDC", "1.5", key="env:KEY")
        order = await venue.order("WETH", "USDC", "1.5", key="env:KEY")
        end = await venue.follow(order)

Before a call signs, it prices the trade, gives the terms to `agree`, and compares the venue's answers with
the agreed terms. The call returns once the trade is mined, or once the venue has the order; else it raises.

Choice: Slippage counts from the venue's own quote; `limit` or `agree` protects a program from a bad quote.
"""

from .delta_trading import DeltaTrading
from .otc_trading import OtcTrading


class Venue(DeltaTrading, OtcTrading):
    """A venue, a chain and its node, for programs on trio; `open` creates a Venue.

    `BlockingVenue` and `AsyncioVenue` have the same methods for threads and for asyncio.
    """
