"""Pages of the log of events are one statement, read along an index: none sorts the rest of the log."""

import gc
import sqlite3
from collections.abc import Iterator

import pytest

from cambist.engine.store.queries import Query, events_after, last_event
from cambist.engine.store.sqlite.sqlite import bound, read
from support.store.query_plans import empty_database, plan_of

OWNER = b"\xa1" * 20


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with empty_database() as connection:
        yield connection


@pytest.mark.parametrize(
    "query",
    [events_after((0, 7), 256), events_after((0, 7), 256, OWNER), last_event()],
    ids=["page", "page of an owner", "last"],
)
def test_no_page_is_sorted(query: Query, database: sqlite3.Connection) -> None:
    steps = plan_of(query, database)
    assert len(steps) == 1
    assert "TEMP B-TREE" not in steps[0]
    assert steps[0].startswith("SEARCH") or query.sql == last_event().sql


def test_pages_after_different_places_are_one_statement(database: sqlite3.Connection) -> None:
    read(database, [events_after((0, 0), 256)])
    kept = statements()
    for place in range(1, 100):
        read(database, [events_after((0, place), 256)])
    assert statements() <= kept


def test_a_place_stands_before_the_values_that_follow_it() -> None:
    sql, values = bound(events_after((0, 7), 256, OWNER))
    assert "WHERE n > ? AND owner = ?" in sql
    assert values == (7, OWNER, 256)


def statements() -> int:
    """Number of compiled statements that the connections of this process keep."""
    return sum(type(one).__name__ == "Statement" for one in gc.get_objects())
