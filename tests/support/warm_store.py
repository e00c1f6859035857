"""A new SQLite file gets its tables from a copy of a migrated database, made once in each test process.

The tables and the rows of `schema_migration` are those of `migrate`, in a fiftieth of its time. A test of
migrations overrides the fixture `warm_store`.
"""

import sqlite3
from collections.abc import Callable
from functools import cache

from cambist.engine.store.sqlite import migrate


def migrate_from_copy(connection: sqlite3.Connection, now_ms: Callable[[], int]) -> list[str]:
    """As `migrate`; a database with tables of its own is migrated as always."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
        return migrate(connection, now_ms)
    migrated, names = _migrated()
    migrated.backup(connection)
    return names


@cache
def _migrated() -> tuple[sqlite3.Connection, list[str]]:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    return connection, migrate(connection, lambda: 0)
