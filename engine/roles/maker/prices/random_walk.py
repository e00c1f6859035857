"""Prices that walk at random, reproducibly for a seed: for devnets, demos and load.

    seed          seeds the random generator of every pair's walk, together with the pair's id
    interval_ms   time between two steps, each of which updates all pairs
    pairs         by pair id:
      start           mid price, a decimal string; the walk stays between a quarter and four times of it
      decimals        digits after the point in prices
      spread_bps      distance between best bid and best ask
      levels          number of levels on each side
      level_bps       distance between two levels of a side
      size            base amount of the best level, a decimal string
      growth_percent  growth of the amount from each level to the next
      volatility_bps  the largest step of the mid, up or down
      skew_bps        shift of the mid up once `skew_scale` base tokens were sold (down: bought)
      skew_scale      net base tokens sold (or bought) from which on the shift is full and grows no more

All arithmetic is on integers. Bids are rounded down and asks up; levels of a side are at least one tick
apart, and so are best bid and ask: no book ever crosses.
"""

from collections.abc import AsyncGenerator, Mapping
from decimal import Decimal
from random import Random
from typing import Any

import msgspec
import trio
from msgspec import Struct

from .....codecs.amounts import POWERS_OF_TEN, parse_decimal, rescale_down
from .....codecs.messages.maker_messages import Level, PriceGrid
from .....codecs.rounding import div_up
from .....config.errors import ConfigError, InvalidInput
from .....config.limits import BPS_ONE, DECIMAL_WHOLE_DIGITS_MAX
from .source import SourceContext, read_options

_FINER = 1_000_000  # the mid is kept in millionths of a tick
_STEPS_PER_BPS = 1_000  # of the mid's step and of its lean
_START_TICKS_MIN = 1_000
_BASE_DECIMALS_MAX = 8  # digits of a shown amount, or fewer where the token has fewer


class WalkOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the price source `random_walk`; the module's docstring describes each.

    Attributes:
        interval_ms: milliseconds between two steps.
        pairs: pair id -> options of the pair (`PairOptions`).
    """

    seed: int = 0
    interval_ms: int = 1_000
    pairs: dict[str, dict[str, Any]]

    def __post_init__(self) -> None:
        if not 10 <= self.interval_ms <= 3_600_000:
            raise ValueError(f"interval_ms is 10 to 3600000, got {self.interval_ms}")


class PairOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of one pair of the price source `random_walk`, such as start price, spread and volatility; the
    module's docstring describes each.
    """

    start: str
    decimals: int = 4
    spread_bps: int = 10
    levels: int = 10
    level_bps: int = 5
    size: str = "1"
    growth_percent: int = 20
    volatility_bps: int = 5
    skew_bps: int = 0
    skew_scale: str = "10"

    def __post_init__(self) -> None:
        for name, least, most in (
            ("decimals", 0, 18),
            ("spread_bps", 0, 5_000),
            ("levels", 1, 200),
            ("level_bps", 0, 1_000),
            ("growth_percent", 0, 100),
            ("volatility_bps", 0, 1_000),
            ("skew_bps", 0, 1_000),
        ):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {least} to {most}, got {getattr(self, name)}")


