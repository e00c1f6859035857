"""Load test of the durable store beside the database driver alone: the same rows on the same disk, in turn.

    raw sqlite3        the three statements of a submission, 64 submissions per transaction, nothing else
    store, SQLite      64 tasks, each submits again after its answer, through the store process
      busy             the same while another task of the engine computes all the time
    raw unnest         psycopg, the same rows as arrays, as many per transaction as the store had
    pgbench            a transaction for each submission, the best of several numbers of clients
    store, PostgreSQL  64 tasks, as above
    event lag          from a submission until a follower in another task has its event

`python -m bench.load_store [rounds]` prints the table; PostgreSQL's rows need its server programs.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.peers.postgres import PostgresServer, postgres_programs, running_postgres
from bench.store_work import TABLES, order, rows, submission, submissions
from cambist.config.sections.store import StoreSettings
from cambist.config.settings import Settings
from cambist.engine.host.process.clock import WallClock
from cambist.engine.store.follower import START, EventFollower
from cambist.engine.store.postgres.postgres_batch import BoolArray, BytesArray, IntArray, TextArray, form
from cambist.engine.store.postgres.postgres_connection import connect
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.sqlite import sqlite
from cambist.engine.store.sqlite.sqlite import insert
from cambist.engine.store.store import Store

BATCH = 64
SUBMITTERS = (1, BATCH, 1_024)
SECONDS = 3.0
_COMPUTE_S = 0.0005
_PGBENCH_CLIENTS = (8, 16, 32)
_FSYNCS = 200
_MADE = 40_000  # submissions made before a store is timed; it ends when they are used up
_RAW_MADE = 12_000
OF_POSTGRES = frozenset({"store_postgres_raw", "store_postgres_pgbench", "store_event_lag_ms"})


class Row(Struct, frozen=True, kw_only=True):
    """Results of one way to store submissions of orders.

    Attributes:
        rate: submissions per second.
        p50_ms, p99_ms: percentiles of the wait for an answer, of a transaction, or of an event's lag.
        batch: submissions per transaction, on average.
    """

    what: str
    round: int
    rate: float
    p50_ms: float
    p99_ms: float
    batch: float


class Found(Struct, frozen=True):
    """Times and numbers of one run that stores submissions of orders.

    Attributes:
        seconds_each: each single wait.
        seconds: duration of the load.
        submitted: number of submissions.
        transactions: number of transactions that held them.
    """

    seconds_each: list[float]
    seconds: float
    submitted: int
    transactions: int


def run(rounds: int) -> list[Row]:
    """Measure each way to store submissions of orders in turn, `rounds` times."""
    found: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cambist-bench-")))
        server = stack.enter_context(running_postgres()) if postgres_programs() else None
        for number in range(rounds):
            loads = _sqlite_loads(folder)
            for what, measure in loads.items():
                found.append(_row(what, number, measure()))
            if server is not None:
                found += _postgres_round(number, server, folder)
    return found


def _row(what: str, number: int, found: Found) -> Row:
    each = sorted(found.seconds_each)
    return Row(
        what=what,
        round=number,
        rate=found.submitted / found.seconds,
        p50_ms=each[len(each) // 2] * 1e3,
        p99_ms=each[len(each) * 99 // 100] * 1e3,
        batch=found.submitted / found.transactions,
    )


def _sqlite_loads(folder: Path) -> dict[str, Callable[[], Found]]:
    def stored(submitters: int, *, busy: bool = False) -> Callable[[], Found]:
        return lambda: trio.run(_load, "", _new(folder), submitters, busy)

    return {
        "raw sqlite3": lambda: _raw_sqlite(_new(folder) / "raw.sqlite3"),
        **{f"SQLite, {submitters}": stored(submitters) for submitters in SUBMITTERS},
        "SQLite, 64, busy": stored(BATCH, busy=True),
    }


def _postgres_round(number: int, server: PostgresServer, folder: Path) -> list[Row]:
    ours = {
        submitters: _row(
            f"PostgreSQL, {submitters}",
            number,
            trio.run(_load, server.migrated_database(), _new(folder), submitters, False),
        )
        for submitters in SUBMITTERS
    }
    batch = max(1, round(ours[BATCH].batch))
    raw = _row("raw unnest", number, _raw_unnest(server.migrated_database(), batch))
    singles = [
        _row("pgbench", number, _pgbench(server.migrated_database(), clients, _new(folder)))
        for clients in _PGBENCH_CLIENTS
    ]
    lag = _row("event lag", number, trio.run(_event_lag, server.migrated_database(), _new(folder)))
    return [*ours.values(), raw, max(singles, key=lambda row: row.rate), lag]


def _new(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder))


# --- Through the store --------------------------------------------------------------------------------


async def _load(url: str, folder: Path, submitters: int, busy: bool) -> Found:
    each: list[float] = []
    settings = Settings(state_dir=str(folder), store=StoreSettings(url=url))
    made = submissions(_MADE)
    async with open_store(settings, os.environ, folder, WallClock().now_ms) as store:
        await store.write(made.pop())
        before = store.statistics().batcher.batches
        ends = trio.current_time() + SECONDS

        async def submit() -> None:
            while made and trio.current_time() < ends:
                unit = made.pop()
                began = time.perf_counter()
                await store.write(unit)
                each.append(time.perf_counter() - began)

        async def compute() -> None:
            while True:
                until = time.perf_counter() + _COMPUTE_S
                while time.perf_counter() < until:
                    pass
                await trio.lowlevel.checkpoint()

        began = time.perf_counter()
        async with trio.open_nursery() as everything:
            if busy:
                everything.start_soon(compute)
            async with trio.open_nursery() as nursery:
                for _ in range(submitters):
                    nursery.start_soon(submit)
            everything.cancel_scope.cancel()
        seconds = time.perf_counter() - began
        return Found(each, seconds, len(each), store.statistics().batcher.batches - before)


async def _event_lag(url: str, folder: Path) -> Found:
    """Measure the time from the submission of an order until a follower in another task has its event."""
    lags: list[float] = []
    settings = Settings(state_dir=str(folder), store=StoreSettings(url=url))
    async with open_store(settings, os.environ, folder, WallClock().now_ms) as store:
        began = time.perf_counter()
        with trio.move_on_after(SECONDS):
            async with trio.open_nursery() as nursery:
                send, receive = trio.open_memory_channel[bytes](64)
                nursery.start_soon(_follow, store, send)
                while True:
                    new = order()
                    unit = submission(new)
                    at = time.perf_counter()
                    await store.write(unit)
                    while await receive.receive() != new.order_hash:
                        pass
                    lags.append(time.perf_counter() - at)
        return Found(lags, time.perf_counter() - began, len(lags), len(lags))


async def _follow(store: Store, send: trio.MemorySendChannel[bytes]) -> None:
    async for _, event in EventFollower(store, START):
        await send.send(event.order_hash)


# --- The bare drivers ---------------------------------------------------------------------------------


def _raw_sqlite(path: Path) -> Found:
    connection = sqlite.open_for_writing(path)
    sqlite.migrate(connection, lambda: 0)
    statements = [insert(table, unless_there=False) for table in TABLES]
    batches = _batches(BATCH)

    def write(batch: list[list[tuple[object, ...]]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for submitted in zip(*batch, strict=True):
            for statement, row in zip(statements, submitted, strict=True):
                connection.execute(statement, row)
        connection.execute("COMMIT")

    try:
        return _timed(batches, write, BATCH)
    finally:
        connection.close()


def _raw_unnest(url: str, size: int) -> Found:
    connection = connect(url)
    statements = [_over_arrays(table) for table in TABLES]
    batches = _batches(size)

    def write(batch: list[list[tuple[object, ...]]]) -> None:
        with connection.transaction():
            for statement, some in zip(statements, batch, strict=True):
                connection.execute(statement, [list(column) for column in zip(*some, strict=True)])

    try:
        return _timed(batches, write, size)
    finally:
        connection.close()


_CASTS = {BoolArray: "boolean[]", BytesArray: "bytea[]", IntArray: "bigint[]", TextArray: "text[]"}


def _over_arrays(name: str) -> bytes:
    """Return the SQL that inserts rows of a table from arrays of values, as psycopg takes it."""
    kinds = form(name).kinds
    arrays = ", ".join(f"%s::{_CASTS[kind]}" for kind in kinds.values())
    return f"INSERT INTO {name} ({', '.join(kinds)}) SELECT * FROM unnest({arrays})".encode()


def _batches(size: int) -> list[list[list[tuple[object, ...]]]]:
    """Return batches of submissions as rows of plain values, by table."""
    return [[some for _, some in rows(submissions(size))] for _ in range(max(40, _RAW_MADE // size))]


def _timed(
    batches: list[list[list[tuple[object, ...]]]],
    write: Callable[[list[list[tuple[object, ...]]]], None],
    size: int,
) -> Found:
    each = []
    for batch in batches:
        began = time.perf_counter()
        write(batch)
        each.append(time.perf_counter() - began)
    return Found(each, sum(each), len(each) * size, len(each))


_PGBENCH_SCRIPT = """BEGIN;
INSERT INTO delta_order (order_hash, shard, chain_id, owner, nonce, kind, type, side, partner, created_ms,
  expires_s, version, status, updated_ms, spent, received, is_final)
