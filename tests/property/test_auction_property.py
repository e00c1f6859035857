"""A round's decision, whatever is bid and in whatever order it is looked at."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.vocabulary import Side
from cambist.engine.venue.delta.auction import Decision, GasCost, decide
from cambist.engine.venue.delta.bids import RoundOrder
from cambist.engine.venue.delta.simulation import Proven
from support.bidding import a_proven, a_round_order

ORDERS = tuple(a_round_order(number, buys=number % 2 == 0) for number in range(4))
AGENTS = ("alpha", "beta", "gamma")


class Drawn(NamedTuple):
    """A bid: of each order (which one, promised units better than its limit, units better than that)."""

    agent: str
    arrival: int
    gas: int
    parts: tuple[tuple[int, int, int], ...]


def drawn(parts_max: int = 3) -> st.SearchStrategy[list[Drawn]]:
    """At the limits, or a little better, so that ties are common."""
    part = st.tuples(st.integers(0, len(ORDERS) - 1), st.integers(0, 3), st.integers(0, 2))
    parts = st.lists(part, min_size=1, max_size=parts_max, unique_by=lambda one: one[0]).map(tuple)
    one = st.builds(Drawn, st.sampled_from(AGENTS), st.integers(0, 2), st.integers(0, 3), parts)
    return st.lists(one, max_size=8)


def built(found: list[Drawn]) -> list[Proven]:
    """As answers number them: no two bids of an agent have the same place."""
    return [_built(one, place) for place, one in enumerate(found)]


def _built(one: Drawn, place: int) -> Proven:
    parts = []
    for number, better, _ in one.parts:
        asked = ORDERS[number]
        parts.append((asked, asked.limit + better * (1 if asked.terms.side is Side.SELL else -1)))
    more = [extra for _, _, extra in one.parts]
    return a_proven(one.agent, *parts, gas=one.gas, better=more, arrival=one.arrival, place=place)


def costs_of(priced: set[int]) -> dict[bytes, GasCost]:
    """Gas has a price for these orders: two units for each wei."""
    return {ORDERS[number].order_hash: _doubled for number in priced}


rounds = drawn()
prices = st.sets(st.integers(0, len(ORDERS) - 1))


def _doubled(wei: int) -> int:
    return 2 * wei


def net(bid: Proven, at: int, gas_costs: Mapping[bytes, GasCost]) -> int:
    """How good a bid is for one of its orders, reckoned once more; the higher the better."""
    part, outcome = bid.candidate.parts[at], bid.outcomes[at]
    gas = 2 * outcome.gas if part.asked.order_hash in gas_costs else 0
    return outcome.received - gas if part.asked.terms.side is Side.SELL else -(outcome.spent + gas)


def best_alone(found: list[Proven], asked: RoundOrder, gas_costs: Mapping[bytes, GasCost]) -> int | None:
    scores = [
        net(bid, 0, gas_costs)
        for bid in found
        if len(bid.candidate.parts) == 1 and bid.candidate.parts[0].asked is asked
    ]
    return max(scores, default=None)


def told(decision: Decision) -> dict[bytes, Any]:
    """What of a decision has to be the same."""
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
def test_alone_the_best_simulated_outcome_net_of_gas_wins(bids: list[Drawn], priced: set[int]) -> None:
    found, gas_costs = built(bids), costs_of(priced)
    decision = decide(ORDERS, found, 1, gas_costs)
    for asked in ORDERS:
        winner, best = decision.verdicts[asked.order_hash].winner, best_alone(found, asked, gas_costs)
        assert (winner is None) == (best is None)
        if winner is not None:
            assert net(winner, 0, gas_costs) == best


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
        assert net(verdict.winner, at, gas_costs) >= best
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
            best, score = best_alone(found, part.asked, gas_costs), net(bid, at, gas_costs)
            if best is not None and score < best:
                return None
            limit = part.asked.limit if part.asked.terms.side is Side.SELL else -part.asked.limit
            reference = limit if best is None else best
            wanted |= best is None or score > best
            total += Fraction(score - reference, max(abs(score), abs(reference), 1))
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
