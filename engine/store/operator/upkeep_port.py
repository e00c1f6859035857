"""Ports for an operator's work on either database: `Upkeep`, and `Snapshot` to read all of it."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..migrate import AppliedMigration, Dialect


class Snapshot(Protocol):
    """A committed state of a database, unaffected by later writes.

    Attributes:
        dialect: of the database.
        event_order: the columns that sort events.
    """

    dialect: Dialect
    event_order: str

    def applied(self) -> list[AppliedMigration]:
        """The migrations that it has."""
        ...

    def rows(self, sql: str) -> Generator[tuple[Any, ...], None, None]:
        """The rows of a statement, a bounded number of them in memory; closed before the snapshot ends."""
        ...

    def size_bytes(self) -> int:
        """Of the database on its disk."""
        ...


class Upkeep(Protocol):
    """An operator's access to a database. Failures raise ConfigError, StoreUnavailable or StoreError."""

    dialect: Dialect

    def applied(self) -> list[AppliedMigration]:
        """The migrations that it has; none where there is nothing yet."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Look at what is there; nothing is changed."""
        ...

    def migrate(self, now_ms: Callable[[], int]) -> list[str]:
        """Apply what is missing; returns the names."""
        ...

    def vacuum(self) -> None:
        """Give back what deleted rows left."""
        ...
