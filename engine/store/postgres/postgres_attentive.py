"""Connections to a PostgreSQL server that are given up when the server is silent.

This module imports psycopg, so that it is imported only where such a connection is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any

import psycopg

from ....config import timeouts


class AttentiveConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection whose statements fail after STORE_SILENCE_S without data from the server.

    After `look_elsewhere` they fail as soon as the server has been silent for STORE_DOUBT_S and another one
    takes writes. A statement that fails so closes the connection.
    """

    _has_moved: Callable[[], bool] = bool  # False

    def look_elsewhere(self, has_moved: Callable[[], bool]) -> None:
        """Call `has_moved` from now on whenever the server is silent: whether another one takes writes."""
        self._has_moved = has_moved

    def wait(self, gen: Generator[Any, Any, Any], *_: Any, **__: Any) -> Any:
        """Run a generator of psycopg to its end, as `psycopg.Connection.wait` does, within the bounds.

        Raises:
            psycopg.OperationalError: the server is silent; the connection is closed.
        """
        return super().wait(self._heard(gen), timeouts.STORE_DOUBT_S)

    def _heard(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        heard = monotonic()
        try:
            wanted = next(gen)
            while True:
                if ready := (yield wanted):
                    wanted = gen.send(ready)
                    heard = monotonic()
                elif monotonic() - heard >= timeouts.STORE_SILENCE_S or self._has_moved():
                    break
        except StopIteration as end:
            return end.value
        self.close()
        raise psycopg.OperationalError("the server does not answer")
