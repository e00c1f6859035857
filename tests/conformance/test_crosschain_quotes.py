"""Quotes across chains (spec 1.7, 1.12, 1.22): routes, bridges, alternatives, reasons of refusals."""

from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import msgspec
import pytest

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    CctpTerms,
    fee_of,
    input_of,
    output_of,
    parse_terms,
)
from cambist.codecs.canonical_json import canonical
from cambist.codecs.eip712_orders.delta import DeltaBridge
from cambist.codecs.messages.vocabulary import Side
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.engine.trade.quote.issued import quoted_as
from support.venue.bridge_apis import (
    A_BRIDGED_PURCHASE,
    A_BRIDGED_SALE,
    DOMAINS,
    OTHER_POOL,
    THERE,
    USD,
    BridgeApis,
    a_bridged_venue,
    bridge_apis,
    refreshed,
)
from support.venue.quiet_venue import (
    A_SALE,
    BOOKS,
    CHAIN_ID,
    DAI,
    DELTA,
    LONELY,
    MARKET_ONLY,
    NATIVE,
    ONE,
    USDC,
    WETH,
    QuietVenue,
)

QUOTE, PRICES = "/v2/quote", "/v2/delta/prices"
NAMES = ["across", "circle", "circle-fast"]
Bridged = tuple[QuietVenue, BridgeApis]


@pytest.fixture
async def bridged(tmp_path: Path) -> AsyncIterator[Bridged]:
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis) as venue:
        yield venue, apis


