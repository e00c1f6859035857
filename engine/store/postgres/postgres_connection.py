"""Connections to a PostgreSQL server: opening, classification of errors, schema migration.

psycopg is imported only when it is needed, so that a venue on SQLite runs without it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload
from urllib.parse import quote

from ....config import timeouts
from ....config.errors import ConfigError, StoreError, StoreUnavailable
from ..migrate import AppliedMigration, migrations, pending
from .postgres_hosts import C, by_host, first_opened

if TYPE_CHECKING:
    import psycopg

    from .postgres_attentive import AttentiveConnection

    Connection = psycopg.Connection[tuple[Any, ...]]
    K = TypeVar("K", bound=Connection)

VERSION_MIN = 14
_COUNTED = ("order_event", "delta_order", "otc_order")
_OLD_TX = 3  # the first ordinary transaction of any server
_MIGRATE_LOCK = 0x63616D62697374  # "cambist"
_XID8 = 5069
_SETTINGS = f"""
SELECT set_config('synchronous_commit', 'on', FALSE)
    WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
SET statement_timeout = {timeouts.STORE_STATEMENT_S * 1_000:.0f};
SET idle_in_transaction_session_timeout = {timeouts.STORE_STUCK_S * 1_000:.0f};
"""
"""SQL for a session's settings. A database role may demand more than durable commits (`remote_apply`), but
not less.
"""


_OTHERS, _LOOKS = 2, 3  # connections beside the first one, and looks at the session of the first one
_SHARED = (
    "a connection pooler in front of the server shares sessions between transactions, and the store needs "
    "sessions of its own, for locks, settings and notices: set pool_mode = session, or name the server itself"
)

Meaning = Literal["lost", "again", "poison", "away", "bug"]
"""Consequence of a database error. lost: the connection is lost; again: a conflict, so retry; poison: one
unit is at fault; away: the database cannot be used now; bug: this program's fault.
"""

_BY_CLASS: dict[str, Meaning] = {
    "08": "lost",  # connection
    "21": "poison",  # cardinality
    "22": "poison",  # data
    "23": "poison",  # integrity
    "40": "again",  # deadlock, serialisation
    "53": "away",  # disk full, out of memory, too many connections
    "54": "poison",  # too large for an index
    "57": "lost",  # shut down, crashed, starting
    "58": "away",  # input and output of the server
}
_BY_STATE: dict[str, Meaning] = {
    "0A000": "lost",  # a standby: a new connection may reach the server that writes
    "25006": "lost",  # read-only
    "25P03": "lost",  # idle in a transaction
    "55P03": "away",  # lock
    "57014": "away",  # statement time-out
}


class Reconnecting(Generic[C]):
    """A database connection that opens at first use, and reopens after it was lost.

    Args:
        url: URL of the database.
        opened: function that opens a connection to the URL.
    """

    def __init__(self, url: str, opened: Callable[[str], C]) -> None:
        self._url = url
        self._opened = opened
        self._connection: C | None = None
        self._is_old = False

    def open(self) -> C:
        """Return the database connection, after opening one if none is open.

        Raises:
            StoreUnavailable: the server cannot be reached.
        """
        driver = load_driver()
        if self._connection is None or not self.is_open:
            self.close()
            self._is_old = False
            try:
                self._connection = self._opened(self._url)
            except driver.Error as error:
                said = reason(self._url, error)
                raise StoreUnavailable(f"the database cannot be reached: {said}", retry_after_s=5) from None
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as is known, and is to be used on."""
        return self._connection is not None and not self._connection.closed and not self._is_old

    def renew(self) -> None:
        """Make the next `open` open another connection; callable from any thread."""
        self._is_old = True

    def close(self) -> None:
        """Close the connection, if open; the server rolls back an open transaction."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def load_driver() -> Any:
    """Import and return psycopg. Raises ConfigError if psycopg is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise ConfigError(
            "store.url", f'PostgreSQL needs psycopg: pip install "cambist[postgres]" ({error})'
        ) from None
    return psycopg


