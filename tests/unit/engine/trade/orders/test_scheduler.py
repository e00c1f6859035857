"""Timers: when they run and in which order, what cancelling costs, and that one pass never takes long."""

import random
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from time import perf_counter

import pytest
import structlog.testing
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from cambist.engine.trade.orders.scheduler import SLICE_S, Scheduler, Timers
from support.call_counts import counted_calls
from support.patience import PATIENCE_S

NOW_MS = 1_700_000_000_000


def nothing() -> None:
    """Action of most timers of these tests."""


def run_until(timers: Timers, now_ms: int) -> None:
    """Run all that is due."""
    while True:
        timer = timers.due(now_ms)
        if timer is not None:
            timer.run()
        at_ms = timers.next_at()
        if at_ms is None or at_ms > now_ms:
            return


# --- The heap -------------------------------------------------------------------------------------------


def test_nothing_waits_at_first() -> None:
    timers = Timers()
    assert (len(timers), timers.entries, timers.next_at(), timers.due(NOW_MS)) == (0, 0, None, None)
    assert not timers.cancel("nobody")


def test_timers_are_due_by_time_then_as_they_were_added() -> None:
    timers, ran = Timers(), list[str]()
    for name, at_ms in (("c", 30), ("a", 10), ("b1", 20), ("b2", 20), ("d", 41)):
        timers.add(at_ms, name, lambda name=name: ran.append(name))  # type: ignore[misc]
    assert timers.next_at() == 10
    assert timers.due(9) is None
    run_until(timers, 40)
    assert ran == ["a", "b1", "b2", "c"]
    assert (len(timers), timers.next_at()) == (1, 41)


def test_a_key_has_one_timer_and_the_last_one_counts() -> None:
    timers, ran = Timers(), list[str]()
    timers.add(10, "order", lambda: ran.append("early"))
    timers.add(30, "order", lambda: ran.append("late"))
    assert len(timers) == 1
    run_until(timers, 20)
    assert ran == []
    run_until(timers, 30)
    assert ran == ["late"]
    run_until(timers, 100)
    assert ran == ["late"]


def test_what_was_cancelled_is_never_due_even_by_one_that_is_due_with_it() -> None:
    timers, ran = Timers(), list[str]()

    def first() -> None:
        ran.append("first")
        timers.cancel("second")

    timers.add(10, "first", first)
    timers.add(10, "second", lambda: ran.append("second"))
    timers.add(11, "third", lambda: ran.append("third"))
    assert timers.cancel("third")
    assert not timers.cancel("third")
    run_until(timers, 20)
    assert ran == ["first"]


def test_one_that_adds_itself_in_the_past_starves_nobody() -> None:
    timers, ran = Timers(), list[str]()

    def again() -> None:
        ran.append("again")
        if len(ran) < 100:
            timers.add(0, "again", again)

    timers.add(0, "again", again)
    timers.add(10, "other", lambda: ran.append("other"))
    run_until(timers, 10)
    assert ran.index("other") <= 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 15), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 15), st.just(0)),
        st.tuples(st.just("pass"), st.just(0), st.integers(1, 10)),
    ),
    max_size=400,
)


@given(STEPS)
def test_any_sequence_of_calls_runs_what_a_sorted_list_would(steps: list[tuple[str, int, int]]) -> None:
    timers, ran, expected = Timers(), list[tuple[int, int]](), list[tuple[int, int]]()
    model: dict[int, tuple[int, int]] = {}
    now_ms = number = peak = 0
    for what, key, value in steps:
        if what == "add":
            number += 1
            model[key] = (max(value, now_ms), number)
            timers.add(value, key, lambda key=key, number=number: ran.append((key, number)))  # type: ignore[misc]
        elif what == "cancel":
            assert timers.cancel(key) == (model.pop(key, None) is not None)
        else:
            now_ms += value
            run_until(timers, now_ms)
            due = sorted((place, key) for key, place in model.items() if place[0] <= now_ms)
            expected += [(key, place[1]) for place, key in due]
            for _, key_due in due:
                del model[key_due]
        peak = max(peak, len(model))
        assert len(timers) == len(model)
        assert timers.entries <= 3 * peak + 100
    assert ran == expected


def test_dead_entries_go_and_no_call_does_much_at_once() -> None:
    timers, chance = Timers(), random.Random(7)
    for key in range(100_000):
        timers.add(NOW_MS + chance.randrange(3_600_000), key, nothing)
    longest = 0
    with counted_calls() as calls:
        for key in chance.sample(range(100_000), 99_000):
            before = calls.made
            timers.cancel(key)
            longest = max(longest, calls.made - before)
    for _ in range(20_000):
        key = chance.randrange(1_000_000, 1_001_000)
        timers.add(NOW_MS + chance.randrange(3_600_000), key, nothing)
    assert len(timers) <= 2_000
    assert timers.entries <= 6_100
    assert longest < 200, "a tidying in one piece makes a hundred thousand calls"


