"""The console's part of a venue: files under their policy, makers' books, the operator's routes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.resource_messages import MakerBooks
from cambist.config.errors import ConfigError
from cambist.config.secret import Secret
from cambist.config.sections.venue import ApiKey
from cambist.config.settings import Settings, parse_settings
from cambist.crypto.hmac_auth import RequestSigner
from support.patience import until
from support.venue.venue_role import API_KEY, CHAIN_ID, GRIDS, SECRETS, RunningVenue, running_venue

OPERATOR = {"x-api-key": API_KEY}
AFAR = {"x-forwarded-for": "203.0.113.7"}
"""Headers of a request that came through a proxy, so that it is not of this machine."""
NODE, EXPLORER = "http://127.0.0.1:8545", "https://explorer.example"
BOOKS = f"/makers/books?network={CHAIN_ID}"


def with_node(settings: Settings) -> Settings:
    """The settings with a node for pages, and with a key that is not an operator's."""
    chain = msgspec.structs.replace(
        settings.chains[CHAIN_ID], wallet_url=f"{NODE}/rpc", explorer_url=EXPLORER
    )
    venue = settings.venue
    assert venue is not None
    keys = venue.api_keys | {"trader": ApiKey(secret=Secret("the-key-of-a-trader", "env:TRADER"))}
    return msgspec.structs.replace(
        settings,
        chains={**settings.chains, CHAIN_ID: chain},
        venue=msgspec.structs.replace(venue, api_keys=keys),
    )


async def books(venue: RunningVenue, query: str = "", **headers: str) -> dict[str, MakerBooks]:
    """GET /makers/books by maker."""
    response = await venue.ask("GET", BOOKS + query, headers=headers)
    assert response.status == 200, response.body
    return {one.maker: one for one in msgspec.json.decode(response.body, type=list[MakerBooks])}


async def posted(venue: RunningVenue, maker: str, body: Any, **headers: str) -> tuple[int, Any]:
    """Status and JSON of POST /operator/makers/{maker}."""
    sent = {"content-type": "application/json"} | headers
    response = await venue.ask("POST", f"/operator/makers/{maker}", msgspec.json.encode(body), sent)
    return response.status, msgspec.json.decode(response.body)


# --- The page -----------------------------------------------------------------------------------------


async def test_the_page_may_call_the_venue_and_the_named_nodes_alone(tmp_path: Path) -> None:
    async with running_venue(tmp_path, changed=with_node) as venue:
        page = await venue.ask("GET", "/")
        headers = dict(page.headers)
        assert (page.status, headers[b"content-type"]) == (200, b"text/html; charset=utf-8")
        policy = headers[b"content-security-policy"].decode()
        assert f"connect-src 'self' {NODE};" in policy
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        for path in ("/console/app.js", "/console/shared/dom.js", "/console/shared/style.css"):
            assert (await venue.ask("GET", path)).status == 200
        (chain,) = await venue.get("/chains")
        assert chain["walletUrl"] == f"{NODE}/rpc"
        assert chain["explorerUrl"] == EXPLORER