SELECT h, get_byte(h, 0), 1, substr(h, 1, 20), sha256(h), 'Order', 'MARKET', 'SELL', 'anon', 1, 1, 1,
  'PENDING', 1, decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex'), false
FROM (SELECT sha256(uuid_send(gen_random_uuid())) AS h) AS made;
INSERT INTO delta_document (order_hash, body)
SELECT sha256(uuid_send(gen_random_uuid())), decode(repeat('ab', 300), 'hex');
INSERT INTO order_event (surface, order_hash, shard, chain_id, owner, version, status, at_ms, body)
SELECT 'delta', h, 1, 1, substr(h, 1, 20), 1, 'PENDING', 1, ''
FROM (SELECT sha256(uuid_send(gen_random_uuid())) AS h) AS made;
COMMIT;
"""


def _pgbench(url: str, clients: int, folder: Path) -> Found:
    programs = postgres_programs()
    assert programs is not None
    script = folder / "submission.sql"
    script.write_text(_PGBENCH_SCRIPT, encoding="utf-8")
    command = [
        str(programs / "pgbench"),
        "-n",
        "-M",
        "prepared",
        "-f",
        str(script),
        "-T",
        str(round(SECONDS)),
    ]
    command += ["-c", str(clients), "-j", "2", "-l", url]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    each = [
        int(line.split()[2]) / 1e6
        for log in folder.glob("pgbench_log.*")
        for line in log.read_text(encoding="utf-8").splitlines()
    ]
    return Found(each, SECONDS, len(each), len(each))


# --- What it comes to ---------------------------------------------------------------------------------


def metrics(found: list[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round.

    Metrics of PostgreSQL are absent if it was not measured.
    """
    by_round: dict[int, dict[str, Row]] = {}
    for row in found:
        by_round.setdefault(row.round, {})[row.what] = row
    ratios = {
        "store_sqlite_raw": ("SQLite, 64", "raw sqlite3"),
        "store_sqlite_busy": ("SQLite, 64, busy", "SQLite, 64"),
        "store_postgres_raw": ("PostgreSQL, 64", "raw unnest"),
        "store_postgres_pgbench": ("PostgreSQL, 64", "pgbench"),
    }
    measured = {
        metric: Rounds(tuple(by_what[ours].rate / by_what[theirs].rate for by_what in by_round.values()))
        for metric, (ours, theirs) in ratios.items()
        if all(ours in by_what and theirs in by_what for by_what in by_round.values())
    }
    lags = tuple(row.p99_ms for row in found if row.what == "event lag")
    return measured | ({"store_event_lag_ms": Rounds(lags)} if lags else {})


