"""`cambist serve`: the venue as one process, until SIGTERM or SIGINT."""

from collections.abc import Mapping
from pathlib import Path

import structlog

from ...config.settings import Settings
from ..process.clock import WallClock
from ..process.running import serve_app
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
    clock = WallClock()
    return await serve_app(
        settings.server,
        lambda log: opened_venue(settings, environ=environ, folder=folder, clock=clock, access_log=log),
        _begin,
    )


def _begin(app: VenueApp, url: str) -> None:
    app.reference.make()
    _log.info("serving", url=url, chains=sorted(app.places))
    for place in app.places.values():
        if place.settings.delta and place.no_delta:
            _log.warning(place.no_delta, missing=f"[relayers.{place.chain_id}]")
