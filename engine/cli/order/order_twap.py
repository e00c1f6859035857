"""`cambist order twap`: one Delta order, settled slice by slice on a schedule.

Without `--deadline` a TWAP has time for every slice and for two more intervals or twenty minutes, whichever
is longer, so that slices without a bid may still settle.
"""

import click
from msgspec.structs import replace

from ....codecs.messages.vocabulary import Side
from ....config import limits
from ....config.errors import ConfigError
from ....config.timeouts import TRADER_ORDER_S, TRADER_TWAP_SLACK_S
from ...client.order.order_terms import OrderWish
from ...client.schedule import Schedule, duration_text
from ...client.terms import TradedToken
from ..parameters import Duration, amount_option, raw_units
from ..trading import SLIPPAGE_BPS, follow, slippage_option
from .order_place import PlacingOptions, place_order, placing_options

_SLICES_MAX = 2**32 - 1  # a uint32 in the order
_LIFE_S_MAX = 2**32
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
    def schedule(self) -> Schedule:
        """The division of the order into slices."""
        return Schedule(self.slices, self.interval_s)

    @property
    def bound(self) -> str | None:
        """The option that bounds an order of this side, as typed: `least` for SELL, `most` for BUY."""
        return self.least if self.side is Side.SELL else self.most

    def wish(self, owner: bytes, src: TradedToken, dest: TradedToken) -> OrderWish:
        """Build the user's wish for a TWAP order of these tokens."""
        wish = super().wish(owner, src, dest)
        if wish.amount < self.slices:
            expected = f"expected at most {wish.amount}, a raw unit for each"
            raise ConfigError("--slices", f"{expected}, got {self.slices}")
        bound = None if self.bound is None else raw_units(self.bound, wish.bounded, _BOUND[self.side])
        return replace(wish, limit_amount=bound, schedule=self.schedule)


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
    placing.run(place_order, replace(placing, life_s=_life_s(placing.schedule, placing.asked_s)))


def _life_s(schedule: Schedule, asked_s: int | None) -> int:
    """Compute the seconds from the building of the TWAP order to its deadline, with time for all slices.

    Args:
        asked_s: requested seconds; None for the default.

    Raises:
        click.UsageError: the slices take longer than an order may be valid, or than the requested time.
    """
    least_s = schedule.room_s + TRADER_TWAP_SLACK_S
    if least_s > _LIFE_S_MAX:
        raise click.UsageError(
            f"--slices and --interval: {schedule.slices} slices take {duration_text(schedule.room_s)}"
        )
    if asked_s is None:
        return schedule.room_s + max(2 * schedule.interval_s, TRADER_ORDER_S)
    if asked_s < least_s:
        raise click.UsageError(
            f"--deadline: expected at least {least_s} s, as {schedule.slices} slices take "
            f"{schedule.room_s} s, got {asked_s} s"
        )
    return asked_s