@overload
def connect(url: str) -> Connection: ...
@overload
def connect(url: str, kind: type[K]) -> K: ...
def connect(url: str, kind: type[Any] | None = None) -> Any:
    """Open a connection in autocommit mode, with durable commits and time limits for connect and statements.

    If the URL names several hosts, all are dialled at once, and the first that takes writes is used.

    Args:
        kind: class of the connection; None for psycopg's own.
    """
    driver = load_driver()
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # its warnings repeat an error that is raised
    hosts = by_host(driver.conninfo.conninfo_to_dict(url))
    dial_s = timeouts.STORE_DIAL_S if len(hosts) == 1 else timeouts.STORE_DIAL_SEVERAL_S
    openers = [partial(_opened, host, kind or driver.Connection, dial_s) for host in hosts]
    if len(openers) == 1:
        return openers[0]()
    try:
        return first_opened(openers)
    except ExceptionGroup as group:
        other = next((error for error in group.exceptions if not isinstance(error, driver.Error)), None)
        if other is not None:  # a bug, and no server's answer
            raise other from None
        said = "; ".join(dict.fromkeys(reason(url, error) for error in group.exceptions))
        raise driver.OperationalError(said) from None


def _opened(given: dict[str, Any], kind: type[Any], dial_s: float) -> Connection:
    defaults = {
        "connect_timeout": f"{dial_s:.0f}",
        "application_name": "cambist",
        "tcp_user_timeout": f"{timeouts.STORE_STATEMENT_S * 1_000:.0f}",
        "keepalives_idle": "5",
        "keepalives_interval": "2",
        "keepalives_count": "3",
    }  # what the operator's URL leaves open
    opener: Any = kind
    connection: Connection = opener.connect(
        "", autocommit=True, **(defaults | given | {"client_encoding": "UTF8"})
    )
    try:
        _adapt(connection)
        connection.execute(_SETTINGS.encode())
    except BaseException:
        connection.close()
        raise
    return connection


def connect_attentively(url: str) -> AttentiveConnection:
    """Open a connection that is given up when its server is silent, as `connect` does.

    If the URL names several hosts, the connection looks for another server that takes writes meanwhile.
    """
    driver = load_driver()
    from .postgres_attentive import AttentiveConnection

    connection = connect(url, AttentiveConnection)
    if len(by_host(driver.conninfo.conninfo_to_dict(url))) > 1:
        # Only now: a connection that is being opened, as that of a look for another server, looks for none.
        try:
            connection.look_elsewhere(partial(_takes_writes_elsewhere, url, _began(connection)))
        except BaseException:
            connection.close()
            raise
    return connection


def _takes_writes_elsewhere(url: str, began: str) -> bool:
    """Whether a server of a URL takes writes that did not start at `began`; False if none answers."""
    from .postgres_attentive import AttentiveConnection

    try:
        with connect(url, AttentiveConnection) as other:
            return _began(other) != began
    except load_driver().Error:
        return False


def _began(connection: Connection) -> str:
    """Return the start time of a connection's server, which tells servers apart, also behind poolers."""
    ((began,),) = connection.execute("SELECT pg_postmaster_start_time()::text", prepare=False).fetchall()
    return str(began)


def open_migrated(url: str, now_ms: Callable[[], int]) -> None:
    """Check that the PostgreSQL database can be used, and apply the missing migrations.

    Raises:
        ConfigError: the database cannot be reached, a pooler shares its sessions, or its tables are not this
            program's.
    """
    driver = load_driver()
    try:
        with connect(url) as connection:
            if connection.info.server_version < VERSION_MIN * 10_000:
                found = connection.info.server_version // 10_000
                raise ConfigError("store.url", f"PostgreSQL {VERSION_MIN} or newer is needed, got {found}")
            if _is_shared(url, connection):
                raise ConfigError("store.url", _SHARED)
            migrate(connection, now_ms)
            _take_over(connection)
    except driver.Error as error:
        raise ConfigError("store.url", f"the database cannot be used: {reason(url, error)}") from None


def _is_shared(url: str, connection: Connection) -> bool:
    """Whether connections to a URL share the server's sessions, as through a pooler of transactions.

    A server gives each connection a session of its own, for as long as it is open. A pooler gives a
    transaction the session that came back last, so that another connection gets the first one's session, or
    the session that came back first, so that one connection gets several.
    """
    first = _session(connection)

    def is_another() -> bool:
        return any(_session(connection) != first for _ in range(_LOOKS))

    if is_another():
        return True
    with ExitStack() as others:
        for _ in range(_OTHERS):
            other = others.enter_context(connect(url))
            # The transaction stays open, which leaves another session for the next connection. One connection
            # would not do: a pooler of several threads may answer `connection` before the session is back.
            others.enter_context(other.transaction())
            if _session(other) == first:
                return True
        return is_another()  # as if another client of a pooler holds the first session


def _session(connection: Connection) -> int:
    """Return the process id of the server's session that executes a connection's statements now."""
    ((pid,),) = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchall()
    return int(pid)


