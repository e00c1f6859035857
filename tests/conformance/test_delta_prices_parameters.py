"""interop.md 3, GET /v2/delta/prices and its neighbours: each parameter; the answer has no envelope."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from cambist.codecs.canonical_json import canonical
from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.quote.issued import quoted_as
from support.venue.quiet_venue import (
    A_PURCHASE,
    A_SALE,
    DELTA,
    MARKET_ONLY,
    NATIVE,
    USDC,
    USER,
    QuietVenue,
    a_quiet_venue,
)

PRICES = "/v2/delta/prices"


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[QuietVenue]:
    async with a_quiet_venue(tmp_path) as venue:
        yield venue


async def test_it_is_the_delta_block_of_the_quote(venue: QuietVenue) -> None:
    for asked in (A_SALE, A_PURCHASE):
        quote = (await venue.get("/v2/quote", **asked, mode="DELTA"))["delta"]
        told = await venue.get(PRICES, **asked)
        assert told | {"id": ""} == quote | {"id": ""}
        assert told["spender"] == DELTA
        assert told["alternatives"] == []


@pytest.mark.parametrize(
    "name", ["chainId", "srcToken", "destToken", "amount", "srcDecimals", "destDecimals"]
)
async def test_a_required_parameter(venue: QuietVenue, name: str) -> None:
    status, told = await venue.answer(PRICES, **A_SALE | {name: None})
    assert (status, told["errorType"]) == (400, "InvalidInput")
    assert name in told["details"]


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("side", "buy", "both"),
        ("destChainId", A_SALE["chainId"], "x"),
        ("userAddress", USER, "0x1"),
        ("beneficiary", USER, "0x1"),
        ("partner", "anon", "x" * 129),
        ("partnerFeeBps", 20, 201),
        ("maxImpact", "1.5", "much"),
        ("maxUSDImpact", "100", "much"),
        ("includeAgents", "one,two", "x" * 129),
        ("excludeAgents", "one", "x" * 129),
        ("includeBridges", "one", "x" * 129),
        ("excludeBridges", "one", "x" * 129),
        ("allowBridgeAndSwap", "false", "perhaps"),
    ],
)
async def test_an_optional_parameter(venue: QuietVenue, name: str, right: object, wrong: object) -> None:
    asked = A_PURCHASE if name == "side" else A_SALE
    assert (await venue.answer(PRICES, **asked | {name: right}))[0] == 200
    status, told = await venue.answer(PRICES, **asked | {name: wrong})
    assert (status, told["errorType"]) == (400, "InvalidInput")
    assert name in told["details"]


@pytest.mark.parametrize("native", [NATIVE.lower(), "0x0", "0x" + "00" * 20], ids=["lower", "0x0", "zero"])
@pytest.mark.parametrize("name", ["srcToken", "destToken"])
async def test_the_native_token_has_one_spelling(venue: QuietVenue, name: str, native: str) -> None:
    """choices.md#chains-and-tokens."""
    status, told = await venue.answer(PRICES, **A_SALE | {name: native})
    assert (status, told["errorType"]) == (400, "InvalidToken")
    assert told["details"].startswith(f"Invalid {name}: ")


async def test_a_lane_that_is_not_there(venue: QuietVenue) -> None:
    """choices.md#quotes-and-routes."""
    status, told = await venue.answer(PRICES, **A_SALE, destChainId=10)
    assert (status, told["errorType"]) == (400, "NoRoute")
    assert told["details"].startswith("No route (crosschain): ")


async def test_what_is_priced_is_remembered(venue: QuietVenue) -> None:
    before = venue.app.issued.statistics().kept
    await venue.get(PRICES, **A_SALE)
    assert venue.app.issued.statistics().kept == before + 1


@pytest.mark.parametrize("life_s", [30, 3_600])
async def test_a_route_may_be_built_from_for_as_long_as_the_settings_say(tmp_path: Path, life_s: int) -> None:
    """choices.md#delta-orders: at least for so long, and at most a minute longer."""
    environ = {"CAMBIST__VENUE__ROUTE_LIFE_S": str(life_s)}
    async with a_quiet_venue(tmp_path, environ=environ) as venue:
        before_ms = venue.clock.now_ms()
        route = (await venue.get(PRICES, **A_SALE))["route"]
        after_ms = venue.clock.now_ms()
        sent_back = quoted_as(Side.SELL, canonical(msgspec.json.encode(route)))
        assert await venue.app.issued.is_issued(sent_back, before_ms + life_s * 1_000)
        assert not await venue.app.issued.is_issued(sent_back, after_ms + (life_s + 60) * 1_000)


@pytest.mark.parametrize("token", [USDC, USDC.lower(), NATIVE, "USDC"])
async def test_is_token_supported(venue: QuietVenue, token: str) -> None:
    path = f"{PRICES}/is-token-supported"
    assert await venue.get(path, chainId=A_SALE["chainId"], token=token) == {"supported": True}
    status, told = await venue.answer(path, chainId=MARKET_ONLY, token=token)
    assert (status, told["errorType"]) == (422, "UnsupportedChain")


@pytest.mark.parametrize(
    ("path", "empty", "wrong"),
    [
        ("bridge-routes?bridges=a,b&allowBridgeAndSwap=false", {"routes": []}, "allowBridgeAndSwap=perhaps"),
        ("bridge-routes", {"routes": []}, f"bridges={'x' * 129}"),
        ("bridge-protocols", {"bridgeProtocols": []}, ""),
        (f"strategies/{A_SALE['chainId']}", {}, ""),
    ],
)
async def test_documented_paths_answer_with_nothing_in_them(
    venue: QuietVenue, path: str, empty: object, wrong: str
) -> None:
    """choices.md#quotes-and-routes."""
    assert await venue.get(f"{PRICES}/{path}") == empty
    bare, _, query = path.partition("?")
    assert await venue.get(f"{PRICES}/{bare}/" + (f"?{query}" if query else "")) == empty
    if wrong:
        status, told = await venue.answer(f"{PRICES}/{bare}?{wrong}")
        assert (status, told["errorType"]) == (400, "InvalidInput")


@pytest.mark.parametrize("chain_id", [MARKET_ONLY, 5])
async def test_strategies_of_a_chain_without_delta(venue: QuietVenue, chain_id: int) -> None:
    status, told = await venue.answer(f"{PRICES}/strategies/{chain_id}")
    assert (status, told["errorType"]) == (422, "UnsupportedChain")
