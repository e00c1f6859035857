"""`cambist agent`: runs an agent, which bids for orders of a venue's auctions, until SIGTERM or SIGINT."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import CommandGroup, lean_imports
from .sources import config_option, settings_with

if TYPE_CHECKING:
    from ..roles.agent.app import AgentApp


def _announce(app: "AgentApp", url: str) -> None:
    import structlog

    log = structlog.get_logger("cambist.agent")
    log.info("serving", agent=app.name, url=url, chains=sorted(app.chains))


@click.group(cls=CommandGroup)
def agent() -> None:
    """Run an agent, which bids for the orders that a venue auctions."""


@agent.command("serve")
@config_option(required=True)
def serve_command(path: Path) -> None:
    """Answer a venue's POST /solve with bids, over market makers' firm quotes, until SIGTERM or SIGINT.

    Logs go to standard error.
    """
    with lean_imports():  # here, for help that is shown at once
        import trio

        from ..host.process.clock import WallClock
        from ..host.process.logs import configure_logs
        from ..host.process.running import serve_app
        from ..roles.agent.app import opened_agent
    settings = settings_with(path, "agent")
    configure_logs()
    clock = WallClock()
    sys.exit(
        trio.run(
            serve_app,
            settings.server,
            lambda log: opened_agent(
                settings, environ=os.environ, folder=path.parent, clock=clock, access_log=log
            ),
            _announce,
        )
    )
