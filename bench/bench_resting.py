"""Benchmarks of a price check of 100,000 or 10,000 waiting limit orders after a book has changed.

The orders cover all twelve directed pairs of four tokens, whose six books have 20 makers with 20 levels each;
the book that changes is on a path of every order. No limit price is reached: the measurement is the cost of
that result, including the merged ladder of the changed pair. "Crossed" adds eight orders whose limit is
reached; they are priced, but are too large to be filled. "Parts" is the same with partially fillable orders,
each part of which is priced. "Plain" (the baseline) compares every order's limit with the new price of its
pair. "Due" takes 64 orders of a pair out of the retry queue and puts them back, as a price check does; all
100,000 or 10,000 orders were tried before, and the retry time of all has come.
"""

import hashlib
import itertools
import random
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from bench.bench_pathfinder import DECIMALS, MESH, PRICES, TOKENS, USDC, WETH, index_of, live
from cambist.codecs.eip712_orders.delta import KIND_SELL, SAME_CHAIN, DeltaOrder
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.config.limits import VENUE_RESTING_PRICED_MAX
from cambist.config.tokens import TokenSettings
from cambist.crypto.addresses import to_checksum
from cambist.engine.store.rows import DeltaOrderRow, amount32
from cambist.engine.trade.delta.orders.document import DeltaDocument
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.terms import terms_of
from cambist.engine.trade.delta.resting.price_watch import PriceWatch
from cambist.engine.trade.delta.resting.resting import NEVER, RestingOrders, rate_number
from cambist.engine.trade.delta.resting.resting_price import RestingPrices, rate_of
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.tokens import TokenTable
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from cambist.feeds.books.usd_prices import UsdPrices

FEW, MANY, CROSSING = 10_000, 100_000, 8
AMOUNTS = 5  # all of an order, three halves of that, a tenth
NOW_MS = 1_795_000_000_000
ENDS = list(itertools.permutations(TOKENS, 2))
DOCUMENT = DeltaDocument("Order", b"{}", bytes(64))
CHANGING = 8  # makers, each with two books in turn


class Nobody:
    """Stand-in for `AuctionQueue` that counts the offered orders and runs no auction round."""

    def __init__(self) -> None:
        self.offers = 0

    def offer(self, live: LiveOrder, *, is_due: bool = False) -> None:  # noqa: ARG002
        self.offers += 1

    def is_joinable(self, order_hash: bytes) -> bool:  # noqa: ARG002
        return True

    def begin_anew(self, order_hash: bytes) -> None:
        pass

    def due_ms(self, live: LiveOrder) -> int:  # noqa: ARG002
        return NOW_MS


def an_order(number: int, ends: tuple[bytes, bytes], dollars: int, price: Fraction) -> LiveOrder:
    """Make a limit order that sells tokens worth `dollars`; its limit is `price` times the usual price."""
    src, dest = ends
    order_hash = hashlib.sha256(b"resting %d" % number).digest()
    order = DeltaOrder(
        order_hash[:20], order_hash[:20], src, dest, dollars * 10 ** DECIMALS[src] // PRICES[src],
        int(dollars * price * 10 ** DECIMALS[dest] / PRICES[dest]), 0, 1_900_000_000, KIND_SELL, number, 0,
        b"", b"", SAME_CHAIN,
    )  # fmt: skip
    row = DeltaOrderRow(
        order_hash, order_hash[0], 1, order_hash[:20], amount32(number), OnChainOrderType.ORDER,
        OrderType.LIMIT, Side.SELL, "anon", NOW_MS, 1_900_000_000, 2, OrderStatus.ACTIVE, NOW_MS, amount32(0),
        amount32(0), is_final=False,
    )  # fmt: skip
    return LiveOrder(row, order, DOCUMENT, terms_of(order))


def resting(count: int) -> list[LiveOrder]:
    """Make limit orders of all directed pairs, with limits 2 to 40 per cent above the usual price."""
    numbers = random.Random(3)
    return [
        an_order(
            at,
            ENDS[at % len(ENDS)],
            numbers.randint(100, 100_000),
            Fraction(numbers.randint(1_020, 1_400), 1_000),
        )
        for at in range(count)
    ]