async def routes_of(venue: QuietVenue, asked: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Routes of a quote by bridge, in their order."""
    delta = (await venue.get(QUOTE, **asked))["delta"]
    return {one["bridge"]["protocol"]: one for one in (delta["route"], *delta["alternatives"])}


def signed_bridge(route: dict[str, Any]) -> DeltaBridge:
    """The bridge of an order on a route."""
    params, there = route["bridge"]["contractParams"], route["destination"]["output"]["token"]
    return DeltaBridge(
        parse_hex(params["protocolSelector"], "selector"),
        there["chainId"],
        parse_hex(params["outputToken"], "token"),
        params["scalingFactor"],
        parse_hex(params["protocolData"], "data"),
    )


# --- Routes ---------------------------------------------------------------------------------------------


async def test_a_sale_is_swapped_on_the_origin_and_bridged(bridged: Bridged) -> None:
    venue, apis = bridged
    told = await venue.get(QUOTE, **A_BRIDGED_SALE)
    delta = told["delta"]
    assert delta["inputToken"] == {"chainId": CHAIN_ID, "address": WETH}
    assert delta["outputToken"] == {"chainId": THERE, "address": USDC}
    assert delta["spender"] == told["deltaAddress"] == DELTA
    route = (await routes_of(venue, A_BRIDGED_SALE))["across"]
    origin, destination = route["origin"], route["destination"]
    assert origin["input"]["token"] == delta["inputToken"]
    assert origin["output"]["token"] == {"chainId": CHAIN_ID, "address": USDC}
    assert destination["output"]["token"] == delta["outputToken"]
    assert destination["input"] == destination["output"]
    same_chain = (await venue.get(QUOTE, **A_SALE, mode="DELTA"))["delta"]["route"]
    assert origin == same_chain["origin"]
    assert route["fees"]["gas"] == same_chain["fees"]["gas"]
    entering = int(origin["output"]["amount"])
    (fee,) = route["fees"]["bridge"]
    assert fee["token"] == origin["output"]["token"]
    assert int(fee["amount"]) == fee_of(BridgeFee(apis.ppm, apis.fixed), entering)
    assert int(destination["output"]["amount"]) == entering - int(fee["amount"])
    assert route["bridge"].keys() == {"protocol", "estimatedTimeMs", "tags", "contractParams"}


async def test_the_parameters_of_across(bridged: Bridged) -> None:
    venue, apis = bridged
    route = (await routes_of(venue, A_BRIDGED_SALE))["across"]
    assert route["bridge"]["estimatedTimeMs"] == 5_000
    params = route["bridge"]["contractParams"]
    assert params["protocolSelector"] == to_hex(SELECTORS[BridgeKind.ACROSS])
    assert (params["outputToken"], params["scalingFactor"]) == (USDC, 0)
    assert parse_terms(signed_bridge(route)) == AcrossTerms(
        BridgeFee(apis.ppm, apis.fixed), 7_200, bytes(20), 0
    )


@pytest.mark.parametrize(
    ("name", "finality", "ppm", "ms"), [("circle", 2_000, 0, 1_140_000), ("circle-fast", 1_000, 130, 30_000)]
)
async def test_the_parameters_of_cctp(bridged: Bridged, name: str, finality: int, ppm: int, ms: int) -> None:
    venue, _ = bridged
    route = (await routes_of(venue, A_BRIDGED_SALE))[name]
    assert route["bridge"]["estimatedTimeMs"] == ms
    assert route["bridge"]["contractParams"]["protocolSelector"] == to_hex(SELECTORS[BridgeKind.CCTP])
    assert parse_terms(signed_bridge(route)) == CctpTerms(BridgeFee(ppm, 0), finality, DOMAINS[THERE])


def gas_of(route: dict[str, Any]) -> int:
    """Raw units of a route's `fees.gas`."""
    return int(route["fees"]["gas"]["amount"])


async def test_a_purchase_is_exact_at_the_destination(bridged: Bridged) -> None:
    venue, _ = bridged
    amount = int(A_BRIDGED_PURCHASE["amount"])
    routes = await routes_of(venue, A_BRIDGED_PURCHASE)
    assert routes.keys() == {*NAMES}
    for route in routes.values():
        assert int(route["destination"]["output"]["amount"]) == amount
        terms = parse_terms(signed_bridge(route))
        entering = int(route["origin"]["output"]["amount"])
        assert entering == input_of(terms.fee, 0, amount)
        assert output_of(terms.fee, 0, entering) >= amount > output_of(terms.fee, 0, entering - 1)
        on_origin = A_SALE | {"side": "BUY", "amount": str(entering), "mode": "DELTA"}
        same_chain = (await venue.get(QUOTE, **on_origin))["delta"]["route"]
        assert route["origin"]["output"] == same_chain["origin"]["output"]
        of_message = gas_of(route) - gas_of(same_chain)  # which the venue hands in, on this chain's twin
        assert of_message == 0 if route["bridge"]["protocol"] == "across" else of_message > 0
        given = [int(one["origin"]["input"]["amount"]) for one in (route, same_chain)]
        assert of_message <= given[0] - given[1] <= of_message * 101 // 100, "the partner's fee is on top"
        assert route["fees"]["gas"]["token"]["address"] == WETH


async def test_decimals_may_differ(bridged: Bridged) -> None:
    venue, apis = bridged
    asked = A_BRIDGED_SALE | {"destToken": DAI, "destDecimals": 18}
    (route,) = (await routes_of(venue, asked)).values()
    entering = int(route["origin"]["output"]["amount"])
    left = entering - fee_of(BridgeFee(apis.ppm, apis.fixed), entering)
    assert route["bridge"]["contractParams"]["scalingFactor"] == 12
    assert int(route["destination"]["output"]["amount"]) == left * 10**12
    bought = asked | {"side": "BUY", "amount": str(1_000 * ONE + 1)}
    (route,) = (await routes_of(venue, bought)).values()
    fee = BridgeFee(apis.ppm, apis.fixed)
    assert int(route["origin"]["output"]["amount"]) == input_of(fee, 12, 1_000 * ONE + 1)


async def test_the_margin_of_the_settings_is_in_the_fee(tmp_path: Path) -> None:
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis, margin_bps=1_000) as venue:
        routes = await routes_of(venue, A_BRIDGED_SALE)
        assert parse_terms(signed_bridge(routes["across"])).fee == BridgeFee(110, 2_200_000)
        assert parse_terms(signed_bridge(routes["circle-fast"])).fee == BridgeFee(143, 0)


