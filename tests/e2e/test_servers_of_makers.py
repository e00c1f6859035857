"""Makers behind the HTTP servers that makers use: `maker check` passes, and they trade."""

from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.http1 import Http1Limits, encode_response
from cambist.engine.trader.conformance.checks.auth import Credentials
from cambist.engine.trader.conformance.options import CheckOptions, read_base_url
from cambist.engine.trader.conformance.rules import CheckStatus, Selection
from cambist.engine.trader.conformance.run import run_checks
from cambist.feeds.transport.http_client import HttpClient
from support.chain.world import ONE, USDC, World
from support.conformance.faulty_runs import UNTIMED, now_ms, told
from support.makers.maker_role import CHAIN_ID, CONTRACT, PREFIX, SECRET, TAKER, running_maker
from support.makers.server_styles import STYLES, Style
from support.patience import PATIENCE_S
from support.server.scripted_server import Caller, scripted_server
from support.venue.venue_stories import a_venue_story

BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {
        "WETH/USDC": {
            "bids": [[f"{2_500 - level}", "5"] for level in range(90)],  # more than one piece of each server
            "asks": [[f"{2_501 + level}", "5"] for level in range(90)],
        },
        "WETH/DAI": {"bids": [["2505", "50"]], "asks": [["2506", "50"]]},
    },
}

HANDED_ON = b"x-auth-", b"content-type"
NOT_OF_ANSWERS = "hostile.*", "stream.*"
"""Checks of what a server reads, and of its socket: those of `written_by` are no maker's."""
ODD = {
    "php": {"length", "persists"},
    "python": {"length", "persists", "version"},
    "cgi": {"colons", "folds", "length", "line-ends", "persists", "version"},
    "proxies": {"length"},
}
"""Style -> checks of `framing` that the report advises on; the other servers frame to the letter."""


@pytest.mark.one_chain  # makers and venue look at it all the while
@pytest.mark.parametrize("name", STYLES)
async def test_a_maker_trades_behind_the_servers_that_makers_use(
    world: World, tmp_path: Path, name: str
) -> None:
    async with a_venue_story(world, tmp_path, BOOKS, style=STYLES[name]) as story:
        for side, src, dest, amount in (
            ("SELL", "WETH", "USDC", 12 * ONE),
            ("BUY", "WETH", "USDC", 2_000 * USDC),
            ("SELL", "DAI", "WETH", 500 * ONE),
        ):
            route = await story.prices(side, src, dest, amount)
            moved = await story.swap(route)
            assert moved["alpha", src] > 0 > moved["alpha", dest]
        assert story.fronts["alpha"].asked == 3
        (score,) = [await story.score("alpha")]
        assert (score["score"], score["quotes"], score["reasons"], score["refused"]) == (100, 3, {}, {})


@pytest.mark.parametrize("name", STYLES)
async def test_maker_check_passes_behind_the_servers_that_makers_use(tmp_path: Path, name: str) -> None:
    async with (
        running_maker(tmp_path) as (_, venue),
        scripted_server(lambda caller: written_by(STYLES[name], venue.port, caller)) as port,
    ):
        report = await run_checks(
            CheckOptions(
                base=read_base_url(f"http://127.0.0.1:{port}{PREFIX}", "URL", ("http",)),
                credentials=Credentials("venue", "key-1", SECRET.encode()),
                selection=Selection(skip=(*UNTIMED, *NOT_OF_ANSWERS)),
                chain_id=CHAIN_ID,
                rfq_contract=bytes.fromhex(CONTRACT[2:]),
                taker=TAKER,
                quotes=16,
            ),
            now_ms=now_ms,
        )
    assert report.conforms, told(report)
    advised = {one.check.id for one in report.verdicts if one.status is CheckStatus.ADVISED}
    framing = {check.removeprefix("framing.") for check in advised if check.startswith("framing.")}
    assert framing == ODD.get(name, set())


async def written_by(style: Style, port: int, caller: Caller) -> None:
    """Hand a connection's requests to the maker on a port, and write its answers in a server's style."""
    async with HttpClient("127.0.0.1", port, connections_max=1, limits=Http1Limits()) as maker:
        while True:
            try:
                request = await caller.request()
                headers = [
                    pair for pair in request.headers if pair[0].startswith((b"x-auth-", b"content-type"))
                ]
                answer = await maker.request(
                    request.method, request.target, headers, request.body, deadline_s=PATIENCE_S
                )
                if request.method == b"HEAD" or not answer.body:
                    written, is_last = encode_response(answer.status, b"", head=True), False
                else:
                    written, is_last = style(answer.status, answer.body)
                await caller.stream.send_all(written)
            except (EOFError, trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if is_last:
                return
