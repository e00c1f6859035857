"""The store's SQLite back end: one file, one writing connection, one transaction per batch.

Write-ahead log with `synchronous=FULL`: a batch that is acknowledged is on the disk. Readers have connections
of their own and see whole batches.

The process that opens the file holds its lock, so every engine that held shards before has ended, and the
leases of these engines count as expired. Until when a lease lasts is kept in memory alone.

Each table's statements, with `?` for the values, are built once.

Source: ARCHITECTURE.md, "Databases", "Transitions".
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ....config.errors import ConfigError, StoreError, StoreUnavailable
from ..backend import Lease
from ..migrate import AppliedMigration, migrations, pending
from ..prune import PRUNES
from ..queries import Query, by, render
from ..tables import TABLES
from ..units import (
    DONE,
    Cas,
    Conflict,
    Drop,
    Duplicate,
    Fenced,
    New,
    Put,
    Refused,
    Unit,
    UnitOutcome,
    values_of,
)


@cache
def insert(name: str, *, unless_there: bool) -> str:
    """Build the SQL that inserts a row into a table; its parameters are the values of all columns.

    Args:
        name: name of the table.
        unless_there: insert nothing, without an error, if a row with the same unique values exists.
    """
    table = TABLES[name]
    marks = ", ".join("?" * len(table.columns))
    tail = " ON CONFLICT DO NOTHING" if unless_there or table.repeatable else ""
    return f"INSERT INTO {name} ({', '.join(table.columns)}) VALUES ({marks}){tail}"


@cache
def compare_and_set(name: str) -> str:
    """Build the SQL that rewrites a row of a table if the row has an expected version.

    The parameters of the SQL are the values of the mutable columns, the key, and the expected version.
    """
    table = TABLES[name]
    if not table.mutable:
        raise ValueError(f"{name} has nothing that changes")
    assigned = ", ".join(f"{column} = ?" for column in table.mutable)
    found = " AND ".join(f"{column} = ?" for column in table.key)
    return f"UPDATE {name} SET {assigned}, version = version + 1 WHERE {found} AND version = ?"


@cache
def delete(name: str) -> str:
    """Build the SQL that deletes a row of a table; its parameters are the columns of the row's key."""
    if not TABLES[name].unique:
        raise ValueError("a log is only added to")
    return f"DELETE FROM {name} WHERE " + " AND ".join(f"{column} = ?" for column in TABLES[name].key)


_BUSY_MS = 5_000
_CACHE_KIB = 16_384
_WAL_PAGES = 4_000
_WRITERS_KEPT_MS = 7 * 24 * 3_600_000

_encode = msgspec.msgpack.Encoder().encode
_decode_outcomes = msgspec.msgpack.Decoder(list[UnitOutcome]).decode


def is_there(path: Path) -> bool:
    """Whether the SQLite file exists. Raises ConfigError if `path` is a folder or access is denied."""
    try:
        if path.is_dir():
            raise ConfigError("store.url", f"{path} is a folder, expected a file")
        return path.exists()
    except OSError as error:
        raise ConfigError("store.url", f"{path} cannot be opened: {error.strerror}") from None


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open a read-only connection to the SQLite file; the connection sees only committed writes."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, cached_statements=256
    )
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    connection.execute("PRAGMA query_only = ON")
    return connection


