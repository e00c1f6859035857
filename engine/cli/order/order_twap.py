"""`cambist order twap`: one Delta order, settled slice by slice on a schedule.

Without `--deadline` a TWAP has time for every slice and for two more intervals or twenty minutes, whichever
is longer, so that slices without a bid may still settle.
"""

from functools import partial

import click

from ....codecs.messages.vocabulary import OrderType, Side
from ....config import limits
from ....config.errors import ConfigError
from ....config.timeouts import TRADER_ORDER_S, TRADER_TWAP_SLACK_S
from ...client.order.order_terms import OrderWish
from ...client.schedule import Schedule, duration_text
from ...client.terms import TradedToken
from ..parameters import Duration, decimal_text
from ..trading import SLIPPAGE_BPS, follow, slippage_option
from .order_place import PlacingOptions, place_order, placing_options

_SLICES_MAX = 2**32 - 1  # a uint32 in the order
_LIFE_S_MAX = 2**32
_BOUND = {Side.SELL: "--min", Side.BUY: "--max"}


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
@click.option("--min", "least", metavar="AMOUNT", callback=decimal_text, help="Least total receipt.")
@click.option(
    "--max", "most", metavar="AMOUNT", callback=decimal_text, help="With --side BUY: largest total spending."
)
@slippage_option(
    "Without --min or --max: tolerated loss of a slice against the price now, in basis points.  "
    f"[default: {SLIPPAGE_BPS}]"
)
@click.option(
    "--deadline",
    "life_s",
    type=Duration(),
    help="Life of the order.  [default: the schedule, and two intervals or 20m more]",
)
@follow
@placing_options()
def twap(
    placing: PlacingOptions,
    slices: int,
    interval_s: int,
    least: str | None,
    most: str | None,
    slippage_bps: int | None,
    life_s: int | None,
    *,
    follows: bool,
) -> None:
    """Sell AMOUNT of SELL_TOKEN for BUY_TOKEN in slices, one order for all of them.

    The venue auctions the first slice at once, each later slice an interval after its predecessor, also while
    you are away; no slice is settled below the shown worst price. The order needs an approval of the whole
    sold amount, not a permit. The command shows the schedule and the worst price, and asks.
    """
    field = _BOUND[placing.side]
    bound, other = (least, most) if placing.side is Side.SELL else (most, least)
    if other is not None:
        raise click.UsageError(f"--side {placing.side.value} is bounded by {field}")
    if bound is not None and slippage_bps is not None:
        raise click.UsageError(f"--slippage: excluded by {field}")
    schedule = Schedule(slices, interval_s)
    checked_life_s = _life_s(schedule, life_s)

    def wish_of(owner: bytes, src: TradedToken, dest: TradedToken) -> OrderWish:
        total = placing.raw_amount(src, dest)
        if total < slices:
            raise ConfigError("--slices", f"expected at most {total}, a raw unit for each, got {slices}")
        return placing.wish(
            owner,
            src,
            dest,
            type=OrderType.MARKET,
            life_s=checked_life_s,
            slippage_bps=SLIPPAGE_BPS if slippage_bps is None else slippage_bps,
            limit_amount=None if bound is None else placing.raw_limit(bound, src, dest, field),
            schedule=schedule,
        )

    placing.run(partial(place_order, follows=follows), placing, wish_of)


def _life_s(schedule: Schedule, asked_s: int | None) -> int:
    """Compute the seconds from the building of the TWAP order to its deadline, with time for all slices.

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
