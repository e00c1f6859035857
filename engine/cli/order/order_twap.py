"""`cambist order twap`: one Delta order, settled slice by slice on a schedule.

Without `--deadline` a TWAP has time for every slice and for two more intervals or twenty minutes, whichever
is longer, so that slices without a bid may still settle.
"""

import click

from ....codecs.messages.vocabulary import Side
from ....config import limits
from ...trader.client.public.market_trading import SLIPPAGE_BPS
from ...trader.client.public.results import DeltaOrderState
from ...trader.client.public.venue import Venue
from ..parameters import Duration, amount_option
from ..trading import follow, slippage_option
from .order_place import PlacingArguments, PlacingOptions, place_order, placing_options

_SLICES_MAX = 2**32 - 1  # a uint32 in the order
_BOUND = {Side.SELL: "--min", Side.BUY: "--max"}


class _TwapOptions(PlacingOptions, frozen=True, kw_only=True):
    """Options of `cambist order twap`.

    Attributes:
        least: minimum that a sale receives in all slices together, whole tokens as typed.
        most: maximum that a purchase spends in all slices together, whole tokens as typed.
        asked_s: seconds from the time at which the order is built to its deadline; None for the default.
    """

    slices: int
    interval_s: int
    least: str | None
    most: str | None
    asked_s: int | None

    @property
    def bound(self) -> str | None:
        """The option that bounds an order of this side, as typed: `least` for SELL, `most` for BUY."""
        return self.least if self.side is Side.SELL else self.most

    def names(self) -> dict[str, str]:
        """Map parameter names of `cambist.client` to the options and arguments of the command, for errors."""
        own = {"slices": "--slices", "interval_s": "--interval", "life_s": "--deadline"}
        return super().names() | own | {"limit": _BOUND[self.side]}

    async def place(self, program: Venue, placing: PlacingArguments) -> DeltaOrderState:
        """Place the TWAP."""
        return await program.twap(
            self.sell,
            self.buy,
            self.amount,
            slices=self.slices,
            interval_s=self.interval_s,
            limit=self.bound,
            slippage_bps=SLIPPAGE_BPS if self.slippage_bps is None else self.slippage_bps,
            life_s=self.asked_s,
            **placing,
        )


@click.command("twap")
@click.option(
    "--slices",
    type=click.IntRange(limits.TWAP_SLICES_MIN, _SLICES_MAX),
    required=True,
    help="Number of slices of the same size; the last slice takes the remainder.",
)
@click.option(
    "--interval",
    "interval_s",
    type=Duration(least_s=limits.TWAP_INTERVAL_MIN_S),
    required=True,
    help="Least time between two slices: 300, 5m, 1h.",
)
@amount_option("--min", "least", "Least total receipt.")
@amount_option("--max", "most", "With --side BUY: largest total spending.")
@slippage_option(
    "Without --min or --max: tolerated loss of a slice against the price now, in basis points.  "
    f"[default: {SLIPPAGE_BPS}]"
)
@click.option(
    "--deadline",
    "asked_s",
    type=Duration(),
    help="Life of the order.  [default: the schedule, and two intervals or 20m more]",
)
@follow
@placing_options(_TwapOptions)
def twap(placing: _TwapOptions) -> None:
    """Sell AMOUNT of SELL_TOKEN for BUY_TOKEN in slices, one order for all of them.

    The venue auctions the first slice at once, each later slice an interval after its predecessor, also while
    you are away; no slice is settled below the shown worst price. The order needs an approval of the whole
    sold amount, not a permit. The command shows the schedule and the worst price, and asks.
    """
    field = _BOUND[placing.side]
    if (placing.most if placing.side is Side.SELL else placing.least) is not None:
        raise click.UsageError(f"--side {placing.side.value} is bounded by {field}")
    if placing.bound is not None and placing.slippage_bps is not None:
        raise click.UsageError(f"--slippage: excluded by {field}")
    placing.run(place_order, placing)
