"""Routes over random books, beside other code that goes level by level, in fractions.

Tokens have few decimals and amounts are small, so that every split in whole units can be tried, and so that a
unit is worth something: a claimed error of one unit at most is visible.
"""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from typing import TypeGuard

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.search import pathfinder
from cambist.engine.trade.routing.search.gas import FILL, swap_gas
from cambist.engine.trade.routing.search.ladders import through
from cambist.engine.trade.routing.search.pathfinder import FilledAmount, Network, Pathfinder, Search
from cambist.engine.trade.routing.search.plan import HopPlan, RoutePlan, SwapRequest, Taxes
from cambist.feeds.books import fill
from cambist.feeds.books.mid_prices import MidPrices
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from support.examples import examples
from support.makers.live_books import a_book, an_index

TOKENS = A, B, C, D = [bytes([number]) * 20 for number in range(1, 5)]
DECIMALS = {A: 0, B: 8, C: 1, D: 0}
_UNBOUNDED = 1 << 1_000
MAKERS = "alpha", "beta", "gamma"

prices = st.integers(1, 4_000).map(lambda ticks: Fraction(ticks, 100))
sizes = st.integers(0, 400).map(lambda tenths: Fraction(tenths, 10))


def _text(number: Fraction) -> str:
    return f"{int(number)}.{int(number * 100) % 100:02}"


@st.composite
def books(draw: st.DrawFn, pairs: st.SearchStrategy[tuple[bytes, bytes]]) -> LiveBook:
    """Of up to three levels on each side, around a price."""
    (base, quote), maker = draw(pairs), draw(st.sampled_from(MAKERS))
    ticks = sorted(draw(st.lists(prices, min_size=2, max_size=6, unique=True)))
    middle = draw(st.integers(1, len(ticks) - 1))
    bids, asks = ticks[:middle][::-1][:3], ticks[middle:][:3]
    sides = {
        side: " | ".join(f"{_text(price)} {_text(draw(sizes))}" for price in levels)
        for side, levels in (("bids", bids), ("asks", asks))
    }
    liquidity = draw(st.integers(0, 3))
    return a_book(
        maker, base, quote, bids=sides["bids"], asks=sides["asks"], liquidity=liquidity, decimals=DECIMALS
    )


both_orders = st.sampled_from([(A, C), (C, A)])
any_pair = st.sampled_from([*permutations(TOKENS, 2)])
single_pair = st.lists(books(both_orders), min_size=1, max_size=3, unique_by=lambda live: live.maker)
graphs = st.lists(
    books(any_pair),
    min_size=3,
    max_size=10,
    unique_by=lambda live: (live.maker, *sorted((live.base, live.quote))),
)
sides = st.sampled_from(Side)


# --- One book, by itself --------------------------------------------------------------------------------


def _alone(live: LiveBook, give: bytes, side: Side, amount: int) -> int | None:
    """Amount of `feeds.fill` for one maker's book."""
    bids, asks = live.book.bids, live.book.asks
    if live.base == give:
        return fill.quote_received(bids, amount) if side is Side.SELL else fill.base_paid(bids, amount)
    return fill.base_received(asks, amount) if side is Side.SELL else fill.quote_paid(asks, amount)


def _levels(live: LiveBook, give: bytes) -> Iterator[tuple[Fraction, Fraction]]:
    """(given, received) of each level, raw units."""
    ladder = live.book.bids if live.base == give else live.book.asks
    unit = Fraction(1, 10**ladder.quote_scale)
    for price, (before, after) in zip(ladder.prices, pairwise(ladder.base_before), strict=True):
        base, quote = Fraction(after - before), price * (after - before) * unit
        if base:
            yield (base, quote) if live.base == give else (quote, base)


