"""A market maker that mirrors another one, both on real sockets, over HTTP and over the WebSocket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
import structlog.testing
import trio

from cambist.codecs.messages.maker_messages import FirmOrder, PriceGrid, decode_firm_response
from cambist.config.settings import Settings
from cambist.engine.conformance.checks.auth import Credentials
from cambist.engine.conformance.options import CheckOptions, read_base_url
from cambist.engine.conformance.rules import Selection
from cambist.engine.conformance.run import run_checks
from cambist.engine.maker.app import MakerApp
from support.faulty_runs import now_ms, told
from support.maker_role import CHAIN_ID, SECRET, firm_request, settings_of
from support.maker_server import PREFIX, Venue, running_maker, write_prices
from support.patience import PATIENCE_S, until

PAIR = "WETH/USDC"
TRANSPORTS = pytest.mark.parametrize("over", ["http", "websocket"])


class Upstream:
    """The other maker, which can be stopped while ours runs."""

    def __init__(self, maker: MakerApp, port: int, folder: Path) -> None:
        self.maker = maker
        self.port = port
        self.folder = folder
        self.stop = trio.Event()
        self.stopped = trio.Event()


async def _serve(folder: Path, *, task_status: trio.TaskStatus[Upstream]) -> None:
    async with running_maker(folder) as (maker, venue):
        upstream = Upstream(maker, venue.port, folder)
        task_status.started(upstream)
        await upstream.stop.wait()
    upstream.stopped.set()


def beside(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


def mirroring(upstream: Upstream, over: str, **changed: Any) -> Settings:
    options: dict[str, Any] = {
        "url": f"http://127.0.0.1:{upstream.port}{PREFIX}",
        "credentials": {"domain": "venue", "access_key": "key-1", "secret": "env:VENUE_SECRET"},
        "bid_spread_bps": 100,
        "ask_spread_bps": 100,
        "amount_factor": "0.5",
        "prices_every_s": 0.1,
        "refresh_ms": 50,
    }
    if over == "websocket":
        options["ws_url"] = f"ws://127.0.0.1:{upstream.port}{PREFIX}/ws"
    return settings_of(price_source="mirror", price_options=options | changed)


@asynccontextmanager
async def mirrored(
    folder: Path, over: str, **changed: Any
) -> AsyncIterator[tuple[Upstream, MakerApp, Venue]]:
    """Upstream, our maker, and a venue that asks ours."""
    async with trio.open_nursery() as nursery:
        upstream: Upstream = await nursery.start(_serve, beside(folder, "upstream"))
        async with running_maker(beside(folder, "ours"), mirroring(upstream, over, **changed)) as (
            maker,
            venue,
        ):
            yield upstream, maker, venue
        upstream.stop.set()


async def shown(venue: Venue) -> Any:
    return (await venue.get("/prices"))["prices"][PAIR]


def grid_of(maker: MakerApp) -> PriceGrid:
    return maker.chains[CHAIN_ID].board.pairs[PAIR].grid


@TRANSPORTS
async def test_its_books_are_shown_and_signed_with_our_spread(tmp_path: Path, over: str) -> None:
    async with mirrored(tmp_path, over) as (upstream, maker, venue):
        assert await shown(venue) == {
            "bids": [["2475", "0.5"], ["2474.505", "1"], ["2465.1", "5"]],
            "asks": [["2526.01", "0.5"], ["2527.02", "1"], ["2535.1", "5"]],
        }
        write_prices(upstream.folder, **{PAIR: {"bids": [["2400.00", "8"]], "asks": [["2500", "8.00"]]}})
        await until(lambda: bool(grid_of(maker).bids) and len(grid_of(maker).bids or ()) == 1)
        assert await shown(venue) == {"bids": [["2376", "4"]], "asks": [["2525", "4"]]}
        answer = await venue.ask("POST", "/firm", firm_request())
        order = decode_firm_response(answer.body).order
        assert isinstance(order, FirmOrder), answer.body
        assert order.maker_amount == str(2_376 * 10**6)


@TRANSPORTS
async def test_what_it_takes_down_goes_here_too_and_comes_back(tmp_path: Path, over: str) -> None:
    async with mirrored(tmp_path, over) as (upstream, maker, venue):
        write_prices(upstream.folder, **{PAIR: {}})
        await until(lambda: not grid_of(maker).bids)
        assert await shown(venue) == {}
        assert (await venue.ask("POST", "/firm", firm_request())).status >= 400
        write_prices(upstream.folder)
        await until(lambda: bool(grid_of(maker).bids))
        assert (await shown(venue))["asks"][0] == ["2526.01", "0.5"]


@TRANSPORTS
async def test_when_it_stops_our_prices_go_at_once(tmp_path: Path, over: str) -> None:
    async with mirrored(tmp_path, over) as (upstream, maker, venue):
        upstream.stop.set()
        with trio.fail_after(PATIENCE_S):
            await upstream.stopped.wait()
        await until(lambda: not grid_of(maker).bids)
        assert await shown(venue) == {}
        assert (await venue.ask("POST", "/firm", firm_request())).status >= 400
        assert maker.feeds[CHAIN_ID].restarts == 0


async def test_a_pair_of_other_tokens_is_not_mirrored_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = structlog.testing.LogCapture()
    monkeypatch.setattr("cambist.engine.maker.app._log", structlog.wrap_logger(None, processors=[said]))
    more = f'[maker.chains.{CHAIN_ID}.pairs."DAI/USDC"]\nbase = "DAI"\nquote = "USDC"\nliquidity_usd = 1\n'
    async with trio.open_nursery() as nursery:
        upstream: Upstream = await nursery.start(_serve, beside(tmp_path, "upstream"))
        options = mirroring(upstream, "http", pairs={PAIR: PAIR, "DAI/USDC": PAIR}).maker
        assert options
        mirror = options.chains[CHAIN_ID].price_options
        settings = settings_of(more, price_source="mirror", price_options=mirror)
        async with running_maker(beside(tmp_path, "ours"), settings) as (_, venue):
            prices = (await venue.get("/prices"))["prices"]
            assert prices[PAIR]["bids"]
            assert prices["DAI/USDC"] == {}
        upstream.stop.set()
    details = [entry["detail"] for entry in said.entries if entry["event"] == "price source"]
    assert "DAI/USDC: WETH/USDC of the mirrored maker is not of the same base and quote" in details


@TRANSPORTS
async def test_a_mirroring_maker_keeps_the_rules_of_grids(tmp_path: Path, over: str) -> None:
    async with mirrored(tmp_path, over) as (_, _, venue):
        report = await run_checks(
            CheckOptions(
                base=read_base_url(f"http://127.0.0.1:{venue.port}{PREFIX}", "URL", ("http",)),
                credentials=Credentials("venue", "key-1", SECRET.encode()),
                selection=Selection(only=("prices.*", "pairs.*", "tokens.*"), strict=True),
            ),
            now_ms=now_ms,
        )
    assert report.conforms, told(report)
