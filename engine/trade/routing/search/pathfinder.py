"""Finds the best way to swap one token for another over the live books of a chain. Pure.

    1. Paths: `paths` finds them, or the request names one. The makers' books of each hop are merged.
    2. Bounds: the outcome of each path if shares were not rounded and each hop had a single fill; no plan on
       that path beats it. Paths are filled by falling bound until no bound is above the best plan. A second
       bound counts the gas of all fills that are worth it.
    3. A path is filled in two ways, hop after hop, and the better is kept: the best split among makers that
       are worth their gas, and the best single maker, where a bound lets the latter be better.
    4. Two paths together, if the first unit on each is better than the last unit on the other: the amount is
       divided so that the last units on both cost the same, and both are filled. Bounds prune the pairs too.

A SELL is computed from the source on, a BUY from the destination back; "other" is the amount that is not
fixed. Gas is valued by the mid price of the wrapped native token against the other token, see
`feeds.books.mid_prices`.

Guarantees: on a single hop without gas the plan is the best possible but for a unit of each token per maker
    (see `ladders`). Net of gas, the plan is never worse than the best path with the best single maker on each
    hop. Compared with the best split over any two paths of step 1, the plan loses at most the gas of a fill
    for each further maker of a hop, a unit of each token per maker and hop, and the paths' difference in
    price on 2^-10 of the amount, by which a division may be off. No liquidity counts twice.
Not guaranteed: optimality over paths that the search does not follow, over more than `PAIRS_SEARCHED_MAX`
    divisions, and for amounts so small that a unit of the other token matters.

Choice: A route has at most two paths, without a common pair, so that each fills independently.
Choice: Gas does not decide between routes where no live books price the native token.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from math import inf, prod

import msgspec
from msgspec import Struct

from .....codecs.messages.vocabulary import Side
from .....codecs.rounding import mul_div_down, mul_div_up
from .....config import limits
from .....feeds.books.mid_prices import MidPrices
from .....feeds.books.pair_index import PairIndex
from .gas import FILL, swap_gas
from .ladders import ANYBODY, LadderRate, Ladders, LadderShare, MakerFilter, MergedLadder, through
from .paths import Path, find_paths, pairs_apart
from .plan import HopPlan, MakerShare, PathPlan, PlanTotal, RoutePlan, SwapRequest

NETWORKS_MAX = 1_024  # cached networks, by ends and filters
PAIRS_SEARCHED_MAX = 8  # pairs of paths that are divided for a plan
DIVISION_BITS = 10  # two paths are divided to the 2^-10 part of the amount


class NoPlanReason(Enum):
    """Reason why the pathfinder finds no plan for a swap over the makers' books."""

    LEFT_OUT = "left out"  # makers or paths that the request excludes would give a plan
    BOOKS = "books"  # no books lead from one token to the other
    SIDE = "side"  # books connect the tokens, but no path has levels on the side that the swap needs
    DEPTH = "depth"  # the amount is more than the books hold
    AMOUNT = "amount"  # the amount brings or costs not a single unit, or the taxes leave none of it


class Lane(Struct, frozen=True):
    """A path of tokens with the merged price levels of makers' books (a ladder) for each hop.

    Attributes:
        ladders: ladders of the hops: from the source on for SELL, from the destination back for BUY.
        first_rate: rate of the first unit over the whole path: output per input for SELL, the inverse for
            BUY.
    """

    tokens: Path
    ladders: tuple[MergedLadder, ...]
    first_rate: LadderRate


class Network(Struct, frozen=True):
    """The candidate paths of a swap between two tokens, each with its hops' price levels.

    Attributes:
        lanes: the paths.
        apart: pairs of indices of `lanes` without a common token pair, so that both paths fill independently.
    """

    lanes: tuple[Lane, ...]
    apart: tuple[tuple[int, int], ...]


