"""A batch that the engine has given up and a PostgreSQL server still has: before the next one, or never."""

import os
import signal
import time
from contextlib import closing

import psycopg
import pytest
import trio
from trio.testing import MockClock

from cambist.config import timeouts
from cambist.config.errors import StoreUnavailable
from cambist.engine.store.postgres import postgres
from cambist.engine.store.postgres.postgres import PostgresBackend
from cambist.engine.store.postgres.postgres_pipe import Pipe
from cambist.engine.store.process import process_link
from cambist.engine.store.queries import Query
from cambist.engine.store.units import Done
from support.patience import PATIENCE_S, STORY_S, until
from support.store.store_work import operation, store_at

GIVEN_UP, NEXT = 1, 3


async def test_a_batch_that_was_given_up_comes_before_the_next_or_never(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, mock_clock: MockClock
) -> None:
    """The clock runs as ever, but for a leap once the server has the first batch."""
    mock_clock.rate = 1
    monkeypatch.setattr(process_link, "STORE_OUTCOME_S", STORY_S)
    outcomes: list[object] = []
    with psycopg.connect(postgres_url) as other:

        def waiting() -> dict[int, str]:
            """Back ends that wait for a lock, and its kind."""
            sql = (
                "SELECT pid, locktype FROM pg_locks JOIN pg_database ON oid = database "
                "WHERE datname = current_database() AND NOT granted"
            )
            return dict(other.execute(sql).fetchall())

        def next_waits() -> bool:
            """Behind the first, or in its place once the server has given that up too."""
            now = waiting()
            return "advisory" in now.values() or (bool(now) and now.keys().isdisjoint(first))

        async with store_at(postgres_url) as store:

            async def write_in_vain() -> None:
                with pytest.raises(StoreUnavailable, match="the outcome of a write is not known"):
                    await store.write(operation(GIVEN_UP))

            async def write_next() -> None:
                outcomes.append(await store.write(operation(NEXT)))

            other.execute("LOCK TABLE order_event IN EXCLUSIVE MODE")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write_in_vain)
                await until(waiting)
                first = waiting()
                mock_clock.jump(STORY_S)
            await until(lambda: not store.statistics().away)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write_next)
                await until(next_waits)
                assert outcomes == [], "what was given up is still on the server"
                other.commit()
            assert outcomes == [Done()]
            (rows,) = await store.read(Query("SELECT at_ms FROM order_event ORDER BY n", ()))
    assert [number for (number,) in rows] in ([GIVEN_UP, NEXT], [NEXT])


def test_who_hangs_in_a_batch_does_not_keep_its_shards(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sets no bound for a session that was frozen in the middle of a pipeline; a claim does."""
    monkeypatch.setattr(postgres, "STORE_STUCK_S", 0.0)
    with closing(PostgresBackend(postgres_url, lambda: 1)) as backend:
        assert len(backend.lease("frozen", 256, 1_000, 1_000)) == 256
        with psycopg.connect(postgres_url) as hung:
            hung.execute("SELECT number FROM shard WHERE number = 7 FOR SHARE")
            first = backend.lease("another", 256, 3_000, 1_000)
            assert {lease.shard for lease in first} == set(range(256)) - {7}
            deadline = time.monotonic() + PATIENCE_S
            while len(backend.lease("another", 256, 3_000, 1_000)) < 256:
                assert time.monotonic() < deadline
            with pytest.raises(psycopg.OperationalError):
                hung.execute("SELECT 1")


def test_a_silent_server_loses_the_connection(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Pipe(postgres_url)) as pipe:
        ((pid,),) = pipe.ask(b"SELECT pg_backend_pid()::bigint")
        monkeypatch.setattr(timeouts, "STORE_SILENCE_S", 0.01)
        monkeypatch.setattr(timeouts, "STORE_DOUBT_S", 0.01)
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(psycopg.OperationalError, match="the server does not answer"):
                pipe.ask(b"SELECT 1")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert pipe.closed
