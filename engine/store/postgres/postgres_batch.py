"""Plan a batch for PostgreSQL: which units share a statement, the statements, and their arrays. Pure.

    waves      units that touch no row or unique value in common, so that their order does not matter
    Form       a table's statements, each over arrays of all rows at once
    array      a column of values as the server's binary array

The waves have the same outcome as the units applied in turn, with one exception that `Waves.changed` lets the
caller find: a New that meets a row by another Unique than the key, after a Cas or a Drop of that row in the
same batch.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct

from ..tables import TABLES, Unique
from ..units import Cas, Change, Drop, New, Put, Unit, values_of

Values = tuple[Any, ...]

# --- Arrays -------------------------------------------------------------------------------------------


class Array(bytes):
    """A column of values in PostgreSQL's binary array format; each element type has a subclass."""

    oid = 0
    element_oid = 0


class BoolArray(Array):
    """A column of values encoded as PostgreSQL's `boolean[]`."""

    oid, element_oid = 1000, 16


class BytesArray(Array):
    """A column of values encoded as PostgreSQL's `bytea[]`."""

    oid, element_oid = 1001, 17


class IntArray(Array):
    """A column of values encoded as PostgreSQL's `bigint[]`."""

    oid, element_oid = 1016, 20


class TextArray(Array):
    """A column of values encoded as PostgreSQL's `text[]`."""

    oid, element_oid = 1009, 25


_HEAD = struct.Struct("!iiIii")
_NULL = b"\xff\xff\xff\xff"
_BOOLS = (b"\0", b"\1")


def array(kind: type[Array], values: Sequence[Any]) -> Array:
    """Encode a column of values as an array in PostgreSQL's binary format.

    Raises:
        TypeError, ValueError, AttributeError, OverflowError: a value is not of the type of `kind`.
    """
    if kind is IntArray:
        elements: Sequence[bytes | None] = [
            None if value is None else value.to_bytes(8, "big", signed=True) for value in values
        ]
    elif kind is TextArray:
        elements = [None if value is None else value.encode() for value in values]
    elif kind is BoolArray:
        elements = [None if value is None else _BOOLS[bool(value)] for value in values]
    else:
        elements = values
    has_null = None in elements
    # Elements of one length, as hashes and integers have, are joined without a loop over them.
    if not has_null and len(set(map(len, elements))) == 1:  # type: ignore[arg-type]
        prefix = len(elements[0]).to_bytes(4, "big")  # type: ignore[arg-type]
        body = prefix + prefix.join(elements)  # type: ignore[arg-type]
    else:
        body = b"".join(
            _NULL if element is None else b"".join((len(element).to_bytes(4, "big"), element))
            for element in elements
        )
    # Number of dimensions, whether a null is among the elements, their type, their number, the first index.
    return kind(_HEAD.pack(1, has_null, kind.element_oid, len(elements), 1) + body)


def _kind(annotation: Any) -> type[Array]:
    """Array type of a column, from the type annotation of the row's field."""
    if get_origin(annotation) is UnionType:
        (annotation,) = (member for member in get_args(annotation) if member is not NoneType)
    if issubclass(annotation, bool):
        return BoolArray
    if issubclass(annotation, int):
        return IntArray
    return BytesArray if issubclass(annotation, bytes) else TextArray


# --- Statements ---------------------------------------------------------------------------------------


