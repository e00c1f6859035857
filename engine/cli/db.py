"""`cambist db`: status, backup, export and maintenance of the store that the settings name."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
import trio
from rich.filesize import decimal

from ...config.errors import ConfigError
from ...config.sections.nodes import NodeSettings, revealed
from ...config.settings import Settings, read_settings
from ..chain.index.indexer import rescan
from ..chain.nodes.rpc import RpcChain
from ..host.process.clock import WallClock
from ..host.safety.private_state import make_private
from ..store.migrate import migrations, pending
from ..store.operator.backup import back_up
from ..store.operator.export import export_lines
from ..store.operator.status import Contents, DatabaseStatus, contents_of, fdatasync_p50_ms, schema_of
from ..store.operator.upkeep import upkeep_of
from ..store.operator.whole_file import whole_file
from ..store.process.open_store import open_store
from ..store.process.place import SqlitePlace, StorePlace, place_of
from . import CommandGroup
from .sources import at_work, config_option

if TYPE_CHECKING:
    from rich.console import Console

_CONFIG = config_option("The settings file (TOML); the defaults alone if absent.")
_FORCE = click.option("--force", is_flag=True, help="Replace a file of that name.")


@click.group(cls=CommandGroup)
def db() -> None:
    """Maintain the store: migrate, status, vacuum, export, backup, rescan.

    Works on the database of the settings, SQLite or PostgreSQL; no engine has to run.
    """
    make_private()


@db.command("migrate")
@_CONFIG
@click.option("--check", is_flag=True, help="Change nothing; exit status 1 if a migration is pending.")
def migrate_command(path: Path | None, *, check: bool) -> None:
    """Migrate the store's tables to the schema of this program's version.

    The command names the applied migrations. A starting engine migrates by itself. Migrations never go back:
    make a backup first.
    """
    upkeep = upkeep_of(_place(path))
    left = pending(migrations(upkeep.dialect), upkeep.applied())
    if not left:
        click.echo("nothing to apply")
    elif check:
        for migration in left:
            click.echo(f"to be applied: {migration.number:04}_{migration.name}")
        sys.exit(1)
    else:
        with at_work("migrating"):
            applied = list(upkeep.migrate(WallClock().now_ms))
        for name in applied:
            click.echo(f"applied {name}")


@db.command("status")
@_CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, times in Unix milliseconds.")
def status_command(path: Path | None, *, as_json: bool) -> None:
    """Print the size and the content of the store.

    The command counts every row, which takes seconds per ten million rows.
    """
    with at_work("counting rows"):
        status = _status(_place(path))
    if as_json:
        click.echo(msgspec.json.encode(status))
    else:
        _show(status)


@db.command("vacuum")
@_CONFIG
def vacuum_command(path: Path | None) -> None:
    """Give the disk space of deleted rows back.

    A SQLite file must not be in use, and is rewritten: that takes as much free disk as it has bytes.
    """
    upkeep = upkeep_of(_place(path))
    with upkeep.snapshot() as snapshot:
        before = snapshot.size_bytes()
    with at_work("vacuuming"):
        upkeep.vacuum()
    with upkeep.snapshot() as snapshot:
        after = snapshot.size_bytes()
    click.echo(f"{decimal(before)} before, {decimal(after)} now")


@db.command("export")
@_CONFIG
@click.argument("out", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), default="-")
@_FORCE
def export_command(path: Path | None, out: Path, *, force: bool) -> None:
    """Write every table as lines of JSON to OUT, or to standard output.

    The export is a consistent snapshot; the engine may run meanwhile. The first line names the format and the
    schema; the last line has the number of rows, and an export without it is incomplete.
    """
    place = _place(path)
    _refuse_the_store_itself(place, out)
    with upkeep_of(place).snapshot() as snapshot, closing(export_lines(snapshot)) as lines:
        if str(out) == "-":
            _print(lines)
            return
        with at_work("exporting"), whole_file(out, force=force) as beside, beside.open("wb") as file:
            file.writelines(lines)
    click.echo(f"{out}: {decimal(out.stat().st_size)}")


@db.command("backup")
@_CONFIG
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@_FORCE
def backup_command(path: Path | None, out: Path, *, force: bool) -> None:
    """Copy the SQLite file to OUT; the engine may run meanwhile.

    The copy is a consistent snapshot, and the command checks it. To restore, stop the engine, remove the
    database with its -wal and -shm files, and put the copy in its place.
    """
    place = _place(path)
    if not isinstance(place, SqlitePlace):
        raise ConfigError("store.url", f"{place} is backed up with pg_dump, or the server's own archive")
    _refuse_the_store_itself(place, out)
    with at_work("copying and checking"):
        size = back_up(place.path, out, force=force)
    click.echo(f"{out}: {decimal(size)}, checked")


@db.command("rescan")
@_CONFIG
@click.option("--chain", "chain_id", type=int, required=True, help="The chain's id.")
@click.option("--from", "first_block", type=int, required=True, help="The first block to read again.")
def rescan_command(path: Path | None, chain_id: int, first_block: int) -> None:
    """Make the engine index a chain again from a block on.

    A halted indexer needs this (docs/explanation/indexer.md). The engine then deletes all rows from that
    block on, and reads the blocks anew. With SQLite, stop the engine before this command.
    """
    settings = read_settings(path, os.environ, reveal=False)
    if chain_id not in settings.chains:
        raise ConfigError(f"chains.{chain_id}", "unknown chain: the settings do not name it")
    folder = path.parent if path else Path()
    field = f"chains.{chain_id}.node"
    node = revealed(settings.chains[chain_id].node, field, os.environ, folder)
    try:
        trio.run(_rescan, settings, folder, chain_id, node, first_block)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"chain {chain_id} will be read anew from block {first_block} on")


async def _rescan(
    settings: Settings, folder: Path, chain_id: int, node: NodeSettings, first_block: int
) -> None:
    now_ms = WallClock().now_ms
    async with (
        RpcChain.open(chain_id, node) as chain,
        open_store(settings, os.environ, folder, now_ms, in_process=True) as store,
    ):
        await rescan(chain, store, first_block, now_ms())


def _place(path: Path | None) -> StorePlace:
    settings = read_settings(path, os.environ, reveal=False)
    return place_of(settings, os.environ, path.parent if path else Path())


def _refuse_the_store_itself(place: StorePlace, out: Path) -> None:
    """Refuse an output file that is a file of the database itself, even with --force: the output would
    replace the data."""
    if isinstance(place, SqlitePlace) and out.parent.resolve() / out.name in place.files():
        raise ConfigError(str(out), "is a file of the database itself")


def _print(lines: Iterator[bytes]) -> None:
    try:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has enough: click ends silently
        raise
    except OSError as error:
        raise ConfigError("standard output", f"cannot be written: {error.strerror}") from None


def _status(place: StorePlace) -> DatabaseStatus:
    with upkeep_of(place).snapshot() as snapshot:
        schema = schema_of(migrations(snapshot.dialect), snapshot.applied())
        return DatabaseStatus(
            str(place),
            snapshot.dialect,
            snapshot.size_bytes(),
            schema,
            contents_of(snapshot) if schema.is_right else None,
            fdatasync_p50_ms(place.path.parent) if isinstance(place, SqlitePlace) else None,
        )


def _show(status: DatabaseStatus) -> None:
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    schema = status.schema
    console.print(f"database            {status.database}")
    console.print(f"size                {decimal(status.size_bytes)}")
    console.print(f"migrations          {', '.join(schema.applied) or 'none'}")
    for names, word in (
        (schema.pending, "pending"),
        (schema.unknown, "unknown"),
        (schema.changed, "changed"),
    ):
        if names:
            console.print(f"{word:<20}{', '.join(names)}", style="red")
    if status.contents is not None:
        _show_contents(console, status.contents)
    if status.fdatasync_p50_ms is not None:
        console.print(f"fdatasync p50       {status.fdatasync_p50_ms:.3f} ms")


def _show_contents(console: "Console", contents: Contents) -> None:
    from rich.table import Table

    opened = ", ".join(f"{count} {surface}" for surface, count in contents.open_orders.items())
    console.print(f"open orders         {opened}")
    console.print(f"unfinished effects  {contents.unfinished_effects}")
    console.print(f"oldest event        {_time(contents.oldest_event_ms)}")
    for holder in contents.holders:
        if holder.holder:
            until = f", until {_time(holder.until_ms)}" if holder.until_ms else ""
            held = f"{holder.shards} by {holder.holder}{until}"
        else:
            held = f"{holder.shards} by nobody"
        console.print(f"shards              {held}")
    table = Table("table", "rows")
    for name, count in contents.rows.items():
        table.add_row(name, str(count))
    console.print(table)


def _time(at_ms: int | None) -> str:
    if at_ms is None:
        return "none"
    return datetime.fromtimestamp(at_ms // 1_000, UTC).isoformat().replace("+00:00", "Z")
