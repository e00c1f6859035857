"""Latest time of an order's next settlement: all later settlements must fit before the deadline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.codecs.eip712_orders.delta import TwapBuyOrder
from cambist.engine.trade.delta.orders.terms import fits_until
from support.delta.bidding import DEADLINE_S, a_delta_order, a_twap

TWAP = a_twap()  # three slices, a minute apart
PURCHASE = TwapBuyOrder(
    TWAP.owner, TWAP.beneficiary, TWAP.src_token, TWAP.dest_token, 3, 0, DEADLINE_S, 60, 3, 90, 90, b"", b"",
    TWAP.bridge,
)  # fmt: skip


@pytest.mark.parametrize("filled", [0, 1, 10**18])
def test_a_single_order_has_until_its_deadline(filled: int) -> None:
    assert fits_until(a_delta_order(), filled, 0) == DEADLINE_S
    assert fits_until(a_delta_order(), filled, DEADLINE_S) == DEADLINE_S


@pytest.mark.parametrize("order", [TWAP, PURCHASE], ids=["sale", "purchase"])
@pytest.mark.parametrize(("filled", "before_s"), [(0, 120), (1, 60), (2, 0), (3, 0)])
def test_a_twap_leaves_room_for_the_slices_that_follow(
    order: TwapBuyOrder, filled: int, before_s: int
) -> None:
    assert fits_until(order, filled, 0) == DEADLINE_S - before_s


def test_a_slice_that_is_due_too_late_already_does_not_fit() -> None:
    assert fits_until(TWAP, 1, DEADLINE_S - 120) == DEADLINE_S - 60
    assert fits_until(TWAP, 1, DEADLINE_S - 119) == 0
    assert fits_until(TWAP, 2, DEADLINE_S - 60) == DEADLINE_S
    assert fits_until(TWAP, 2, DEADLINE_S - 59) == 0


@given(
    slices=st.integers(2, 50),
    interval=st.integers(60, 10**6),
    filled=st.integers(0, 49),
    begin_s=st.integers(0, 10**6),
)
def test_slices_settled_as_soon_as_they_are_due_fit_if_and_only_if_it_says_so(
    slices: int, interval: int, filled: int, begin_s: int
) -> None:
    """The schedule is walked slice by slice, by the contract's rules."""
    order = replace(TWAP, num_slices=slices, interval=interval, deadline=25 * 10**5)
    filled = min(filled, slices - 1)
    at_s = begin_s
    for _ in range(filled + 1, slices):
        at_s += interval
    assert (begin_s <= fits_until(order, filled, 0)) == (at_s <= order.deadline)
