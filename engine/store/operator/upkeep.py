"""An operator's work on a database: read all of it, migrate it, compact it.

No function here needs a running engine. A function that changes a SQLite file takes the lock of the store
process, so that the two never run at the same time.
"""

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ....config.errors import ConfigError, StoreError, StoreUnavailable
from ..migrate import AppliedMigration, Dialect
from ..process.file_lock import locked
from ..process.place import SqlitePlace, StorePlace
from ..sqlite.sqlite import applied, is_there, migrate, open_for_reading, open_for_writing, translated
from .upkeep_port import Snapshot, Upkeep


def upkeep_of(place: StorePlace) -> Upkeep:
    """Create the `Upkeep` (access for the operator) to a SQLite or PostgreSQL database."""
    if isinstance(place, SqlitePlace):
        return SqliteUpkeep(place.path)
    from .upkeep_postgres import PostgresUpkeep  # psycopg is optional

    return PostgresUpkeep(place.url)


class SqliteUpkeep:
    """Implementation of `Upkeep` for a SQLite file."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path

    def applied(self) -> list[AppliedMigration]:
        """List the applied migrations. See `Upkeep.applied`."""
        if not is_there(self._path):
            return []
        with self.snapshot() as snapshot:
            return snapshot.applied()

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Open a snapshot for reading. See `Upkeep.snapshot`."""
        self._check_there()
        with self._named(), closing(open_for_reading(self._path)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # as of now, not of the first row
            yield _SqliteSnapshot(connection, self._path)

    def migrate(self, now_ms: Callable[[], int]) -> list[str]:
        """Apply the missing migrations, holding the file's lock so that no store process can run meanwhile.
        See `Upkeep.migrate`.
        """
        with locked(self._path, 0), self._named(), closing(open_for_writing(self._path)) as connection:
            return migrate(connection, now_ms)

    def vacuum(self) -> None:
        """Compact the SQLite file. See `Upkeep.vacuum`.

        SQLite writes a temporary copy, for which as much disk space must be free as the file occupies.
        """
        self._check_there()
        with locked(self._path, 0), self._named(), closing(open_for_writing(self._path)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Context manager: re-raise errors of the database as store errors that name the file."""
        try:
            with translated():
                yield
        except StoreUnavailable as error:
            raise StoreUnavailable(f"{self._path}: {error.detail}", error.retry_after_s) from error
        except StoreError as error:
            raise StoreError(f"{self._path}: {error.detail}") from error

    def _check_there(self) -> None:
        if not is_there(self._path):
            raise ConfigError("store.url", f"{self._path} does not exist; cambist db migrate creates it")


class _SqliteSnapshot:
    dialect: Dialect = "sqlite"
    event_order = "n"

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path.resolve()

    def applied(self) -> list[AppliedMigration]:
        return applied(self._connection)

    def rows(self, sql: str) -> Generator[tuple[Any, ...], None, None]:
        with closing(self._connection.execute(sql)) as cursor:
            yield from iter(cursor.fetchone, None)

    def size_bytes(self) -> int:
        log = self._path.with_name(f"{self._path.name}-wal")
        return sum(file.stat().st_size for file in (self._path, log) if file.exists())
