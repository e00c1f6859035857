"""Implementation of `Upkeep` for a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..migrate import AppliedMigration, Dialect
from ..postgres.postgres_connection import applied, connect, load_driver, migrate, translated
from ..tables import TABLES

if TYPE_CHECKING:
    from ..postgres.postgres_connection import Connection
    from .upkeep_port import Snapshot

_ROWS_AT_ONCE = 100
_OTHERS = ("shard", "shard_holder", "writer", "schema_migration")


class PostgresUpkeep:
    """Implementation of `Upkeep` for PostgreSQL. Statements have no time limit: large tables take long."""

    dialect: Dialect = "postgres"

    def __init__(self, url: str) -> None:
        self._url = url

    def applied(self) -> list[AppliedMigration]:
        """List the applied migrations. See `Upkeep.applied`."""
        with self._connected() as connection:
            return applied(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Open a snapshot for reading. See `Upkeep.snapshot`."""
        from psycopg import IsolationLevel

        with self._connected() as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                yield _PostgresSnapshot(connection)

    def migrate(self, now_ms: Callable[[], int]) -> list[str]:
        """Apply the missing migrations. See `Upkeep.migrate`."""
        with self._connected() as connection:
            return migrate(connection, now_ms)

    def vacuum(self) -> None:
        """Vacuum the tables and renew the planner's statistics; writes go on. See `Upkeep.vacuum`."""
        with self._connected() as connection:
            connection.execute(f"VACUUM (ANALYZE) {', '.join((*TABLES, *_OTHERS))}".encode())

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        driver = load_driver()
        try:
            with connect(self._url) as connection:
                connection.execute("SET statement_timeout = 0")
                connection.execute("SET idle_in_transaction_session_timeout = 0")
                yield connection
        except driver.Error as error:
            raise translated(self._url, error) from None


class _PostgresSnapshot:
    dialect: Dialect = "postgres"
    event_order = "tx, n"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def applied(self) -> list[AppliedMigration]:
        return applied(self._connection)

    def rows(self, sql: str) -> Generator[tuple[Any, ...], None, None]:
        with self._connection.cursor(name="rows", binary=True) as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            cursor.execute(sql.encode())
            yield from cursor

    def size_bytes(self) -> int:
        ((size,),) = self.rows("SELECT pg_database_size(current_database())")
        return int(size)
