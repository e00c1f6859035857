"""Fillable amounts of orders by their maker's funds: choices.md#otc-orders, as examples and as properties."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.messages.vocabulary import OtcState
from cambist.engine.chain.holdings import Holding
from cambist.engine.trade.otc.balances import Backed, OrderBacking, is_backed, standings

_S = OtcState
A, B, C = (bytes([byte]) * 32 for byte in (1, 2, 3))


def an_order(
    order_hash: bytes = A,
    remaining: int = 100,
    at: int = 1,
    permitted: int = 0,
    status: OtcState = _S.PENDING,
) -> Backed:
    return Backed(order_hash, status, remaining, at, permitted)


@pytest.mark.parametrize(
    ("balance", "allowance", "permitted", "expected"),
    [
        (100, 100, 0, OrderBacking(_S.PENDING, 100, 100, 100)),
        (10**30, 10**30, 0, OrderBacking(_S.PENDING, 100, 100, 100)),
        (99, 100, 0, OrderBacking(_S.SUSPENDED, 99, 0, 0)),
        (100, 99, 0, OrderBacking(_S.SUSPENDED, 99, 0, 0)),
        (0, 100, 0, OrderBacking(_S.SUSPENDED, 0, 0, 0)),
        (100, 0, 0, OrderBacking(_S.SUSPENDED, 0, 0, 0)),
        (100, 0, 100, OrderBacking(_S.PENDING, 100, 100, 100)),
        (100, 40, 60, OrderBacking(_S.SUSPENDED, 60, 0, 0)),
        (100, 60, 40, OrderBacking(_S.SUSPENDED, 60, 0, 0)),
        (100, 100, 1, OrderBacking(_S.PENDING, 100, 100, 100)),
        (40, 0, 10**30, OrderBacking(_S.SUSPENDED, 40, 0, 0)),
    ],
)
def test_one_order(balance: int, allowance: int, permitted: int, expected: OrderBacking) -> None:
    for status in (_S.PENDING, _S.SUSPENDED):
        order = an_order(permitted=permitted, status=status)
        assert standings([order], Holding(balance, allowance)) == {A: expected}
        assert is_backed(order, Holding(balance, allowance)) == (expected.status is _S.PENDING)


def test_the_oldest_is_served_first_and_each_is_suspended_for_itself_alone() -> None:
    orders = [an_order(A, 60, at=1), an_order(B, 60, at=2), an_order(C, 60, at=3)]
    expected = {
        A: OrderBacking(_S.PENDING, 60, 60, 60),
        B: OrderBacking(_S.PENDING, 60, 40, 40),
        C: OrderBacking(_S.PENDING, 60, 0, 0),
    }
    for some in permutations(orders):
        assert standings(some, Holding(100, 1_000)) == expected
        assert standings(some, Holding(1_000, 100)) == expected


def test_of_orders_of_one_moment_the_lower_hash_is_served_first() -> None:
    found = standings([an_order(B, 60), an_order(A, 60)], Holding(60, 60))
    assert (found[A].reserved, found[B].reserved) == (60, 0)


def test_a_suspended_order_leaves_all_funds_to_the_others() -> None:
    found = standings([an_order(A, 200, at=1), an_order(B, 10, at=2)], Holding(100, 100))
    assert found == {A: OrderBacking(_S.SUSPENDED, 100, 0, 0), B: OrderBacking(_S.PENDING, 10, 10, 10)}


def test_a_draft_has_a_balance_and_takes_no_share() -> None:
    found = standings([an_order(A, 70, status=_S.DRAFT), an_order(B, 100, at=2)], Holding(100, 100))
    assert found == {A: OrderBacking(_S.DRAFT, 70, 0, 0), B: OrderBacking(_S.PENDING, 100, 100, 100)}


def test_a_permit_is_its_own_orders_alone() -> None:
    orders = [an_order(A, 60, at=1, permitted=60), an_order(B, 60, at=2)]
    found = standings(orders, Holding(100, 0))
    assert found == {A: OrderBacking(_S.PENDING, 60, 60, 60), B: OrderBacking(_S.SUSPENDED, 0, 0, 0)}


def test_of_a_token_that_does_not_tell_there_is_nothing_whatever_a_permit_says() -> None:
    order = an_order(permitted=10**30)
    assert standings([order], None) == {A: OrderBacking(_S.SUSPENDED, 0, 0, 0)}
    assert not is_backed(order, None)


AMOUNTS = st.integers(0, 50) | st.sampled_from([0, (1 << 256) - 1])
ORDERS = st.lists(
    st.tuples(
        st.sampled_from([_S.DRAFT, _S.PENDING, _S.SUSPENDED]),
        st.integers(1, 50),
        st.integers(0, 3),
        st.integers(0, 50) | st.just(0),
    ),
    max_size=8,
).map(
    lambda some: [
        Backed(bytes([number]) * 32, status, remaining, at, permitted)
        for number, (status, remaining, at, permitted) in enumerate(some)
    ]
)


@given(orders=ORDERS, balance=AMOUNTS, allowance=AMOUNTS)
def test_no_more_is_reserved_than_there_is_and_the_older_is_never_worse_off(
    orders: list[Backed], balance: int, allowance: int
) -> None:
    holding = Holding(balance, allowance)
    found = standings(orders, holding)
    assert found.keys() == {order.order_hash for order in orders}
    assert sum(one.reserved for one in found.values()) <= balance
    by_approval = [order for order in orders if not order.permitted]
    assert sum(found[order.order_hash].reserved for order in by_approval) <= allowance
    for order in orders:
        one = found[order.order_hash]
        usable = min(balance, max(allowance, order.permitted))
        assert one.maker_balance == min(usable, order.remaining)
        assert one.swappable == (min(one.reserved, one.maker_balance) if one.status is _S.PENDING else 0)
        assert (one.status is _S.DRAFT) == (order.status is _S.DRAFT)
        if order.status is not _S.DRAFT:
            assert (one.status is _S.PENDING) == (usable >= order.remaining)
        assert one.reserved <= (order.remaining if one.status is _S.PENDING else 0)
    taking = [order for order in by_approval if found[order.order_hash].status is _S.PENDING]
    ordered = sorted(taking, key=lambda order: (order.created_ms, order.order_hash))
    for older, younger in pairwise(ordered):
        if found[younger.order_hash].reserved:
            assert found[older.order_hash].reserved == older.remaining, "first come, first served"


@given(orders=ORDERS, balance=AMOUNTS, allowance=AMOUNTS, data=st.data())
def test_an_order_that_cannot_be_filled_changes_nothing_for_the_others(
    orders: list[Backed], balance: int, allowance: int, data: st.DataObject
) -> None:
    holding = Holding(balance, allowance)
    at = data.draw(st.integers(-1, 4))
    giant = Backed(b"\xff" * 32, _S.PENDING, max(balance, allowance) + 1, at, 0)
    found = standings([*orders, giant], holding)
    assert found.pop(giant.order_hash).reserved == 0
    assert found == standings(orders, holding)


@given(orders=ORDERS, balance=AMOUNTS, allowance=AMOUNTS, data=st.data())
def test_the_sequence_in_which_orders_are_told_means_nothing(
    orders: list[Backed], balance: int, allowance: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(orders))
    holding = Holding(balance, allowance)
    assert standings(shuffled, holding) == standings(orders, holding)
