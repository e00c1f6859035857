"""Pages of the log of events are read along an index: none sorts the rest of the log."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import cambist.engine.store as store_package
from cambist.engine.store.queries import Query, events_after, last_event, render
from cambist.engine.store.sqlite import _words

MIGRATIONS = Path(store_package.__file__).parent / "migrations" / "sqlite"


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for script in sorted(MIGRATIONS.glob("*.sql")):
            connection.executescript(script.read_text(encoding="utf-8"))
        yield connection


@pytest.mark.parametrize(
    "query",
    [events_after((0, 7), 256), events_after((0, 7), 256, b"\xa1" * 20), last_event()],
    ids=["page", "page of an owner", "last"],
)
def test_no_page_is_sorted(query: Query, database: sqlite3.Connection) -> None:
    plan = database.execute("EXPLAIN QUERY PLAN " + render(query, _words(query)), query.values).fetchall()
    steps = [row[-1] for row in plan]
    assert len(steps) == 1
    assert "TEMP B-TREE" not in steps[0]
    assert steps[0].startswith("SEARCH") or query.sql == last_event().sql
