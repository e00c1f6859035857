"""Units of database changes, each written atomically, and their outcomes. Pure.

    Unit = changes that are all made, or none; its New and Cas decide
        Done                     made, and durable
        Duplicate(unique, row)   a New found that row under the Unique of that index
        Conflict(row)            a Cas found another version in the row; None: the row does not exist
        Fenced                   another holder has claimed the shard
        Refused(detail)          a statement failed: our bug; the other units of its batch are not affected

Source: ARCHITECTURE.md, "Store process", "Transitions".
"""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from .rows import Row
from .tables import Table


class New(Struct, frozen=True, array_like=True, tag=0, gc=False):
    """Insert a row unless a row with the same unique values exists; this decides the unit."""

    table: str
    row: Any


class Cas(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Rewrite the mutable columns of a row if its version is the expected one; this decides the unit."""

    table: str
    key: tuple[Any, ...]
    version: int
    values: tuple[Any, ...]


class Put(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Insert a row that cannot conflict, as part of a unit that a New or Cas decides."""

    table: str
    row: Any


class Drop(Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Delete a row by its key, for example one that a re-organisation undoes; a missing row is no error."""

    table: str
    key: tuple[Any, ...]


class Fence(Struct, frozen=True, array_like=True, gc=False):
    """Condition of a unit: its shard must still have this epoch."""

    shard: int
    epoch: int


Change = New | Cas | Put | Drop


class Unit(Struct, frozen=True, array_like=True, gc=False):
    """Changes that are written all together or not at all. A unit decided by its first change alone is the
    cheapest.
    """

    changes: tuple[Change, ...]
    fence: Fence | None = None

    @property
    def is_decided_first(self) -> bool:
        """Whether only the first change can fail to apply."""
        return not any(type(change) in (New, Cas) for change in self.changes[1:])


class Done(Struct, frozen=True, array_like=True, tag=0, gc=False):
    """Outcome: the unit is written."""


class Duplicate(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Outcome: no change is written. `unique`: index of the table's Unique; `row`: the existing row."""

    table: str
    unique: int
    row: Any


class Conflict(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Outcome: no change is written. `row`: the current row, or None if the row does not exist."""

    table: str
    row: Any


class Fenced(Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Outcome: no change is written, because the shard has another epoch."""

    shard: int


class Refused(Struct, frozen=True, array_like=True, tag=4, gc=False):
    """Outcome: no change is written, because the database refused a statement."""

    detail: str


UnitOutcome = Done | Duplicate | Conflict | Fenced | Refused

DONE = Done()


def new(table: Table, row: Row) -> New:
    """Build the change that inserts `row` unless it exists."""
    return New(table.name, row)


def put(table: Table, row: Row) -> Put:
    """Build the change that inserts `row`, which cannot conflict with an existing row."""
    return Put(table.name, row)


def cas(table: Table, row: Any) -> Cas:
    """Build the change that rewrites a row's mutable columns with those of `row`; `row.version` is the
    expected version.
    """
    return Cas(
        table.name,
        tuple(getattr(row, name) for name in table.key),
        row.version,
        tuple(getattr(row, name) for name in table.mutable),
    )


def drop(table: Table, row: Row) -> Drop:
    """Build the change that deletes `row`."""
    return Drop(table.name, tuple(getattr(row, name) for name in table.key))


def values_of(row: Any) -> tuple[Any, ...]:
    """Values of a row's columns, from a struct or from a decoded array."""
    return astuple(row) if isinstance(row, Struct) else tuple(row)


def row_of(table: Table, values: Any) -> Any:
    """Convert the values of a row from the database or a message to the table's struct."""
    return msgspec.convert(values, table.row, strict=False)
