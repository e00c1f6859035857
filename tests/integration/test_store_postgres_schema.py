"""Opening a PostgreSQL database: its tables are made once, by one of several, and are this program's."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest

from cambist.config.errors import ConfigError
from cambist.engine.store import queries
from cambist.engine.store.follower import place_of
from cambist.engine.store.migrate import migrations
from cambist.engine.store.postgres.postgres import PostgresBackend
from cambist.engine.store.postgres.postgres_connection import applied, connect, migrate, reason
from cambist.engine.store.queries import DeltaFilter
from cambist.engine.store.rows import Webhook
from cambist.engine.store.tables import DELTA_ORDER, WEBHOOK
from cambist.engine.store.units import DONE, Unit, new, row_of
from support.patience import PATIENCE_S
from support.store.postgres import PostgresServer
from support.store.store_orders import an_order, submitted

_OPEN = (
    "import sys; from cambist.engine.store.postgres.postgres import PostgresBackend; "
    "sys.stdin.read(); PostgresBackend(sys.argv[1], lambda: 7).close()"
)


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    url = postgres_server.empty_database()
    yield url
    postgres_server.drop(url)


def _opened(url: str) -> None:
    with closing(PostgresBackend(url, lambda: 7)):
        pass


def test_tables_are_made_once(empty_url: str) -> None:
    names = [f"{migration.number:04}_{migration.name}" for migration in migrations("postgres")]
    with connect(empty_url) as connection:
        assert applied(connection) == []
        assert migrate(connection, lambda: 7) == names
        assert migrate(connection, lambda: 7) == []
        assert [row.checksum for row in applied(connection)] == [
            migration.checksum for migration in migrations("postgres")
        ]
    _opened(empty_url)


def test_of_processes_that_start_together_one_makes_the_tables(empty_url: str) -> None:
    command = [sys.executable, "-c", _OPEN, empty_url]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        assert process.stdin
        process.stdin.close()
    for process in processes:
        assert process.stderr
        with process.stderr:
            assert process.stderr.read() == b""
        assert process.wait(PATIENCE_S) == 0
    with psycopg.connect(empty_url) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM schema_migration").fetchall()
        assert count == len(migrations("postgres"))
        assert connection.execute("SELECT count(*) FROM shard").fetchall() == [(256,)]


def test_a_migration_that_fails_leaves_nothing(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection:
        connection.execute("CREATE TABLE partner ()")
    with pytest.raises(ConfigError, match=r'store\.url: the database cannot be used: .*"partner" already'):
        _opened(empty_url)
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT to_regclass('delta_order')").fetchone() == (None,)
        connection.execute("DROP TABLE partner")
    _opened(empty_url)


def test_a_migration_that_was_changed_is_refused(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE schema_migration SET checksum = 'abcdef' WHERE number = 1")
    with pytest.raises(ConfigError, match="migration 0001 initial was applied with another text"):
        _opened(postgres_url)


def test_a_newer_database_is_refused(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO schema_migration VALUES (9999, 'later', 'x', 1)")
    with pytest.raises(ConfigError, match="newer than this program: it has migration 9999 later"):
        _opened(postgres_url)


def test_a_role_that_may_not_make_tables_opens_what_is_there(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    role = "cambist_runtime"
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}".encode())
    _opened(postgres_url.replace("//postgres@", f"//{role}@"))
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"DROP OWNED BY {role}".encode())
        connection.execute(f"DROP ROLE {role}".encode())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: url.replace("//postgres@", "//nobody:geheim@"), 'role "nobody" does not exist'),
        (lambda url: url + "_missing", "does not exist"),
        (lambda url: "postgresql://u:geheim@127.0.0.1:1/x", "refused"),
        (lambda url: "postgresql://u:geheim@127.0.0.1:port/x", "the port is not a number"),
        (lambda url: "postgresql://u:ge/heim@127.0.0.1/x", "failed to resolve host"),
        (lambda url: "postgresql://u:geheim@127.0.0.1:5/x?no_such=1", "not one of PostgreSQL"),
        (lambda url: "postgresql://u:geheim@no-such-host.invalid/x", "no-such-host.invalid"),
    ],
    ids=["role", "database", "port", "number", "slash", "option", "host"],
)
def test_what_cannot_be_opened_says_why_on_one_line_without_the_password(
    postgres_url: str, change: Callable[[str], str], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        _opened(change(postgres_url))
    text = str(caught.value)
    assert text.startswith("store.url: the database cannot be used: ")
    assert said in text
    assert "\n" not in text
    assert "geheim" not in text
    assert '"ge"' not in text
    assert caught.value.__cause__ is None


def test_a_password_in_what_the_server_says_is_not_repeated() -> None:
    url = "postgresql://u:geheim@127.0.0.1/x"
    assert reason(url, psycopg.OperationalError("it was geheim\nmore")) == "it was ***"


@pytest.mark.parametrize(
    ("password", "said", "told"),
    [
        ("on", "connection refused on port 5432: on", "connection refused *** port 5432: ***"),
        ("in", "invalid line: postgresql://u:in@host", "invalid line: postgresql://u:***@host"),
        ("p@ss", "got u:p@ss and u:p%40ss", "got u:*** and u:***"),
        ("!x", "got u!x, u:!x@h and !xy", "got u***, u:***@h and !xy"),
    ],
)
def test_words_that_contain_a_short_password_stay_whole(password: str, said: str, told: str) -> None:
    url = f"postgresql://u:{quote(password, safe='')}@127.0.0.1/x"
    assert reason(url, psycopg.OperationalError(said)) == told


def test_without_the_extra_the_error_names_it(postgres_url: str) -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from cambist.engine.store.postgres.postgres import PostgresBackend\n"
        "from cambist.config.errors import ConfigError\n"
        "try: PostgresBackend(sys.argv[1], lambda: 7)\n"
        "except ConfigError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, postgres_url], capture_output=True, text=True, check=True
    )
    assert 'store.url: PostgreSQL needs psycopg: pip install "cambist[postgres]"' in done.stdout


def test_commits_are_durable_whatever_the_role_says(postgres_url: str) -> None:
    for asked, got in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {asked}".encode())
        with connect(postgres_url) as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == (got,)


def test_what_was_restored_from_another_server_is_followed_at_once(empty_url: str) -> None:
    """Transaction numbers of the other server lie ahead of this one's."""
    order, ahead = an_order(), 1 << 40
    with closing(PostgresBackend(empty_url, lambda: 7)) as backend:
        hook = Webhook("acme", 7, 1, f"{ahead:016x}{1:016x}", 7)
        assert backend.apply(bytes(16), 1, [submitted(order), Unit((new(WEBHOOK, hook),))]) == [DONE] * 2
    with psycopg.connect(empty_url) as connection:
        for table in ("order_event", "delta_order"):
            connection.execute(f"UPDATE {table} SET tx = '{ahead}'::xid8".encode())
    with closing(PostgresBackend(empty_url, lambda: 7)) as backend:
        ((event,),) = backend.read([queries.events_after((0, 0), 10)])
        assert event[3] == order.order_hash
        ((kept,),) = backend.read([queries.by(WEBHOOK, "acme")])
        place = place_of(row_of(WEBHOOK, kept).token)
        assert place == event[:2]
        assert backend.read([queries.events_after(place, 10)]) == [[]]
        (((as_of,),),) = backend.read([queries.as_of_now(DELTA_ORDER)])
        assert backend.apply(bytes(16), 2, [submitted(an_order())]) == [DONE]
        _, ((total,),) = backend.read(queries.delta_page(DeltaFilter(), 10, 0, as_of))
        assert total == 1
        ((event,),) = backend.read([queries.events_after(place, 10)])
        assert event[1] > place[1]
    with closing(PostgresBackend(empty_url, lambda: 7)) as backend:
        ((kept,),) = backend.read([queries.by(WEBHOOK, "acme")])
        assert place_of(row_of(WEBHOOK, kept).token) == place
