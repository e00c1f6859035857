"""Choice of one path or two over random books of a maker per pair, beside a walk of every division."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from random import Random

import msgspec
import pytest

from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.search import pathfinder
from cambist.engine.trade.routing.search.gas import swap_gas
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.search.plan import RoutePlan, SwapRequest
from cambist.feeds.books import fill
from cambist.feeds.books.mid_prices import MidPrices
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from support.call_counts import counted
from support.makers.live_books import DAI, ONE, USDC, WBTC, WETH, a_book, an_index

DOLLARS = {WETH: 2_500, WBTC: 60_000, USDC: 1, DAI: 1}
SWAPPED = 40_000  # dollars
PARTS = 32  # of an amount, in the walk
Way = tuple[bytes, ...]
Levels = list[tuple[int, int]]  # price, amount
NOTHING = -(10**9)
"""Score beyond the depth, however much is added."""


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
        """Amount received, or the amount paid below zero, less the gas."""
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
            bids, asks = live.book.bids, live.book.asks
            if self._sells:
                is_base = live.base == give
                amount = fill.quote_received(bids, amount) if is_base else fill.base_received(asks, amount)
            else:
                is_base = live.base == get
                amount = fill.quote_paid(asks, amount) if is_base else fill.base_paid(bids, amount)
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


WHOLE = dict.fromkeys(DOLLARS, 0)
"""Decimals of tokens in the books of whole prices: nothing is rounded."""


@pytest.mark.parametrize("side", Side)
def test_where_nothing_is_rounded_the_division_is_within_a_unit_of_the_best(side: Side) -> None:
    """Over three ways: direct, and at the same prices over two tokens that are worth as much as the last."""
    numbers = Random(23)
    divided = 0
    for _ in range(400):
        ways = [_falling_levels(numbers) for _ in range(3)]
        amount = numbers.randrange(1, 30)
        least = [_score_of(levels, amount, side) for levels in ways]
        least += [_nearly_best(*pair, amount, side) for pair in combinations(ways, 2)]
        plan = Pathfinder(_whole_books(ways, side), b"").find(SwapRequest(WETH, DAI, amount, side))
        if plan is None:
            assert max(least) < NOTHING // 2
        else:
            assert (plan.dest_amount if side is Side.SELL else -plan.src_amount) >= max(least)
            divided += len(plan.paths) == 2
    assert divided > 100


def _nearly_best(one: Levels, other: Levels, amount: int, side: Side) -> int:
    """The least score of the best division, and of those a unit beside it that are possible."""
    scores = [
        _score_of(one, part, side) + _score_of(other, amount - part, side) for part in range(amount + 1)
    ]
    best = max(scores)
    around = [scores[max(at - 1, 0) : at + 2] for at, score in enumerate(scores) if score == best]
    return min((score for near in around for score in near if score > NOTHING // 2), default=NOTHING)


def _falling_levels(numbers: Random) -> Levels:
    prices = sorted(numbers.sample(range(1, 40), numbers.randrange(1, 4)), reverse=True)
    return [(price, numbers.randrange(1, 12)) for price in prices]


def _score_of(levels: Levels, amount: int, side: Side) -> int:
    """Amount received by the highest prices, or the amount paid by the lowest prices below zero."""
    total = 0
    for price, size in levels if side is Side.SELL else reversed(levels):
        taken = min(size, amount)
        total += taken * price
        amount -= taken
    if amount:
        return NOTHING
    return total if side is Side.SELL else -total


def _whole_books(ways: list[Levels], side: Side) -> PairIndex:
    """Books of three ways from WETH to DAI; what is bought is the base of a book, as what is sold is."""
    live = []
    for middle, levels in zip((DAI, USDC, WBTC), ways, strict=True):
        if side is Side.SELL:
            text = " | ".join(f"{price} {size}" for price, size in levels)
            live.append(a_book("alpha", WETH, middle, bids=text, decimals=WHOLE))
        else:
            text = " | ".join(f"{price} {size}" for price, size in reversed(levels))
            live.append(a_book("alpha", middle, WETH, asks=text, decimals=WHOLE))
        if middle != DAI:
            live.append(a_book("alpha", middle, DAI, bids="1 10000", decimals=WHOLE))
    return an_index(*live)


@pytest.mark.parametrize(("direct", "received", "walks"), [("5 4", 21, None), ("5.25 4", 21, 3 + 3)])
def test_two_paths_are_divided_for_a_unit_more_and_not_for_none(
    direct: str, received: int, walks: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three on one path bring 16.2 units, and one on another 5.4; halves of four bring ten each."""
    books = [
        a_book("alpha", WETH, DAI, bids=direct, decimals=WHOLE),
        *(a_book("alpha", WETH, middle, bids="5.4 3 | 1 9", decimals=WHOLE) for middle in (USDC, WBTC)),
        *(a_book("alpha", middle, DAI, bids="1 10000", decimals=WHOLE) for middle in (USDC, WBTC)),
    ]
    finder = Pathfinder(an_index(*books), b"")
    walked = counted(monkeypatch, pathfinder, "through")
    plan = finder.find(SwapRequest(WETH, DAI, 4, Side.SELL))
    assert plan is not None
    assert plan.dest_amount == received
    assert walks is None or walked == {"through": walks}


@pytest.mark.parametrize("side", Side)
def test_two_paths_are_divided_where_the_halves_are_the_best_parts(side: Side) -> None:
    levels = [[(5, 1), (4, 9)], [(5, 1), (3, 9)], [(1, 1)]]
    if side is Side.BUY:
        levels = [[(5, 9), (4, 1)], [(6, 9), (4, 1)], [(9, 1)]]
    plan = Pathfinder(_whole_books(levels, side), b"").find(SwapRequest(WETH, DAI, 2, side))
    assert plan is not None
    assert (plan.src_amount, plan.dest_amount) == ((2, 10) if side is Side.SELL else (8, 2))


@pytest.mark.parametrize(("amount", "steps"), [(1 << 20, 10), (1023, 10), (3, 2), (2, 1)])
def test_two_paths_are_divided_to_a_thousandth_or_a_unit(
    amount: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are walked whole, by half and at each step; and four times in all where they are filled."""
    thin = f"{3 * amount}.1 {(amount + 1) // 2} | 1 {amount}"
    books = [
        a_book("alpha", WETH, DAI, bids=thin, decimals=WHOLE),
        a_book("alpha", WETH, USDC, bids=thin, decimals=WHOLE),
        a_book("alpha", USDC, DAI, bids="1 100000000000000000", decimals=WHOLE),
    ]
    walked = counted(monkeypatch, pathfinder, "through")
    assert Pathfinder(an_index(*books), b"").find(SwapRequest(WETH, DAI, amount, Side.SELL)) is not None
    assert walked == {"through": 2 + 2 + 2 * steps + 4}
