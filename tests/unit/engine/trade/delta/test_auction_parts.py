"""Bids for parts of orders: the orders shown to agents, accepted and refused bids, and winners."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts.delta_calldata import Execution, agent_id, settle
from cambist.codecs.messages.agent_messages import AuctionOrder, Notice, WholeOrder
from cambist.codecs.messages.wire import encode
from cambist.engine.trade.delta.auction.auction import decide, notices
from cambist.engine.trade.delta.auction.auction_record import Rejections, RoundTimes, round_of, round_rows
from cambist.engine.trade.delta.bids.bids import (
    Candidate,
    Rejection,
    RoundOrder,
    answer_of,
    read_answer,
    shown,
)
from cambist.engine.trade.delta.explain import OrderFacts, explained
from cambist.engine.trade.delta.orders.terms import is_part
from support.delta.bidding import (
    ONE,
    SIGNATURE,
    USDC_ONE,
    a_delta_order,
    a_proven,
    a_round_order,
    a_twap,
    hash_of,
)
from support.store.stores import a_delta_order as a_row

SALE = a_round_order(1, partially_fillable=True)
PURCHASE = a_round_order(2, buys=True, partially_fillable=True)
WHOLE = a_round_order(3)
SLICED = a_round_order(4, a_twap(), partially_fillable=True)
ROUND = {one.order_hash: one for one in (SALE, PURCHASE, WHOLE, SLICED)}
HALF = 1_200 * USDC_ONE
"""Least USDC for half of the sale, raw units."""


def part(number: int, promised: int, **changed: Any) -> dict[str, Any]:
    return {"orderHash": "0x" + hash_of(number).hex(), "promisedAmount": str(promised)} | changed


def read(*parts: Any) -> Candidate | Rejection:
    raw = msgspec.json.encode({"bids": [{"parts": parts}]})
    (found,) = read_answer(answer_of("alpha", 0, 5, raw), ROUND)
    return found


def refused(*parts: Any) -> Rejection:
    found = read(*parts)
    assert isinstance(found, Rejection)
    return found


def test_agents_are_shown_the_smallest_part_and_what_was_signed() -> None:
    third = a_round_order(1, a_delta_order(nonce=1), filled=ONE // 3 + 1, partially_fillable=True)
    told = shown(third)
    assert (told.src_amount, told.part_min) == (str(ONE - ONE // 3 - 1), str((ONE - ONE // 3 - 1) // 10 + 1))
    assert told.whole == WholeOrder(str(ONE), str(2_400 * USDC_ONE), str(2_500 * USDC_ONE))
    assert msgspec.json.decode(encode(told), type=AuctionOrder) == told


@pytest.mark.parametrize("asked", [WHOLE, SLICED, a_round_order(1, filled=ONE - 1, partially_fillable=True)])
def test_what_is_filled_whole_is_shown_without_a_smallest_part(asked: RoundOrder) -> None:
    """The cases: an order that may not be split, a slice, and the last unit of an order."""
    assert asked.part_min == 0
    assert b"partMin" not in encode(shown(asked))
    assert b"whole" not in encode(shown(asked))


@pytest.mark.parametrize(
    ("left", "parts"),
    [
        (1, {1}),
        (2, {1, 2}),
        (10, {*range(1, 11)}),
        (11, {*range(2, 10), 11}),
        (100, {*range(10, 91), 100}),
    ],
)
def test_a_part_is_a_tenth_of_what_is_left_and_leaves_nothing_or_as_much(left: int, parts: set[int]) -> None:
    assert {amount for amount in range(left + 2) if is_part(amount, left)} == parts


def test_a_part_is_settled_as_it_was_bid() -> None:
    found = read(part(1, HALF, amount=str(ONE // 2)))
    assert isinstance(found, Candidate)
    assert found.calldata == settle(
        a_delta_order(nonce=1), SIGNATURE, ONE // 2, Execution(HALF, 0, (), (), agent_id("alpha"))
    )
    assert (found.parts[0].limit, found.parts[0].part_amount) == (HALF, ONE // 2)
    bought = read(part(2, ONE // 2, amount=str(1_250 * USDC_ONE), given=str(55 * ONE // 100)))
    assert isinstance(bought, Candidate)
    order = a_delta_order(buys=True, nonce=2)
    execution = Execution(ONE // 2, 55 * ONE // 100, (), (), agent_id("alpha"))
    assert bought.calldata == settle(order, SIGNATURE, 1_250 * USDC_ONE, execution)


@pytest.mark.parametrize("changed", [{}, {"amount": ""}, {"amount": str(ONE)}])
@pytest.mark.parametrize("number", [1, 3])
def test_all_is_bid_for_where_nothing_else_is_said(number: int, changed: dict[str, str]) -> None:
    found = read(part(number, 2 * HALF, **changed))
    assert isinstance(found, Candidate)
    assert (found.parts[0].part.amount, found.parts[0].part_amount) == (ONE, None)


@pytest.mark.parametrize(
    ("bid", "notice", "detail"),
    [
        (part(1, HALF - 1, amount=str(ONE // 2)), Notice.BELOW_LIMIT, f"expected at least {HALF}, got"),
        (
            part(2, 55 * ONE // 100 + 1, amount=str(1_250 * USDC_ONE)),
            Notice.BELOW_LIMIT,
            f"expected at most {55 * ONE // 100}, got",
        ),
        (
            part(2, ONE // 2, amount=str(1_250 * USDC_ONE), given=str(55 * ONE // 100 + 1)),
            Notice.MALFORMED,
            f"parts[0].given: expected at most {55 * ONE // 100}",
        ),
        (
            part(1, HALF, amount="0"),
            Notice.MALFORMED,
            "parts[0].amount: expected 1000000000000000000, or from",
        ),
        (part(1, HALF, amount="-1"), Notice.MALFORMED, "parts[0].amount"),
        (part(1, 2 * HALF, amount=str(ONE + 1)), Notice.MALFORMED, "parts[0].amount: expected"),
        (part(1, 2 * HALF, amount=str(ONE - 1)), Notice.MALFORMED, "parts[0].amount: expected"),
        (part(3, HALF, amount=str(ONE // 2)), Notice.MALFORMED, f"expected all that is asked for, {ONE}"),
        (part(4, HALF, amount=str(ONE // 2)), Notice.MALFORMED, f"expected all that is asked for, {ONE}"),
    ],
    ids=["below", "above", "given", "nothing", "no amount", "more", "dust left", "whole", "slice"],
)
def test_a_part_that_may_not_be_is_refused(bid: dict[str, Any], notice: Notice, detail: str) -> None:
    rejection = refused(bid)
    assert rejection.notice is notice
    assert detail in rejection.detail


def test_in_a_crossing_every_order_is_settled_whole() -> None:
    rejection = refused(part(1, HALF, amount=str(ONE // 2)), part(2, ONE))
    assert "parts[0].amount: expected all that is asked for in a crossing" in rejection.detail
    assert rejection.parts == {SALE.order_hash: ONE // 2}


def test_the_most_surplus_wins_and_of_as_much_the_larger_part() -> None:
    whole = a_proven("whole", (SALE, 2 * HALF + 10), arrival=0)
    small = a_proven("small", (SALE, HALF + 10), amount=ONE // 2, arrival=1)
    best = a_proven("best", (SALE, 480 * USDC_ONE + 11), amount=ONE // 5, arrival=2)
    decision = decide([SALE], [small, whole, best], 0, {})
    verdict = decision.verdicts[SALE.order_hash]
    assert [bid.bid.candidate.agent for bid in verdict.bids] == ["best", "whole", "small"]
    assert [bid.surplus for bid in verdict.bids] == [11, 10, 10]
    assert [bid.candidate.agent for bid in verdict.runners_up] == ["whole", "small"]
    assert (verdict.best_amount, verdict.best_part_amount) == (480 * USDC_ONE + 11, ONE // 5)


def test_of_a_purchase_what_is_not_spent_of_the_parts_limit_counts() -> None:
    """The limit is 1.1 WETH for the whole, 0.55 WETH for half."""
    whole = a_proven("whole", (PURCHASE, 11 * ONE // 10 - 5))
    half = a_proven("half", (PURCHASE, 55 * ONE // 100 - 6), amount=1_250 * USDC_ONE)
    verdict = decide([PURCHASE], [whole, half], 0, {}).verdicts[PURCHASE.order_hash]
    assert [bid.surplus for bid in verdict.bids] == [6, 5]
    assert verdict.winner is half


def test_what_a_part_brings_is_told_with_the_part() -> None:
    half = a_proven("half", (SALE, HALF + 20), amount=ONE // 2)
    whole = a_proven("whole", (SALE, 2 * HALF + 10))
    low = refused(part(1, HALF - 1, amount=str(ONE // 2)))
    decision = decide([SALE], [half, whole], 0, {})
    told = dict(notices(decision, [low]))
    assert (told["half"].part_amount, told["half"].best_part_amount) == (str(ONE // 2), str(ONE // 2))
    assert (told["whole"].part_amount, told["whole"].best_part_amount) == (None, str(ONE // 2))
    assert (told["alpha"].part_amount, told["alpha"].best_amount) == (str(ONE // 2), str(HALF + 20))
    (row,) = round_rows(RoundTimes(7, 1, 5, 6), decision.verdicts.values(), Rejections([low]))
    kept = round_of(row).order
    assert kept.part_min == str(ONE // 10)
    assert [(bid.agent, bid.part_amount, bid.surplus_amount) for bid in kept.bids] == [
        ("half", str(ONE // 2), "20"),
        ("whole", None, "10"),
        ("alpha", str(ONE // 2), None),
    ]


def test_what_was_promised_for_a_part_is_not_held_against_the_whole_limit() -> None:
    low = refused(part(1, HALF - 1, amount=str(ONE // 2)))
    decision = decide([SALE], [], 0, {})
    (row,) = round_rows(RoundTimes(7, 1, 5, 6), decision.verdicts.values(), Rejections([low]))
    order = msgspec.structs.replace(a_row(1), order_hash=SALE.order_hash)
    told = explained(OrderFacts(order, None, [round_of(row)], 0, {}, 10))
    texts = {reason.code: reason.text for reason in told.reasons}
    assert texts["belowLimit"] == f"no bid meets the limit, at least {2 * HALF}"
