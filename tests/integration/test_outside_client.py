"""A venue as it meets a client that is not ours: httpx, JSON as a client's types write it."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import Struct

from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.eip712_orders.partner_and_fee import unpack_partner_and_fee
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.maker_cache import EXCLUDED
from support.chain.world import ONE
from support.otc.swap_orders import an_order, sent
from support.patience import PATIENCE_S
from support.venue.documented import documented
from support.venue.trading_requests import NATIVE, NOBODY, OPTIONS, TRADER
from support.venue.venue_role import CHAIN_ID, MAKER_KEYS, USER, RunningVenue, running_venue

Body = dict[str, Any]
GROSS = 2_500 * 10**6
MAKER = MAKER_KEYS["alpha"]
FAR_S = 4_000_000_000


class Outside(Struct, frozen=True):
    """A client, and the venue that it asks."""

    http: httpx.AsyncClient
    venue: RunningVenue

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON of a GET that is answered 200."""
        response = await self.http.get(path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    async def post(self, path: str, body: Mapping[str, Any], **query: Any) -> tuple[int, Any]:
        """Status and JSON."""
        response = await self.http.post(path, json=body, params=query)
        return response.status_code, response.json()

    async def built(self, body: Mapping[str, Any]) -> tuple[str, Any]:
        """Side and swap of a transaction that is built, as the Router is told of it."""
        status, told = await self.post(f"/transactions/{CHAIN_ID}", body)
        assert status == 200, told
        return decode_swap(parse_hex(told["data"], "data"))

    def ends(self, src: str = "WETH", dest: str = "USDC") -> Body:
        """The addresses of the tokens."""
        return {"srcToken": self.venue.devnet.text(src), "destToken": self.venue.devnet.text(dest)}

    async def route(self, **query: Any) -> Body:
        """Quote of GET /prices for selling one WETH for USDC."""
        asked = {**self.ends(), "amount": ONE, "network": CHAIN_ID, "version": "6.2"} | query
        route: Body = (await self.get("/prices", **asked))["priceRoute"]
        return route

    def sale(self, route: Body, **more: Any) -> Body:
        """The body of its transaction."""
        plain = {"priceRoute": route, "srcAmount": str(ONE), "slippage": 100, "userAddress": TRADER}
        return self.ends() | plain | more

    def item(self) -> Body:
        """A signed order: 2,500 USDC for one WETH."""
        at = self.venue.devnet.at
        order = an_order(maker_asset=at("USDC"), taker_asset=at("WETH"), maker=MAKER.address, expiry=FAR_S)
        return sent(order, MAKER, at("rfq"))

    async def delta_route(self, **more: Any) -> Body:
        """The route of a Delta quote."""
        asked = {**self.ends(), "amount": ONE, "chainId": CHAIN_ID, "srcDecimals": 18, "destDecimals": 6}
        quote = await self.get("/v2/quote", **asked | {"mode": "DELTA"} | more)
        route: Body = quote["delta"]["route"]
        return route

    async def ordered(self, **body: Any) -> tuple[int, Any]:
        """Status and JSON of a build."""
        return await self.post("/v2/delta/orders/build", {"owner": TRADER, "deadline": FAR_S} | body)


@pytest.fixture
async def outside(tmp_path: Path) -> AsyncIterator[Outside]:
    async with (
        running_venue(tmp_path, **OPTIONS) as venue,
        httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as http,
    ):
        await venue.devnet.allow(USER, "WETH", "router")
        yield Outside(http, venue)


async def test_routes_of_documented_members_alone_are_built(outside: Outside) -> None:
    """Code that is generated from the schema drops what the schema does not name."""
    route = await outside.route(otherExchangePrices="true")
    side, swap = await outside.built(outside.sale(documented(route)))
    assert (side, swap.expected_amount) == ("SELL", int(route["destAmount"]))
    swapped = await outside.get(
        "/swap", **outside.ends(), amount=ONE, network=CHAIN_ID, slippage=50, userAddress=TRADER
    )
    assert (await outside.built(outside.sale(documented(swapped["priceRoute"]))))[0] == "SELL"
    market = await outside.get(
        "/v2/quote",
        **outside.ends(),
        amount=ONE,
        chainId=CHAIN_ID,
        srcDecimals=18,
        destDecimals=6,
        mode="MARKET",
    )
    assert (await outside.built(outside.sale(documented(market["market"]))))[0] == "SELL"
    cheaper = documented(route) | {"destAmount": "1"}
    status, told = await outside.post(f"/transactions/{CHAIN_ID}", outside.sale(cheaper))
    assert (status, told["errorType"]) == (400, "InvalidPriceRoute")


async def test_a_build_has_the_side_of_its_quote(outside: Outside) -> None:
    bought = {"side": "BUY", "amount": GROSS}
    purchase, sale = await outside.delta_route(**bought), await outside.delta_route()
    status, told = await outside.ordered(route=purchase)
    assert (status, told["toSign"]["value"]["kind"]) == (200, 1)
    for route, side in ((purchase, "SELL"), (sale, "BUY")):
        status, told = await outside.ordered(route=route, side=side)
        assert (status, told["errorType"]) == (400, "InvalidInput")
        assert told["details"].startswith("Invalid input: side: expected the route's")


async def test_a_passed_deadline_is_an_expired_order(outside: Outside) -> None:
    route = await outside.route()
    for body in (
        outside.sale(route, deadline=1),
        outside.sale(route, deadline=1, priceRoute=None) | {"orders": [outside.item()]},
    ):
        status, told = await outside.post(f"/transactions/{CHAIN_ID}", body)
        assert (status, told["errorType"]) == (400, "OrderExpired")
        assert told["details"].startswith("Order expired: deadline: expected a time after ")


async def test_signed_orders_need_no_slippage(outside: Outside) -> None:
    fee = GROSS // 10_000
    plain = outside.ends() | {"orders": [outside.item()], "userAddress": TRADER}
    side, swap = await outside.built(plain | {"srcAmount": str(ONE)})
    assert (side, swap.src_amount, swap.dest_amount) == ("SELL", ONE, GROSS - fee)
    side, swap = await outside.built(plain | {"destAmount": str(GROSS)})
    assert (side, swap.src_amount, swap.dest_amount) == ("BUY", ONE + ONE // 10_000, GROSS)
    status, told = await outside.post(f"/transactions/{CHAIN_ID}", plain | {"srcAmount": str(ONE + 1)})
    assert (status, told["errorType"]) == (400, "InvalidInput")


async def test_numbers_may_be_written_as_clients_write_them(outside: Outside) -> None:
    """A number or a string of digits, in every body; in a query both look alike."""
    texts = {"deadline": str(FAR_S), "slippage": "100", "srcDecimals": "18", "destDecimals": "6"}
    numbers = {"deadline": FAR_S, "slippage": 100, "srcDecimals": 18, "destDecimals": 6}
    route = await outside.route()
    swaps = [
        (await outside.built(outside.sale(route, **written, partnerFeeBps=fee)))[1]
        for written, fee in ((texts, 20), (numbers, "20"))
    ]
    assert {(swap.deadline, swap.dest_amount, swap.partner_and_fee) for swap in swaps} == {
        (FAR_S, swaps[0].dest_amount, swaps[0].partner_and_fee)
    }
    assert unpack_partner_and_fee(swaps[0].partner_and_fee).fee_bps == 20
    by_orders = outside.sale(route, priceRoute=None) | {"orders": [outside.item() | {"expiry": str(FAR_S)}]}
    assert (await outside.built(by_orders | {"slippage": "0"}))[0] == "SELL"
    written = {"deadline": str(FAR_S), "slippage": "50", "partnerFeeBps": "20", "nonce": "5"}
    delta = await outside.delta_route()
    _, one = await outside.ordered(route=delta, **written)
    _, other = await outside.ordered(route=delta, slippage=50, partnerFeeBps=20, nonce="5")
    assert one["orderHash"] == other["orderHash"]
    twap = {"orderType": "TWAPOrder", "totalSrcAmount": str(2 * ONE), "interval": "60", "numSlices": "2"}
    status, told = await outside.ordered(route=delta, **twap)
    assert (status, told["toSign"]["value"]["numSlices"]) == (200, 2)
    posted = outside.item() | {"expiry": str(FAR_S)}
    status, told = await outside.post(f"/ft/p2p/{CHAIN_ID}", posted)
    assert (status, told["expiry"]) == (200, FAR_S)


async def test_an_order_is_submitted_with_its_chain_as_text(outside: Outside) -> None:
    _, built = await outside.ordered(route=await outside.delta_route())
    signed = {"order": built["toSign"]["value"], "signature": "0x" + "11" * 64, "partner": "acme"}
    answers = [
        await outside.post("/v2/delta/orders", signed | {"chainId": chain})
        for chain in (CHAIN_ID, str(CHAIN_ID))
    ]
    kinds = [(status, told["errorType"], told["details"]) for status, told in answers]
    assert kinds[0] == kinds[1]
    assert "chainId: expected an integer" not in kinds[0][2]


async def test_a_fee_is_in_the_price_that_a_swap_is_charged_by(outside: Outside) -> None:
    route = await outside.route(partnerFeeBps=50)
    assert (route["partnerFee"], route["destAmount"]) == (0.5, str(GROSS - GROSS * 50 // 10_000))
    for more in ({}, {"partnerFeeBps": "50"}, {"partnerFeeBps": 50}):
        _, swap = await outside.built(outside.sale(route, **more))
        assert swap.expected_amount == int(route["destAmount"])
        assert unpack_partner_and_fee(swap.partner_and_fee).fee_bps == 50
    stacked = await outside.route(partner="acme", partnerFeeBps="5")
    assert (stacked["partner"], stacked["partnerFee"]) == ("acme", 0.15)
    response = await outside.http.get(
        "/prices", params={**outside.ends(), "amount": ONE, "partnerFeeBps": 201}
    )
    assert (response.status_code, response.json()["errorType"]) == (400, "InvalidInput")


async def test_a_route_names_both_ends(outside: Outside) -> None:
    ends = outside.ends()
    way = f"{ends['srcToken']}-{ends['destToken']}"
    asked = {"amount": ONE, "network": CHAIN_ID, "version": "6.2"}
    named = (await outside.get("/prices", **asked, route=way))["priceRoute"]
    assert (named["srcToken"], named["destToken"]) == (ends["srcToken"], ends["destToken"])
    assert named["destAmount"] == (await outside.route(route="WETH-USDC"))["destAmount"]
    assert (await outside.built(outside.sale(named)))[0] == "SELL"
    swapped = await outside.get("/swap", **asked, route="WETH-USDC", slippage=50, userAddress=TRADER)
    assert swapped["priceRoute"]["destToken"] == ends["destToken"]
    for query, said in (("", "srcToken: missing"), ("&route=WETH", "destToken: missing")):
        response = await outside.http.get(f"/prices?amount={ONE}&network={CHAIN_ID}&version=6.2{query}")
        assert (response.status_code, response.json()["details"]) == (400, f"Invalid input: {said}")


@pytest.mark.parametrize(
    ("side", "amount", "here", "elsewhere", "other"),
    [
        ("SELL", ONE, "swapExactIn", "swapExactAmountIn", "swapExactAmountOut"),
        ("BUY", GROSS, "swapExactOut", "swapExactAmountOut", "swapExactAmountIn"),
    ],
    ids=["a sale", "a purchase"],
)
async def test_functions_have_the_names_that_clients_bring(
    outside: Outside, side: str, amount: int, here: str, elsewhere: str, other: str
) -> None:
    rfq = "swapOnAugustusRFQTryBatchFill"
    for names in (elsewhere, rfq, f"{other},{rfq}", f"simpleSwap,{elsewhere}"):
        route = await outside.route(side=side, amount=amount, includeContractMethods=names)
        assert (route["contractMethod"], route["side"]) == (here, side)
    asked = {**outside.ends(), "amount": amount, "side": side, "network": CHAIN_ID, "version": "6.2"}
    said = f"No route: includeContractMethods: expected {here}, {elsewhere} or {rfq}, got '{other}'"
    response = await outside.http.get("/prices", params=asked | {"includeContractMethods": other})
    told = response.json()
    assert (response.status_code, told["errorType"], told["details"]) == (400, "NoRoute", said)


async def test_a_swap_has_a_deadline_in_seconds_and_a_user_who_can_be(outside: Outside) -> None:
    route = await outside.route()
    at_ms = 1_900_000_000_000
    zero, native = "0x" + "00" * 20, "0x" + "Ee" * 20
    nobody = "Invalid input: userAddress: expected an account, neither zero nor the native placeholder, got"
    for more, said in (
        ({"deadline": at_ms}, f"got {at_ms}: this looks like milliseconds"),
        ({"deadline": str(at_ms)}, ": this looks like milliseconds"),
        ({"userAddress": zero}, f"{nobody} '{zero}'"),
        ({"userAddress": native.lower()}, f"{nobody} '{to_checksum(NATIVE_TOKEN)}'"),
    ):
        status, told = await outside.post(f"/transactions/{CHAIN_ID}", outside.sale(route, **more))
        assert (status, told["errorType"]) == (400, "InvalidInput"), (more, told)
        assert told["details"].endswith(said), told["details"]
    assert (await outside.built(outside.sale(route, deadline=FAR_S)))[0] == "SELL"
    swap = {**outside.ends(), "amount": ONE, "network": CHAIN_ID, "slippage": 50, "userAddress": native}
    response = await outside.http.get("/swap", params=swap)
    assert (response.status_code, response.json()["errorType"]) == (400, "InvalidInput")


async def test_no_route_says_why(outside: Outside) -> None:
    async def refused(path: str = "/prices", **query: Any) -> str:
        asked = {**outside.ends(), "amount": ONE, "network": CHAIN_ID, "version": "6.2"} | query
        response = await outside.http.get(path, params=asked)
        told = response.json()
        assert (response.status_code, told["errorType"]) == (400, "NoRoute"), told
        assert told["details"] == told["description"] == told["error"]
        return str(told["details"]).removeprefix("No route: ")

    delta: dict[str, Any] = {"chainId": CHAIN_ID, "srcDecimals": 18, "destDecimals": 6, "mode": "DELTA"}
    too_much = "the amount is more than the live books between WETH and USDC hold"
    assert await refused(amount=10**30) == too_much
    assert await refused("/v2/quote", **delta, amount=10**30) == too_much
    assert await refused(amount=1) == "the amount is too small: it buys not one unit"
    left_out = "makers that could fill it are excluded by the request or do not serve this user"
    assert await refused(excludeDEXS="alpha,beta") == left_out
    unknown = "includeDEXS: expected a name of GET /adapters/list (alpha, beta), got 'UniswapV3,nobody'"
    assert await refused(includeDEXS="UniswapV3,nobody") == unknown
    assert (await outside.route(includeDEXS="UniswapV3,beta"))["bestRoute"]
    response = await outside.http.get("/v2/quote", params={**outside.ends(), **delta, "amount": 10**9})
    told = response.json()
    assert (response.status_code, told["errorType"]) == (400, "GasCostExceedsTradeAmount")
    assert told["details"].startswith("Gas cost exceeds trade amount: expected gas below 2, got ")
    feeds = outside.venue.app.chains[CHAIN_ID].feeds
    until_ms = WallClock().now_ms() + 3_600_000
    feeds["alpha"].cache.rest_maker(until_ms)
    feeds["beta"].cache.withhold(EXCLUDED)
    assert (
        await refused() == "no live books lead from WETH to USDC; alpha at rest after faults; beta out of use"
    )


# --- Refusals of spec 1.25 ------------------------------------------------------------------------------

Change = tuple[Body, int, str]
"""Query or body, status, message."""
Asked = tuple[str, Body, int, str]
"""Path, and a change."""
TWAP: Body = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 3, "totalSrcAmount": str(3 * ONE)}
PURCHASES: Body = {
    "orderType": "TWAPBuyOrder", "interval": 60, "numSlices": 3,
    "totalDestAmount": str(3 * GROSS), "maxSrcAmount": str(4 * ONE),
}  # fmt: skip
SOON_S = 170
"""Too soon for three slices a minute apart."""


def refused_prices(asked: Body) -> list[Asked]:
    """GET /v2/quote, /v2/delta/prices and /prices, each with a change of what is answered 200."""
    delta: list[Change] = [
        ({"destChainId": 10}, 400, "No route (crosschain)"),
        ({"srcDecimals": ""}, 400, "Invalid input"),
        ({"destDecimals": ""}, 400, "Invalid input"),
        ({"chainId": ""}, 400, "Invalid input"),
        ({"partner": "small", "partnerFeeBps": 16}, 422, "Partner not allowed"),
    ]
    plain: list[Change] = [
        ({"srcToken": NATIVE.lower()}, 400, "Invalid srcToken"),
        ({"srcToken": "0x0"}, 400, "Invalid srcToken"),
        ({"destToken": NATIVE.lower()}, 400, "Invalid destToken"),
        ({"destToken": "0x0"}, 400, "Invalid destToken"),
        ({"srcToken": NOBODY}, 400, "Token not supported"),
        ({"destToken": NOBODY}, 400, "Token not supported"),
        ({"srcDecimals": 6}, 400, "No route"),
        ({"chainId": 5}, 422, "Unsupported chain"),
        *(({name: ""}, 400, "Invalid input") for name in ("srcToken", "destToken", "amount")),
        *(({"amount": amount}, 400, "Invalid input") for amount in (0, "1.5")),
        ({"side": "BOTH"}, 400, "Invalid input"),
        ({"userAddress": "0x1"}, 400, "Invalid input"),
        ({"partnerFeeBps": 201}, 400, "Invalid input"),
    ]
    return [
        *(
            (path, asked | changed, status, message)
            for path in ("/v2/quote", "/v2/delta/prices")
            for changed, status, message in plain + delta
        ),
        *(("/prices", asked | changed, status, message) for changed, status, message in plain),
        ("/prices", asked | {"route": "WETH-DAI-USDC-WBTC-USDC"}, 400, "Invalid input"),
        ("/prices", asked | {"version": "6"}, 400, "Invalid input"),
        ("/v2/quote", asked | {"mode": "BOTH"}, 400, "Invalid input"),
    ]


def refused_swaps(sale: Body, of_version_5: Body) -> list[Asked]:
    """POST /transactions."""
    path, changed_route = f"/transactions/{CHAIN_ID}", sale["priceRoute"] | {"destAmount": "1"}
    return [
        (path, sale | {"slippage": None}, 400, "missing slippage"),
        (path, sale | {"slippage": 10_001}, 400, "Invalid input"),
        (path, sale | {"priceRoute": changed_route}, 400, "Invalid priceRoute"),
        (path, sale | {"priceRoute": of_version_5}, 400, "Invalid input"),
        (path, sale | {"srcToken": NATIVE.lower()}, 400, "Invalid srcToken"),
        (path, sale | {"partner": "acme", "partnerFeeBps": 191}, 422, "Partner not allowed"),
        (path, sale | {"userAddress": NOBODY}, 400, "InsufficientBalance"),
        ("/transactions/5", sale, 422, "Unsupported chain"),
    ]


def refused_builds(sale: Body, purchase: Body) -> list[Asked]:
    """POST /v2/delta/orders/build, of bodies without `deadline` and with one."""
    leg = sale["route"]["origin"]
    altered: Body = {"origin": leg | {"input": leg["input"] | {"amount": ONE}}}
    soon = int(WallClock().now_ms()) // 1_000 + SOON_S
    later = sale | {"deadline": FAR_S}
    changes: list[Change] = [
        (sale, 400, "missing deadline"),
        (sale | {"deadline": 1}, 400, "Order expired"),
        (later | {"route": sale["route"] | altered}, 400, "route validation failed"),
        (later | {"slippage": 10_001}, 400, "Invalid input"),
        (later | {"partnerFeeBps": 201}, 400, "Invalid input"),
        (later | {"partner": "small", "partnerTakesSurplus": True}, 422, "Partner not allowed"),
        (later | {"orderType": "ExternalOrder", "data": "0x"}, 400, "InvalidExternalOrderParams"),
        (later | {"orderType": "ProductiveOrder"}, 400, "InvalidProductiveOrderParams"),
        (later | TWAP | {"totalSrcAmount": str(3 * ONE + 3)}, 400, "InvalidTWAPSrcAmount"),
        (later | TWAP | {"totalSrcAmount": "2"}, 400, "totalSrcAmount must be >= numSlices"),
        (
            sale | TWAP | {"deadline": soon}, 400,
            "deadline must allow enough time for all slices to execute",
        ),
    ]  # fmt: skip
    for body, twap, tag in (
        (later, TWAP, "InvalidTWAPParams"),
        (purchase, PURCHASES, "InvalidTWAPBuyParams"),
    ):
        names = twap.keys() - {"orderType"}
        changes += [(body | twap | {name: None}, 400, tag) for name in sorted(names)]
        changes += [
            (body | twap | {name: least - 1}, 400, tag)
            for name, least in (("interval", 60), ("numSlices", 2))
        ]
    changes += [
        (purchase | PURCHASES | {"totalDestAmount": str(3 * GROSS + 3)}, 400, "InvalidTWAPBuyDestAmount"),
        *(
            (purchase | PURCHASES | {name: "2"}, 400, f"{name} must be >= numSlices")
            for name in ("totalDestAmount", "maxSrcAmount")
        ),
    ]
    return [("/v2/delta/orders/build", *change) for change in changes]


async def test_refusals_of_trading_are_those_of_the_spec_word_for_word(outside: Outside) -> None:
    asked = {**outside.ends(), "amount": ONE, "chainId": CHAIN_ID, "srcDecimals": 18, "destDecimals": 6}
    owner = {"owner": TRADER}
    sale = {"route": await outside.delta_route()} | owner
    purchase = {"route": await outside.delta_route(side="BUY", amount=GROSS), "deadline": FAR_S} | owner
    swap, of_version_5 = outside.sale(await outside.route()), await outside.route(version="5")
    ids = {"orderIds": [str(number) for number in range(101)], "signature": "0x" + "11" * 64}
    faults = []

    def check(answer: httpx.Response, status: int, message: str) -> None:
        said = answer.json()["details"]
        if answer.status_code != status or not f"{said}: ".startswith(f"{message}: "):
            faults.append(f"{answer.request.url} {answer.request.content!r}: {said}, not {message}")

    for path, query, status, message in refused_prices(asked | {"mode": "DELTA"}):
        check(await outside.http.get(path, params=query), status, message)
    for path, body, status, message in (
        *refused_swaps(swap, of_version_5),
        *refused_builds(sale, purchase),
        ("/v2/delta/orders/cancel", ids, 400, "orderIds.length > 100"),
        ("/v2/delta/orders/build/cancellation", {"orderIds": ids["orderIds"]}, 400, "orderIds.length > 100"),
    ):
        plain = {name: value for name, value in body.items() if value is not None}
        check(await outside.http.post(path, json=plain), status, message)
    assert faults == []
    status, built = await outside.ordered(route=purchase["route"], **PURCHASES)
    assert (status, built["toSign"]["value"]["maxSrcAmount"]) == (200, str(4 * ONE))
    status, built = await outside.ordered(route=sale["route"], **TWAP)
    assert (status, built["toSign"]["value"]["totalSrcAmount"]) == (200, str(3 * ONE))


async def test_refusals_of_otc_are_those_of_the_spec(outside: Outside) -> None:
    path, order = f"/ft/p2p/{CHAIN_ID}", outside.item()
    for target, body, said in (
        (path, order | {"makerAsset": NATIVE}, "makerAsset: expected an ERC-20 token"),
        (path, order | {"expiry": 1_900_000_000_000}, "this looks like milliseconds"),
        ("/ft/p2p/x", order, "chainId"),
        (path, [order], "expected an object"),
    ):
        answer = await outside.http.post(target, json=body)
        told = answer.json()
        assert (answer.status_code, told.keys()) == (400, {"errorType", "details", "requestId"})
        assert told["errorType"] == "InvalidInput"
        assert said in told["details"]
    listing = f"{path}/maker/{NOBODY}"
    page = await outside.get(listing)
    assert [page[name] for name in ("orders", "limit", "offset", "total", "hasMore")] == [
        [],
        100,
        0,
        0,
        False,
    ]
    assert (await outside.http.get(listing, params={"limit": 1_001})).status_code == 400
    status, stored = await outside.post(path, order)
    assert status == 200
    one = f"/ft/order/{stored['orderHash']}"
    for method, target, status in (("DELETE", one, 405), ("POST", f"{one}/cancel", 404)):
        assert (await outside.http.request(method, target)).status_code == status, "no endpoint cancels"
    assert (await outside.get(one))["state"] == stored["state"]


async def test_settings_of_the_environment_are_what_a_client_meets(tmp_path: Path) -> None:
    """Setting one member of a tier leaves the tier's other members and other tiers; a new key is added."""
    environ = {
        "CAMBIST__VENUE__RATE_TIERS__KEYED__BURST": "77",
        "CAMBIST__VENUE__API_KEYS__NEWCOMER__SECRET": "env:NEWCOMER_KEY",
        "NEWCOMER_KEY": "the-key-of-a-newcomer",
    }
    async with (
        running_venue(tmp_path, environ=environ) as venue,
        httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as http,
    ):
        met = {}
        for key in ("", "the-key-of-a-newcomer", "another"):
            response = await http.get(f"/tokens/{CHAIN_ID}", headers={"X-API-KEY": key} if key else {})
            assert response.status_code == 200
            fields = response.headers
            met[key] = int(fields["ratelimit-limit"]), fields.get("x-api-key-status")
        assert met == {
            "": (100_000, None),
            "the-key-of-a-newcomer": (77, None),
            "another": (100_000, "unknown"),
        }