async def test_without_a_node_the_page_calls_the_venue_alone(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        page = await venue.ask("GET", "/")
        assert b"connect-src 'self';" in dict(page.headers)[b"content-security-policy"]
        (chain,) = await venue.get("/chains")
        assert "walletUrl" not in chain
        assert chain["explorerUrl"] is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[chains.1]\nwallet_url = "http://127.0.0.1:8545"', "is for development chains: 31337 and 31338"),
        ('[chains.31337]\nname = "devnet"\nwallet_url = "127.0.0.1:8545"', "http://"),
    ],
)
def test_a_node_for_pages_is_a_development_node(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_settings(text, {}, tmp_path)


# --- The makers' books --------------------------------------------------------------------------------


async def test_books_show_standing_to_everybody_and_ladders_to_few(tmp_path: Path) -> None:
    async with running_venue(tmp_path, changed=with_node) as venue:
        told = await books(venue, **AFAR)
        assert {name: one.standings for name, one in told.items()} == {
            name: {"live": len(pairs)} for name, pairs in GRIDS.items()
        }
        assert all(one.pairs is None and one.updated and one.withheld == () for one in told.values())
        for headers in (AFAR, AFAR | {"x-api-key": "the-key-of-a-trader"}):
            assert (await books(venue, "&makerName=alpha", **headers))["alpha"].pairs is None
        for headers in ({}, AFAR | OPERATOR):
            told = await books(venue, "&makerName=alpha&pair=WETH/USDC", **headers)
            assert told["alpha"].pairs is not None
            pair, other = told["alpha"].pairs
            assert (pair.pair, pair.bids, pair.best_bid) == ("WETH/DAI", None, "2498")
            assert (other.pair, other.standing, other.reason) == ("WETH/USDC", "live", "")
            assert [list(level) for level in other.bids or ()] == GRIDS["alpha"]["WETH/USDC"]["bids"]
            assert [list(level) for level in other.asks or ()] == GRIDS["alpha"]["WETH/USDC"]["asks"]
            assert (other.base, other.quote) == (venue.devnet.text("WETH"), venue.devnet.text("USDC"))


async def test_a_maker_sees_its_own_ladders_by_its_signature(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        for name, shown in (("beta", True), ("alpha", False)):
            query = f"&makerName={name}"
            signer = RequestSigner("venue", "key-1", SECRETS["beta"].encode())
            signed = signer.headers(venue.app._wall_ms(), "GET", BOOKS + query)
            told = await books(venue, query, **{key.lower(): value for key, value in signed.items()}, **AFAR)
            assert (told[name].pairs is not None) is shown


async def test_a_stopped_maker_is_shown_with_the_reason(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        venue.makers["beta"].switch.stop("pair 31337 WETH/DAI")
        index = venue.app.chains[CHAIN_ID].index
        await until(lambda: len(list(index.books())) == 4)
        pairs = (await books(venue, "&makerName=beta"))["beta"].pairs or ()
        assert {pair.pair: pair.standing for pair in pairs} == {
            "WBTC/USDC": "live",
            "WETH/DAI": "disabled",
            "WETH/USDC": "live",
        }


# --- The operator -------------------------------------------------------------------------------------


async def test_operators_routes_need_an_operators_key(tmp_path: Path) -> None:
    path = "/operator/status"
    async with running_venue(tmp_path, changed=with_node) as venue:
        for headers in ({}, {"x-api-key": "unknown"}, {"x-api-key": "the-key-of-a-trader"}):
            response = await venue.ask("GET", path, headers=headers)
            assert (response.status, b"Unauthorized" in response.body) == (401, True)
        assert (await posted(venue, "alpha", {"act": "exclude"}))[0] == 401


async def test_status_has_every_number_exactly(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        response = await venue.ask("GET", "/operator/status", headers=OPERATOR)
        told = msgspec.json.decode(response.body)
        assert told["readiness"] == {"ready": True, "reasons": []}
        assert len(told["loopLag"]["delays"]["counts"]) == len(told["boundsS"]) + 1
        assert len(told["store"]["store"]["commits"]) == len(told["store"]["boundsS"]) + 1
        (chain,) = told["delta"]["chains"].values()
        assert chain["relayer"]["balance_wei"].isdigit()


async def test_an_operator_leaves_a_maker_out_and_admits_it_again(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        assert await posted(venue, "beta", {"act": "exclude"}, **OPERATOR) == (
            200,
            {"excluded": ["beta: left out of all chains"]},
        )
        assert (await books(venue))["beta"].withheld == ("excluded",)
        refusals = [
            await posted(venue, "gamma", {"act": "exclude"}, **OPERATOR),
            await posted(venue, "beta", {"act": "exclude", "chainId": 5}, **OPERATOR),
            await posted(venue, "beta", {"act": "release", "chainId": CHAIN_ID}, **OPERATOR),
            await posted(venue, "beta", {"act": "stop"}, **OPERATOR),
        ]
        assert [status for status, _ in refusals] == [400] * 4
        assert "makerName: expected a maker of GET /makers/scores, got 'gamma'" in refusals[0][1]["details"]
        assert await posted(venue, "beta", {"act": "release"}, **OPERATOR) == (200, {"excluded": []})
        assert (await books(venue))["beta"].withheld == ()
