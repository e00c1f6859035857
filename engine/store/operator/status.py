"""A report on the contents of a store, for the operator."""

import os
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import Any

from msgspec import Struct

from ..migrate import AppliedMigration, Dialect, Migration
from ..tables import DELTA_ORDER, EFFECT, ORDER_EVENT, OTC_ORDER, TABLES
from .upkeep_port import Snapshot

_PROBES = 100
_PROBE_BYTES = 4_096


class Holder(Struct, frozen=True):
    """An engine and the number of shards that it holds; the empty name stands for shards without a holder.

    Attributes:
        epoch_max: greatest epoch of these shards; each claim of a shard raises the shard's epoch by 1.
        until_ms: Unix milliseconds at which the first of the engine's leases expires unless renewed; 0 in
            SQLite, whose leases last as long as the process that has the file.
    """

    holder: str
    shards: int
    epoch_max: int
    until_ms: int


class Schema(Struct, frozen=True):
    """Names of migrations, such as `0001_initial`, by their state in the database.

    Attributes:
        applied: migrations that the database has.
        pending: migrations of this program that were not applied yet.
        unknown: applied migrations that this program does not have, for example those of a newer version.
        changed: applied migrations whose SQL text differs from this program's.
    """

    applied: tuple[str, ...]
    pending: tuple[str, ...]
    unknown: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether the database's tables have the form that this program needs: no migration is pending,
        unknown or changed.
        """
        return not (self.pending or self.unknown or self.changed)


class Contents(Struct, frozen=True):
    """Counts of rows in a database's tables.

    Attributes:
        rows: table -> number of rows.
        open_orders: kind of order (`delta`, `otc`) -> number of orders that may still change.
        unfinished_effects: number of side effects that are not done yet.
        oldest_event_ms: time of the oldest event, Unix milliseconds; None if the log is empty.
    """

    rows: dict[str, int]
    open_orders: dict[str, int]
    unfinished_effects: int
    oldest_event_ms: int | None
    holders: tuple[Holder, ...]


class DatabaseStatus(Struct, frozen=True):
    """Report on a database for the operator: location, size, migrations and contents.

    Attributes:
        database: path or URL, without a password.
        contents: counts of rows; None if the tables are not this program's.
        fdatasync_p50_ms: median time of an fdatasync on the disk of a SQLite file; None if the database is on
            another machine, or the folder cannot be written to.
    """

    database: str
    dialect: Dialect
    size_bytes: int
    schema: Schema
    contents: Contents | None
    fdatasync_p50_ms: float | None


def schema_of(known: list[Migration], there: list[AppliedMigration]) -> Schema:
    """Compare the program's migrations (`known`) with the database's applied ones (`there`). Pure."""
    ours = {migration.number: migration for migration in known}
    theirs = {row.number: row for row in there}
    return Schema(
        applied=tuple(f"{row.number:04}_{row.name}" for row in there),
        pending=tuple(
            f"{migration.number:04}_{migration.name}" for migration in known if migration.number not in theirs
        ),
        unknown=tuple(f"{row.number:04}_{row.name}" for row in there if row.number not in ours),
        changed=tuple(
            f"{row.number:04}_{row.name}"
            for row in there
            if row.number in ours and ours[row.number].checksum != row.checksum
        ),
    )


def contents_of(snapshot: Snapshot) -> Contents:
    """Count the rows of a database's tables. Raises StoreError or StoreUnavailable if they cannot be read."""

    def scalar(sql: str) -> Any:
        ((value,),) = snapshot.rows(sql)
        return value

    return Contents(
        rows={name: scalar(f"SELECT count(*) FROM {name}") for name in TABLES},
        open_orders={
            surface: scalar(f"SELECT count(*) FROM {table.name} WHERE is_final = FALSE")
            for surface, table in (("delta", DELTA_ORDER), ("otc", OTC_ORDER))
        },
        unfinished_effects=scalar(f"SELECT count(*) FROM {EFFECT.name} WHERE state = 'INTENDED'"),
        oldest_event_ms=scalar(f"SELECT min(at_ms) FROM {ORDER_EVENT.name}"),
        holders=tuple(
            Holder(*values)
            for values in snapshot.rows(
                "SELECT holder, count(*), max(epoch), min(until_ms) FROM shard GROUP BY holder ORDER BY 1"
            )
        ),
    )


def fdatasync_p50_ms(folder: Path) -> float | None:
    """Measure the median time, in ms, of an fdatasync (flush to disk) in a folder; None if the folder is not
    writable.
    """
    took_ns = []
    try:
        with TemporaryFile(dir=folder, buffering=0) as file:
            for _ in range(_PROBES):
                file.write(bytes(_PROBE_BYTES))
                began_ns = time.perf_counter_ns()
                os.fdatasync(file.fileno())
                took_ns.append(time.perf_counter_ns() - began_ns)
    except OSError:
        return None
    return median(took_ns) / 1e6