class FilledLane(Struct, frozen=True):
    """A path of a swap with the amounts that each maker fills on every hop.

    Attributes:
        amounts: raw units of each token of the path, from the source on for SELL, else from the destination.
        fills: number of makers' fills over all hops.
        shares: makers' shares of each hop, in the direction of `amounts`.
    """

    lane: Lane
    amounts: list[int]
    fills: int
    shares: list[list[LadderShare]]

    @property
    def amount(self) -> int:
        """Amount that this path fills, raw units: of the source for SELL, of the destination for BUY."""
        return self.amounts[0]

    @property
    def other(self) -> int:
        """Amount that comes out of this path for SELL, or goes into this path for BUY, raw units."""
        return self.amounts[-1]


FilledAmount = tuple[int, tuple[FilledLane, ...]]  # score, one path or two
Total = tuple[int, int, int]  # the other amount; the rate of the last unit as numerator, denominator
Choose = Callable[[MergedLadder, int, bytes], list[LadderShare] | None]  # ladder, amount, the other token


class Pathfinder:
    """Finds the best routes for swaps over the books of one chain.

    Args:
        index: index of the makers' live books.
        wrapped_native: the token in which gas is valued; if empty, routes are chosen without regard to gas.
    """

    def __init__(self, index: PairIndex, wrapped_native: bytes) -> None:
        self._index = index
        self._ladders = Ladders(index)
        self._in_wei = MidPrices(index, {wrapped_native: Fraction(1)} if wrapped_native else {})
        self._paths: dict[object, tuple[Path, ...]] = {}
        self._paths_topology = index.topology
        self._networks: dict[object, Network] = {}
        self._networks_version = index.version

    def find(self, wanted: SwapRequest) -> RoutePlan | None:
        """Find the best plan for a swap; None if the books lack the liquidity or an amount becomes zero."""
        lanes = self._best(wanted)
        total = _total(wanted, lanes)
        if total is None:
            return None
        paths = tuple([_path_plan(filled, wanted.side) for filled in lanes])
        return RoutePlan(total.side, total.src_amount, total.dest_amount, total.gas, paths)

    def lack(self, wanted: SwapRequest) -> NoPlanReason:
        """Return the reason why no plan for a swap is found, such as no books or too little depth."""
        amount = _at_exchanges(wanted)
        if not amount:
            return NoPlanReason.AMOUNT
        anyhow = msgspec.structs.replace(wanted, only=None, without=frozenset(), route=())
        if anyhow != wanted and self.total(anyhow) is not None:
            return NoPlanReason.LEFT_OUT
        lanes = self._network(wanted).lanes
        if lanes:
            is_deep = any(through(lane.ladders, amount) is not None for lane in lanes)
            return NoPlanReason.AMOUNT if is_deep else NoPlanReason.DEPTH
        return NoPlanReason.SIDE if self._has_books(wanted) else NoPlanReason.BOOKS

    def _has_books(self, wanted: SwapRequest) -> bool:
        """Whether makers have books, in either direction, for every hop of some path of the swap."""
        makers = _makers_of(wanted)
        return any(
            all(
                any(makers.lets(live.maker) for live in self._index.between(one, other).values())
                for one, other in pairwise(path)
            )
            for path in self._paths_of(wanted, makers)
        )

    def total(self, wanted: SwapRequest) -> PlanTotal | None:
        """Return amounts and gas of the best plan for a swap; None without a plan.

        A swap has no plan if the books lack the liquidity or an amount becomes zero.
        """
        return _total(wanted, self._best(wanted))

    def by_maker(self, wanted: SwapRequest) -> dict[str, RoutePlan]:
        """Find, for each maker, the best plan for a swap that uses this maker alone: maker's name -> plan.

        Makers without such a plan have no entry.
        """
        makers = MakerFilter(wanted.only, wanted.without)
        names = sorted({live.maker for live in self._index.books() if makers.lets(live.maker)})
        plans = {name: self.find(msgspec.structs.replace(wanted, only=frozenset({name}))) for name in names}
        return {name: plan for name, plan in plans.items() if plan is not None}

    def paths(self, src_token: bytes, dest_token: bytes) -> tuple[Path, ...]:
        """List all paths that the search considers between two tokens, even if no book can fill them.

        The paths stay the same until `PairIndex.topology` changes, i.e. until the set of books or the
        liquidity of a book changes.
        """
        if src_token == dest_token:
            return ()
        return self._paths_of(SwapRequest(src_token, dest_token, 0, Side.SELL), ANYBODY)

    def best_rate(self, src_token: bytes, dest_token: bytes) -> LadderRate | None:
        """Return an upper bound on the rate of a swap between two tokens, of any size and before gas.

        Returns:
            Destination per source, in raw units, as (numerator, denominator); None if no path has liquidity.
        """
        if src_token == dest_token:
            return None
        best: LadderRate | None = None
        for lane in self._network(SwapRequest(src_token, dest_token, 0, Side.SELL)).lanes:
            if best is None or lane.first_rate[0] * best[1] > best[0] * lane.first_rate[1]:
                best = lane.first_rate
        return best

    def _best(self, wanted: SwapRequest) -> tuple[FilledLane, ...]:
        """Find the paths of a swap's best plan, with makers' shares on each hop; empty without a plan."""
        amount = _at_exchanges(wanted)
        if not amount or wanted.src_token == wanted.dest_token:
            return ()
        best = Search(wanted, self._in_wei).best(self._network(wanted), amount)
        return () if best is None else best[1]

    def _network(self, wanted: SwapRequest) -> Network:
        index = self._index
        if self._networks_version != index.version:
            self._networks.clear()
            self._networks_version = index.version
        key = wanted.src_token, wanted.dest_token, wanted.side, wanted.only, wanted.without, wanted.route
        network = self._networks.get(key)
        if network is None:
            if len(self._networks) >= NETWORKS_MAX:
                self._networks.clear()
            network = self._networks[key] = self._new_network(wanted)
        return network

    def _new_network(self, wanted: SwapRequest) -> Network:
        makers = _makers_of(wanted)
        lanes: list[Lane] = []
        for path in self._paths_of(wanted, makers):
            hops = [*pairwise(path)]
            if wanted.side is Side.BUY:
                hops.reverse()
            ladders = [self._ladders.merged(give, get, wanted.side, makers) for give, get in hops]
            present = tuple(ladder for ladder in ladders if ladder is not None)
            if len(present) == len(hops):
                first = (
                    prod(each.first_rate[0] for each in present),
                    prod(each.first_rate[1] for each in present),
                )
                lanes.append(Lane(path, present, first))
        return Network(tuple(lanes), pairs_apart(tuple(lane.tokens for lane in lanes)))

    def _paths_of(self, wanted: SwapRequest, makers: MakerFilter) -> tuple[Path, ...]:
        src, dest, route = wanted.src_token, wanted.dest_token, wanted.route
        if route:
            is_path = 2 <= len(route) <= limits.ROUTE_TOKENS_MAX and len({*route}) == len(route)
            return (route,) if is_path and (route[0], route[-1]) == (src, dest) else ()
        index = self._index
        if self._paths_topology != index.topology:
            self._paths.clear()
            self._paths_topology = index.topology
        key = src, dest, makers
        paths = self._paths.get(key)
        if paths is None:
            if len(self._paths) >= NETWORKS_MAX:
                self._paths.clear()
            around = self._around(makers)
            paths = self._paths[key] = find_paths(src, dest, around)
        return paths

    def _around(self, makers: MakerFilter) -> Callable[[bytes], Mapping[bytes, Decimal]]:
        """Return a function that maps a token to the tokens that it is traded with.

        The function returns {token: liquidity of the pair in dollars}, summed over the makers that `makers`
        allows.
        """
        index = self._index
        if makers is ANYBODY:
            return index.neighbours

        def around(token: bytes) -> Mapping[bytes, Decimal]:
            found: dict[bytes, Decimal] = {}
            for other in index.neighbours(token):
                allowed = [
                    live.liquidity_usd
                    for live in index.between(token, other).values()
                    if makers.lets(live.maker)
                ]
                if allowed:
                    found[other] = sum(allowed, Decimal())
            return found

        return around


