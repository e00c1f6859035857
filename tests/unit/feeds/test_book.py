"""Books: one-sided, empty, crossed, unsorted and malformed grids; parts reused from the last book."""

from typing import Any

import pytest

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.errors import InvalidInput
from cambist.feeds.books.book import Book, build_book, build_ladder
from cambist.feeds.books.fill import base_paid, base_received, quote_paid, quote_received

BIDS = (("2500", "1"), ("2499.5", "2"))
ASKS = (("2501", "1"), ("2502.25", "2"))


def book_of(bids: Any, asks: Any, base_decimals: int = 18, quote_decimals: int = 6) -> Book:
    return build_book(PriceGrid(bids, asks), base_decimals, quote_decimals, field="prices.WETH/USDC")


def test_a_user_sells_into_bids_and_buys_from_asks() -> None:
    book = book_of(BIDS, ASKS)
    assert quote_received(book.bids, 2 * 10**18) == 2500_000_000 + 2499_500_000
    assert quote_paid(book.asks, 3 * 10**18) == 2501_000_000 + 2 * 2502_250_000
    assert base_received(book.asks, 2501_000_000) == 10**18
    assert base_paid(book.bids, 2500_000_000) == 10**18


def test_an_absent_or_empty_side_is_cleared_and_the_other_quotes() -> None:
    before = PriceGrid(BIDS, ASKS)
    previous = before, build_book(before, 18, 6)
    for grid in (PriceGrid(asks=ASKS), PriceGrid((), ASKS)):
        book = build_book(grid, 18, 6, previous=previous)
        assert book.bids.prices == ()
        assert quote_received(book.bids, 1) is None
        assert book.asks is previous[1].asks
    disabled = build_book(PriceGrid(), 18, 6, previous=previous)
    assert disabled.bids.prices == disabled.asks.prices == ()


def test_an_equal_side_is_taken_over_and_a_changed_one_is_not() -> None:
    before = PriceGrid(BIDS, ASKS)
    book = build_book(before, 18, 6)
    copied = tuple((str(price), str(amount)) for price, amount in BIDS)
    after = build_book(PriceGrid(copied, (("2503", "1"),)), 18, 6, previous=(before, book))
    assert after.bids is book.bids
    assert after.asks == build_ladder([("2503", "1")], 18, 6, rising=True)


def test_a_side_taken_over_may_still_cross_the_new_one() -> None:
    before = PriceGrid(BIDS, ASKS)
    with pytest.raises(
        InvalidInput, match=r"asks\[0\]\[0\]: expected a price above the best bid, 2500, got '2499'"
    ):
        build_book(PriceGrid(BIDS, (("2499", "1"),)), 18, 6, previous=(before, build_book(before, 18, 6)))


@pytest.mark.parametrize(
    ("bid", "ask", "crossed"),
    [
        ("1", "1", True),
        ("1", "1.000", True),
        ("1.000", "1", True),
        ("1.0000000000000000000000000001", "1", True),
        ("1", "1.0000000000000000000000000001", False),
        ("0.9999999999999999999999999999", "1", False),
        ("2", "1", True),
        ("0.1", "10000000000", False),
    ],
)
@pytest.mark.parametrize("decimals", [(18, 6), (6, 18), (0, 36), (36, 0)])
def test_crossed_and_locked_are_told_exactly_across_scales(
    bid: str, ask: str, crossed: bool, decimals: tuple[int, int]
) -> None:
    if crossed:
        with pytest.raises(
            InvalidInput, match=rf"prices\.WETH/USDC\.asks\[0\]\[0\]: .* best bid, {bid}, got"
        ):
            book_of(((bid, "1"),), ((ask, "1"),), *decimals)
    else:
        assert book_of(((bid, "1"),), ((ask, "1"),), *decimals).asks.prices


def test_prices_with_exponents_are_those_without() -> None:
    printed = PriceGrid((("1.5E+3", "1E-7"), ("1e3", ".5")), (("1.6e+03", "2."),))
    plain = PriceGrid((("1500", "0.0000001"), ("1000", "0.5")), (("1600", "2"),))
    assert build_book(printed, 18, 6) == build_book(plain, 18, 6)


def test_prices_that_are_too_fine_are_rounded_to_the_gain_of_the_maker() -> None:
    third, more = "0." + "3" * 40, "0." + "3" * 35 + "4"
    book = build_book(PriceGrid(((third, "1"),), ((third, "1"),)), 36, 36)
    assert book == build_book(PriceGrid((("0." + "3" * 36, "1"),), ((more, "1"),)), 36, 36)


