"""Send statements to a PostgreSQL server in libpq's pipeline mode: the caller waits once per `sync`.

    send   queue a statement; its rows are there after the next `sync`
    sync   wait for all queued statements; raises the first error, after which the others were skipped

Each text is parsed once per connection. Arguments and rows are binary: bytes, integers, texts, booleans and
the arrays of `postgres_batch`.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....config.timeouts import STORE_STATEMENT_S
from .postgres_batch import Array

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

    from .postgres_connection import Connection

Argument = Array | bytes | int | str

_SILENCE_MS = (STORE_STATEMENT_S + 5.0) * 1_000
"""Milliseconds without an answer after which the server counts as gone: it would have ended the statement
before.
"""

_BOOL, _BYTES, _INT, _TEXT, _VOID = 16, 17, 20, 25, 2278
_READERS: dict[int, Callable[[bytes], Any]] = {
    _BOOL: lambda value: value == b"\1",
    _BYTES: bytes,
    _INT: lambda value: int.from_bytes(value, "big", signed=True),
    _TEXT: lambda value: value.decode(),
    _VOID: lambda _: None,
}


class Sent:
    """A statement that was sent; the next `sync` sets its `rows` and `count` (of rows)."""

    __slots__ = ("count", "rows")

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.count = 0


class Pipe:
    """Pipeline on one connection, which has no other user.

    After any error that is not a statement's own, the connection is unusable.
    """

    def __init__(self, connection: Connection) -> None:
        import psycopg

        self._driver = psycopg
        self._status = psycopg.pq.ExecStatus
        self._connection = connection
        self._server = connection.pgconn
        self._server.enter_pipeline_mode()
        self._poll = select.poll()
        self._names: dict[bytes, bytes] = {}
        self._parsed = 0
        self._unsure: list[bytes] = []
        self._sent: deque[Sent | None] = deque()

    def send(self, sql: bytes, *arguments: Argument) -> Sent:
        """Queue a statement with its arguments `$1`, `$2` and so on; its rows are there after `sync`."""
        name = self._names.get(sql)
        values, types = zip(*map(_written, arguments), strict=True) if arguments else ((), ())
        if name is None:
            self._parsed += 1
            name = self._names[sql] = b"cambist_%d" % self._parsed
            self._server.send_prepare(name, sql, types)
            self._sent.append(None)
            self._unsure.append(sql)
        self._server.send_query_prepared(name, values, [1] * len(values), 1)
        sent = Sent()
        self._sent.append(sent)
        return sent

    def ask(self, sql: bytes, *arguments: Argument) -> list[tuple[Any, ...]]:
        """Send a statement, wait for it, and return its rows."""
        sent = self.send(sql, *arguments)
        self.sync()
        return sent.rows

    def sync(self) -> None:
        """Wait until the server has executed all statements sent.

        Raises:
            psycopg.Error: a statement failed (the first error is raised), or the connection is lost.
        """
        server = self._server
        server.pipeline_sync()
        self._flush()
        error: Exception | None = None
        while self._sent:
            sent = self._sent.popleft()
            while (result := self._result()) is not None:
                if result.status in (self._status.TUPLES_OK, self._status.COMMAND_OK):
                    if sent is not None:
                        sent.rows = _rows(result)
                        sent.count = result.command_tuples or 0
                elif result.status != self._status.PIPELINE_ABORTED and error is None:
                    error = self._driver.errors.error_from_result(result, "utf-8")
        end = self._result()
        if end is None or end.status != self._status.PIPELINE_SYNC:
            raise self._lost("the connection is lost") from error
        unsure, self._unsure = self._unsure, []
        if error is not None:
            for sql in unsure:  # parsed or skipped: a new name is good either way
                self._names.pop(sql, None)
            raise error

    def abandon(self) -> None:
        """Wait for the statements sent and ignore their outcomes. psycopg.Error: the connection is lost."""
        try:
            self.sync()
        except self._driver.Error:
            if self._connection.closed:
                raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def closed(self) -> bool:
        """Whether the connection is closed, as far as is known."""
        return self._connection.closed

    def _lost(self, why: str) -> Exception:
        self._connection.close()
        return self._driver.OperationalError(why)

    def _flush(self) -> None:
        while self._server.flush():
            if self._wait(select.POLLIN | select.POLLOUT) & ~select.POLLOUT:
                self._server.consume_input()

    def _result(self) -> PGresult | None:
        while self._server.is_busy():
            self._wait(select.POLLIN)
            self._server.consume_input()
        return self._server.get_result()

    def _wait(self, wanted: int) -> int:
        descriptor = self._server.socket
        self._poll.register(descriptor, wanted)
        try:
            ready = self._poll.poll(_SILENCE_MS)
        finally:
            self._poll.unregister(descriptor)
        if not ready:
            raise self._lost("the server does not answer")
        return ready[0][1]


def _written(argument: Argument) -> tuple[bytes, int]:
    """Encode an argument: (its bytes, the OID of its type)."""
    if isinstance(argument, Array):
        return argument, argument.oid
    if isinstance(argument, bytes):
        return argument, _BYTES
    if isinstance(argument, int):
        return argument.to_bytes(8, "big", signed=True), _INT
    return argument.encode(), _TEXT


def _rows(result: PGresult) -> list[tuple[Any, ...]]:
    readers = [_READERS[result.ftype(column)] for column in range(result.nfields)]
    columns = list(enumerate(readers))
    return [
        tuple(
            None if (value := result.get_value(row, column)) is None else reader(value)
            for column, reader in columns
        )
        for row in range(result.ntuples)
    ]
