"""Benchmarks of routes over three hops, each with 20 makers of 20 levels, beside a search in Decimal.

The Decimal walk starts from each book's levels as Decimals and merges the books as far as needed, best price
first; it splits by maker, rounds nothing, and considers neither gas nor other paths. "Rebuilt" is the first
route after one maker's book has changed: cambist orders levels only as deep as the amount reaches, the
Decimal code sorts them all. An amount that takes all liquidity costs several times as much.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from typing import Any

from cambist.codecs.messages.maker_messages import Level, PriceGrid
from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.search.ladders import ANYBODY, Ladders, LadderShare
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.search.plan import RoutePlan, SwapRequest
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook, PairIndex

USDC, WETH, WBTC, DAI = TOKENS = [bytes([number]) * 20 for number in range(1, 5)]
DECIMALS = {USDC: 6, WETH: 18, WBTC: 8, DAI: 18}
PRICES = {USDC: 1, WETH: 2_500, WBTC: 60_000, DAI: 1}  # dollars
CHAIN = [(WETH, USDC), (WBTC, WETH), (WBTC, DAI)]
MESH = [*CHAIN, (WETH, DAI), (WBTC, USDC), (DAI, USDC)]
MAKERS, LEVELS, ROUNDS = 20, 20, 1_000
GAS_PRICE_WEI = 10**9
EXACT = Context(prec=60)
SPREAD = random.Random(0)
AMOUNTS = [int(10 ** SPREAD.uniform(8, 11)) for _ in range(512)]  # 100 to 100,000 USDC

DecimalLevel = tuple[Decimal, Decimal, Decimal, str]  # given for one received, given, received, maker


def side(numbers: random.Random, mid: Decimal, dollars: int, *, rising: bool) -> tuple[Level, ...]:
    made = []
    price = mid
    for _ in range(LEVELS):
        price *= 1 + Decimal(numbers.randint(1, 8) if rising else -numbers.randint(1, 8)) / 10_000
        made.append((f"{price:.10f}", f"{Decimal(numbers.randint(1_000, 20_000)) / dollars:.6f}"))
    return tuple(made)


def grid(numbers: random.Random, base: bytes, quote: bytes) -> PriceGrid:
    mid = Decimal(PRICES[base]) / PRICES[quote]
    bids, asks = (side(numbers, mid, PRICES[base], rising=rising) for rising in (False, True))
    return PriceGrid(bids, asks)


def live(numbers: random.Random, maker: int, base: bytes, quote: bytes) -> LiveBook:
    book = build_book(grid(numbers, base, quote), DECIMALS[base], DECIMALS[quote])
    return LiveBook(f"maker{maker:02}", base, quote, book, Decimal(1_000_000))


def index_of(pairs: list[tuple[bytes, bytes]]) -> PairIndex:
    numbers, index = random.Random(1), PairIndex()
    for base, quote in pairs:
        for maker in range(MAKERS):
            index.put(live(numbers, maker, base, quote))
    return index


def wanted(amount: int) -> SwapRequest:
    return SwapRequest(USDC, DAI, amount, Side.SELL, gas_price_wei=GAS_PRICE_WEI)


def decimal_books(index: PairIndex, give: bytes, get: bytes) -> list[list[DecimalLevel]]:
    """Convert each maker's book in one direction to levels in Decimal, best first, in raw units."""
    books = []
    for each in index.between(give, get).values():
        ladder = each.book.bids if each.base == give else each.book.asks
        unit = Decimal(10) ** -ladder.quote_scale
        levels: list[DecimalLevel] = []
        for price, (before, after) in zip(ladder.prices, itertools.pairwise(ladder.base_before), strict=True):
            base = Decimal(after - before)
            quote = base * price * unit
            given, received = (base, quote) if each.base == give else (quote, base)
            levels.append((given / received, given, received, each.maker))
        books.append(levels)
    return books


def walk_decimal(
    hops: list[list[list[DecimalLevel]]], amount: Decimal
) -> tuple[Decimal, list[dict[str, Decimal]]]:
    plan = []
    for books in hops:
        shares: dict[str, Decimal] = {}
        received = Decimal(0)
        for _, given, brings, maker in heapq.merge(*books):
            taken = min(given, amount)
            shares[maker] = shares.get(maker, Decimal(0)) + taken
            received += brings * taken / given
            amount -= taken
            if not amount:
                break
        plan.append(shares)
        amount = received
    return amount, plan


def chain_books(index: PairIndex) -> list[list[list[DecimalLevel]]]:
    return [decimal_books(index, *hop) for hop in itertools.pairwise((USDC, WETH, WBTC, DAI))]


def found(finder: Pathfinder, amount: int) -> RoutePlan:
    plan = finder.find(wanted(amount))
    assert plan is not None
    return plan


def following() -> Callable[[], int]:
    return itertools.cycle(AMOUNTS).__next__


def bench_route_of_three_hops(benchmark: Any) -> None:
    index = index_of(CHAIN)
    finder, next_amount = Pathfinder(index, WETH), following()
    with localcontext(EXACT):
        books = chain_books(index)
        for amount in AMOUNTS:  # the walk pays no gas, and rounds nothing
            plan, exact = found(finder, amount), walk_decimal(books, Decimal(amount))[0]
            assert exact * Decimal("0.9995") < plan.dest_amount <= exact
    benchmark(lambda: finder.find(wanted(next_amount())))


def bench_route_of_three_hops_decimal(benchmark: Any) -> None:
    with localcontext(EXACT):
        books, next_amount = chain_books(index_of(CHAIN)), following()
        benchmark(lambda: walk_decimal(books, Decimal(next_amount())))


def bench_route_in_a_mesh(benchmark: Any) -> None:
    """Measure the search for a route among five paths: direct, and over one or two intermediate tokens."""
    finder, next_amount = Pathfinder(index_of(MESH), WETH), following()
    assert found(finder, AMOUNTS[0]).paths
    benchmark(lambda: finder.find(wanted(next_amount())))


def changes(index: PairIndex) -> Callable[[], None]:
    numbers = random.Random(2)
    books = itertools.cycle([live(numbers, 7, WETH, USDC) for _ in range(64)]).__next__
    return lambda: index.put(books())


def bench_ladder_rebuilt(benchmark: Any) -> None:
    index = index_of(CHAIN[:1])
    ladders, change, anybody = Ladders(index), changes(index), ANYBODY

    next_amount = following()

    def rebuilt() -> list[LadderShare] | None:
        ladder = ladders.merged(USDC, WETH, Side.SELL, anybody)
        return None if ladder is None else ladder.best_split(next_amount())

    assert rebuilt() is not None
    benchmark.pedantic(rebuilt, setup=change, rounds=ROUNDS, warmup_rounds=50)


def bench_ladder_rebuilt_decimal(benchmark: Any) -> None:
    index = index_of(CHAIN[:1])
    with localcontext(EXACT):
        benchmark.pedantic(
            lambda: sorted(itertools.chain(*decimal_books(index, USDC, WETH))),
            setup=changes(index),
            rounds=ROUNDS,
            warmup_rounds=50,
        )
