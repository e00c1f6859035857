"""The store's PostgreSQL back end: one transaction per batch, with a few statements over arrays.

The back end has three connections, each for one thread:

    writer    batches, leases, pruning
    reader    queries
    listener  waits for events

A batch is applied exactly once: the engine's run has a row in the table `writer` and an advisory lock. After
a connection lost in the middle of COMMIT, the row says whether the batch was applied. A unit with a fence
locks its shard's row until the batch is committed: no other holder can claim the shard meanwhile.

The connection `writer` keeps an advisory lock under the name of the holder of shards. The server frees the
lock when the store process ends, and other holders then claim the shards without waiting for the leases to
run out. A lease has to run out first only if the holder's machine is lost or its engine hangs.

Source: ARCHITECTURE.md, "Databases", "Transitions", "Several engines".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ....config.errors import StoreError, StoreUnavailable
from ....config.timeouts import STORE_DEAD_S, STORE_STUCK_S
from ..backend import Lease
from ..prune import PRUNES
from ..queries import Query, render
from ..units import Fenced, Refused, Unit, UnitOutcome
from .postgres_batch import IntArray, array, waves_of
from .postgres_connection import (
    Reconnecting,
    connect,
    connect_attentively,
    load_driver,
    meaning,
    open_migrated,
    reason,
    translated,
)
from .postgres_pipe import Pipe
from .postgres_units import OutOfOrder, UnitWriter, Vanished

if TYPE_CHECKING:
    from psycopg import Cursor

    from .postgres_connection import Connection

CHANNEL = "cambist_events"
_HOLDERS_LOCK = int.from_bytes(b"camb")
TRIES = 3
_WRITERS_KEPT_MS = 7 * 24 * 3_600_000
_WORDS = {
    "tx": "tx",
    "by_place": "tx, n",
    "newest": "tx DESC, n DESC",
    "settled": "tx < pg_snapshot_xmin(pg_current_snapshot())",
    "after": "(tx, n) > (%(after_tx)s::xid8, %(after_n)s) AND tx < pg_snapshot_xmin(pg_current_snapshot())",
    "part": "(",
    "part_asc": "ORDER BY place ASC, order_hash ASC LIMIT",
    "part_desc": "ORDER BY place DESC, order_hash DESC LIMIT",
    "part_end": ")",
    "now_delta_order": "pg_current_snapshot()::text",
    "now_otc_order": "pg_current_snapshot()::text",
}
_EPOCHS = b"SELECT number, epoch FROM shard WHERE number = ANY($1) ORDER BY number FOR SHARE"
_REMEMBER = (
    b"INSERT INTO writer (id, batch, outcomes, at_ms) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE "
    b"SET batch = excluded.batch, outcomes = excluded.outcomes, at_ms = excluded.at_ms"
)
_PRESENT = (
    b"WITH present AS (SELECT pid, objid::bigint AS key FROM pg_locks WHERE locktype = 'advisory' "
    b"AND granted AND objsubid = 2 AND classid = %d AND database = (SELECT oid FROM pg_database "
    b"WHERE datname = current_database())), "
    b"named AS (SELECT name, until_ms, hashtext(name)::bigint & 4294967295 AS key FROM shard_holder) "
) % _HOLDERS_LOCK
"""Two CTEs. present: the advisory locks of connected holders; named: every holder and its lock's key."""
_ATTEND = (
    _PRESENT
    + (
        b"SELECT pg_try_advisory_lock(%d, hashtext($1)) WHERE NOT EXISTS (SELECT FROM present "
        b"WHERE key = hashtext($1)::bigint & 4294967295 AND pid = pg_backend_pid())"
    )
    % _HOLDERS_LOCK
)
_ATTENDED = (
    b"INSERT INTO shard_holder (name, until_ms) VALUES ($1, $2) "
    b"ON CONFLICT (name) DO UPDATE SET until_ms = excluded.until_ms"
)
_LIVING = _PRESENT + (
    b"SELECT name FROM named WHERE name = $1 OR (until_ms >= $2 AND "
    b"(until_ms > $3 OR key IN (SELECT key FROM present))) ORDER BY name"
)
_RENEW = (
    b"WITH mine AS (SELECT number FROM shard WHERE holder = $1 ORDER BY number FOR UPDATE) "
    b"UPDATE shard t SET until_ms = $2 FROM mine WHERE t.number = mine.number"
)
_CLAIM = _PRESENT + (
    b", dead AS (SELECT name FROM named WHERE until_ms <= $5 AND key NOT IN (SELECT key FROM present)), "
    b"free AS (SELECT number FROM shard WHERE holder <> $1 AND (holder = '' OR until_ms < $2 "
    b"OR holder IN (SELECT name FROM dead)) ORDER BY number LIMIT $3 FOR UPDATE SKIP LOCKED) "
    b"UPDATE shard t SET holder = $1, epoch = t.epoch + 1, until_ms = $4 FROM free "
    b"WHERE t.number = free.number"
)
# The server itself ends a session that is idle in a transaction, but not a session in a pipeline.
_END_STUCK = b"""
SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN pg_locks l USING (pid)
WHERE l.relation = 'shard'::regclass AND l.mode = 'RowShareLock' AND l.granted AND a.usename = current_user
AND a.pid <> pg_backend_pid() AND clock_timestamp() - a.xact_start > $3::bigint * interval '1 millisecond'
AND EXISTS (SELECT FROM shard WHERE holder NOT IN ('', $1) AND until_ms < $2)
"""
_MINE = b"SELECT number, epoch FROM shard WHERE holder = $1 ORDER BY number"
_PRUNES = tuple(sql.replace(":before_ms", "$1").replace(":rows_max", "$2").encode() for sql in PRUNES)
_POISON = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""Errors of a faulty unit of changes that occur while a statement is encoded, before the server sees it."""

_encode = msgspec.msgpack.Encoder().encode
_decode_outcomes = msgspec.msgpack.Decoder(list[UnitOutcome]).decode

T = TypeVar("T")


class PostgresBackend:
    """Implementation of `Backend` for a PostgreSQL database, which several engines may share.

    A single thread calls `apply`, `attend`, `lease`, `release` and `prune`; a second thread may call `read`
    meanwhile, and a third thread `wait_for_events`.

    Args:
        url: `postgresql://...`, as libpq takes it.
        now_ms: wall clock, Unix milliseconds.

    Raises:
        ConfigError: psycopg is not installed, the database cannot be reached, or its tables are not this
            program's.
    """

    def __init__(self, url: str, now_ms: Callable[[], int]) -> None:
        self._url = url
        self._now_ms = now_ms
        self._driver = load_driver()
        open_migrated(url, now_ms)
        self._writer = Reconnecting(url, Pipe)
        self._reader = Reconnecting(url, connect_attentively)
        self._listener = Reconnecting(url, _listening)

    def apply(self, writer: bytes, batch: int, units: Sequence[Unit]) -> list[UnitOutcome]:
        """Write a batch of units (atomic groups of changes) in one transaction. See `Backend.apply`."""
        try:
            return self._tried(lambda: self._batch(writer, batch, units, one_by_one=False))
        except (self._driver.Error, OutOfOrder, Vanished, *_POISON) as error:
            if isinstance(error, self._driver.Error) and meaning(error) not in ("again", "poison"):
                raise translated(self._url, error) from error
        return self._written(lambda: self._batch(writer, batch, units, one_by_one=True))

    def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query, all read from one committed state. See `Backend.read`.

        Raises:
            ValueError: a query's `as_of` is no text that the query `as_of_now` returned.
        """

        def once() -> list[list[tuple[Any, ...]]]:
            connection = self._reader.open()
            try:
                if len(queries) == 1:  # one statement sees one state without a transaction
                    return [_executed(connection, queries[0]).fetchall()]
                with connection.pipeline():
                    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    cursors = [_executed(connection, query) for query in queries]
                    connection.execute("COMMIT")
                return [cursor.fetchall() for cursor in cursors]
            except BaseException:
                self._reader.close()  # it is unknown which statements a failed pipeline prepared
                raise

        try:
            return self._tried(once)
        except self._driver.Error as error:
            if meaning(error) == "poison" and any(query.as_of for query in queries):
                raise ValueError(f"as_of is not of this store: {reason(self._url, error)}") from None
            raise translated(self._url, error) from error

    def wait_for_events(self, timeout_s: float) -> bool:
        """Wait until any engine commits a batch with events.

        Returns:
            Whether new events may exist. False: no notice of a commit came within `timeout_s` seconds.
            True: a notice came, or the connection was just opened, so that earlier notices may be missed.

        Raises:
            StoreUnavailable: the database cannot be reached.
        """
        is_new = not self._listener.is_open
        connection = self._listener.open()
        if is_new:
            return True
        try:
            return bool(list(connection.notifies(timeout=timeout_s, stop_after=1)))
        except self._driver.Error as error:
            self._listener.close()
            raise translated(self._url, error) from error

    def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Record that an engine (`holder`) is alive. See `Backend.attend`.

        If an engine's connection has ended, the engine counts as dead STORE_DEAD_S seconds after its last
        call of `attend`, even if `life_ms` has not passed.
        """

        def once() -> list[str]:
            with self._transaction() as pipe:
                pipe.send(_ATTEND, holder)
                pipe.send(_ATTENDED, holder, now_ms + life_ms)
                living = pipe.send(_LIVING, holder, now_ms, _dead_until_ms(now_ms, life_ms))
                pipe.send(b"DELETE FROM shard_holder WHERE until_ms < $1", now_ms)
            return [name for (name,) in living.fetchall()]

        return self._written(once)

    def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew an engine's shard leases and claim free shards. See `Backend.lease`.

        If another engine's transaction hangs for STORE_STUCK_S seconds and keeps shards with expired leases
        locked, `lease` closes that engine's connection.
        """
        until_ms = now_ms + life_ms

        def once() -> list[Lease]:
            with self._transaction() as pipe:
                held = pipe.send(_RENEW, holder, until_ms)
                pipe.sync()
                count_free = max(0, count - held.rowcount)
                dead_ms = _dead_until_ms(now_ms, life_ms)
                pipe.send(_CLAIM, holder, now_ms, count_free, until_ms, dead_ms)
                mine = pipe.send(_MINE, holder)
                pipe.send(_END_STUCK, holder, now_ms, round(STORE_STUCK_S * 1_000))
            return [Lease(number, epoch) for number, epoch in mine.fetchall()]

        return self._written(once)

    def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Release an engine's shards, so that other engines can claim them. See `Backend.release`."""
        free = b"UPDATE shard SET holder = '', until_ms = 0 WHERE holder = $1"

        def once() -> None:
            with self._transaction() as pipe:
                if shards is None:
                    pipe.send(b"DELETE FROM shard_holder WHERE name = $1", holder)
                    pipe.send(free, holder)
                else:
                    pipe.send(free + b" AND number = ANY($2)", holder, array(IntArray, shards))

        self._written(once)

    def prune(self, before_ms: int, count_max: int) -> int:
        """Delete final orders, old events and expired routes. See `Backend.prune`."""

        def once() -> int:
            # A single snapshot: every statement sees the same orders.
            with self._transaction(b"REPEATABLE READ") as pipe:
                deleted = [pipe.send(sql, before_ms, count_max) for sql in _PRUNES]
            return sum(sent.rowcount for sent in deleted)

        return self._written(once)

    def close(self) -> None:
        """Close all connections; `read` and `wait_for_events` must have returned. See `Backend.close`."""
        for line in (self._writer, self._reader, self._listener):
            line.close()

    # --- A batch ------------------------------------------------------------------------------------

    def _batch(
        self, writer: bytes, batch: int, units: Sequence[Unit], *, one_by_one: bool
    ) -> list[UnitOutcome]:
        """Write a batch of units of changes in a new transaction.

        Args:
            one_by_one: write each unit with statements of its own, so that a faulty unit alone is refused;
                otherwise units share statements, and a faulty unit fails the batch.
        """
        with self._transaction() as pipe:
            # A transaction of this writer that was cut off in COMMIT ends before its row is read.
            pipe.send(b"SELECT pg_advisory_xact_lock($1)", int.from_bytes(writer[:8], "big", signed=True))
            before = pipe.send(b"SELECT batch, outcomes FROM writer WHERE id = $1", writer)
            epochs = self._epochs(pipe, units)
            for last, outcomes_then in before.fetchall():
                if last > batch:
                    raise StoreError(f"batch {batch} is older than the last one applied, {last}")
                if last == batch:
                    return _decode_outcomes(outcomes_then)
            outcomes = self._units(pipe, units, epochs, one_by_one=one_by_one)
            self._remember(pipe, writer, batch, outcomes)
        return outcomes

    def _epochs(self, pipe: Pipe, units: Sequence[Unit]) -> dict[int, int]:
        """Read the current epochs of the units' shards: shard -> epoch, a number that each claim raises.

        The read locks the shards, so that no engine can claim them until the transaction ends.
        """
        shards = sorted({unit.fence.shard for unit in units if unit.fence is not None})
        if not shards:
            pipe.sync()
            return {}
        return dict(pipe.ask(_EPOCHS, array(IntArray, shards)))

    def _units(
        self, pipe: Pipe, units: Sequence[Unit], epochs: dict[int, int], *, one_by_one: bool
    ) -> list[UnitOutcome]:
        work = UnitWriter(pipe, units)
        for number, unit in enumerate(units):
            if unit.fence is not None and epochs.get(unit.fence.shard) != unit.fence.epoch:
                work.outcomes[number] = Fenced(unit.fence.shard)
        numbers = [number for number, outcome in enumerate(work.outcomes) if outcome is None]
        if one_by_one:
            for number in numbers:
                self._write_unit(pipe, work, number)
        else:
            waves = waves_of(units, numbers)
            for wave in waves.waves:
                work.together(wave.together, waves.changed)
                for number in wave.alone:
                    work.alone(number)
        if work.add_events():
            pipe.send(f"NOTIFY {CHANNEL}".encode())
        return work.settled()

    def _write_unit(self, pipe: Pipe, work: UnitWriter, number: int) -> None:
        """Write one unit of changes after setting a savepoint, so that a failure undoes this unit alone."""
        pipe.send(b"SAVEPOINT one")
        pipe.sync()
        try:
            work.alone(number, with_events=True)
            pipe.sync()
        except (self._driver.Error, *_POISON) as error:
            if isinstance(error, self._driver.Error) and meaning(error) != "poison":
                raise
            pipe.abandon()
            pipe.send(b"ROLLBACK TO one")
            work.outcomes[number] = Refused(f"{type(error).__name__}: {reason(self._url, error)}")
        pipe.send(b"RELEASE one")

    def _remember(self, pipe: Pipe, writer: bytes, batch: int, outcomes: list[UnitOutcome]) -> None:
        """Store the batch's outcomes in the batch's own transaction.

        A writer that lost the answer sends the batch again and then gets these outcomes.
        """
        now_ms = self._now_ms()
        pipe.send(_REMEMBER, writer, batch, _encode(outcomes), now_ms)
        if batch == 1:
            pipe.send(b"DELETE FROM writer WHERE at_ms < $1", now_ms - _WRITERS_KEPT_MS)

    @contextmanager
    def _transaction(self, isolation: bytes = b"READ COMMITTED") -> Iterator[Pipe]:
        """Context manager: a transaction on the writer's connection, durable when the block ends."""
        pipe = self._writer.open()
        pipe.send(b"BEGIN ISOLATION LEVEL " + isolation + b" READ WRITE")
        try:
            yield pipe
            pipe.send(b"COMMIT")
            pipe.sync()
        except Exception as error:
            if isinstance(error, self._driver.Error) and meaning(error) == "lost":
                self._writer.close()
                # The others may be sessions of a server that hangs, or that stays behind as a standby.
                self._reader.renew()
                self._listener.renew()
                raise
            try:
                pipe.abandon()
                pipe.send(b"ROLLBACK")
                pipe.sync()
            except self._driver.Error:
                self._writer.close()
            raise
        except BaseException:
            self._writer.close()
            raise

    # --- Trying -------------------------------------------------------------------------------------

    def _written(self, once: Callable[[], T]) -> T:
        """Call `once`, which uses the writer's connection, with retries as in `_tried`; raise database errors
        as StoreUnavailable or StoreError.
        """
        try:
            return self._tried(once)
        except self._driver.Error as error:
            raise translated(self._url, error) from error
        except Vanished:
            raise StoreUnavailable("the database is too busy: rows came and went", retry_after_s=1) from None

    def _tried(self, once: Callable[[], T]) -> T:
        """Call `once`; if the connection is lost or another transaction conflicts, call `once` again, up to
        TRIES calls in all.
        """
        for left in reversed(range(TRIES)):
            try:
                return once()
            except (self._driver.Error, Vanished) as error:
                means = "again" if isinstance(error, Vanished) else meaning(error)
                if not left or means not in ("lost", "again"):
                    raise
        raise AssertionError


