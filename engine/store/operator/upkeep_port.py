"""Ports for an operator's work on either database: `Upkeep`, and `Snapshot` to read all of it."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..migrate import AppliedMigration, Dialect


class Snapshot(Protocol):
    """Protocol: a database snapshot, open for reading. All rows come from one committed state.

    Attributes:
        dialect: SQL dialect: `sqlite` or `postgres`.
        event_order: SQL list of the columns that sort events by arrival.
    """

    dialect: Dialect
    event_order: str

    def applied(self) -> list[AppliedMigration]:
        """List the migrations that the database has."""
        ...

    def rows(self, sql: str) -> Generator[tuple[Any, ...], None, None]:
        """Yield the rows of an SQL statement, with a bounded number in memory; close the generator before the
        snapshot ends.
        """
        ...

    def size_bytes(self) -> int:
        """Size of the database on its disk, in bytes."""
        ...


class Upkeep(Protocol):
    """Port (protocol): an operator's access to a database, to read, migrate and compact the tables.

    Every method raises ConfigError, StoreUnavailable or StoreError on failure.
    """

    dialect: Dialect

    def applied(self) -> list[AppliedMigration]:
        """List the migrations that the database has; empty for a new database."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot for reading; the database is not changed."""
        ...

    def migrate(self, now_ms: Callable[[], int]) -> list[str]:
        """Apply the missing migrations and return their names."""
        ...

    def vacuum(self) -> None:
        """Free the disk space that deleted rows occupied."""
        ...
