"""choices.md#chains-and-tokens, choices.md#requests-and-errors: without a relayer Delta is not served, and
everything says so alike."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.venue.quiet_venue import (
    A_PURCHASE,
    A_SALE,
    CHAIN_ID,
    DELTA_ONLY,
    USDC,
    USER,
    QuietVenue,
    a_quiet_venue,
)

LACK = f"Delta is not served on chain {CHAIN_ID}: no relayer settles its orders"
ORDERS, PRICES = "/v2/delta/orders", "/v2/delta/prices"


async def posted(venue: QuietVenue, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    reply = await venue.ask("POST", path, msgspec.json.encode(body))
    return reply.status, msgspec.json.decode(reply.body)


@pytest.mark.parametrize("relayers", [(), (CHAIN_ID,), (CHAIN_ID, DELTA_ONLY)])
async def test_chains_tell_where_delta_orders_are_taken(tmp_path: Path, relayers: tuple[int, ...]) -> None:
    async with a_quiet_venue(tmp_path, relayers=relayers) as venue:
        chains = await venue.get("/chains")
        assert {one["chainId"] for one in chains if one["delta"]} == set(relayers)


@pytest.mark.parametrize("asked", [A_SALE, A_PURCHASE], ids=["sale", "purchase"])
async def test_a_quote_falls_back_and_names_what_is_missing(tmp_path: Path, asked: dict[str, Any]) -> None:
    async with a_quiet_venue(tmp_path, relayers=()) as venue:
        told = await venue.get("/v2/quote", **asked)
        assert "market" in told
        assert "delta" not in told
        assert told["fallbackReason"] == {"errorType": "NoRoute", "details": f"No route: {LACK}"}
        status, refusal = await venue.answer("/v2/quote", **asked, mode="DELTA")
        assert (status, refusal["details"]) == (400, f"No route: {LACK}")
        status, refusal = await venue.answer("/v2/quote", **asked | {"chainId": DELTA_ONLY})
        assert status == 400
        assert refusal["details"].endswith("no relayer settles its orders")


@pytest.mark.parametrize(
    "path",
    [
        f"{PRICES}/is-token-supported?chainId={CHAIN_ID}&token={USDC}",
        f"{PRICES}/strategies/{CHAIN_ID}",
        f"/v2/delta/agents/list/{CHAIN_ID}",
        f"{ORDERS}/fillablebalance/{CHAIN_ID}/{USER}",
    ],
)
async def test_other_paths_name_what_is_missing(tmp_path: Path, path: str) -> None:
    async with a_quiet_venue(tmp_path, relayers=()) as venue:
        status, refusal = await venue.answer(path)
        assert (status, refusal["errorType"]) == (422, "UnsupportedChain")
        assert LACK in refusal["details"]


async def test_what_was_quoted_is_not_built_once_the_relayer_is_gone(tmp_path: Path) -> None:
    async with a_quiet_venue(tmp_path) as venue:
        route = (await venue.get(PRICES, **A_SALE))["route"]
        body = {"route": route, "owner": USER, "deadline": venue.clock.now_ms() // 1_000 + 600}
        status, built = await posted(venue, f"{ORDERS}/build", body)
        assert status == 200
        await venue.app.issued.flush()
    async with a_quiet_venue(tmp_path, relayers=()) as venue:
        order = {"chainId": CHAIN_ID, "order": built["toSign"]["value"], "signature": "0x" + "11" * 64}
        for path, sent in ((f"{ORDERS}/build", body), (ORDERS, order | {"partner": "anon"})):
            status, refusal = await posted(venue, path, sent)
            assert (status, refusal["errorType"]) == (422, "UnsupportedChain")
            assert LACK in refusal["details"]
