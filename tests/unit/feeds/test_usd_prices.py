"""Dollars of amounts, exact to ten decimals."""

from decimal import Decimal

from cambist.codecs.amounts import format_usd
from cambist.config.limits import UINT256_MAX
from cambist.feeds.books.usd_prices import UsdPrices
from support.makers.live_books import DAI, DECIMALS, ONE, USDC, WBTC, WETH, a_book, an_index

STABLES = frozenset({USDC, DAI})


def test_stable_coins_are_dollars() -> None:
    usd = UsdPrices(an_index(), DECIMALS, STABLES)
    assert usd.value(USDC, 1_234_567) == Decimal("1.2345670000")
    assert usd.value(DAI, 10**18) == 1
    assert usd.value(WETH, 10**18) is None


def test_values_by_books() -> None:
    index = an_index(
        a_book("alpha", WETH, USDC, bids="2499.5 1", asks="2500.5 1"),
        a_book("alpha", WBTC, WETH, bids="19 1", asks="21 1"),
    )
    usd = UsdPrices(index, DECIMALS, STABLES)
    assert usd.value(WETH, 3 * ONE[WETH]) == 7_500
    assert usd.value(WBTC, ONE[WBTC] // 2) == 25_000
    assert usd.value(WETH, 0) == 0


def test_what_is_beyond_ten_decimals_is_cut_off() -> None:
    index = an_index(a_book("alpha", WETH, USDC, bids="2 1", asks="4 1"))
    assert UsdPrices(index, DECIMALS, STABLES).value(WETH, 66_666_666) == Decimal("0.0000000001")


def test_the_largest_amount_is_exact() -> None:
    value = UsdPrices(an_index(), DECIMALS, STABLES).value(USDC, UINT256_MAX)
    assert value is not None
    assert str(value) == f"{UINT256_MAX // 10**6}.{UINT256_MAX % 10**6:06}0000"


def test_the_least_that_is_worth_so_much() -> None:
    index = an_index(a_book("alpha", WETH, USDC, bids="2499 1", asks="2501 1"))
    usd = UsdPrices(index, DECIMALS, STABLES)
    assert usd.least_worth(USDC, Decimal(1)) == 10**6
    assert usd.least_worth(USDC, Decimal("0.0000001")) == 1, "rounded up"
    least = usd.least_worth(WETH, Decimal("0.01"))
    assert least == 4 * 10**12
    assert usd.value(WETH, least) == Decimal("0.01")
    assert usd.least_worth(USDC, Decimal(0)) == 0
    assert usd.least_worth(WBTC, Decimal(1)) is None


def test_a_text_is_the_value_as_it_is_formatted() -> None:
    index = an_index(a_book("alpha", WETH, USDC, bids="2 1", asks="4 1"))
    usd = UsdPrices(index, DECIMALS, STABLES)
    for token, amount in ((USDC, 0), (USDC, 1_234_567), (WETH, 66_666_666), (WETH, 1), (USDC, UINT256_MAX)):
        assert usd.text(token, amount) == format_usd(usd.value(token, amount))
    assert usd.text(WBTC, 1) == format_usd(None) == "0"
