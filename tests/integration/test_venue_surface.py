"""The venue over real sockets, with makers and a chain: endpoints, both spellings, errors in one shape."""

import gzip
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
import trio
from msgspec.structs import replace

from cambist.codecs.canonical_json import canonical
from cambist.codecs.http1 import Response
from cambist.codecs.messages.market_messages import QuoteResponse
from cambist.codecs.messages.resource_messages import (
    AdaptersContracts,
    ChainList,
    ContractsDocument,
    ContractTakers,
    ErrorsDocument,
    MakerScores,
    PartnerFee,
    TokenList,
    UserTokens,
)
from cambist.codecs.messages.vocabulary import Side
from cambist.config.sections.venue import RateTier
from cambist.config.settings import Settings, parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.route_seal import RouteSeal
from cambist.engine.chain.transact import transact
from cambist.engine.host.process.clock import WallClock
from cambist.engine.store.process.open_store import open_store
from cambist.engine.trade.quote.issued import IssuedRoutes, quoted_as
from cambist.engine.trade.quote.price_route import opened
from support.patience import PATIENCE_S, until
from support.venue.venue_role import (
    CHAIN_ID,
    ROUTE_SEAL,
    USER,
    RunningVenue,
    running_venue,
    served_devnet,
    serving,
)

NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"


