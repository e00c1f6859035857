"""URLs of several PostgreSQL servers, of which one takes writes: all are dialled at once.

libpq dials the hosts of a URL one after the other, and waits `connect_timeout` for each that hangs. Here a
hanging server costs nothing: the first server that opens a session is taken, and a session asks for a server
that takes writes (`target_session_attrs=read-write`) unless the URL demands otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, Protocol, TypeVar

_BY_HOST = ("host", "hostaddr", "port")
"""Parameters that have one value for each host, separated by commas."""


class Closable(Protocol):
    """Protocol: a connection, or an object that owns one."""

    @property
    def closed(self) -> bool:
        """Whether the connection is closed, as far as is known."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


C = TypeVar("C", bound=Closable)


def by_host(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Split the parameters of a connection into the parameters of each host, in the given order.

    Args:
        given: parameters by name, as `psycopg.conninfo.conninfo_to_dict` returns them.
    """
    lists = {name: str(given[name]).split(",") for name in _BY_HOST if given.get(name)}
    count = max((len(values) for name, values in lists.items() if name != "port"), default=1)
    if count == 1 or any(len(values) not in (1, count) for values in lists.values()):
        return [given]  # a single host, or lists that do not fit: the driver says so
    shared = {"target_session_attrs": "read-write"} | given
    return [
        shared | {name: values[number if len(values) > 1 else 0] for name, values in lists.items()}
        for number in range(count)
    ]


def first_opened(openers: Sequence[Callable[[], C]]) -> C:
    """Call all openers at once, each in a thread, and return the first connection that is open.

    Later connections are closed as soon as they are open. The threads are daemons: an opener that hangs keeps
    neither the caller nor the process waiting.

    Raises:
        ExceptionGroup: no opener opened a connection; one error for each, in the order of their ends.
    """
    race: _Race[C] = _Race()
    for opener in openers:
        Thread(target=race.run, args=(opener,), daemon=True).start()
    return race.winner(len(openers))


class _Race(Generic[C]):
    def __init__(self) -> None:
        self._lock = Lock()
        self._won: C | None = None
        self._ended: SimpleQueue[Exception | None] = SimpleQueue()

    def run(self, opener: Callable[[], C]) -> None:
        try:
            opened = opener()
        except Exception as error:  # noqa: BLE001 - `winner` raises it
            self._ended.put(error)
            return
        with self._lock:  # two that open at the same time: one of them is closed
            is_first = self._won is None
            if is_first:
                self._won = opened
        if not is_first:
            opened.close()
        self._ended.put(None)

    def winner(self, count: int) -> C:
        errors: list[Exception] = []
        for _ in range(count):
            error = self._ended.get()
            if error is None and self._won is not None:
                return self._won
            if error is not None:
                errors.append(error)
        raise ExceptionGroup("no server opened a session", errors)
