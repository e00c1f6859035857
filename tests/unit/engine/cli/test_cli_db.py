"""`cambist db` on SQLite: what each command says and does, and what it refuses."""

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from cambist.config.errors import ConfigError
from cambist.config.settings import Settings, parse_settings
from cambist.engine.cli import cli
from cambist.engine.store.migrate import AppliedMigration, Migration, migrations
from cambist.engine.store.operator.status import Schema, fdatasync_p50_ms, schema_of
from cambist.engine.store.process.file_lock import locked
from cambist.engine.store.process.place import PostgresPlace, SqlitePlace, place_of
from cambist.engine.store.rows import NEVER_S, Effect, amount32
from cambist.engine.store.sqlite.sqlite import SqliteBackend
from cambist.engine.store.tables import TABLES
from cambist.engine.store.units import DONE, Put, Unit
from cambist.engine.trade.orders.order_units import DELTA, OTC, Intent, finished
from support.store.stores import NOW_MS, ONE, a_delta_order, an_otc_order, submission

MIGRATIONS = [f"{one.number:04}_{one.name}" for one in migrations("sqlite")]


class Folder:
    """A settings file and what lies beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "venue.toml"
        self.config.write_text('state_dir = "state"\n')
        self.database = folder / "state" / "cambist.sqlite3"

    def run(self, *arguments: str | Path, **environ: str) -> Result:
        name, *others = map(str, arguments)
        return CliRunner().invoke(
            cli, ["db", name, "--config", str(self.config), *others], env={"CAMBIST_CONFIG": "", **environ}
        )

    def said(self, *arguments: str | Path, **environ: str) -> str:
        result = self.run(*arguments, **environ)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    def refused(self, *arguments: str | Path, **environ: str) -> str:
        result = self.run(*arguments, **environ)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("Error: ").strip()

    def opened(self) -> SqliteBackend:
        return SqliteBackend(self.database, lambda: NOW_MS)

    def write(self, *units: Unit) -> None:
        with closing(self.opened()) as backend:
            writer = len(units).to_bytes(16, "big")
            assert set(backend.apply(writer, 1, units)) == {DONE}

    def sql(self, statement: str) -> None:
        with closing(sqlite3.connect(self.database, isolation_level=None)) as connection:
            connection.execute(statement)


@pytest.fixture
def here(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# --- migrate ---------------------------------------------------------------------------------------------


def test_migrate_makes_the_database_and_names_what_it_applied(here: Folder) -> None:
    checked = here.run("migrate", "--check")
    assert (checked.exit_code, checked.stderr) == (1, "")
    assert checked.stdout.splitlines() == [f"to be applied: {name}" for name in MIGRATIONS]
    assert not here.database.parent.exists(), "a check makes nothing"
    assert here.said("migrate").splitlines() == [f"applied {name}" for name in MIGRATIONS]
    assert here.said("migrate") == "nothing to apply\n"
    assert here.said("migrate", "--check") == "nothing to apply\n"
    here.opened().close()


def test_migrate_is_refused_beside_a_running_store_unless_there_is_nothing_to_do(here: Folder) -> None:
    with locked(here.database, 0):
        assert "is locked" in here.refused("migrate")
    here.said("migrate")
    with locked(here.database, 0):
        assert here.said("migrate") == "nothing to apply\n"


@pytest.mark.parametrize("name", ["migrate", "export"])
def test_tables_of_another_program_are_refused(here: Folder, name: str) -> None:
    here.said("migrate")
    here.sql("UPDATE schema_migration SET checksum = 'ffffffffffffffff' WHERE number = 1")
    assert "was applied with another text: the database has ffffffffffff" in here.refused(name)
    here.sql("UPDATE schema_migration SET number = 9999, name = 'later' WHERE number = 1")
    assert "the database is newer than this program: it has migration 9999 later" in here.refused(name)


# --- status ----------------------------------------------------------------------------------------------


def filled(here: Folder) -> None:
    """Two open Delta orders of three, one open OTC order; an effect to be done of two; held shards."""
    final = replace(a_delta_order(3), is_final=True)
    done = submission(a_delta_order(2), Intent("swap"))
    effect = next(
        change.row for change in done.changes if isinstance(change, Put) and isinstance(change.row, Effect)
    )
    here.write(
        submission(a_delta_order(1), Intent("swap", b"x")),
        done,
        submission(final),
        submission(an_otc_order(4)),
        Unit((finished(effect, NOW_MS),)),
    )
    with closing(here.opened()) as backend:
        backend.lease("engine-1", 200, NOW_MS, 10_000)
        backend.lease("engine-2", 56, NOW_MS, 20_000)
        backend.release("engine-2")


def test_status_says_what_the_store_holds(here: Folder) -> None:
    filled(here)
    status: dict[str, Any] = json.loads(here.said("status", "--json"))
    assert status["database"] == str(here.database)
    assert status["dialect"] == "sqlite"
    files = [here.database, here.database.with_name("cambist.sqlite3-wal")]
    assert status["size_bytes"] == sum(file.stat().st_size for file in files if file.exists())
    assert status["schema"] == {"applied": MIGRATIONS, "pending": [], "unknown": [], "changed": []}
    assert 0 < status["fdatasync_p50_ms"] < 10_000
    contents = status["contents"]
    assert contents["open_orders"] == {"delta": 2, "otc": 1}
    assert contents["unfinished_effects"] == 1
    assert contents["oldest_event_ms"] == NOW_MS + 1
    counts = dict.fromkeys(TABLES, 0)
    counts |= {"delta_order": 3, "delta_document": 3, "otc_order": 1, "otc_document": 1}
    assert contents["rows"] == counts | {"order_event": 4, "effect": 2}
    free = {"holder": "", "shards": 56, "epoch_max": 1, "until_ms": 0}
    held = {"holder": "engine-1", "shards": 200, "epoch_max": 1, "until_ms": 0}
    assert contents["holders"] == [free, held]


def test_status_is_readable(here: Folder) -> None:
    filled(here)
    lines = here.said("status").splitlines()
    assert lines[0] == f"database            {here.database}"
    assert f"migrations          {', '.join(MIGRATIONS)}" in lines
    assert "open orders         2 delta, 1 otc" in lines
    assert "unfinished effects  1" in lines
    assert "oldest event        2023-11-14T22:13:20Z" in lines
    assert "shards              56 by nobody" in lines
    assert "shards              200 by engine-1" in lines
    (row,) = (line for line in lines if "delta_order" in line)
    assert row.replace("│", " ").split() == ["delta_order", "3"]
    assert any(line.startswith("fdatasync p50       ") and line.endswith(" ms") for line in lines)


def test_status_of_an_empty_store(here: Folder) -> None:
    here.said("migrate")
    lines = here.said("status").splitlines()
    assert "oldest event        none" in lines
    assert "shards              256 by nobody" in lines


def test_status_says_what_is_wrong_with_the_tables(here: Folder) -> None:
    here.said("migrate")
    here.sql("INSERT INTO schema_migration VALUES (9999, 'later', 'x', 0)")
    here.sql("UPDATE schema_migration SET checksum = 'x' WHERE number = 1")
    lines = here.said("status").splitlines()
    assert "unknown             9999_later" in lines
    assert "changed             0001_initial" in lines
    assert json.loads(here.said("status", "--json"))["contents"] is None


def test_a_schema_is_compared_by_number_and_text() -> None:
    known = [Migration(number, "m", f"-- {number}") for number in (1, 2, 3)]
    there = [
        AppliedMigration(1, "m", known[0].checksum),
        AppliedMigration(2, "m", "other"),
        AppliedMigration(4, "later", "x"),
    ]
    schema = schema_of(known, there)
    assert schema == Schema(("0001_m", "0002_m", "0004_later"), ("0003_m",), ("0004_later",), ("0002_m",))
    assert not schema.is_right
    assert schema_of(known, [AppliedMigration(one.number, one.name, one.checksum) for one in known]).is_right


def test_a_disk_that_cannot_be_written_is_not_measured(tmp_path: Path) -> None:
    assert fdatasync_p50_ms(tmp_path / "nowhere") is None
    assert fdatasync_p50_ms(Path("/proc")) is None


def test_status_changes_nothing(here: Folder) -> None:
    filled(here)
    before = here.database.read_bytes()
    with locked(here.database, 0):
        here.said("status")
        here.said("export")
    assert here.database.read_bytes() == before


# --- vacuum ----------------------------------------------------------------------------------------------


def test_vacuum_gives_the_space_of_deleted_rows_back(here: Folder) -> None:
    orders = [replace(a_delta_order(number), is_final=True) for number in range(200)]
    here.write(*(DELTA.submitted(order, bytes(4_000)) for order in orders))
    with closing(here.opened()) as backend:
        assert backend.prune(NOW_MS * 2, 1_000) > 0
    before = here.database.stat().st_size
    assert before > 800_000
    said = here.said("vacuum")
    after = here.database.stat().st_size
    assert after < before / 2
    assert said == f"{before / 1e6:.1f} MB before, {after / 1e3:.1f} kB now\n"
    here.opened().close()


def test_vacuum_is_refused_beside_a_running_store(here: Folder) -> None:
    filled(here)
    with locked(here.database, 0):
        assert "is locked" in here.refused("vacuum")
    here.said("vacuum")


# --- export, backup --------------------------------------------------------------------------------------


def test_export_writes_amounts_hexadecimal_and_flags(here: Folder) -> None:
    order = replace(
        a_delta_order(1), spent=amount32(2**256 - 1), received=amount32(ONE), expires_s=NEVER_S, is_final=True
    )
    here.write(DELTA.submitted(order, b"\x00\xff"), OTC.submitted(an_otc_order(2), b""))
    lines = [json.loads(line) for line in here.said("export").splitlines()]
    assert lines[0] == {"cambist_export": 1, "schema": len(MIGRATIONS), "dialect": "sqlite"}
    assert lines[-1] == {"rows": len(lines) - 2}
    rows: dict[str, Any] = {line["table"]: line["row"] for line in lines[1:-1]}
    kept = rows["delta_order"]
    assert kept["order_hash"] == f"0x{order.order_hash.hex()}"
    assert kept["owner"] == "0x" + "a1" * 20
    assert (kept["spent"], kept["received"]) == (str(2**256 - 1), "1000000000000000000")
    assert (kept["expires_s"], kept["is_final"], kept["status"]) == (2**63 - 1, True, "PENDING")
    assert rows["delta_document"] == {"order_hash": kept["order_hash"], "body": "0x00ff"}
    assert rows["otc_order"]["transaction_hash"] is None
    assert rows["otc_order"]["maker_amount"] == "1000000000000000000"


def test_export_to_a_file_is_what_goes_to_standard_output(here: Folder) -> None:
    filled(here)
    out = here.folder / "out.ndjson"
    said = here.said("export", out)
    assert said.startswith(f"{out}: ")
    assert out.read_text() == here.said("export") == here.said("export", "-")


@pytest.mark.parametrize("name", ["export", "backup"])
def test_a_file_is_replaced_only_by_force(here: Folder, name: str) -> None:
    filled(here)
    out = here.folder / "out"
    out.write_text("mine")
    assert here.refused(name, out) == f"{out}: exists; --force replaces it"
    assert out.read_text() == "mine"
    here.said(name, out, "--force")
    assert out.stat().st_size > 1_000
    assert [path.name for path in here.folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("name", ["export", "backup"])
def test_a_folder_that_is_not_there_is_named(here: Folder, name: str) -> None:
    filled(here)
    out = here.folder / "nowhere" / "out"
    assert here.refused(name, out) == f"{out}: cannot be written: No such file or directory"


@pytest.mark.parametrize("name", ["backup", "export"])
@pytest.mark.parametrize("file", ["", "-wal", "-shm", ".lock", " link"])
def test_no_file_of_the_database_is_replaced_whatever_is_forced(here: Folder, name: str, file: str) -> None:
    here.said("migrate")
    before = here.database.read_bytes()
    out = here.database.with_name(here.database.name + file)
    if file == " link":
        out.symlink_to(here.database)
        here.config.write_text(f'[store]\nurl = "sqlite:{out}"\n')
    said = here.refused(name, "--force", here.database.parent / ".." / "state" / out.name)
    assert said.endswith(f"{out.name}: is a file of the database itself")
    assert here.database.read_bytes() == before
    assert out.is_symlink() == (file == " link")


def test_a_backup_says_that_it_was_checked(here: Folder) -> None:
    filled(here)
    out = here.folder / "backup.sqlite3"
    assert here.said("backup", out) == f"{out}: {out.stat().st_size / 1_000:,.1f} kB, checked\n"
    assert stat.S_ISREG(out.stat().st_mode)


def test_a_backup_of_postgresql_is_pg_dumps(here: Folder) -> None:
    said = here.refused(
        "backup", "out", CAMBIST__STORE__URL="postgresql://me@db.example/venue?password=sesame"
    )
    assert said == (
        "store.url: postgresql://db.example/venue is backed up with pg_dump, or the server's own archive"
    )


# --- Refusals of every command ---------------------------------------------------------------------------

COMMANDS = (("status",), ("vacuum",), ("export",), ("backup", "out"))


@pytest.mark.parametrize("arguments", COMMANDS, ids=[arguments[0] for arguments in COMMANDS])
def test_a_database_that_is_not_there_is_not_made(here: Folder, arguments: tuple[str, ...]) -> None:
    assert here.refused(*arguments).startswith(f"store.url: {here.database} does not exist")
    assert not here.database.exists()
    assert not (here.folder / "out").exists()


@pytest.mark.parametrize("arguments", [*COMMANDS, ("migrate",)], ids=lambda arguments: arguments[0])
def test_a_file_that_is_no_database_is_refused(
    here: Folder, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here.folder)
    here.database.parent.mkdir()
    here.database.write_text("no database at all\n" * 100)
    said = here.refused(*arguments)
    assert "file is not a database" in said
    assert str(here.database) in said
    assert here.database.read_text() == "no database at all\n" * 100


@pytest.mark.parametrize("arguments", [*COMMANDS, ("migrate",)], ids=lambda arguments: arguments[0])
def test_a_folder_is_no_database(
    here: Folder, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here.folder)
    here.database.mkdir(parents=True)
    assert here.refused(*arguments) == f"store.url: {here.database} is a folder, expected a file"
    assert not list(here.database.iterdir())
    assert not here.database.with_name(f"{here.database.name}.lock").exists()


@pytest.mark.parametrize("arguments", [*COMMANDS, ("migrate",)], ids=lambda arguments: arguments[0])
def test_a_file_that_may_not_be_looked_at_is_named(here: Folder, arguments: tuple[str, ...]) -> None:
    name = "x" * 300
    here.config.write_text(f'[store]\nurl = "sqlite:{name}"\n')
    assert here.refused(*arguments) == f"store.url: {here.folder / name} cannot be opened: File name too long"


@pytest.mark.parametrize("arguments", [["backup"], ["export", "a", "b"], ["status", "--yaml"], ["import"]])
def test_wrong_usage_is_status_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, ["db", *arguments]).exit_code == 2


def test_settings_that_are_wrong_are_named(here: Folder) -> None:
    here.config.write_text('[store]\nurl = "mysql://x"\n')
    assert here.refused("status").startswith("store: url is postgresql://...")


# --- Choice of the database ------------------------------------------------------------------------------


def settings(url: str) -> Settings:
    return parse_settings(f'state_dir = "state"\n[store]\nurl = "{url}"\n', {}, Path())


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("", "/etc/venue/state/cambist.sqlite3"),
        ("sqlite:orders.db", "/etc/venue/orders.db"),
        ("sqlite:/srv/orders.db", "/srv/orders.db"),
        ("env:URL", "/etc/venue/named.db"),
    ],
)
def test_paths_start_from_the_settings_file(url: str, path: str) -> None:
    place = place_of(settings(url), {"URL": "sqlite:named.db"}, Path("/etc/venue"))
    assert place == SqlitePlace(Path(path))
    assert str(place) == path


def test_a_password_is_not_shown() -> None:
    url = "postgresql://me:sesame@db.example:5433/venue?sslpassword=sesame"
    place = place_of(settings("env:URL"), {"URL": url}, Path())
    assert place == PostgresPlace(url)
    assert "sesame" not in f"{place} {place!r}"
    assert str(place) == "postgresql://db.example:5433/venue"


@pytest.mark.parametrize("text", ["mysql://x", "sesame", "postgresql://[x"])
def test_a_reference_to_something_else_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^store\.url: ") as caught:
        place_of(settings("env:URL"), {"URL": text}, Path())
    assert text not in caught.value.detail
