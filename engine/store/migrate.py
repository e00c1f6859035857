"""Migrations: numbered SQL files, applied in order, one transaction each, and never changed afterwards.

    migrations/sqlite/0001_initial.sql     number, name; the checksum of the text is kept with it

A file whose text differs from the applied text is refused, as is a database newer than this program: in both
cases the form of the tables is unknown.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ...config.errors import ConfigError

Dialect = Literal["sqlite", "postgres"]

_FOLDER = Path(__file__).parent / "migrations"
_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql\Z")


class Migration(Struct, frozen=True):
    """A numbered SQL file that changes the database's tables to a newer form."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the migration's SQL text, in hexadecimal.

        A checksum other than the applied one shows that the text was changed after the migration.
        """
        return hashlib.sha256(self.sql.encode()).hexdigest()


class AppliedMigration(Struct, frozen=True):
    """A row of the table `schema_migration`: a migration that was applied to the database, with the SHA-256
    checksum of its SQL text at that time.
    """

    number: int
    name: str
    checksum: str


def migrations(dialect: Dialect) -> list[Migration]:
    """Load this program's migrations for an SQL dialect, in ascending order of their numbers."""
    found = []
    for entry in (_FOLDER / dialect).iterdir():
        match = _NAME.match(entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def pending(known: Iterable[Migration], applied: Iterable[AppliedMigration]) -> list[Migration]:
    """Return the migrations still to be applied to the database, after checking the applied ones.

    Args:
        known: this program's migrations.
        applied: the database's migrations.

    Raises:
        ConfigError: an applied migration has another text now or is unknown to this program, or an earlier
            migration was left out.
    """
    by_number = {migration.number: migration for migration in known}
    last = 0
    for row in sorted(applied, key=lambda row: row.number):
        migration = by_number.pop(row.number, None)
        if migration is None:
            raise ConfigError(
                "store",
                f"the database is newer than this program: it has migration {row.number:04} {row.name}; "
                "run a newer cambist",
            )
        if migration.checksum != row.checksum:
            raise ConfigError(
                "store",
                f"migration {row.number:04} {row.name} was applied with another text: the database has "
                f"{row.checksum[:12]}, this program {migration.checksum[:12]}",
            )
        last = row.number
    left = sorted(by_number.values(), key=lambda migration: migration.number)
    if left and left[0].number < last:
        raise ConfigError("store", f"migration {left[0].number:04} {left[0].name} was left out")
    return left
