"""Migrations on both engines: applied once, whole or not at all, and refused where they would be a guess."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, get_args, get_type_hints

import psycopg
import pytest

from cambist.codecs.contracts.abi import selector
from cambist.config.errors import CambistError, ConfigError
from cambist.engine.store.migrate import AppliedMigration, Dialect, Migration, migrations, pending
from cambist.engine.store.operator.export import OTHERS
from cambist.engine.store.postgres import postgres_connection
from cambist.engine.store.rows import IntentCause
from cambist.engine.store.sqlite import sqlite
from cambist.engine.store.tables import CHAIN_INTENT, TABLES, Table
from cambist.engine.store.units import row_of
from support.store.postgres import PostgresServer
from support.store.stores import NOW_MS


@pytest.fixture(autouse=True)
def warm_store() -> None:
    """Every file is migrated step by step."""


DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")
FIRST = Migration(1, "first", "CREATE TABLE one (a text NOT NULL);\nCREATE TABLE two (b text);\n")
SECOND = Migration(2, "second", "INSERT INTO one VALUES ('x');\nALTER TABLE one ADD COLUMN c text;\n")
THIRD = Migration(3, "third", "CREATE TABLE three (d text);\n")
FAILING = Migration(
    2, "failing", "INSERT INTO one VALUES ('x');\nDROP TABLE two;\nINSERT INTO nowhere VALUES (1);\n"
)


class Database(Protocol):
    dialect: Dialect

    def migrate(self) -> list[str]: ...

    def applied(self) -> list[AppliedMigration]: ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...

    def columns(self, table: str) -> list[tuple[str, str, bool]]:
        """(name, type, whether it may be NULL), in order."""
        ...


class SqliteDatabase:
    dialect: Dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path

    def migrate(self) -> list[str]:
        with closing(sqlite.open_for_writing(self._path)) as connection:
            return sqlite.migrate(connection, lambda: NOW_MS)

    def applied(self) -> list[AppliedMigration]:
        with closing(sqlite.open_for_reading(self._path)) as connection:
            return sqlite.applied(connection)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()

    def columns(self, table: str) -> list[tuple[str, str, bool]]:
        keyed = {"key", "tx_hash", "digest", "name"}  # a text or blob key, NOT NULL as well
        return [
            (name, kind.lower(), not required and not key and name not in keyed)
            for _, name, kind, required, _, key in self.rows(f"PRAGMA table_info({table})")
        ]


class PostgresDatabase:
    dialect: Dialect = "postgres"

    def __init__(self, url: str) -> None:
        self._url = url

    def migrate(self) -> list[str]:
        with postgres_connection.connect(self._url) as connection:
            return postgres_connection.migrate(connection, lambda: NOW_MS)

    def applied(self) -> list[AppliedMigration]:
        with postgres_connection.connect(self._url) as connection:
            return postgres_connection.applied(connection)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def columns(self, table: str) -> list[tuple[str, str, bool]]:
        return [
            (name, kind, nullable == "YES")
            for name, kind, nullable in self.rows(
                "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
                f"WHERE table_name = '{table}' ORDER BY ordinal_position"
            )
        ]


@pytest.fixture(params=DIALECTS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty one."""
    if request.param == "sqlite":
        yield SqliteDatabase(tmp_path / "db.sqlite3")
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.empty_database()
        yield PostgresDatabase(url)
        server.drop(url)


Program = Callable[..., None]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """Make this program one that has other migrations."""

    def has(*known: Migration) -> None:
        for module in (sqlite, postgres_connection):
            monkeypatch.setattr(module, "migrations", lambda _: list(known))

    return has


def numbers(database: Database) -> list[int]:
    return [row.number for row in database.applied()]


# --- The files themselves --------------------------------------------------------------------------------


def test_both_dialects_have_the_same_migrations_without_a_gap() -> None:
    names = [[(one.number, one.name) for one in migrations(dialect)] for dialect in DIALECTS]
    assert names[0] == names[1]
    assert [number for number, _ in names[0]] == list(range(1, len(names[0]) + 1))


def test_a_database_is_brought_up_to_date_once(database: Database) -> None:
    expected = [f"{one.number:04}_{one.name}" for one in migrations(database.dialect)]
    assert database.migrate() == expected
    assert [f"{row.number:04}_{row.name}" for row in database.applied()] == expected
    assert database.migrate() == []
    assert database.rows("SELECT DISTINCT applied_ms FROM schema_migration") == [(NOW_MS,)]
    assert database.rows("SELECT count(*), min(number), max(number) FROM shard") == [(256, 0, 255)]


# --- What is refused -------------------------------------------------------------------------------------


