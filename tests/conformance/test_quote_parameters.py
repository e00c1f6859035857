"""GET /v2/quote (spec 1.12): each of its parameters, each error row that it can meet, word for word."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from cambist.crypto.hexadecimal import parse_hex
from support.venue.quiet_venue import (
    A_PURCHASE,
    A_SALE,
    CHAIN_ID,
    DAI,
    DELTA,
    DELTA_ONLY,
    ENVIRON,
    LONELY,
    MARKET_ONLY,
    NATIVE,
    ONE,
    PARTNER,
    ROUTER,
    USDC,
    USER,
    WETH,
    QuietVenue,
    a_quiet_venue,
)

QUOTE = "/v2/quote"
CHAINS = (1, 10, 56, 100, 130, 137, 8453, 42161, 43114)


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[QuietVenue]:
    async with a_quiet_venue(tmp_path) as venue:
        yield venue


# --- Parameters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["chainId", "srcToken", "destToken", "amount", "srcDecimals", "destDecimals"]
)
async def test_a_required_parameter(venue: QuietVenue, name: str) -> None:
    status, told = await venue.answer(QUOTE, **A_SALE | {name: None})
    assert (status, told["errorType"]) == (400, "InvalidInput")
    assert name in told["details"]


@pytest.mark.parametrize("chain_id", CHAINS)
async def test_chain_id_of_the_specs_list_is_served_if_configured(venue: QuietVenue, chain_id: int) -> None:
    status, told = await venue.answer(QUOTE, **A_SALE | {"chainId": chain_id})
    if chain_id in venue.app.chains:
        assert status == 200
    else:
        assert (status, told["errorType"]) == (422, "UnsupportedChain")


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "1e3"])
async def test_chain_id_is_a_positive_integer(venue: QuietVenue, value: str) -> None:
    status, told = await venue.answer(QUOTE, **A_SALE | {"chainId": value})
    assert (status, told["errorType"]) == (400, "InvalidInput")


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "1e18", "", "0x10", str(2**256)])
async def test_amount_is_raw_units_above_zero(venue: QuietVenue, value: str) -> None:
    status, told = await venue.answer(QUOTE, **A_SALE | {"amount": value})
    assert (status, told["errorType"]) == (400, "InvalidInput")
    assert "amount" in told["details"]


async def test_amount_is_of_the_source_for_sell_and_of_the_destination_for_buy(venue: QuietVenue) -> None:
    sale = (await venue.get(QUOTE, **A_SALE))["delta"]["route"]
    assert sale["origin"]["input"]["amount"] == A_SALE["amount"]
    bought = (await venue.get(QUOTE, **A_PURCHASE))["delta"]["route"]
    assert bought["destination"]["output"]["amount"] == A_PURCHASE["amount"]


@pytest.mark.parametrize("name", ["srcDecimals", "destDecimals"])
async def test_decimals_are_those_of_the_token(venue: QuietVenue, name: str) -> None:
    """choices.md#quotes-and-routes."""
    status, told = await venue.answer(QUOTE, **A_SALE | {name: 9})
    assert (status, told["errorType"]) == (400, "NoRoute")
    assert told["details"].startswith("No route: ")
    assert name in told["details"]


@pytest.mark.parametrize("mode", ["ALL", "all", "DELTA", "delta", "MARKET", "Market", None])
async def test_mode_in_any_case_gives_exactly_one_path(venue: QuietVenue, mode: str | None) -> None:
    told = await venue.get(QUOTE, **A_SALE, mode=mode)
    wants_market = (mode or "").upper() == "MARKET"
    assert ("market" in told, "delta" in told) == (wants_market, not wants_market)
    assert "fallbackReason" not in told


@pytest.mark.parametrize("side", ["SELL", "sell", "BUY", "buy", None])
async def test_side_in_any_case(venue: QuietVenue, side: str | None) -> None:
    wanted = (side or "SELL").upper()
    for path, block in (("DELTA", "delta"), ("MARKET", "market")):
        asked = (A_SALE if wanted == "SELL" else A_PURCHASE) | {"side": side, "mode": path}
        assert (await venue.get(QUOTE, **asked))[block]["side"] == wanted


@pytest.mark.parametrize("mode", ["ALL", "DELTA", "MARKET"])
async def test_dest_chain_id_of_another_chain_without_a_lane(venue: QuietVenue, mode: str) -> None:
    """choices.md#quotes-and-routes."""
    status, told = await venue.answer(QUOTE, **A_SALE, mode=mode, destChainId=1)
    assert (status, told["errorType"]) == (400, "NoRoute")
    assert told["details"].startswith("No route (crosschain): ")
    assert (await venue.get(QUOTE, **A_SALE, mode=mode, destChainId=CHAIN_ID)).keys() & {"delta", "market"}


