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
    """Change: insert a row.

    If a row with the same unique values exists, no change of the unit that contains this `New` is written.
    """

    table: str
    row: Any


class Cas(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Change (compare and set): rewrite a row's mutable columns.

    If the stored row's version is not `version`, no change of the unit that contains this `Cas` is written.

    Attributes:
        values: new values of the table's mutable columns, in their order.
    """

    table: str
    key: tuple[Any, ...]
    version: int
    values: tuple[Any, ...]


class Put(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Change: insert a row.

    If a row with the same key exists, a `repeatable` table stays as it is; for any other table, the database
    refuses the whole unit of changes.
    """

    table: str
    row: Any


class Drop(Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Change: delete a row by its key, for example one that a re-organisation undoes; a missing row is no
    error.
    """

    table: str
    key: tuple[Any, ...]


class Fence(Struct, frozen=True, array_like=True, gc=False):
    """Condition for writing a unit of changes: the shard still has this epoch.

    Each claim by an engine raises the shard's epoch, so that the condition fails after a claim by another
    engine.
    """

    shard: int
    epoch: int


Change = New | Cas | Put | Drop


class Unit(Struct, frozen=True, array_like=True, gc=False):
    """Group of changes to the database that are written all together or not at all.

    New and Cas are the changes with a condition on stored rows. A unit is cheapest to write if no change
    after the first is a New or a Cas.

    Attributes:
        fence: condition on the shard of the changes; None without a condition.
    """

    changes: tuple[Change, ...]
    fence: Fence | None = None

    @property
    def is_decided_first(self) -> bool:
        """Whether no change after the first is a New or a Cas, so that the first one decides the outcome."""
        return not any(type(change) in (New, Cas) for change in self.changes[1:])


class Done(Struct, frozen=True, array_like=True, tag=0, gc=False):
    """Outcome of a unit of changes: all changes are written and durable."""


class Duplicate(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Outcome of a unit of changes: nothing is written, because a row to insert shares unique values with an
    existing row.

    Attributes:
        unique: index, in the table's sets of unique columns, of the set with the shared values.
        row: the existing row.
    """

    table: str
    unique: int
    row: Any


class Conflict(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Outcome of a unit of changes: nothing is written, because a row to rewrite has another version than
    expected or does not exist.

    Attributes:
        row: the row as it is in the database; None if it does not exist.
    """

    table: str
    row: Any


class Fenced(Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Outcome of a unit of changes: nothing is written, because another engine has claimed the shard."""

    shard: int


class Refused(Struct, frozen=True, array_like=True, tag=4, gc=False):
    """Outcome of a unit of changes: nothing is written, because the database refused a statement."""

    detail: str


UnitOutcome = Done | Duplicate | Conflict | Fenced | Refused

DONE = Done()


def new(table: Table, row: Row) -> New:
    """Build the change that inserts `row` unless a row with the same unique values exists."""
    return New(table.name, row)


def put(table: Table, row: Row) -> Put:
    """Build the change that inserts `row`, for a row whose key is new or whose table is `repeatable`."""
    return Put(table.name, row)


def cas(table: Table, row: Any) -> Cas:
    """Build the change that sets a stored row's mutable columns to the values in `row`.

    The change applies only if the stored row's version is still `row.version`.
    """
    return Cas(
        table.name,
        tuple(getattr(row, name) for name in table.key),
        row.version,
        tuple(getattr(row, name) for name in table.mutable),
    )


def drop(table: Table, row: Row) -> Drop:
    """Build the change that deletes `row` from its table, by key."""
    return Drop(table.name, tuple(getattr(row, name) for name in table.key))


def values_of(row: Any) -> tuple[Any, ...]:
    """Return the values of a row's columns in order; `row` is the table's struct or a decoded array."""
    return astuple(row) if isinstance(row, Struct) else tuple(row)


def row_of(table: Table, values: Any) -> Any:
    """Convert the values of a row from the database or a message to the table's struct."""
    return msgspec.convert(values, table.row, strict=False)
