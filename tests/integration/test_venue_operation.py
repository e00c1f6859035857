"""A running venue as its operator and as a trader who follows a price see it: makers, sockets, chain."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from cambist.config.settings import parse_settings
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.venue.app import opened_venue
from cambist.engine.trade.events.webhooks import Webhooks
from cambist.feeds.transport.streams import listen
from support.events.event_streams import EventStream
from support.patience import until
from support.venue.venue_role import (
    CHAIN_ID,
    ENVIRON,
    GRIDS,
    RunningVenue,
    running_venue,
    served_devnet,
    venue_text,
)

ROOT = Path(__file__).parents[2]

Told = dict[tuple[str, ...], float]


async def metrics(venue: RunningVenue) -> Told:
    """(name, values of the labels in the order of their names) -> number."""
    response = await venue.ask("GET", "/metrics")
    assert response.status == 200
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(response.body.decode())
        for sample in family.samples
    }


def received(event: tuple[str, dict[str, Any]]) -> Decimal:
    """USDC of a Market quote."""
    kind, body = event
    assert kind == "quote", event
    return Decimal(body["market"]["destAmount"]).scaleb(-6)


async def test_metrics_tell_what_happened(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC", mode="MARKET"))
        await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC"))
        status, _ = await venue.answer("/v2/quote", **venue.selling("WETH", 10**6, "USDC"))
        assert status == 400
        told = await metrics(venue)
        assert told["cambist_quotes_total", "MARKET", "market"] == 1
        assert told["cambist_quotes_total", "ALL", "delta"] == 1
        assert told["cambist_quotes_total", "ALL", "NoRoute"] == 1
        for maker, pairs in GRIDS.items():
            assert told["cambist_feed_pairs", str(CHAIN_ID), maker, "live"] == len(pairs)
            assert told["cambist_feed_withheld", str(CHAIN_ID), maker] == 0
            assert told["cambist_feed_age_seconds", str(CHAIN_ID), maker] < 10
        assert told["cambist_feed_socket_up", str(CHAIN_ID), "alpha"] == 1
        assert told["cambist_server_requests_total",] >= 3
        assert told["cambist_request_seconds_count", "GET /v2/quote"] == 3
        assert ("cambist_request_seconds_count", "GET /prices") not in told
        assert told["cambist_admitted_total", "public"] == 3
        assert told["cambist_store_away",] == 0
        assert told["cambist_firm_swaps_total", str(CHAIN_ID), "filled"] == 0
        assert told["process_cpu_seconds_total",] > 0


async def test_firm_quotes_are_told_of_by_maker_and_outcome(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        sale = venue.selling("WETH", 1, "USDC", network=CHAIN_ID, version="6.2", chainId=None)
        route = (await venue.get("/prices", **sale))["priceRoute"]
        body = {
            "srcToken": route["srcToken"],
            "destToken": route["destToken"],
            "srcAmount": route["srcAmount"],
            "priceRoute": route,
            "slippage": 100,
            "userAddress": f"0x{'ab' * 20}",
        }
        with venue.with_key():
            status, built = await venue.post(f"/transactions/{CHAIN_ID}", body, ignoreChecks="true")
        assert status == 200, built
        told = await metrics(venue)
        clean = {key: number for key, number in told.items() if key[0] == "cambist_firm_quotes_total"}
        assert sum(clean.values()) >= 1
        assert {key[3] for key in clean} == {"clean"}
        timed = [number for key, number in told.items() if key[0] == "cambist_firm_quote_seconds_count"]
        assert sum(timed) >= sum(clean.values())
        assert told["cambist_firm_swaps_total", str(CHAIN_ID), "filled"] == 1


async def test_a_stream_follows_a_maker_and_ends_with_the_venue(tmp_path: Path) -> None:
    async with running_venue(tmp_path, grids={"alpha": GRIDS["alpha"]}) as venue:
        query = urlencode(venue.selling("WETH", 1, "USDC", mode="MARKET"))
        async with await trio.open_tcp_stream("127.0.0.1", venue.port) as stream:
            events = EventStream(stream)
            await events.open(b"/v2/quote/stream?" + query.encode())
            before = received(await events.event())
            venue.quote_prices(
                "alpha", tmp_path / "maker-alpha", **{"WETH/USDC": {"bids": [["2600", "20"]], "asks": []}}
            )
            after = received(await events.event())
            assert before < 2_590 < after <= 2_600
            assert (await metrics(venue))["cambist_quote_streams_streams",] == 1
            venue.app.drain()
            await events.rest()
        await until(lambda: not venue.app.status()["quoteStreams"]["streams"])


async def test_readiness_is_that_of_the_books(tmp_path: Path) -> None:
    async with running_venue(tmp_path, grids={"alpha": GRIDS["alpha"]}) as venue:
        assert await venue.answer("/readyz") == (200, {"ready": True, "reasons": []})
        venue.quote_prices("alpha", tmp_path / "maker-alpha", **{pair: {} for pair in GRIDS["alpha"]})
        await until(lambda: bool(venue.app.not_ready()))
        status, told = await venue.answer("/readyz")
        assert status == 503
        assert told == {"ready": False, "reasons": [f"chain {CHAIN_ID}: no maker has a live book"]}
        assert (await venue.answer("/healthz"))[0] == 200


async def test_the_docs_name_every_metric_and_no_other(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guides" / "operations.md").read_text(encoding="utf-8")
    table = page.partition("## Metrics")[2].partition("`process_*`")[0]
    async with running_venue(tmp_path) as venue:
        response = await venue.ask("GET", "/metrics")
    told = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(response.body.decode())
        if family.name.startswith("cambist_")
    }
    assert set(re.findall(r"`(cambist_\w+)`", table)) == told


async def test_a_drain_during_the_start_is_not_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = trio.Event(), trio.Event()
    run = Webhooks.run

    async def held(self: Webhooks, *, task_status: trio.TaskStatus[None]) -> None:
        begun.set()
        await goes_on.wait()
        await run(self, task_status=task_status)

    monkeypatch.setattr(Webhooks, "run", held)
    async with served_devnet(tmp_path) as devnet:
        settings = parse_settings(venue_text(devnet, {}), ENVIRON, tmp_path)
        async with opened_venue(
            settings, environ=ENVIRON, folder=tmp_path, clock=WallClock(), store_in_process=True
        ) as app:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(app.run, listen("127.0.0.1", 0), listen("127.0.0.1", 0))
                await begun.wait()
                assert "the venue starts" in app.not_ready()
                app.drain()
                goes_on.set()
            assert "the venue ends" in app.not_ready()
