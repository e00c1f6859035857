"""The random walk: the same for a seed, never crossed, leaning against the sold amounts."""

from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.errors import ConfigError
from cambist.engine.roles.maker.prices.random_walk import PairOptions, RandomWalk, Walk
from cambist.feeds.books.book import build_book
from support.makers.price_sources import Surroundings, first_updates


def walk_of(base_decimals: int = 18, seed: int = 1, **options: Any) -> Walk:
    return Walk(PairOptions(**{"start": "2500", **options}), base_decimals, Random(seed), "pairs.A/B")


def grid_of(base_decimals: int = 18, sold: str = "0", **options: Any) -> PriceGrid:
    return walk_of(base_decimals, **options).grid(Decimal(sold))


def mid_of(grid: PriceGrid) -> Fraction:
    assert isinstance(grid.bids, tuple)
    assert isinstance(grid.asks, tuple)
    return (Fraction(grid.bids[0][0]) + Fraction(grid.asks[0][0])) / 2


def test_a_grid_is_the_mid_with_its_spread_and_depth() -> None:
    grid = grid_of(decimals=2, spread_bps=10, levels=3, level_bps=5, size="2", growth_percent=50)
    assert grid == PriceGrid(
        bids=(("2498.75", "2.00000000"), ("2497.50", "3.00000000"), ("2496.25", "4.50000000")),
        asks=(("2501.25", "2.00000000"), ("2502.50", "3.00000000"), ("2503.75", "4.50000000")),
    )


def test_whole_tokens_and_whole_ticks() -> None:
    grid = grid_of(0, decimals=0, spread_bps=0, levels=2, level_bps=0, size="3.9", growth_percent=0)
    assert grid == PriceGrid((("2500", "3"), ("2499", "3")), (("2501", "3"), ("2502", "3")))


@given(
    st.integers(0, 2**32),
    st.integers(0, 36),
    st.fixed_dictionaries(
        {
            "start": st.sampled_from(["0.001", "0.99999", "1", "2500", "99999999.123456"]),
            "decimals": st.integers(6, 18),
            "spread_bps": st.integers(0, 5_000),
            "levels": st.integers(1, 200),
            "level_bps": st.integers(0, 1_000),
            "size": st.sampled_from(["1", "12.5", "100000"]),
            "growth_percent": st.integers(0, 20),
            "volatility_bps": st.integers(0, 1_000),
            "skew_bps": st.integers(0, 1_000),
            "skew_scale": st.sampled_from(["0.01", "10", "123456.789"]),
        }
    ),
    st.decimals(-(10**9), 10**9),
)
def test_every_grid_is_one_that_can_be_quoted(
    seed: int, base_decimals: int, options: dict[str, Any], sold: Decimal
) -> None:
    walk = walk_of(base_decimals, seed, **options)
    for _ in range(3):
        book = build_book(walk.grid(sold), base_decimals, 6)
        assert len(book.asks.prices) == options["levels"]
        assert len(set(book.bids.prices)) == len(book.bids.prices) > 0
        assert len(set(book.asks.prices)) == len(book.asks.prices)
        walk.step()


def test_the_walk_stays_between_a_quarter_and_four_times_its_start() -> None:
    walk, mids = walk_of(volatility_bps=1_000, levels=1, spread_bps=0), []
    for _ in range(5_000):
        walk.step()
        mids.append(mid_of(walk.grid(Decimal(0))))
    assert min(mids) >= 624
    assert max(mids) <= 10_001
    assert len(set(mids)) > 1_000


@pytest.mark.parametrize(
    ("sold", "mid"),
    [("0", "2500"), ("5", "2512.5"), ("10", "2525"), ("1000", "2525"), ("-5", "2487.5"), ("-1e9", "2475")],
)
def test_the_mid_leans_up_when_base_was_sold_and_down_when_bought(sold: str, mid: str) -> None:
    assert mid_of(grid_of(sold=sold, skew_bps=100, skew_scale="10")) == Fraction(mid)


async def test_updates_come_every_interval_and_follow_from_the_seed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pairs = {"WETH/USDC": {"start": "2500"}, "WBTC/USDC": {"start": "90000"}}

    async def taken(seed: int, **more: Any) -> list[tuple[float, dict[str, PriceGrid]]]:
        options = {"seed": seed, "interval_ms": 250, "pairs": pairs, **more}
        return await first_updates(RandomWalk(options, Surroundings().context), 5)

    one = await taken(7)
    assert [at for at, _ in one] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert all(prices.keys() == pairs.keys() for _, prices in one)
    again, other = await taken(7), await taken(8)
    alone = await taken(7, pairs={"WETH/USDC": {"start": "2500"}})
    assert [prices for _, prices in again] == [prices for _, prices in one]
    assert [prices for _, prices in other][1:] != [prices for _, prices in one][1:]
    assert [prices["WETH/USDC"] for _, prices in alone] == [prices["WETH/USDC"] for _, prices in one]


async def test_fills_shift_the_next_update(autojump_clock: trio.testing.MockClock) -> None:
    surroundings = Surroundings()
    options = {"pairs": {"WETH/USDC": {"start": "2500", "volatility_bps": 0, "skew_bps": 100}}}
    source = RandomWalk(options, surroundings.context)
    ((_, before),) = await first_updates(source, 1)
    surroundings.sold["WETH/USDC"] = Decimal("2.5")
    ((_, after),) = await first_updates(source, 1)
    assert mid_of(after["WETH/USDC"]) / mid_of(before["WETH/USDC"]) == 1 + Fraction(25, 10_000)


PAIR = r"maker\.chains\.1\.price_options\.pairs\.WETH/USDC"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pairs": {"A/B": {"start": "1"}}}, r"price_options\.pairs\.A/B: is no pair of this chain"),
        ({}, r"price_options\.pairs: is missing"),
        ({"pairs": {}, "interval_ms": 1}, r"price_options: interval_ms is 10 to 3600000, got 1"),
        ({"pairs": {"WETH/USDC": {}}}, rf"{PAIR}\.start: is missing"),
        ({"pairs": {"WETH/USDC": {"start": 2500.5}}}, rf"{PAIR}\.start: expected `str`, got `float`"),
        ({"pairs": {"WETH/USDC": {"start": "1e3"}}}, rf"{PAIR}\.start: expected a decimal string"),
        ({"pairs": {"WETH/USDC": {"start": "0.01"}}}, rf"{PAIR}\.start: 0\.01 is less than 1000 ticks"),
        ({"pairs": {"WETH/USDC": {"start": "1", "spred_bps": 1}}}, rf"{PAIR}\.spred_bps: is not an option"),
        ({"pairs": {"WETH/USDC": {"start": "1", "levels": 0}}}, rf"{PAIR}: levels is 1 to 200, got 0"),
        ({"pairs": {"WETH/USDC": {"start": "1", "size": "0"}}}, rf"{PAIR}\.size: 0 is less than one unit"),
        ({"pairs": {"WETH/USDC": {"start": "1", "skew_scale": "0"}}}, rf"{PAIR}\.skew_scale: is zero"),
        (
            {"pairs": {"WETH/USDC": {"start": "1", "levels": 200, "growth_percent": 100}}},
            rf"{PAIR}\.growth_percent: the last level grows beyond",
        ),
    ],
)
def test_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        RandomWalk(options, Surroundings().context)
