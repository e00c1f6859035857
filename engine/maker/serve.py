"""`cambist maker serve`: one process, or several on one listening socket, until SIGTERM or SIGINT."""

import gc
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import structlog
import trio

from ...config.errors import ConfigError
from ...config.settings import Settings
from ...config.timeouts import GC_FREEZE_AFTER_S
from ...feeds.net.streams import listen
from ..server import AccessLog, open_access_log
from ..server.processes import Place, inherited_listener, parent_ended, process_place, run_processes
from ..telemetry.clock import WallClock
from .app import MakerApp

_log = structlog.get_logger("cambist.maker")


async def serve_maker(
    settings: Settings, environ: Mapping[str, str], folder: Path, command: Sequence[str]
) -> int:
    """Serve until told to stop.

    Args:
        folder: what relative paths of the settings start from.
        command: starts this program again, for the other processes.

    Returns:
        The exit status.

    Raises:
        ConfigError: names the setting that is wrong; an address that cannot be listened on is one.
    """
    server = settings.server
    inherited = inherited_listener()
    if inherited is None and server.processes > 1:
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
        )
        listener = owned.enter_context(inherited or _listening("server", server.host, server.port))
        admin = settings.maker.admin if settings.maker and place.index == 0 else None
        admin_listener = None
        if admin:
            admin_listener = owned.enter_context(_listening("maker.admin", admin.host, admin.port))
        owned.enter_context(app.remembering())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_drain_on_signal, app, nursery.cancel_scope)
            nursery.start_soon(_drain_after_parent, app)
            nursery.start_soon(_freeze)
            if inherited is None:
                _announce(app, listener)
            await app.run(listener, admin_listener)
            nursery.cancel_scope.cancel()
    return 0 if app.drained else 1


async def _serve_several(
    settings: Settings, environ: Mapping[str, str], folder: Path, command: Sequence[str]
) -> int:
    """The parent: what is wrong with the settings is said once, here."""
    server = settings.server
    app = MakerApp(
        settings, environ=environ, folder=folder, clock=WallClock(), place=Place(0, server.processes)
    )
    with _listening("server", server.host, server.port) as listener:
        _announce(app, listener)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app.switch.heed_signals)
            status = await run_processes(server, list(command), listener)
            nursery.cancel_scope.cancel()
    return status


def _listening(field: str, host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise ConfigError(
            f"{field}.port", f"cannot listen on {host} port {port}: {error.strerror or error}"
        ) from None


def _announce(app: MakerApp, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    for chain_id, surface in app.prefixes.items():
        _log.info("serving", chain=chain_id, url=f"{app.scheme}://{host}:{port}{surface}")


async def _drain_on_signal(app: MakerApp, everything: trio.CancelScope) -> None:
    """The first signal drains, the second ends at once."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for received in signals:
            _log.info("draining", signal=signal.Signals(received).name)
            app.drain()
            break
        async for _ in signals:
            everything.cancel()


async def _drain_after_parent(app: MakerApp) -> None:
    await parent_ended()
    _log.warning("draining, for the parent process is gone")
    app.drain()


async def _freeze() -> None:
    """What is there after the start is no longer walked by the collector."""
    await trio.sleep(GC_FREEZE_AFTER_S)
    gc.collect()
    gc.freeze()
