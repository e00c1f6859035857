"""What an operator asks of a database, whichever it is: `Upkeep`, and `Snapshot` to read all of it."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..migrate import AppliedMigration, Dialect


class Snapshot(Protocol):
    """One committed state of a database, whatever is written meanwhile.

    Attributes:
        dialect: of the database.
        event_order: what events are sorted by.
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
    """One database. What fails raises ConfigError, StoreUnavailable or StoreError."""

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
