"""A market maker's own prices: five levels around a mid that leans against the sold amount."""

from decimal import Decimal

import trio

HALF_SPREAD, STEP, LEAN = Decimal("0.0005"), Decimal("0.0005"), Decimal("0.0002")


class MyPrices:
    """The settings: `my_prices:MyPrices`, with `price_options = { mids = { "WETH/USDC" = "2500" } }`."""

    def __init__(self, options, context):
        self.mids, self.sold = options["mids"], context.exposure

    async def updates(self):
        """A grid per pair, twice a second. Await your own model, exchange feed or database in here."""
        while True:
            yield {pair_id: self.grid(pair_id) for pair_id in self.mids}
            await trio.sleep(0.5)

    def grid(self, pair_id):
        """The best bid and ask half a spread away from the mid, each further level a step more."""
        mid = Decimal(self.mids[pair_id]) * (1 + LEAN * self.sold(pair_id))
        away = [HALF_SPREAD + STEP * level for level in range(5)]
        bids = [(round(mid * (1 - part), 6), Decimal(1)) for part in away]
        asks = [(round(mid * (1 + part), 6), Decimal(1)) for part in away]
        return {"bids": bids, "asks": asks}
