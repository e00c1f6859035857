"""Questions that are asked at once: their order, their number at a time, and the first that fails."""

import pytest
import trio
from trio.testing import MockClock

from cambist.config.errors import ChainError, NodeUnavailable
from cambist.engine.chain.together import all_of, both


@pytest.mark.parametrize(("at_once", "seconds"), [(1, 6), (2, 3), (3, 2), (16, 1)])
async def test_answers_are_in_order_and_no_more_are_asked_at_a_time(
    autojump_clock: MockClock, at_once: int, seconds: int
) -> None:
    begun: list[int] = []

    async def ask(number: int) -> int:
        begun.append(number)
        await trio.sleep(1)
        return 10 * number

    began = trio.current_time()
    assert await all_of(ask, range(6), at_once) == [0, 10, 20, 30, 40, 50]
    assert trio.current_time() - began == seconds
    assert begun == sorted(begun), "a nonce is sent before the next"


async def test_nothing_is_asked_about_nothing() -> None:
    async def ask(_: int) -> int:
        raise AssertionError

    assert await all_of(ask, [], 4) == []


async def test_the_first_error_ends_all_others(autojump_clock: MockClock) -> None:
    ended: list[int] = []

    async def ask(number: int) -> int:
        try:
            await trio.sleep(1 + number % 3)
        finally:
            ended.append(number)
        if number == 1:
            raise NodeUnavailable("away")
        return number

    with pytest.raises(NodeUnavailable, match="away"):
        await all_of(ask, [2, 5, 1, 8], 4)
    assert trio.current_time() == 2
    assert sorted(ended) == [1, 2, 5, 8]


async def test_both_answers_or_the_error_of_either(autojump_clock: MockClock) -> None:
    async def late() -> str:
        await trio.sleep(2)
        return "late"

    async def soon() -> int:
        await trio.sleep(1)
        return 1

    async def fails() -> int:
        await trio.sleep(1)
        raise ChainError("no")

    assert await both(late, soon) == ("late", 1)
    assert trio.current_time() == 2
    with pytest.raises(ChainError, match="no"):
        await both(late, fails)
    assert trio.current_time() == 3
