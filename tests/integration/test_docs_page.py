"""A reader of /docs, in a browser: all operations are there, can be tried, and have snippets that run."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from cambist.crypto.addresses import to_checksum
from support.browser import Browser
from support.oracles import NODE
from support.patience import PATIENCE_S
from support.venue.venue_role import USER, RunningVenue, running_venue

TABS = {"curl": ("bash", "-c"), "JavaScript": (NODE, "--input-type=module", "--eval")}
"""Title of a tab -> command that runs the text in it, which is the last argument."""


async def read(browser: Browser, venue: RunningVenue, *steps: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = await browser.visit("docs_visit", venue.url, json.dumps(steps))
    return told


async def ran(tab: str, snippet: str) -> Any:
    """JSON that a snippet prints, as it was copied from the page; a status before it has to be 200."""
    with trio.fail_after(PATIENCE_S):
        done = await trio.run_process([*TABS[tab], snippet], capture_stdout=True, capture_stderr=True)
    return msgspec.json.decode(done.stdout.decode().strip().removeprefix("200 "))


def a_build(route: Any) -> dict[str, Any]:
    """Body of POST /v2/delta/orders/build whose answer is the same each time."""
    return {"route": route, "owner": to_checksum(USER.address), "deadline": 2**37, "nonce": "7"}


async def test_the_page_shows_all_operations_and_leads_to_the_documents(
    tmp_path: Path, browser: Browser
) -> None:
    async with running_venue(tmp_path) as venue:
        told = await read(browser, venue)
        document = await venue.get("/openapi.json")
        assert told["title"] == "cambist API"
        described = [path for path, methods in document["paths"].items() for _ in methods]
        assert sorted(told["operations"]) == sorted(described)
        assert {"/openapi.json", "/asyncapi.json", "/docs/LICENSE.txt"} <= set(told["links"])
        for link in told["links"]:
            assert (await venue.ask("GET", link)).status == 200, link


@pytest.mark.process
async def test_a_reader_tries_a_quote_and_an_order_and_takes_the_snippets_along(
    tmp_path: Path, browser: Browser
) -> None:
    async with running_venue(tmp_path) as venue:
        quoted = await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC", mode="DELTA"))
        route = quoted["delta"]["route"]
        told = await read(
            browser,
            venue,
            {"operation": "getV2Quote"},
            {"operation": "postV2DeltaOrdersBuild", "body": a_build(route)},
        )
        quote, built = told["done"]
        assert (quote["status"], built["status"]) == (200, 200)
        assert msgspec.json.decode(quote["body"])["delta"]["route"]["bridge"] is None
        for tab in TABS:
            again = await ran(tab, quote["copied"][tab])
            assert again["delta"]["route"] == msgspec.json.decode(quote["body"])["delta"]["route"]
            assert await ran(tab, built["copied"][tab]) == msgspec.json.decode(built["body"])
