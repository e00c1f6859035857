"""Stores that are opened quickly.

A new SQLite file gets its tables from a copy of a migrated database, made once in each test process.

The tables and the rows of `schema_migration` are those of `migrate`, in a fiftieth of its time. A test of
migrations overrides the fixture `warm_store`.

The store process of a `stores.Engine` is a fork (`support.warm_processes`): it imports neither the back end
nor, for PostgreSQL, the driver. That of `store_work.store_at` starts as the product's does.
"""

import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from cambist.engine.store.process import process
from cambist.engine.store.sqlite.sqlite import migrate
from support.warm_processes import WarmProcess, start_warm


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


def spawn_warm(descriptors: Sequence[int], environ: Mapping[str, str]) -> WarmProcess:
    """Start a store process; with two sockets it is one on PostgreSQL."""
    needs = ["psycopg"] if len(descriptors) == 2 else []
    return start_warm(
        "support.store.warm_store:serve_engine", needs=needs, inherited=descriptors, env=environ
    )


def serve_engine() -> None:
    """Main function of the store process."""
    sys.exit(process.main(sys.argv[1:]))
