"""A PostgreSQL server for tests.

Tests that need PostgreSQL are skipped on machines without it, unless REQUIRE_POSTGRES=1.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.peers import postgres
from bench.peers.postgres import PostgresServer

__all__ = ["PostgresServer", "running_postgres"]


@contextmanager
def running_postgres(settings: dict[str, str] | None = None) -> Iterator[PostgresServer]:
    """A server that runs; its folder goes with it. Skips or fails the test where there is no PostgreSQL."""
    if postgres.postgres_programs() is None:
        message = "PostgreSQL is not installed"
        if os.environ.get("REQUIRE_POSTGRES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    with postgres.running_postgres(settings) as server:
        yield server
