"""The walk over a ladder: worked examples, and exactness against rational arithmetic."""

from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.amounts import parse_units
from cambist.config.errors import InvalidInput
from cambist.feeds.books.book import Ladder, build_ladder
from cambist.feeds.books.fill import base_paid, base_received, quote_paid, quote_received


def test_worked_examples(vectors: dict[str, Any]) -> None:
    for case in vectors["pricing"]["cases"]:
        buys = case["name"].startswith("buy")
        ladder = build_ladder([(price, amount) for price, amount in case["levels"]], 18, 6, rising=buys)
        walk = quote_paid if buys else quote_received
        outputs = [str(walk(ladder, parse_units(amount, 18)) or 0) for amount in case["amounts"]]
        assert outputs == case["outputs"], case["name"]


def exact_walk(levels: list[tuple[str, str]], base_decimals: int, amount: int) -> Fraction | None:
    """The quote value of raw base units, level by level, in whole quote tokens."""
    left, total = Fraction(amount, 10**base_decimals), Fraction(0)
    for price, size in levels:
        held = Fraction(floor(Fraction(size) * 10**base_decimals), 10**base_decimals)
        taken = min(left, held)
        total += taken * Fraction(price)
        left -= taken
    return None if left else total


def exact_inverse(levels: list[tuple[str, str]], base_decimals: int, quote: Fraction) -> Fraction | None:
    """The base that `quote` whole tokens buy on the inverted book: price 1 / p, amount p x a."""
    left, total = quote, Fraction(0)
    for price, size in levels:
        held = Fraction(floor(Fraction(size) * 10**base_decimals), 10**base_decimals) * Fraction(price)
        taken = min(left, held)
        total += taken / Fraction(price)
        left -= taken
    return None if left else total


decimal = st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,12})?", fullmatch=True)
positive = decimal.filter(lambda text: Fraction(text) > 0)


@st.composite
def ladders(draw: st.DrawFn) -> tuple[list[tuple[str, str]], Ladder, int, int]:
    base_decimals, quote_decimals = draw(st.sampled_from([0, 6, 8, 18])), draw(st.sampled_from([0, 6, 8, 18]))
    rising = draw(st.booleans())
    prices = sorted(draw(st.lists(positive, max_size=6)), key=Fraction, reverse=not rising)
    levels = [(price, draw(decimal)) for price in prices]
    ladder = build_ladder(levels, base_decimals, quote_decimals, rising=rising)
    return levels, ladder, base_decimals, quote_decimals


@given(ladders(), st.data())
def test_amounts_in_the_base_token(
    case: tuple[list[tuple[str, str]], Ladder, int, int], data: st.DataObject
) -> None:
    levels, ladder, base_decimals, quote_decimals = case
    depth = ladder.base_before[-1]
    amount = data.draw(st.integers(0, depth + 2) | st.sampled_from(ladder.base_before))
    exact = exact_walk(levels, base_decimals, amount)
    assert (exact is None) is (amount > depth)
    if exact is not None:
        assert quote_received(ladder, amount) == floor(exact * 10**quote_decimals)
        assert quote_paid(ladder, amount) == ceil(exact * 10**quote_decimals)
    else:
        assert quote_received(ladder, amount) is quote_paid(ladder, amount) is None


@given(ladders(), st.data())
def test_amounts_in_the_quote_token(
    case: tuple[list[tuple[str, str]], Ladder, int, int], data: st.DataObject
) -> None:
    levels, ladder, base_decimals, quote_decimals = case
    depth = ladder.quote_before[-1] // 10**ladder.quote_scale
    amount = data.draw(st.integers(0, depth + 2))
    exact = exact_inverse(levels, base_decimals, Fraction(amount, 10**quote_decimals))
    if exact is not None:
        assert base_received(ladder, amount) == floor(exact * 10**base_decimals)
        assert base_paid(ladder, amount) == ceil(exact * 10**base_decimals)
    else:
        assert base_received(ladder, amount) is base_paid(ladder, amount) is None


@pytest.mark.parametrize(
    ("levels", "rising", "said"),
    [
        ([("1", "x")], True, r"bids\[0\]\[1\]: expected a decimal string"),
        ([("1", "1"), ("1e", "1")], True, r"bids\[1\]\[0\]: expected a decimal string"),
        ([("0", "1")], True, r"bids\[0\]\[0\]: expected a price above zero"),
        ([("1", "1"), ("2", "1")], False, r"bids\[1\]\[0\]: expected best price first, got '2'"),
        ([("2", "1"), ("1.9", "1")], True, "best price first"),
    ],
)
def test_a_malformed_side_is_refused_by_level(levels: list[tuple[str, str]], rising: bool, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        build_ladder(levels, 18, 6, rising=rising, field="bids")


def test_an_empty_side_and_an_empty_level() -> None:
    empty = build_ladder([], 18, 6, rising=True)
    assert quote_paid(empty, 0) == base_received(empty, 0) == 0
    assert quote_paid(empty, 1) is base_received(empty, 1) is None
    ladder = build_ladder([("5", "0.0000001"), ("6", "1")], 6, 6, rising=True)
    assert base_received(ladder, 6) == 1
    assert quote_paid(ladder, 1) == 6
