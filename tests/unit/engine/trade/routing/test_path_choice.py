"""Choice of one path or two over random books of a maker per pair, beside a walk of every division."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from random import Random

import msgspec
import pytest

from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.search.gas import swap_gas
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.search.plan import RoutePlan, SwapRequest
from cambist.feeds.books import fill
from cambist.feeds.books.mid_prices import MidPrices
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from support.makers.live_books import DAI, ONE, USDC, WBTC, WETH, a_book, an_index

DOLLARS = {WETH: 2_500, WBTC: 60_000, USDC: 1, DAI: 1}
SWAPPED = 40_000  # dollars
PARTS = 32  # of an amount, in the walk
Way = tuple[bytes, ...]


def _random_book(numbers: Random, base: bytes, quote: bytes) -> LiveBook:
    """Of up to four levels on each side, which together hold a part of what is swapped, or more."""
    price, texts = DOLLARS[base] / DOLLARS[quote] * numbers.uniform(0.995, 1.005), []
    for way in (-1, 1):
        steps = [1 + way * (0.0005 + 0.004 * level * numbers.random()) for level in range(4)]
        rows = [
            f"{price * step:.8f} {SWAPPED / DOLLARS[base] * numbers.uniform(0.05, 0.9):.5f}"
            for step in sorted(steps, reverse=way < 0)[: numbers.randrange(1, 5)]
        ]
        texts.append(" | ".join(rows))
    return a_book("alpha", base, quote, bids=texts[0], asks=texts[1])


def _random_books(numbers: Random) -> PairIndex:
    pairs = [numbers.sample(pair, 2) for pair in combinations(DOLLARS, 2) if numbers.random() < 0.85]
    return an_index(*(_random_book(numbers, *pair) for pair in pairs))


class Walk:
    """Best score over all paths, and all divisions of the amount over two paths without a common pair."""

    def __init__(self, index: PairIndex, wanted: SwapRequest) -> None:
        self._index = index
        self._wanted = wanted
        self._sells = wanted.side is Side.SELL
        token = wanted.dest_token if self._sells else wanted.src_token
        worth = MidPrices(index, {WETH: Fraction(1)}).worth(token)
        self._cost = Fraction(0) if worth is None else wanted.gas_price_wei / worth

    def ways(self) -> list[Way]:
        """Paths of up to four tokens."""
        others = DOLLARS.keys() - {self._wanted.src_token, self._wanted.dest_token}
        found = [
            (self._wanted.src_token, *middle, self._wanted.dest_token)
            for count in range(3)
            for middle in permutations(sorted(others), count)
        ]
        return [way for way in found if all(self._index.between(*step) for step in pairwise(way))]

    def score(self, other: int, gas: int) -> Fraction:
        """What is received, or what is paid below zero, less the gas."""
        return (other if self._sells else -other) - gas * self._cost

    def of_plan(self, plan: RoutePlan) -> Fraction:
        return self.score(plan.dest_amount if self._sells else plan.src_amount, plan.gas)

    def scores(self) -> Iterator[Fraction]:
        amount, ways = self._wanted.amount, self.ways()
        for way in ways:
            yield from self._of([(way, amount)])
        for one, other in combinations(ways, 2):
            if not {frozenset(step) for step in pairwise(one)} & {
                frozenset(step) for step in pairwise(other)
            }:
                for part in range(1, PARTS):
                    first = amount * part // PARTS
                    yield from self._of([(one, first), (other, amount - first)])

    def _of(self, parts: list[tuple[Way, int]]) -> Iterator[Fraction]:
        others = [self._filled(way, amount) for way, amount in parts]
        if all(others):
            hops = sum(len(way) - 1 for way, _ in parts)
            gas = swap_gas(self._wanted.side, hops - len(parts), hops)
            yield self.score(sum(filter(None, others)), gas)

    def _filled(self, way: Way, amount: int | None) -> int | None:
        steps = [*pairwise(way)]
        for give, get in steps if self._sells else reversed(steps):
            if not amount:
                return None
            (live,) = self._index.between(give, get).values()
            if live.base == give:
                walk = fill.quote_received if self._sells else fill.base_paid
                amount = walk(live.book.bids, amount)
            else:
                walk = fill.base_received if self._sells else fill.quote_paid
                amount = walk(live.book.asks, amount)
        return amount


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("gwei", [0, 10, 100, 1_000])
def test_no_path_and_no_division_over_two_is_better(side: Side, gwei: int) -> None:
    """But for the paths' difference in price, of a few percent, on 2^-10 of the amount."""
    numbers = Random(5)
    planned = divided = 0
    for _ in range(40):
        index = _random_books(numbers)
        src, dest = numbers.sample([*DOLLARS], 2)
        fixed = src if side is Side.SELL else dest
        amount = int(SWAPPED * numbers.uniform(0.2, 3)) * ONE[fixed] // DOLLARS[fixed]
        wanted = SwapRequest(src, dest, amount, side, gas_price_wei=gwei * 10**9)
        walk, finder = Walk(index, wanted), Pathfinder(index, WETH)
        plan, best = finder.find(wanted), max(walk.scores(), default=None)
        if plan is None:
            assert best is None
            continue
        other = plan.dest_amount if side is Side.SELL else plan.src_amount
        assert best is None or walk.of_plan(plan) >= best - Fraction(other * 3, 100 << 10)
        for way in walk.ways():
            alone = finder.find(msgspec.structs.replace(wanted, route=way))
            assert alone is None or walk.of_plan(plan) >= walk.of_plan(alone)
        planned += 1
        divided += len(plan.paths) == 2
    assert planned > 20
    assert divided > 5
