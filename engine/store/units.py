"""Units of changes, each written in one step, and their outcomes. Pure; the store process reads the bytes.

    Unit = changes that are all made, or none; its New and Cas decide
        Done                     made, and durable
        Duplicate(unique, row)   a New found that row under the Unique of that index
        Conflict(row)            a Cas found another version, or None: no such row
        Fenced                   the shard is another's by now
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
    """Insert a row unless it is there."""

    table: str
    row: Any


class Cas(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Rewrite the mutable columns of a row, if its version is still the one expected."""

    table: str
    key: tuple[Any, ...]
    version: int
    values: tuple[Any, ...]


class Put(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Insert a row that belongs to the decision of the unit."""

    table: str
    row: Any


class Drop(Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Delete a row: what a re-organisation undoes."""

    table: str
    key: tuple[Any, ...]


class Fence(Struct, frozen=True, array_like=True, gc=False):
    """The unit counts only while the shard has this epoch."""

    shard: int
    epoch: int


Change = New | Cas | Put | Drop


class Unit(Struct, frozen=True, array_like=True, gc=False):
    """All or nothing. A unit whose first change alone decides is the cheapest."""

    changes: tuple[Change, ...]
    fence: Fence | None = None

    @property
    def is_decided_first(self) -> bool:
        """Whether no change but the first may find something else than expected."""
        return not any(type(change) in (New, Cas) for change in self.changes[1:])


class Done(Struct, frozen=True, array_like=True, tag=0, gc=False):
    """The unit is written."""


class Duplicate(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """No change is written. `unique`: index of the table's Unique; `row`: the existing row."""

    table: str
    unique: int
    row: Any


class Conflict(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """No change is written. `row`: the current row, or None if the row does not exist."""

    table: str
    row: Any


class Fenced(Struct, frozen=True, array_like=True, tag=3, gc=False):
    """No change is written: the shard has another epoch."""

    shard: int


class Refused(Struct, frozen=True, array_like=True, tag=4, gc=False):
    """No change is written: the database refused a statement."""

    detail: str


UnitOutcome = Done | Duplicate | Conflict | Fenced | Refused

DONE = Done()


def new(table: Table, row: Row) -> New:
    """Insert `row` unless it is there."""
    return New(table.name, row)


def put(table: Table, row: Row) -> Put:
    """Insert `row`, which cannot be there."""
    return Put(table.name, row)


def cas(table: Table, row: Any) -> Cas:
    """Rewrite a row's mutable columns with those of `row`, whose version is still the old one."""
    return Cas(
        table.name,
        tuple(getattr(row, name) for name in table.key),
        row.version,
        tuple(getattr(row, name) for name in table.mutable),
    )


def drop(table: Table, row: Row) -> Drop:
    """Delete `row`."""
    return Drop(table.name, tuple(getattr(row, name) for name in table.key))


def values_of(row: Any) -> tuple[Any, ...]:
    """The columns of a row, that came over a wire or never left the process."""
    return astuple(row) if isinstance(row, Struct) else tuple(row)


def row_of(table: Table, values: Any) -> Any:
    """The row as its struct; `values` as the database or the wire gave them."""
    return msgspec.convert(values, table.row, strict=False)