def migrate(connection: Connection, now_ms: Callable[[], int]) -> list[str]:
    """Apply each missing migration in a transaction of its own, and return the names of these migrations.

    If two processes migrate at once, the second process waits and then finds no migration missing.

    Raises:
        ConfigError: the migrations applied before are not this program's (`migrate.pending`).
    """
    known = migrations("postgres")
    names: list[str] = []
    connection.execute("SET statement_timeout = 0")  # a migration may rewrite a large table
    while pending(known, applied(connection)):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATE_LOCK,))
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_migration (number bigint PRIMARY KEY, name text NOT NULL, "
                "checksum text NOT NULL, applied_ms bigint NOT NULL)"
            )
            # Asked again, now under the lock: another process may have applied the migration meanwhile.
            left = pending(known, applied(connection))
            if left:
                migration = left[0]
                connection.execute(migration.sql.encode())
                connection.execute(
                    "INSERT INTO schema_migration VALUES (%s, %s, %s, %s)",
                    (migration.number, migration.name, migration.checksum, now_ms()),
                )
                names.append(f"{migration.number:04}_{migration.name}")
    return names


def _take_over(connection: Connection) -> None:
    """Lower stored transaction numbers that are above this server's current one, as after a restore from
    another server.

    Without the change, followers of events would wait until this server's transactions reach the stored
    numbers. Resume tokens of webhooks (`webhook.token`) are lowered too.
    """
    ahead = "tx >= pg_snapshot_xmax(pg_current_snapshot())"
    if connection.execute(f"SELECT 1 FROM order_event WHERE {ahead} LIMIT 1".encode()).fetchone():
        with connection.transaction():
            for table in _COUNTED:
                connection.execute(f"UPDATE {table} SET tx = '{_OLD_TX}'::xid8 WHERE {ahead}".encode())
    here = "lpad(to_hex(pg_snapshot_xmax(pg_current_snapshot())::text::bigint), 16, '0')"
    if connection.execute(f"SELECT 1 FROM webhook WHERE token > {here} LIMIT 1".encode()).fetchone():
        old = f"'{_OLD_TX:016x}' || substr(token, 17)"
        connection.execute(f"UPDATE webhook SET token = {old} WHERE token > {here}".encode())


def applied(connection: Connection) -> list[AppliedMigration]:
    """List the migrations that the database has; empty for a new database."""
    there = connection.execute("SELECT to_regclass('schema_migration')").fetchone()
    if there is None or there[0] is None:
        return []
    rows = connection.execute("SELECT number, name, checksum FROM schema_migration ORDER BY number")
    return [AppliedMigration(number, name, checksum) for number, name, checksum in rows]


def meaning(error: Exception) -> Meaning:
    """Classify a psycopg error: lost connection, conflict to retry, faulty unit of changes, database
    unavailable, or bug of this program.
    """
    driver = load_driver()
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], "bug")
    if isinstance(error, driver.OperationalError | driver.InterfaceError):
        return "lost"
    return "poison" if isinstance(error, driver.DataError) else "bug"


def translated(url: str, error: Exception) -> StoreError:
    """Convert a psycopg error to a StoreError; to StoreUnavailable if a later try may succeed."""
    said = reason(url, error)
    if meaning(error) in ("lost", "again", "away"):
        return StoreUnavailable(f"the database cannot be used: {said}", retry_after_s=5)
    return StoreError(f"the database failed: {said}")


def reason(url: str, error: Exception) -> str:
    """Describe a database error in one line for messages, with the URL's password removed."""
    driver = load_driver()
    try:
        password = driver.conninfo.conninfo_to_dict(url).get("password")
    except driver.Error:
        return "the URL is not one of PostgreSQL"
    if 'for connection option "port"' in str(error):  # the text may show the start of a password
        return "the port is not a number; a password's / : @ are written %2F %3A %40"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    said = re.sub(r"\s+", " ", lines[0])
    return _masked(said, str(password)) if password else said


def _masked(text: str, password: str) -> str:
    """Replace a password in a text, also as a URL writes it, by `***`.

    Words that merely contain the password stay: `on` would otherwise take its letters out of `connection`.
    """
    for written in {password, quote(password, safe="")}:
        start = r"(?<!\w)" if written[0].isalnum() else ""
        end = r"(?!\w)" if written[-1].isalnum() else ""
        text = re.sub(f"{start}{re.escape(written)}{end}", "***", text)
    return text


def _adapt(connection: Connection) -> None:
    """Make the connection read `xid8` values, transaction numbers, as integers."""
    from psycopg.types.numeric import Int8BinaryLoader, IntLoader

    connection.adapters.register_loader(_XID8, IntLoader)
    connection.adapters.register_loader(_XID8, Int8BinaryLoader)
