"""The engine's link to a store process: starts the process, sends requests, and restarts it when it dies.

    start --> open --> serve --> lost --> pause (grows, jittered) --> start
                |                  \\--> until a process serves: StoreUnavailable for queued and new writes
                '--> the first process cannot open the database: `run` raises

The batch in flight when the process dies is sent again to the next process, under the same number: a writer's
last batch is never applied twice (`Backend.apply`). If a batch has no outcome after STORE_OUTCOME_S, its
waiting tasks get an error: the outcome is unknown. A process that does not answer at all is killed.

The engine reads SQLite itself, through a read-only connection, which is faster than asking the process.

The store process starts with IGNORED_SIGNALS blocked, so that a signal to all processes cannot end it before
its own code ignores these signals.

Source: ARCHITECTURE.md, "Store process", "Databases".
"""

import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import structlog
import trio
from msgspec import Raw

from ....config.errors import ConfigError, StoreError, StoreUnavailable
from ....config.timeouts import (
    PROCESS_STEADY_S,
    STORE_END_S,
    STORE_OPEN_S,
    STORE_OUTCOME_S,
    STORE_PAUSE_S,
    STORE_PAUSE_S_MAX,
    STORE_READ_S,
)
from ..backend import Lease
from ..queries import Query
from ..sqlite.sqlite import inode_of, open_for_reading, read
from ..store import Store
from ..units import Unit, UnitOutcome
from .frames import (
    Applied,
    Attend,
    Attended,
    Claim,
    LeasesClaimed,
    Opened,
    Prune,
    Pruned,
    Read,
    Release,
    Released,
    Rows,
    StoreAnswer,
    batch_frames,
    frame,
    opening,
    prepared,
)
from .line import LineLost, ProcessLine
from .place import PostgresPlace, SqlitePlace, StorePlace
from .process import IGNORED_SIGNALS

