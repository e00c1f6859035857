"""`cambist serve`: run a venue."""

import os
import sys
from pathlib import Path

import click
import trio

from ...config.errors import ConfigError
from ...config.settings import read_settings
from ..process.logs import configure_logs
from ..safety.private_state import keep_private
from ..store.process.place import SqlitePlace, place_of
from ..venue.serve import serve_venue


@click.command("serve")
@click.option(
    "--config",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="CAMBIST_CONFIG",
    required=True,
    help="The settings file (TOML).",
)
def serve(path: Path) -> None:
    """Quote and route swaps over market makers' books until SIGTERM or SIGINT.

    Logs go to standard error; the API is described at /docs.
    """
    settings = read_settings(path, os.environ)
    if settings.venue is None:
        raise ConfigError("venue", f"{path} has no [venue] table")
    configure_logs()
    place = place_of(settings, os.environ, path.parent)
    files = place.files() if isinstance(place, SqlitePlace) else ()
    keep_private(path.parent / Path(settings.state_dir).expanduser(), files)
    sys.exit(trio.run(serve_venue, settings, os.environ, path.parent))
