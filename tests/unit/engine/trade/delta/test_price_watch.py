"""A look offers exactly the orders that the books make fillable, and no other order."""

from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trio.testing

from cambist.codecs.messages.vocabulary import Side
from cambist.config.timeouts import RESTING_LOOK_S, RESTING_SWEEP_S
from cambist.engine.chain.proceeds import least_before_fee
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.feeds import slices
from support.delta.limit_orders import Watched, a_limit_order
from support.makers.live_books import DAI, DECIMALS, ODD, ONE, USDC, WBTC, WETH, a_book, an_index

USD = ONE[USDC]


def a_market(bid: str = "2500", ask: str = "4000", amount: str = "10") -> Watched:
    return Watched(an_index(a_book("alpha", WETH, USDC, bids=f"{bid} {amount}", asks=f"{ask} {amount}")))


def bids(market: Watched, bid: str, ask: str = "4000", amount: str = "10") -> None:
    market.index.put(a_book("alpha", WETH, USDC, bids=f"{bid} {amount}", asks=f"{ask} {amount}"))


def a_sale(price: int, amount: int = ONE[WETH], **more: bool | int) -> LiveOrder:
    return a_limit_order(WETH, USDC, amount, price * USD * amount // ONE[WETH], **more)  # type: ignore[arg-type]


def a_purchase(price: int, **more: bool | int) -> LiveOrder:
    return a_limit_order(USDC, WETH, price * USD, ONE[WETH], buys=True, **more)  # type: ignore[arg-type]


def test_a_sale_is_offered_with_the_change_of_a_book_that_crosses_it() -> None:
    market = a_market("2500")
    low, high = a_sale(2_550), a_sale(2_600)
    market.rest(high, low)
    assert market.look() == []
    bids(market, "2549.999999")
    assert market.look() == []
    bids(market, "2550")
    assert market.look() == [low]
    bids(market, "2601")
    assert market.look() == [high]


def test_a_purchase_is_offered_when_makers_ask_no_more_than_its_limit() -> None:
    market = a_market("2400", "2510")
    order = a_purchase(2_500)
    market.rest(order)
    assert market.look() == []
    bids(market, "2400", "2500.01")
    assert market.look() == []
    bids(market, "2400", "2500")
    assert market.look() == [order]


def test_a_new_order_that_is_fillable_is_offered_by_the_next_look() -> None:
    market = a_market("2500")
    order = a_sale(2_500)
    market.rest(order)
    assert market.look() == [order]
    assert market.look() == []


def test_gas_is_paid_before_the_limit_is_met() -> None:
    market = a_market("2500", "2500.000001")
    market.gas_price_wei = 10**10  # 216,000 units: 0.00216 WETH, 5.41 USDC
    order = a_sale(2_500)
    market.rest(order)
    assert market.look() == []
    bids(market, "2505.4", "2505.400001")
    assert market.look() == []
    bids(market, "2505.5", "2505.500001")
    assert market.look() == [order]


@pytest.mark.parametrize("fee_bps", [1, 50, 200])
def test_the_orders_own_fee_is_paid_before_its_limit_is_met(fee_bps: int) -> None:
    least = least_before_fee(2_500 * USD, fee_bps)
    order = a_sale(2_500, fee_bps=fee_bps)
    market = a_market(_usd(least - 1))
    market.rest(order)
    assert market.look() == []
    bids(market, _usd(least))
    assert market.look() == [order]


def test_the_depth_at_the_orders_size_decides_and_not_the_best_level() -> None:
    market = Watched(an_index(a_book("alpha", WETH, USDC, bids="2600 0.5 | 2400 10", asks="2700 1")))
    whole, half = a_sale(2_550), a_sale(2_550, ONE[WETH] // 2)
    market.rest(whole, half)
    assert market.look() == [half]
    market.index.put(a_book("alpha", WETH, USDC, bids="2600 0.5 | 2500 10", asks="2700 1"))
    market.pass_ms(250)
    assert market.look() == [whole]


def test_one_that_may_be_filled_in_parts_needs_a_tenth_of_what_is_left() -> None:
    market = Watched(an_index(a_book("alpha", WETH, USDC, bids="2600 0.099", asks="2700 1")))
    whole, parts = a_sale(2_550), a_sale(2_550, is_partial=True)
    market.rest(whole, parts)
    assert market.look() == []
    market.index.put(a_book("alpha", WETH, USDC, bids="2600.1 0.1", asks="2700 1"))
    assert market.look() == [parts]
    rest = a_sale(2_550, is_partial=True)
    rest.filled = ONE[WETH] * 9 // 10
    market.rest(rest)
    assert market.look() == [rest]


def test_two_hops_cross_an_order_when_either_changes() -> None:
    market = Watched(
        an_index(
            a_book("alpha", WBTC, WETH, bids="20 10", asks="21 10"),
            a_book("beta", WETH, USDC, bids="2500 100", asks="2510 100"),
        )
    )
    one, other = (a_limit_order(WBTC, USDC, ONE[WBTC], limit * USD) for limit in (50_500, 51_000))
    market.rest(one, other)
    assert market.look() == []
    market.index.put(a_book("beta", WETH, USDC, bids="2525 100", asks="2530 100"))
    assert market.look() == [one]
    market.index.put(a_book("alpha", WBTC, WETH, bids="20.2 10", asks="21 10"))
    assert market.look() == [other]


def test_a_book_on_no_path_of_an_order_costs_no_look_at_it() -> None:
    market = a_market()
    market.rest(a_sale(2_600))
    market.look()
    looked = market.watch.statistics()
    market.index.put(a_book("beta", WBTC, ODD, bids="1 1", asks="2 1"))
    market.look()
    told = market.watch.statistics()
    assert (told.touched, told.priced) == (looked.touched, looked.priced) == (0, 0)


def test_nobody_is_touched_whose_limit_is_above_the_best_rate() -> None:
    market = a_market("2500")
    market.rest(*[a_sale(price) for price in range(2_501, 2_600)], a_sale(2_500))
    assert len(market.look()) == 1
    told = market.watch.statistics()
    assert (told.orders, told.pairs, told.touched, told.priced) == (100, 1, 1, 1)


def test_one_that_is_crossed_and_not_fillable_is_left_alone_for_a_while_that_doubles() -> None:
    market = Watched(an_index(a_book("alpha", WETH, USDC, bids="2600 0.5", asks="2700 1")))
    market.rest(a_sale(2_550))
    tries = []
    for ms in range(0, 8_000, 50):
        priced = market.watch.statistics().priced
        bids(market, "2600", amount=f"0.{50 + ms // 50 % 2}")
        market.look()
        if market.watch.statistics().priced > priced:
            tries.append(ms)
        market.pass_ms(50)
    assert tries == [0, 250, 750, 1_750, 3_750, 7_750]


def test_a_better_rate_ends_that_pause() -> None:
    market = Watched(an_index(a_book("alpha", WETH, USDC, bids="2600 0.5", asks="2700 1")))
    order = a_sale(2_550)
    market.rest(order)
    assert market.look() == []
    bids(market, "2599", amount="10")
    assert market.look() == []
    bids(market, "2601", amount="10")
    assert market.look() == [order]


def test_one_that_falls_out_of_reach_waits_for_its_price_again() -> None:
    market = Watched(an_index(a_book("alpha", WETH, USDC, bids="2600 0.5", asks="2700 1")))
    order = a_sale(2_550)
    market.rest(order)
    assert market.look() == []
    bids(market, "2500")
    market.pass_ms(300)
    assert market.look() == []
    bids(market, "2550")
    assert market.look() == [order]


def test_after_a_round_without_a_settlement_it_waits_for_the_auctioneer_or_a_better_rate() -> None:
    market = a_market("2600")
    order = a_sale(2_550)
    market.rest(order)
    assert market.look() == [order]
    market.auctions.due_in_ms = 30_000
    market.watch.again(order)
    bids(market, "2590")
    bids(market, "2602.59")
    market.pass_ms(29_999)
    assert market.look() == []
    market.pass_ms(1)
    assert market.look() == [order]
    market.watch.again(order)
    bids(market, "2605.19")
    assert market.look() == []
    bids(market, "2605.20")
    assert market.look() == [order]


def test_a_better_rate_is_one_that_is_better_than_at_all_its_rounds() -> None:
    market = a_market("2600")
    order = a_sale(2_550)
    market.rest(order)
    assert market.look() == [order]
    market.auctions.due_in_ms = 30_000
    market.watch.again(order)
    bids(market, "2560")
    market.pass_ms(30_000)
    assert market.look() == [order]
    market.watch.again(order)
    bids(market, "2600")
    assert market.look() == []


@pytest.mark.parametrize(("away_ms", "is_forgotten"), [(9_999, False), (10_000, True)])
def test_rounds_in_vain_are_forgotten_once_it_was_not_fillable_for_a_while(
    away_ms: int, is_forgotten: bool
) -> None:
    market = a_market("2600")
    order = a_sale(2_550)
    market.rest(order)
    assert market.look() == [order]
    market.watch.again(order)
    bids(market, "2500")
    assert market.look() == []
    market.pass_ms(away_ms)
    bids(market, "2560")
    assert market.look() == [order]
    assert market.auctions.anew == ([order.order_hash] if is_forgotten else [])
    market.auctions.due_in_ms = 30_000
    market.watch.again(order)
    bids(market, "2580")
    assert market.look() == ([order] if is_forgotten else [])


def test_an_order_whose_settlement_failed_waits_its_time() -> None:
    market = a_market("2600")
    market.auctions.due_in_ms = 1_000
    order = a_sale(2_550)
    market.rest(order)
    assert market.look() == []
    market.pass_ms(1_000)
    assert market.look() == [order]


def test_who_is_forgotten_is_offered_no_more() -> None:
    market = a_market("2500")
    order, other = a_sale(2_550), a_sale(2_560)
    market.rest(order, other)
    market.look()
    market.watch.forget(order.order_hash)
    bids(market, "2600")
    assert market.look() == [other]
    market.watch.forget(other.order_hash)
    told = market.watch.statistics()
    assert (told.orders, told.pairs, told.edges) == (0, 0, 0)


async def test_orders_of_shards_that_are_held_no_more_are_forgotten() -> None:
    market = a_market("2500")
    orders = [a_sale(2_550) for _ in range(20)]
    market.rest(*orders)
    held = {order.row.shard for order in orders[:7]}
    await market.watch.leave(held)
    assert market.watch.statistics().orders == sum(order.row.shard in held for order in orders)
    await market.watch.leave(())
    told = market.watch.statistics()
    assert (told.orders, told.pairs, told.edges) == (0, 0, 0)


@asynccontextmanager
async def forgetting(market: Watched, held: set[int], kept: int) -> AsyncIterator[None]:
    """Between two steps of `leave`: all orders of other shards are forgotten, and their rows still there."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(market.watch.leave, held)
        while market.watch.statistics().orders > kept:
            await trio.lowlevel.checkpoint()
        yield
        nursery.cancel_scope.cancel()


async def test_orders_that_need_more_than_those_just_forgotten_are_offered_in_the_same_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", -1.0)  # a turn of the others after each step
    market = a_market("2500")
    held = set(range(128))
    gone = [live for live in (a_sale(2_550) for _ in range(4_000)) if live.row.shard not in held]
    kept = [live for live in (a_sale(2_600) for _ in range(40)) if live.row.shard in held]
    market.rest(*gone, *kept)
    async with forgetting(market, held, len(kept)):
        bids(market, "2700")
        assert market.look() == kept


async def test_a_look_prices_no_more_than_its_bound_while_others_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", -1.0)  # a turn of the others after each step
    market = a_market("2500")
    held = set(range(128))
    orders = [a_sale(2_550) for _ in range(1_000)]
    kept = [live for live in orders if live.row.shard in held]
    market.rest(*orders)
    async with forgetting(market, held, len(kept)):
        bids(market, "2700", amount="100000")
        offers = [market.look() for _ in range(len(kept) // 64 + 1)]
    assert max(map(len, offers)) == 64
    assert sum(map(len, offers)) == len(kept), "what is over the bound is due at the next look"


async def test_others_run_while_the_orders_of_many_shards_are_forgotten() -> None:
    market = a_market("2500")
    orders = [a_sale(2_600 + at % 100) for at in range(20_000)]
    market.rest(*orders)
    held = set(range(128))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await market.watch.leave(held)
        assert turns >= 5
        nursery.cancel_scope.cancel()
    assert market.watch.statistics().orders == sum(order.row.shard in held for order in orders)
    bids(market, "2600")
    offers = [live for _ in range(10) for live in market.look()]
    assert offers == [live for live in orders[::100] if live.row.shard in held]


def test_many_of_a_pair_are_taken_up_some_at_a_time_and_all_in_the_end() -> None:
    market = Watched(an_index(a_book("alpha", WETH, USDC, bids="2600 0.5", asks="2700 1")))
    orders = [a_sale(2_400 + at) for at in range(150)]
    market.rest(*reversed(orders))
    for touched in (64, 128, 150):
        market.look()
        assert market.watch.statistics().touched == touched
    assert market.watch.statistics().exhausted == 2
    bids(market, "2600.1", amount="1000")
    offers = [market.look(), market.look(), market.look()]
    assert [len(some) for some in offers] == [64, 64, 22]
    assert all(some == sorted(some, key=lambda order: order.terms.dest_total) for some in offers)
    assert {one.order_hash for some in offers for one in some} == {one.order_hash for one in orders}


def test_a_route_that_appears_is_found_whatever_a_busy_book_changes() -> None:
    many, rare = [b"\xaa" * 18 + at.to_bytes(2, "big") for at in range(300)], b"\xcc" * 20
    decimals = {**DECIMALS, **dict.fromkeys([*many, rare], 18)}
    busy = [a_book("alpha", WETH, USDC, bids=f"{bid} 1000", asks="2700 1000") for bid in (2_500, 2_501)]
    books = [a_book("alpha", token, WETH, bids="1 10", asks="1.1 10", decimals=decimals) for token in many]
    market = Watched(an_index(*books, busy[0]), decimals)
    market.rest(*[a_limit_order(token, USDC, ONE[WETH], 9_000 * USD) for token in many])
    order = a_limit_order(rare, USDC, ONE[WETH], 2_000 * USD)
    market.rest(order)
    for _ in range(5):
        market.look()
    market.index.put(a_book("beta", rare, WETH, bids="1 10", asks="1.1 10", decimals=decimals))
    market.watch.sweep()
    offers: list[LiveOrder] = []
    for look in range(20):
        market.index.put(busy[look % 2])
        offers += market.look()
    assert offers == [order]


def test_a_look_prices_one_amount_at_a_time() -> None:
    market = a_market("2600", amount="0.01")
    market.rest(*[a_sale(2_550, is_partial=True) for _ in range(3)])
    known = 0
    for _ in market.watch.look():
        priced = market.watch.statistics().priced
        assert priced - known <= 1
        known = priced
    assert known == 15


def test_of_native_tokens_the_wrapped_ones_books_count() -> None:
    native = bytes.fromhex("ee" * 20)
    market = a_market("2500")
    order = a_limit_order(native, USDC, ONE[WETH], 2_550 * USD)
    market.rest(order)
    assert market.look() == []
    bids(market, "2550")
    assert market.look() == [order]


@pytest.mark.parametrize("src", [WETH, bytes.fromhex("ee" * 20)])
def test_a_bridge_only_order_waits_for_no_price(src: bytes) -> None:
    """Its two tokens are one, of which no book tells a price."""
    market = a_market()
    orders = [
        a_limit_order(src, WETH, ONE[WETH], ONE[WETH] // 2, is_market=is_market)
        for is_market in (False, True)
    ]
    market.rest(*orders)
    assert market.auctions.offers == orders
    assert market.look() == []
    assert market.watch.statistics().orders == 0
    market.watch.again(orders[0])
    assert market.auctions.offers == [*orders, orders[0]]
    assert market.watch.facts(orders[0].order_hash) is None


def test_an_order_of_a_pair_without_books_is_found_once_they_come() -> None:
    market = a_market()
    order = a_limit_order(DAI, USDC, 100 * ONE[DAI], 99 * USD)
    market.rest(order)
    assert market.look() == []
    market.index.put(a_book("beta", DAI, USDC, bids="0.995 1000", asks="1.005 1000"))
    assert market.look() == []
    market.watch.sweep()
    assert market.look() == [order]
    dearer = a_limit_order(DAI, USDC, 100 * ONE[DAI], 100 * USD)
    market.rest(dearer)
    assert market.look() == []
    market.index.put(a_book("beta", DAI, USDC, bids="1 1000", asks="1.005 1000"))
    assert market.look() == [dearer], "its books are watched by then"


def test_what_is_told_of_an_order_that_rests_is_its_price_now() -> None:
    market = a_market("2500", "2500.000001")
    market.gas_price_wei = 10**10
    sale, purchase = a_sale(2_600, fee_bps=100), a_purchase(2_400)
    market.rest(sale, purchase)
    market.look()
    told = market.watch.facts(sale.order_hash)
    assert told is not None
    assert (told.side, told.amount, told.limit) == (Side.SELL, ONE[WETH], 2_600 * USD)
    assert told.given is not None
    assert 2_494 * USD * 99 // 100 < told.given < 2_495 * USD * 99 // 100
    told = market.watch.facts(purchase.order_hash)
    assert told is not None
    assert (told.side, told.amount, told.limit) == (Side.BUY, ONE[WETH], 2_400 * USD)
    assert told.given is not None
    assert 2_505 * USD < told.given < 2_506 * USD
    deep = a_sale(2_600, 1_000 * ONE[WETH])
    market.rest(deep)
    market.look()
    none = market.watch.facts(deep.order_hash)
    assert none is not None
    assert none.given is None


def test_one_that_is_taken_in_anew_is_priced_as_it_is_then() -> None:
    market = a_market("2500")
    order = a_sale(2_550)
    market.rest(order)
    market.look()
    again = msgspec.structs.replace(order)
    again.filled = ONE[WETH] // 2
    market.rest(again)
    bids(market, "2550", amount="0.5")
    assert market.look() == [again]


def _usd(units: int) -> str:
    return f"{units // USD}.{units % USD:06}"


@pytest.fixture
def mock_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


async def test_the_task_offers_within_a_look_of_a_change_and_sweeps_for_new_routes(
    mock_clock: trio.testing.MockClock,
) -> None:
    market = a_market("2500")
    order, other = a_sale(2_550), a_limit_order(DAI, USDC, 100 * ONE[DAI], 99 * USD)
    async with trio.open_nursery() as nursery:
        await nursery.start(market.watch.run)
        market.rest(order, other)
        await trio.sleep(1)
        assert market.auctions.offers == []
        bids(market, "2550")
        await trio.sleep(2 * RESTING_LOOK_S)
        assert market.auctions.offers == [order]
        market.index.put(a_book("beta", DAI, USDC, bids="0.995 1000", asks="1.005 1000"))
        await trio.sleep(RESTING_SWEEP_S + RESTING_LOOK_S)
        assert market.auctions.offers == [order, other]
        nursery.cancel_scope.cancel()


async def test_changes_that_come_faster_share_their_looks(mock_clock: trio.testing.MockClock) -> None:
    market = a_market("2500")
    market.rest(a_sale(2_700))
    async with trio.open_nursery() as nursery:
        await nursery.start(market.watch.run)
        await trio.sleep(0.5)
        before = market.watch.statistics().looks
        for step in range(1_000):
            bids(market, f"2500.{step:03}")
            await trio.sleep(0.001)
        assert market.watch.statistics().looks - before <= 1 / RESTING_LOOK_S + 2
        nursery.cancel_scope.cancel()


async def test_without_a_price_of_gas_nothing_is_offered_until_there_is_one(
    mock_clock: trio.testing.MockClock,
) -> None:
    market = a_market("2600")
    order = a_sale(2_550)
    market.gas_price_wei = None
    async with trio.open_nursery() as nursery:
        await nursery.start(market.watch.run)
        market.rest(order)
        await trio.sleep(10)
        assert market.auctions.offers == []
        assert market.watch.facts(order.order_hash) is None
        market.gas_price_wei = 0
        await trio.sleep(2 * RESTING_LOOK_S)
        assert market.auctions.offers == [order]
        nursery.cancel_scope.cancel()


async def test_an_order_that_cannot_be_priced_holds_up_no_other(
    mock_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = a_market("2600")
    stuck, order = a_sale(2_540), a_sale(2_550)
    fillable = market.prices.is_fillable

    def is_fillable(live: LiveOrder, gas_price_wei: int) -> Generator[None, None, bool]:
        if live is stuck:
            raise ZeroDivisionError
        return fillable(live, gas_price_wei)

    monkeypatch.setattr(market.prices, "is_fillable", is_fillable)
    async with trio.open_nursery() as nursery:
        await nursery.start(market.watch.run)
        market.rest(stuck, order)
        await trio.sleep(1)
        assert market.auctions.offers == [order]
        nursery.cancel_scope.cancel()
