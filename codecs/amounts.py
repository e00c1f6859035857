"""Parse and format amounts and prices: decimal text outside, exact integers inside, never a float.

- A raw amount is an `int` of a token's smallest units, from a string of 1 to 78 ASCII digits, at most
  2^256 - 1: no sign, no exponent, no space, no underscore.
- A decimal (prices, level sizes, USD values) is a pair (mantissa, scale), value = mantissa / 10^scale, from
  digits with at most one point between digits: at most 36 digits before it and 36 after; no sign, no
  exponent, no NaN.
- A token amount given as a decimal and finer than the token's units is floored, never rounded up.
- A maker's decimal may also be what a language prints for the number: with an exponent, a sign of plus, an
  empty side of the point, or more than 36 digits after it, which are rounded.

A column of decimals (the prices or the amounts of one side of a book) is parsed as a whole: one C call over
the joined texts replaces a Python call per text. If that fails, the texts are parsed one by one, as makers'
decimals, and an error names the text at fault.

Source: spec 1.4, 3.4; ARCHITECTURE.md, "Amounts".
Choice: Prices and amounts of makers may have exponents (`1e-7` of JavaScript, `1E-7` of Python and Java,
    `1e-07` of Go, `0.1e-6` of Ruby), and any number of decimals: a bid's price and an amount are rounded down
    to 36 of them, an ask's price up.
"""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import mul

import msgspec

from ..config import limits
from ..config.errors import InvalidInput

POWERS_OF_TEN: tuple[int, ...] = tuple(
    10**exponent for exponent in range(2 * limits.DECIMAL_FRACTION_DIGITS_MAX + 1)
)

_DECIMAL_CHARS_MAX = limits.DECIMAL_WHOLE_DIGITS_MAX + 1 + limits.DECIMAL_FRACTION_DIGITS_MAX
_MASK_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)
_SCALE_OF_SHAPE = {  # the shape of every valid decimal, each digit masked as 0
    b"0" * whole + (b"." + b"0" * scale if scale else b""): scale
    for whole in range(1, limits.DECIMAL_WHOLE_DIGITS_MAX + 1)
    for scale in range(limits.DECIMAL_FRACTION_DIGITS_MAX + 1)
}
_decode_integers = msgspec.json.Decoder(list[int]).decode
_AMOUNT_EXPECTED = f"a string of 1 to {limits.AMOUNT_DIGITS_MAX} digits, at most 2^256 - 1"
_PRINTED = re.compile(
    r"(?:\+|-(?=[0.]+(?:[eE]|\Z)))?([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,4}))?", re.ASCII
)
_PRINTED_CHARS_MAX = 400  # more than a 64-bit float has in full
_DECIMAL_EXPECTED = (
    f"a decimal string: 1 to {limits.DECIMAL_WHOLE_DIGITS_MAX} digits, "
    f"then at most {limits.DECIMAL_FRACTION_DIGITS_MAX} after a point"
)


def parse_amount(text: object, field: str = "amount") -> int:
    """Parse a raw amount, an integer number of a token's smallest units, from its decimal digits.

    Args:
        text: 1 to 78 digits.
        field: named in the error.

    Raises:
        InvalidInput: not a string of 1 to 78 digits (a JSON number, for example), or above 2^256 - 1.
    """
    if type(text) is str and len(text) <= limits.AMOUNT_DIGITS_MAX and text.isdigit() and text.isascii():
        amount = int(text)
        if amount <= limits.UINT256_MAX:
            return amount
    raise InvalidInput(field=field, expected=_AMOUNT_EXPECTED, got=text)


def parse_positive_amount(text: object, field: str = "amount") -> int:
    """Parse a raw amount as `parse_amount` does, and refuse zero."""
    amount = parse_amount(text, field)
    if amount == 0:
        raise InvalidInput(field=field, expected="an amount above zero", got=text)
    return amount


def parse_decimal(text: object, field: str = "decimal") -> tuple[int, int]:
    """Parse a decimal string exactly to (mantissa, scale); the scale is its number of fraction digits.

    Raises:
        InvalidInput: the text is not digits with at most one point between digits, or has over 36 digits
            before or after the point.
    """
    if type(text) is str and len(text) <= _DECIMAL_CHARS_MAX:
        whole, point, fraction = text.partition(".")
        digits = whole + fraction
        if (
            digits.isdigit()
            and digits.isascii()
            and 0 < len(whole) <= limits.DECIMAL_WHOLE_DIGITS_MAX
            and len(fraction) <= limits.DECIMAL_FRACTION_DIGITS_MAX
            and (fraction or not point)
        ):
            return int(digits), len(fraction)
    raise InvalidInput(field=field, expected=_DECIMAL_EXPECTED, got=text)


