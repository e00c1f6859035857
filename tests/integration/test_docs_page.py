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

pytestmark = pytest.mark.seldom

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


@pytest.mark.process
@pytest.mark.needs("curl")
async def test_a_reader_tries_a_quote_and_an_order_and_takes_the_snippets_along(
    tmp_path: Path, browser: Browser
) -> None:
    async with running_venue(tmp_path) as venue:
        quoted = await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC", mode="DELTA"))
        route = quoted["delta"]["route"]
        told = await read(
            browser,
            venue,
            {"operation": "getV2Quote", "parameters": {"amount": "2000000000000000000"}},
            {"operation": "postV2DeltaOrdersBuild", "body": a_build(route)},
            {"operation": "getFtEvents"},
        )
        await leads_to_the_documents(venue, told)
        quote, built, stream = told["done"]
        assert stream is None, "a stream has no end, so that the page cannot show its answer"
        assert (quote["status"], built["status"]) == (200, 200)
        priced = msgspec.json.decode(quote["body"])["delta"]["route"]
        assert priced["origin"]["input"]["amount"] == "2000000000000000000"
        for tab in TABS:
            assert (await ran(tab, quote["copied"][tab]))["delta"]["route"] == priced
            assert await ran(tab, built["copied"][tab]) == msgspec.json.decode(built["body"])


async def leads_to_the_documents(venue: RunningVenue, told: dict[str, Any]) -> None:
    """Assert that the page shows each operation of the document, and that its links lead somewhere."""
    document = await venue.get("/openapi.json")
    described = [path for path, methods in document["paths"].items() for _ in methods]
    assert told["title"] == "cambist API"
    assert sorted(told["operations"]) == sorted(described)
    assert {"/openapi.json", "/asyncapi.json", "/docs/LICENSE.txt"} <= set(told["links"])
    for link in told["links"]:
        assert (await venue.ask("GET", link)).status == 200, link
