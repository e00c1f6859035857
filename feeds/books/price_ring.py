"""Ring of a token's latest prices, sampled at equal intervals, and the points of a pair from two rings. Pure.

    slot      number of an interval since the Unix epoch; a ring keeps the last `samples` slots
    value     floor(price x 10^exponent) as 64 bits; 0 where no price was known
    exponent  one for the whole ring, so that a price has about 14 digits; a price that outgrows 64 bits, or
              that has fallen below 9 digits, changes it for all values

The price of a pair at a slot is the ratio of its tokens' values, so that n tokens give the prices of n^2
pairs. A point spans several slots: its first, highest, lowest and last price. Prices round down.
"""

from array import array
from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from ...codecs.messages.resource_messages import PricePoint
from ...config.limits import DECIMAL_FRACTION_DIGITS_MAX

_VALUE_MIN, _VALUE_MAX = 10**8, 2**64 - 1  # of a value; another one has the exponent chosen anew
_DIGITS = 14  # of a new ring's first value, or one more
_SHOWN_DIGITS = 9  # of the last price of an answer, or one more


class PriceRing:
    """The last prices of one token.

    Args:
        samples: number of slots that the ring keeps.

    Attributes:
        exponent: values are prices x 10^exponent.
    """

    __slots__ = ("_last", "_values", "exponent")

    def __init__(self, samples: int) -> None:
        self._values = array("Q", bytes(8 * samples))
        self._last = -1
        self.exponent = 0

    def put(self, slot: int, price: Fraction | None) -> None:
        """Set the price of a slot, which becomes the latest one; slots that were passed over have no price.

        Args:
            slot: at least the latest slot; an earlier slot is ignored.
            price: above zero; None if unknown.
        """
        if slot < self._last:
            return
        size = len(self._values)
        for passed in range(max(self._last + 1, slot - size + 1), slot):
            self._values[passed % size] = 0
        self._last = slot
        self._values[slot % size] = 0  # of a whole turn ago: `_scaled` compares the values that stay
        self._values[slot % size] = self._scaled(price)

    def values(self, first: int, count: int) -> "array[int]":
        """Copy the values of `count` slots from the slot `first` on; 0 for slots that the ring lacks.

        Args:
            count: at most the number of slots that the ring keeps.
        """
        size = len(self._values)
        known = range(max(first, self._last - size + 1, 0), min(first + count, self._last + 1))
        if not known:
            return array("Q", bytes(8 * count))
        at, until = known[0] % size, known[-1] % size + 1
        found = self._values[at:until] if at < until else self._values[at:] + self._values[:until]
        before, after = known[0] - first, first + count - known[-1] - 1
        return array("Q", bytes(8 * before)) + found + array("Q", bytes(8 * after))

    def _scaled(self, price: Fraction | None) -> int:
        """Scale a price to a value, at least 1; choose the exponent anew if the value does not fit."""
        if not price or price < 0:
            return 0
        value = _floored(price, self.exponent)
        if not _VALUE_MIN <= value <= _VALUE_MAX:
            self._choose(price)
            value = _floored(price, self.exponent)
        return max(value, 1)

    def _choose(self, price: Fraction) -> None:
        """Choose the exponent by the largest of a new price and the ring's values."""
        exponent, largest = _exponent_for(price, _DIGITS), max(self._values)
        if largest and exponent > self.exponent:  # a fallen price: the largest value must still fit
            exponent = max(self.exponent, min(exponent, self.exponent + _DIGITS - len(str(largest))))
        if largest and exponent != self.exponent:
            up, down = 10 ** max(exponent - self.exponent, 0), 10 ** max(self.exponent - exponent, 0)
            self._values = array("Q", [value and max(value * up // down, 1) for value in self._values])
        self.exponent = exponent


class PairPrices(Struct, frozen=True):
    """Values of a pair's two tokens at the same slots.

    Attributes:
        first: the first slot.
        bases, quotes: values of the base and of the quote token, as many of one as of the other.
        exponent: the price of the base in quote tokens is base / quote x 10^exponent.
    """

    first: int
    bases: Sequence[int]
    quotes: Sequence[int]
    exponent: int


def pair_prices(base: PriceRing, quote: PriceRing, first: int, count: int) -> PairPrices:
    """Copy the values of `count` slots of two tokens, from the slot `first` on."""
    return PairPrices(
        first, base.values(first, count), quote.values(first, count), quote.exponent - base.exponent
    )


def price_points(prices: PairPrices, slots: int, slot_s: int) -> Iterator[PricePoint | None]:
    """Yield the point of each span of `slots` slots, the earliest first; None for a span without a price.

    All prices have the same number of decimals, by which the last price has nine or ten significant digits;
    zeros at the end are left out. A price whose slot lacks one of the two tokens does not count.

    Args:
        slots: number of slots of a point.
        slot_s: seconds of a slot.
    """
    last = next(
        (pair for pair in zip(reversed(prices.bases), reversed(prices.quotes), strict=True) if all(pair)),
        None,
    )
    decimals = 0
    if last is not None:
        decimals = _exponent_for(Fraction(*last), _SHOWN_DIGITS) - prices.exponent
        decimals = min(max(decimals, 0), DECIMAL_FRACTION_DIGITS_MAX)
    shift = prices.exponent + decimals
    up, down = 10 ** max(shift, 0), 10 ** max(-shift, 0)
    for at in range(0, len(prices.bases), slots):
        pairs = zip(prices.bases[at : at + slots], prices.quotes[at : at + slots], strict=True)
        found = [base * up // (quote * down) for base, quote in pairs if base and quote]
        if not found:
            yield None
            continue
        start_s = (prices.first + at) * slot_s
        if len(found) == 1:
            text = _text(found[0], decimals)
            yield start_s, text, text, text, text
        else:
            ends = found[0], max(found), min(found), found[-1]
            opened, high, low, closed = [_text(value, decimals) for value in ends]
            yield start_s, opened, high, low, closed


def _floored(price: Fraction, exponent: int) -> int:
    """Compute floor(price x 10^exponent)."""
    numerator, denominator = price.as_integer_ratio()
    up: int = 10 ** max(exponent, 0)
    down: int = 10 ** max(-exponent, 0)
    return numerator * up // (denominator * down)


def _exponent_for(value: Fraction, digits: int) -> int:
    """Find an exponent by which value x 10^exponent has `digits` digits before its point, or one more."""
    numerator, denominator = value.as_integer_ratio()
    return digits - len(str(numerator)) + len(str(denominator))


def _text(value: int, decimals: int) -> str:
    """Format value / 10^decimals as plain decimal text, without zeros at its end."""
    if not decimals:
        return str(value)
    digits = str(value).zfill(decimals + 1)
    return f"{digits[:-decimals]}.{digits[-decimals:]}".rstrip("0").rstrip(".")