class Market:
    """Index of makers' books, waiting limit orders, and a maker's book that changes."""

    def __init__(self, orders: list[LiveOrder]) -> None:
        self.index: PairIndex = index_of(MESH)
        tokens = [
            TokenSettings(chain_id=1, address=to_checksum(token), symbol=f"T{at}", decimals=DECIMALS[token])
            for at, token in enumerate(TOKENS)
        ]
        self.pathfinder = Pathfinder(self.index, WETH)
        usd = UsdPrices(self.index, DECIMALS, frozenset({USDC}))
        prices = RestingPrices(self.pathfinder, usd, TokenTable(tokens, WETH, "ETH"), 150_000)
        self.auctions = Nobody()
        self.watch = PriceWatch(
            self.index,
            prices,
            cast("Any", self.auctions),
            gas_price_wei=lambda: 10**9,
            wall_ms=lambda: self.now_ms,
        )
        self.now_ms = NOW_MS
        self.index.watch(self.watch.book_changed)
        for order in orders:
            self.watch.rest_or_queue(order)
        self.look()
        numbers = random.Random(5)
        self._books: Iterator[LiveBook] = itertools.cycle(
            [live(numbers, number % CHANGING, WETH, USDC) for number in range(2 * CHANGING)]
        )

    def look(self) -> None:
        """Run one complete price check of the waiting orders."""
        for _ in self.watch.look():
            pass

    def change(self) -> None:
        """Advance the clock by an hour, replace a maker's book, and check prices."""
        self.now_ms += 3_600_000
        self.index.put(next(self._books))
        self.look()


def run(benchmark: Any, count: int) -> None:
    market = Market(resting(count))
    before = market.watch.statistics()
    market.change()
    after = market.watch.statistics()
    assert (after.orders, after.pairs) == (count, len(ENDS))
    assert (after.looks, after.touched, after.priced) == (before.looks + 1, 0, 0)
    benchmark(market.change)
    assert market.watch.statistics().touched == 0


def bench_resting_look(benchmark: Any) -> None:
    """Measure a price check of 100,000 waiting orders after a book change; no limit is reached."""
    run(benchmark, MANY)


def bench_resting_look_of_few(benchmark: Any) -> None:
    """Measure a price check of 10,000 waiting orders after a book change; no limit is reached."""
    run(benchmark, FEW)


def bench_resting_crossed(benchmark: Any) -> None:
    """Measure a price check of 100,000 orders that reaches eight limits, of orders too large to be filled."""
    large = [an_order(MANY + at, (WETH, USDC), 10**9, Fraction(9, 10)) for at in range(CROSSING)]
    market = Market([*resting(MANY), *large])
    before = market.watch.statistics()
    market.change()
    after = market.watch.statistics()
    assert after.touched - before.touched == after.priced - before.priced == CROSSING
    benchmark(market.change)
    assert market.auctions.offers == 0


def bench_resting_parts(benchmark: Any) -> None:
    """Measure a price check of 100,000 orders that reaches eight partially fillable orders.

    Each part of these orders is too large to be filled.
    """
    parts = DeltaDocument("Order", b"{}", bytes(64), partially_fillable=True)
    market = Market(resting(MANY))
    for at in range(CROSSING):
        large = an_order(MANY + at, (WETH, USDC), 10**10, Fraction(9, 10))
        market.watch.rest_or_queue(LiveOrder(large.row, large.order, parts, large.terms))
    market.look()
    before = market.watch.statistics()
    market.change()
    after = market.watch.statistics()
    assert after.touched - before.touched == CROSSING
    assert after.priced - before.priced == AMOUNTS * CROSSING
    benchmark(market.change)
    assert market.auctions.offers == 0


def takes_up(benchmark: Any, count: int) -> None:
    ends = ENDS[0]
    orders = RestingOrders()
    for at in range(count):
        live = an_order(at, ends, 1_000, Fraction(1_000 + at % 400, 1_000))
        orders.tried(orders.add(live, ends, rate_of(live)), at * 7_919 % count, at * 104_729 % count)
    times = itertools.count(count)
    best = rate_number((1, 10**30))

    def look() -> None:
        for _ in range(VENUE_RESTING_PRICED_MAX // 16):
            found, _ = orders.due(ends, best, count, 16)
            assert len(found) == 16
            for order in found:
                orders.tried(order, NEVER, next(times))

    benchmark.pedantic(look, rounds=100)


def bench_resting_due(benchmark: Any) -> None:
    """Measure taking 64 orders whose pause is over out of 100,000, and putting them back."""
    takes_up(benchmark, MANY)


def bench_resting_due_of_few(benchmark: Any) -> None:
    """Measure taking 64 orders whose pause is over out of 10,000, and putting them back."""
    takes_up(benchmark, FEW)


def bench_resting_plain(benchmark: Any) -> None:
    """Baseline: compare the limits of 10,000 orders, as far as their pairs changed, with the pair's price."""
    by_ends: dict[tuple[bytes, bytes], list[tuple[Decimal, bytes]]] = {}
    for order in resting(FEW):
        terms = order.terms
        limit = Decimal(terms.dest_total) / Decimal(terms.src_total)
        by_ends.setdefault((terms.src_token, terms.dest_token), []).append((limit, order.order_hash))
    market = Market([])
    finder = market.pathfinder

    def found() -> list[bytes]:
        market.index.put(next(market._books))
        crossed: list[bytes] = []
        for ends, orders in by_ends.items():
            rate = finder.best_rate(*ends)
            assert rate is not None
            best = Decimal(rate[0]) / Decimal(rate[1])
            crossed += [order_hash for limit, order_hash in orders if limit <= best]
        return crossed

    assert benchmark(found) == []
