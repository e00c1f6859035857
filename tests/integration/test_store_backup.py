"""Backup and export of a store that is being written: of one moment, whole or not there, good to restore."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import astuple

from cambist.config.errors import ConfigError, StoreError
from cambist.engine.cli import cli
from cambist.engine.store.backend import Backend
from cambist.engine.store.migrate import migrations
from cambist.engine.store.operator.backup import back_up
from cambist.engine.store.operator.export import export_lines
from cambist.engine.store.operator.upkeep import upkeep_of
from cambist.engine.store.postgres.postgres import PostgresBackend
from cambist.engine.store.process.file_lock import locked
from cambist.engine.store.process.place import PostgresPlace, SqlitePlace
from cambist.engine.store.rows import amount32
from cambist.engine.store.sqlite.sqlite import SqliteBackend
from cambist.engine.store.tables import TABLES, Table
from cambist.engine.store.units import DONE, Put, Unit
from cambist.engine.trade.orders.order_units import DELTA
from support.patience import PATIENCE_S
from support.store.postgres import PostgresServer
from support.store.stores import NOW_MS, a_delta_order

SCHEMA = len(migrations("sqlite"))

WRITER = b"w" * 16
DOCUMENT = b"d" * 4_000
ADDRESSES = {"owner", "maker", "taker", "taker_from_meta", "maker_asset", "taker_asset", "address", "sender"}
BIG = 2**255 + 12_345


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "cambist.sqlite3"


def opened(path: Path) -> SqliteBackend:
    return SqliteBackend(path, lambda: NOW_MS)


def orders(numbers: range) -> list[Unit]:
    return [DELTA.submitted(a_delta_order(number), DOCUMENT) for number in numbers]


def fill(backend: Backend, count: int, batch: int = 1) -> None:
    assert set(backend.apply(WRITER, batch, orders(range(count)))) == {DONE}


def lines_of(place: Path | str) -> list[dict[str, Any]]:
    upkeep = upkeep_of(SqlitePlace(place) if isinstance(place, Path) else PostgresPlace(place))
    with upkeep.snapshot() as snapshot:
        return [json.loads(line) for line in export_lines(snapshot)]


def rows_of(lines: Sequence[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    return [line["row"] for line in lines if line.get("table") == table]


def contents(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines that units wrote."""
    return [line for line in lines if line.get("table") in TABLES]


def command(*arguments: str | Path, **environ: str) -> Result:
    given = {"CAMBIST_CONFIG": "", **environ}
    return CliRunner().invoke(cli, ["db", *map(str, arguments)], env=given)


# --- While it is written ---------------------------------------------------------------------------------


class Writing:
    """A store process's part, in a thread: the thread holds the lock and writes order after order."""

    def __init__(self, path: Path, first: int) -> None:
        self.acknowledged = 0
        self._path = path
        self._first = first
        self._stop = threading.Event()
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, count: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: self.acknowledged >= count, timeout=PATIENCE_S)

    def _run(self) -> None:
        with locked(self._path, 0), closing(opened(self._path)) as backend:
            number = self._first
            while not self._stop.is_set():
                units = orders(range(number, number + 1))
                assert backend.apply(b"t" * 16, number, units) == [DONE]
                number += 1
                with self._more:
                    self.acknowledged += 1
                    self._more.notify_all()


KEPT = 3_000