def _dead_until_ms(now_ms: int, life_ms: int) -> int:
    """Return the time that separates engines that may be dead from those that live, Unix milliseconds.

    Each call of `attend` stores its time plus `life_ms` as the engine's `until_ms`. An engine whose
    `until_ms` is earlier than the result has not called for STORE_DEAD_S; it is dead if its connection has
    ended, too.
    """
    return now_ms + life_ms - round(STORE_DEAD_S * 1_000)


def _listening(url: str) -> Connection:
    connection = connect(url)
    connection.execute(f"LISTEN {CHANNEL}".encode())
    return connection


def _executed(connection: Connection, query: Query) -> Cursor[tuple[Any, ...]]:
    """Execute a query, with PostgreSQL's placeholders in place of the `?` marks, and return the cursor."""
    numbered = query.sql.replace("%", "%%")
    for number in range(len(query.values)):
        numbered = numbered.replace("?", f"%(v{number})s", 1)
    as_of = "pg_visible_in_snapshot(tx, %(as_of)s::pg_snapshot)" if query.as_of else "TRUE"
    given = {f"v{number}": value for number, value in enumerate(query.values)}
    given |= {"as_of": query.as_of, "after_tx": str(query.after[0]), "after_n": query.after[1]}
    sql = render(Query(numbered, ()), {**_WORDS, "as_of": as_of})
    return connection.execute(sql.encode(), given, binary=True)
