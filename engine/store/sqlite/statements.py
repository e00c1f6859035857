"""The statements that follow from a table, in the form of DB-API drivers with `?`; made once. Pure."""

from functools import cache

from ..tables import TABLES


@cache
def insert(name: str, *, unless_there: bool) -> str:
    """Insert a row: a value for each column."""
    table = TABLES[name]
    marks = ", ".join("?" * len(table.columns))
    tail = " ON CONFLICT DO NOTHING" if unless_there or table.repeatable else ""
    return f"INSERT INTO {name} ({', '.join(table.columns)}) VALUES ({marks}){tail}"


@cache
def compare_and_set(name: str) -> str:
    """Rewrite: the mutable columns, then the key, then the version that is expected."""
    table = TABLES[name]
    if not table.mutable:
        raise ValueError(f"{name} has nothing that changes")
    assigned = ", ".join(f"{column} = ?" for column in table.mutable)
    found = " AND ".join(f"{column} = ?" for column in table.key)
    return f"UPDATE {name} SET {assigned}, version = version + 1 WHERE {found} AND version = ?"


@cache
def delete(name: str) -> str:
    """Delete by key."""
    if not TABLES[name].unique:
        raise ValueError("a log is only added to")
    return f"DELETE FROM {name} WHERE " + " AND ".join(f"{column} = ?" for column in TABLES[name].key)