async def test_the_native_token_is_swapped_too(bridged: Bridged) -> None:
    venue, _ = bridged
    wrapped, native = (
        await routes_of(venue, A_BRIDGED_SALE),
        await routes_of(venue, A_BRIDGED_SALE | {"srcToken": NATIVE}),
    )
    assert [*native] == [*wrapped]
    for name, route in native.items():
        assert route["origin"]["input"]["token"]["address"] == NATIVE
        assert route["destination"] == wrapped[name]["destination"]


async def test_a_partner_s_fee_is_taken_before_the_bridge(bridged: Bridged) -> None:
    venue, _ = bridged
    route = (await routes_of(venue, A_BRIDGED_SALE | {"partnerFeeBps": 200}))["circle"]
    left = 2_500 * USD - int(route["fees"]["gas"]["amount"])
    entering = left - left * 200 // 10_000
    assert int(route["origin"]["output"]["amount"]) == entering
    assert int(route["destination"]["output"]["amount"]) == entering


# --- Which bridge ---------------------------------------------------------------------------------------


async def test_the_recommended_route_is_first_and_the_others_stand_by_return(bridged: Bridged) -> None:
    """choices.md#quotes-and-routes: Across is 9 basis points below CCTP's standard tier, and faster."""
    venue, apis = bridged
    routes = await routes_of(venue, A_BRIDGED_SALE)
    tags = {name: route["bridge"]["tags"] for name, route in routes.items()}
    assert tags == {"across": ["recommended", "fastest"], "circle": ["best-return"], "circle-fast": []}
    assert [*routes] == ["across", "circle", "circle-fast"]
    apis.fixed = 4 * USD  # 15 basis points below, with the gas of CCTP's message
    await refreshed(venue)
    routes = await routes_of(venue, A_BRIDGED_SALE)
    tags = {name: route["bridge"]["tags"] for name, route in routes.items()}
    assert tags == {"circle-fast": ["recommended"], "circle": ["best-return"], "across": ["fastest"]}
    assert [*routes] == ["circle-fast", "circle", "across"]


async def test_the_cheapest_purchase_is_the_best_return(bridged: Bridged) -> None:
    venue, apis = bridged
    apis.fixed = 3 * USD
    await refreshed(venue)
    routes = await routes_of(venue, A_BRIDGED_PURCHASE)
    tags = {name: route["bridge"]["tags"] for name, route in routes.items()}
    assert tags == {"circle-fast": ["recommended"], "circle": ["best-return"], "across": ["fastest"]}
    costs = [int(route["origin"]["input"]["amount"]) for route in routes.values()]
    assert costs[1] == min(costs)


@pytest.mark.parametrize("path", [QUOTE, PRICES])
@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"includeBridges": "across"}, ["across"]),
        ({"includeBridges": "circle,nobody"}, ["circle"]),
        ({"excludeBridges": "circle,circle-fast"}, ["across"]),
        ({"includeBridges": "across,circle", "excludeBridges": "across"}, ["circle"]),
        ({"allowBridgeAndSwap": "false"}, NAMES),
    ],
)
async def test_bridges_that_a_request_names(
    bridged: Bridged, path: str, more: dict[str, str], names: list[str]
) -> None:
    venue, _ = bridged
    told = await venue.get(path, **A_BRIDGED_SALE, **more)
    delta = told.get("delta", told)
    found = [one["bridge"]["protocol"] for one in (delta["route"], *delta["alternatives"])]
    assert sorted(found) == sorted(names)


