"""Answers that many callers share: made once, kept for a time, and no fault of one caller is another's."""

import pytest
import trio
import trio.testing

from cambist.config.limits import SHARED_ANSWERS_MAX
from cambist.engine.trade.api.shared_answers import SharedAnswers


class Maker:
    """Makes answers, each once a test lets it.

    Attributes:
        made: number of answers that were begun.
        fails: whether an answer fails.
    """

    def __init__(self) -> None:
        self.made = 0
        self.fails = False
        self.go_on = trio.Event()

    async def __call__(self) -> bytes:
        self.made += 1
        number = self.made
        await self.go_on.wait()
        if self.fails:
            raise ValueError
        return b"%d" % number


class Clock:
    now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


async def test_callers_that_ask_meanwhile_wait_for_one_answer_and_later_ones_get_it() -> None:
    clock, make, got = Clock(), Maker(), []
    answers = SharedAnswers(clock)

    async def ask() -> None:
        got.append(await answers.body("key", 50, make))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert make.made == 1
        make.go_on.set()
    clock.now_ms += 49
    await ask()
    assert got == [b"1"] * 11
    clock.now_ms += 1
    await ask()
    assert got[-1] == b"2"
    assert await answers.body("another", 50, make) == b"3"


async def test_a_caller_that_gives_up_leaves_the_answer_to_those_that_wait() -> None:
    make, got = Maker(), []
    answers = SharedAnswers(Clock())
    given_up = trio.CancelScope()

    async def first() -> None:
        with given_up:
            await answers.body("key", 50, make)

    async def other() -> None:
        got.append(await answers.body("key", 50, make))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(other)
        nursery.start_soon(other)
        await trio.testing.wait_all_tasks_blocked()
        given_up.cancel()
        await trio.testing.wait_all_tasks_blocked()
        make.go_on.set()
    assert len(got) == 2
    assert make.made <= 3
    assert answers._making == {}


async def test_a_failure_is_that_of_the_caller_who_made_the_answer() -> None:
    make = Maker()
    make.fails = True
    make.go_on.set()
    answers = SharedAnswers(Clock())
    for _ in range(2):
        with pytest.raises(ValueError):  # noqa: PT011  the maker's own
            await answers.body("key", 50, make)
    make.fails = False
    assert await answers.body("key", 50, make) == b"3"


async def test_an_answer_that_was_begun_before_a_clearing_is_not_kept() -> None:
    make = Maker()
    answers = SharedAnswers(Clock())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answers.body, "key", 50, make)
        await trio.testing.wait_all_tasks_blocked()
        answers.clear()
        make.go_on.set()
    assert await answers.body("key", 50, make) == b"2"


async def test_the_number_of_kept_answers_is_bounded_and_the_oldest_goes_first() -> None:
    make = Maker()
    make.go_on.set()
    answers = SharedAnswers(Clock())
    for key in range(SHARED_ANSWERS_MAX + 1):
        await answers.body(key, 50, make)
    assert len(answers._kept) == SHARED_ANSWERS_MAX
    before = make.made
    await answers.body(1, 50, make)
    assert make.made == before
    await answers.body(0, 50, make)
    assert make.made == before + 1
