"""A round's decision, whatever is bid and in whatever order it is looked at."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.delta.auction.auction import Decision, GasCost, decide
from cambist.engine.trade.delta.bids.bids import RoundOrder
from cambist.engine.trade.delta.bids.simulation import Proven
from support.delta.bidding import a_delta_order, a_proven, a_round_order

_SMALL = {"src_amount": 70, "dest_amount": 33, "expected_amount": 0}
ORDERS = tuple(
    a_round_order(
        number,
        a_delta_order(buys=number % 2 == 0, nonce=number, **_SMALL if number in (2, 3) else {}),
        partially_fillable=number in (2, 3),
    )
    for number in range(4)
)
"""The last two may be filled in parts: a sale of 70 for 33, and a purchase of 33 for 70."""
AGENTS = ("alpha", "beta", "gamma")
TENTHS = 10


class Drawn(NamedTuple):
    """A bid: of each order (which one, promised units better than its limit, units better than that), and how
    many tenths of it, if that is one alone which may be filled in parts."""

    agent: str
    arrival: int
    gas: int
    parts: tuple[tuple[int, int, int], ...]
    tenths: int = TENTHS


def drawn(parts_max: int = 3) -> st.SearchStrategy[list[Drawn]]:
    """At the limits, or a little better, so that ties are common."""
    part = st.tuples(st.integers(0, len(ORDERS) - 1), st.integers(0, 3), st.integers(0, 2))
    parts = st.lists(part, min_size=1, max_size=parts_max, unique_by=lambda one: one[0]).map(tuple)
    tenths = st.sampled_from((1, 5, 9, TENTHS))
    one = st.builds(Drawn, st.sampled_from(AGENTS), st.integers(0, 2), st.integers(0, 3), parts, tenths)
    return st.lists(one, max_size=8)


def built(found: list[Drawn]) -> list[Proven]:
    """As answers number them: no two bids of an agent have the same place."""
    return [_built(one, place) for place, one in enumerate(found)]


def _built(one: Drawn, place: int) -> Proven:
    amount = None
    first = ORDERS[one.parts[0][0]]
    if len(one.parts) == 1 and first.part_min:
        left = first.part.amount
        amount = left if one.tenths == TENTHS else -(-left * one.tenths // TENTHS)
        amount = amount if amount == left else min(amount, left - first.part_min)
    parts = []
    for number, better, _ in one.parts:
        asked = ORDERS[number]
        limit = asked.limit if amount is None else asked.limit_of(asked.part_of(amount))
        parts.append((asked, limit + better * (1 if asked.terms.side is Side.SELL else -1)))
    more = [extra for _, _, extra in one.parts]
    return a_proven(
        one.agent, *parts, gas=one.gas, better=more, arrival=one.arrival, place=place, amount=amount
    )


def costs_of(priced: set[int]) -> dict[bytes, GasCost]:
    """Gas has a price for these orders: two units for each wei."""
    return {ORDERS[number].order_hash: _doubled for number in priced}


rounds = drawn()
prices = st.sets(st.integers(0, len(ORDERS) - 1))


def _doubled(wei: int) -> int:
    return 2 * wei


def net(bid: Proven, at: int, gas_costs: Mapping[bytes, GasCost]) -> int:
    """Net amount of a bid for one of its orders, computed independently; higher is better."""
    part = bid.candidate.parts[at]
    gas = 2 * bid.outcomes[at].gas if part.asked.order_hash in gas_costs else 0
    return part.promised - gas if part.asked.terms.side is Side.SELL else -(part.promised + gas)


def surplus(bid: Proven, at: int, gas_costs: Mapping[bytes, GasCost]) -> int:
    """Amount by which the bid beats the limit, pro rata for a part."""
    part = bid.candidate.parts[at]
    order = part.asked.order
    assert isinstance(order, DeltaOrder)
    if part.asked.terms.side is Side.SELL:
        least = math.ceil(Fraction(order.dest_amount * part.part.amount, order.src_amount))
        return net(bid, at, gas_costs) - least
    most = math.floor(Fraction(order.src_amount * part.part.amount, order.dest_amount))
    return net(bid, at, gas_costs) + most


def best_alone(found: list[Proven], asked: RoundOrder, gas_costs: Mapping[bytes, GasCost]) -> int | None:
    """The most surplus."""
    scores = [
        surplus(bid, 0, gas_costs)
        for bid in found
        if len(bid.candidate.parts) == 1 and bid.candidate.parts[0].asked is asked
    ]
    return max(scores, default=None)


def _best_net(found: list[Proven], asked: RoundOrder, gas_costs: Mapping[bytes, GasCost]) -> int:
    """Net amount of the best bid for this order alone, or the limit without such a bid."""
    verdict = decide([asked], [bid for bid in found if _is_alone(bid, asked)], 1, gas_costs)
    winner = verdict.verdicts[asked.order_hash].winner
    return asked.limit if winner is None else net(winner, 0, gas_costs)


def _is_alone(bid: Proven, asked: RoundOrder) -> bool:
    return len(bid.candidate.parts) == 1 and bid.candidate.parts[0].asked is asked


def told(decision: Decision) -> dict[bytes, Any]:
    """Comparable members of a decision."""
    return {
        key: (
            _named(verdict.winner),
            [_named(one) for one in verdict.runners_up],
            [(_named(one.bid), one.at, one.net, one.notice, one.detail) for one in verdict.bids],
        )
        for key, verdict in decision.verdicts.items()
    } | {b"": [_named(one) for one in decision.winners]}


def _named(bid: Proven | None) -> tuple[str, int, int] | None:
    return None if bid is None else (bid.candidate.agent, bid.candidate.arrival, bid.candidate.place)


@given(rounds, prices, st.randoms(use_true_random=False))
def test_the_decision_is_the_same_in_whatever_order_bids_and_orders_come(
    bids: list[Drawn], priced: set[int], random: Any
) -> None:
    found, gas_costs = built(bids), costs_of(priced)
    decision = decide(ORDERS, found, 1, gas_costs)
    mixed, orders = list(found), list(ORDERS)
    random.shuffle(mixed)
    random.shuffle(orders)
    shuffled_costs = dict(sorted(gas_costs.items(), key=lambda _: random.random()))
    assert told(decide(orders, mixed, 1, shuffled_costs)) == told(decision)


@given(drawn(parts_max=1), prices)
def test_alone_the_most_surplus_net_of_gas_wins_and_of_as_much_the_larger_part(
    bids: list[Drawn], priced: set[int]
) -> None:
    found, gas_costs = built(bids), costs_of(priced)
    decision = decide(ORDERS, found, 1, gas_costs)
    for asked in ORDERS:
        winner, best = decision.verdicts[asked.order_hash].winner, best_alone(found, asked, gas_costs)
        assert (winner is None) == (best is None)
        if winner is None:
            continue
        assert surplus(winner, 0, gas_costs) == best
        as_good = [
            bid.candidate.parts[0].part.amount
            for bid in found
            if bid.candidate.parts[0].asked is asked and surplus(bid, 0, gas_costs) == best
        ]
        assert winner.candidate.parts[0].part.amount == max(as_good)


@given(rounds, prices)
def test_every_order_is_settled_at_most_once_and_a_crossing_whole(
    bids: list[Drawn], priced: set[int]
) -> None:
    found, gas_costs = built(bids), costs_of(priced)
    decision = decide(ORDERS, found, 1, gas_costs)
    settled = [part.asked.order_hash for bid in decision.winners for part in bid.candidate.parts]
    assert len(settled) == len(set(settled))
    assert set(settled) == {key for key, verdict in decision.verdicts.items() if verdict.winner is not None}
    for bid in decision.winners:
        for part in bid.candidate.parts:
            assert decision.verdicts[part.asked.order_hash].winner is bid


@given(rounds, prices)
def test_a_crossing_leaves_no_order_worse_off_and_no_order_is_left_without_its_bid(
    bids: list[Drawn], priced: set[int]
) -> None:
    found, gas_costs = built(bids), costs_of(priced)
    decision = decide(ORDERS, found, 1, gas_costs)
    for asked in ORDERS:
        verdict, best = decision.verdicts[asked.order_hash], best_alone(found, asked, gas_costs)
        if best is None:
            continue
        assert verdict.winner is not None
        at = [part.asked for part in verdict.winner.candidate.parts].index(asked)
        assert surplus(verdict.winner, at, gas_costs) >= best
        assert not any(len(one.candidate.parts) > 1 for one in verdict.runners_up)
        assert len(verdict.runners_up) <= 2
        assert all(one is not verdict.winner for one in verdict.runners_up)


@given(rounds, prices)
def test_no_crossing_that_wins_could_be_replaced_by_one_that_gains_more(
    bids: list[Drawn], priced: set[int]
) -> None:
    found, gas_costs = built(bids), costs_of(priced)
    decision = decide(ORDERS, found, 1, gas_costs)

    def gain(bid: Proven) -> Fraction | None:
        """None where the crossing may not win."""
        total, wanted = Fraction(0), False
        for at, part in enumerate(bid.candidate.parts):
            best, mine = best_alone(found, part.asked, gas_costs), surplus(bid, at, gas_costs)
            if best is not None and mine < best:
                return None
            other = _best_net(found, part.asked, gas_costs)
            wanted |= best is None or mine > best
            larger = max(abs(net(bid, at, gas_costs)), abs(other), 1)
            total += Fraction(mine - (best or 0), larger)
        return total if wanted else None

    gains = {id(bid): gain(bid) for bid in found if len(bid.candidate.parts) > 1}
    for bid in found:
        mine = gains.get(id(bid))
        if mine is None or any(bid is one for one in decision.winners):
            continue
        hashes = {part.asked.order_hash for part in bid.candidate.parts}
        rivals = [
            gains[id(one)]
            for one in decision.winners
            if id(one) in gains and hashes & {part.asked.order_hash for part in one.candidate.parts}
        ]
        assert any(rival is not None and rival >= mine for rival in rivals)


@given(st.integers(1, 10**30), st.integers(1, 10**30), st.booleans(), st.data())
def test_parts_are_held_to_the_limit_pro_rata_and_end_with_the_last_unit(
    fixed: int, other: int, buys: bool, data: st.DataObject
) -> None:
    """However an order is cut, each part may be, its limit is the contract's, and nothing is left."""
    amounts = (
        {"src_amount": other, "dest_amount": fixed} if buys else {"src_amount": fixed, "dest_amount": other}
    )
    order = a_delta_order(buys=buys, **amounts, expected_amount=0)
    filled = 0
    limits: list[int] = []
    while filled < fixed:
        asked = a_round_order(1, order, filled=filled, partially_fillable=True)
        left = asked.part.amount
        assert left == fixed - filled
        amount = left
        if asked.part_min and len(limits) < 20:
            amount = data.draw(st.integers(asked.part_min, left - asked.part_min) | st.just(left))
        part = asked.part_of(amount)
        exact = Fraction(other * amount, fixed)
        assert asked.limit_of(part) == (math.floor(exact) if buys else math.ceil(exact))
        assert part.is_last is (amount == left)
        assert amount == left or (10 * amount >= left and 10 * (left - amount) >= left)
        limits.append(asked.limit_of(part))
        filled += amount
    assert filled == fixed
    assert sum(limits) <= other if buys else sum(limits) >= other
