"""The annual return that a vault's share prices show, and the bounds of their history."""

from decimal import Decimal

import pytest

from cambist.config import limits
from cambist.engine.trade.delta.building.share_prices import SharePrice, SharePrices

DAY_S, NOW_S = 86_400, 1_800_000_000
ONE = 10**18


def history(*prices: tuple[int, int], fee_bps: int = 0) -> SharePrices:
    """History of (seconds since NOW_S, assets)."""
    found = SharePrices(fee_bps)
    for seconds, assets in prices:
        found.add(SharePrice(NOW_S + seconds, assets))
    return found


def test_growth_of_the_seen_time_is_a_years() -> None:
    apr = history((0, ONE), (10 * DAY_S, ONE + ONE // 1_000)).apr()
    assert apr is not None
    assert apr.net == Decimal("3.6500"), "0.1 % in ten days"
    assert apr.gross == apr.net


def test_the_vaults_share_of_the_yield_is_in_the_gross_return_alone() -> None:
    apr = history((0, ONE), (10 * DAY_S, ONE + ONE // 1_000), fee_bps=2_000).apr()
    assert apr is not None
    assert (apr.gross, apr.net) == (Decimal("4.5625"), Decimal("3.6500"))
    loss = history((0, ONE), (10 * DAY_S, ONE - ONE // 1_000), fee_bps=2_000).apr()
    assert loss is not None
    assert (loss.gross, loss.net) == (Decimal("-3.6500"), Decimal("-3.6500"))


@pytest.mark.parametrize(
    "prices",
    [
        (),
        ((0, ONE),),
        ((0, ONE), (DAY_S - 1, ONE + 1)),
        ((0, 0), (DAY_S, ONE)),
        ((0, 1), (DAY_S, 2**255)),
    ],
    ids=["nothing", "one", "young", "no price", "no possible price"],
)
def test_no_return_is_told_of_what_shows_none(prices: tuple[tuple[int, int], ...]) -> None:
    assert history(*prices).apr() is None


def test_a_price_an_hour_is_kept_and_the_latest_counts() -> None:
    prices = history(*((minute * 60, ONE + minute) for minute in range(24 * 60 + 31)))
    assert len(prices) == 25
    apr = prices.apr()
    assert apr is not None
    whole = history((0, ONE), (DAY_S + 30 * 60, ONE + 24 * 60 + 30)).apr()
    assert apr == whole


def test_the_history_is_bounded_and_its_oldest_prices_go_first() -> None:
    hours = limits.STRATEGY_SAMPLES_MAX + 100
    prices = history(*((hour * 3_600, ONE * (1 if hour < 100 else 2)) for hour in range(hours)))
    assert len(prices) == limits.STRATEGY_SAMPLES_MAX
    apr = prices.apr()
    assert apr is not None
    assert apr.net == 0


def test_prices_of_undone_blocks_are_forgotten() -> None:
    prices = history((0, ONE), (2 * DAY_S, 2 * ONE), (DAY_S, ONE + 1))
    assert prices.apr() == history((0, ONE), (DAY_S, ONE + 1)).apr()
    prices.add(SharePrice(NOW_S, ONE))
    assert prices.apr() is None