@pytest.mark.parametrize("name", ["userAddress", "beneficiary"])
async def test_addresses(venue: QuietVenue, name: str) -> None:
    for address in (USER, USER.lower()):
        assert "delta" in await venue.get(QUOTE, **A_SALE, **{name: address})
    status, told = await venue.answer(QUOTE, **A_SALE, **{name: "0x12"})
    assert (status, told["errorType"]) == (400, "InvalidInput")
    assert name in told["details"]


@pytest.mark.parametrize("mode", ["DELTA", "MARKET"])
async def test_a_user_whom_a_maker_has_blacklisted_is_not_quoted_from_it(
    venue: QuietVenue, mode: str
) -> None:
    blacklist = venue.app.chains[CHAIN_ID].feeds["alpha"].cache.blacklist
    blacklist.add([parse_hex(USER, "user")], venue.clock.now_ms())
    free = await venue.get(QUOTE, **A_SALE, mode=mode, userAddress=PARTNER)
    barred = await venue.get(QUOTE, **A_SALE, mode=mode, userAddress=USER)
    assert given(free) > given(barred)


@pytest.mark.parametrize(
    ("partner", "requested", "name", "bps"),
    [
        (None, None, "anon", 1),
        ("nobody", None, "nobody", 1),
        ("nobody", 30, "nobody", 30),
        ("acme", None, "acme", 10),
        ("acme", 0, "acme", 10),
        ("acme", 5, "acme", 15),
        (None, 30, "anon", 30),
        (None, 200, "anon", 200),
        ("acme", 190, "acme", 200),
    ],
)
async def test_partner_and_partner_fee_bps(
    venue: QuietVenue, partner: str | None, requested: int | None, name: str, bps: int
) -> None:
    asked = A_SALE | {"partner": partner, "partnerFeeBps": requested}
    delta = (await venue.get(QUOTE, **asked, mode="DELTA"))["delta"]
    assert delta["partner"] == {"name": name, "feePercent": bps / 100}
    market = (await venue.get(QUOTE, **asked, mode="MARKET"))["market"]
    assert (market["partner"], market["partnerFee"]) == (name, bps / 100)
    assert int(market["destAmount"]) == 2_500 * 10**6 - 2_500 * 10**6 * bps // 10_000


@pytest.mark.parametrize("value", ["-1", "201", "x", "0.5"])
async def test_partner_fee_bps_is_0_to_200(venue: QuietVenue, value: str) -> None:
    status, told = await venue.answer(QUOTE, **A_SALE, partnerFeeBps=value)
    assert (status, told["errorType"]) == (400, "InvalidInput")


async def test_a_caller_with_a_key_has_the_partner_of_the_key(venue: QuietVenue) -> None:
    headers = {"X-API-KEY": ENVIRON["API_KEY"]}
    for more, name in (({}, "acme"), ({"partner": "small"}, "small")):
        reply = await venue.ask("GET", f"{QUOTE}?{urlencode(A_SALE | more)}", headers=headers)
        assert msgspec.json.decode(reply.body)["delta"]["partner"]["name"] == name
        sale = A_SALE | more | {"mode": "MARKET"}
        reply = await venue.ask("GET", f"{QUOTE}?{urlencode(sale)}", headers=headers)
        assert msgspec.json.decode(reply.body)["market"]["partner"] == name
        prices = sale | {"version": "6.2"}
        reply = await venue.ask("GET", f"/prices?{urlencode(prices)}", headers=headers)
        assert msgspec.json.decode(reply.body)["priceRoute"]["partner"] == name
        prices = await venue.get("/prices", **sale)
        assert prices["priceRoute"]["partner"] == more.get("partner", "anon")


@pytest.mark.parametrize(
    ("parameters", "reached"),
    [
        ({}, False),
        ({"maxImpact": "0.001"}, True),
        ({"maxImpact": "5"}, False),
        ({"maxUSDImpact": "0.1"}, True),
        ({"maxUSDImpact": "50"}, False),
    ],
)
async def test_max_impact_is_told_and_never_an_error(
    venue: QuietVenue, parameters: dict[str, str], reached: bool
) -> None:
    """choices.md#quotes-and-routes; interop.md 3."""
    told = await venue.get(QUOTE, **A_SALE, **parameters, mode="MARKET")
    assert told["market"]["maxImpactReached"] is reached
    assert "delta" in await venue.get(QUOTE, **A_SALE, **parameters, mode="DELTA")


@pytest.mark.parametrize("name", ["maxImpact", "maxUSDImpact"])
async def test_max_impact_is_a_number(venue: QuietVenue, name: str) -> None:
    for value in ("x", "1e2", "-1", "NaN"):
        status, told = await venue.answer(QUOTE, **A_SALE, **{name: value})
        assert (status, told["errorType"]) == (400, "InvalidInput")