def test_what_is_missing_is_applied_in_order(database: Database, program: Program) -> None:
    program(FIRST)
    assert database.migrate() == ["0001_first"]
    program(FIRST, SECOND, THIRD)
    assert database.migrate() == ["0002_second", "0003_third"]
    assert database.rows("SELECT a, c FROM one") == [("x", None)]
    assert database.migrate() == []


def test_a_changed_migration_is_refused(database: Database, program: Program) -> None:
    program(FIRST)
    database.migrate()
    changed = Migration(1, "first", FIRST.sql + "-- a word more\n")
    program(changed, SECOND)
    with pytest.raises(ConfigError) as caught:
        database.migrate()
    assert caught.value.detail == (
        "store: migration 0001 first was applied with another text: the database has "
        f"{FIRST.checksum[:12]}, this program {changed.checksum[:12]}"
    )
    assert numbers(database) == [1]


def test_a_newer_database_is_refused(database: Database, program: Program) -> None:
    program(FIRST, SECOND)
    database.migrate()
    program(FIRST)
    with pytest.raises(ConfigError) as caught:
        database.migrate()
    assert caught.value.detail == (
        "store: the database is newer than this program: it has migration 0002 second; run a newer cambist"
    )


def test_a_number_that_was_left_out_is_refused(database: Database, program: Program) -> None:
    program(FIRST, THIRD)
    database.migrate()
    program(FIRST, SECOND, THIRD)
    with pytest.raises(ConfigError, match=r"^store: migration 0002 second was left out$"):
        database.migrate()
    assert numbers(database) == [1, 3]


def test_a_statement_that_fails_leaves_the_database_as_it_was(database: Database, program: Program) -> None:
    program(FIRST)
    database.migrate()
    program(FIRST, FAILING, THIRD)
    with pytest.raises((CambistError, sqlite3.Error, psycopg.Error), match="nowhere"):
        database.migrate()
    assert numbers(database) == [1]
    assert database.rows("SELECT count(*) FROM one") == [(0,)]
    assert database.rows("SELECT count(*) FROM two") == [(0,)]
    program(FIRST, SECOND, THIRD)
    assert database.migrate() == ["0002_second", "0003_third"]


def test_a_program_that_cannot_migrate_names_the_file_and_closes_it(tmp_path: Path, program: Program) -> None:
    program(Migration(1, "failing", "INSERT INTO nowhere VALUES (1);"))
    path = tmp_path / "db.sqlite3"
    with pytest.raises(
        ConfigError, match=r"store\.url: .*db\.sqlite3 cannot be migrated: no such table: nowhere"
    ):
        sqlite.SqliteBackend(path, lambda: NOW_MS)
    program()
    sqlite.SqliteBackend(path, lambda: NOW_MS).close()


def test_pending_looks_at_numbers_and_not_at_the_order_they_come_in() -> None:
    rows = [AppliedMigration(one.number, one.name, one.checksum) for one in (SECOND, FIRST)]
    assert pending([THIRD, SECOND, FIRST], rows) == [THIRD]


# --- Rows of earlier versions ----------------------------------------------------------------------------

TOO_LATE, GIVEN_UP = "its deadline passed before it was mined", "it was given up before it was mined"
INTENTS = [
    ("WAITING", "", False, None, None),
    ("FINAL", "", True, None, None),
    ("PENDING", TOO_LATE, False, "DEADLINE", None),
    ("CANCELLED", TOO_LATE, False, "DEADLINE", None),
    ("FAILED", GIVEN_UP, False, "GIVEN_UP", None),
    ("REVERTED", "out of gas", True, "OUT_OF_GAS", None),
    ("FAILED", "reverted; the block before it would have taken it", True, "UNEXPLAINED", None),
    ("FAILED", "reverted; asking why failed: no answer in time", True, "UNKNOWN", None),
    ("FAILED", "NonceUsed(nonce 7)", True, "REVERTED", selector("NonceUsed(uint256)")),
    ("FAILED", "TooEarly(notBefore 60)", True, "REVERTED", selector("TooEarly(uint256)")),
    ("FAILED", "PullFailed(token 0x0e)", True, "REVERTED", selector("PullFailed(address)")),
    (
        "FAILED", "InsufficientDeposit(deposited 1)", True, "REVERTED",
        selector("InsufficientDeposit(uint256)"),
    ),
    ("FAILED", "InvalidSignature()", True, "REVERTED", selector("InvalidSignature()")),
    ("FAILED", "OrderExpired()", True, "REVERTED", selector("OrderExpired()")),
    ("FAILED", "Overfilled(left 0)", True, "REVERTED", selector("Overfilled(uint256)")),
    ("FAILED", "NotRelayer()", True, "REVERTED", selector("NotRelayer()")),
    ("FAILED", "Paused()", True, "REVERTED", selector("Paused()")),
    (
        "FAILED", "CapExceeded(token 0x0e, amount 3, left 2)", True, "REVERTED",
        selector("CapExceeded(address,uint256,uint256)"),
    ),
    ("FAILED", "NativeTransferFailed(to 0x0e)", True, "REVERTED", selector("NativeTransferFailed(address)")),
    ("FAILED", "BelowMinimum(received 1, least 2)", True, "REVERTED", None),
    ("FAILED", "nonceused is what the contract said", True, "REVERTED", None),
    ("PENDING", "invalid transaction: a node does not like it", False, "REFUSED", None),
    ("FAILED", "gas limit out of bounds", False, "REFUSED", None),
    ("FAILED", "0x0e is not on this key's list", False, "FORBIDDEN", None),
]  # fmt: skip
"""State, reason and whether it was mined, as the version before kept them -> cause and error."""