@pytest.mark.parametrize("what", ["backup", "export"])
def test_a_copy_is_of_one_moment_while_writes_go_on(tmp_path: Path, path: Path, what: str) -> None:
    with closing(opened(path)) as backend:
        fill(backend, KEPT)
    out = tmp_path / "copy"
    with Writing(path, KEPT) as writing:
        writing.wait_for(5)
        before = writing.acknowledged
        done = subprocess.run(
            [sys.executable, "-m", "cambist", "db", what, out],
            env=os.environ | {"CAMBIST__STORE__URL": f"sqlite:{path}", "CAMBIST_CONFIG": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        after = writing.acknowledged
        writing.wait_for(after + 5)
    assert after > before + 1, "writes went on"
    lines = lines_of(out) if what == "backup" else [json.loads(line) for line in out.read_text().splitlines()]
    kept = rows_of(lines, "delta_order")
    assert KEPT + before <= len(kept) <= KEPT + after
    expected = [f"0x{a_delta_order(number).order_hash.hex()}" for number in range(len(kept))]
    assert [row["order_hash"] for row in kept] == expected
    assert [row["order_hash"] for row in rows_of(lines, "order_event")] == expected
    assert len(rows_of(lines, "delta_document")) == len(kept)
    assert list(tmp_path.glob(".*")) == [], "nothing is left beside"


# --- Backup and restore ----------------------------------------------------------------------------------


def test_a_restored_backup_holds_the_same_and_goes_on(tmp_path: Path, path: Path) -> None:
    out = tmp_path / "backup.sqlite3"
    with closing(opened(path)) as backend:
        fill(backend, 20)
        backend.lease("engine", 256, NOW_MS, 1_000)
        before = lines_of(path)
        assert command("backup", out, CAMBIST__STORE__URL=f"sqlite:{path}").exit_code == 0
        backend.apply(WRITER, 2, orders(range(20, 30)))
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["backup.sqlite3"], "one file"
    for file in path.parent.iterdir():
        file.unlink()
    shutil.copy(out, path)
    with closing(opened(path)) as backend:
        assert lines_of(path) == before
        assert set(backend.apply(WRITER, 2, orders(range(20, 30)))) == {DONE}
        (lease, *_) = backend.lease("another", 256, NOW_MS + 2_000, 1_000)
        assert lease.epoch == 2
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_backup_of_a_damaged_database_is_not_kept(tmp_path: Path, path: Path) -> None:
    with closing(opened(path)) as backend:
        fill(backend, 50)
        (page,) = backend._connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'delta_order_hash'"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4_096)
        file.write(os.urandom(4_096))
    out = tmp_path / "backup.sqlite3"
    out.write_text("the one of yesterday")
    with pytest.raises(StoreError, match="is damaged: "):
        back_up(path, out, force=True)
    assert out.read_text() == "the one of yesterday"
    assert list(tmp_path.glob(".*")) == []


def test_a_backup_to_a_full_disk_leaves_nothing(tmp_path: Path, path: Path) -> None:
    with closing(opened(path)) as backend:
        fill(backend, 50)
    with (
        files_bounded(64 << 10),
        pytest.raises(StoreError, match=r"could not be copied to .*backup\.sqlite3: "),
    ):
        back_up(path, tmp_path / "backup.sqlite3", force=False)
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_what_is_no_store_is_not_backed_up(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(ConfigError, match="is no store of cambist"):
        back_up(other, tmp_path / "backup", force=False)
    with pytest.raises(ConfigError, match="does not exist"):
        back_up(tmp_path / "nothing", tmp_path / "backup", force=False)
    (tmp_path / "text").write_text("no database")
    with pytest.raises(StoreError, match="file is not a database"):
        back_up(tmp_path / "text", tmp_path / "backup", force=False)
    assert not (tmp_path / "backup").exists()


# --- Export ----------------------------------------------------------------------------------------------


def a_row(table: Table, number: int) -> Any:
    """A row with something in every column, that no other number has."""

    def value(name: str, kind: Any) -> Any:
        kind = next((member for member in get_args(kind) if member is not type(None)), kind)
        if name in table.amounts:
            return amount32(BIG + number)
        if kind is bytes:
            size = 4 if name == "selector4" else 20 if name in ADDRESSES else 32
            return (number + 1).to_bytes(size, "big")
        if issubclass(kind, StrEnum):
            return next(iter(kind))
        return number % 2 == 0 if kind is bool else kind(number)

    return table.row(*(value(name, kind) for name, kind in get_type_hints(table.row).items()))


def rows_everywhere(backend: Backend) -> None:
    """Rows of every table, not in the order of their keys."""
    for batch, number in enumerate((3, 1, 2, 0), 1):
        unit = Unit(tuple(Put(table.name, a_row(table, number)) for table in TABLES.values()))
        assert backend.apply(WRITER, batch, [unit]) == [DONE]


def test_every_column_of_raw_units_or_wei_holds_amounts() -> None:
    assert {name: set(table.amounts) for name, table in TABLES.items() if table.amounts} == {
        "delta_order": {"spent", "received"},
        "delta_fill": {"spent", "received", "filled"},
        "delta_refund": {"amount", "taken"},
        "bridge_transfer": {"amount", "output"},
        "bridge_end": {"amount"},
        "otc_order": {"maker_amount", "taker_amount", "remaining", "maker_balance", "reserved", "swappable"},
        "otc_fill": {"maker_amount", "taker_amount"},
        "chain_tx": {"fee_max_wei"},
        "chain_intent": {"value_wei"},
    }


def test_the_export_has_every_row_of_every_table(path: Path) -> None:
    with closing(opened(path)) as backend:
        rows_everywhere(backend)
    lines = lines_of(path)
    assert lines[0] == {"cambist_export": 1, "schema": SCHEMA, "dialect": "sqlite"}
    assert lines[-1] == {"rows": len(lines) - 2}
    for name, table in TABLES.items():
        rows = rows_of(lines, name)
        numbers = [3, 1, 2, 0] if name in ("delta_order", "otc_order", "order_event") else [0, 1, 2, 3]
        for row, number in zip(rows, numbers, strict=True):
            assert list(row) == list(table.columns)
            for column, kept in zip(table.columns, astuple(a_row(table, number)), strict=True):
                expected = kept
                if column in table.amounts:
                    expected = str(BIG + number)
                elif isinstance(kept, bytes):
                    expected = f"0x{kept.hex()}"
                assert row[column] == expected, f"{name}.{column}"
                assert isinstance(row[column], bool) == isinstance(expected, bool)


def test_both_dialects_export_the_same(path: Path, postgres_url: str) -> None:
    with closing(opened(path)) as one, closing(PostgresBackend(postgres_url, lambda: NOW_MS)) as other:
        for backend in (one, other):
            rows_everywhere(backend)
            fill(backend, 1_500, batch=10)
        ours, theirs = lines_of(path), lines_of(postgres_url)
    assert theirs[0] == {"cambist_export": 1, "schema": SCHEMA, "dialect": "postgres"}
    assert contents(ours) == contents(theirs)
    assert rows_of(ours, "shard") == rows_of(theirs, "shard")
    assert theirs[-1] == {"rows": len(theirs) - 2}


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_an_export_holds_few_rows_in_memory(request: pytest.FixtureRequest, path: Path, dialect: str) -> None:
    backend: Backend
    if dialect == "sqlite":
        place: SqlitePlace | PostgresPlace = SqlitePlace(path)
        backend = opened(path)
    else:
        url = request.getfixturevalue("postgres_url")
        place, backend = PostgresPlace(url), PostgresBackend(url, lambda: NOW_MS)
    with closing(backend):
        fill(backend, KEPT)
    with upkeep_of(place).snapshot() as snapshot:
        tracemalloc.start()
        try:
            written = sum(map(len, export_lines(snapshot)))
            _, most_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert written > KEPT * 2 * len(DOCUMENT)
    assert most_bytes < written / 4


def test_an_export_that_fails_leaves_what_was_there(tmp_path: Path, path: Path) -> None:
    with closing(opened(path)) as backend:
        fill(backend, 50)
    out = tmp_path / "out.ndjson"
    out.write_text("the one of yesterday")
    with files_bounded(64 << 10):
        failed = command("export", out, "--force", CAMBIST__STORE__URL=f"sqlite:{path}")
    assert (failed.exit_code, failed.stderr) == (1, f"Error: {out}: cannot be written: File too large\n")
    assert out.read_text() == "the one of yesterday"
    assert list(tmp_path.glob(".*")) == []


@contextmanager
def files_bounded(most_bytes: int) -> Iterator[None]:
    """No file of this process grows beyond it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- The commands on PostgreSQL --------------------------------------------------------------------------


@pytest.fixture
def on_postgres(postgres_server: PostgresServer) -> Iterator[Callable[..., Result]]:
    """Run a command on an empty database."""
    url = postgres_server.empty_database()
    yield lambda *arguments: command(*arguments, CAMBIST__STORE__URL=url)
    postgres_server.drop(url)


def test_the_commands_work_on_postgresql(tmp_path: Path, on_postgres: Callable[..., Result]) -> None:
    names = [f"{one.number:04}_{one.name}" for one in migrations("postgres")]
    checked = on_postgres("migrate", "--check")
    assert (checked.exit_code, checked.stdout) == (
        1,
        "".join(f"to be applied: {name}\n" for name in names),
    )
    empty = json.loads(on_postgres("status", "--json").stdout)
    assert (empty["schema"]["pending"], empty["contents"]) == (names, None)
    refused = on_postgres("export")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == "Error: store: the database lacks migrations; run cambist db migrate\n"

    assert on_postgres("migrate").stdout == "".join(f"applied {name}\n" for name in names)
    assert on_postgres("migrate", "--check").stdout == "nothing to apply\n"
    status = json.loads(on_postgres("status", "--json").stdout)
    assert status["dialect"] == "postgres"
    assert status["database"].startswith("postgresql://127.0.0.1:")
    assert status["size_bytes"] > 0
    assert status["fdatasync_p50_ms"] is None
    assert status["contents"]["holders"] == [{"holder": "", "shards": 256, "epoch_max": 0, "until_ms": 0}]
    vacuumed = on_postgres("vacuum")
    assert (vacuumed.exit_code, vacuumed.stderr) == (0, "")
    exported = on_postgres("export", tmp_path / "out.ndjson")
    assert exported.exit_code == 0
    assert json.loads((tmp_path / "out.ndjson").read_text().splitlines()[-1]) == {"rows": 256 + SCHEMA}
    backup = on_postgres("backup", tmp_path / "backup")
    assert backup.exit_code == 1
    assert "is backed up with pg_dump" in backup.stderr
    assert not (tmp_path / "backup").exists()


def test_a_server_that_is_away_is_named_without_the_password(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    for url in (
        postgres_server.url("nowhere").replace("postgres@", "postgres:sesame@"),
        "postgresql://me:sesame@127.0.0.1:1/db",
    ):
        failed = command("status", CAMBIST__STORE__URL="env:STORE_URL", STORE_URL=url)
        assert failed.exit_code == 1
        assert failed.stderr.startswith("Error: the database cannot be used: ")
        assert failed.stderr.count("\n") == 1
        assert "sesame" not in failed.output
