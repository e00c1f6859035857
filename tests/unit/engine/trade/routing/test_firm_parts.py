"""A part that makers are asked to sign: its tries, their rates, and when further makers are asked."""

import sys
from fractions import Fraction

import pytest

from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.firm.firm_parts import (
    Ask,
    FirmPart,
    Way,
    able_alone,
    legs_of,
    parts_of,
)
from cambist.engine.trade.routing.firm.firm_route import SignedFill
from cambist.engine.trade.routing.firm.legs import FirmLeg
from cambist.engine.trade.routing.search.plan import HopPlan, MakerShare, PathPlan, RoutePlan
from cambist.feeds.firm.firm_check import CheckedQuote, FirmAsked, FirmFailure, FirmFault
from support.makers.firm_books import DAI, USDC, WETH, a_live_book
from support.makers.timed_makers import EXECUTOR, ONE, USER

SIGNED, FAILED, PENDING = "signed", "failed", "pending"


def an_ask(
    state: str = PENDING, taker_amount: int = 10, maker_amount: int = 30, *, maker: str = "alpha"
) -> Ask:
    """A request for 10 units against 30, and its outcome: signed for these amounts, failed, or pending."""
    request = FirmAsked(WETH, USDC, Side.SELL, 10, USER, EXECUTOR)
    ask = Ask(maker, MakerShare(maker, 10, 30), request, None, 0.0, 0.0)
    if state == SIGNED:
        order = RfqOrder(0, 0, USDC, WETH, maker.encode(), EXECUTOR, maker_amount, taker_amount)
        ask.quote = CheckedQuote(order, maker.encode(), b"", True)
    elif state == FAILED:
        ask.fail(FirmFailure(FirmFault.REFUSED))
    return ask


def a_part(*tries: tuple[Ask, ...], path: int = 0, hop: int = 0, share: int = 1) -> FirmPart:
    """A part of WETH for USDC with looks at 10 s and 20 s."""
    return FirmPart(path, hop, WETH, USDC, MakerShare("alpha", share, 3 * share), False, 10.0, 20.0, [*tries])


def test_a_request_is_pending_until_a_quote_or_a_failure_and_has_an_order_with_a_quote_alone() -> None:
    assert [an_ask(state).is_pending for state in (PENDING, SIGNED, FAILED)] == [True, False, False]
    assert an_ask(SIGNED).order.maker_amount == 30
    with pytest.raises(ValueError, match="alpha has signed no quote"):
        assert an_ask().order


@pytest.mark.parametrize(
    ("maker_amount", "loss"),
    [(30, Fraction(0)), (27, Fraction(1, 10)), (36, Fraction(-1, 5)), (3, Fraction(9, 10))],
)
def test_the_loss_is_the_fraction_by_which_the_rate_is_below_the_planned_one(
    maker_amount: int, loss: Fraction
) -> None:
    ask = an_ask(SIGNED, 10, maker_amount)
    assert ask.rate() == Fraction(maker_amount, 10)
    assert ask.loss() == loss


def test_the_first_try_of_which_all_is_signed_fills_a_part() -> None:
    whole = an_ask(SIGNED), an_ask(SIGNED)
    part = a_part((an_ask(SIGNED), an_ask()), (an_ask(FAILED), an_ask(SIGNED)), whole, (an_ask(SIGNED),))
    assert part.filled() is whole
    assert Way(frozenset(), True, [part, part]).is_filled
    unfilled = a_part((an_ask(SIGNED), an_ask()))
    assert unfilled.filled() == ()
    assert not Way(frozenset(), True, [part, unfilled]).is_filled


def test_a_try_is_alive_until_a_request_of_it_fails_and_those_that_do_not_answer_are_pending() -> None:
    part = a_part(
        (an_ask(SIGNED, maker="a"), an_ask(maker="b")),
        (an_ask(FAILED, maker="c"), an_ask(maker="d")),
        (an_ask(maker="e"),),
        (an_ask(FAILED, maker="f"),),
    )
    assert part.alive == 2
    assert part.pending() == {"b", "d", "e"}


@pytest.mark.parametrize(
    ("now", "alive", "lacking"),
    [
        (0.0, 0, 1), (0.0, 1, 0), (0.0, 2, 0), (9.9, 0, 1), (10.0, 0, 3), (10.0, 1, 2), (10.0, 3, 0),
        (10.0, 4, 0), (19.9, 2, 1), (20.0, 0, sys.maxsize), (20.0, 5, sys.maxsize),
    ],
)  # fmt: skip
def test_more_tries_are_lacking_from_each_look_on(now: float, alive: int, lacking: int) -> None:
    assert a_part((an_ask(FAILED),), *[(an_ask(),)] * alive).lacking(now) == lacking
    assert a_part((an_ask(SIGNED),)).lacking(now) == 0


