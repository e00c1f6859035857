"""Resting orders in the auctioneer's rounds: orders that share a round, and rounds without success."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from cambist.config.limits import AGENT_ORDERS_AT_FIRST
from cambist.config.sections.venue import DeltaSettings
from cambist.engine.trade.delta.auction.agents import Agents, AuctioneerWakeup
from cambist.engine.trade.delta.auction.auction_queue import AuctionQueue
from cambist.engine.trade.delta.auction.auctioneer import Auctioneer, AuctionIds
from cambist.engine.trade.delta.auction.own_bids import OwnBids
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.resting.price_watch import PriceWatch
from cambist.engine.trade.orders.scheduler import Scheduler
from support.delta.bidding import DELTA, RELAYER
from support.delta.limit_orders import NOW_MS, Watched, a_limit_order
from support.makers.live_books import ONE, USDC, WETH, a_book, an_index

USD = ONE[USDC]
MINUTE = 60.0


@pytest.fixture
def mock_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


class Bidless:
    """An agent that answers at once, and never bids."""

    async def run(self) -> None:
        """Return at once: no request is sent."""


class InVain(Auctioneer):
    """An auctioneer whose rounds find nothing.

    Attributes:
        seen: when each round began, and the orders in it.
        round_s: how long one lasts.
        queue, watch: made with it.
    """

    def __init__(self, market: Watched, orders: Any, scheduler: Scheduler, wall_ms: Any) -> None:
        at = cast("Any", SimpleNamespace(served=SimpleNamespace(chain_id=1, chain=None)))
        clients, nothing = {"ann": cast("Any", Bidless())}, cast("Any", None)
        wakeup, settings = AuctioneerWakeup(), DeltaSettings()
        agents = Agents(clients, chain_id=1, settings=settings, wakeup=wakeup, wall_ms=wall_ms)
        own_bids = OwnBids(DELTA, RELAYER, WETH, lambda *_: 0, settings, agents.tell, wall_ms)
        self.queue = AuctionQueue(
            nothing, agents, own_bids, wakeup, orders, scheduler,
            head_time_s=lambda: 0, is_carried=lambda _: True, owner_rests_until_ms=lambda _: 0,
            settings=settings, wall_ms=wall_ms,
        )  # fmt: skip
        self.watch = PriceWatch(
            market.index, market.prices, self.queue, gas_price_wei=lambda: 0, wall_ms=wall_ms
        )
        super().__init__(
            at, agents, own_bids, wakeup, self.queue, orders, nothing, gas=nothing,
            is_barred=nothing, there_wei=nothing, settling=nothing, claims=nothing,
            unsettled=self.watch.again, ids=AuctionIds(),
            settings=settings, wall_ms=wall_ms,
        )  # fmt: skip
        self.seen: list[tuple[float, set[bytes]]] = []
        self.round_s = 1.0

    async def _round(self, this: Any) -> None:
        self.seen.append((trio.current_time(), set(this.orders)))
        this.considered.update(this.orders)
        self._agents._paces["ann"].answered(this.questions.pop("ann"), trio.current_time())
        await trio.sleep(self.round_s)


class Venue:
    """Books, an auctioneer and a watch of prices, with the time of the test."""

    def __init__(self) -> None:
        self.market = Watched(an_index())
        self.books("2000")
        self.lives: dict[bytes, LiveOrder] = {}
        self.scheduler = Scheduler(_now_ms)
        self.auctions = InVain(self.market, self.lives, self.scheduler, _now_ms)
        self.watch = self.auctions.watch

    async def run(self, nursery: trio.Nursery) -> None:
        for task in (self.scheduler.run, self.auctions.run, self.watch.run):
            await nursery.start(task)

    def books(self, bid: str) -> None:
        self.market.index.put(a_book("alpha", WETH, USDC, bids=f"{bid} 10", asks="3000 10"))

    def tend(self, *orders: LiveOrder) -> None:
        for live in orders:
            self.lives[live.order_hash] = live
            self.watch.rest_or_queue(live)

    def times(self, live: LiveOrder) -> list[float]:
        """Times at which the rounds with an order began."""
        return [at for at, orders in self.auctions.seen if live.order_hash in orders]


def _now_ms() -> int:
    return NOW_MS + round(trio.current_time() * 1_000)


def a_sale(dollars: int) -> LiveOrder:
    return a_limit_order(WETH, USDC, ONE[WETH], dollars * USD)


def a_counter(dollars: int = 2_500, *, is_market: bool = False) -> LiveOrder:
    """Sells dollars for a WETH."""
    return a_limit_order(USDC, WETH, dollars * USD, ONE[WETH], is_market=is_market)


@pytest.mark.parametrize("round_s", [0.08, 1.0])
@pytest.mark.parametrize("after_s", [0.0, 0.07, 1.6, 10.0, 37.3, 100.1])
async def test_a_limit_order_and_a_market_order_that_meet_share_all_rounds_of_the_limit_order(
    after_s: float, round_s: float, mock_clock: trio.testing.MockClock
) -> None:
    venue = Venue()
    venue.auctions.round_s = round_s
    swap, sale = a_counter(is_market=True), a_sale(2_500)
    async with trio.open_nursery() as nursery:
        await venue.run(nursery)
        venue.tend(swap)
        await trio.sleep(after_s)
        venue.tend(sale)
        came = trio.current_time()
        await trio.sleep(10 * MINUTE)
        nursery.cancel_scope.cancel()
    both = [at for at, orders in venue.auctions.seen if len(orders) == 2]
    assert venue.times(sale) == both
    assert both[0] - came < round_s + 0.5
    assert len(both) > 10


@pytest.mark.parametrize("count", [1, 10, 40, 150])
async def test_many_that_face_one_order_wait_for_it(count: int, mock_clock: trio.testing.MockClock) -> None:
    venue = Venue()
    sale, counters = a_sale(2_500), [a_counter() for _ in range(count)]
    async with trio.open_nursery() as nursery:
        await venue.run(nursery)
        venue.tend(sale)
        for counter in counters:
            venue.tend(counter)
            await trio.sleep(0.3)
        begun = len(venue.auctions.seen)
        await trio.sleep(10 * MINUTE)
        nursery.cancel_scope.cancel()
    assert all(len(venue.times(counter)) > 0 for counter in counters)
    assert all(sale.order_hash in orders for _, orders in venue.auctions.seen)
    assert 10 < len(venue.auctions.seen) - begun < 40


async def test_nobody_joins_an_order_whose_round_is_full() -> None:
    venue = Venue()
    auctions = venue.auctions
    orders = [a_sale(2_500) for _ in range(AGENT_ORDERS_AT_FIRST)]
    venue.lives |= {live.order_hash: live for live in orders}
    for live in orders[:-1]:
        auctions.queue.offer(live, is_due=True)
    assert auctions.queue.is_joinable(orders[0].order_hash)
    auctions.queue.offer(orders[-1], is_due=True)
    assert not auctions.queue.is_joinable(orders[0].order_hash)
    assert auctions.queue.is_joinable(a_counter().order_hash), "it is in no round yet"


async def test_small_moves_of_a_book_do_not_end_the_pause_of_rounds_in_vain(
    mock_clock: trio.testing.MockClock,
) -> None:
    venue = Venue()
    sale = a_sale(1_990)
    async with trio.open_nursery() as nursery:
        await venue.run(nursery)
        venue.tend(sale)
        for step in range(3_000):
            venue.books(f"{2_000 + step % 20 / 20:.2f}")
            await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    assert 8 < len(venue.times(sale)) < 25


async def test_a_market_that_was_away_begins_the_pauses_anew(mock_clock: trio.testing.MockClock) -> None:
    venue = Venue()
    sale = a_sale(1_990)
    async with trio.open_nursery() as nursery:
        await venue.run(nursery)
        venue.tend(sale)
        await trio.sleep(3 * MINUTE)
        venue.books("1900")
        await trio.sleep(MINUTE)
        known = len(venue.times(sale))
        back = trio.current_time()
        venue.books("1995")
        await trio.sleep(4)
        nursery.cancel_scope.cancel()
    times = venue.times(sale)
    gaps = [later - earlier for earlier, later in pairwise(times[:known])]
    assert max(gaps) > 25
    again = times[known:]
    assert again[0] - back < 0.5
    assert len(again) == 2
