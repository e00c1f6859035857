"""Amounts, decimals and rounding: exact, or refused by name."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.amounts import (
    format_units,
    parse_amount,
    parse_decimal,
    parse_decimals,
    parse_positive_amount,
    parse_printed,
    parse_units,
    rescale_down,
)
from cambist.codecs.rounding import div_down, div_up, mul_div_down, mul_div_up
from cambist.config.errors import InvalidInput

UINT256_MAX = 2**256 - 1


@pytest.mark.parametrize(
    ("text", "amount"),
    [("0", 0), ("1", 1), ("007", 7), (str(UINT256_MAX), UINT256_MAX), ("0" * 78, 0)],
)
def test_amounts(text: str, amount: int) -> None:
    assert parse_amount(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "", " 1", "1 ", "+1", "-1", "1e3", "1.0", "0x1", "1_000", "١٢", "²", "1\n", "NaN", "Infinity",
        str(UINT256_MAX + 1), "0" * 79, "9" * 10_000_000, 5, 5.0, None, True, b"5", ["5"], "\ud800",
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_amount_is_refused_by_name(text: object) -> None:
    with pytest.raises(InvalidInput, match=r"srcAmount: expected a string of 1 to 78 digits") as refusal:
        parse_amount(text, "srcAmount")
    assert len(refusal.value.detail) < 250


def test_zero_is_no_positive_amount() -> None:
    assert parse_positive_amount("1") == 1
    with pytest.raises(InvalidInput, match="above zero"):
        parse_positive_amount("0")


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("0", (0, 0)),
        ("1540", (1540, 0)),
        ("0.5", (5, 1)),
        ("1.50", (150, 2)),
        ("9" * 36 + "." + "9" * 36, (10**72 - 1, 36)),
        ("0." + "0" * 35 + "1", (1, 36)),
    ],
)
def test_decimals(text: str, decimal: tuple[int, int]) -> None:
    assert parse_decimal(text) == decimal


@pytest.mark.parametrize(
    "text",
    [
        "", ".", ".5", "5.", "1.2.3", "-1", "+1", "1e5", "1E5", "NaN", "inf", "1,5", " 1", "1 ", "١.٢",
        "1._5", "9" * 37, "1." + "0" * 37, "9" * 10_000_000, 1, 1.5, None, True, "0x1", "1.\n", "\ud800.1",
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_decimal_is_refused_by_name(text: object) -> None:
    with pytest.raises(InvalidInput, match=r"price: expected a decimal string"):
        parse_decimal(text, "price")


@pytest.mark.parametrize(
    ("text", "decimals", "units"),
    [
        ("1.5", 18, 15 * 10**17),
        ("1.5", 0, 1),
        ("0.0000001", 6, 0),
        ("1.9999999", 6, 1_999_999),
        ("2270", 6, 2_270_000_000),
    ],
)
def test_units_finer_than_the_token_are_floored(text: str, decimals: int, units: int) -> None:
    assert parse_units(text, decimals) == units


def test_units_above_uint256_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 2\\^256 - 1 units"):
        parse_units("9" * 36, 36 + 10)


@pytest.mark.parametrize("scale", [-1, 73, 200])
def test_a_scale_out_of_range_never_gives_a_wrong_power(scale: int) -> None:
    with pytest.raises((IndexError, ValueError)):
        rescale_down(5, 0, 200) if scale == 200 else rescale_down(5, scale, 0 if scale > 0 else 72)


decimals_text = st.from_regex(r"[0-9]{1,36}(\.[0-9]{1,36})?", fullmatch=True)


@given(decimals_text)
def test_a_decimal_is_exact(text: str) -> None:
    mantissa, scale = parse_decimal(text)
    assert Fraction(mantissa, 10**scale) == Fraction(text)


@given(decimals_text, st.integers(0, 36))
def test_rescaling_floors(text: str, to_scale: int) -> None:
    mantissa, scale = parse_decimal(text)
    assert rescale_down(mantissa, scale, to_scale) == int(Fraction(text) * 10**to_scale)


@given(st.integers(0, UINT256_MAX), st.integers(0, 36))
def test_units_round_trip(amount: int, decimals: int) -> None:
    text = format_units(amount, decimals)
    assert Fraction(text) == Fraction(amount, 10**decimals)
    assert text == "0" or not (text.startswith("0") and not text.startswith("0."))
    assert "." not in text or not text.endswith("0")
    if len(text.partition(".")[0]) <= 36:
        assert parse_units(text, decimals) == amount


PRINTED = {
    "1e-7": "0.0000001",  # JavaScript: String(1e-7)
    "1.5e-9": "0.0000000015",
    "1e+21": "1" + "0" * 21,  # JavaScript: String(1e21)
    "1E-7": "0.0000001",  # Python: str(Decimal("0.0000001"))
    "1.50E-8": "0.0000000150",
    "0E-18": "0.000000000000000000",  # Python: str(Decimal(0) * Decimal("1e-18")); Java: BigDecimal.toString
    "1E+3": "1000",  # Java: new BigDecimal("1000").stripTrailingZeros().toString()
    "1e-07": "0.0000001",  # Go: big.Float.String, C: printf("%g")
    "1.234568e+09": "1234568000",
    "0.1e-6": "0.0000001",  # Ruby: BigDecimal("0.0000001").to_s
    "0.15e1": "1.5",
    ".5": "0.5",  # bc, and bcmath of old versions of PHP
    "5.": "5",  # Python: numpy.format_float_positional(5.0)
    "+5": "5",
    "-0": "0",  # C: printf("%g", -0.0)
    "-0.0": "0",
    "-0e-8": "0",
    "2270.0": "2270",
    "1e36": None,
    "1e9999": None,
    "-1e-7": None,
    "-0.01": None,
    "-.5": None,
    "1e": None,
    "e5": None,
    ".": None,
    "": None,
    "+": None,
    "1e-10000": None,
    "1e1.5": None,
    "Infinity": None,
    "NaN": None,
    "1,5": None,
    "1 ": None,
    "0x1": None,
    "1/3": None,
    "\u0661": None,
    "1" * 401: None,
}
"""Decimals as languages print them -> the same in plain digits, or None where it is refused."""


@pytest.mark.parametrize(("text", "plain"), PRINTED.items(), ids=lambda text: ascii(text)[:20])
def test_decimals_as_languages_print_them(text: str, plain: str | None) -> None:
    if plain is None:
        with pytest.raises(InvalidInput, match=r"^Invalid input: \[1\]: expected a decimal string"):
            parse_decimals(["1", text], "[{}]".format)
        return
    mantissa, scale = parse_printed(text)
    assert 0 <= scale <= 36
    assert Fraction(mantissa, 10**scale) == Fraction(plain)
    (_, mantissa), scale = parse_decimals(["1", text], "[{}]".format)
    assert Fraction(mantissa, 10**scale) == Fraction(plain)


@given(st.decimals(0, 10**30, allow_nan=False, allow_infinity=False) | st.floats(0, 1e30))
def test_what_python_prints_is_read_exactly_or_rounded_to_the_wanted_side(number: Decimal | float) -> None:
    exact = Fraction(str(number))
    (down, scale), (up, up_scale) = parse_printed(str(number)), parse_printed(str(number), up=True)
    assert Fraction(down, 10**scale) <= exact <= Fraction(up, 10**up_scale)
    assert Fraction(up, 10**up_scale) - Fraction(down, 10**scale) <= Fraction(1, 10**36)
    if scale < 36:
        assert Fraction(down, 10**scale) == exact


@given(st.text(max_size=90))
def test_any_text_is_a_value_or_our_refusal(text: str) -> None:
    for parse in (parse_amount, parse_decimal):
        try:
            parsed = parse(text)
        except InvalidInput:
            continue
        number = parsed if isinstance(parsed, int) else Decimal(parsed[0]).scaleb(-parsed[1])
        assert number >= 0


whole = st.integers(0, UINT256_MAX)
divisor = st.integers(1, UINT256_MAX)


@given(whole, whole, divisor)
def test_rounding_is_exact_and_one_unit_apart(number: int, factor: int, by: int) -> None:
    exact = Fraction(number * factor, by)
    down, up = mul_div_down(number, factor, by), mul_div_up(number, factor, by)
    assert down <= exact <= up
    assert up - down == (0 if exact.denominator == 1 else 1)
    assert (div_down(number, by), div_up(number, by)) == (
        mul_div_down(number, 1, by),
        mul_div_up(number, 1, by),
    )


def test_a_divisor_of_zero_is_a_programmers_error() -> None:
    with pytest.raises(ZeroDivisionError):
        div_up(1, 0)
    with pytest.raises(ZeroDivisionError):
        mul_div_down(1, 1, 0)