class Form:
    """SQL statements that write many rows of one table; a statement's parameters are arrays of equal length,
    one per column.

    Attributes:
        unique_places: a tuple for each of the table's sets of unique columns: name of the table, number of
            the set, and a function from a row to the row's values in these columns.
        insert: inserts rows. If a row has the unique values of an existing row, a `repeatable` table leaves
            the row out, and for any other table the statement fails.
        insert_new: inserts the rows that share no unique values with existing rows, and returns the keys of
            the inserted rows.
        rewrite: sets mutable columns of the rows with the given keys and versions, and returns the keys of
            the rewritten rows.
        delete: deletes the rows with the given keys.
    """

    def __init__(self, name: str) -> None:
        self.table = table = TABLES[name]
        self.kinds = {column: _kind(kind) for column, kind in get_type_hints(table.row).items()}
        self._kinds = tuple(self.kinds.values())
        self.unique_places = tuple(
            (name, number, _getter(table.columns, unique.columns))
            for number, unique in enumerate(table.unique)
        )
        columns = ", ".join(table.columns)
        rows = f"INSERT INTO {name} ({columns}) SELECT * FROM {self._arrays(table.columns)}"
        self.insert = f"{rows}{' ON CONFLICT DO NOTHING' * table.repeatable}".encode()
        if not table.unique:
            return
        key = table.key
        self.insert_new = f"{rows} ON CONFLICT DO NOTHING RETURNING {', '.join(key)}".encode()
        self.delete = f"DELETE FROM {name} t USING {self._some(key)} WHERE {_same(key)}".encode()
        if table.mutable:
            assigned = ", ".join(f"{column} = u.{column}" for column in table.mutable)
            given = (*table.mutable, *key, "version")
            self.rewrite = (
                f"UPDATE {name} t SET {assigned}, version = t.version + 1 FROM {self._some(given)} "
                f"WHERE {_same((*key, 'version'))} RETURNING {', '.join(f't.{column}' for column in key)}"
            ).encode()

    def unique_of(self, number: int, row: Values) -> Values:
        """Return a row's values in the columns of the table's unique set `number`."""
        return self.unique_places[number][2](row)

    def found(self, unique: Unique) -> bytes:
        """Build the SQL that selects rows by values in the columns of `unique`; the values are parameters."""
        columns = ", ".join(f"t.{column}" for column in self.table.columns)
        where = f" AND {unique.where}" if unique.where else ""
        return (
            f"SELECT {columns} FROM {self.table.name} t JOIN {self._some(unique.columns)} "
            f"ON {_same(unique.columns)}{where}"
        ).encode()

    def rows(self, rows: Sequence[Values]) -> list[Array]:
        """Encode whole rows as one binary array per column, the arguments of a statement."""
        return [
            array(kind, column) for kind, column in zip(self._kinds, zip(*rows, strict=True), strict=True)
        ]

    def some(self, columns: Sequence[str], rows: Sequence[Values]) -> list[Array]:
        """Encode rows, which have values only for `columns`, as one binary array per column."""
        return [
            array(self.kinds[name], column)
            for name, column in zip(columns, zip(*rows, strict=True), strict=True)
        ]

    def _arrays(self, columns: Sequence[str]) -> str:
        return f"unnest({', '.join(f'${number}' for number in range(1, len(columns) + 1))})"

    def _some(self, columns: Sequence[str]) -> str:
        return f"{self._arrays(columns)} AS u ({', '.join(columns)})"


@cache
def form(name: str) -> Form:
    """Return the SQL statements of the table `name`, from a cache. Raises KeyError for an unknown table."""
    return Form(name)


def _same(columns: Sequence[str]) -> str:
    return " AND ".join(f"t.{column} = u.{column}" for column in columns)


def _getter(columns: Sequence[str], wanted: Sequence[str]) -> Callable[[Values], Values]:
    places = [columns.index(column) for column in wanted]
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1))


# --- Waves --------------------------------------------------------------------------------------------

RowPlace = tuple[str, int, Values]
"""(table, number of one of its unique sets of columns, values): identifies at most one row of the
database.
"""


class Wave(Struct):
    """Units of changes in a batch that touch no row in common, so that they can be written in any order.

    Attributes:
        together: numbers of the units (in the batch) that are written with shared statements: only the first
            change of such a unit can fail to apply.
        alone: numbers of the units that need a savepoint each, written after `together`.
    """

    together: list[int]
    alone: list[int]


class Waves(Struct):
    """The waves of a batch (groups of units that touch no row in common), in the order in which they are
    written.

    Attributes:
        changed: row (by its key) -> number of the first unit that rewrites or deletes it.
    """

    waves: list[Wave]
    changed: dict[RowPlace, int]


def waves_of(units: Sequence[Unit], numbers: Iterable[int]) -> Waves:
    """Divide units into waves, groups of units without a row in common.

    A unit that touches a row of an earlier unit is in a later wave.

    Args:
        numbers: indices in `units` of the units to divide.
    """
    waves: list[Wave] = []
    changed: dict[RowPlace, int] = {}
    next_wave: dict[RowPlace, int] = {}
    after_new: dict[str, int] = {}  # rewriting a row may free a unique value that an earlier New has met
    for number in numbers:
        unit = units[number]
        touched: list[RowPlace] = []
        news: list[str] = []
        wave = 0
        alone = not unit.is_decided_first
        for change in unit.changes:
            places = _places(change)
            touched += places
            if type(change) is Cas or type(change) is Drop:
                changed.setdefault(places[0], number)
                wave = max(wave, after_new.get(change.table, 0))
            elif len(places) > 1:
                news.append(change.table)
                # Shared statements write a Put after the wave's rewrites, which may free its unique value.
                alone = alone or type(change) is Put
        for place in touched:
            if next_wave.get(place, 0) > wave:
                wave = next_wave[place]
        for place in touched:
            next_wave[place] = wave + 1
        if len(touched) > 1 and len(set(touched)) < len(touched):  # the order of its changes matters
            alone = True
        while len(waves) <= wave:
            waves.append(Wave([], []))
        (waves[wave].alone if alone else waves[wave].together).append(number)
        # A rewrite may share the wave of a shared New, which is inserted first, but not of a lone New.
        for name in news:
            after_new[name] = max(after_new.get(name, 0), wave + alone)
    return Waves(waves, changed)


def _places(change: Change) -> list[RowPlace]:
    of = form(change.table)
    if isinstance(change, New | Put):
        if not of.unique_places:
            return []
        row = values_of(change.row)
        return [(name, number, values(row)) for name, number, values in of.unique_places]
    if not of.unique_places:
        raise ValueError("a log is only added to")
    return [(change.table, 0, tuple(change.key))]