def parse_printed(text: object, field: str = "decimal", *, up: bool = False) -> tuple[int, int]:
    """Parse a decimal as programming languages print it to (mantissa, scale), with a scale of 0 to 36.

    Args:
        up: whether digits beyond 36 after the point are rounded up; otherwise they are cut off.

    Raises:
        InvalidInput: the text is no such decimal, is below zero, or has over 36 digits before the point.
    """
    found = _PRINTED.fullmatch(text) if isinstance(text, str) and len(text) <= _PRINTED_CHARS_MAX else None
    digits = (found[1] + (found[2] or "")) if found else ""
    if found and digits:
        mantissa, scale = int(digits), len(found[2] or "") - int(found[3] or 0)
        if not mantissa:
            return 0, min(max(scale, 0), limits.DECIMAL_FRACTION_DIGITS_MAX)
        if len(str(mantissa)) - scale <= limits.DECIMAL_WHOLE_DIGITS_MAX:
            if scale <= 0:
                return int(mantissa * 10**-scale), 0
            finer = scale - limits.DECIMAL_FRACTION_DIGITS_MAX
            if finer <= 0:
                return mantissa, scale
            rest = mantissa if not up else mantissa + 10**finer - 1
            return int(rest // 10**finer), limits.DECIMAL_FRACTION_DIGITS_MAX
    raise InvalidInput(field=field, expected=_DECIMAL_EXPECTED, got=text)


def plain_decimal(text: str, *, up: bool = False) -> str:
    """Write a decimal that `parse_printed` takes in plain digits, with at most 36 of them after the point."""
    return format_units(*parse_printed(text, up=up))


def parse_decimals(
    texts: Sequence[str], field: Callable[[int], str], scale_min: int = 0, *, up: bool = False
) -> tuple[list[int], int]:
    """Parse decimal strings to (mantissas, common scale): value = mantissa / 10^scale.

    The accepted form of a string is that of `parse_printed`.

    Args:
        texts: decimal strings, at least one.
        field: index of a text -> the text's name in errors.
        scale_min: the least scale of the result.
        up: whether digits beyond 36 after the point are rounded up; otherwise they are cut off.

    Raises:
        InvalidInput: a text is no decimal.
    """
    try:
        mantissas, scales = _parse_column(texts)
    except (LookupError, TypeError, ValueError):  # a text is unusual, or no decimal
        parsed = [parse_printed(text, field(at), up=up) for at, text in enumerate(texts)]
        mantissas, scales = [mantissa for mantissa, _ in parsed], [scale for _, scale in parsed]
    finest = max(scales)
    scale = max(finest, scale_min)
    if scales.count(finest) < len(scales):
        factors = POWERS_OF_TEN[scale::-1]  # factors[s] is 10^(scale - s), for a text of scale s
        return [*map(mul, mantissas, map(factors.__getitem__, scales))], scale
    if finest < scale:
        factor = POWERS_OF_TEN[scale - finest]
        return [mantissa * factor for mantissa in mantissas], scale
    return mantissas, scale  # equally many decimals in each text: the usual feed


def _parse_column(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Parse decimals to (mantissas, scales), one of each per text, with C functions over all texts at once.

    Raises:
        LookupError, TypeError, ValueError: a text is no decimal.
    """
    joined = ",".join(texts)
    shapes = joined.encode().translate(_MASK_DIGITS).split(b",")
    scales = [*map(_SCALE_OF_SHAPE.__getitem__, shapes)]
    if len(scales) != len(texts):
        raise ValueError("a comma inside a text")
    digits = joined.replace(".", "")
    if digits.startswith("0") or ",0" in digits:  # JSON has no leading zeros
        return [*map(int, digits.split(","))], scales
    return _decode_integers(f"[{digits}]"), scales


def rescale_down(mantissa: int, scale: int, to_scale: int) -> int:
    """Convert a mantissa to units of 10^-to_scale: floor(mantissa * 10^(to_scale - scale)).

    The result is exact for to_scale >= scale. The two scales differ by at most 72; a larger difference is a
    programmer's error and raises IndexError.

    Args:
        mantissa: the value in units of 10^-scale.
    """
    if to_scale >= scale:
        return mantissa * POWERS_OF_TEN[to_scale - scale]
    return mantissa // POWERS_OF_TEN[scale - to_scale]


def parse_units(text: object, decimals: int, field: str = "amount") -> int:
    """Convert a token amount from a decimal string to raw units, rounded down.

    Args:
        text: e.g. "1.5".
        decimals: the token's decimals, 0 to 36.

    Raises:
        InvalidInput: not a decimal string, or above 2^256 - 1 units.
    """
    mantissa, scale = parse_decimal(text, field)
    amount = rescale_down(mantissa, scale, decimals)
    if amount > limits.UINT256_MAX:
        raise InvalidInput(field=field, expected="at most 2^256 - 1 units", got=text)
    return amount


def format_units(amount: int, decimals: int) -> str:
    """Format `amount` units of 10^-decimals as an exact decimal without trailing zeros: "1.5", "0"."""
    if decimals == 0:
        return str(amount)
    whole, fraction = divmod(amount, 10**decimals)
    digits = f"{fraction:0{decimals}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def format_usd(value: Decimal | None) -> str:
    """Format a value in US dollars with ten decimals; None, an unknown value, gives "0"."""
    return "0" if value is None else f"{value:.10f}"
