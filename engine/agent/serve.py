"""`cambist agent serve`: the agent as one process, until SIGTERM or SIGINT."""

from collections.abc import Mapping
from pathlib import Path

import structlog

from ...config.settings import Settings
from ..process.clock import WallClock
from ..process.running import serve_app
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
    clock = WallClock()
    return await serve_app(
        settings.server,
        lambda log: opened_agent(settings, environ=environ, folder=folder, clock=clock, access_log=log),
        _announce,
    )


def _announce(app: AgentApp, url: str) -> None:
    _log.info("serving", agent=app.name, url=url, chains=sorted(app.places))
