"""What a database has to do for the store. Blocking: it runs in the store process, or inline in tests."""

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
    """One database, opened and migrated.

    Every method raises StoreUnavailable while the database cannot be used (away, disk full, read-only). Then
    nothing of the call is durable, unless the connection was lost in the middle of COMMIT: nobody can say. It
    reconnects by itself.
    """

    def apply(self, writer: bytes, batch: int, units: Sequence[Unit]) -> list[UnitOutcome]:
        """Write a batch in one transaction; what came of each unit is durable when this returns.

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
        """Delete what has ended and was last changed before a time: orders with all that belongs to them,
        events, expired routes, finished effects. An order with
        an effect that is still to be done stays.

        Returns:
            How many rows at most `count_max` of each kind; 0 when nothing is left.
        """
        ...

    def close(self) -> None:
        """Close it; nothing is lost."""
        ...