class Walk:
    """Random walk of one pair's mid price, and the order book around that price; pure.

    Args:
        random: random generator for this pair alone.
        field: dotted name of the options in errors.

    Raises:
        ConfigError: an option is no decimal number, `start` is less than 1,000 ticks (units of the last
            decimal place of a price), or `skew_scale`, `size` or `growth_percent` is out of range.
    """

    def __init__(self, options: PairOptions, base_decimals: int, random: Random, field: str) -> None:
        self._options = options
        self._random = random
        start = rescale_down(*_decimal(options.start, f"{field}.start"), options.decimals)
        if start < _START_TICKS_MIN:
            detail = f"{options.start} is less than {_START_TICKS_MIN} ticks of {options.decimals} decimals"
            raise ConfigError(f"{field}.start", detail)
        self._mid = start * _FINER
        self._least, self._most = self._mid // 4, self._mid * 4
        self._scale = _decimal(options.skew_scale, f"{field}.skew_scale")
        if self._scale[0] == 0:
            raise ConfigError(f"{field}.skew_scale", "is zero")
        self._amounts = _amounts(options, base_decimals, field)

    def step(self) -> None:
        """Move the mid price by one random step."""
        most = self._options.volatility_bps * _STEPS_PER_BPS
        moved = self._mid + self._mid * self._random.randint(-most, most) // (BPS_ONE * _STEPS_PER_BPS)
        self._mid = min(max(moved, self._least), self._most)

    def grid(self, exposure: Decimal) -> PriceGrid:
        """Build the order book around the mid price, shifted to reduce the maker's exposure.

        Args:
            exposure: base tokens that the maker has sold, less base tokens that it has bought.
        """
        options = self._options
        mid = self._mid + self._mid * self._lean(exposure) // (BPS_ONE * _STEPS_PER_BPS)
        bids: list[Level] = []
        asks: list[Level] = []
        bid_most, ask_least = mid // _FINER, 1
        for at, amount in enumerate(self._amounts):
            away = options.spread_bps + 2 * at * options.level_bps  # in halves of a basis point
            divisor = 2 * BPS_ONE * _FINER
            bid = min(mid * (2 * BPS_ONE - away) // divisor, bid_most)
            ask = max(div_up(mid * (2 * BPS_ONE + away), divisor), ask_least if asks else bid + 1)
            if bid > 0:
                bids.append((_text(bid, options.decimals), amount))
            asks.append((_text(ask, options.decimals), amount))
            bid_most, ask_least = bid - 1, ask + 1
        return PriceGrid(tuple(bids), tuple(asks))

    def _lean(self, exposure: Decimal) -> int:
        """Compute the shift of the mid price for an exposure, in thousandths of a basis point.

        Args:
            exposure: base tokens that the maker has sold, less base tokens that it has bought; a positive
                exposure shifts the price up.
        """
        sold, denominator = exposure.as_integer_ratio()
        mantissa, scale = self._scale
        whole = self._options.skew_bps * _STEPS_PER_BPS
        return min(max(whole * sold * POWERS_OF_TEN[scale] // (denominator * mantissa), -whole), whole)


class RandomWalk:
    """Price source `random_walk`: pseudo-random prices from a seed."""

    def __init__(self, options: Mapping[str, Any], context: SourceContext) -> None:
        read = read_options(WalkOptions, options, context)
        self._interval_s = read.interval_ms / 1_000
        self._context = context
        self._walks: dict[str, Walk] = {}
        for pair_id, pair_options in read.pairs.items():
            inner = msgspec.structs.replace(context, field=f"{context.field}.pairs.{pair_id}")
            pair = context.pairs.get(pair_id)
            if pair is None:
                raise ConfigError(inner.field, "is no pair of this chain")
            random = Random(f"{read.seed}:{pair_id}")  # noqa: S311
            self._walks[pair_id] = Walk(
                read_options(PairOptions, pair_options, inner), pair.base_decimals, random, inner.field
            )

    async def updates(self) -> AsyncGenerator[dict[str, PriceGrid], None]:
        """Yield the price grids of all pairs, at once and then every `interval_ms`."""
        while True:
            yield {
                pair_id: walk.grid(self._context.exposure(pair_id)) for pair_id, walk in self._walks.items()
            }
            await trio.sleep(self._interval_s)
            for walk in self._walks.values():
                walk.step()


def _amounts(options: PairOptions, base_decimals: int, field: str) -> list[str]:
    """List the base amounts of the price levels, from the best level on, the same for bids and asks.

    The first amount is the option `size`; each further amount is `growth_percent` larger than the amount
    before. Amounts are rounded down to 8 decimals, or to the token's decimals if these are fewer.

    Args:
        field: dotted name of the options in errors.
    """
    digits = min(base_decimals, _BASE_DECIMALS_MAX)
    size = rescale_down(*_decimal(options.size, f"{field}.size"), digits)
    if size == 0:
        raise ConfigError(f"{field}.size", f"{options.size} is less than one unit of {digits} decimals")
    growth = 100 + options.growth_percent
    amounts = [size * growth**at // 100**at for at in range(options.levels)]
    if amounts[-1] >= POWERS_OF_TEN[DECIMAL_WHOLE_DIGITS_MAX]:
        raise ConfigError(
            f"{field}.growth_percent", "the last level grows beyond the largest amount of a price grid"
        )
    return [_text(amount, digits) for amount in amounts]


def _text(units: int, decimals: int) -> str:
    """Format `units` of 10^-`decimals` as a decimal that keeps its trailing zeros, so that columns align."""
    whole, fraction = divmod(units, POWERS_OF_TEN[decimals])
    return f"{whole}.{fraction:0{decimals}}" if decimals else str(whole)


def _decimal(text: str, field: str) -> tuple[int, int]:
    try:
        return parse_decimal(text, field)
    except InvalidInput as error:
        raise ConfigError(field, f"expected {error.expected}, got {text!r}") from None
