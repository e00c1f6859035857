"""Which of several processes accepts a connection: the one with the fewest, as far as the others accept."""

import os
from collections.abc import Iterator

import pytest

from cambist.engine.host.server.spread import Spread, spread_file, vacate


@pytest.fixture
def memory() -> Iterator[int]:
    descriptor = spread_file(3)
    yield descriptor
    os.close(descriptor)


def of_all(descriptor: int, *connections: int | None) -> list[Spread]:
    """One for each process, whose connections are told; None for one that does not accept."""
    found = [Spread(descriptor, index, len(connections)) for index in range(len(connections))]
    for spread, number in zip(found, connections, strict=True):
        if number is not None:
            spread.tell(number)
    return found


def test_whoever_has_the_fewest_may_come_level_with_the_next(memory: int) -> None:
    one, two, three = of_all(memory, 5, 0, 3)
    assert [one.room(), two.room(), three.room()] == [0, 4, 0]
    two.tell(3)
    assert [one.room(), two.room(), three.room()] == [0, 1, 1]


def test_many_connections_need_not_be_spread_to_the_last_one(memory: int) -> None:
    one, two, _ = of_all(memory, 170, 160, None)
    assert [one.room(), two.room()] == [1, 21]
    one.tell(171)
    assert one.room() == 0


def test_a_process_that_has_not_begun_or_has_ended_is_not_waited_for(memory: int) -> None:
    one, two, three = of_all(memory, 5, 0, None)
    assert one.room() == 0
    two.leave()
    assert one.room() > 1_000
    three.tell(0)
    assert one.room() == 0
    vacate(memory, 2)
    assert one.room() > 1_000


def test_what_the_others_leave_is_taken_in_ever_larger_parts(memory: int) -> None:
    one, two, _ = of_all(memory, 5, 0, None)
    parts = []
    for _ in range(4):
        assert one.room() == 0
        parts.append(one.left)
        one.took_left()
    assert parts == [1, 2, 4, 8]
    two.tell(9)
    assert one.room() == 5
    assert one.left == 1
