"""Bids of an agent that are simulated, and the effect of simulations on the merit of agents."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.messages.agent_messages import Notice
from cambist.config.limits import AGENT_BIDS_PER_ORDER_MAX
from cambist.engine.trade.delta.bids.bid_merit import best_of, judged
from cambist.engine.trade.delta.bids.bids import Candidate, Rejection, answer_of, read_answer
from cambist.engine.trade.delta.bids.simulation import Proven, SettlementOutcome, Simulated
from support.delta.bidding import ONE, USDC_ONE, a_round_order, hash_of

SALES = [a_round_order(number) for number in range(1, 5)]
PURCHASE = a_round_order(5, buys=True)
ROUND = {one.order_hash: one for one in (*SALES, PURCHASE)}
LIMIT = SALES[0].limit


def a_part(number: int, better: int = 0) -> dict[str, Any]:
    """A bid's part that is better than the order's limit by so many units."""
    asked = ROUND[hash_of(number)]
    promised = asked.limit - better if asked is PURCHASE else asked.limit + better
    return {"orderHash": "0x" + hash_of(number).hex(), "promisedAmount": str(promised)}


def read(*bids: Sequence[dict[str, Any]], agent: str = "alpha") -> list[Candidate]:
    raw = msgspec.json.encode({"bids": [{"parts": list(bid)} for bid in bids]})
    found = list(read_answer(answer_of(agent, 0, 5, raw), ROUND))
    assert all(isinstance(one, Candidate) for one in found), found
    return [one for one in found if isinstance(one, Candidate)]


def sorted_out(bids: list[Candidate]) -> tuple[list[int], list[int]]:
    """Places of the bids that are simulated, in that order, and places of the other bids."""
    found = list(best_of(bids))
    good = [one.place for one in found if isinstance(one, Candidate)]
    return good, sorted(
        int(one.detail[5 : one.detail.index("]")]) for one in found if isinstance(one, Rejection)
    )


def test_the_best_few_bids_on_an_order_are_simulated_the_best_of_each_order_first() -> None:
    bids = read(
        [a_part(1, 5)],
        [a_part(1, 9)],
        [a_part(1, 1)],
        [a_part(1, 7)],
        [a_part(2)],
        [a_part(5, 3)],
        [a_part(5, 8)],
    )
    assert sorted_out(bids) == ([1, 6, 4, 3, 5, 0], [2])


def test_what_is_left_out_is_told() -> None:
    (told,) = [
        one for one in best_of(read(*[[a_part(1, more)] for more in range(4)])) if isinstance(one, Rejection)
    ]
    assert (told.agent, told.notice, told.orders) == ("alpha", Notice.LOST, {hash_of(1): LIMIT})
    assert told.detail == "bids[0]: not simulated, 3 bids of yours on an order are better"


def test_crossings_are_counted_apart_and_on_each_of_their_orders() -> None:
    pairs = [[a_part(1, more) | {"paid": "1"}, a_part(2, more) | {"paid": "1"}] for more in range(5)]
    other = [a_part(1, 0) | {"paid": "1"}, a_part(3, 0) | {"paid": "1"}]
    good, left_out = sorted_out(read([a_part(1)], *pairs, other))
    assert good == [5, 0, 4, 3]
    assert left_out == [1, 2, 6]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, USDC_ONE)), max_size=40))
def test_every_bid_is_simulated_or_told_and_none_that_is_left_out_is_better(
    bids: list[tuple[int, int]],
) -> None:
    candidates = read(*[[a_part(number, better)] for number, better in bids])
    found = list(best_of(candidates))
    assert len(found) == len(bids)
    kept = [one for one in found if isinstance(one, Candidate)]
    counts = Counter(one.parts[0].asked.order_hash for one in kept)
    assert all(count <= AGENT_BIDS_PER_ORDER_MAX for count in counts.values())
    for number in range(1, 6):
        of_order = sorted((better for one, better in bids if one == number), reverse=True)
        taken = [
            abs(one.parts[0].promised - one.parts[0].limit)
            for one in kept
            if one.parts[0].asked.order_hash == hash_of(number)
        ]
        assert taken == of_order[:AGENT_BIDS_PER_ORDER_MAX]


def proven(candidate: Candidate) -> Proven:
    return Proven(candidate, tuple(SettlementOutcome(ONE, part.promised, 1) for part in candidate.parts))


def refused(candidate: Candidate, notice: Notice = Notice.REVERTED) -> Rejection:
    return Rejection(
        candidate.agent, 5, notice, "why", {part.asked.order_hash: None for part in candidate.parts}
    )


def test_a_failure_tells_of_an_agent_where_another_ones_bid_stood() -> None:
    ann, bob, eve = (read([a_part(1)], [a_part(2)], agent=name) for name in ("ann", "bob", "eve"))
    found = Simulated(
        [proven(ann[0]), proven(bob[0])],
        [refused(eve[0]), refused(bob[0]), *(refused(bids[1]) for bids in (ann, bob, eve))],
        set(),
    )
    owner = SALES[0].terms.owner
    assert list(judged(found)) == [("ann", owner, True), ("bob", owner, True), ("eve", owner, False)]
    below = Simulated([proven(ann[0])], [refused(eve[0], Notice.BELOW_LIMIT)], set())
    assert list(judged(below)) == [("ann", owner, True)], "the market moved"