class Continuous:
    """All makers' levels of a pair, best first, filled without rounding anything."""

    def __init__(self, index: PairIndex, give: bytes, get: bytes, side: Side) -> None:
        self.makers = [*index.between(give, get).values()]
        both = [level for live in self.makers for level in _levels(live, give)]
        both.sort(key=lambda level: level[0] / level[1])
        self.segments = both if side is Side.SELL else [(received, given) for given, received in both]

    def other(self, amount: Fraction) -> Fraction | None:
        total = Fraction(0)
        for fixed, other in self.segments:
            taken = min(fixed, amount)
            total += other * taken / fixed
            amount -= taken
            if not amount:
                return total
        return None

    def steepest(self) -> Fraction:
        return max((other / fixed for fixed, other in self.segments), default=Fraction(0))


def _every_split(index: PairIndex, side: Side, amount: int) -> int | None:
    """The best of all splits in whole units; shares that would bring nothing are none."""
    best: dict[int, int] = {0: 0}
    for live in index.between(A, C).values():
        shares = [(0, 0)] + [
            (share, other) for share in range(1, amount + 1) if (other := _alone(live, A, side, share))
        ]
        reached: dict[int, int] = {}
        for filled, total in best.items():
            for share, other in shares:
                key, value = filled + share, total + other
                if key <= amount and (
                    key not in reached
                    or (value > reached[key] if side is Side.SELL else value < reached[key])
                ):
                    reached[key] = value
        best = reached
    return best.get(amount)


def _find(index: PairIndex, src: bytes, dest: bytes, side: Side, amount: int) -> RoutePlan | None:
    return _finder(index).find(SwapRequest(src, dest, amount, side))


def _other(plan: RoutePlan) -> int:
    return plan.dest_amount if plan.side is Side.SELL else plan.src_amount


# --- One hop ------------------------------------------------------------------------------------------------


@given(single_pair, sides, st.integers(1, 60))
def test_one_hop_without_gas_is_the_best_of_all_splits(live: list[LiveBook], side: Side, amount: int) -> None:
    """But for a unit of each token per maker; and it is there whenever any split is, dust aside."""
    index = an_index(*live)
    best, plan = _every_split(index, side, amount), _find(index, A, C, side, amount)
    slack = len(live) * (1 + Continuous(index, A, C, side).steepest())
    if plan is None:
        assert best is None or (len(live) > 1 and best <= slack)
        return
    assert best is not None
    lost = best - _other(plan) if side is Side.SELL else _other(plan) - best
    assert 0 <= lost <= slack


@given(single_pair, sides, st.integers(1, 10**5))
def test_one_hop_is_what_the_levels_give_without_rounding(
    live: list[LiveBook], side: Side, amount: int
) -> None:
    index = an_index(*live)
    plan, pair = _find(index, A, C, side, amount), Continuous(index, A, C, side)
    if plan is None:
        return  # the test above holds when there has to be a plan
    exact = pair.other(Fraction(amount))
    assert exact is not None
    lost = exact - _other(plan) if side is Side.SELL else _other(plan) - exact
    assert 0 <= lost <= len(live) * (1 + pair.steepest())


@given(single_pair, st.integers(1, 10**4))
def test_buying_what_a_sale_gave_costs_no_more_than_was_sold(live: list[LiveBook], amount: int) -> None:
    """With one maker exactly; with several, but for a unit of each token per maker."""
    index = an_index(*live)
    sold = _find(index, A, C, Side.SELL, amount)
    assume(sold is not None)
    assert sold is not None
    bought = _find(index, A, C, Side.BUY, sold.dest_amount)
    assume(bought is not None or len(live) == 1)
    assert bought is not None
    several = len(sold.makers() | bought.makers()) > 1
    slack = len(live) * (1 + Continuous(index, A, C, Side.BUY).steepest()) if several else 0
    assert bought.src_amount <= amount + slack


# --- Any graph ----------------------------------------------------------------------------------------------


def _paths(index: PairIndex) -> list[tuple[bytes, ...]]:
    between = [middle for count in (0, 1, 2) for middle in permutations((B, C), count)]
    paths = [(A, *middle, D) for middle in between]
    return [path for path in paths if all(index.between(*step) for step in pairwise(path))]


