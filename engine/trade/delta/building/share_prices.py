"""History of a vault's share price, and the annual return (APR) that it shows. Pure.

    share price at a block -> SharePrices.add: kept if STRATEGY_SAMPLE_S have passed since the last kept one
                           -> SharePrices.apr: growth from the oldest kept price to the latest, in a year

Source: interop.md 3, strategies; spec 1.22.3.
Choice: The APR is the growth of the share price over the time that the venue has seen, at most about a month,
    times a year over that time, in percent without compounding; null before a day, and after a restart.
Choice: `net` is the measured growth; `gross` adds the share of the yield that the vault keeps by the
    settings. A loss has no such share: both are the same.
"""

from collections import deque
from decimal import Decimal

from msgspec import Struct

from .....codecs.messages.delta_messages import Apr
from .....config import limits
from .....config.timeouts import STRATEGY_AGE_S_MIN, STRATEGY_SAMPLE_S

_YEAR_S = 365 * 86_400
_PERCENT_DECIMALS = 4
_SCALE = 100 * 10**_PERCENT_DECIMALS


class SharePrice(Struct, frozen=True, gc=False):
    """Assets of a vault, raw units, for a fixed number of its shares, at a block's time (Unix seconds)."""

    time_s: int
    assets: int


class SharePrices:
    """Share prices of one vault at blocks that the venue has seen, a bounded number of them.

    Args:
        fee_bps: share of the yield that the vault keeps, basis points.
    """

    def __init__(self, fee_bps: int) -> None:
        self._fee_bps = fee_bps
        self._kept: deque[SharePrice] = deque(maxlen=limits.STRATEGY_SAMPLES_MAX)
        self._last: SharePrice | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, price: SharePrice) -> None:
        """Add the share price at the latest block.

        Prices of later blocks, which a re-organisation has undone, are forgotten.
        """
        while self._kept and self._kept[-1].time_s >= price.time_s:
            self._kept.pop()
        if not self._kept or price.time_s - self._kept[-1].time_s >= STRATEGY_SAMPLE_S:
            self._kept.append(price)
        self._last = price

    def apr(self) -> Apr | None:
        """Compute the annual return, percent.

        None if the history is shorter than STRATEGY_AGE_S_MIN, or if the return is above
        STRATEGY_APR_PERCENT_MAX percent or below its negative.
        """
        if self._last is None or not self._kept:
            return None
        first, last = self._kept[0], self._last
        seconds = last.time_s - first.time_s
        if seconds < STRATEGY_AGE_S_MIN or not first.assets:
            return None
        net = (last.assets - first.assets) * _YEAR_S * _SCALE // (first.assets * seconds)
        if abs(net) > limits.STRATEGY_APR_PERCENT_MAX * 10**_PERCENT_DECIMALS:
            return None
        gross = net * limits.BPS_ONE // (limits.BPS_ONE - self._fee_bps) if net > 0 else net
        return Apr(_percent(gross), _percent(net))


def _percent(scaled: int) -> Decimal:
    return Decimal(scaled).scaleb(-_PERCENT_DECIMALS)
