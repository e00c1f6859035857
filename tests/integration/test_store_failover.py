"""A primary that dies or hangs, and a standby that is promoted: writes go on, and none that counted is lost.

The standby is synchronous, as docs/guides/store.md asks for. The primary never comes back as one: fencing is
the operator's.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
import trio

from cambist.config.errors import ConfigError
from cambist.engine.store.postgres.postgres import PostgresBackend
from cambist.engine.store.queries import by
from cambist.engine.store.tables import DELTA_ORDER
from cambist.engine.store.units import DONE
from support.patience import PATIENCE_S, found_in_time, until
from support.store.postgres import PostgresServer, running_postgres
from support.store.store_orders import an_order, submitted
from support.store.store_work import Load, store_at, written

pytestmark = [pytest.mark.process, pytest.mark.seldom]
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
WRITER = b"one writer's id."
SOME = 500


def both(*urls: str) -> str:
    """URL of one database on several servers, the first one first."""
    first = urlsplit(urls[0])
    hosts = ",".join(f"{parts.hostname}:{parts.port}" for parts in map(urlsplit, urls))
    return f"postgresql://{first.username}@{hosts}{first.path}"


@contextmanager
def replicated() -> Iterator[tuple[PostgresServer, PostgresServer, str]]:
    """Primary, synchronous standby, and the URL of a migrated database on both."""
    with running_postgres() as primary:
        url = primary.migrated_database()
        with running_postgres(primary=primary) as standby:
            synchronous(primary)
            path = urlsplit(url).path.lstrip("/")
            yield primary, standby, both(url, standby.url(path))


def synchronous(primary: PostgresServer) -> None:
    """Make the primary wait with each commit for its standby, and return once it does."""
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        found_in_time(
            lambda: connection.execute("SELECT sync_state FROM pg_stat_replication").fetchall(),
            lambda states: states == [("sync",)],
        )


def test_the_server_that_takes_writes_is_found_wherever_it_stands() -> None:
    order = an_order()
    with replicated() as (primary, standby, url):
        hosts = url.split("@")[1].split("/")[0].split(",")
        turned = url.replace(",".join(hosts), ",".join(reversed(hosts)))
        for place in (url, turned):
            with closing(PostgresBackend(place, lambda: 0)) as backend:
                assert backend.read([by(DELTA_ORDER, order.order_hash)]) == [[]]
        with closing(PostgresBackend(turned, lambda: 0)) as backend:
            assert backend.apply(WRITER, 1, [submitted(order)]) == [DONE]
        primary.stop("immediate")
        with pytest.raises(ConfigError, match=r"session is read-only|hot standby"):
            PostgresBackend(url, lambda: 0)
        standby.promote()
        with closing(PostgresBackend(url, lambda: 0)) as backend:
            assert len(backend.read([by(DELTA_ORDER, order.order_hash)])[0]) == 1


def test_a_hanging_primary_keeps_nobody_who_comes_later() -> None:
    """libpq alone would wait for it before it dials the next host."""
    with replicated() as (primary, standby, url), primary.frozen():
        standby.promote()
        for _ in range(3):
            with closing(PostgresBackend(url, lambda: 0)) as backend:
                assert backend.apply(WRITER, 1, [submitted(an_order())]) == [DONE]


async def test_writes_and_reads_under_way_leave_a_hanging_primary_for_its_successor() -> None:
    """Well before the bound of a silent server, which is as long as any statement may take."""
    order, late = an_order(), an_order()
    with replicated() as (primary, standby, url), ExitStack() as stack:
        backend = stack.enter_context(closing(PostgresBackend(url, lambda: 0)))
        assert backend.apply(WRITER, 1, [submitted(order)]) == [DONE]
        assert len(backend.read([by(DELTA_ORDER, order.order_hash)])[0]) == 1
        stack.enter_context(primary.frozen())
        done: list[object] = []

        async def write() -> None:
            done.append(await trio.to_thread.run_sync(backend.apply, WRITER, 2, [submitted(late)]))

        async def read() -> None:
            done.append(await trio.to_thread.run_sync(backend.read, [by(DELTA_ORDER, order.order_hash)]))

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                nursery.start_soon(read)
                await trio.to_thread.run_sync(standby.promote)
        assert [DONE] in done
        assert len(backend.read([by(DELTA_ORDER, late.order_hash)])[0]) == 1


def test_a_slow_statement_of_a_server_that_answers_others_is_waited_for() -> None:
    """The server that takes writes is the same one: nothing is gained by leaving it."""
    with replicated() as (primary, _, url), closing(PostgresBackend(url, lambda: 0)) as backend:
        assert backend.apply(WRITER, 1, [submitted(an_order())]) == [DONE]
        pids = _sessions(primary)
        with psycopg.connect(primary.url(urlsplit(url).path.lstrip("/"))) as other:
            other.execute("LOCK TABLE delta_order IN EXCLUSIVE MODE")
            done: list[object] = []

            async def story() -> None:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_applied, backend, done)
                    await until(lambda: _waiting(other) >= 3)
                    other.commit()

            trio.run(story)
        assert done == [[DONE]]
        assert pids <= _sessions(primary)


async def _applied(backend: PostgresBackend, done: list[object]) -> None:
    done.append(await trio.to_thread.run_sync(backend.apply, WRITER, 2, [submitted(an_order())]))


def _sessions(server: PostgresServer) -> set[int]:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'cambist' AND pid <> pg_backend_pid()"
        )
        return {pid for (pid,) in rows}


def _waiting(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    """Whole seconds for which a statement has waited for a lock."""
    ((waited,),) = connection.execute(
        "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - query_start))::int, 0) "
        "FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    )
    assert isinstance(waited, int)
    return waited


@pytest.mark.parametrize("end", ["killed", "frozen"] * ROUNDS)
async def test_no_acknowledged_write_is_lost_in_a_failover(end: str) -> None:
    """The rehearsal of docs/guides/store.md: a store under load, and its primary dies or hangs."""
    load = Load()
    with replicated() as (primary, standby, url), ExitStack() as stack:
        async with store_at(url) as store, trio.open_nursery() as nursery:
            nursery.start_soon(load.run, store)
            await until(lambda: len(load.acknowledged) > SOME)
            if end == "killed":
                primary.stop("immediate")
            else:
                stack.enter_context(primary.frozen())
            await trio.to_thread.run_sync(standby.promote)
            before = len(load.acknowledged)
            await until(lambda: len(load.acknowledged) > before + SOME)
            load.stopped = True
        async with store_at(standby.url(urlsplit(url).path.lstrip("/"))) as store:
            kept = await written(store)
    assert load.acknowledged <= kept <= load.acknowledged | load.refused