async def test_every_resource_tells_what_is_true(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        devnet = venue.devnet
        assert await told(venue, "/chains", ChainList) == [
            {
                "chainId": CHAIN_ID,
                "name": "devnet",
                "delta": True,
                "market": True,
                "rfq": True,
                "explorerUrl": None,
            }
        ]
        tokens = (await told(venue, f"/tokens/{CHAIN_ID}", TokenList))["tokens"]
        assert [token["symbol"] for token in tokens] == ["ETH", "WETH", "USDC", "DAI", "WBTC"]
        assert tokens[0] == {"symbol": "ETH", "address": NATIVE, "decimals": 18, "network": CHAIN_ID}
        assert tokens[2]["address"] == devnet.text("USDC")
        balances = await told(
            venue, f"/users/tokens/{CHAIN_ID}/{to_checksum(USER.address).lower()}", UserTokens
        )
        for token in balances["tokens"]:
            assert int(token["balance"]) == await devnet.balance(USER, token["symbol"])
        assert [token["symbol"] for token in balances["tokens"]] == ["ETH", "WETH", "USDC", "DAI", "WBTC"]
        assert await told(venue, f"/adapters/contracts?chainId={CHAIN_ID}", AdaptersContracts) == {
            "AugustusSwapper": devnet.text("router"),
            "TokenTransferProxy": devnet.text("router"),
            "AugustusRFQ": devnet.text("rfq"),
            "ParaswapDelta": devnet.text("delta"),
            "Executors": {"RfqExecutor": devnet.text("executor")},
        }
        assert await told(venue, f"/adapters/list?network={CHAIN_ID}", tuple[str, ...]) == ["alpha", "beta"]
        takers = await told(venue, f"/adapters/contract-takers?network={CHAIN_ID}", ContractTakers)
        assert takers == [devnet.text("executor")]
        assert await told(venue, f"/prices/partnerfee/{CHAIN_ID}?partner=nobody", PartnerFee) == {
            "partnerFee": 0.01,
            "partnerAddress": "0x" + "00" * 20,
            "takeSurplus": False,
        }
        document = await told(venue, "/resources/contracts.json", ContractsDocument)
        assert document["chains"][str(CHAIN_ID)] == {
            "name": "devnet",
            "augustusV6_2": devnet.text("router"),
            "delta": devnet.text("delta"),
            "augustusRFQ": devnet.text("rfq"),
            "executor": devnet.text("executor"),
            "feeClaimer": devnet.text("fee_vault"),
            "served": {"delta": True, "market": True, "rfq": True},
        }
        errors = await told(venue, "/resources/errors.json", ErrorsDocument)
        assert "GasCostExceedsTradeAmount" not in {row["match"] for row in errors["errors"]}
        assert "Gas cost exceeds trade amount" in {row["match"] for row in errors["errors"]}
        scores = await told(venue, f"/makers/scores?network={CHAIN_ID}", MakerScores)
        assert scores == await told(venue, "/makers/scores", MakerScores)
        assert scores == [
            {
                "network": CHAIN_ID,
                "maker": name,
                "score": 100,
                "quotes": 0,
                "reasons": {},
                "p50Ms": None,
                "p99Ms": None,
                "blockUntil": None,
                "blockReason": "",
                "pairs": [],
                "bounds": [],
                "lastFaults": [],
                "refused": {},
            }
            for name in ("alpha", "beta")
        ]


async def test_a_users_tokens_say_what_the_router_may_take(tmp_path: Path) -> None:
    async with (
        running_venue(tmp_path) as venue,
        httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as client,
    ):
        devnet, user = venue.devnet, to_checksum(USER.address)
        await devnet.allow(USER, "USDC", "router", 7 * 10**6)

        async def one(token: str) -> dict[str, Any]:
            answer = await client.get(f"/users/tokens/{CHAIN_ID}/{user}/{token}")
            assert answer.status_code == 200, answer.text
            assert answer.json().keys() == {"token"}
            found: dict[str, Any] = answer.json()["token"]
            return found

        everything = (await client.get(f"/users/tokens/{CHAIN_ID}/{user}")).json()["tokens"]
        allowed = {token["symbol"]: token["allowance"] for token in everything}
        assert allowed == {
            "ETH": str(2**256 - 1), "WETH": "0", "USDC": str(7 * 10**6), "DAI": "0", "WBTC": "0"
        }  # fmt: skip
        usdc = devnet.text("USDC")
        for name in (usdc, usdc.lower(), "USDC"):
            assert await one(name) == everything[2]
        for name in (NATIVE, NATIVE.lower(), "ETH"):
            assert await one(name) == everything[0]
        for name, status, tag in (("usdc", 400, "InvalidInput"), (user, 400, "TokenNotSupported")):
            answer = await client.get(f"/users/tokens/{CHAIN_ID}/{user}/{name}")
            assert (answer.status_code, answer.json()["errorType"]) == (status, tag)


async def test_token_lists_of_older_clients(tmp_path: Path) -> None:
    async with (
        running_venue(tmp_path) as venue,
        httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as client,
    ):
        listed = (await client.get(f"/tokens/{CHAIN_ID}")).json()
        assert len(listed["tokens"]) == 5
        for chain in (str(CHAIN_ID), "all"):
            fiat = (await client.get(f"/fiat/tokens/{chain}")).json()["tokens"]
            assert [(entry["address"], entry["chainId"]) for entry in fiat] == [
                (entry["address"], entry["network"]) for entry in listed["tokens"]
            ]
        assert (await client.get("/fiat/tokens/5")).json()["errorType"] == "UnsupportedChain"


async def test_tokens_have_names_pictures_and_categories(tmp_path: Path) -> None:
    """The members that the newest public SDK reads."""
    path = f"/fiat/tokens/{CHAIN_ID}"
    async with (
        running_venue(tmp_path) as venue,
        httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as client,
    ):
        listed = {entry["symbol"]: entry for entry in (await client.get(path)).json()["tokens"]}
        members = {"chainId", "name", "symbol", "address", "decimals", "sources", "categories"}
        assert all(entry.keys() == members | ({"logoURI"} & entry.keys()) for entry in listed.values())
        assert listed["USDC"]["categories"] == ["stablecoin"]
        assert listed["WETH"]["categories"] == listed["ETH"]["categories"] == ["native"]
        assert listed["ETH"]["name"] == "ETH"
        for category, symbols in {"stablecoin": {"USDC", "DAI"}, "native": {"ETH", "WETH"}}.items():
            found = (await client.get(path, params={"category": category})).json()["tokens"]
            assert {entry["symbol"] for entry in found} == symbols
        told = (await client.get("/fiat/tokens/categories")).json()["categories"]
        assert [entry["id"] for entry in told] == ["stablecoin", "native"]
        refused = await client.get(path, params={"category": "memes"})
        assert (refused.status_code, refused.json()["errorType"]) == (400, "InvalidInput")
        assert "category" in refused.json()["details"]


async def test_what_is_quoted_is_remembered_and_sealed(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        sale = venue.selling("WETH", 1, "USDC")
        quote = await venue.get("/v2/quote", **sale)
        msgspec.convert(quote, QuoteResponse)
        raw = msgspec.json.encode(quote["delta"]["route"])
        changed = raw.replace(b'"bridge":null', b'"bridge":{}')
        now_ms = WallClock().now_ms()
        assert await venue.app.issued.is_issued(quoted_as(Side.SELL, canonical(raw)), now_ms)
        assert not await venue.app.issued.is_issued(quoted_as(Side.SELL, canonical(changed)), now_ms)
        prices = await venue.get("/v2/delta/prices", **sale)
        assert prices["route"] == quote["delta"]["route"]
        assert prices["id"] != quote["delta"]["id"]
        route = (await venue.get("/prices", version="6.2", **sale))["priceRoute"]
        assert route["destAmount"] == str(2_500 * 10**6 - 250_000)
        assert opened(RouteSeal([ROUTE_SEAL.encode()]), msgspec.json.encode(route), now_ms).route.network
    await until_stored(tmp_path, raw)


async def until_stored(folder: Path, raw: bytes) -> None:
    """Check that the ended venue has stored its pending issued route."""
    settings = parse_settings('state_dir = "."', {}, folder)
    async with open_store(settings, {}, folder, WallClock().now_ms, in_process=True) as store:
        issued = IssuedRoutes(store, 600)
        assert await issued.is_issued(quoted_as(Side.SELL, canonical(raw)), WallClock().now_ms())


async def test_a_swap_from_its_quote_to_the_chain(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        sale = venue.selling("WETH", 1, "USDC")
        route = (await venue.get("/v2/quote", mode="MARKET", **sale))["market"]
        status, built = await venue.post(
            f"/transactions/{CHAIN_ID}",
            {
                "priceRoute": route,
                "srcToken": route["srcToken"],
                "destToken": route["destToken"],
                "srcAmount": route["srcAmount"],
                "slippage": 50,
                "userAddress": to_checksum(USER.address),
            },
        )
        assert status == 200, built
        before = await venue.devnet.balance(USER, "USDC")
        await transact(
            venue.devnet.chain,
            USER,
            parse_hex(built["to"], "to"),
            parse_hex(built["data"], "data"),
            value_wei=int(built["value"]),
            gas=int(built["gas"]),
        )
        assert await venue.devnet.balance(USER, "USDC") - before == int(route["destAmount"])
        scores = await venue.get("/makers/scores", network=CHAIN_ID)
        assert [(score["maker"], score["score"], score["quotes"]) for score in scores] == [
            ("alpha", 100, 1),
            ("beta", 100, 0),
        ]
        with venue.with_key():
            swap = await venue.get(
                "/swap", **sale, slippage=50, version="6.2", userAddress=route["contractAddress"]
            )
        assert "gas" not in swap["txParams"]


async def test_a_chain_that_is_not_served_is_422_everywhere(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        sale = venue.selling("WETH", 1, "USDC") | {"chainId": 5}
        for target in (
            f"/v2/quote?{urlencode(sale)}",
            f"/v2/delta/prices?{urlencode(sale)}",
            f"/v2/delta/prices/is-token-supported?chainId=5&token={sale['srcToken']}",
            f"/prices?{urlencode(sale)}",
            f"/swap?{urlencode(sale | {'userAddress': sale['srcToken'], 'slippage': 1, 'version': '6.2'})}",
            "/tokens/5",
            f"/users/tokens/5/{sale['srcToken']}",
            "/adapters/contracts?network=5",
            "/adapters/contracts",  # chain 1
            "/adapters/list?chainId=5",
            "/adapters/contract-takers?network=5",
            "/prices/partnerfee/5",
            "/makers/scores?network=5",
        ):
            response = await venue.ask("GET", target)
            assert (response.status, error_type(response)) == (422, "UnsupportedChain"), target
        status, body = await venue.post(
            "/transactions/5",
            {"priceRoute": {}, "srcToken": "a", "destToken": "b", "userAddress": "c"},
        )
        assert (status, body["errorType"]) == (422, "UnsupportedChain")


async def test_errors_have_one_shape_whatever_fails(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        for method, target, status, tag in (
            ("GET", "/nothing", 404, "NotFound"),
            ("GET", "/v2", 404, "NotFound"),
            ("DELETE", "/v2/quote", 405, "MethodNotAllowed"),
            ("POST", "/chains/", 405, "MethodNotAllowed"),
            ("GET", "/tokens/x", 400, "InvalidInput"),
            ("GET", "/tokens/9999999999999999999", 400, "InvalidInput"),
            ("GET", f"/users/tokens/{CHAIN_ID}/0x12", 400, "InvalidInput"),
            ("GET", "/adapters/list?network=1&chainId=2", 400, "InvalidInput"),
            ("GET", "/v2/quote", 400, "InvalidInput"),
            ("POST", f"/transactions/{CHAIN_ID}", 400, "InvalidInput"),
        ):
            response = await venue.ask(method, target)
            assert (response.status, error_type(response)) == (status, tag), target
            body = msgspec.json.decode(response.body)
            assert body.keys() == {"errorType", "details", "description", "error", "requestId"}
            assert dict(response.headers)[b"x-request-id"].decode() == body["requestId"]


TRANSACTIONS = f"/transactions/{CHAIN_ID}"
POSTS = {
    TRANSACTIONS: b'{"priceRoute":{"x":1,"x":2},"srcToken":"a","destToken":"b","userAddress":"c"}',
    "/v2/delta/orders/build": b'{"owner":"a","route":{"x":[{"y":1,"y":2}]}}',
    "/v2/delta/orders": b'{"chainId":1,"order":{"nonce":"1","nonce":"2"},"signature":"0x"}',
    "/v2/delta/orders/build/cancellation": b'{"orderIds":["a"],"orderIds":["b"]}',
    "/v2/delta/orders/cancel": b'{"orderIds":["a"],"signature":"0x","signature":"0x01"}',
    f"/ft/p2p/{CHAIN_ID}": b"""{"nonceAndMeta":"1","expiry":0,"makerAsset":"a","takerAsset":"b",
        "makerAmount":"1","takerAmount":"1","maker":"a","taker":"b","signature":"0x","makerAmount":"2"}""",
}
"""POST endpoint -> a body that gives a key twice."""


async def test_bodies_that_two_readers_would_read_differently_are_refused(tmp_path: Path) -> None:
    async with (
        running_venue(tmp_path) as venue,
        httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as client,
    ):
        for path, twice in POSTS.items():
            answer = await client.post(path, content=twice)
            assert (answer.status_code, answer.json()["errorType"]) == (400, "InvalidInput"), path
            assert "given twice in one object" in answer.json()["details"]
            answer = await client.post(path, content=b"")
            assert (answer.status_code, answer.json()["errorType"]) == (400, "InvalidInput"), path
            assert answer.json()["details"] == "Invalid input: the body is empty"
            answer = await client.post(
                path, content=gzip.compress(twice), headers={"content-encoding": "gzip"}
            )
            assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity"), path
            assert answer.json()["errorType"] == "UnsupportedContentCoding"


async def test_deadlines_in_milliseconds_and_owners_that_are_nobody(tmp_path: Path) -> None:
    async with (
        running_venue(tmp_path) as venue,
        httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as client,
    ):
        sale = venue.selling("WETH", 1, "USDC", mode="DELTA")
        route = (await client.get("/v2/quote", params=sale)).json()["delta"]["route"]
        at_ms = 1_000 * (int(WallClock().now_ms()) // 1_000 + 600)

        async def built(owner: str, deadline: int) -> httpx.Response:
            body = {"route": route, "owner": owner, "deadline": deadline}
            return await client.post("/v2/delta/orders/build", json=body)

        answer = await built(to_checksum(USER.address), at_ms)
        assert answer.status_code == 400
        assert answer.json()["details"].endswith(f"got {at_ms}: this looks like milliseconds")
        for owner in ("0x" + "00" * 20, NATIVE):
            answer = await built(owner, at_ms // 1_000)
            assert answer.status_code == 400
            assert "owner: expected an account, neither zero nor the native" in answer.json()["details"]
        assert (await built(to_checksum(USER.address), at_ms // 1_000)).status_code == 200


async def test_while_no_node_answers_what_needs_one_is_503_and_the_rest_goes_on(tmp_path: Path) -> None:
    def away(settings: Settings) -> Settings:
        chain = settings.chains[CHAIN_ID]
        node = replace(chain.node, urls=("http://127.0.0.1:9",), ws_urls=())
        return replace(settings, chains={CHAIN_ID: replace(chain, node=node)})

    async with served_devnet(tmp_path) as devnet, serving(tmp_path, devnet, {}, changed=away) as served:
        app, client, port = served
        venue = RunningVenue(app, devnet, {}, client, port)
        sale = urlencode(venue.selling("WETH", 1, "USDC"))
        for target in (f"/users/tokens/{CHAIN_ID}/{to_checksum(USER.address)}", f"/v2/quote?{sale}"):
            response = await venue.ask("GET", target)
            assert (response.status, error_type(response)) == (503, "ServiceUnavailable")
            assert b"retry-after" in dict(response.headers)
        assert (await venue.ask("GET", f"/tokens/{CHAIN_ID}")).status == 200
        status, told = await venue.answer("/readyz")
        assert status == 503
        said = f"chain {CHAIN_ID}: no node answers: "
        assert [f"chains.{CHAIN_ID}.node.urls[0]" in one for one in told["reasons"] if said in one] == [True]


async def test_a_trusted_proxy_may_have_all_connections(tmp_path: Path) -> None:
    def proxied(settings: Settings) -> Settings:
        assert settings.venue
        venue = replace(settings.venue, trusted_proxies=("127.0.0.1",))
        return replace(settings, venue=venue, server=replace(settings.server, connections_per_address_max=1))

    async with served_devnet(tmp_path) as devnet, serving(tmp_path, devnet, {}, changed=proxied) as served:
        app, client, port = served
        async with (
            await trio.open_tcp_stream("127.0.0.1", port),
            await trio.open_tcp_stream("127.0.0.1", port),
        ):
            await until(lambda: app.server.statistics().connections >= 2)
            assert (await client.request(b"GET", b"/healthz", deadline_s=PATIENCE_S)).status == 200


async def test_tokens_that_delta_supports(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        path = "/v2/delta/prices/is-token-supported"
        for token, supported in (
            (venue.devnet.text("USDC"), True),
            (venue.devnet.text("USDC").lower(), True),
            (NATIVE, True),
            (NATIVE.lower(), False),
            ("0x" + "12" * 20, False),
        ):
            assert await venue.get(path, chainId=CHAIN_ID, token=token) == {"supported": supported}
        status, body = await venue.answer(path, chainId=CHAIN_ID, token="0x12")
        assert (status, body["errorType"]) == (400, "InvalidInput")


async def test_callers_are_counted_and_told(tmp_path: Path) -> None:
    def scarce(settings: Settings) -> Settings:
        assert settings.venue
        tiers = {name: RateTier(per_s=0.001, burst=3) for name in ("public", "keyed")}
        return replace(settings, venue=replace(settings.venue, rate_tiers=tiers))

    async with running_venue(tmp_path, changed=scarce) as venue:
        for left in (2, 1, 0):
            response = await venue.ask("GET", f"/tokens/{CHAIN_ID}")
            assert dict(response.headers)[b"ratelimit-remaining"] == b"%d" % left
        response = await venue.ask("GET", f"/tokens/{CHAIN_ID}/")
        assert (response.status, error_type(response)) == (429, "RateLimited")
        assert (await venue.ask("GET", "/chains")).status == 200  # costs nothing
        assert (await venue.ask("GET", "/readyz")).status == 200


async def test_operators_see_it(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        assert await venue.get("/healthz") == {"status": "ok"}
        assert await venue.get("/readyz") == {"ready": True, "reasons": []}
        metrics = (await venue.ask("GET", "/metrics")).body
        assert b"cambist_server_requests_total" in metrics
        status = venue.app.status()
        assert status["chains"][str(CHAIN_ID)]["makers"].keys() == {"alpha", "beta"}
        for maker in venue.makers.values():
            maker.switch.stop("all")
        await until(lambda: not list(venue.app.chains[CHAIN_ID].index.books()))
        status_code, told = await venue.answer("/readyz")
        assert status_code == 503
        assert told["reasons"] == [f"chain {CHAIN_ID}: no maker has a live book"]


ENDLESS = ("/v2/quote/stream", "/v2/delta/orders/events", "/ft/events")


async def test_the_documents_of_the_api(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        document = await venue.get("/openapi.json")
        assert "/v2/quote" in document["paths"]
        for path, methods in document["paths"].items():
            if "get" in methods and "{" not in path and path not in ENDLESS:
                assert (await venue.ask("GET", path)).status != 404, path
        page = await venue.ask("GET", "/docs")
        assert dict(page.headers)[b"content-type"] == b"text/html; charset=utf-8"
        assert b"/docs/docs.js" in page.body


def error_type(response: Response) -> str:
    text: str = msgspec.json.decode(response.body)["errorType"]
    return text


async def told(venue: RunningVenue, target: str, kind: Any) -> Any:
    """The JSON of a GET, the same with a slash at the end of its path, and of the documented shape."""
    path, mark, query = target.partition("?")
    one = await venue.ask("GET", target)
    other = await venue.ask("GET", f"{path}/{mark}{query}")
    assert (one.status, other.status) == (200, 200), one.body
    assert one.body == other.body
    msgspec.json.decode(one.body, type=kind)
    return msgspec.json.decode(one.body)
