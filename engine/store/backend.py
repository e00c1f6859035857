"""The port that a database implements for the store. Its calls block: they run in the store process, or
inline in tests.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from .queries import Query
from .units import Unit, UnitOutcome


class Lease(Struct, frozen=True, array_like=True):
    """Lease of a shard (a fixed part of all orders) to one engine, a process that works on orders.

    Each claim raises the shard's epoch. An engine sends the epoch of the lease with every write, so that the
    store can refuse the writes of an engine that has lost the shard.
    """

    shard: int
    epoch: int


class Backend(Protocol):
    """Port (protocol): an open database with this program's tables. A SQLite and a PostgreSQL class exist.

    Every method raises StoreUnavailable while the database is unreachable or read-only, or the disk is full.
    A failed call has written nothing, except that the outcome is unknown after a loss of the connection in
    the middle of COMMIT. The backend reconnects by itself.
    """

    def apply(self, writer: bytes, batch: int, units: Sequence[Unit]) -> list[UnitOutcome]:
        """Write a batch of units (atomic groups of changes) in one transaction, durable when `apply` returns.

        A unit whose statement fails gets the outcome Refused; the other units are not affected. If the writer
        sends its last batch a second time, `apply` writes nothing and returns the stored outcomes.

        Args:
            writer: 16 bytes that identify the writer (one run of an engine).
            batch: number of the batch, greater than the numbers of the writer's earlier batches.

        Returns:
            The outcome of each unit, in the order of `units`.
        """
        ...

    def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query, in the queries' order; all queries see the same committed state."""
        ...

    def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Record that an engine is alive until `now_ms + life_ms`.

        Args:
            holder: name of the engine's run, the same as in `lease`.
            now_ms: wall clock, Unix milliseconds.

        Returns:
            The names of all live holders, including `holder`, sorted.
        """
        ...

    def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew the shard leases of an engine, and claim shards without a lease or with an expired lease.

        Args:
            holder: name of the engine's run.
            count: number of shards; `holder` claims shards only while it holds fewer.
            now_ms: wall clock, Unix milliseconds.
            life_ms: milliseconds from `now_ms` until the leases expire.

        Returns:
            Every shard that `holder` has now. A claimed shard has a higher epoch than in any earlier lease.
        """
        ...

    def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Release the given shards of the engine `holder`; None releases all and deregisters the engine."""
        ...

    def prune(self, before_ms: int, count_max: int) -> int:
        """Delete rows that can no longer change and are older than `before_ms` (Unix milliseconds).

        The rows are final orders with all rows that belong to them (an order with an unfinished side effect
        stays), relayers' ended intents (calls to get mined) and transactions, fills and cancellations of
        unknown orders, events, webhook deliveries and expired routes.

        Args:
            count_max: most orders, and most intents, transactions, events, deliveries and routes each, to
                delete in this call.

        Returns:
            Number of deleted rows, those that belong to deleted orders included; 0 if none is left to delete.
        """
        ...

    def close(self) -> None:
        """Close the database; every acknowledged write is durable."""
        ...