def test_stored_intents_get_the_cause_that_their_words_tell(database: Database, program: Program) -> None:
    known = migrations(database.dialect)
    program(*[one for one in known if one.number < 10])
    database.migrate()
    mark = "X'{}'" if database.dialect == "sqlite" else "'\\x{}'::bytea"
    word = mark.format(bytes(32).hex())
    for number, (state, reason, is_mined, cause, _) in enumerate(INTENTS):
        key, mined = f"{number:03}", word if is_mined else "NULL"
        told = reason.replace("'", "''")
        database.rows(
            f"INSERT INTO chain_intent VALUES ('{key}', 1, {word}, {word}, {word}, {word}, 21000, 9, 1, 1, "
            f"'{state}', '{told}', {mined}, NULL, NULL, 1)"
        )
        if is_mined or cause == "REFUSED":
            tx = mark.format(number.to_bytes(32, "big").hex())
            database.rows(
                f"INSERT INTO chain_tx VALUES ({tx}, 1, {word}, {number}, {word}, {word}, '{key}', NULL, "
                "1, 1, 'FAILED', 1, NULL, NULL)"
            )
    program(*known)
    assert database.migrate()[0] == "0010_intent_causes"
    rows = database.rows("SELECT state, reason, cause, error4 FROM chain_intent ORDER BY effect_key")
    assert rows == [(state, reason, cause, error4) for state, reason, _, cause, error4 in INTENTS]
    intents = [row_of(CHAIN_INTENT, row) for row in database.rows("SELECT * FROM chain_intent")]
    assert {intent.cause for intent in intents} == {None, *IntentCause}


# --- The tables are those of the program -----------------------------------------------------------------


@pytest.fixture(params=DIALECTS, scope="module")
def migrated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Database with this program's tables, for reading only."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("store") / "db.sqlite3"
        sqlite.SqliteBackend(path, lambda: NOW_MS).close()
        yield SqliteDatabase(path)
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.migrated_database()
        yield PostgresDatabase(url)
        server.drop(url)


FILLED_IN = {"seq", "n", "tx"}
"""Columns that the database fills in."""

TYPES: dict[Dialect, dict[type, str]] = {
    "sqlite": {bytes: "blob", int: "integer", bool: "integer", str: "text"},
    "postgres": {bytes: "bytea", int: "bigint", bool: "boolean", str: "text"},
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_columns_are_the_fields_of_the_row(migrated: Database, table: Table) -> None:
    columns = [column for column in migrated.columns(table.name) if column[0] not in FILLED_IN]
    assert [name for name, _, _ in columns] == list(table.columns)
    if migrated.dialect == "sqlite" and table.name.endswith("_document"):
        return  # a view, whose columns have no constraints of their own
    hints = get_type_hints(table.row)
    for name, kind, nullable in columns:
        members = [member for member in get_args(hints[name]) or (hints[name],) if member is not type(None)]
        base = next(base for base in (bytes, bool, int, str) if issubclass(members[0], base))
        assert (kind, nullable) == (TYPES[migrated.dialect][base], type(None) in get_args(hints[name])), name


def test_every_table_of_the_database_is_known(migrated: Database) -> None:
    """The export needs every table."""
    if migrated.dialect == "sqlite":
        found = migrated.rows("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        inner = {"sqlite_sequence", "delta_body", "otc_body"}  # the documents' views show the bodies
    else:
        found = migrated.rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        )
        inner = set()
    assert {name for (name,) in found} - inner == {*TABLES, *OTHERS}
    for name, columns in OTHERS.items():
        assert [column for column, _, _ in migrated.columns(name)] == list(columns)
