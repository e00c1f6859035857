"""`cambist serve`: the venue as one process, until SIGTERM or SIGINT."""

import gc
import signal
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import structlog
import trio

from ...config.errors import ConfigError
from ...config.settings import Settings
from ...config.timeouts import GC_FREEZE_AFTER_S
from ...feeds.net.streams import listen
from ..server import AccessLog, open_access_log
from ..telemetry.clock import WallClock
from .app import VenueApp, opened_venue

_log = structlog.get_logger("cambist.venue")


async def serve_venue(settings: Settings, environ: Mapping[str, str], folder: Path) -> int:
    """Serve until told to stop.

    Args:
        folder: what relative paths of the settings start from.

    Returns:
        The exit status.

    Raises:
        ConfigError: names the setting that is wrong; an address that cannot be listened on is one.
        StoreUnavailable: there is no store to begin with.
    """
    server = settings.server
    with ExitStack() as owned:
        access_log = None
        if server.access_log:
            access_log = AccessLog(owned.enter_context(open_access_log(server.access_log)))
        listener = owned.enter_context(_listening(server.host, server.port))
        venue = opened_venue(
            settings, environ=environ, folder=folder, clock=WallClock(), access_log=access_log
        )
        async with venue as app, trio.open_nursery() as nursery:
            nursery.start_soon(_drain_on_signal, app, nursery.cancel_scope)
            nursery.start_soon(_freeze)
            _announce(app, listener)
            await app.run(listener)
            nursery.cancel_scope.cancel()
        return 0 if app.drained else 1


def _listening(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise ConfigError(
            "server.port", f"cannot listen on {host} port {port}: {error.strerror or error}"
        ) from None


def _announce(app: VenueApp, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    _log.info("serving", url=f"{app.scheme}://{host}:{port}", chains=sorted(app.places))


async def _drain_on_signal(app: VenueApp, everything: trio.CancelScope) -> None:
    """The first signal drains, the second ends at once."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for received in signals:
            _log.info("draining", signal=signal.Signals(received).name)
            app.drain()
            break
        async for _ in signals:
            everything.cancel()


async def _freeze() -> None:
    """What is there after the start is no longer walked by the collector."""
    await trio.sleep(GC_FREEZE_AFTER_S)
    gc.collect()
    gc.freeze()