async def test_names_of_bridges_change_nothing_on_one_chain(bridged: Bridged) -> None:
    venue, _ = bridged
    plain = await venue.get(QUOTE, **A_SALE, mode="DELTA")
    named = await venue.get(QUOTE, **A_SALE, mode="DELTA", includeBridges="nobody", destChainId=CHAIN_ID)
    assert named["delta"] | {"id": ""} == plain["delta"] | {"id": ""}


async def test_all_routes_can_be_built(bridged: Bridged) -> None:
    venue, _ = bridged
    for asked, side in ((A_BRIDGED_SALE, Side.SELL), (A_BRIDGED_PURCHASE, Side.BUY)):
        for route in (await routes_of(venue, asked)).values():
            sent_back = quoted_as(side, canonical(msgspec.json.encode(route)))
            assert await venue.app.issued.is_issued(sent_back, venue.clock.now_ms())


async def test_delta_prices_are_the_block_of_the_quote(bridged: Bridged) -> None:
    venue, _ = bridged
    quote = (await venue.get(QUOTE, **A_BRIDGED_SALE))["delta"]
    assert await venue.get(PRICES, **A_BRIDGED_SALE | {"mode": None}) | {"id": ""} == quote | {"id": ""}


async def test_all_is_delta_across_chains(bridged: Bridged) -> None:
    venue, _ = bridged
    assert (await venue.get(QUOTE, **A_BRIDGED_SALE | {"mode": "ALL"})).keys() == {"delta", "deltaAddress"}


# --- Refusals -------------------------------------------------------------------------------------------

ACROSS = {"includeBridges": "across"}
REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "Market": ({"mode": "MARKET"}, "mode: expected ALL or DELTA: Market swaps stay on one chain"),
    "a chain that is not served": (
        {"destChainId": 10},
        "destChainId: expected a chain of GET /chains, got 10",
    ),
    "an origin without Delta": ({"chainId": MARKET_ONLY}, f"Delta is not served on chain {MARKET_ONLY}"),
    "no lane": (
        {"destToken": LONELY, "destDecimals": 18},
        f"destToken: no bridge delivers LONELY on chain {THERE} from chain {CHAIN_ID}",
    ),
    "the native token": (
        {"destToken": NATIVE, "destDecimals": 18},
        f"destToken: no bridge delivers ETH on chain {THERE} from chain {CHAIN_ID}",
    ),
    "bridges of nobody": (
        {"includeBridges": "hop,stargate"},
        "includeBridges: expected one of across, circle, circle-fast, got 'hop,stargate'",
    ),
    "all bridges excluded": (
        {"excludeBridges": ",".join(NAMES)},
        "excludeBridges: expected a list without one of across, circle, circle-fast",
    ),
    "no books": (
        ACROSS | {"srcToken": LONELY},
        "across: no live books lead from LONELY to USDC",
    ),
    "less than gas": (ACROSS | {"amount": str(10**12)}, "across: Gas cost exceeds trade amount"),
    "too little of a purchase": (
        ACROSS | {"side": "BUY", "amount": "1"},
        "across: the amount is too little: 2000202 would enter, at least 5000000 may",
    ),
}


