"""Engines that live on a PostgreSQL database: their connection does, or they have renewed their leases."""

import time
from collections.abc import Callable
from contextlib import closing

from cambist.config.timeouts import STORE_DEAD_S
from cambist.engine.store.postgres.postgres import PostgresBackend
from support.patience import PATIENCE_S


def until_seen(is_so: Callable[[], bool]) -> None:
    """Return once the server has seen that a connection has ended."""
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends


def test_a_holder_whose_connection_has_ended_is_not_waited_for(postgres_url: str) -> None:
    hour_ms = 3_600_000
    with closing(PostgresBackend(postgres_url, lambda: 0)) as second:
        first = PostgresBackend(postgres_url, lambda: 0)
        with closing(first):
            first.attend("first", 0, hour_ms)
            assert len(first.lease("first", 256, 0, hour_ms)) == 256
            first.attend("first", 1_000, hour_ms)
            first.lease("first", 256, 1_000, hour_ms)
            late_ms = 60_000
            assert second.attend("second", late_ms, hour_ms) == ["first", "second"], "it lives"
            assert second.lease("second", 256, late_ms, hour_ms) == []
        is_dead_ms = 1_000 + round(STORE_DEAD_S * 1_000)
        until_seen(lambda: second.attend("second", is_dead_ms, hour_ms) == ["second"])
        assert second.attend("second", is_dead_ms - 1, hour_ms) == ["first", "second"], "it may come back"
        assert second.lease("second", 256, is_dead_ms - 1, hour_ms) == []
        assert len(second.lease("second", 256, is_dead_ms, hour_ms)) == 256


def test_a_holder_that_gets_another_connection_lives_on(postgres_url: str) -> None:
    hour_ms = 3_600_000
    with (
        closing(PostgresBackend(postgres_url, lambda: 0)) as first,
        closing(PostgresBackend(postgres_url, lambda: 0)) as second,
    ):
        first.attend("first", 0, hour_ms)
        held = first.lease("first", 256, 0, hour_ms)
        first._writer.close()
        first.attend("first", 1, hour_ms)
        assert second.attend("second", 60_000, hour_ms) == ["first", "second"]
        assert second.lease("second", 256, 60_000, hour_ms) == []
        assert first.lease("first", 256, 60_000, hour_ms) == held
