"""Bounds on a dearer plan and on a request for more than planned: to the unit."""

import pytest

from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.firm import firm_parts
from cambist.engine.trade.routing.firm.firm_parts import has_room, indicative_within, is_as_cheap
from cambist.engine.trade.routing.search.plan import HopPlan, MakerShare, PathPlan, RoutePlan
from cambist.feeds.firm.firm_check import FirmAsked

WETH, USDC, DAI, USER, TAKER = (bytes([number]) * 20 for number in range(0x11, 0x16))


def hop(src: bytes, dest: bytes, src_amount: int, dest_amount: int, *, makers: int = 1) -> HopPlan:
    shares = tuple(MakerShare(f"maker{number}", 1, 1) for number in range(makers))
    return HopPlan(src, dest, src_amount, dest_amount, shares)


def plan(side: Side) -> RoutePlan:
    """A path of two hops and one of a hop: 30,001 units become 20,001 at two makers and one."""
    far = hop(WETH, USDC, 20_000, 7, makers=2), hop(USDC, DAI, 7, 15_000, makers=2)
    near = (hop(WETH, DAI, 10_001, 5_001),)
    paths = PathPlan(20_000, 15_000, far), PathPlan(10_001, 5_001, near)
    return RoutePlan(side, 30_001, 20_001, 1, paths)


@pytest.mark.parametrize(
    ("side", "indicative", "room"),
    [(Side.SELL, 20_001, 20_001 - 3 - 3), (Side.BUY, 30_001, 30_001 + 4 + 3)],
)
def test_a_hop_of_the_longest_path_but_one_costs_a_basis_point_and_a_fill_at_the_end_a_unit(
    side: Side, indicative: int, room: int
) -> None:
    worse = -1 if side is Side.SELL else 1
    assert indicative_within(plan(side), indicative)
    assert not indicative_within(plan(side), indicative - worse)
    assert has_room(plan(side), room)
    assert not has_room(plan(side), room - worse)


@pytest.mark.parametrize(("side", "shown_wider"), [(Side.SELL, 20_998), (Side.BUY, 21_002)])
def test_a_wider_request_may_be_a_basis_point_dearer(side: Side, shown_wider: int) -> None:
    """A basis point of the amount shown for the request is one unit, and 2.1 units of the wider request's."""
    request, wider = (FirmAsked(WETH, USDC, side, amount, USER, TAKER) for amount in (10_000, 21_000))
    worse = -1 if side is Side.SELL else 1
    assert is_as_cheap(request, 10_000, wider, shown_wider)
    assert not is_as_cheap(request, 10_000, wider, shown_wider + worse)


def test_a_cost_of_three_basis_points_counts_thrice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firm_parts, "OVER_ASK_COST_BPS", 3)
    assert has_room(plan(Side.SELL), 20_001 - 7 - 3)
    assert not has_room(plan(Side.SELL), 20_001 - 7 - 2)
    assert has_room(plan(Side.BUY), 30_001 + 10 + 3)
    assert not has_room(plan(Side.BUY), 30_001 + 10 + 2)
    request, wider = (FirmAsked(WETH, USDC, Side.SELL, amount, USER, TAKER) for amount in (10_000, 20_000))
    assert is_as_cheap(request, 10_000, wider, 19_994)
    assert not is_as_cheap(request, 10_000, wider, 19_993)
