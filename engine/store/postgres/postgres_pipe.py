"""Send statements to a PostgreSQL server in psycopg's pipeline mode: the caller waits once per `sync`.

    send   queue a statement; its cursor has the rows after the next `sync`
    sync   wait for all queued statements; after the first error the server skips the others

The server parses a statement's text once per connection, and again after a rollback: psycopg then drops all
prepared statements right after its next statement. `sync` sends an unprepared statement as this next one.
Arguments and rows are binary: bytes, integers, texts, booleans and the arrays of `postgres_batch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .postgres_batch import Array
from .postgres_connection import connect_attentively, load_driver

if TYPE_CHECKING:
    from psycopg import RawCursor
    from psycopg.abc import AdaptContext

    Sent = RawCursor[tuple[Any, ...]]

Argument = Array | bytes | int | str

_TEXTS_MAX = 1_000
"""Maximum number of prepared statements per connection; this program has fewer."""

_ERRORS_MAX = 100
"""Maximum number of errors that the pipeline reports of one failed batch; each `sync` takes one."""


class Pipe:
    """Pipeline of SQL statements on a PostgreSQL connection of its own.

    After an error call `abandon`; if that raises too, the connection is lost.
    """

    def __init__(self, url: str) -> None:
        self._driver = load_driver()
        self._connection = connect_attentively(url)
        self._connection.prepare_threshold = 0
        self._connection.prepared_max = _TEXTS_MAX
        _send_in_binary(self._connection)
        self._rolled_back = False
        self._in_pipeline = self._connection.pipeline()
        self._pipeline = self._in_pipeline.__enter__()

    def send(self, sql: bytes, *arguments: Argument) -> Sent:
        """Queue an SQL statement with its arguments `$1`, `$2` and so on; the returned cursor has the rows
        after `sync`.

        Raises:
            psycopg.Error: an earlier statement failed, or the connection is lost.
        """
        self._rolled_back = self._rolled_back or sql.startswith(b"ROLLBACK")
        return self._execute(sql, arguments)

    def ask(self, sql: bytes, *arguments: Argument) -> list[tuple[Any, ...]]:
        """Send an SQL statement, wait for its execution, and return its rows."""
        sent = self.send(sql, *arguments)
        self.sync()
        return sent.fetchall() if sent.description else []

    def sync(self) -> None:
        """Wait until the server has executed all statements sent.

        Raises:
            psycopg.Error: a statement failed (the first error is raised), or the connection is lost.
        """
        self._pipeline.sync()
        if self._rolled_back:
            self._rolled_back = False
            self._execute(b"SELECT", (), prepare=False)

    def abandon(self) -> None:
        """Wait, after an error, until the server has handled all statements sent; ignore their errors.

        Raises:
            psycopg.Error: the connection is lost.
        """
        for _ in range(_ERRORS_MAX):
            try:
                return self.sync()
            except self._driver.Error:
                if self._connection.closed:
                    raise
        self.close()
        raise self._driver.OperationalError("the pipeline reports errors without end")

    def _execute(self, sql: bytes, arguments: Sequence[Argument], *, prepare: bool = True) -> Sent:
        sent: Sent = self._driver.RawCursor(self._connection)
        return sent.execute(sql, arguments, prepare=prepare, binary=True)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def closed(self) -> bool:
        """Whether the connection is closed, as far as is known."""
        return self._connection.closed


def _send_in_binary(context: AdaptContext) -> None:
    """Make a connection send integers (as `bigint`), texts (as `text`) and `Array`s in binary format.

    The bytes of an `Array` are encoded already, so that the connection sends them unchanged.
    """
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
    from psycopg.types.numeric import Int8BinaryDumper
    from psycopg.types.string import StrBinaryDumper

    class ArrayDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: Array) -> Array:
            return obj

    context.adapters.register_dumper(int, Int8BinaryDumper)
    context.adapters.register_dumper(str, StrBinaryDumper)
    for kind in Array.__subclasses__():
        dumper = type(f"{kind.__name__}Dumper", (ArrayDumper,), {"oid": kind.oid})
        context.adapters.register_dumper(kind, dumper)
