"""The port that a database implements for the store. Calls block, in the store process or inline in tests."""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from .queries import Query
from .units import Unit, UnitOutcome


class Lease(Struct, frozen=True, array_like=True):
    """A shard that is held: its epoch fences what is written for it."""

    shard: int
    epoch: int


class Backend(Protocol):
    """A database, opened and migrated.

    Every method raises StoreUnavailable while the database cannot be used (away, disk full, read-only). Then
    no part of the call is durable, except that the outcome is unknown if the connection was lost in the
    middle of COMMIT. The backend reconnects by itself.
    """

    def apply(self, writer: bytes, batch: int, units: Sequence[Unit]) -> list[UnitOutcome]:
        """Write a batch in one transaction; each unit's outcome is durable when this returns.

        A unit whose statement fails is Refused alone. The batch that was last applied for this writer is not
        applied again: its outcomes are returned once more.

        Args:
            writer: 16 bytes, who counts the batches.
            batch: its number, which rises.
        """
        ...

    def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """The rows of each query, all of one committed state."""
        ...

    def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Note that `holder` lives, until `life_ms` from now unless it says so again.

        Returns:
            The names of all holders that live, `holder` among them, sorted.
        """
        ...

    def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew what `holder` has and claim free or overdue shards, up to `count` together.

        Returns:
            Every shard that `holder` has now. A claimed one has a higher epoch than any before.
        """
        ...

    def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Give back some shards of `holder`; by default it ends and gives back all."""
        ...

    def prune(self, before_ms: int, count_max: int) -> int:
        """Delete rows that have ended and were last changed before a time: orders with their dependent rows,
        events, expired routes, finished effects. An order with an unfinished effect stays.

        Returns:
            Count of deleted rows, at most `count_max` of each kind; 0 when no such row is left.
        """
        ...

    def close(self) -> None:
        """Close it; nothing is lost."""
        ...
