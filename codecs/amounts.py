"""Amounts and prices: text outside, exact integers inside, no float between.

- A raw amount is an `int` of a token's smallest units, from a string of 1 to 78 ASCII digits, at most
  2^256 - 1: no sign, no exponent, no space, no underscore.
- A decimal (prices, level sizes, USD values) is a pair (mantissa, scale), value = mantissa / 10^scale, from
  digits with at most one point between digits: at most 36 digits before it and 36 after; no sign, no
  exponent, no NaN.
- A token amount given as a decimal and finer than the token's units is floored, never rounded up.

A column of decimals (the prices of a book's side, or its amounts) is read as a whole: a pass of C over the
joined texts instead of a call for each. What that does not take is read one by one, so that nothing is taken
or refused differently, and a refusal has a name.

Source: document 1, "Resources" (raw units); document 3, price grid; design, "Amounts".
"""

from collections.abc import Callable, Sequence
from operator import mul

import msgspec

from ..config import limits
from ..config.errors import InvalidInput

POWERS_OF_TEN: tuple[int, ...] = tuple(
    10**exponent for exponent in range(2 * limits.DECIMAL_FRACTION_DIGITS_MAX + 1)
)

_DECIMAL_CHARS_MAX = limits.DECIMAL_WHOLE_DIGITS_MAX + 1 + limits.DECIMAL_FRACTION_DIGITS_MAX
_SHORT_CHARS_MAX = min(limits.DECIMAL_WHOLE_DIGITS_MAX, limits.DECIMAL_FRACTION_DIGITS_MAX)
_decode_integers = msgspec.json.Decoder(list[int]).decode
_AMOUNT_EXPECTED = f"a string of 1 to {limits.AMOUNT_DIGITS_MAX} digits, at most 2^256 - 1"
_DECIMAL_EXPECTED = (
    f"a decimal string: 1 to {limits.DECIMAL_WHOLE_DIGITS_MAX} digits, "
    f"then at most {limits.DECIMAL_FRACTION_DIGITS_MAX} after a point"
)


def parse_amount(text: object, field: str = "amount") -> int:
    """A raw amount.

    Args:
        text: digits.
        field: named in the error.

    Raises:
        InvalidInput: anything else than 1 to 78 digits of at most 2^256 - 1; a JSON number too.
    """
    if type(text) is str and len(text) <= limits.AMOUNT_DIGITS_MAX and text.isdigit() and text.isascii():
        amount = int(text)
        if amount <= limits.UINT256_MAX:
            return amount
    raise InvalidInput(field=field, expected=_AMOUNT_EXPECTED, got=text)


def parse_positive_amount(text: object, field: str = "amount") -> int:
    """As `parse_amount`, and zero is refused."""
    amount = parse_amount(text, field)
    if amount == 0:
        raise InvalidInput(field=field, expected="an amount above zero", got=text)
    return amount


def parse_decimal(text: object, field: str = "decimal") -> tuple[int, int]:
    """(mantissa, scale) of a decimal string, exactly; the scale is the number of its fraction digits.

    Raises:
        InvalidInput: not such a string.
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


def parse_decimals(texts: Sequence[str], field: Callable[[int], str]) -> tuple[list[int], int]:
    """(mantissas, scale) of a column: exactly `parse_decimal` of each, all at the scale of the finest.

    Args:
        texts: decimal strings, at least one.
        field: the name in errors of the text at an index.

    Raises:
        InvalidInput: one of them is not such a string.
    """
    try:
        return _parse_column(texts)
    except (ValueError, TypeError):  # malformed, or too long to be sure of in one pass
        parsed = [parse_decimal(text, field(at)) for at, text in enumerate(texts)]
    return _at_finest([mantissa for mantissa, _ in parsed], [scale for _, scale in parsed])


def _parse_column(texts: Sequence[str]) -> tuple[list[int], int]:
    """As `parse_decimals`, in passes of C over the joined texts.

    Raises:
        ValueError, TypeError: they have to be read one by one.
    """
    joined = ",".join(texts)
    shape = joined.encode().translate(None, b"0123456789")
    commas, points = shape.count(b","), shape.count(b".")
    if (
        commas != len(texts) - 1  # one inside a text
        or commas + points != len(shape)  # something that is no digit
        or not joined
        or ",." in joined
        or joined.startswith(".")
        or max(map(len, texts)) > _SHORT_CHARS_MAX
    ):
        raise ValueError
    digits = joined.replace(".", "")
    if digits.startswith("0") or ",0" in digits:  # JSON has no leading zeros
        mantissas = [*map(int, digits.split(","))]
    else:
        mantissas = _decode_integers(f"[{digits}]")
    if points == len(texts):
        first = texts[0]
        point = first.find(".") - len(first)  # counted from the end
        if point < -1 and _all_have(".", point, texts):  # as many decimals in each: the usual feed
            return mantissas, -1 - point
    scales = [len(text.partition(".")[2]) for text in texts]
    if points != len(texts) - scales.count(0):  # two points in one text, or nothing after one
        raise ValueError
    return _at_finest(mantissas, scales)


def _all_have(char: str, place: int, texts: Sequence[str]) -> bool:
    try:
        return [text[place] for text in texts].count(char) == len(texts)
    except IndexError:  # a shorter text
        return False


def _at_finest(mantissas: list[int], scales: list[int]) -> tuple[list[int], int]:
    """All at the largest of their scales, and that scale."""
    finest = max(scales)
    factors = POWERS_OF_TEN[finest::-1]
    return [*map(mul, mantissas, map(factors.__getitem__, scales))], finest


def rescale_down(mantissa: int, scale: int, to_scale: int) -> int:
    """floor(mantissa * 10^(to_scale - scale)): the same value in units of 10^-to_scale.

    Exact where to_scale >= scale. Scales are 0 to 72; beyond is a programmer's error (IndexError), never a
    silently wrong power.
    """
    if to_scale >= scale:
        return mantissa * POWERS_OF_TEN[to_scale - scale]
    return mantissa // POWERS_OF_TEN[scale - to_scale]


def parse_units(text: object, decimals: int, field: str = "amount") -> int:
    """Raw units of a token amount given as a decimal string, floored to the token's units.

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
    """The exact decimal string of `amount` units of 10^-decimals, without trailing zeros: "1.5", "0"."""
    if decimals == 0:
        return str(amount)
    whole, fraction = divmod(amount, 10**decimals)
    digits = f"{fraction:0{decimals}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
