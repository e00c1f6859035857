"""Worth by mid prices: which books count, and how far one maker can move it."""

from fractions import Fraction
from random import Random

import pytest

from cambist.feeds.books.mid_prices import MidPrices, median, ranked
from support.makers.live_books import DAI, ODD, ONE, USDC, WBTC, WETH, a_book, an_index

DOLLARS = {USDC: Fraction(1, ONE[USDC]), DAI: Fraction(1, ONE[DAI])}


def test_an_anchor_is_worth_what_is_said() -> None:
    assert MidPrices(an_index(), DOLLARS).worth(USDC) == Fraction(1, 10**6)


def test_the_mid_price_is_half_way_between_both_sides() -> None:
    index = an_index(a_book("alpha", WETH, USDC, bids="2499 1", asks="2502 1"))
    assert MidPrices(index, DOLLARS).worth(WETH) == Fraction(5_001, 2) / ONE[WETH]


def test_a_book_in_the_other_order_counts_the_same() -> None:
    index = an_index(a_book("alpha", USDC, WETH, bids="0.0004 1", asks="0.0006 1"))
    assert MidPrices(index, DOLLARS).worth(WETH) == Fraction(2_000, ONE[WETH])


def test_the_odd_one_of_three_makers_moves_nothing() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1"),
        a_book("beta", WETH, USDC, bids="2501 1", asks="2503 1"),
        a_book("gamma", WETH, USDC, bids="999999 1", asks="1000000 1", liquidity=10**12),
    )
    assert MidPrices(index, DOLLARS).worth(WETH) == Fraction(2_502, ONE[WETH])


def test_many_books_of_one_maker_count_once() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1"),
        a_book("beta", WETH, DAI, bids="2499 1", asks="2501 1"),
        a_book("gamma", WETH, USDC, bids="9 1", asks="11 1"),
        a_book("gamma", WETH, DAI, bids="9 1", asks="11 1"),
        a_book("gamma", USDC, WETH, bids="0.09 1", asks="0.11 1"),
    )
    assert MidPrices(index, DOLLARS).worth(WETH) == Fraction(2_500, ONE[WETH])


def test_what_is_remembered_of_a_book_ends_with_it() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1"),
        a_book("beta", WETH, USDC, bids="2599 1", asks="2601 1"),
    )
    prices = MidPrices(index, DOLLARS)
    assert prices.worth(WETH) == Fraction(2_550, ONE[WETH])
    index.put(a_book("alpha", WETH, USDC, bids="2399 1", asks="2401 1"))
    assert prices.worth(WETH) == Fraction(2_500, ONE[WETH])
    index.drop("beta", WETH, USDC)
    assert prices.worth(WETH) == Fraction(2_400, ONE[WETH])
    index.put(a_book("alpha", WETH, USDC, bids="2399 1"))
    assert prices.worth(WETH) is None


@pytest.mark.parametrize("changes", [1, 5, 40])
def test_prices_that_follow_changes_are_those_of_a_fresh_reading(changes: int) -> None:
    """Of books that come, go and change, more of them between two readings than the index remembers."""
    numbers, index = Random(changes), an_index()
    prices = MidPrices(index, DOLLARS)
    for _ in range(60):
        for _ in range(changes):
            maker, base, quote = (
                numbers.choice("abcdef"),
                *numbers.choice([(WETH, USDC), (WETH, DAI), (USDC, WETH)]),
            )
            if numbers.random() < 0.2:
                index.drop(maker, base, quote)
                continue
            bid = numbers.choice([2_400, 2_500, 2_500, 2_600])
            shown = (bid, bid + 2) if base == WETH else (1 / (bid + 2), 1 / bid)
            asks = f"{shown[1]:.9f} 1" if numbers.random() < 0.9 else ""
            index.put(a_book(maker, base, quote, bids=f"{shown[0]:.9f} 1", asks=asks))
        assert prices.worth(WETH) == MidPrices(index, DOLLARS).worth(WETH)


def test_values_that_are_hardly_apart_keep_their_order() -> None:
    near = [Fraction(1, 10**18) + Fraction(turn, 10**60) for turn in (2, 0, 1)]
    assert _median(*near) == near[2]
    assert _median(*near, near[0]) == (near[2] + near[0]) / 2