@pytest.mark.parametrize(
    ("bids", "asks", "said"),
    [
        ((("1e", "1"),), (), r"prices\.WETH/USDC\.bids\[0\]\[0\]: expected a decimal string: .*, got '1e'"),
        ((), (("1", "1"), ("2", "-1")), r"prices\.WETH/USDC\.asks\[1\]\[1\]: expected a decimal string"),
        ((("2", "1"), ("0.00", "1")), (), r"bids\[1\]\[0\]: expected a price above zero, got '0\.00'"),
        ((("1", "1"), ("1.01", "1")), (), r"bids\[1\]\[0\]: expected best price first, got '1\.01'"),
        (
            (),
            (("3", "1"), ("4", "1"), ("3.9", "1")),
            r"asks\[2\]\[0\]: expected best price first, got '3\.9'",
        ),
        ((("1", "1,1"),), (), r"bids\[0\]\[1\]: expected a decimal string"),
        ((("1.1.1", "1.1"),), (), r"bids\[0\]\[0\]: expected a decimal string"),
        ((("1.5", "1"), (".", "1")), (), r"bids\[1\]\[0\]: expected a decimal string"),
        ((("1.5", "1"), ("5.", "1")), (), r"bids\[1\]\[0\]: expected best price first, got '5\.'"),
        ((("1e-40", "1"),), (), r"bids\[0\]\[0\]: expected a price above zero, got '1e-40'"),
        ((("1.5", "1"), ("", "1")), (), r"bids\[1\]\[0\]: expected a decimal string: .*, got ''"),
        ((("1.5", "1"), ("1.\u0665", "1")), (), r"bids\[1\]\[0\]: expected a decimal string"),
        ((("1.5", "1"), ("1" * 37, "1")), (), r"bids\[1\]\[0\]: expected a decimal string"),
        (((2.5, "1"),), (), r"bids\[0\]\[0\]: expected a decimal string: .*, got 2\.5"),
    ],
)
def test_a_bad_grid_is_refused_by_pair_side_and_level(bids: Any, asks: Any, said: str) -> None:
    for _ in range(2):  # nothing of a refusal is remembered
        with pytest.raises(InvalidInput, match=said):
            book_of(bids, asks)


def test_zero_amounts_quote_nothing_and_still_count_as_best() -> None:
    book = book_of((("2500", "0"), ("2499", "1")), (("2501", "0.0000000000000000001"), ("2502", "1")))
    assert quote_received(book.bids, 10**18) == 2499_000_000
    assert quote_paid(book.asks, 10**18) == 2502_000_000
    assert quote_received(book.bids, 10**18 + 1) is None
    with pytest.raises(InvalidInput, match="best bid, 2500, got '2500'"):
        book_of((("2500", "0"),), (("2500", "1"),))


def test_long_columns_and_long_texts_are_read_alike() -> None:
    levels = [(f"{2500 + at}.50", "1.25") for at in range(65)]
    long = build_ladder(levels, 18, 6, rising=True)
    short = build_ladder(levels[:-1], 18, 6, rising=True)
    assert long.prices[:-1] == short.prices
    assert long.base_before[:-1] == short.base_before
    with pytest.raises(InvalidInput, match=r"levels\[64\]\[0\]: expected a price above zero"):
        build_ladder([*levels[:-1], ("0", "1")], 18, 6, rising=True)
    exact = build_ladder([("1." + "0" * 36, "9" * 36 + "." + "9" * 36)], 36, 0, rising=True)
    assert exact.base_before[-1] == 10**72 - 1


def test_a_column_that_stays_is_taken_over() -> None:
    before = (("2500.5", "1.25"), ("2499", "0.0000001"))
    ladder = build_ladder(before, 6, 18, rising=False)
    moved = (("2501.123", "1.25"), ("2500", "0.0000001"))
    filled = (("2500.5", "0.25"), ("2499", "0.0000001"))
    shorter = before[:1]
    for levels in (moved, filled, shorter):
        after = build_ladder(levels, 6, 18, rising=False, previous=(before, ladder))
        assert after == build_ladder(levels, 6, 18, rising=False)
    after = build_ladder(filled, 6, 18, rising=False, previous=(before, ladder))
    assert after.prices is ladder.prices
    after = build_ladder(moved, 6, 18, rising=False, previous=(before, ladder))
    assert after.base_before is ladder.base_before


def test_texts_are_read_anew_for_another_side_and_other_tokens() -> None:
    """The same texts as bids, as asks, and for tokens of other decimals."""
    texts = [("5", "3"), ("4", "2")]
    assert build_ladder(texts, 18, 6, rising=False).base_before == (0, 3 * 10**18, 5 * 10**18)
    assert build_ladder(texts, 6, 18, rising=False).base_before == (0, 3 * 10**6, 5 * 10**6)
    assert build_ladder(texts, 6, 18, rising=False).prices == (5 * 10**12, 4 * 10**12)
    assert build_ladder(texts, 18, 18, rising=False).prices == (5, 4)
    with pytest.raises(InvalidInput, match="best price first"):
        build_ladder(texts, 18, 6, rising=True)
