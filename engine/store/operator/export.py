"""Export every table as lines of JSON, in a stable order, from one committed state.

    {"cambist_export": 1, "schema": 2, "dialect": "sqlite"}            the first line
    {"table": "delta_order", "row": {"order_hash": "0x...", ...}}      a line for each row
    {"rows": 1234}                                                      the last line of a complete export

Amounts are decimal text, other bytes hexadecimal with 0x. Orders and events are sorted by arrival, all other
rows by key: equal orders have equal lines on either dialect.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, get_type_hints

import msgspec

from ....config.errors import ConfigError
from ..migrate import migrations, pending
from ..rows import amount_of
from ..tables import DELTA_ORDER, ORDER_EVENT, OTC_ORDER, TABLES
from .upkeep_port import Snapshot

FORMAT = 1

OTHERS = {
    "schema_migration": ("number", "name", "checksum", "applied_ms"),
    "shard": ("number", "holder", "epoch", "until_ms"),
    "shard_holder": ("name", "until_ms"),
    "writer": ("id", "batch", "outcomes", "at_ms"),
}
"""Exported tables that are not in `TABLES`, since no unit of changes writes them: name -> columns, the key
first.
"""

_ARRIVAL = {DELTA_ORDER.name: "seq", OTC_ORDER.name: "seq"}

_encode = msgspec.json.Encoder().encode


def export_lines(snapshot: Snapshot) -> Generator[bytes, None, None]:
    """Yield the JSON lines that export every table, each with its line break; a bounded number of rows is in
    memory at a time.

    Raises:
        ConfigError: the tables are not those of this program.
        StoreError: reading failed; the lines yielded before are incomplete.
    """
    there = snapshot.applied()
    if pending(migrations(snapshot.dialect), there):
        raise ConfigError("store", "the database lacks migrations; run cambist db migrate")
    schema = max(row.number for row in there)
    yield _line({"cambist_export": FORMAT, "schema": schema, "dialect": snapshot.dialect})
    count = 0
    for name, columns, order in _selections(snapshot.event_order):
        texts = [_text_of(name, column) for column in columns]
        with closing(snapshot.rows(f"SELECT {', '.join(columns)} FROM {name} ORDER BY {order}")) as rows:
            for values in rows:
                row = {
                    column: None if value is None else text(value)
                    for column, text, value in zip(columns, texts, values, strict=True)
                }
                yield _line({"table": name, "row": row})
                count += 1
    yield _line({"rows": count})


def _selections(event_order: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield (name of the table, columns to export, columns to sort the rows by) for every exported table."""
    for name, columns in OTHERS.items():
        yield name, columns, columns[0]
    for name, table in TABLES.items():
        if table is ORDER_EVENT:
            yield name, table.columns, event_order
        else:
            yield name, table.columns, _ARRIVAL.get(name) or ", ".join(table.key)


def _text_of(name: str, column: str) -> Callable[[Any], Any]:
    """Return the function that converts a column's values to their JSON form in the export."""
    table = TABLES.get(name)
    if table and column in table.amounts:
        return lambda value: str(amount_of(bytes(value)))
    if table and get_type_hints(table.row)[column] is bool:
        return bool
    return lambda value: f"0x{value.hex()}" if isinstance(value, bytes | memoryview) else value


def _line(document: dict[str, Any]) -> bytes:
    return _encode(document) + b"\n"
