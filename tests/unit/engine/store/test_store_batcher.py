"""The batcher: waiting units share a batch, each caller gets its own outcome, and bounds hold."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import StoreError, StoreFull, StoreUnavailable
from cambist.engine.store.batcher import SIZES, Batcher, PendingUnit
from cambist.engine.store.units import Conflict, Done, Fenced, UnitOutcome

AWAY = StoreUnavailable("the disk is full", retry_after_s=7)


def outcomes(count: int) -> list[UnitOutcome]:
    """Outcomes that can be told from one another."""
    return [Fenced(number) for number in range(count)]


def nobody_waits() -> None:
    """Callback in place of a task that is woken."""


def added(batcher: Batcher, *units: str) -> list[PendingUnit]:
    return [batcher.add(unit, nobody_waits) for unit in units]


def ends_of(tickets: Sequence[PendingUnit]) -> list[Any]:
    """Outcome or error of each ticket; None for a ticket that has not ended."""
    return [ticket.outcome or ticket.error for ticket in tickets]


def test_all_that_waits_is_the_next_batch() -> None:
    assert not Batcher(100, 10).has_work
    batcher = Batcher(100, 10)
    tickets = added(batcher, "a", "b", "c")
    assert batcher.has_work
    assert batcher.take() == ["a", "b", "c"]
    assert batcher.number == 1
    assert ends_of(tickets) == [None] * 3
    batcher.settle([Done(), Conflict("t", None), Fenced(1)])
    assert ends_of(tickets) == [Done(), Conflict("t", None), Fenced(1)]
    assert batcher.is_empty


def test_one_batch_is_in_flight_at_a_time() -> None:
    batcher = Batcher(100, 2)
    tickets = added(batcher, "a", "b", "c")
    assert batcher.take() == ["a", "b"]
    tickets += added(batcher, "d")
    assert not batcher.has_work
    assert not batcher.is_empty
    batcher.settle(outcomes(2))
    assert batcher.take() == ["c", "d"]
    batcher.settle(outcomes(2))
    assert ends_of(tickets) == [*outcomes(2), *outcomes(2)]
    assert batcher.number == 2


def test_who_waits_is_woken_once_and_who_left_is_not() -> None:
    batcher, woken = Batcher(100, 10), list[str]()
    for unit in ("a", "b"):
        ticket = batcher.add(unit, partial(woken.append, unit))
    ticket.abandon()
    assert batcher.take() == ["a", "b"], "a unit whose waiter left is written all the same"
    batcher.settle(outcomes(2))
    assert woken == ["a"]


def test_a_full_queue_takes_nothing_and_what_is_in_flight_does_not_count() -> None:
    batcher = Batcher(2, 2)
    added(batcher, "a", "b")
    with pytest.raises(StoreFull, match="2 writes wait"):
        batcher.add("c", nobody_waits)
    batcher.take()
    added(batcher, "c", "d")
    with pytest.raises(StoreFull):
        batcher.add("e", nobody_waits)
    batcher.settle(outcomes(2))
    assert batcher.take() == ["c", "d"]
    assert batcher.statistics().full == 2


def test_a_batch_that_fails_tells_each_of_its_units_and_no_other() -> None:
    batcher = Batcher(100, 2)
    tickets = added(batcher, "a", "b", "c")
    batcher.take()
    batcher.fail(AWAY)
    assert ends_of(tickets) == [AWAY, AWAY, None]
    assert batcher.take() == ["c"]
    batcher.settle(outcomes(1))
    assert batcher.statistics().unavailable == 2


def test_a_lost_store_ends_what_was_not_sent_and_keeps_what_may_have_been_written() -> None:
    batcher = Batcher(100, 1)
    tickets = added(batcher, "sent", "waits")
    batcher.take()
    batcher.lose(AWAY)
    assert ends_of(tickets) == [None, AWAY]
    with pytest.raises(StoreUnavailable, match="the disk is full") as refused:
        batcher.add("more", nobody_waits)
    assert refused.value is not AWAY
    assert refused.value.retry_after_s == 7
    batcher.settle(outcomes(1))
    assert ends_of(tickets)[0] == Fenced(0)
    batcher.recover()
    added(batcher, "more")
    assert batcher.take() == ["more"]


def test_a_closed_batcher_writes_what_it_has_and_never_recovers() -> None:
    batcher = Batcher(100, 10)
    tickets = added(batcher, "a")
    batcher.close(StoreUnavailable("the store is closed"))
    batcher.recover()
    with pytest.raises(StoreUnavailable, match="closed"):
        batcher.add("b", nobody_waits)
    assert batcher.take() == ["a"]
    batcher.settle(outcomes(1))
    assert ends_of(tickets) == outcomes(1)


def test_outcomes_that_do_not_fit_their_batch_are_a_fault_that_every_unit_hears_of() -> None:
    batcher = Batcher(100, 10)
    tickets = added(batcher, "a", "b")
    batcher.take()
    with pytest.raises(StoreError, match="2 writes came back with 1 outcomes"):
        batcher.settle(outcomes(1))
    batcher.fail(AWAY)
    assert ends_of(tickets) == [AWAY, AWAY]


def test_sizes_are_counted_by_their_bounds() -> None:
    batcher = Batcher(10_000, 10_000)
    for size in (1, 2, 3, 4, 1_024, 1_025):
        added(batcher, *("unit",) * size)
        batcher.take()
        batcher.settle(outcomes(size))
    sizes = dict(zip((*SIZES, None), batcher.statistics().sizes, strict=True))
    assert {bound: count for bound, count in sizes.items() if count} == {1: 1, 2: 1, 4: 2, 1_024: 1, None: 1}
    assert batcher.statistics().batches == 6
    assert batcher.statistics().units == 2_059


@given(
    st.lists(
        st.sampled_from(["add", "add", "add", "take", "settle", "fail", "lose", "recover"]), max_size=80
    ),
    st.integers(1, 6),
    st.integers(1, 4),
)
def test_every_unit_ends_once_and_in_order(steps: list[str], queue_max: int, batch_max: int) -> None:
    batcher = Batcher(queue_max, batch_max)
    tickets: list[PendingUnit] = []
    ends: list[Any] = []
    in_flight = 0
    for step in steps:
        if step == "add":
            try:
                number = len(tickets)
                tickets.append(batcher.add(number, partial(ends.append, number)))
            except StoreUnavailable:
                continue
        elif step == "take" and batcher.has_work:
            in_flight = len(batcher.take())
            assert 1 <= in_flight <= batch_max
        elif step == "settle" and in_flight:
            batcher.settle(outcomes(in_flight))
            in_flight = 0
        elif step == "fail":
            batcher.fail(AWAY)
            in_flight = 0
        elif step == "lose":
            batcher.lose(AWAY)
        elif step == "recover":
            batcher.recover()
        statistics = batcher.statistics()
        assert statistics.queued <= queue_max
        assert statistics.in_flight == in_flight
    batcher.fail(AWAY)
    batcher.lose(AWAY)
    assert sorted(ends) == list(range(len(tickets))), "everybody hears, and once"
    written = [ticket.unit for ticket in tickets if ticket.outcome is not None]
    assert [unit for unit in ends if unit in set(written)] == written
    statistics = batcher.statistics()
    assert statistics.units == len(written)
    assert batcher.is_empty