async def test_what_nobody_knows_is_ignored(venue: QuietVenue) -> None:
    """choices.md#fees-and-partners."""
    assert "delta" in await venue.get(QUOTE, **A_SALE, utm_source="x", version="6.2")


# --- The Delta block ------------------------------------------------------------------------------------


async def test_the_delta_block(venue: QuietVenue) -> None:
    told = await venue.get(QUOTE, **A_SALE, mode="DELTA")
    delta = told["delta"]
    assert told.keys() == {"delta", "deltaAddress"}
    assert told["deltaAddress"] == delta["spender"] == DELTA
    assert delta.keys() == {
        "id", "side", "inputToken", "outputToken", "route", "partner", "spender", "alternatives",
    }  # fmt: skip
    assert delta["inputToken"] == {"chainId": CHAIN_ID, "address": WETH}
    assert delta["outputToken"] == {"chainId": CHAIN_ID, "address": USDC}
    assert delta["alternatives"] == []
    route = delta["route"]
    assert route.keys() == {"origin", "destination", "bridge", "fees"}
    assert route["bridge"] is None
    assert route["origin"] == route["destination"]
    assert route["fees"]["bridge"] == []
    gas = int(route["fees"]["gas"]["amount"])
    left = 2_500 * 10**6 - gas
    assert int(route["origin"]["output"]["amount"]) == left - left // 10_000
    assert route["origin"]["input"]["token"] == delta["inputToken"]
    assert route["fees"]["gas"]["token"] == delta["outputToken"]
    assert Decimal(route["origin"]["input"]["amountUSD"]) == Decimal("2500.5")
    assert Decimal(route["fees"]["gas"]["amountUSD"]) == Decimal(gas).scaleb(-6)


async def test_a_purchase_pays_gas_and_fee_on_top(venue: QuietVenue) -> None:
    route = (await venue.get(QUOTE, **A_PURCHASE, mode="DELTA"))["delta"]["route"]
    gas = int(route["fees"]["gas"]["amount"])
    assert route["fees"]["gas"]["token"]["address"] == WETH
    cost = 1_000 * ONE // 2_500  # at alpha's bid
    assert int(route["origin"]["input"]["amount"]) == cost + gas + (cost + gas) // 10_000


async def test_the_native_token_is_priced_as_its_wrapped_form(venue: QuietVenue) -> None:
    for mode, block in (("DELTA", "delta"), ("MARKET", "market")):
        wrapped = await venue.get(QUOTE, **A_SALE, mode=mode)
        native = await venue.get(QUOTE, **A_SALE | {"srcToken": NATIVE}, mode=mode)
        assert given(native) == given(wrapped)
        text = str(native[block])
        assert NATIVE in text


async def test_two_hops(venue: QuietVenue) -> None:
    told = await venue.get(
        QUOTE, **A_SALE | {"srcToken": DAI, "srcDecimals": 18, "amount": str(1_000 * ONE)}, mode="MARKET"
    )
    (path,) = told["market"]["bestRoute"]
    assert [(swap["srcToken"], swap["destToken"]) for swap in path["swaps"]] == [(DAI, WETH), (WETH, USDC)]


# --- Which path -----------------------------------------------------------------------------------------


async def test_all_falls_back_to_market_with_the_reason(venue: QuietVenue) -> None:
    dust = A_SALE | {"amount": str(10**12)}  # 0.0025 USDC: gas costs more
    told = await venue.get(QUOTE, **dust)
    assert told.keys() == {"market", "fallbackReason"}
    reason = told["fallbackReason"]
    assert reason.keys() == {"errorType", "details"}
    assert reason["errorType"] == "GasCostExceedsTradeAmount"
    status, refused = await venue.answer(QUOTE, **dust, mode="DELTA")  # choices.md#quotes-and-routes
    assert (status, refused["errorType"], refused["details"]) == (400, *reason.values())


async def test_a_chain_without_delta(venue: QuietVenue) -> None:
    """choices.md#chains-and-tokens."""
    sale = A_SALE | {"chainId": MARKET_ONLY}
    told = await venue.get(QUOTE, **sale)
    assert told.keys() == {"market", "fallbackReason"}
    assert told["fallbackReason"]["errorType"] == "NoRoute"
    status, refused = await venue.answer(QUOTE, **sale, mode="DELTA")
    assert (status, refused["errorType"]) == (400, "NoRoute")
    status, refused = await venue.answer("/v2/delta/prices", **sale)
    assert (status, refused["errorType"]) == (422, "UnsupportedChain")


