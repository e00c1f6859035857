"""Plans of SQLite for the store's queries, without statistics, as the store has none."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import cambist.engine.store as store_package
from cambist.engine.store.queries import Query
from cambist.engine.store.sqlite.sqlite import bound

_MIGRATIONS = Path(store_package.__file__).parent / "migrations" / "sqlite"


@contextmanager
def empty_database() -> Iterator[sqlite3.Connection]:
    """A database with all tables and no rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for script in sorted(_MIGRATIONS.glob("*.sql")):
            connection.executescript(script.read_text(encoding="utf-8"))
        yield connection


def plan_of(query: Query, database: sqlite3.Connection) -> list[str]:
    """Steps of EXPLAIN QUERY PLAN for a query."""
    return steps_of(*bound(query), database)


def steps_of(sql: str, values: tuple[Any, ...] | dict[str, Any], database: sqlite3.Connection) -> list[str]:
    """Steps of EXPLAIN QUERY PLAN for a statement."""
    return [row[-1] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
