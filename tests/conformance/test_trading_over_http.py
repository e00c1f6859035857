"""Trading endpoints over HTTP (spec 1.12 to 1.14, 1.25): errors word for word, odd spellings, methods.

A venue with makers on a chain is asked what stands in the tables; a case that is not answered as it should be
is named in the list that the test holds against an empty one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.http1 import Response
from cambist.codecs.messages.market_messages import decode_price_route, decode_route_terms
from cambist.codecs.messages.wire import encode
from cambist.config.limits import ROUTE_FRESH_MS
from cambist.config.sections.venue import RateTier
from cambist.config.settings import Settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.route_seal import RouteSeal
from cambist.engine.host.process.clock import WallClock
from cambist.engine.trade.quote.price_route import UnsealedRoute, sealed
from support.venue.trading_requests import (
    API_KEY,
    NATIVE,
    NOBODY,
    OPTIONS,
    PARTNER,
    Body,
    a_sale,
    plain,
    posted,
)
from support.venue.venue_role import CHAIN_ID, ROUTE_SEAL, STRANGER, USER, running_venue

SHAPE = {"errorType", "details", "description", "error", "requestId"}

Refusal = tuple[int, str, str]
INPUT: Refusal = (400, "InvalidInput", "Invalid input")
NO_ROUTE: Refusal = (400, "NoRoute", "No route")
NO_LANE: Refusal = (400, "NoRoute", "No route (crosschain)")
NOT_SUPPORTED: Refusal = (400, "TokenNotSupported", "Token not supported")
BAD_SOURCE: Refusal = (400, "InvalidToken", "Invalid srcToken")
BAD_DESTINATION: Refusal = (400, "InvalidToken", "Invalid destToken")
NO_CHAIN: Refusal = (422, "UnsupportedChain", "Unsupported chain")
NOT_ALLOWED: Refusal = (422, "PartnerNotAllowed", "Partner not allowed")
NO_SLIPPAGE: Refusal = (400, "MissingSlippage", "missing slippage")
BAD_ROUTE: Refusal = (400, "InvalidPriceRoute", "Invalid priceRoute")
EXPIRED: Refusal = (400, "OrderExpired", "Order expired")
STALE: Refusal = (400, "StalePriceRoute", "Stale priceRoute")

EVERYWHERE: list[tuple[str, Refusal]] = [
    *((f"-{name}", INPUT) for name in ("srcToken", "destToken", "amount")),
    *((f"{name}=", INPUT) for name in ("srcToken", "destToken", "amount")),
    ("amount=0", INPUT),
    ("amount=-1", INPUT),
    ("amount=1e18", INPUT),
    (f"amount={2**256}", INPUT),
    ("amount=%31%zz", INPUT),
    ("amount=%", INPUT),
    ("userAddress=%FF%FE", INPUT),
    ("+amount=1", INPUT),
    ("+userAddress=", INPUT),  # given twice, once empty
    ("+%61mount=1", INPUT),
    ("+%zz=1", INPUT),
    ("side=BOTH", INPUT),
    ("srcDecimals=x", INPUT),
    ("srcDecimals=256", INPUT),
    ("partner=" + "x" * 129, INPUT),
    ("userAddress=0x1", INPUT),
    ("maxImpact=NaN", INPUT),
    ("srcDecimals=6", NO_ROUTE),
    ("destDecimals=18", NO_ROUTE),
    (f"amount={10**30}", NO_ROUTE),
    ("destToken=WETH", NO_ROUTE),
    (f"destToken={NATIVE}", NO_ROUTE),
    (f"srcToken={NOBODY}", NOT_SUPPORTED),
    (f"destToken={NOBODY}", NOT_SUPPORTED),
    (f"srcToken={NATIVE.lower()}", BAD_SOURCE),
    (f"srcToken={NATIVE.upper()}", BAD_SOURCE),
    ("srcToken=0x0", BAD_SOURCE),
    ("srcToken=0x" + "0" * 40, BAD_SOURCE),
    (f"destToken={NATIVE.lower()}", BAD_DESTINATION),
    ("destToken=0x0", BAD_DESTINATION),
    ("destToken=0x" + "0" * 40, BAD_DESTINATION),
    ("CHAIN=5", NO_CHAIN),
    ("CHAIN=9007199254740991", NO_CHAIN),
    ("CHAIN=0", INPUT),
    ("CHAIN=x", INPUT),
]
"""A change of a plain request: `-name` leaves out, `+name=` is given beside; and how that is refused."""
OF_ONE: dict[str, list[tuple[str, Refusal]]] = {
    "/v2/quote": [
        *((f"-{name}", INPUT) for name in ("chainId", "srcDecimals", "destDecimals")),
        ("mode=BOTH", INPUT),
        ("beneficiary=x", INPUT),
        ("partnerFeeBps=201", INPUT),
        ("maxUSDImpact=-1", INPUT),
        ("destChainId=10", NO_LANE),
        ("partner=acme&partnerFeeBps=191", NOT_ALLOWED),
        ("partner=small&partnerFeeBps=16", NOT_ALLOWED),
    ],
    "/prices": [
        ("-network", NO_CHAIN),  # chain 1 is the default, and not served
        (f"chainId={CHAIN_ID + 1}", INPUT),
        ("version=6", INPUT),
        ("version=5.0", INPUT),
        ("otherExchangePrices=yes", INPUT),
        ("receiver=x", INPUT),
        ("route=WETH", INPUT),
        ("route=WETH-DAI-USDC-WBTC-USDC", INPUT),
        ("route=DAI-USDC", INPUT),
        (f"route=WETH-{NOBODY}-USDC", NOT_SUPPORTED),
        *((f"{tax}=10001", INPUT) for tax in ("srcTokenTransferFee", "destTokenDexTransferFee")),
        ("srcTokenTransferFee=10000", NO_ROUTE),
        ("excludeRFQ=true", NO_ROUTE),
        ("includeDEXS=nobody", NO_ROUTE),
        ("excludeDEXS=alpha,beta", NO_ROUTE),
        ("includeContractMethods=none", NO_ROUTE),
        ("excludeContractMethods=swapExactIn", NO_ROUTE),
    ],
    "/swap": [
        ("-slippage", NO_SLIPPAGE),
        ("slippage=", NO_SLIPPAGE),
        ("slippage=10001", INPUT),
        ("-userAddress", INPUT),
        ("userAddress=0x" + "0" * 40, INPUT),
        ("version=5", INPUT),
        ("txOrigin=x", INPUT),
        ("deadline=1", EXPIRED),
        ("permit=0x0102", INPUT),
        ("permit=x", INPUT),
        ("isCapSurplus=1", INPUT),
        ("partnerAddress=x", INPUT),
        ("partner=acme&partnerFeeBps=191", NOT_ALLOWED),
        ("partner=small&takeSurplus=true", NOT_ALLOWED),
    ],
}


def changed(path: str, query: Mapping[str, Any], change: str) -> str:
    """The target of a plain request with a change of the tables."""
    query, beside = dict(query), ""
    if change.startswith("-"):
        query.pop(change[1:], None)
    elif change.startswith("+"):
        beside = f"&{change[1:]}" + ("&userAddress=" if change == "+userAddress=" else "")
    else:
        for part in change.split("&"):
            name, _, value = part.partition("=")
            name = name.replace("CHAIN", "chainId" if path == "/v2/quote" else "network")
            query.pop(name, None)
            beside += f"&{name}={value}"
    return f"{urlencode(query)}{beside}"


def fault(response: Response, refusal: Refusal) -> str:
    """Fault of a refusal, or an empty text."""
    status, error_type, message = refusal
    headers = dict(response.headers)
    try:
        told = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        return f"not JSON: {response.body!r}"
    if (response.status, told.get("errorType")) != (status, error_type):
        return f"{response.status} {response.body.decode()}"
    text = told["details"]
    if text != message and not text.startswith(f"{message}: "):
        return f"says {text}"
    if told.keys() != SHAPE or not text == told["description"] == told["error"]:
        return f"has another shape: {told}"
    if headers[b"x-request-id"].decode() != told["requestId"]:
        return "has another request id"
    if headers[b"content-type"] != b"application/json":
        return f"is {headers[b'content-type']!r}"
    return ""


async def test_error_rows_of_quotes_prices_and_swaps(tmp_path: Path) -> None:
    faults = []
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        for path, rows in OF_ONE.items():
            assert (await venue.ask("GET", f"{path}?{urlencode(plain(venue, path))}")).status == 200
            for change, refusal in [*EVERYWHERE, *rows]:
                query = changed(path, plain(venue, path), change)
                for target in (f"{path}?{query}", f"{path}/?{query}"):
                    wrong = fault(await venue.ask("GET", target), refusal)
                    faults += [f"{change} of {target}: {wrong}"] if wrong else []
        assert venue.app.server.statistics().errors == 0
    assert faults == []


async def test_what_changes_nothing_is_ignored(tmp_path: Path) -> None:
    """choices.md#requests-and-errors: unknown parameters; an empty value is an absent one; `mode` and `side`
    in any case."""
    unchanged = (
        "utm_source=x", "utm_source=%zz", "+a=1&a=2", "userAddress=", "partner=", "maxImpact=", "side=sell",
        "side=", "amounts=5", "=", "+&&",
    )  # fmt: skip
    async with running_venue(tmp_path, **OPTIONS) as venue:
        for path in ("/v2/quote", "/prices"):
            query = plain(venue, path) | {"mode": "MARKET"}
            was = amounts(await venue.ask("GET", f"{path}?{urlencode(query)}"))
            for change in unchanged:
                for slash in ("", "/"):
                    target = f"{path}{slash}?{changed(path, query, change)}"
                    assert amounts(await venue.ask("GET", target)) == was, target
            misspelt = await venue.ask("GET", f"{path}?{urlencode(query)}&Amount=5")
            assert (misspelt.status, b"expected the spelling amount" in misspelt.body) == (400, True)
            escaped = urlencode(query).replace("amount", "%61moun%74").replace("0x", "%30x")
            assert amounts(await venue.ask("GET", f"{path}?{escaped}")) == was


def amounts(response: Response) -> tuple[str, str]:
    """Source and destination amounts of a Market route."""
    told = msgspec.json.decode(response.body)
    route = told.get("market") or told["priceRoute"]
    return route["srcAmount"], route["destAmount"]


async def test_methods(tmp_path: Path) -> None:
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        for path in OF_ONE:
            for slash in ("", "/"):
                target = f"{path}{slash}?{urlencode(plain(venue, path))}"
                got, head = await venue.ask("GET", target), await venue.ask("HEAD", target)
                assert (head.status, head.body) == (got.status, b"") == (200, b"")
                assert dict(head.headers)[b"content-type"] == b"application/json"
                missing = await venue.ask("HEAD", f"{path}{slash}")
                assert (missing.status, missing.body) == (400, b"")
                options = await venue.ask("OPTIONS", target)
                assert (options.status, options.body) == (204, b"")
                assert dict(options.headers)[b"allow"] == b"GET, HEAD, OPTIONS"
                for method in ("POST", "PUT", "PATCH", "DELETE"):
                    refused = await venue.ask(method, target)
                    assert fault(refused, (405, "MethodNotAllowed", "Method not allowed")) == ""
                    assert dict(refused.headers)[b"allow"] == b"GET, HEAD, OPTIONS"
        for slash in ("", "/"):
            target = f"/transactions/{CHAIN_ID}{slash}"
            assert dict((await venue.ask("OPTIONS", target)).headers)[b"allow"] == b"POST, OPTIONS"
            for method in ("GET", "HEAD"):
                refused = await venue.ask(method, target)
                assert (refused.status, dict(refused.headers)[b"allow"]) == (405, b"POST, OPTIONS")


# --- Transactions ---------------------------------------------------------------------------------------


def cast_amounts(route: Body) -> Body:
    return route | {"srcAmount": int(route["srcAmount"])}


ROUTES: dict[str, tuple[Any, Refusal]] = {
    "one digit": (lambda route: route | {"destAmount": f"{int(route['destAmount']) + 1}"}, BAD_ROUTE),
    "amounts as numbers": (cast_amounts, BAD_ROUTE),
    "a float": (lambda route: route | {"partnerFee": 0.02}, BAD_ROUTE),
    "a member less": (lambda route: {k: v for k, v in route.items() if k != "gasCost"}, BAD_ROUTE),
    "a member more": (lambda route: route | {"extra": 1}, BAD_ROUTE),
    "no terms": (lambda route: route | {"hmac": route["hmac"][:80]}, BAD_ROUTE),
    "other terms": (lambda route: route | {"hmac": f"{route['hmac'][:80]}{b'{}'.hex()}"}, BAD_ROUTE),
    "no seal": (lambda route: {k: v for k, v in route.items() if k != "hmac"}, BAD_ROUTE),
    "another seal": (lambda route: route | {"hmac": "0" * 80}, BAD_ROUTE),
    "a seal that is none": (lambda route: route | {"hmac": 1}, BAD_ROUTE),
    "nothing of it": (lambda route: {}, BAD_ROUTE),
    "a list": (lambda route: [route], BAD_ROUTE),
    "a text": (lambda route: msgspec.json.encode(route).decode(), BAD_ROUTE),
    "stale": (lambda route: resealed(route, ROUTE_FRESH_MS + 1_000), STALE),
}
MEMBERS: list[tuple[Body, Refusal]] = [
    ({"slippage": None}, NO_SLIPPAGE),
    *(({name: None}, INPUT) for name in ("srcToken", "destToken", "userAddress", "srcAmount", "priceRoute")),
    *(({name: "0x1"}, INPUT) for name in ("userAddress", "receiver", "txOrigin", "partnerAddress")),
    ({"slippage": 10_001}, INPUT),
    ({"slippage": "100.0"}, INPUT),
    ({"slippage": "10001"}, INPUT),
    ({"slippage": -1}, INPUT),
    ({"srcAmount": "1"}, INPUT),
    ({"srcAmount": 10**18}, INPUT),
    ({"destAmount": "x"}, INPUT),
    ({"deadline": 1}, EXPIRED),
    ({"permit": "0x0102"}, INPUT),
    ({"partnerFeeBps": 5.0}, INPUT),
    ({"partnerFeeBps": 201}, INPUT),
    ({"partnerFeeBps": "201"}, INPUT),
    ({"isCapSurplus": "true"}, INPUT),
    ({"takeSurplus": 1}, INPUT),
    ({"srcToken": "0x0"}, BAD_SOURCE),
    ({"srcToken": NATIVE.lower()}, BAD_SOURCE),
    ({"destToken": NATIVE.lower()}, BAD_DESTINATION),
    ({"srcToken": NOBODY}, NOT_SUPPORTED),
    ({"srcToken": "DAI"}, INPUT),
    ({"srcDecimals": 6}, NO_ROUTE),
    ({"partner": "acme", "partnerFeeBps": "191"}, NOT_ALLOWED),
    ({"partner": "small", "takeSurplus": True}, NOT_ALLOWED),
    (
        {"userAddress": to_checksum(b"\x77" * 20)},
        (400, "InsufficientBalance", "InsufficientBalance"),
    ),
    (
        {"userAddress": to_checksum(STRANGER.address)},
        (400, "InsufficientAllowance", "InsufficientAllowance"),
    ),
]
QUERIES: list[tuple[str, Refusal]] = [
    ("gasPrice=x", INPUT),
    ("gasPrice=0", INPUT),
    ("ignoreChecks=1", INPUT),
    ("ignoreGasEstimate=no", INPUT),
    ("onlyParams=%zz", INPUT),
    ("eip1559=true&eip1559=true", INPUT),
]
RAW: list[tuple[bytes, Refusal]] = [
    (b"", INPUT),
    (b"{", INPUT),
    (b"[]", INPUT),
    (b"null", INPUT),
    (b'"text"', INPUT),
    (b"\xff\xfe", INPUT),
    (b'{"priceRoute":{}', INPUT),
]


def resealed(route: Body, age_ms: int) -> Body:
    """A route as it would have been issued so long ago."""
    typed = replace(decode_price_route(msgspec.json.encode(route)), hmac=UNSET)
    seal = RouteSeal([ROUTE_SEAL.encode()])
    terms = decode_route_terms(seal.carried(route["hmac"]))
    issued = sealed(seal, UnsealedRoute(typed, terms), WallClock().now_ms() - age_ms)
    again: Body = msgspec.json.decode(encode(issued))
    return again


async def test_error_rows_of_transactions(tmp_path: Path) -> None:
    faults = []
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        for slash in ("", "/"):
            sale = await a_sale(venue)
            for name, (changes, refusal) in ROUTES.items():
                body = sale | {"priceRoute": changes(sale["priceRoute"])}
                faults += [f"{name}: {fault(await posted(venue, body, slash=slash), refusal)}"]
            for members, refusal in MEMBERS:
                faults += [f"{members}: {fault(await posted(venue, sale | members, slash=slash), refusal)}"]
            for query, refusal in QUERIES:
                faults += [f"{query}: {fault(await posted(venue, sale, query, slash), refusal)}"]
            for raw, refusal in RAW:
                faults += [f"{raw!r}: {fault(await posted(venue, raw, slash=slash), refusal)}"]
            old = await venue.get("/prices", **plain(venue, "/prices"))  # of version 5
            response = await posted(venue, sale | old, slash=slash)
            faults += [f"version 5: {fault(response, INPUT)}"]
            assert b"6.2" in response.body
            for path in ("5", "1"):
                response = await venue.ask("POST", f"/transactions/{path}{slash}", msgspec.json.encode(sale))
                faults += [f"chain {path}: {fault(response, NO_CHAIN)}"]
            response = await venue.ask("POST", f"/transactions/x{slash}", msgspec.json.encode(sale))
            faults += [f"no chain: {fault(response, INPUT)}"]
            assert (await posted(venue, sale, slash=slash)).status == 200
            fresh = sale | {"priceRoute": resealed(sale["priceRoute"], 1_000)}
            assert (await posted(venue, fresh, slash=slash)).status == 200
    assert [text for text in faults if not text.endswith(": ")] == []


async def test_a_route_may_be_written_anew_but_not_changed(tmp_path: Path) -> None:
    """The order of members and the space between them are no part of what is sealed; null is absent."""
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        sale = await a_sale(venue)
        turned = dict(reversed(sale["priceRoute"].items()))
        spaced = msgspec.json.format(msgspec.json.encode(sale | {"priceRoute": turned, "unknown": [1]}))
        assert (await posted(venue, spaced)).status == 200
        absent = ("receiver", "permit", "deadline", "partner", "partnerAddress", "partnerFeeBps", "txOrigin")
        nulls = msgspec.json.encode(sale | dict.fromkeys(absent))
        assert (await posted(venue, nulls, "gasPrice=&onlyParams=")).status == 200


# --- Callers --------------------------------------------------------------------------------------------


async def test_the_partner_of_a_key_is_the_partner_of_all_that_is_quoted_with_it(tmp_path: Path) -> None:
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        key = {"X-API-KEY": API_KEY}

        async def asked(path: str, headers: Mapping[str, str], **more: Any) -> Any:
            target = f"{path}?{urlencode(plain(venue, path) | more)}"
            response = await venue.ask("GET", target, headers=headers)
            assert response.status == 200, response.body
            return msgspec.json.decode(response.body)

        def fee(built: Any) -> tuple[int, int]:
            packed = decode_swap(parse_hex(built["data"], "data"))[1].partner_and_fee
            return packed & 0xFF, packed >> 96

        acme = 10, int(PARTNER, 16)
        assert (await asked("/v2/quote", key))["delta"]["partner"]["name"] == "acme"
        market = (await asked("/v2/quote", key, mode="MARKET"))["market"]
        assert (market["partner"], market["partnerFee"]) == ("acme", 0.1)
        prices = (await asked("/prices", key, version="6.2"))["priceRoute"]
        assert (prices["partner"], prices["partnerFee"]) == ("acme", 0.1)
        assert fee((await asked("/swap", key))["txParams"]) == acme
        for more in ({"partner": "small"}, {"partner": "anon"}):
            assert (await asked("/prices", key, **more))["priceRoute"]["partner"] == more["partner"]
            assert (await asked("/swap", key, **more))["priceRoute"]["partner"] == more["partner"]
        assert (await asked("/prices", {}))["priceRoute"]["partner"] == "anon"
        sale = await a_sale(venue)
        for route, expected in ((market, acme), (prices, acme)):
            built = msgspec.json.decode((await posted(venue, sale | {"priceRoute": route})).body)
            assert fee(built) == expected, "the partner of the route"
        target = f"/transactions/{CHAIN_ID}"
        quoted = (await venue.ask("POST", target, msgspec.json.encode(sale), key)).body
        assert fee(msgspec.json.decode(quoted))[0] == 1, "what was quoted without the key stays as it was"


async def test_a_caller_who_asks_too_much(tmp_path: Path) -> None:
    def scarce(settings: Settings) -> Settings:
        assert settings.venue
        tiers = {name: RateTier(per_s=0.001, burst=1) for name in ("public", "keyed")}
        return replace(settings, venue=replace(settings.venue, rate_tiers=tiers))

    limited = (429, "RateLimited", "rate limit exceeded")
    async with running_venue(tmp_path, changed=scarce, **OPTIONS) as venue:
        assert (await venue.ask("GET", f"/v2/quote?{urlencode(plain(venue, '/v2/quote'))}")).status == 200
        for path in (*OF_ONE, "/v2/quote/stream"):
            response = await venue.ask("GET", f"{path}?{urlencode(plain(venue, '/v2/quote'))}")
            assert fault(response, limited) == "", path
            headers = dict(response.headers)
            assert int(headers[b"retry-after"]) >= 1
            assert headers[b"ratelimit-limit"] == b"1"
            assert headers[b"ratelimit-remaining"] == b"0"
        assert fault(await posted(venue, b"{}"), limited) == ""
        unknown = await venue.ask("GET", "/tokens/31337", headers={"X-API-KEY": "guess"})
        assert fault(unknown, limited) == "", "guessing keys costs the address"
