"""Copy the SQLite file as of one moment, while the store goes on writing.

A single read transaction stays open throughout, so that every step sees the same state: otherwise each write
of another process would start the copy anew. SQLite does not shorten the write-ahead log meanwhile.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from ....config.errors import ConfigError, StoreError
from ..sqlite.sqlite import applied, is_there, open_for_reading
from .whole_file import whole_file

_STEP_PAGES = 1_024


def back_up(path: Path, out: Path, *, force: bool) -> int:
    """Copy the SQLite database at `path` to `out` and check the copy; on failure `out` is left as it was.

    Returns:
        Size of the copy in bytes.

    Raises:
        ConfigError: there is no store at `path`, or `out` cannot be written.
        StoreError: the database is damaged or cannot be read, or the disk of `out` is full.
    """
    if not is_there(path):
        raise ConfigError("store.url", f"{path} does not exist")
    try:
        with whole_file(out, force=force) as beside:
            with closing(open_for_reading(path)) as source, closing(_new(beside)) as target:
                _copy(source, target, path)
            return beside.stat().st_size
    except sqlite3.Error as error:
        raise StoreError(f"{path} could not be copied to {out}: {error}") from None


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, path: Path) -> None:
    source.execute("BEGIN")
    if not applied(source):
        raise ConfigError(str(path), "is no store of cambist: it has no migrations")
    source.backup(target, pages=_STEP_PAGES)
    verdict = target.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise StoreError(f"{path} is damaged: {verdict}")
    target.execute("PRAGMA journal_mode = DELETE")  # opens on a read-only disk too


def _new(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")  # it is synced as a whole before it gets its name
    return connection