def test_further_makers_must_beat_the_best_rate_that_broke_the_limit() -> None:
    part = a_part()
    assert part.may_do([MakerShare("beta", 10, 1)])
    part.raise_bar((an_ask(SIGNED, 10, 30), an_ask(SIGNED, 10, 40)))
    assert part.to_beat == Fraction(7, 2)
    part.raise_bar((an_ask(SIGNED, 10, 34),))
    assert part.to_beat == Fraction(7, 2)
    assert not part.may_do([MakerShare("beta", 2, 7)])
    assert part.may_do([MakerShare("beta", 2, 8)])
    assert not part.may_do([MakerShare("beta", 4, 13), MakerShare("gamma", 2, 8)])
    part.raise_bar((an_ask(SIGNED, 10, 40),))
    assert not part.may_do([MakerShare("beta", 2, 8)])


@pytest.mark.parametrize(
    ("side", "exact"), [(Side.SELL, [True, False, True]), (Side.BUY, [False, True, True])]
)
def test_a_plan_has_a_part_for_each_share_with_its_place_and_the_times_of_its_looks(
    side: Side, exact: list[bool]
) -> None:
    shares = [MakerShare(f"maker{number}", number, 2 * number) for number in range(1, 5)]
    first = HopPlan(WETH, USDC, 3, 6, tuple(shares[:2]))
    second, direct = HopPlan(USDC, DAI, 3, 6, (shares[2],)), HopPlan(WETH, DAI, 4, 8, (shares[3],))
    plan = RoutePlan(side, 7, 14, 0, (PathPlan(3, 6, (first, second)), PathPlan(4, 8, (direct,))))
    of_first, of_second, of_direct = exact
    assert [*map(_fields, parts_of(plan, 100.0, 106.0))] == [
        (0, 0, WETH, USDC, shares[0], of_first, 102.0, 104.0),
        (0, 0, WETH, USDC, shares[1], of_first, 102.0, 104.0),
        (0, 1, USDC, DAI, shares[2], of_second, 102.0, 104.0),
        (1, 0, WETH, DAI, shares[3], of_direct, 102.0, 104.0),
    ]


def _fields(part: FirmPart) -> tuple[object, ...]:
    place = part.path, part.hop, part.src_token, part.dest_token
    return *place, part.share, part.is_exact, part.beside_at, part.everybody_at


@pytest.mark.parametrize(("side", "amount"), [(Side.SELL, ONE), (Side.BUY, 2_400 * 10**6)])
def test_those_that_have_it_all_alone_are_listed_best_first(side: Side, amount: int) -> None:
    prices = {"worst": "2400", "best": "2500", "middle": "2450", "barred": "2600", "unasked": "2700"}
    books = {
        name: a_live_book(name, bids=((price, "1"),), asks=(("3000", "1"),)) for name, price in prices.items()
    }
    books["small"] = a_live_book("small", bids=(("2800", "0.5"),), asks=(("3000", "1"),))
    request = FirmAsked(WETH, USDC, side, amount, USER, EXECUTOR)
    found = able_alone(books, request, frozenset(books) - {"unasked"}, {"barred"})
    assert [share.maker for share in found] == ["best", "middle", "worst"]
    whole = {(share.src_amount if side is Side.SELL else share.dest_amount) for share in found}
    assert whole == {amount}
    rates = [Fraction(share.dest_amount, share.src_amount) * 10**12 for share in found]
    assert [round(rate) for rate in rates] == [2_500, 2_450, 2_400]
    assert [share.maker for share in able_alone(books, request, None, ())][:2] == ["unasked", "barred"]


@pytest.mark.parametrize(("side", "amounts"), [(Side.SELL, (3, 4)), (Side.BUY, (9, 12))])
def test_the_quotes_of_parts_become_legs_in_the_order_of_paths_and_hops(
    side: Side, amounts: tuple[int, int]
) -> None:
    def signed(maker: str) -> Ask:
        return an_ask(SIGNED, maker=maker)

    parts = [
        a_part((signed("d"),), path=1, share=4),
        a_part((signed("c"),), hop=1, share=9),
        a_part((an_ask(FAILED),), (signed("a"),), share=1),
        a_part((signed("b"), signed("e")), share=2),
    ]
    hop, direct = amounts
    assert legs_of(parts, side) == [
        [_leg(hop, "a", "b", "e"), _leg(9 if side is Side.SELL else 27, "c")],
        [_leg(direct, "d")],
    ]


def _leg(amount: int, *makers: str) -> FirmLeg:
    fills = (SignedFill(maker, an_ask(SIGNED, maker=maker).order, maker.encode()) for maker in makers)
    return FirmLeg(WETH, USDC, amount, tuple(fills))
