"""`cambist maker serve`: one process, or several on one listening socket, until SIGTERM or SIGINT."""

import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import structlog
import trio

from ....config.settings import Settings
from ...host.process.clock import WallClock
from ...host.process.processes import (
    ProcessNumber,
    inherited_listener,
    inherited_spread,
    parent_ended,
    process_place,
    run_processes,
)
from ...host.process.running import drain_on_signal, keep_collector, listening, url_of
from ...host.server import AccessLog, open_access_log
from .app import MakerApp

_log = structlog.get_logger("cambist.maker")


async def serve_maker(
    settings: Settings, environ: Mapping[str, str], folder: Path, command: Sequence[str]
) -> int:
    """Serve the market maker, in one process or several, until a signal ends it.

    Args:
        folder: base of relative paths in the settings.
        command: command line that starts this program again, for the other processes.

    Returns:
        The exit status: 0 if the open requests were answered before the end, else 1.

    Raises:
        ConfigError: a setting is invalid, for example an address that cannot be listened on; the error names
            the setting.
    """
    server = settings.server
    inherited = inherited_listener()
    if inherited is None and server.processes > 1:  # the parent: its children inherit the socket
        return await _serve_several(settings, environ, folder, command)
    place = process_place()
    with ExitStack() as owned:
        access_log = None
        if server.access_log:
            access_log = AccessLog(owned.enter_context(open_access_log(server.access_log)))
        app = MakerApp(
            settings,
            environ=environ,
            folder=folder,
            clock=WallClock(),
            place=place,
            access_log=access_log,
            spread=inherited_spread(),
        )
        listener = owned.enter_context(inherited or listening("server", server.host, server.port))
        # One admin listener for all: the other processes learn of a halt by the file of the kill switch.
        admin = settings.maker.admin if settings.maker and place.index == 0 else None
        admin_listener = None
        if admin:
            admin_listener = owned.enter_context(listening("maker.admin", admin.host, admin.port))
        # Before `run`: no quote is signed until the last run's quotes are restored, and the file that a crash
        # leaves behind says `running`.
        owned.enter_context(app.remembering())
        async with trio.open_nursery() as nursery:
            # Awaited before the announcement: a signal to end would otherwise kill the process undrained.
            await nursery.start(drain_on_signal, app, nursery.cancel_scope)
            nursery.start_soon(_drain_after_parent, app)
            nursery.start_soon(keep_collector)
            if inherited is None:
                _announce(app, listener)
            await app.run(listener, admin_listener)
            nursery.cancel_scope.cancel()
    return 0 if app.drained else 1


async def _serve_several(
    settings: Settings, environ: Mapping[str, str], folder: Path, command: Sequence[str]
) -> int:
    """Run several maker processes as children of this process until a signal; return the exit status.

    This process checks the settings before any child starts, so that a fault is reported only once.
    """
    server = settings.server
    app = MakerApp(
        settings, environ=environ, folder=folder, clock=WallClock(), place=ProcessNumber(0, server.processes)
    )
    with listening("server", server.host, server.port) as listener:
        _announce(app, listener)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app.switch.heed_signals)
            status = await run_processes(server, list(command), listener)
            nursery.cancel_scope.cancel()
    return status


def _announce(app: MakerApp, listener: socket.socket) -> None:
    for chain_id, prefix in app.prefixes.items():
        _log.info("serving", chain=chain_id, url=f"{url_of(app.scheme, listener)}{prefix}")


async def _drain_after_parent(app: MakerApp) -> None:
    await parent_ended()
    _log.warning("draining, for the parent process is gone")
    app.drain()
