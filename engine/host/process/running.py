"""Common parts of every serving role's process: listener, signals, and set-up of the garbage collector."""

import gc
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from itertools import count
from typing import Protocol, TypeVar

import structlog
import trio

from ....config.errors import ConfigError
from ....config.sections.server import ServerSettings
from ....config.timeouts import GC_COUNT_EVERY, GC_FREEZE_AFTER_S, GC_FREEZE_EVERY_S
from ....feeds.ticks import tick
from ....feeds.transport.streams import listen
from ..server.access_log import AccessLog, open_access_log
from .interrupts import until_interrupted

App = TypeVar("App", bound="Served")

INTERRUPTED = 128 + signal.SIGINT
"""Exit status of a process that SIGINT ended, as shells tell it."""

_log = structlog.get_logger("cambist.server")


class Draining(Protocol):
    """Protocol of a role's application that can shut down gracefully: answer open requests, then stop.

    Attributes:
        scheme: http or https.
        drained: whether `run` has ended because of `drain`, rather than by cancellation.
    """

    scheme: str
    drained: bool

    def drain(self) -> None:
        """Stop accepting connections, answer the requests in flight, then end."""
        ...


class Served(Draining, Protocol):
    """Protocol of a role's application that serves in one process."""

    async def run(self, listener: socket.socket, health_listener: socket.socket | None) -> None:
        """Serve until `drain` was called and the requests in flight are answered.

        Args:
            listener: listening socket for requests.
            health_listener: listening socket for health checks; None without such a socket.
        """
        ...


async def serve_app(
    server: ServerSettings,
    open_app: Callable[[AccessLog | None], AbstractAsyncContextManager[App]],
    announce: Callable[[App, str], None],
) -> int:
    """Serve one application until a signal ends it.

    SIGINT while the application opens, or closes, cancels that, and one line of the log says so.

    Args:
        server: addresses to listen on, and the path of the access log.
        open_app: opens the application, given the access log to write, if any.
        announce: function that logs the start; its arguments are the application and the application's URL.

    Returns:
        The exit status: 0 if the application answered its open requests before it ended, INTERRUPTED if
        SIGINT came before it served or after, else 1.

    Raises:
        ConfigError: an address cannot be listened on; also the errors of `open_app`.
    """
    when = "before"

    def announced(app: App, url: str) -> None:
        nonlocal when
        announce(app, url)
        when = "after"

    try:
        return await until_interrupted(_serve, server, open_app, announced)
    except KeyboardInterrupt:
        _log.warning(f"interrupted {when} it served", signal=signal.SIGINT.name)
        return INTERRUPTED


async def _serve(
    server: ServerSettings,
    open_app: Callable[[AccessLog | None], AbstractAsyncContextManager[App]],
    announce: Callable[[App, str], None],
) -> int:
    # The sockets listen before the application opens: a port in use is found first, and connections wait in
    # the socket's queue during the start.
    with ExitStack() as owned:
        access_log = None
        if server.access_log:
            access_log = AccessLog(owned.enter_context(open_access_log(server.access_log)))
        listener = owned.enter_context(listening("server", server.host, server.port))
        health_listener = None
        if server.health:
            health = server.health
            health_listener = owned.enter_context(listening("server.health", health.host, health.port))
            _log.info("serving health", url=url_of("http", health_listener))
        async with open_app(access_log) as app, trio.open_nursery() as nursery:
            # Awaited before the announcement: a signal to end would otherwise kill the process undrained.
            await nursery.start(drain_on_signal, app, nursery.cancel_scope)
            nursery.start_soon(keep_collector)
            announce(app, url_of(app.scheme, listener))
            await app.run(listener, health_listener)
            nursery.cancel_scope.cancel()
        return 0 if app.drained else 1


def listening(field: str, host: str, port: int) -> socket.socket:
    """Open a TCP socket that listens on a configured address.

    Args:
        field: name of the settings table that has host and port, for errors.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    try:
        return listen(host, port)
    except OSError as error:
        raise ConfigError(
            f"{field}.port", f"cannot listen on {host} port {port}: {error.strerror or error}"
        ) from None


def url_of(scheme: str, listener: socket.socket) -> str:
    """URL at which a listening socket is reached: scheme, address and port."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def drain_on_signal(
    app: Draining,
    everything: trio.CancelScope,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Drain the application at the first SIGTERM or SIGINT, and cancel `everything` at the second.

    To drain an application means to let it answer the requests in flight and then end. The function calls
    `task_status.started` once it receives signals.

    Args:
        everything: cancel scope around all tasks of the process.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for received in signals:
            _log.info("draining", signal=signal.Signals(received).name)
            app.drain()
            break
        async for _ in signals:
            everything.cancel()


async def keep_collector() -> None:
    """Exempt objects that last from garbage collection, so that its passes stay short, until cancelled.

    From GC_FREEZE_AFTER_S on, every GC_FREEZE_EVERY_S seconds the objects are exempt that are left of a pass
    over the youngest: with ten thousand connections a pass over all objects takes half a second, in which
    nobody is answered. An exempt object goes when its last reference does. Only cycles of exempt objects
    stay, until the exempt objects are twice those that a pass over all of them last left; connections that
    end leave none, or clients would fill the memory meanwhile.
    """
    await trio.sleep(GC_FREEZE_AFTER_S)
    left = _collect_all()
    for number in count(1):
        await tick(GC_FREEZE_EVERY_S)
        gc.collect(1)
        gc.freeze()
        # The count itself walks all exempt objects, if only by their headers.
        if number % GC_COUNT_EVERY == 0 and gc.get_freeze_count() > 2 * left:
            left = _collect_all()


def _collect_all() -> int:
    """Collect garbage among all objects, exempt the others, and return their number."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count()
