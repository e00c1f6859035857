"""No secret of a venue is told by anything that it says: answers, metrics, status, logs, reprs."""

from pathlib import Path
from urllib.parse import urlencode

import structlog

from cambist.config.settings import parse_settings
from support.venue.trading_requests import API_KEY, OPTIONS, a_sale, plain, posted
from support.venue.venue_role import ENVIRON, GRIDS, ROUTE_SEAL, SECRETS, USER, running_venue, venue_text

HIDDEN = (API_KEY, ROUTE_SEAL, *SECRETS.values())


async def test_secrets_are_told_nowhere(tmp_path: Path) -> None:
    said: list[str] = []
    with structlog.testing.capture_logs() as logs:
        async with running_venue(tmp_path, **OPTIONS) as venue:
            await venue.devnet.allow(USER, "WETH", "router")
            sale = await a_sale(venue)
            for headers in ({"X-API-KEY": API_KEY}, {"X-API-KEY": f"{API_KEY}x"}, {"X-API-KEY": "x" * 600}):
                for path in ("/v2/quote", "/prices", "/swap"):
                    response = await venue.ask("GET", f"{path}?{urlencode(plain(venue, path))}", b"", headers)
                    said += [f"{response.headers} {response.body.decode()}"]
            for maker in venue.makers.values():
                maker.switch.stop("all")
            response = await posted(venue, sale, "ignoreChecks=true")
            assert response.status >= 400, "nobody signs"
            said += [response.body.decode()]
            for path in ("/metrics", "/readyz", "/openapi.json", "/docs", "/makers/scores?network=31337"):
                said += [(await venue.ask("GET", path)).body.decode()]
            app = venue.app
            said += [
                f"{app.status()}",
                f"{app.not_ready()}",
                repr(app),
                repr(app.admission),
                repr(app.chains),
            ]
            settings = parse_settings(
                venue_text(venue.devnet, dict.fromkeys(GRIDS, 9)) + OPTIONS["more"],
                ENVIRON | OPTIONS["environ"],
                tmp_path,
            )
            said += [repr(settings), str(settings.venue)]
    said += [f"{line}" for line in logs]
    assert logs
    told = [text for text in said for secret in HIDDEN if secret in text]
    assert told == []