@pytest.mark.parametrize("mode", ["ALL", "DELTA"])
@pytest.mark.parametrize(("changes", "said"), REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_says_why(bridged: Bridged, mode: str, changes: dict[str, Any], said: str) -> None:
    venue, apis = bridged
    apis.limits["minDeposit"] = 5 * USD
    await refreshed(venue)
    status, told = await venue.answer(QUOTE, **A_BRIDGED_SALE | {"mode": mode} | changes)
    assert (status, told["errorType"]) == (400, "NoRoute")
    assert told["details"].startswith(f"No route (crosschain): {said}"), told["details"]


@pytest.mark.parametrize("limit", ["maxDeposit", "maxDepositInstant"])
@pytest.mark.parametrize("side", ["SELL", "BUY"])
async def test_too_much_for_a_bridge_that_takes_less(bridged: Bridged, side: str, limit: str) -> None:
    """The bridge's service tells no fee of the settings' larger amount, and the lane stays open."""
    venue, apis = bridged
    apis.limits[limit] = 900 * USD
    await refreshed(venue)
    asked = A_BRIDGED_SALE if side == "SELL" else A_BRIDGED_PURCHASE
    status, told = await venue.answer(QUOTE, **asked, **ACROSS)
    assert (status, told["errorType"]) == (400, "NoRoute")
    assert told["details"].startswith("No route (crosschain): across: the amount is too much: ")
    assert told["details"].endswith("would enter, at most 900000000 may")
    status, told = await venue.answer(QUOTE, **asked | {"amount": int(asked["amount"]) // 5}, **ACROSS)
    assert status == 200, told
    assert not any(lane.fees.fault for lane in venue.app.bridges)


async def test_a_fee_that_takes_all(bridged: Bridged) -> None:
    venue, apis = bridged
    apis.fixed = 3_000 * USD
    await refreshed(venue)
    status, told = await venue.answer(QUOTE, **A_BRIDGED_SALE, **ACROSS)
    assert (status, told["errorType"]) == (400, "NoRoute")
    assert "across: the bridge's fee takes all of " in told["details"]


@pytest.mark.parametrize(
    ("changes", "error_type", "said"),
    [
        ({"destToken": NATIVE.lower()}, "InvalidToken", "Invalid destToken"),
        ({"destToken": DELTA}, "TokenNotSupported", "Token not supported: destToken"),
        ({"srcToken": DELTA}, "TokenNotSupported", "Token not supported: srcToken"),
        ({"destDecimals": 18}, "NoRoute", "No route: destDecimals: expected 6"),
        ({"amount": "0"}, "InvalidInput", "Invalid input: amount"),
        ({"userAddress": "0x1"}, "InvalidInput", "Invalid input: userAddress"),
        ({"beneficiary": "0x1"}, "InvalidInput", "Invalid input: beneficiary"),
        ({"includeBridges": "x" * 129}, "InvalidInput", "Invalid input: includeBridges"),
    ],
)
async def test_a_parameter_at_fault(
    bridged: Bridged, changes: dict[str, Any], error_type: str, said: str
) -> None:
    venue, _ = bridged
    status, told = await venue.answer(QUOTE, **A_BRIDGED_SALE | changes)
    assert (status, told["errorType"]) == (400, error_type)
    assert told["details"].startswith(said)


async def test_a_fee_that_is_not_known_yet(tmp_path: Path) -> None:
    async with bridge_apis() as apis:
        apis.pool = OTHER_POOL
        async with a_bridged_venue(tmp_path, apis, is_ready=False) as venue:
            await refreshed(venue)
            assert (await routes_of(venue, A_BRIDGED_SALE)).keys() == {"circle", "circle-fast"}
            status, told = await venue.answer(QUOTE, **A_BRIDGED_SALE, **ACROSS)
            assert (status, told["errorType"]) == (400, "NoRoute")
            assert "across: its fee is not known (" in told["details"]
            assert "spokePoolAddress" in told["details"]


async def test_a_fee_that_is_stale(tmp_path: Path) -> None:
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis, stale_s=600.0) as venue:
        apis.down |= {"across", "cctp"}
        await refreshed(venue)
        assert (await routes_of(venue, A_BRIDGED_SALE)).keys() == {*NAMES}
        reply = await venue.ask("GET", f"{QUOTE}?{urlencode(A_BRIDGED_SALE)}", later_ms=600_000)
        told = msgspec.json.decode(reply.body)
        assert (reply.status, told["errorType"]) == (400, "NoRoute")
        for name in NAMES:
            assert f"{name}: its fee is not known (answered 503" in told["details"]


async def test_books_that_are_gone(tmp_path: Path) -> None:
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis, books=BOOKS[2:]) as venue:
        status, told = await venue.answer(QUOTE, **A_BRIDGED_SALE)
        assert (status, told["errorType"]) == (400, "NoRoute")
        assert all(f"{name}: no live books lead from WETH to USDC" in told["details"] for name in NAMES)


# --- Bridge-only orders -----------------------------------------------------------------------------------

SENT = 1_000 * USD
A_TRANSFER = A_BRIDGED_SALE | {"srcToken": USDC, "srcDecimals": 6, "amount": str(SENT)}


async def test_the_bridge_s_own_token_is_sent_without_a_swap(bridged: Bridged) -> None:
    venue, apis = bridged
    routes = await routes_of(venue, A_TRANSFER)
    assert routes.keys() == {*NAMES}
    for route in routes.values():
        given, entering = route["origin"]["input"], route["origin"]["output"]
        assert given["token"] == entering["token"] == {"chainId": CHAIN_ID, "address": USDC}
        assert int(given["amount"]) == SENT
        assert route["fees"]["gas"]["token"] == given["token"]
        left = SENT - gas_of(route)
        assert int(entering["amount"]) == left - left // 10_000, "the fee of a trade without a partner"
        signed = parse_terms(signed_bridge(route)).fee
        arrives = output_of(signed, 0, int(entering["amount"]))
        assert int(route["destination"]["output"]["amount"]) == arrives
        assert route["destination"]["input"] == route["destination"]["output"]
    enters = int(routes["across"]["origin"]["output"]["amount"])
    (fee,) = routes["across"]["fees"]["bridge"]
    assert int(fee["amount"]) == fee_of(BridgeFee(apis.ppm, apis.fixed), enters)


async def test_a_purchase_of_the_bridge_s_own_token_costs_the_fees(bridged: Bridged) -> None:
    venue, _ = bridged
    for route in (await routes_of(venue, A_TRANSFER | {"side": "BUY"})).values():
        assert int(route["destination"]["output"]["amount"]) == SENT
        enters = int(route["origin"]["output"]["amount"])
        assert enters == input_of(parse_terms(signed_bridge(route)).fee, 0, SENT)
        given = enters + gas_of(route)
        assert (
            int(route["origin"]["input"]["amount"]) == given + given // 10_000
        )  # of a trade without partner


async def test_what_is_sent_without_a_swap_pays_for_gas_and_bridge(bridged: Bridged) -> None:
    venue, _ = bridged
    status, told = await venue.answer(QUOTE, **A_TRANSFER | ACROSS | {"amount": "1"})
    assert (status, told["errorType"]) == (400, "NoRoute")
    assert told["details"].startswith("No route (crosschain): across: Gas cost exceeds trade amount")
    little = str(gas_of((await routes_of(venue, A_TRANSFER))["across"]) + 1)
    status, told = await venue.answer(QUOTE, **A_TRANSFER | ACROSS | {"amount": little})
    assert status == 400
    assert "across: the amount is too little: 1 would enter" in told["details"]


# --- Lanes and bridges ----------------------------------------------------------------------------------


async def test_bridge_routes(bridged: Bridged) -> None:
    venue, _ = bridged

    def lane(src: int, dest: int, *tokens: str) -> dict[str, Any]:
        return {"srcChainId": src, "destChainId": dest, "tokens": [*tokens]}

    told = await venue.get(f"{PRICES}/bridge-routes")
    assert told == {
        "routes": [
            lane(THERE, MARKET_ONLY, USDC),
            lane(THERE, CHAIN_ID, USDC),
            lane(CHAIN_ID, MARKET_ONLY, USDC),
            lane(CHAIN_ID, THERE, USDC, DAI),
        ]
    }
    assert await venue.get(f"{PRICES}/bridge-routes", allowBridgeAndSwap="false") == told
    circle = await venue.get(f"{PRICES}/bridge-routes", bridges="circle,nobody")
    assert circle == {"routes": [lane(THERE, CHAIN_ID, USDC), lane(CHAIN_ID, THERE, USDC)]}
    assert await venue.get(f"{PRICES}/bridge-routes", bridges="nobody") == {"routes": []}


async def test_a_lane_that_cannot_be_quoted_now_is_no_bridge_route(tmp_path: Path) -> None:
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis) as venue:

        async def listed(later_ms: int = 0) -> set[tuple[int, int]]:
            path = f"{PRICES}/bridge-routes?bridges=across"
            told = msgspec.json.decode((await venue.ask("GET", path, later_ms=later_ms)).body)
            return {(lane["srcChainId"], lane["destChainId"]) for lane in told["routes"]}

        assert (CHAIN_ID, THERE) in await listed()
        most, apis.limits["maxDeposit"] = apis.limits["maxDeposit"], 0
        await refreshed(venue)
        assert await listed() == set()  # no amount may enter
        apis.limits["maxDeposit"] = most
        await refreshed(venue)
        assert (CHAIN_ID, THERE) in await listed()
        assert await listed(600_000) == set()  # no fee is known any more