def table(found: list[Row]) -> Table:
    """Make a table of the medians over all rounds, and of the disk's own speed."""
    shown = Table(
        "durable orders",
        "a second",
        "p50 ms",
        "p99 ms",
        "a transaction",
        box=None,
        title=_disk(),
        title_justify="left",
    )
    for what in dict.fromkeys(row.what for row in found):
        mine = [row for row in found if row.what == what]
        shown.add_row(
            what,
            f"{median(row.rate for row in mine):,.0f}",
            f"{median(row.p50_ms for row in mine):.2f}",
            f"{median(row.p99_ms for row in mine):.2f}",
            f"{median(row.batch for row in mine):.1f}",
        )
    return shown


def _disk() -> str:
    with tempfile.NamedTemporaryFile() as file:
        each = []
        for _ in range(_FSYNCS):
            file.write(bytes(4_096))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            each.append(time.perf_counter() - began)
    return f"fdatasync p50 {median(each) * 1e3:.2f} ms; SQLite {sqlite3.sqlite_version}"


if __name__ == "__main__":
    measured_rows = run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    console = Console()
    console.print(table(measured_rows))
    for name, values in metrics(measured_rows).items():
        console.print(
            f"{name}: {median(values.values):.3f} ({' '.join(f'{value:.2f}' for value in values.values)})"
        )