class Search:
    """Search for the best path, or two paths, of a swap between two tokens.

    The search maximises a score: the received amount, or minus the paid amount, less the cost of gas, all
    times a factor that makes the score an exact integer.

    Args:
        wanted: the swap; only its side, tokens and gas price are used.
        in_wei: mid prices of tokens in the native token, by which gas is valued.
    """

    def __init__(self, wanted: SwapRequest, in_wei: MidPrices) -> None:
        self._side = wanted.side
        self._sells = wanted.side is Side.SELL
        self._in_wei = in_wei
        self._gas_price_wei = wanted.gas_price_wei
        self._costs: dict[bytes, int | None] = {}
        self._splits: dict[tuple[int, int], list[LadderShare] | None] = {}
        worth = (
            in_wei.worth(wanted.dest_token if self._sells else wanted.src_token)
            if wanted.gas_price_wei
            else None
        )
        self._factor, self._gas_factor = (
            (1, 0) if worth is None else (worth.numerator, wanted.gas_price_wei * worth.denominator)
        )
        self._shared = swap_gas(self._side, 0, 0) * self._gas_factor  # gas that two paths pay once
        self._weighs_gas = worth is not None

    def best(self, network: Network, amount: int) -> FilledAmount | None:
        """Find the path, or two paths, that fill the amount with the highest score (outcome less gas).

        The result is None if no path can fill the amount.
        """
        if len(network.lanes) == 1:
            return self._fill(network.lanes[0], amount, None)
        totals = [through(lane.ladders, amount) for lane in network.lanes]
        order = sorted(
            (-self._bound(total[0], lane), number)
            for number, (lane, total) in enumerate(zip(network.lanes, totals, strict=True))
            if total is not None
        )
        best: FilledAmount | None = None
        for bound, number in order:
            if best is not None and -bound <= best[0]:  # `order` is by falling bound: no later path is better
                break
            lane = network.lanes[number]
            if best is None or self._bound_after_gas(lane, amount, -bound) > best[0]:
                best = self._better(best, self._fill(lane, amount, best and best[0]))
        for lane, total in zip(network.lanes, totals, strict=True):
            if total is None:  # a hop may be too thin for all makers' output but not for a single maker's
                best = self._better(best, self._chain(lane, amount, _one_maker, best and best[0]))
        # After the single paths: their best score is the bar that most divisions do not reach.
        for bound, one, other, part in self._divisions(network, totals, amount, best):
            if best is not None and bound <= best[0]:
                break
            best = self._better(best, self._fill_two(one, other, part, amount, best and best[0]))
        return best

    # --- One path -----------------------------------------------------------------------------------

    def _fill(self, lane: Lane, amount: int, than: int | None) -> FilledAmount | None:
        """Fill a path by makers worth their gas, and by the best single maker per hop; return the better.

        The result is None if neither score (outcome less gas) is above `than`.
        """
        best = self._chain(lane, amount, self._by_price, than)
        if best is not None and (than is None or best[0] > than):
            than = best[0]
            if best[1][0].fills == len(lane.ladders):  # the best maker alone on each hop (`MergedLadder`)
                return best
        else:
            best = None
        bound = self._bound_of_singles(lane, amount)
        if bound is None or (than is not None and bound <= than):
            return best
        alone = self._chain(lane, amount, _one_maker, than)
        return best if alone is None or (than is not None and alone[0] <= than) else alone

    def _bound_of_singles(self, lane: Lane, amount: int) -> int | None:
        """Upper bound on the score of a path that one maker fills on each hop; None if none can."""
        reached: int | None = amount
        for ladder in lane.ladders:
            reached = ladder.bound_of_singles(reached) if reached else None
        return self._bound(reached, lane) if reached else None

    def _chain(self, lane: Lane, amount: int, choose: Choose, than: int | None) -> FilledAmount | None:
        """Fill a path hop after hop by the makers that `choose` selects.

        The result is None if a hop cannot be filled or no score (outcome less gas) above `than` is possible.
        """
        reached, fills, amounts = amount, 0, [amount]
        hops: list[list[LadderShare]] = []
        for ladder, other in zip(lane.ladders, self._others(lane), strict=True):
            if hops and than is not None:
                onward = lane.ladders[len(hops) :]
                rest = through(onward, reached)
                if rest is None:
                    return None
                if self._score(rest[0], len(lane.ladders) - 1, fills + len(onward)) <= than:
                    return None
            shares = choose(ladder, reached, other)
            if not shares:
                return None
            reached = sum([share[2] for share in shares])
            fills += len(shares)
            hops.append(shares)
            amounts.append(reached)
        return self._score(reached, len(hops) - 1, fills), (FilledLane(lane, amounts, fills, hops),)

    def _others(self, lane: Lane) -> tuple[bytes, ...]:
        """Return the token that each of a path's ladders brings (SELL) or costs (BUY)."""
        return lane.tokens[1:] if self._sells else lane.tokens[-2::-1]

    def _by_price(self, ladder: MergedLadder, amount: int, other: bytes) -> list[LadderShare] | None:
        key = id(ladder), amount
        if key not in self._splits:
            cost = self._fill_cost(other)
            self._splits[key] = (
                ladder.best_split(amount) if cost is None else ladder.split_after_gas(amount, cost)
            )
        return self._splits[key]

    def _fill_cost(self, token: bytes) -> int | None:
        """Gas cost of a fill in raw units of a token, by its mid price; None if gas is not weighed in it."""
        if token not in self._costs:
            worth = self._in_wei.worth(token) if self._weighs_gas else None
            gas = FILL * self._gas_price_wei
            self._costs[token] = None if worth is None else gas * worth.denominator // worth.numerator
        return self._costs[token]

    def _bound_after_gas(self, lane: Lane, amount: int, bound: int) -> int:
        """Upper bound on the score of any choice of makers on a path: at most `bound`.

        `MergedLadder.bound_after_gas` counts a fill at its cost in the hop's token. What a hop brings beyond
        its bound is at most the cost of its fills, and passes on at most at the rates of the next bounds,
        which are concave (convex for BUY). With spread and depth of the hops after, a fill thereby counts a
        little more or less than its gas: the difference is added for as many fills as raise the bound.
        """
        ahead: list[tuple[int, int]] = []  # for each hop: cost of a fill in the token reached, makers
        for ladder, other in zip(lane.ladders, self._others(lane), strict=True):
            cost = self._fill_cost(other)
            found = None if cost is None else ladder.bound_after_gas(amount, cost)
            if cost is None or found is None or found[0] <= 0 or found[1][0] <= 0:
                return bound  # gas is not weighed, or takes all
            amount, (net, size) = found
            ahead = [(-(-each * net // size), makers) for each, makers in ahead]
            ahead.append((cost, len(ladder.makers)))
        score = self._score(amount, len(ahead) - 1, 0)
        for cost, makers in ahead:
            gain = cost * self._factor - FILL * self._gas_factor
            score += max(gain, gain * makers)
        return min(score, bound)

    # --- Two paths ----------------------------------------------------------------------------------

    def _promising(
        self, network: Network, totals: list[Total | None], amount: int, best: FilledAmount | None
    ) -> list[tuple[float, Lane, Lane]]:
        """List pairs of paths over which a split of the amount may have a higher score than the best path.

        In such a pair each path's first rate is better than the other's last, and the first rate of either is
        better than the average rate of the best path. `totals` has the result of the whole amount on each
        path.

        Returns:
            (upper bound on the score, first path, second path), the highest bound first.
        """
        # `best` is of a single path here. Units at two rates that are both no better than its average rate
        # cannot together bring more, but for gas.
        average = None if best is None else (best[1][0].other, amount)
        lanes = network.lanes
        half = (amount + 1) // 2 if self._sells else amount // 2  # two halves bound an odd amount's outcome
        halves: dict[int, Total | None] = {}
        found: list[tuple[float, Lane, Lane]] = []
        for pair in network.apart:
            one, other = (lanes[number] for number in pair)
            if average is not None and not (
                self._is_better(one.first_rate, average) or self._is_better(other.first_rate, average)
            ):
                continue
            # Otherwise all units are best on one path, which `best` has filled already.
            if not (self._continues(totals[pair[0]], other) and self._continues(totals[pair[1]], one)):
                continue
            for number in pair:
                if number not in halves:
                    halves[number] = through(lanes[number].ladders, half)
            found.append(
                (self._bound_of_two(one, other, halves[pair[0]], halves[pair[1]], amount), one, other)
            )
        return sorted(found, key=lambda row: -row[0])

    def _continues(self, total: Total | None, other: Lane) -> bool:
        """Whether the first unit on the path `other` has a better rate than the last unit of `total`.

        Args:
            total: result of the whole amount on another path; None if that path cannot fill the amount, in
                which case the result is True.
        """
        return total is None or self._is_better(other.first_rate, total[1:])

    def _bound_of_two(
        self, one: Lane, other: Lane, here: Total | None, there: Total | None, amount: int
    ) -> float:
        """Compute an upper bound on the score (outcome less gas) of any split of an amount over two paths.

        A path's outcome is concave in the amount (convex for BUY), so that it lies below (above) its tangent
        at the half. The bound is an integer, or infinite if a path cannot fill half of the amount.

        Args:
            here, there: result of half of the amount on the paths `one` and `other`.
        """
        if here is None or there is None:
            return inf
        steeper = abs(here[1] * there[2] - there[1] * here[2]) * (amount // 2) // (here[2] * there[2]) + 1
        reach = here[0] + there[0] + (steeper if self._sells else -steeper)
        return self._score_of_two(reach, one, other)

    def _divisions(
        self, network: Network, totals: list[Total | None], amount: int, best: FilledAmount | None
    ) -> list[tuple[int, Lane, Lane, int]]:
        """List splits of an amount over two paths that may have a higher score than the best path.

        Returns:
            (upper bound on the score, first path, second path, part of the amount for the first), the highest
            bound first.
        """
        found: list[tuple[int, Lane, Lane, int]] = []
        for bound, one, other in self._promising(network, totals, amount, best)[:PAIRS_SEARCHED_MAX]:
            if best is not None and bound <= best[0]:
                break
            part = self._divide(one, other, amount)
            here, there = through(one.ladders, part), through(other.ladders, amount - part)
            if here is not None and there is not None:
                found.append((self._score_of_two(here[0] + there[0], one, other), one, other, part))
        return sorted(found, key=lambda row: -row[0])

    def _fill_two(
        self, one: Lane, other: Lane, part: int, amount: int, than: int | None
    ) -> FilledAmount | None:
        """Fill two paths, `one` with `part` of the amount and `other` with the remaining amount.

        The result is None if no score (outcome less gas) above `than` is possible.
        """
        there = through(other.ladders, amount - part)
        if there is None:
            return None
        enough = None if than is None else than - self._shared
        first = self._fill(one, part, None if enough is None else enough - self._bound(there[0], other))
        if first is None:
            return None
        second = self._fill(other, amount - part, None if enough is None else enough - first[0])
        if second is None:
            return None
        lanes = sorted((*first[1], *second[1]), key=lambda filled: -filled.amount)
        return first[0] + second[0] + self._shared, tuple(lanes)

    def _divide(self, one: Lane, other: Lane, amount: int) -> int:
        """Compute the part of an amount for path `one` at which the last units on both paths cost the same.

        The result is exact to 2^-DIVISION_BITS of the amount; 0 if both paths together are not deep enough.
        """
        low, high, part = 0, amount, 0
        finest = amount >> DIVISION_BITS
        while high - low > 1 and (not part or high - low > finest):
            middle = (low + high) // 2
            here, there = through(one.ladders, middle), through(other.ladders, amount - middle)
            if here is None and there is None:
                return 0
            if here is not None and there is not None:
                part = middle
            if here is None or (there is not None and self._is_better(there[1:], here[1:])):
                high = middle
            else:
                low = middle
        return part

    # --- Scores -------------------------------------------------------------------------------------

    def _is_better(self, rate: LadderRate, than: LadderRate) -> bool:
        ours, theirs = rate[0] * than[1], than[0] * rate[1]
        return ours > theirs if self._sells else ours < theirs

    def _bound(self, other: int, lane: Lane) -> int:
        return self._score(other, len(lane.ladders) - 1, len(lane.ladders))

    def _score_of_two(self, other: int, one: Lane, another: Lane) -> int:
        """Compute the score of two paths together, each with a fill per hop."""
        hops = len(one.ladders) + len(another.ladders)
        return self._score(other, hops - 2, hops)

    def _score(self, other: int, hops_after_first: int, fills: int) -> int:
        gas = swap_gas(self._side, hops_after_first, fills) * self._gas_factor
        return (other if self._sells else -other) * self._factor - gas

    def _better(self, one: FilledAmount | None, other: FilledAmount | None) -> FilledAmount | None:
        """Return the result with the higher score (outcome less gas); `one` if the scores are equal."""
        if one is None or other is None:
            return one or other
        return other if other[0] > one[0] else one


def _makers_of(wanted: SwapRequest) -> MakerFilter:
    return MakerFilter(wanted.only, wanted.without) if wanted.only is not None or wanted.without else ANYBODY


def _one_maker(ladder: MergedLadder, amount: int, _other: bytes) -> list[LadderShare] | None:
    return ladder.best_single(amount)


def _at_exchanges(wanted: SwapRequest) -> int:
    """Amount that makers take (SELL) or give (BUY), allowing for transfer taxes; 0 if these take all."""
    taxes = wanted.taxes
    if wanted.side is Side.SELL:
        return _taxed(_taxed(wanted.amount, taxes.src), taxes.src_dex)
    return _untaxed(_untaxed(wanted.amount, taxes.dest), taxes.dest_dex)


def _taxed(amount: int, tax_bps: int) -> int:
    """Compute the amount that arrives after a token's transfer tax when `amount` is sent, rounded down."""
    return mul_div_down(amount, limits.BPS_ONE - tax_bps, limits.BPS_ONE)


def _untaxed(amount: int, tax_bps: int) -> int:
    """Compute the amount to send so that `amount` arrives after a token's transfer tax, rounded up.

    The result is 0 if the tax takes all.
    """
    return 0 if tax_bps >= limits.BPS_ONE else mul_div_up(amount, limits.BPS_ONE, limits.BPS_ONE - tax_bps)


def _total(wanted: SwapRequest, lanes: tuple[FilledLane, ...]) -> PlanTotal | None:
    """Add up amounts and gas of a swap's filled paths; None if a total is 0 or above uint256."""
    other, taxes = sum([filled.other for filled in lanes]), wanted.taxes
    if wanted.side is Side.SELL:
        src_amount = wanted.amount
        dest_amount = other = _taxed(_taxed(other, taxes.dest_dex), taxes.dest)
    else:
        src_amount = other = _untaxed(_untaxed(other, taxes.src_dex), taxes.src)
        dest_amount = wanted.amount
    if not 0 < other <= limits.UINT256_MAX:
        return None
    gas = swap_gas(
        wanted.side,
        sum([len(filled.shares) - 1 for filled in lanes]),
        sum([filled.fills for filled in lanes]),
    )
    return PlanTotal(wanted.side, src_amount, dest_amount, gas)


def _path_plan(filled: FilledLane, side: Side) -> PathPlan:
    sells = side is Side.SELL
    steps = [*zip(filled.lane.ladders, filled.shares, pairwise(filled.amounts), strict=True)]
    if not sells:
        steps.reverse()
    hops = []
    for (give, get), (ladder, shares, (fixed, other)) in zip(
        pairwise(filled.lane.tokens), steps, strict=True
    ):
        makers = ladder.makers
        if sells:
            parts = [MakerShare(makers[maker], src, dest) for maker, src, dest in shares]
            hops.append(HopPlan(give, get, fixed, other, tuple(parts)))
        else:
            parts = [MakerShare(makers[maker], src, dest) for maker, dest, src in shares]
            hops.append(HopPlan(give, get, other, fixed, tuple(parts)))
    return PathPlan(hops[0].src_amount, hops[-1].dest_amount, tuple(hops))