async def test_without_books_nothing_is_quoted_and_no_chain_says_so(tmp_path: Path) -> None:
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis, books=()) as venue:
        assert await venue.get(f"{PRICES}/bridge-routes") == {"routes": []}
        assert not any(chain["delta"] or chain["market"] for chain in await venue.get("/chains"))


async def test_each_bridge_route_has_a_quote(bridged: Bridged) -> None:
    venue, _ = bridged
    for lane in (await venue.get(f"{PRICES}/bridge-routes"))["routes"]:
        for token in lane["tokens"]:
            asked = A_BRIDGED_SALE | {
                "chainId": lane["srcChainId"],
                "destChainId": lane["destChainId"],
                "destToken": token,
                "destDecimals": 18 if token == DAI else 6,
            }
            assert (await venue.get(QUOTE, **asked))["delta"]["outputToken"]["address"] == token


async def test_bridge_protocols(bridged: Bridged) -> None:
    venue, _ = bridged
    told = (await venue.get(f"{PRICES}/bridge-protocols"))["bridgeProtocols"]
    assert [(one["protocol"], one["displayName"]) for one in told] == [
        ("across", "Across"),
        ("circle", "CCTP"),
        ("circle-fast", "CCTP, fast"),
    ]
    for one in told:
        kind, _, data = one["icon"].partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert ET.fromstring(b64decode(data)).tag.endswith("svg")


