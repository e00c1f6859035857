"""A mirrored book: wider by the spread to the last unit, never crossed, never more than there is."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.errors import ConfigError
from cambist.engine.maker.prices.mirror import Mirror, Shift
from cambist.engine.maker.prices.source import load_source
from cambist.feeds.books.book import build_book
from support.price_sources import Surroundings

URL = "http://127.0.0.1:1/1"
ALL = 1_000


def shift(bid_bps: int = 0, ask_bps: int = 0, factor: tuple[int, int] = (1, 0), levels: int = ALL) -> Shift:
    return Shift(bid_bps, ask_bps, factor, levels)


def decimal(units: int, decimals: int) -> str:
    return f"{Decimal(units).scaleb(-decimals):f}"


@st.composite
def grids(draw: st.DrawFn) -> PriceGrid:
    """Books as a maker may show them: sorted, not crossed, of any number of decimals."""
    decimals = draw(st.integers(0, 8))
    prices = sorted(draw(st.sets(st.integers(1, 10**12), min_size=2, max_size=12)))
    middle = draw(st.integers(1, len(prices) - 1))
    amounts = st.integers(1, 10**12).map(lambda amount: decimal(amount, 6))
    bids = tuple((decimal(price, decimals), draw(amounts)) for price in reversed(prices[:middle]))
    asks = tuple((decimal(price, decimals), draw(amounts)) for price in prices[middle:])
    return PriceGrid(bids, asks)


def test_bids_go_down_and_asks_up_exactly() -> None:
    grid = PriceGrid(
        bids=(("2500", "1"), ("2499.5", "2"), ("2490", "10")),
        asks=(("2501", "1"), ("2502", "2"), ("2510", "10")),
    )
    assert shift(100, 100).applied(grid) == PriceGrid(
        bids=(("2475", "1"), ("2474.505", "2"), ("2465.1", "10")),
        asks=(("2526.01", "1"), ("2527.02", "2"), ("2535.1", "10")),
    )
    par = PriceGrid(bids=(("1", "9"),), asks=(("2", "9"),))
    assert shift(1, 10).applied(par) == PriceGrid(bids=(("0.9999", "9"),), asks=(("2.002", "9"),))
    assert shift().applied(grid) == grid


def test_an_absent_side_stays_absent_and_an_empty_one_empty() -> None:
    assert shift(10, 10).applied(PriceGrid()) == PriceGrid()
    one_sided = PriceGrid(bids=(), asks=(("2", "1"),))
    assert shift(10, 0).applied(one_sided) == one_sided


def test_levels_are_capped_and_amounts_are_a_part_to_the_last_decimal() -> None:
    finest = f"0.{'0' * 35}1"
    grid = PriceGrid(bids=(("3", "1"), ("2", "1.01"), ("1", "9")), asks=(("4", finest), ("5", "7")))
    assert shift(factor=(3, 1), levels=2).applied(grid) == PriceGrid(
        bids=(("3", "0.3"), ("2", "0.303")),
        asks=(("5", "2.1"),),
    )


def test_beyond_36_decimals_bids_are_rounded_down_and_asks_up() -> None:
    def finest(units: int) -> str:
        return f"0.{units:036d}"

    grid = PriceGrid(bids=((finest(100), "1"), (finest(1), "1")), asks=((finest(200), "1"),))
    assert shift(1, 1).applied(grid) == PriceGrid(bids=((finest(99), "1"),), asks=((finest(201), "1"),))


def test_amounts_grow_by_a_factor_and_stay_within_what_a_grid_can_say() -> None:
    most = "9" * 36
    grid = PriceGrid(bids=((most, most),), asks=((most, most),))
    grown = shift(0, 1, factor=(10, 0)).applied(grid)
    assert grown.bids == ((most, most),)
    assert grown.asks == ()


@given(grids(), st.integers(0, 5_000), st.integers(0, 5_000), st.integers(1, 2_000))
def test_a_mirrored_book_is_a_book_and_wider_by_the_spread(
    grid: PriceGrid, bid_bps: int, ask_bps: int, factor: int
) -> None:
    shown = shift(bid_bps, ask_bps, (factor, 3)).applied(grid)
    build_book(shown, 18, 6)  # sorted, above zero, not crossed, or it raises
    if shown.bids and grid.bids:
        assert Decimal(shown.bids[0][0]) * 10_000 <= Decimal(grid.bids[0][0]) * (10_000 - bid_bps)
    if shown.asks and grid.asks:
        assert Decimal(shown.asks[0][0]) * 10_000 >= Decimal(grid.asks[0][0]) * (10_000 + ask_bps)
    for ours, theirs in ((shown.bids, grid.bids), (shown.asks, grid.asks)):
        assert isinstance(ours, tuple)
        assert isinstance(theirs, tuple)
        total = sum((Decimal(amount) for _, amount in theirs), Decimal())
        assert sum((Decimal(amount) for _, amount in ours), Decimal()) * 1_000 <= total * factor


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "price_options.url: is missing"),
        ({"url": "ftp://x"}, "price_options: url is http://... or https://..."),
        ({"url": URL, "ws_url": "http://x"}, "price_options: ws_url is ws://... or wss://..."),
        ({"url": URL, "spread": 5}, "price_options.spread: is not an option"),
        ({"url": URL, "bid_spread_bps": -1}, "price_options: bid_spread_bps is 0 to 5000, got -1"),
        ({"url": URL, "levels": 0}, "price_options: levels is 1 to 1000, got 0"),
        ({"url": URL, "stale_s": 0.1}, "price_options: stale_s is 0.5 to 60, got 0.1"),
        ({"url": URL, "amount_factor": "1e3"}, "price_options.amount_factor: expected a decimal string"),
        ({"url": URL, "amount_factor": "0.0"}, "price_options.amount_factor: is zero"),
        ({"url": URL, "pairs": {"A/B": "B/A"}}, "price_options.pairs.A/B: is no pair of this chain"),
        (
            {"url": URL, "credentials": {"domain": "d", "access_key": "k", "secret": "the secret itself"}},
            "price_options.credentials.secret: expected env:NAME or file:PATH",
        ),
        (
            {"url": URL, "credentials": {"domain": "d", "access_key": "k", "secret": "env:ABSENT"}},
            "price_options.credentials.secret: environment variable ABSENT is not set",
        ),
        (
            {"url": URL, "credentials": {"domain": "d", "access_key": "", "secret": "env:SECRET"}},
            "price_options.credentials: X-AUTH-ACCESS-KEY: expected visible ASCII",
        ),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_source("mirror", options, Surroundings().context, "maker.chains.1.price_options")
    assert said in refused.value.detail
    assert "the secret itself" not in refused.value.detail


def test_the_secret_is_read_from_the_environment_that_is_passed_in() -> None:
    credentials = {"domain": "d", "access_key": "k", "secret": "env:SECRET"}
    context = Surroundings().context
    source = load_source("mirror", {"url": URL, "credentials": credentials}, context)
    assert isinstance(source, Mirror)
    assert "a secret" not in repr(context) + repr(vars(source))
