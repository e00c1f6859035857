"""The store process: `python -m cambist.engine.store.process.process DESCRIPTOR [DESCRIPTOR]`.

The process owns the database. It answers its engine over inherited sockets (`frames`), one request after the
other, and blocks meanwhile: the engine's loop never waits for a write, and no write waits for a busy loop.

    first socket     Open, then batches and all other requests that write
    second socket    PostgreSQL only: reads, and Announce once events are committed; threads of their own, so
                     that a read never waits behind a batch

The process ends when the engine closes the first socket: batches received whole by then are still written.
The process ignores SIGINT, SIGTERM and SIGHUP, so that a signal to all processes at once lets the engine
drain first. Its arguments and environment hold no secret: the URL comes over the socket.

Source: ARCHITECTURE.md, "Store process".
"""

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from threading import Event, Lock, Thread

from ....config.errors import ConfigError, StoreError, StoreUnavailable
from ....config.timeouts import STORE_END_S, STORE_LOCK_S
from ...host.process.clock import WallClock
from ..backend import Backend
from ..postgres.postgres import PostgresBackend
from ..sqlite.sqlite import SqliteBackend
from ..units import Unit
from .file_lock import locked
from .frames import (
    Announce,
    Applied,
    Apply,
    Attend,
    Attended,
    Claim,
    FrameReader,
    LeasesClaimed,
    More,
    Open,
    Opened,
    Prune,
    Pruned,
    Read,
    Release,
    Released,
    Rows,
    StoreAnswer,
    StoreQuestion,
    failed,
    frame,
    question,
)
from .place import PostgresPlace, StorePlace

IGNORED_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

_READ_BYTES = 256 << 10
_LISTEN_S = 0.2  # between two checks whether the process is to end


@contextmanager
def open_backend(place: StorePlace, now_ms: Callable[[], int], lock_s: float) -> Iterator[Backend]:
    """Context manager: open the database at a place, SQLite or PostgreSQL, and close it at the end of the
    block.

    Args:
        now_ms: wall clock, Unix milliseconds.
        lock_s: longest wait, in seconds, for an earlier process to release the lock of a SQLite file.

    Raises:
        ConfigError: the database cannot be used; the error says why.
        StoreUnavailable: the database cannot be reached now.
    """
    if isinstance(place, PostgresPlace):
        with closing(PostgresBackend(place.url, now_ms)) as backend:
            yield backend
    else:
        with locked(place.path, lock_s), closing(SqliteBackend(place.path, now_ms)) as backend:
            yield backend


def main(descriptors: Sequence[str]) -> int:
    """Run the store process: serve one engine over inherited sockets until the engine closes the sockets.

    Args:
        descriptors: file descriptors, as texts: the socket for writes, then, if the database is PostgreSQL,
            the socket for reads.

    Returns:
        The exit status.
    """
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED_SIGNALS)
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(fileno=int(descriptor))) for descriptor in descriptors]
        return _serve(sockets[0], sockets[1:], WallClock().now_ms)


def _serve(work: socket.socket, reading: Sequence[socket.socket], now_ms: Callable[[], int]) -> int:
    questions = _questions(work)
    first = next(questions, None)
    if not isinstance(first, Open):
        return 2
    if first.password:
        os.environ["PGPASSWORD"] = first.password  # other processes see the environment of the start alone
    try:
        with open_backend(first.place, now_ms, STORE_LOCK_S) as backend, ExitStack() as stack:
            if isinstance(backend, PostgresBackend):
                stack.enter_context(_beside(backend, reading[0], work))
            _send(work, frame(Opened()))
            held: list[Unit] = []
            for request in questions:
                if isinstance(request, More):
                    held += request.units
                else:
                    _send(work, _answer(backend, request, held))
                    held = []
    except (ConfigError, StoreError) as error:  # from opening the database: later errors are answers
        _send(work, frame(failed(error)))
        return 1
    return 0


@contextmanager
def _beside(backend: PostgresBackend, source: socket.socket, work: socket.socket) -> Iterator[None]:
    """Context manager: run threads that answer the engine's reads and announce committed events.

    If a thread fails, the store process ends and the engine starts another process.

    Args:
        source: socket for reads and announcements.
        work: socket for writes. A thread that fails shuts this socket down, which ends the process.
    """
    ending, sending = Event(), Lock()

    def say(framed: bytes) -> None:
        with sending:  # both threads send: no frame may begin within another
            _send(source, framed)

    def read() -> None:
        for request in _questions(source):
            say(_answer(backend, request, []))

    def listen() -> None:
        while not ending.is_set():
            try:
                if backend.wait_for_events(_LISTEN_S):
                    say(frame(Announce()))
            except StoreUnavailable as error:
                ending.wait(error.retry_after_s)

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except Exception:  # noqa: BLE001 - any failure is logged
            _log_exception("the store process failed")
            work.shutdown(socket.SHUT_RD)

    # Daemons: a thread that hangs in the database must not keep the process from ending after `join` gave up.
    threads = [Thread(target=guarded, args=(task,), daemon=True) for task in (read, listen)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        # Woken before they are joined; joined before `open_backend` closes the connections that they use.
        ending.set()
        with suppress(OSError):
            source.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(STORE_END_S / 4)


def _answer(backend: Backend, request: StoreQuestion, held: list[Unit]) -> bytes:
    """Execute an engine's request on the database and return the frame with the answer or error.

    Args:
        held: units of the `More` messages before the request, which belong to the batch of an `Apply`.
    """
    try:
        return frame(_done(backend, request, held))
    except StoreError as error:
        return frame(failed(error))
    except Exception as error:  # noqa: BLE001 - a bug: nothing was written, and the next request may succeed
        if isinstance(request, Read) and isinstance(error, ValueError):
            return frame(failed(error))
        _log_exception("the store failed")
        return frame(failed(StoreError(f"{type(error).__name__}: {error}")))


def _done(backend: Backend, request: StoreQuestion, held: list[Unit]) -> StoreAnswer:
    match request:
        case Apply():
            return Applied(backend.apply(request.writer, request.batch, held + request.units))
        case Attend():
            return Attended(backend.attend(request.holder, request.now_ms, request.life_ms))
        case Claim():
            return LeasesClaimed(
                backend.lease(request.holder, request.count, request.now_ms, request.life_ms)
            )
        case Release():
            backend.release(request.holder, request.shards)
            return Released()
        case Prune():
            return Pruned(backend.prune(request.before_ms, request.count_max))
        case Read():
            return Rows(backend.read(request.queries))
        case _:
            raise StoreError(f"{type(request).__name__} is not asked here")


def _questions(source: socket.socket) -> Iterator[StoreQuestion]:
    """Yield the requests that arrive on a socket until the engine closes the socket."""
    frames = FrameReader()
    while True:
        try:
            data = source.recv(_READ_BYTES)
        except ConnectionError:
            return
        if not data:
            return
        for body in frames.feed(data):
            yield question(body)


def _send(target: socket.socket, framed: bytes) -> None:
    """Send a frame to the engine; do nothing if the engine has closed the socket."""
    with suppress(ConnectionError):
        target.sendall(framed)


def _log_exception(event: str) -> None:
    """Log the exception being handled, with `event` as the message.

    The function imports the logging library itself: an import at start would double the start-up time.
    """
    import structlog

    from ...host.process.logs import configure_logs

    configure_logs()
    structlog.get_logger("cambist.store").exception(event)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
