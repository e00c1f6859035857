"""Amounts that live orders may still take, against the settlements one by one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import KIND_BUY, SAME_CHAIN, DeltaOrder, TwapBuyOrder, TwapOrder
from cambist.engine.trade.delta.orders.fillable import fillable, promised, still_given
from cambist.engine.trade.delta.orders.terms import SettledOrder, next_part
from support.store.stores import ALICE, USDC, WETH

PARTIES = (ALICE, ALICE, WETH, USDC)
amounts = st.integers(1, 10**24)


def one_by_one(order: SettledOrder, done: int) -> int:
    """The most that the slices that are left take."""
    taken = 0
    while (part := next_part(order, done)) is not None:
        taken += part.src_amount
        done += 1
    return taken


@st.composite
def twaps(draw: Any) -> tuple[SettledOrder, int]:
    slices = draw(st.integers(2, 40))
    total, most = draw(st.integers(slices, 10**24)), draw(amounts)
    done = draw(st.integers(0, slices))
    if draw(st.booleans()):
        return TwapOrder(*PARTIES, 1, 0, 0, 60, slices, 1, total, b"", b"", SAME_CHAIN), done
    return TwapBuyOrder(*PARTIES, 1, 0, 0, 60, slices, total, most, b"", b"", SAME_CHAIN), done


@given(twaps())
def test_slices_that_are_left(twap: tuple[SettledOrder, int]) -> None:
    assert still_given(*twap) == one_by_one(*twap)


@given(amounts, amounts, st.integers(0, 10**24))
def test_the_rest_of_an_order(src: int, dest: int, settled: int) -> None:
    for kind, whole in ((0, src), (KIND_BUY, dest)):
        order = DeltaOrder(*PARTIES, src, dest, 0, 0, kind, 1, 0, b"", b"", SAME_CHAIN)
        filled = min(settled, whole)
        assert still_given(order, filled) == src * (whole - filled) // whole


def test_what_is_left_of_each_token() -> None:
    sale = DeltaOrder(*PARTIES, 100, 1, 0, 0, 0, 1, 0, b"", b"", SAME_CHAIN)
    taken = promised([(sale, 0), (sale, 40)])
    assert taken == {WETH: 160}
    assert (fillable(200, taken[WETH]), fillable(100, taken[WETH])) == (40, 0)
