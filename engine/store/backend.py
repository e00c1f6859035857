"""The port that a database implements for the store. Its calls block: they run in the store process, or
inline in tests.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from .queries import Query
from .units import Unit, UnitOutcome


class Lease(Struct, frozen=True, array_like=True):
    """A shard of the orders, leased to one engine; the engine's writes to the shard carry the lease's epoch,
    so that the store refuses them once another engine has the shard.
    """

    shard: int
    epoch: int


class Backend(Protocol):
    """Port: an opened database with this program's tables, as SQLite and PostgreSQL implement it.

    Every method raises StoreUnavailable while the database is unreachable or read-only, or its disk is full.
    Then no part of the call is durable, except that the outcome is unknown if the connection was lost in
    the middle of COMMIT. The backend reconnects by itself.
    """

    def apply(self, writer: bytes, batch: int, units: Sequence[Unit]) -> list[UnitOutcome]:
        """Write a batch of units in one transaction; each unit's outcome is durable when this returns.

        A unit whose statement fails is Refused; the other units are not affected. If the writer sends its
        last batch a second time, the stored outcomes are returned and nothing is written.

        Args:
            writer: 16 bytes that identify the writer.
            batch: the writer's number of the batch, ascending.
        """
        ...

    def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query, in the queries' order; all queries see the same committed state."""
        ...

    def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Register an engine, a holder of shards, as alive for `life_ms` from now; each call extends that
        time.

        Returns:
            The names of all live holders, including `holder`, sorted.
        """
        ...

    def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew the shard leases of `holder`, an engine, and claim shards that are free or whose lease has
        expired.

        Args:
            count: most shards that `holder` has after claiming.
            life_ms: time until the leases expire.

        Returns:
            Every shard that `holder` has now. A claimed shard has a higher epoch than in any earlier lease.
        """
        ...

    def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Release the given shards of `holder`, an engine; without `shards`, release all and deregister the
        holder.
        """
        ...

    def prune(self, before_ms: int, count_max: int) -> int:
        """Delete rows that are final and last changed before `before_ms`: orders with their dependent rows,
        events, expired routes, finished side effects. An order with an unfinished side effect stays.

        Returns:
            Count of deleted rows, at most `count_max` of each kind; 0 when no such row is left.
        """
        ...

    def close(self) -> None:
        """Close the database; every acknowledged write is durable."""
        ...