def _median(*values: Fraction) -> Fraction | None:
    return median(sorted(map(ranked, values)))


def test_two_makers_meet_in_the_middle() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2399 1", asks="2401 1"),
        a_book("beta", WETH, DAI, bids="2599 1", asks="2601 1"),
    )
    assert MidPrices(index, DOLLARS).worth(WETH) == Fraction(2_500, ONE[WETH])


def test_one_sided_books_and_levels_of_nothing_do_not_count() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2499 1"),
        a_book("beta", WETH, USDC, bids="2500.5 0 | 2499 1", asks="2501 1"),
        a_book("gamma", WETH, USDC, bids="2000 0", asks="2501 1"),
    )
    assert MidPrices(index, DOLLARS).worth(WETH) == Fraction(2_500, ONE[WETH])


def test_a_token_is_priced_over_one_between_by_the_deepest() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1"),
        a_book("alpha", WBTC, WETH, bids="19 1", asks="21 1", liquidity=5),
        a_book("alpha", WBTC, ODD, bids="2 1", asks="4 1", liquidity=9),
        a_book("alpha", ODD, DAI, bids="9 1", asks="11 1"),
    )
    prices = MidPrices(index, DOLLARS)
    assert prices.worth(WBTC) == Fraction(30, ONE[WBTC])
    index.drop("alpha", WBTC, ODD)
    assert prices.worth(WBTC) == Fraction(50_000, ONE[WBTC])


def test_three_hops_away_nothing_is_known() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1"),
        a_book("alpha", WBTC, WETH, bids="19 1", asks="21 1"),
        a_book("alpha", ODD, WBTC, bids="1 1", asks="2 1"),
    )
    assert MidPrices(index, {USDC: DOLLARS[USDC]}).worth(ODD) is None
    assert MidPrices(index, {}).worth(WETH) is None


def test_a_price_follows_the_books_it_is_made_of() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1"),
        a_book("alpha", WBTC, WETH, bids="19 1", asks="21 1"),
    )
    prices = MidPrices(index, DOLLARS)
    assert prices.worth(WBTC) == Fraction(50_000, ONE[WBTC])
    index.put(a_book("alpha", WETH, USDC, bids="2999 1", asks="3001 1"))
    assert prices.worth(WBTC) == Fraction(60_000, ONE[WBTC])
    index.put(a_book("alpha", WBTC, WETH, bids="9 1", asks="11 1"))
    assert prices.worth(WBTC) == Fraction(30_000, ONE[WBTC])
    index.put(a_book("beta", WBTC, USDC, bids="44999 1", asks="45001 1"))
    assert prices.worth(WBTC) == Fraction(45_000, ONE[WBTC])
    index.drop("beta", WBTC, USDC)
    assert prices.worth(WBTC) == Fraction(30_000, ONE[WBTC])
    index.drop("alpha", WETH, USDC)
    assert prices.worth(WBTC) is None


def test_other_books_leave_a_price_alone() -> None:
    index = an_index(a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1"))
    prices = MidPrices(index, DOLLARS)
    first = prices.worth(WETH)
    index.put(a_book("alpha", WBTC, ODD, bids="1 1"))
    index.put(a_book("alpha", WBTC, ODD, bids="2 1"))
    assert prices.worth(WETH) is first or prices.worth(WETH) == first


def test_medians() -> None:
    values = [Fraction(number) for number in (9, 1, 4)]
    assert median([]) is None
    assert _median(*values) == 4
    assert _median(*values[:2]) == 5


def test_a_book_too_wide_to_trade_on_tells_no_price() -> None:
    """A book far below and far above all others is never filled: its maker shows it at no cost."""
    honest = a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1")
    for bids, asks in (("0.0001 1", "1000000000 1"), ("1 1", "2501 1"), ("2499 1", "4999 1")):
        wide = a_book("mallory", WETH, USDC, bids=bids, asks=asks, liquidity=10**12)
        assert MidPrices(an_index(honest, wide), DOLLARS).worth(WETH) == Fraction(2_500, ONE[WETH])
        assert MidPrices(an_index(wide), DOLLARS).worth(WETH) is None
