"""An operator excludes a maker from a running venue and readmits it; readers of a maker's faults."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from structlog.testing import capture_logs

from cambist.crypto.addresses import to_checksum
from cambist.crypto.hmac_auth import RequestSigner
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.safety.maker_rules import MakerRules
from cambist.engine.trade.makers.maker_watch import FILE_NAME, MakerWatch
from cambist.feeds.firm.firm_check import FirmFault
from cambist.feeds.firm.maker_health import FaultTold
from cambist.feeds.maker_cache import EXCLUDED
from support.patience import until
from support.venue.venue_role import CHAIN_ID, SECRETS, USER, RunningVenue, running_venue

now_ms = WallClock().now_ms
FOREIGN = {"x-forwarded-for": "192.0.2.7"}

CALLERS = count()
"""Callers, each another."""


def quoting(venue: RunningVenue) -> set[str]:
    """Makers with a book that is routed."""
    return {live.maker for live in venue.app.chains[CHAIN_ID].index.books()}


def write(folder: Path, rules: MakerRules) -> None:
    beside = folder / "beside"
    beside.write_text(rules.text())
    beside.replace(folder / FILE_NAME)


async def transaction(venue: RunningVenue, route: Any) -> tuple[int, Any]:
    body = {
        "priceRoute": route,
        "srcToken": route["srcToken"],
        "destToken": route["destToken"],
        "srcAmount": route["srcAmount"],
        "slippage": 500,
        "userAddress": to_checksum(USER.address),
    }
    return await venue.post(f"/transactions/{CHAIN_ID}", body)


def signed(venue: RunningVenue, maker: str) -> int:
    return venue.makers[maker].chains[CHAIN_ID].desk.signed


async def test_a_maker_is_left_out_at_once_and_stays_out_after_a_restart(tmp_path: Path) -> None:
    """Also where a route that is sealed already names it."""
    async with running_venue(tmp_path) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        route = (await venue.get("/prices", version="6.2", **venue.selling("WETH", 1, "USDC")))["priceRoute"]
        (exchange,) = route["bestRoute"][0]["swaps"][0]["swapExchanges"]
        assert exchange["exchange"] == "alpha"
        write(tmp_path, MakerRules().excluding("alpha", None))
        await until(lambda: quoting(venue) == {"beta"})
        status, built = await transaction(venue, route)
        assert status == 200, built
        assert (signed(venue, "alpha"), signed(venue, "beta")) == (0, 1)
        venue.app.chains[CHAIN_ID].feeds["alpha"].cache.release(EXCLUDED)
        assert quoting(venue) == {"alpha", "beta"}
        MakerWatch(tmp_path / FILE_NAME, venue.app.chains, now_ms)
        assert quoting(venue) == {"beta"}


async def test_a_release_forgets_faults_and_ends_rests(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        place = venue.app.chains[CHAIN_ID]
        maker, cache = place.desk.makers["alpha"], place.feeds["alpha"].cache
        cache.rest_maker(2**62)
        maker.health.record(b"\x01" * 20, b"\x02" * 20, FirmFault.LATE, now_ms(), next(CALLERS))
        assert quoting(venue) == {"beta"}
        write(tmp_path, MakerRules().releasing("alpha", CHAIN_ID, now_ms() + 1_000))
        await until(lambda: quoting(venue) == {"alpha", "beta"})
        assert maker.health.report(now_ms()).maker.quotes == 0


async def test_a_file_that_is_not_understood_changes_nothing(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        write(tmp_path, MakerRules().excluding("alpha", CHAIN_ID))
        await until(lambda: quoting(venue) == {"beta"})
        with capture_logs() as logs:
            (tmp_path / FILE_NAME).write_text("?")
            await until(lambda: any("is ignored" in line["event"] for line in logs))
        assert quoting(venue) == {"beta"}
        (tmp_path / FILE_NAME).unlink()
        await until(lambda: quoting(venue) == {"alpha", "beta"})


async def test_faults_are_for_the_maker_and_this_machine_alone(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        place = venue.app.chains[CHAIN_ID]
        told = FaultTold(7, FirmFault.DRIFTED, b"\x01" * 20, b"\x02" * 20, "drifted: 3 for 4")
        for maker in place.desk.makers.values():
            maker.health.remember(told)

        async def faults(headers: Mapping[str, str]) -> dict[str, Any]:
            response = await venue.ask("GET", "/makers/scores", headers=headers)
            assert response.status == 200, response.body
            scores = msgspec.json.decode(response.body)
            assert all((score["refused"] is None) is (score["lastFaults"] is None) for score in scores)
            return {score["maker"]: score["lastFaults"] for score in scores}

        fault = {
            "at": 7,
            "kind": "drifted",
            "srcToken": to_checksum(told.src),
            "destToken": to_checksum(told.dest),
            "detail": told.detail,
        }
        assert await faults({}) == {"alpha": [fault], "beta": [fault]}
        assert await faults(FOREIGN) == {"alpha": None, "beta": None}
        signer = RequestSigner("venue", "key-1", SECRETS["beta"].encode())
        signed_headers = signer.headers(now_ms(), "GET", "/makers/scores", b"")
        assert await faults(FOREIGN | signed_headers) == {"alpha": None, "beta": [fault]}
        forged = RequestSigner("venue", "key-1", b"of somebody else").headers(
            now_ms(), "GET", "/makers/scores", b""
        )
        response = await venue.ask("GET", "/makers/scores", headers=FOREIGN | forged)
        assert response.status == 401
