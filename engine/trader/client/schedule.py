"""A TWAP's slices: their number, interval and amounts, and the bound of each slice. Pure.

    slice    floor(total / slices) of the fixed side; the last one takes the remainder
    sale     each slice gives at least the signed bound per slice, the last one pro rata, rounded up
    purchase each slice spends at most its share of the signed total, rounded down; tokens that a slice
             leaves unspent raise no later slice's maximum

A trader bounds a TWAP as a whole; the minimum per slice of a sale is rounded up, so that all slices together
keep the bound.

Source: spec 1.16.28 to 1.16.42; choices.md#delta-orders; contracts/Delta.sol.
"""

from collections.abc import Callable

from msgspec import Struct

from ....codecs.rounding import mul_div_down, mul_div_up
from ....config import limits
from ....config.errors import ConfigError
from ....config.timeouts import TRADER_ORDER_S, TRADER_TWAP_SLACK_S

_LIFE_S_MAX = 2**32


class Schedule(Struct, frozen=True):
    """The division of a TWAP into slices.

    Attributes:
        slices: number of slices, at least 2.
        interval_s: minimum seconds between the settlements of two slices.
    """

    slices: int
    interval_s: int

    @property
    def room_s(self) -> int:
        """Minimum seconds from now to the order's deadline in which all slices can be settled."""
        return self.slices * self.interval_s

    @property
    def span_s(self) -> int:
        """Minimum seconds from the settlement of the first slice to that of the last slice."""
        return (self.slices - 1) * self.interval_s

    def slice_of(self, total: int) -> int:
        """Raw units of the fixed amount (sold for SELL, bought for BUY) in every slice except the last.

        Args:
            total: fixed amount of the whole order, raw units.
        """
        return total // self.slices

    def last_of(self, total: int) -> int:
        """Raw units of the fixed amount (sold for SELL, bought for BUY) in the last slice.

        The last slice contains the remainder of the division.

        Args:
            total: fixed amount of the whole order, raw units.
        """
        return total - self.slice_of(total) * (self.slices - 1)

    def least_per_slice(self, total: int, least: int) -> int:
        """Minimum raw units that each slice of a SELL order must return.

        With this minimum, all slices together return at least `least`.

        Args:
            total: sold amount of the whole order, raw units.
            least: minimum received by the whole order, raw units.
        """
        return mul_div_up(least, self.slice_of(total), total)

    def least_of(self, total: int, per_slice: int) -> int:
        """Minimum raw units that all slices of a SELL order together return.

        Args:
            total: sold amount of the whole order, raw units.
            per_slice: the signed minimum per slice, raw units.
        """
        last = mul_div_up(per_slice, self.last_of(total), self.slice_of(total))
        return per_slice * (self.slices - 1) + last

    def most_of(self, total: int, per_slice: int) -> int:
        """Maximum raw units that all slices of a BUY order together may spend.

        Args:
            total: bought amount of the whole order, raw units.
            per_slice: maximum spent by each slice except the last, raw units.
        """
        return mul_div_down(per_slice, total, self.slice_of(total))

    def most_per_slice(self, total: int, most: int) -> int:
        """Maximum raw units that each slice of a BUY order except the last may spend.

        Args:
            total: bought amount of the whole order, raw units.
            most: maximum spent by the whole order, raw units.
        """
        return mul_div_down(most, self.slice_of(total), total)


def duration_text(seconds: int) -> str:
    """A duration in readable units: "30 s", "5 min", "1 h 30 min", "7 d"."""
    if seconds % 60:
        return f"{seconds} s" if seconds < 60 else f"{duration_text(seconds - seconds % 60)} {seconds % 60} s"
    parts: list[str] = []
    rest = seconds // 60
    for unit, minutes in (("d", 1_440), ("h", 60), ("min", 1)):
        count, rest = divmod(rest, minutes)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def checked_life_s(schedule: Schedule, asked_s: int | None, name: Callable[[str], str]) -> int:
    """Seconds from the build of a TWAP to its deadline, with time for all slices.

    Args:
        asked_s: requested seconds; None for the time of all slices and two more intervals or TRADER_ORDER_S,
            whichever is longer, so that slices without a bid may still settle.
        name: function that returns a parameter's name in errors.

    Raises:
        ConfigError: the schedule has too few slices or too short an interval, or the slices take longer than
            an order may be valid, or than the requested time; the error names the parameter.
    """
    if schedule.slices < limits.TWAP_SLICES_MIN:
        raise ConfigError(
            name("slices"), f"expected at least {limits.TWAP_SLICES_MIN}, got {schedule.slices}"
        )
    if schedule.interval_s < limits.TWAP_INTERVAL_MIN_S:
        expected = f"expected at least {limits.TWAP_INTERVAL_MIN_S}"
        raise ConfigError(name("interval_s"), f"{expected}, got {schedule.interval_s}")
    least_s = schedule.room_s + TRADER_TWAP_SLACK_S
    if least_s > _LIFE_S_MAX:
        raise ConfigError(name("slices"), f"{schedule.slices} slices take {duration_text(schedule.room_s)}")
    if asked_s is None:
        return schedule.room_s + max(2 * schedule.interval_s, TRADER_ORDER_S)
    if asked_s < least_s:
        raise ConfigError(
            name("life_s"),
            f"expected at least {least_s} s, as {schedule.slices} slices take {schedule.room_s} s, "
            f"got {asked_s} s",
        )
    return asked_s
