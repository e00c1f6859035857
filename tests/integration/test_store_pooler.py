"""A store behind a connection pooler: refused if sessions are shared between transactions, else as usual."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest

from cambist.config.errors import ConfigError
from cambist.engine.store.postgres.postgres import PostgresBackend
from support.store.pooler import Pooler
from support.store.postgres import PostgresServer

WORDS = "store.url: a connection pooler in front of the server shares sessions between transactions"


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    url = postgres_server.empty_database()
    yield url
    postgres_server.drop(url)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("round_robin", [False, True])
@pytest.mark.parametrize("others", [0, 1, 2, 3])
def test_a_pooler_of_transactions_is_refused_before_anything_is_changed(
    empty_url: str, others: int, *, round_robin: bool, is_late: bool
) -> None:
    """Other clients have opened server connections of the pool, and are there still, one in a transaction."""
    with (
        Pooler(empty_url, "transaction", round_robin=round_robin, is_late=is_late) as pooler,
        ExitStack() as clients,
    ):
        inside = [clients.enter_context(psycopg.connect(pooler.url)) for _ in range(others)]
        for client in inside:
            client.execute("SELECT 1")
        for client in inside[1:]:
            client.rollback()
        with pytest.raises(ConfigError, match=WORDS) as refused:
            PostgresBackend(pooler.url, lambda: 5_000)
        assert "pool_mode = session" in refused.value.detail
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT to_regclass('schema_migration')").fetchone() == (None,)


def test_a_pooler_of_sessions_is_as_good_as_the_server(empty_url: str) -> None:
    with Pooler(empty_url, "session") as pooler:
        with closing(PostgresBackend(pooler.url, lambda: 5_000)) as backend:
            assert backend.attend("one", 5_000, 10_000) == ["one"]
            assert backend.apply(b"a writer's number", 1, []) == []
        with closing(PostgresBackend(pooler.url, lambda: 6_000)) as again:
            assert again.attend("two", 6_000, 10_000)
