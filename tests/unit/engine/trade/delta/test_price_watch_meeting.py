"""Orders that may trade with each other share a round, whatever the books say; some wait for others."""

import pytest

from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.resting.resting import NEVER
from support.delta.limit_orders import Watched, a_limit_order
from support.makers.live_books import ONE, USDC, WETH, a_book, an_index

USD = ONE[USDC]


def a_market(bid: str = "2500", ask: str = "4000", amount: str = "10") -> Watched:
    return Watched(an_index(a_book("alpha", WETH, USDC, bids=f"{bid} {amount}", asks=f"{ask} {amount}")))


def bids(market: Watched, bid: str, ask: str = "4000", amount: str = "10") -> None:
    market.index.put(a_book("alpha", WETH, USDC, bids=f"{bid} {amount}", asks=f"{ask} {amount}"))


def a_sale(price: int, amount: int = ONE[WETH], **more: bool | int) -> LiveOrder:
    return a_limit_order(WETH, USDC, amount, price * USD * amount // ONE[WETH], **more)  # type: ignore[arg-type]


def a_purchase(price: int, **more: bool | int) -> LiveOrder:
    return a_limit_order(USDC, WETH, price * USD, ONE[WETH], buys=True, **more)  # type: ignore[arg-type]


def test_two_whose_limits_meet_are_offered_both_whatever_the_books_say() -> None:
    market = a_market("2400", "2700")
    sale = a_sale(2_500)
    market.rest(sale)
    assert market.look() == []
    small, dear = a_limit_order(USDC, WETH, 249 * USD, ONE[WETH] // 10 - 1), a_purchase(2_499)
    market.rest(small, dear)
    assert market.look() == []
    counter = a_limit_order(USDC, WETH, 2_500 * USD, ONE[WETH])
    market.rest(counter)
    assert {one.order_hash for one in market.look()} == {sale.order_hash, counter.order_hash}


def test_two_that_meet_and_are_not_settled_wait_for_their_time_or_for_a_book_in_reach() -> None:
    market = a_market("2400", "2700")
    sale, counter = a_sale(2_500), a_limit_order(USDC, WETH, 2_500 * USD, ONE[WETH])
    market.rest(sale, counter)
    assert len(market.look()) == 2
    market.auctions.due_in_ms = 30_000
    market.watch.again(sale)
    market.watch.again(counter)
    bids(market, "2450", "2700")
    assert market.look() == []
    market.pass_ms(30_000)
    assert len(market.look()) == 2
    market.watch.again(sale)
    market.watch.forget(counter.order_hash)
    bids(market, "2500", "2700")
    assert market.look() == [sale]


def test_a_fee_stands_between_limits_that_would_meet() -> None:
    market = a_market("2400", "2700")
    market.rest(a_sale(2_500), a_limit_order(USDC, WETH, 2_500 * USD, ONE[WETH], fee_bps=1))
    assert market.look() == []


def test_a_limit_order_is_offered_beside_a_market_order_that_meets_it() -> None:
    market = a_market("2400", "2700")
    sale = a_sale(2_500)
    market.rest(sale)
    assert market.look() == []
    swap = a_limit_order(USDC, WETH, 2_600 * USD, ONE[WETH], is_market=True)
    market.rest(swap)
    assert market.auctions.offers == [swap], "at once, as any market order"
    assert market.look() == [sale, swap]
    assert market.watch.statistics().orders == 1
    market.auctions.due_in_ms = 30_000
    market.watch.again(sale)
    market.watch.again(swap)
    market.auctions.offers.clear()
    market.pass_ms(29_999)
    assert market.look() == []
    market.pass_ms(1)
    assert market.look() == [sale, swap]


def test_a_market_order_meets_the_limit_order_behind_another_market_order() -> None:
    market = a_market("2400", "2700")
    easier, sale = a_limit_order(WETH, USDC, ONE[WETH], 2_400 * USD, is_market=True), a_sale(2_500)
    market.rest(easier, sale)
    assert market.look() == []
    swap = a_limit_order(USDC, WETH, 2_600 * USD, ONE[WETH], is_market=True)
    market.rest(swap)
    assert sale in market.look()


def test_a_market_order_meets_the_limit_order_behind_one_whose_settlement_failed() -> None:
    market = a_market("2400", "2700")
    paused, sale = a_sale(2_450), a_sale(2_500)
    market.rest(paused, sale)
    assert market.look() == []
    found = market.watch._orders.get(paused.order_hash)
    assert found is not None
    market.watch._orders.tried(found, NEVER, 10**15)
    market.rest(a_limit_order(USDC, WETH, 2_600 * USD, ONE[WETH], is_market=True))
    assert sale in market.look()


def test_market_orders_alone_cost_no_look() -> None:
    market = a_market("2400", "2700")
    swap = a_limit_order(USDC, WETH, 2_600 * USD, ONE[WETH], is_market=True)
    market.rest(swap)

    def best_rate(*_: bytes) -> None:
        raise AssertionError("a pair at which nothing rests")

    market.prices.pathfinder.best_rate = best_rate  # type: ignore[method-assign, assignment]
    bids(market, "2450")
    market.watch.sweep()
    assert market.look() == []
    told = market.watch.statistics()
    assert (told.orders, told.pairs, told.edges) == (0, 0, 0)


def test_a_pair_of_market_orders_is_watched_while_something_rests_there() -> None:
    market = a_market("2400", "2700")
    swap = a_limit_order(WETH, USDC, ONE[WETH], 2_400 * USD, is_market=True)
    sale = a_sale(2_600)
    market.rest(swap, sale)
    market.look()
    assert market.watch.statistics().edges == 1
    market.watch.forget(sale.order_hash)
    assert market.watch.statistics().edges == 0


def test_an_order_waits_for_the_pause_of_the_one_that_it_faces() -> None:
    market = a_market("2400", "2700")
    sale, counter = a_sale(2_500), a_limit_order(USDC, WETH, 2_500 * USD, ONE[WETH])
    market.rest(sale, counter)
    assert len(market.look()) == 2
    market.auctions.due_in_ms = 30_000
    market.watch.again(sale)
    market.auctions.due_in_ms = 1_000
    market.watch.again(counter)
    market.pass_ms(1_000)
    assert market.look() == []
    market.pass_ms(29_000)
    assert len(market.look()) == 2


@pytest.mark.parametrize("is_market", [False, True])
def test_an_order_waits_for_the_round_of_the_one_that_it_faces(is_market: bool) -> None:
    market = a_market("2400", "2700")
    sale, counter = a_sale(2_500), a_limit_order(USDC, WETH, 2_500 * USD, ONE[WETH], is_market=is_market)
    market.rest(counter)
    market.auctions.in_round.add(counter.order_hash)
    market.rest(sale)
    assert market.look() == []
    market.auctions.in_round.clear()
    market.pass_ms(250)
    assert market.look() == [sale, counter]


@pytest.mark.parametrize("is_market", [False, True])
def test_one_whose_settlement_failed_is_not_auctioned_before_its_time_with_another(is_market: bool) -> None:
    market = a_market("2400", "2700")
    sale, counter = a_sale(2_500), a_limit_order(USDC, WETH, 2_500 * USD, ONE[WETH], is_market=is_market)
    market.auctions.due_in_ms = 5_000
    market.rest(counter)
    market.auctions.due_in_ms = 0
    market.rest(sale)
    market.auctions.offers.clear()
    assert market.look() == []
    market.pass_ms(4_999)
    assert market.look() == []
    market.pass_ms(1)
    assert {live.order_hash for live in market.look()} == {sale.order_hash, counter.order_hash}