def _steps(path: tuple[bytes, ...], side: Side) -> list[tuple[bytes, bytes]]:
    return [*pairwise(path)] if side is Side.SELL else [*pairwise(path)][::-1]


def _score(
    plan_other: Fraction | int, side: Side, gas: int, gas_price_wei: int, worth: Fraction | None
) -> Fraction:
    cost = Fraction(gas * gas_price_wei) / worth if worth else 0
    return (plan_other if side is Side.SELL else -plan_other) - Fraction(cost)


def _best_single_makers(index: PairIndex, path: tuple[bytes, ...], side: Side, amount: int) -> int | None:
    for give, get in _steps(path, side):
        fills = [_alone(live, give, side, amount) for live in index.between(give, get).values()]
        found = [other for other in fills if other]
        if not found:
            return None
        amount = max(found) if side is Side.SELL else min(found)
    return amount


@st.composite
def swaps(draw: st.DrawFn) -> tuple[PairIndex, SwapRequest]:
    """From A to D."""
    index = an_index(*draw(graphs))
    amount = draw(st.integers(1, 100) | st.integers(1, 10**4))
    return index, SwapRequest(A, D, amount, draw(sides))


def _checked_hop(index: PairIndex, hop: HopPlan, side: Side) -> None:
    """Each share equals its maker's book, shares add up, the first is the largest, and each maker has one."""
    of_maker = {live.maker: live for live in index.between(hop.src_token, hop.dest_token).values()}
    for share in hop.shares:
        fixed, other = share.src_amount, share.dest_amount
        if side is Side.BUY:
            fixed, other = other, fixed
        assert _alone(of_maker[share.maker], hop.src_token, side, fixed) == other > 0
    assert sum(share.src_amount for share in hop.shares) == hop.src_amount
    assert sum(share.dest_amount for share in hop.shares) == hop.dest_amount
    assert len({share.maker for share in hop.shares}) == len(hop.shares)
    largest = hop.shares[0]
    key = "src_amount" if side is Side.SELL else "dest_amount"
    assert all(getattr(largest, key) >= getattr(share, key) for share in hop.shares)


@given(swaps())
def test_a_plan_is_what_the_books_give_and_can_be_executed(case: tuple[PairIndex, SwapRequest]) -> None:
    index, wanted = case
    plan = _finder(index).find(wanted)
    assume(plan is not None)
    assert plan is not None
    pairs = []
    for path in plan.paths:
        assert (path.hops[0].src_token, path.hops[-1].dest_token) == (A, D)
        assert (path.src_amount, path.dest_amount) == (path.hops[0].src_amount, path.hops[-1].dest_amount)
        for hop in path.hops:
            _checked_hop(index, hop, wanted.side)
            pairs.append(frozenset((hop.src_token, hop.dest_token)))
        for first, second in pairwise(path.hops):
            assert (first.dest_token, first.dest_amount) == (second.src_token, second.src_amount)
    assert len(pairs) == len({*pairs}), "liquidity of a pair is counted twice"
    assert sum(path.src_amount for path in plan.paths) == plan.src_amount
    assert sum(path.dest_amount for path in plan.paths) == plan.dest_amount
    assert wanted.amount == (plan.src_amount if wanted.side is Side.SELL else plan.dest_amount)
    hops = sum(len(path.hops) for path in plan.paths)
    fills = sum(len(hop.shares) for path in plan.paths for hop in path.hops)
    assert plan.gas == swap_gas(wanted.side, hops - len(plan.paths), fills)


def _worth(index: PairIndex, wanted: SwapRequest) -> Fraction | None:
    """Of a unit of the token that is not fixed, in wei."""
    token = wanted.dest_token if wanted.side is Side.SELL else wanted.src_token
    return MidPrices(index, {B: Fraction(1)}).worth(token)


