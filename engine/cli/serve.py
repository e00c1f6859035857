"""`cambist serve`: runs a venue as one process until SIGTERM or SIGINT."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import lean_imports
from .sources import config_option, settings_with

if TYPE_CHECKING:
    from ..roles.venue.app import VenueApp


def _begin(app: "VenueApp", url: str) -> None:
    import structlog

    log = structlog.get_logger("cambist.venue")
    app.reference.build_documents()
    log.info("serving", url=url, chains=sorted(app.chains))
    for served in app.chains.values():
        if served.settings.delta and served.no_delta:
            log.warning(served.no_delta, missing=f"[relayers.{served.chain_id}]")


@click.command("serve")
@config_option(required=True)
def serve(path: Path) -> None:
    """Quote and route swaps over market makers' books until SIGTERM or SIGINT.

    Logs go to standard error; the API is described at /docs.
    """
    with lean_imports():  # here, for help that is shown at once
        import trio

        from ..host.process.clock import WallClock
        from ..host.process.logs import configure_logs
        from ..host.process.running import serve_app
        from ..host.safety.private_state import keep_private
        from ..roles.venue.app import opened_venue
        from ..store.process.place import SqlitePlace, place_of
    settings = settings_with(path, "venue")
    configure_logs()
    environ, folder = os.environ, path.parent
    place = place_of(settings, environ, folder)
    files = place.files() if isinstance(place, SqlitePlace) else ()
    # Before `opened_venue`: the store opens its files there, which must be private by then.
    keep_private(folder / Path(settings.state_dir).expanduser(), files)
    clock = WallClock()
    sys.exit(
        trio.run(
            serve_app,
            settings.server,
            lambda log: opened_venue(settings, environ=environ, folder=folder, clock=clock, access_log=log),
            _begin,
        )
    )
