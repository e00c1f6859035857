"""Amounts that a program gives: exact in every form, and refused with the parameter's name."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import ConfigError
from cambist.engine.trader.client.public.amounts import TokenAmount, decimal_text, limit_price, raw_units
from cambist.engine.trader.client.terms import TradedToken

WETH = TradedToken(b"\x01" * 20, "WETH", 18)
USDC = TradedToken(b"\x02" * 20, "USDC", 6)


@given(st.integers(1, 2**256 - 1), st.integers(0, 36))
def test_an_amount_comes_back_from_its_decimal_and_its_text(raw: int, decimals: int) -> None:
    token = TradedToken(b"\x03" * 20, "T", decimals)
    amount = TokenAmount(raw, token)
    if len(str(raw // 10**decimals)) <= 36:
        assert raw_units(amount.whole, token, "amount") == raw
        assert raw_units(str(amount).removesuffix(" T"), token, "amount") == raw


@pytest.mark.parametrize(
    ("value", "raw"), [(2, 2 * 10**6), ("1.50", 1_500_000), (Decimal("1E+2"), 10**8), ("0.000001", 1)]
)
def test_whole_tokens_of_any_kind_are_the_same_units(value: Any, raw: int) -> None:
    assert raw_units(value, USDC, "amount") == raw


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (1.0, "limit: expected an int, a str or a Decimal, got float 1.0"),
        (None, "limit: expected an int, a str or a Decimal, got NoneType None"),
        (False, "limit: expected an int, a str or a Decimal, got bool False"),
        (-1, "limit: expected "),
        ("", "limit: expected "),
        ("1e3", "limit: expected "),
        (Decimal("Infinity"), "limit: expected "),
        ("0.0000001", "limit: USDC has 6 decimals, got 0.0000001"),
        (0, "limit: is zero"),
        (10**36, "limit: expected "),
    ],
)
def test_a_wrong_amount_names_its_parameter(value: Any, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        raw_units(value, USDC, "limit")
    assert error.value.detail.startswith(says)


def test_a_price_is_exact_and_above_zero() -> None:
    price = limit_price(Decimal("0.000000000000000001"), "price")
    assert (price.mantissa, price.scale) == (1, 18)
    assert decimal_text(Decimal("1E-7"), "price") == "0.0000001"
    with pytest.raises(ConfigError, match="price: is zero"):
        limit_price(0, "price")


def test_an_amount_reads_as_people_write_it() -> None:
    assert str(TokenAmount(1_500_000_000_000_000_000, WETH)) == "1.5 WETH"
    assert TokenAmount(10**18, WETH).whole == 1