def read(connection: sqlite3.Connection, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each query; all queries see the same committed state. Raises StoreUnavailable as
    `Backend.read` does.
    """
    with translated():
        if len(queries) == 1:
            return [_rows(connection, queries[0])]
        connection.execute("BEGIN")
        try:
            return [_rows(connection, query) for query in queries]
        finally:
            _roll_back(connection)


def migrate(connection: sqlite3.Connection, now_ms: Callable[[], int]) -> list[str]:
    """Apply the missing migrations and return their names.

    Raises:
        ConfigError: the migrations applied before are not this program's (`migrate.pending`).
    """
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, "
        "checksum TEXT NOT NULL, applied_ms INTEGER NOT NULL) STRICT"
    )
    left = pending(migrations("sqlite"), applied(connection))
    for migration in left:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_migration VALUES (?, ?, ?, ?)",
                (migration.number, migration.name, migration.checksum, now_ms()),
            )
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise
    return [f"{migration.number:04}_{migration.name}" for migration in left]


def _unended(ends_ms: dict[str, int], now_ms: int) -> dict[str, int]:
    """Return the entries that have not ended."""
    return {name: end_ms for name, end_ms in ends_ms.items() if end_ms >= now_ms}


def applied(connection: sqlite3.Connection) -> list[AppliedMigration]:
    """List the migrations that the database has; empty for a new file."""
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migration'").fetchone()
    if not there:
        return []
    rows = connection.execute("SELECT number, name, checksum FROM schema_migration")
    return [AppliedMigration(number, name, checksum) for number, name, checksum in rows]


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open the SQLite connection of the one process that writes; creates the file if it does not exist.

    Raises:
        ConfigError: the file is no database, or cannot be opened.
    """
    connection = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
    except (sqlite3.Error, OSError) as error:
        if connection is not None:
            connection.close()
        raise ConfigError("store.url", f"{path} cannot be opened: {error}") from None
    return connection


class SqliteBackend:
    """Implementation of `Backend` for one SQLite file.

    Args:
        path: the file; created if it does not exist.
        now_ms: wall clock, Unix milliseconds.

    Raises:
        ConfigError: the file cannot be used, or its tables are not this program's.
    """

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self._connection = open_for_writing(path)
        self._now_ms = now_ms
        try:
            migrate(self._connection, now_ms)
        except sqlite3.Error as error:
            self._connection.close()
            raise ConfigError("store.url", f"{path} cannot be migrated: {error}") from None
        except BaseException:
            self._connection.close()
            raise
        self._execute = self._connection.execute
        self._files = _files(path)
        self._epochs: dict[int, int] = {}
        # Name of an engine -> end of its life, and of its leases, Unix milliseconds.
        self._living: dict[str, int] = {}
        self._leased: dict[str, int] = {}

    def apply(self, writer: bytes, batch: int, units: Sequence[Unit]) -> list[UnitOutcome]:
        """Write a batch of units (atomic groups of changes) in one transaction. See `Backend.apply`."""
        with translated():
            before = self._execute("SELECT batch, outcomes FROM writer WHERE id = ?", (writer,)).fetchone()
            if before is not None and before[0] >= batch:
                if before[0] > batch:
                    raise StoreError(f"batch {batch} is older than the last one applied, {before[0]}")
                self._check_files()
                return _decode_outcomes(before[1])
            try:
                with self._transaction():
                    outcomes = [self._write_unit(unit) for unit in units]
                    self._remember(writer, batch, outcomes)
            except _POISON:
                with self._transaction():
                    outcomes = [self._alone(unit) for unit in units]
                    self._remember(writer, batch, outcomes)
        return outcomes

    def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query, all read from one committed state. See `Backend.read`."""
        return read(self._connection, queries)

    def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Record that an engine (`holder`) is alive. See `Backend.attend`.

        Lives are kept in memory: no other process has the file, and a renewal writes nothing to the disk.
        """
        self._living[holder] = now_ms + life_ms
        self._living = _unended(self._living, now_ms)
        return sorted(self._living)

    def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew an engine's shard leases and claim free shards. See `Backend.lease`."""
        self._leased[holder] = now_ms + life_ms
        self._leased = _unended(self._leased, now_ms)
        mine = "SELECT number, epoch FROM shard WHERE holder = ? ORDER BY number"
        with translated():
            held = self._execute(mine, (holder,)).fetchall()
            if len(held) < count:
                # Shards whose lease has ended are free, and so are those of engines before this process.
                others = [name for name in self._leased if name != holder]
                taken = ", ".join("?" * len(others))
                with self._transaction():
                    self._execute(
                        "UPDATE shard SET holder = ?, epoch = epoch + 1, until_ms = 0 WHERE number IN ("
                        f"SELECT number FROM shard WHERE holder <> ? AND holder NOT IN ({taken}) "
                        "ORDER BY number LIMIT ?)",
                        (holder, holder, *others, count - len(held)),
                    )
                held = self._execute(mine, (holder,)).fetchall()
        return [Lease(number, epoch) for number, epoch in held]

    def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Release an engine's shards, so that other engines can claim them. See `Backend.release`."""
        free = "UPDATE shard SET holder = '' WHERE holder = ?"
        with translated(), self._transaction():
            if shards is None:
                self._living.pop(holder, None)
                self._leased.pop(holder, None)
                self._execute(free, (holder,))
                return
            for shard in shards:
                self._execute(f"{free} AND number = ?", (holder, shard))

    def prune(self, before_ms: int, count_max: int) -> int:
        """Delete final orders, old events and expired routes. See `Backend.prune`."""
        with translated(), self._transaction():
            values = {"before_ms": before_ms, "rows_max": count_max}
            return sum(self._execute(sql, values).rowcount for sql in PRUNES)

    def close(self) -> None:
        """Close the connection. See `Backend.close`."""
        self._connection.close()

    # --- One unit -----------------------------------------------------------------------------------

    def _write_unit(self, unit: Unit) -> UnitOutcome:
        """Write one unit of changes in the open transaction. If a change after the first can fail to apply,
        set a savepoint before the write.
        """
        if unit.fence is not None and self._epoch(unit.fence.shard) != unit.fence.epoch:
            return Fenced(unit.fence.shard)
        if unit.is_decided_first:
            return self._changes(unit)
        self._execute("SAVEPOINT unit")
        outcome = self._changes(unit)
        if outcome is not DONE:
            self._execute("ROLLBACK TO unit")
        self._execute("RELEASE unit")
        return outcome

    def _alone(self, unit: Unit) -> UnitOutcome:
        """Write one unit of changes after setting a savepoint; a failed statement undoes this unit alone."""
        self._execute("SAVEPOINT alone")
        try:
            outcome = self._write_unit(unit)
        except _POISON as error:
            self._execute("ROLLBACK TO alone")
            outcome = Refused(f"{type(error).__name__}: {error}")
        self._execute("RELEASE alone")
        return outcome

    def _changes(self, unit: Unit) -> UnitOutcome:
        execute = self._execute
        for change in unit.changes:
            name = change.table
            match change:
                case Put():
                    execute(insert(name, unless_there=False), values_of(change.row))
                case Cas():
                    set_values = (*change.values, *change.key, change.version)
                    if not execute(compare_and_set(name), set_values).rowcount:
                        return Conflict(name, self._by(name, 0, change.key))
                case New():
                    values = values_of(change.row)
                    if not execute(insert(name, unless_there=True), values).rowcount:
                        return self._duplicate(name, values)
                case Drop():
                    execute(delete(name), change.key)
        return DONE

    def _duplicate(self, name: str, values: tuple[Any, ...]) -> Duplicate:
        table = TABLES[name]
        by_column = dict(zip(table.columns, values, strict=True))
        for number, unique in enumerate(table.unique):
            row = self._by(name, number, tuple(by_column[column] for column in unique.columns))
            if row is not None:
                return Duplicate(name, number, row)
        raise StoreError(f"{name}: a row was neither inserted nor found")

    def _by(self, name: str, unique: int, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        rows = _rows(self._connection, by(TABLES[name], *values, unique=unique))
        return rows[0] if rows else None

    def _epoch(self, shard: int) -> int | None:
        """Return a shard's current epoch, read once per transaction; -1 if the database lacks the shard."""
        if shard not in self._epochs:
            row = self._execute("SELECT epoch FROM shard WHERE number = ?", (shard,)).fetchone()
            self._epochs[shard] = row[0] if row else -1
        return self._epochs[shard]

    def _remember(self, writer: bytes, batch: int, outcomes: list[UnitOutcome]) -> None:
        """Store the batch's outcomes in the batch's own transaction.

        A writer that lost the answer sends the batch again and then gets these outcomes.
        """
        now_ms = self._now_ms()
        self._execute(
            "INSERT INTO writer (id, batch, outcomes, at_ms) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
            "SET batch = excluded.batch, outcomes = excluded.outcomes, at_ms = excluded.at_ms",
            (writer, batch, _encode(outcomes), now_ms),
        )
        if batch == 1:
            self._execute("DELETE FROM writer WHERE at_ms < ?", (now_ms - _WRITERS_KEPT_MS,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._epochs.clear()
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            _roll_back(self._connection)
            raise
        self._check_files()

    def _check_files(self) -> None:
        """Raise StoreUnavailable if a database file was removed or replaced, since writes are then lost."""
        for path, inode in self._files:
            if inode_of(path) != inode:
                raise StoreUnavailable(
                    f"{path.name} was removed or replaced while it was in use", retry_after_s=5
                )


# --- Words, rows, errors ------------------------------------------------------------------------------


def _files(path: Path) -> list[tuple[Path, int]]:
    """List (path, inode) of the database's file and of its write-ahead log.

    A later comparison shows whether a file was replaced, which SQLite does not notice.
    """
    path = path.resolve()
    return [(file, inode_of(file)) for file in (path, path.with_name(f"{path.name}-wal"))]


def inode_of(path: Path) -> int:
    """Inode number of a file; 0 if the file does not exist."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _roll_back(connection: sqlite3.Connection) -> None:
    """Roll back the open transaction, if any: an error may have ended the transaction already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _rows(connection: sqlite3.Connection, query: Query) -> list[tuple[Any, ...]]:
    return connection.execute(*bound(query)).fetchall()


# `AND 0 < ?` is always true: it takes up the number that the query gives for PostgreSQL's limit.
_PARTS = {"part": "", "part_asc": "AND 0 <", "part_desc": "AND 0 <", "part_end": ""}
"""Placeholders around the parts of a sorted UNION ALL, which need no limit here: SQLite reads each part in
order.
"""

_WORDS = {
    "tx": "(0 + 0)",
    "settled": "TRUE",
    "by_place": "n",
    "newest": "n DESC",
    "after": "n > ?",
    **_PARTS,
    "now_delta_order": "CAST(coalesce(max(seq), 0) AS TEXT) FROM delta_order",
    "now_otc_order": "CAST(coalesce(max(seq), 0) AS TEXT) FROM otc_order",
}
_MARK = re.compile(r"\?|\{after\}")


def bound(query: Query) -> tuple[str, tuple[Any, ...]]:
    """Return a query as SQL for SQLite, and the values of the SQL's `?` marks in order.

    `Query.after` becomes a value too, so that all pages of the event log share one compiled statement.
    """
    if "{" not in query.sql:
        return query.sql, query.values
    given = iter(query.values)
    values = tuple([next(given) if mark == "?" else query.after[1] for mark in _MARK.findall(query.sql)])
    as_of = f"seq <= {int(query.as_of):d}" if query.as_of else "TRUE"
    return render(query, _WORDS | {"as_of": as_of}), values


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of an SQL script one by one, since `executescript` would commit the open
    transaction.
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


_POISON = (
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    sqlite3.DataError,
    OverflowError,
    TypeError,
    KeyError,
    ValueError,
)
"""Errors of a statement that a single faulty unit of changes causes; the batch's other units are not
affected.
"""


@contextmanager
def translated() -> Iterator[None]:
    """Context manager: re-raise SQLite's errors as StoreUnavailable if the database is full, read-only or
    locked, else as StoreError.
    """
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            raise StoreUnavailable(f"the database cannot be used: {error}", retry_after_s=5) from error
        raise StoreError(f"the database failed: {error}") from error