_MODULE = f"{__package__}.process"
_HIDDEN = "PGPASSWORD"
_KEPT = frozenset(
    {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"}
)
_KEPT_PREFIXES = ("PG", "PYTHON", "LC_", "COVERAGE")
_DOUBLINGS_MAX = 30
_AWAY = "the store is away: {}"
_ENDED = "the store process ended"
_UNKNOWN = "the outcome of a write is not known; submitting it again is safe"
_TIMED_OUT = f"the store did not answer within {STORE_OUTCOME_S:g} s"

_log = structlog.get_logger("cambist.store")

A = TypeVar("A", bound=StoreAnswer)


class ProcessLink:
    """Implementation of `Link` over a store process. `run` starts and restarts the process.

    Args:
        place: the database.
        writer: 16 bytes that identify this engine's run among all writers to the database.
        jitter: function that returns a random number from 0 to 1, to vary the back-off before a restart.
        environ: environment of the engine; the process gets the variables that Python and the database
            driver need.
    """

    def __init__(
        self, place: StorePlace, writer: bytes, jitter: Callable[[], float], environ: Mapping[str, str]
    ) -> None:
        self._place = place
        self._writer = writer
        self._jitter = jitter
        url = place.url if isinstance(place, PostgresPlace) else ""
        self._environ = {
            name: value
            for name, value in environ.items()
            if (name in _KEPT or (name.startswith(_KEPT_PREFIXES) and name != _HIDDEN)) and value != url
        }
        self._opened_by = frame(opening(place, environ.get(_HIDDEN, "")))
        self._store: Store | None = None
        self._process: _Process | None = None
        self._serves = trio.Event()
        self._away = _AWAY.format(_ENDED)
        self._file: sqlite3.Connection | None = None
        self._inode = 0

    # --- The link -------------------------------------------------------------------------------------

    def prepare(self, unit: Unit) -> Raw:
        """Encode a unit (an atomic group of changes) as msgpack. StoreError if the unit is too large."""
        return prepared(unit)

    async def apply(self, number: int, units: Sequence[Raw]) -> list[UnitOutcome]:
        """Write batch `number` of units of changes. See `Backend.apply`.

        If the store process dies, the next process gets the same batch again, until STORE_OUTCOME_S seconds
        have passed since the call.
        """
        frames = batch_frames(self._writer, number, units)
        tries = 0
        with trio.move_on_after(STORE_OUTCOME_S):
            while True:
                await self._serves.wait()
                tries += 1
                try:
                    return (await self._line().ask(Applied, *frames)).outcomes
                except LineLost:
                    continue
                except StoreUnavailable as error:
                    if tries == 1:
                        raise
                    raise StoreUnavailable(f"{_UNKNOWN}: {error.detail}", error.retry_after_s) from None
        self._give_up()
        raise StoreUnavailable(f"{_UNKNOWN}: {_TIMED_OUT}")

    async def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query, all read from one committed state. See `Backend.read`."""
        if self._file is not None:
            await trio.lowlevel.checkpoint()
            return read(self._file, queries)
        with trio.move_on_after(STORE_READ_S):
            try:
                return (await self._line(reading=True).ask(Rows, frame(Read(list(queries))))).rows
            except LineLost:
                raise StoreUnavailable(self._away) from None
        raise StoreUnavailable(f"the store did not answer a read within {STORE_READ_S:g} s")

    async def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Record that an engine (`holder`) is alive. See `Backend.attend`."""
        return (await self._ask(Attended, Attend(holder, now_ms, life_ms))).holders

    async def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew an engine's shard leases and claim free shards. See `Backend.lease`."""
        return (await self._ask(LeasesClaimed, Claim(holder, count, now_ms, life_ms))).leases

    async def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Release an engine's shards, so that other engines can claim them. See `Backend.release`."""
        await self._ask(Released, Release(holder, None if shards is None else list(shards)))

    async def prune(self, before_ms: int, count_max: int) -> int:
        """Delete final orders, old events and expired routes. See `Backend.prune`."""
        return (await self._ask(Pruned, Prune(before_ms, count_max))).count

    async def _ask(self, kind: type[A], request: Attend | Claim | Release | Prune) -> A:
        """Send a request to the store process once, without a retry, and return the answer.

        If the answer is lost, the request may have taken effect all the same.
        """
        with trio.move_on_after(STORE_OUTCOME_S):
            try:
                return await self._line().ask(kind, frame(request))
            except LineLost:
                raise StoreUnavailable(self._away) from None
        self._give_up()
        raise StoreUnavailable(_TIMED_OUT)

    def _line(self, *, reading: bool = False) -> ProcessLine:
        process = self._process
        line = None if process is None else process.reads if reading else process.work
        if line is None:
            raise LineLost
        return line

    def _give_up(self) -> None:
        """Kill a store process that did not answer in time."""
        if self._process is not None:
            self._process.scope.cancel()
            self._lose(_TIMED_OUT)

    # --- The process ----------------------------------------------------------------------------------

    async def run(
        self, store: Store, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep a store process running until cancelled, and restart it after a failure.

        On cancellation the process first executes all requests that it has received, and then ends.

        Raises:
            ConfigError, StoreError: the first process cannot open the database.
        """
        self._store, failures, is_first = store, 0, True
        with ExitStack() as at_end:

            def serves(process: "_Process") -> None:
                nonlocal is_first
                if is_first:  # the process has created and migrated the file: this engine can read it now
                    if isinstance(self._place, SqlitePlace):
                        self._file = at_end.enter_context(_reading(self._place.path))
                        self._inode = inode_of(self._place.path)
                    is_first = False
                    task_status.started()
                self._process = process
                self._away = _AWAY.format(_ENDED)  # for tasks that notice the end before `_lost`
                self._serves.set()
                store.recover()

            while True:
                began = trio.current_time()
                try:
                    self._check_file()
                    process = _Process(self._place, self._environ, self._opened_by, store.announce)
                    await process.run(serves, self._lost)
                except (ConfigError, StoreError) as error:
                    # Later starts are tried for ever: meanwhile the engine's writers get StoreUnavailable.
                    if is_first:
                        raise
                    self._lose(error.detail)
                # A process that served for long ends the row of failures: the pauses begin anew.
                failures = 1 if trio.current_time() - began >= PROCESS_STEADY_S else failures + 1
                _log.error("the store is away", reason=self._away, in_a_row=failures)
                await trio.sleep(pause_s(failures, self._jitter()))

    def _check_file(self) -> None:
        """Raise StoreUnavailable if the SQLite file is no longer the file that this engine first opened.

        A replaced file lacks writes that the store reported as durable.
        """
        if isinstance(self._place, SqlitePlace) and self._inode not in (0, inode_of(self._place.path)):
            raise StoreUnavailable(f"{self._place.path.name} was removed or replaced while it was in use")

    def _lost(self) -> None:
        if self._process is not None:
            self._lose(_ENDED)

    def _lose(self, reason: str) -> None:
        self._away = _AWAY.format(reason)
        if self._process is not None:
            self._process = None
            self._serves = trio.Event()
        if self._store is not None:
            self._store.lose(StoreUnavailable(self._away))


def pause_s(failures: int, jitter: float) -> float:
    """Compute the back-off, in seconds, before the next start of the store process.

    The back-off doubles with each failure, up to STORE_PAUSE_S_MAX, and is then multiplied by 0.5 to 1.

    Args:
        failures: number of store processes that failed in a row, at least 1.
        jitter: random number from 0 (a factor of 0.5) to 1 (a factor of 1).
    """
    longest_s = min(STORE_PAUSE_S * (1 << min(failures - 1, _DOUBLINGS_MAX)), STORE_PAUSE_S_MAX)
    return longest_s * (1 + jitter) / 2


class _Process:
    """A store process, from its start to its end.

    Attributes:
        work: connection to the process for requests that write.
        reads: connection for reads; None for SQLite, since the engine reads the file itself.
        scope: cancel scope; cancelling it kills the process.
    """

    def __init__(
        self, place: StorePlace, environ: Mapping[str, str], opened_by: bytes, announce: Callable[[], None]
    ) -> None:
        self._opened_by = opened_by
        self._environ = environ
        count = 2 if isinstance(place, PostgresPlace) else 1
        self._pairs = [socket.socketpair() for _ in range(count)]
        for ours, _ in self._pairs:
            ours.settimeout(0)
        self._lines = [ProcessLine(ours, announce) for ours, _ in self._pairs]
        self.work = self._lines[0]
        self.reads = self._lines[1] if count == 2 else None
        self.scope = trio.CancelScope()

    async def run(self, opened: Callable[["_Process"], None], lost: Callable[[], None]) -> None:
        """Start the process, open the database, and serve until the process dies or hangs.

        Args:
            opened: called with this process once the database is open.
            lost: called as soon as the process stops serving.

        Raises:
            ConfigError, StoreError: the database could not be opened, or the process not started.
        """
        popen = await self._start()
        try:
            failure = await self._serve(opened)
            if failure is not None:
                raise failure
            lost()
            popen.kill()
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(_await_end, popen)

    async def _start(self) -> subprocess.Popen[bytes]:
        theirs = [their for _, their in self._pairs]
        try:
            return await trio.to_thread.run_sync(_spawn, [their.fileno() for their in theirs], self._environ)
        except BaseException as error:
            for ours, _ in self._pairs:
                ours.close()
            if isinstance(error, OSError):
                raise StoreUnavailable(f"no process could be started: {error.strerror}") from None
            raise
        finally:
            for their in theirs:
                their.close()

    async def _serve(self, opened: Callable[["_Process"], None]) -> ConfigError | StoreError | None:
        """Pass requests to the store process until the process dies.

        Returns:
            The error of a process that could not open the database; else None.
        """
        failure: ConfigError | StoreError | None = None
        with self.scope:
            async with trio.open_nursery() as nursery:
                for line in self._lines:
                    nursery.start_soon(self._listen, line)
                failure = await self._open(opened)
                if failure is not None:
                    self.scope.cancel()
        return failure

    async def _listen(self, line: ProcessLine) -> None:
        await line.run()
        self.scope.cancel()

    async def _open(self, opened: Callable[["_Process"], None]) -> ConfigError | StoreError | None:
        with trio.move_on_after(STORE_OPEN_S):
            try:
                await self.work.ask(Opened, self._opened_by)
                opened(self)
            except LineLost:
                return StoreUnavailable("the store process ended before its database was open")
            except (ConfigError, StoreError) as error:
                return error
            return None
        return StoreUnavailable(f"the database was not open after {STORE_OPEN_S:g} s")


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        connection = open_for_reading(path)
    except sqlite3.Error as error:
        raise ConfigError("store.url", f"{path} cannot be read: {error}") from None
    with closing(connection):
        yield connection


def _spawn(descriptors: Sequence[int], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a store process without secrets in its arguments or environment, and with IGNORED_SIGNALS
    blocked.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED_SIGNALS)
    try:
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", _MODULE, *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environ,
            pass_fds=descriptors,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _await_end(popen: subprocess.Popen[bytes]) -> None:
    """Wait for a store process to end after its socket was closed; kill it after STORE_END_S seconds."""
    try:
        popen.wait(STORE_END_S)
    except subprocess.TimeoutExpired:
        _log.error("the store process is killed: it did not end", pid=popen.pid, after_s=STORE_END_S)
        popen.kill()
        try:
            popen.wait(STORE_END_S)
        except subprocess.TimeoutExpired:
            _log.error("the store process cannot be killed: its disk hangs", pid=popen.pid)