@given(swaps(), st.sampled_from([0, 1, 30, 1_000]))
def test_never_worse_than_the_best_path_of_best_single_makers(
    case: tuple[PairIndex, SwapRequest], gas_price_wei: int
) -> None:
    index, wanted = case
    wanted = msgspec.structs.replace(wanted, gas_price_wei=gas_price_wei)
    finder = _finder(index)
    plan, worth = finder.find(wanted), _worth(index, wanted)
    for path in _paths(index):
        other = _best_single_makers(index, path, wanted.side, wanted.amount)
        if other is None:
            continue
        assert plan is not None, path
        gas = swap_gas(wanted.side, len(path) - 2, len(path) - 1)
        alone = _score(other, wanted.side, gas, gas_price_wei, worth)
        assert _score(_other(plan), wanted.side, plan.gas, gas_price_wei, worth) >= alone


@given(swaps(), st.sampled_from([0, 1, 30, 1_000]))
def test_bounds_leave_out_nothing_that_is_better(
    case: tuple[PairIndex, SwapRequest], gas_price_wei: int
) -> None:
    """Beside a search that fills every path in both ways."""
    index, wanted = case
    wanted = msgspec.structs.replace(wanted, gas_price_wei=gas_price_wei)
    plan, worth = _finder(index).find(wanted), _worth(index, wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "_bound_after_gas", lambda *_: _UNBOUNDED)
        patch.setattr(Search, "_bound_of_singles", lambda *_: _UNBOUNDED)
        whole = _finder(index).find(wanted)
    assert (plan is None) == (whole is None)
    if plan is not None and whole is not None:
        scores = [_score(_other(each), wanted.side, each.gas, gas_price_wei, worth) for each in (plan, whole)]
        assert scores[0] == scores[1]


class _Bounded(Search):
    """Asserts first that no path, filled in either way, has a higher score than its bounds."""

    def best(self, network: Network, amount: int) -> FilledAmount | None:
        for lane in network.lanes:
            total, filled = through(lane.ladders, amount), self._fill(lane, amount, None)
            if total is not None and filled is not None:
                bound = self._bound(total[0], lane)
                assert filled[0] <= self._bound_after_gas(lane, amount, bound) <= bound
        return super().best(network, amount)


@settings(max_examples=examples(300))
@given(swaps(), st.sampled_from([0, 1, 30, 1_000]))
def test_no_path_has_a_higher_score_than_its_bounds(
    case: tuple[PairIndex, SwapRequest], gas_price_wei: int
) -> None:
    index, wanted = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pathfinder, "Search", _Bounded)
        _finder(index).find(msgspec.structs.replace(wanted, gas_price_wei=gas_price_wei))


def _finder(index: PairIndex) -> Pathfinder:
    """B is the wrapped native token: of eight decimals, so that a few wei for a unit of gas matter here."""
    return Pathfinder(index, B)


def _through(chain: list[Continuous], amount: Fraction) -> Fraction | None:
    for pair in chain:
        reached = pair.other(amount)
        if reached is None or not reached:
            return None
        amount = reached
    return amount


def _is_more_than_dust(reached: Fraction | None, chain: list[Continuous]) -> TypeGuard[Fraction]:
    """A part that rounding may turn into nothing cannot be executed."""
    return reached is not None and reached > _rounding(chain)


def _rounding(chain: list[Continuous]) -> Fraction:
    """A unit of each token per maker and hop, carried on at the steepest rate of the hops after it.

    A unit received costs what it does at the worst price, and that may be taken from the best one.
    """
    lost = Fraction(0)
    for pair in chain:
        steepest = pair.steepest()
        flattest = min(other / fixed for fixed, other in pair.segments)
        lost = lost * steepest + len(pair.makers) * (1 + steepest + steepest / flattest)
    return lost


