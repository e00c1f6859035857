"""`cambist agent`: bid for the orders of a venue's auctions."""

import os
import sys
from pathlib import Path

import click
import trio

from ...config.errors import ConfigError
from ...config.settings import read_settings
from ..agent.serve import serve_agent
from ..process.logs import configure_logs


@click.group()
def agent() -> None:
    """Run an agent: it bids for the orders that a venue auctions."""


@agent.command("serve")
@click.option(
    "--config",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="CAMBIST_CONFIG",
    required=True,
    help="The settings file (TOML).",
)
def serve_command(path: Path) -> None:
    """Answer a venue's POST /solve with bids, over market makers' firm quotes, until SIGTERM or SIGINT.

    Logs go to standard error.
    """
    settings = read_settings(path, os.environ)
    if settings.agent is None:
        raise ConfigError("agent", f"{path} has no [agent] table")
    configure_logs()
    sys.exit(trio.run(serve_agent, settings, os.environ, path.parent))
