"""Price impact and its ceiling (choices.md#quotes-and-routes)."""

from decimal import Decimal

from cambist.codecs.messages.vocabulary import Side
from cambist.config import limits
from cambist.engine.trade.quote.market_price import impact, max_impact_reached
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.search.plan import RoutePlan, SwapRequest
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.books.usd_prices import UsdPrices
from support.makers.live_books import DECIMALS, ONE, USDC, WBTC, WETH, a_book, an_index

DEFAULT = Decimal(limits.MAX_IMPACT_PERCENT_DEFAULT)


def _index() -> PairIndex:
    return an_index(a_book("alpha", WETH, USDC, bids="2400 1 | 1600 1", asks="2600 2"))


def _plan(index: PairIndex, amount: int, side: Side = Side.SELL) -> RoutePlan:
    plan = Pathfinder(index, WETH).find(SwapRequest(WETH, USDC, amount, side))
    assert plan is not None
    return plan


def test_impact_is_what_is_lost_against_the_mid_price() -> None:
    index = _index()
    usd = UsdPrices(index, DECIMALS, frozenset({USDC}))
    assert impact(_plan(index, ONE[WETH]), usd) == 4
    assert impact(_plan(index, 2 * ONE[WETH]), usd) == 20
    assert impact(_plan(index, 4_000 * ONE[USDC], Side.BUY), usd) == 20


def test_a_missing_price_leaves_no_impact() -> None:
    index = _index()
    usd = UsdPrices(index, DECIMALS, frozenset({WBTC}))
    assert impact(_plan(index, ONE[WETH]), usd) is None


def test_the_ceiling_is_reached_above_it() -> None:
    reached = [
        max_impact_reached(Decimal(percent), DEFAULT, ignores_bad_price=False)
        for percent in ("-2", "15", "15.01")
    ]
    assert reached == [False, False, True]
    assert not max_impact_reached(Decimal(20), Decimal(25), ignores_bad_price=False)
    assert max_impact_reached(Decimal(20), Decimal(25) - 5 - Decimal("0.1"), ignores_bad_price=True)


def test_an_unknown_impact_counts_as_reached_unless_that_is_ignored() -> None:
    assert max_impact_reached(None, DEFAULT, ignores_bad_price=False)
    assert not max_impact_reached(None, DEFAULT, ignores_bad_price=True)