@given(swaps(), st.sampled_from([0, 0, 1, 30]), st.integers(2, 12))
def test_within_the_bound_of_all_paths_all_pairs_of_them_and_fine_splits(
    case: tuple[PairIndex, SwapRequest], gas_price_wei: int, parts: int
) -> None:
    index, wanted = case
    assume(wanted.amount > 20)
    wanted = msgspec.structs.replace(wanted, gas_price_wei=gas_price_wei)
    plan, worth, side = _finder(index).find(wanted), _worth(index, wanted), wanted.side
    chains = {path: [Continuous(index, *step, side) for step in _steps(path, side)] for path in _paths(index)}
    amount = Fraction(wanted.amount)
    candidates = [
        (reached, [chain]) for chain in chains.values() if (reached := _through(chain, amount)) is not None
    ]
    for one, other in combinations(chains, 2):
        if {frozenset(step) for step in pairwise(one)} & {frozenset(step) for step in pairwise(other)}:
            continue
        for part in range(1, parts):
            first = amount * part / parts
            here, there = _through(chains[one], first), _through(chains[other], amount - first)
            if _is_more_than_dust(here, chains[one]) and _is_more_than_dust(there, chains[other]):
                candidates.append((here + there, [chains[one], chains[other]]))
    for reached, used in candidates:
        hops = sum(map(len, used))
        ideal = _score(reached, side, swap_gas(side, hops - len(used), hops), gas_price_wei, worth)
        further = sum(len(pair.makers) - 1 for chain in used for pair in chain)
        bound = sum(map(_rounding, used)) + Fraction((wanted.amount >> 10) + 1) * sum(map(_steepest, used))
        if worth:
            bound += Fraction(FILL * gas_price_wei * further) / worth
        if plan is None:
            assert side is Side.BUY or reached <= bound
        else:
            assert _score(_other(plan), side, plan.gas, gas_price_wei, worth) >= ideal - bound


def _steepest(chain: list[Continuous]) -> Fraction:
    rate = Fraction(1)
    for pair in chain:
        rate *= pair.steepest()
    return rate


@given(swaps(), st.randoms(use_true_random=False), st.sampled_from([0, 30]))
def test_the_same_books_give_the_same_plan(
    case: tuple[PairIndex, SwapRequest], order: random.Random, gas_price_wei: int
) -> None:
    """Whatever the order in which they came, and whatever was asked before."""
    index, wanted = case
    wanted = msgspec.structs.replace(wanted, gas_price_wei=gas_price_wei)
    shuffled = [*index.books()]
    order.shuffle(shuffled)
    again = _finder(an_index(*shuffled))
    again.find(msgspec.structs.replace(wanted, amount=wanted.amount + 1))
    assert again.find(wanted) == _finder(index).find(wanted)


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(swaps(), st.tuples(*[st.sampled_from([0, 0, 0, 1, 100, 5_000, 9_999])] * 4))
def test_taxes_leave_the_user_with_what_the_plan_says(
    case: tuple[PairIndex, SwapRequest], bps: tuple[int, int, int, int]
) -> None:
    index, wanted = case
    taxes = Taxes(*bps)
    plan = _finder(index).find(msgspec.structs.replace(wanted, taxes=taxes))
    assume(plan is not None)
    assert plan is not None
    into, out = (sum(getattr(path, end) for path in plan.paths) for end in ("src_amount", "dest_amount"))

    def arriving(amount: int, *rates: int) -> int:
        for rate in rates:
            amount = amount * (10_000 - rate) // 10_000
        return amount

    assert arriving(plan.src_amount, taxes.src, taxes.src_dex) >= into
    assert arriving(out, taxes.dest_dex, taxes.dest) >= plan.dest_amount
    if wanted.side is Side.SELL:
        assert arriving(plan.src_amount, taxes.src, taxes.src_dex) == into
        assert (arriving(out, taxes.dest_dex, taxes.dest), plan.src_amount) == (
            plan.dest_amount,
            wanted.amount,
        )
    else:
        assert plan.dest_amount == wanted.amount
        assert arriving(plan.src_amount - 1, taxes.src, taxes.src_dex) < into