def test_a_timer_takes_a_quarter_of_a_kilobyte() -> None:
    keys = [("expiry", number.to_bytes(32, "big")) for number in range(100_000)]
    tracemalloc.start()
    try:
        timers = Timers()
        for number, key in enumerate(keys):
            timers.add(NOW_MS + number * 7, key, nothing)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / len(keys) < 256


# --- The task -------------------------------------------------------------------------------------------


def now_ms() -> int:
    return NOW_MS + round(trio.current_time() * 1_000)


def in_s(seconds: float) -> int:
    return NOW_MS + round(seconds * 1_000)


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(now_ms)


def at_time(ran: list[tuple[str, float]], name: str) -> Callable[[], None]:
    return lambda: ran.append((name, round(trio.current_time(), 3)))


async def test_timers_run_at_their_times(scheduler: Scheduler, autojump_clock: MockClock) -> None:
    ran: list[tuple[str, float]] = []
    scheduler.at(in_s(5), "before the start", at_time(ran, "before the start"))
    async with trio.open_nursery() as nursery:
        await nursery.start(scheduler.run)
        await trio.sleep(1)
        scheduler.at(in_s(60), "late", at_time(ran, "late"))
        scheduler.at(in_s(2), "sooner than what it sleeps for", at_time(ran, "sooner"))
        scheduler.at(in_s(-10), "overdue", at_time(ran, "overdue"))
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert ran == [("overdue", 1), ("sooner", 2), ("before the start", 5), ("late", 60)]
    assert scheduler.statistics().fired == 4
    assert scheduler.statistics().waiting == 0


async def test_nothing_wakes_it_needlessly(scheduler: Scheduler, autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(scheduler.run)
        scheduler.at(in_s(10), "first", nothing)
        await wait_all_tasks_blocked()
        scheduler.at(in_s(20), "second", nothing)
        assert scheduler.cancel("second")
        assert trio.current_time() == 0
        await trio.sleep(50)
        assert scheduler.statistics().fired == 1
        assert scheduler.statistics().entries == 0
        nursery.cancel_scope.cancel()


async def test_a_timer_may_add_cancel_and_replace_timers(
    scheduler: Scheduler, autojump_clock: MockClock
) -> None:
    ran: list[tuple[str, float]] = []

    def tick() -> None:
        at_time(ran, "tick")()
        scheduler.cancel("victim")
        if len(ran) < 3:
            scheduler.at(now_ms() + 1_000, "tick", tick)

    scheduler.at(in_s(1), "tick", tick)
    scheduler.at(in_s(1), "victim", at_time(ran, "victim"))
    async with trio.open_nursery() as nursery:
        await nursery.start(scheduler.run)
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert ran == [("tick", 1), ("tick", 2), ("tick", 3)]


async def test_one_that_raises_is_logged_once_and_stops_nothing(
    scheduler: Scheduler, autojump_clock: MockClock
) -> None:
    ran: list[tuple[str, float]] = []

    def broken() -> None:
        raise ZeroDivisionError("a bug")

    scheduler.at(in_s(1), ("expiry", b"order"), broken)
    scheduler.at(in_s(1), "same time", at_time(ran, "same time"))
    scheduler.at(in_s(2), "later", at_time(ran, "later"))
    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await nursery.start(scheduler.run)
            await trio.sleep(10)
            nursery.cancel_scope.cancel()
    assert ran == [("same time", 1), ("later", 2)]
    assert [(line["event"], line["key"]) for line in logs] == [("timer failed", "('expiry', b'order')")]
    assert "a bug" in logs[0]["detail"]
    assert (scheduler.statistics().fired, scheduler.statistics().failed) == (3, 1)


async def test_a_long_pass_lets_the_others_run(scheduler: Scheduler) -> None:
    def slow() -> None:
        until = perf_counter() + SLICE_S / 2
        while perf_counter() < until:
            pass

    for number in range(100):
        scheduler.at(now_ms(), number, slow)
    turns = list[int]()
    async with trio.open_nursery() as nursery:
        await nursery.start(scheduler.run)
        with trio.fail_after(PATIENCE_S):
            while scheduler.statistics().waiting:
                turns.append(scheduler.statistics().fired)
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    # Two of them fill a slice, and between two turns of ours the scheduler may have two.
    assert max(after - before for before, after in pairwise(turns)) <= 4


async def test_how_late_it_was_is_told(scheduler: Scheduler, autojump_clock: MockClock) -> None:
    scheduler.at(in_s(1), "late", nothing)
    await trio.sleep(3)
    async with trio.open_nursery() as nursery:
        await nursery.start(scheduler.run)
        await wait_all_tasks_blocked()
        assert scheduler.statistics().late_ms_max == 2_000
        nursery.cancel_scope.cancel()
