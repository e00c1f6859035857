"""`cambist agent serve`: the agent as one process, until SIGTERM or SIGINT."""

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import structlog
import trio

from ...config.settings import Settings
from ..server import AccessLog, open_access_log
from ..server.running import drain_on_signal, freeze_collector, listening, url_of
from ..telemetry.clock import WallClock
from .app import AgentApp, opened_agent

_log = structlog.get_logger("cambist.agent")


async def serve_agent(settings: Settings, environ: Mapping[str, str], folder: Path) -> int:
    """Serve until told to stop.

    Args:
        folder: what relative paths of the settings start from.

    Returns:
        The exit status.

    Raises:
        ConfigError: names the setting that is wrong; an address that cannot be listened on is one.
    """
    server = settings.server
    with ExitStack() as owned:
        access_log = None
        if server.access_log:
            access_log = AccessLog(owned.enter_context(open_access_log(server.access_log)))
        listener = owned.enter_context(listening("server", server.host, server.port))
        agent = opened_agent(
            settings, environ=environ, folder=folder, clock=WallClock(), access_log=access_log
        )
        async with agent as app, trio.open_nursery() as nursery:
            nursery.start_soon(drain_on_signal, app, nursery.cancel_scope)
            nursery.start_soon(freeze_collector)
            _announce(app, listener)
            await app.run(listener)
            nursery.cancel_scope.cancel()
        return 0 if app.drained else 1


def _announce(app: AgentApp, listener: socket.socket) -> None:
    _log.info("serving", agent=app.name, url=url_of(app.scheme, listener), chains=sorted(app.places))