async def test_a_chain_without_market(venue: QuietVenue) -> None:
    sale = A_SALE | {"chainId": DELTA_ONLY}
    assert "delta" in await venue.get(QUOTE, **sale)
    status, refused = await venue.answer(QUOTE, **sale, mode="MARKET")
    assert (status, refused["errorType"]) == (400, "NoRoute")
    status, refused = await venue.answer(QUOTE, **sale | {"amount": str(10**12)})
    assert (status, refused["errorType"]) == (400, "GasCostExceedsTradeAmount")
    status, refused = await venue.answer("/prices", **sale)
    assert (status, refused["errorType"]) == (422, "UnsupportedChain")
    status, refused = await venue.answer("/swap", **sale, userAddress=USER, slippage=100)
    assert (status, refused["errorType"]) == (422, "UnsupportedChain")
    route = (await venue.get(QUOTE, **A_SALE, mode="MARKET"))["market"]
    build = {"priceRoute": route, "srcToken": WETH, "destToken": USDC, "userAddress": USER, "slippage": 100}
    reply = await venue.ask("POST", f"/transactions/{DELTA_ONLY}", msgspec.json.encode(build))
    assert (reply.status, msgspec.json.decode(reply.body)["errorType"]) == (422, "UnsupportedChain")


async def test_market_of_a_quote_is_version_6_2(venue: QuietVenue) -> None:
    """choices.md#quotes-and-routes."""
    told = (await venue.get(QUOTE, **A_SALE, mode="MARKET"))["market"]
    assert told["version"] == "6.2"
    assert told["contractAddress"] == told["tokenTransferProxy"] == ROUTER
    assert len(told["hmac"]) > 80


# --- Error rows -----------------------------------------------------------------------------------------

LOWER = NATIVE.lower()
ERRORS: list[tuple[str, dict[str, Any], int, str, str]] = [
    (
        "no liquidity",
        {"destToken": LONELY, "destDecimals": 18},
        400,
        "NoRoute",
        "No route: no live books lead from WETH to LONELY",
    ),
    (
        "more than the books hold",
        {"amount": str(10**24)},
        400,
        "NoRoute",
        "No route: the amount is more than the live books between WETH and USDC hold",
    ),
    ("less than a unit", {"amount": "1"}, 400, "NoRoute", "No route: the amount is too small"),
    ("wrong decimals", {"srcDecimals": 6}, 400, "NoRoute", "No route"),
    ("for itself", {"destToken": WETH, "destDecimals": 18}, 400, "NoRoute", "No route"),
    ("for its wrapped form", {"destToken": NATIVE, "destDecimals": 18}, 400, "NoRoute", "No route"),
    ("lane unsupported", {"destChainId": 10}, 400, "NoRoute", "No route (crosschain)"),
    ("not listed", {"srcToken": USER}, 400, "TokenNotSupported", "Token not supported"),
    ("lowercase native source", {"srcToken": LOWER}, 400, "InvalidToken", "Invalid srcToken"),
    ("lowercase native destination", {"destToken": LOWER}, 400, "InvalidToken", "Invalid destToken"),
    ("zero source", {"srcToken": "0x" + "00" * 20}, 400, "InvalidToken", "Invalid srcToken"),
    ("0x0 destination", {"destToken": "0x0"}, 400, "InvalidToken", "Invalid destToken"),
    ("another chain", {"chainId": 5}, 422, "UnsupportedChain", "Unsupported chain"),
    (
        "stacked fee",
        {"partner": "acme", "partnerFeeBps": 191},
        422,
        "PartnerNotAllowed",
        "Partner not allowed",
    ),
    (
        "the tier's bound",
        {"partner": "small", "partnerFeeBps": 16},
        422,
        "PartnerNotAllowed",
        "Partner not allowed",
    ),
]


@pytest.mark.parametrize("mode", ["ALL", "DELTA", "MARKET"])
@pytest.mark.parametrize(
    ("changes", "status", "error_type", "message"),
    [row[1:] for row in ERRORS],
    ids=[row[0] for row in ERRORS],
)
async def test_error_row(
    venue: QuietVenue, mode: str, changes: dict[str, Any], status: int, error_type: str, message: str
) -> None:
    got, told = await venue.answer(QUOTE, **A_SALE | changes, mode=mode)
    assert (got, told["errorType"]) == (status, error_type)
    assert told["details"] == told["description"] == told["error"]
    assert told["details"] == message or told["details"].startswith(f"{message}: ")
    assert told["requestId"] == "request-1"
    assert told.keys() == {"errorType", "details", "description", "error", "requestId"}


def given(quote: dict[str, Any]) -> int:
    """Quoted destination amount of the user."""
    if "market" in quote:
        return int(quote["market"]["destAmount"])
    return int(quote["delta"]["route"]["destination"]["output"]["amount"])