@pytest.mark.parametrize(
    ("lacking", "names"),
    [
        (f"{CHAIN_ID}__SPOKE_POOL", ["circle", "circle-fast"]),
        (f"{THERE}__SPOKE_POOL", ["circle", "circle-fast"]),
        (f"{CHAIN_ID}__TOKEN_MESSENGER", ["across"]),
        (f"{THERE}__MESSAGE_TRANSMITTER", ["across"]),
        (f"{CHAIN_ID}__MESSAGE_TRANSMITTER", NAMES),
        (f"{THERE}__TOKEN_MESSENGER", NAMES),
    ],
)
async def test_a_lane_needs_its_contracts(tmp_path: Path, lacking: str, names: list[str]) -> None:
    async with AsyncExitStack() as stack:
        apis = await stack.enter_async_context(bridge_apis())
        environ = {f"CAMBIST__CHAINS__{lacking}": '""'}
        venue = await stack.enter_async_context(a_bridged_venue(tmp_path, apis, environ=environ))
        assert sorted(await routes_of(venue, A_BRIDGED_SALE)) == names


async def test_cctp_needs_a_relayer_that_delivers(tmp_path: Path) -> None:
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis, relayers=(CHAIN_ID,)) as venue:
        assert [*await routes_of(venue, A_BRIDGED_SALE)] == ["across"]
