"""The served OpenAPI document against spec 1.12 to 1.22, and real answers against the document."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from support.oracles import Oracle, openapi_oracle
from support.venue.quiet_venue import a_quiet_venue
from support.venue.trading_requests import OPTIONS, TRADER, a_sale, plain, posted
from support.venue.venue_role import CHAIN_ID, USER, RunningVenue, running_venue

YES, NO = True, False
TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
NAMES = {"type": "array"}  # a comma-separated list
OFF = {"type": "boolean", "default": False}
ON = {"type": "boolean", "default": True}
SIDE = {"enum": ["BUY", "SELL"], "default": "SELL"}
BPS = {"type": "integer", "minimum": 0, "maximum": 10_000}
FEE = {"type": "integer", "minimum": 0, "maximum": 200}

Table = dict[str, tuple[bool, dict[str, Any]]]
QUOTE: Table = {
    "chainId": (YES, INTEGER), "srcToken": (YES, TEXT), "destToken": (YES, TEXT), "amount": (YES, TEXT),
    "srcDecimals": (YES, INTEGER), "destDecimals": (YES, INTEGER),
    "mode": (NO, {"enum": ["ALL", "DELTA", "MARKET"], "default": "ALL"}), "side": (NO, SIDE),
    "destChainId": (NO, INTEGER), "userAddress": (NO, TEXT), "beneficiary": (NO, TEXT),
    "partner": (NO, TEXT), "partnerFeeBps": (NO, FEE),
}  # fmt: skip
PRICES: Table = {
    "srcToken": (YES, TEXT), "destToken": (YES, TEXT), "amount": (YES, TEXT),
    "srcDecimals": (NO, INTEGER), "destDecimals": (NO, INTEGER), "side": (NO, SIDE),
    "network": (NO, INTEGER), "otherExchangePrices": (NO, OFF), "includeDEXS": (NO, NAMES),
    "excludeDEXS": (NO, NAMES), "excludeRFQ": (NO, OFF), "includeContractMethods": (NO, NAMES),
    "excludeContractMethods": (NO, NAMES), "userAddress": (NO, TEXT), "receiver": (NO, TEXT),
    "route": (NO, TEXT), "partner": (NO, TEXT), "maxImpact": (NO, NUMBER),
    "srcTokenTransferFee": (NO, BPS), "destTokenTransferFee": (NO, BPS),
    "srcTokenDexTransferFee": (NO, BPS), "destTokenDexTransferFee": (NO, BPS),
    "version": (NO, {"enum": ["5", "6.2"], "default": "5"}),
    "excludeContractMethodsWithoutFeeModel": (NO, OFF), "ignoreBadUsdPrice": (NO, OFF),
}  # fmt: skip
SWAP: Table = PRICES | {
    "version": (NO, {"enum": ["5", "6.2"], "default": "6.2"}), "slippage": (YES, BPS),
    "userAddress": (YES, TEXT), "isCapSurplus": (NO, ON), "takeSurplus": (NO, OFF),
    "isSurplusToUser": (NO, OFF), "isDirectFeeTransfer": (NO, OFF),
}  # fmt: skip
TRANSACTION: Table = {
    "chainId": (YES, INTEGER), "gasPrice": (NO, TEXT), "ignoreChecks": (NO, OFF),
    "ignoreGasEstimate": (NO, OFF), "onlyParams": (NO, OFF), "eip1559": (NO, OFF),
}  # fmt: skip
BODY: Table = {
    "priceRoute": (NO, {"type": "object"}), "orders": (NO, {"type": "array", "minItems": 1, "maxItems": 16}),
    "side": (NO, {"enum": ["BUY", "SELL"]}), "srcToken": (YES, TEXT), "destToken": (YES, TEXT),
    "userAddress": (YES, TEXT), "srcDecimals": (NO, INTEGER), "destDecimals": (NO, INTEGER),
    "srcAmount": (NO, TEXT), "destAmount": (NO, TEXT), "slippage": (NO, BPS), "txOrigin": (NO, TEXT),
    "receiver": (NO, TEXT), "partner": (NO, TEXT), "partnerAddress": (NO, TEXT),
    "partnerFeeBps": (NO, TEXT), "permit": (NO, TEXT), "deadline": (NO, INTEGER),
    "isCapSurplus": (NO, ON), "takeSurplus": (NO, OFF), "isSurplusToUser": (NO, OFF),
    "isDirectFeeTransfer": (NO, OFF), "consent": (NO, {}),
}  # fmt: skip
ROWS = {
    ("get", "/v2/quote"): ["No route", "Token not supported", "Invalid srcToken", "Invalid destToken",
                           "Unsupported chain", "Partner not allowed", "rate limit exceeded"],
    ("get", "/prices"): ["No route", "Token not supported", "Invalid srcToken", "Unsupported chain",
                         "rate limit exceeded"],
    ("get", "/swap"): ["missing slippage", "No route", "Partner not allowed", "rate limit exceeded",
                       "InsufficientBalance", "InsufficientAllowance"],
    ("post", "/transactions/{chainId}"): ["missing slippage", "Invalid priceRoute", "Stale priceRoute",
                                          "Unsupported chain", "Partner not allowed",
                                          "InsufficientBalance", "InsufficientAllowance",
                                          "Invalid signature", "Order expired", "Order closed on the chain"],
    ("get", "/v2/delta/auctions/{auctionId}"): ["Auction not found", "rate limit exceeded"],
    ("get", "/v2/delta/orders/{orderId}/explain"): ["Order not found", "rate limit exceeded"],
    ("get", "/v2/webhooks"): ["X-API-KEY", "rate limit exceeded"],
    ("get", "/v2/webhooks/{name}/deliveries"): ["X-API-KEY", "Webhook not found", "Invalid input"],
    ("post", "/v2/webhooks/{name}/replay"): ["X-API-KEY", "Webhook not found", "Invalid input"],
    ("get", "/v2/delta/agents/list/{chainId}"): ["Unsupported chain", "rate limit exceeded"],
}  # fmt: skip


@pytest.fixture
async def document(tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    async with a_quiet_venue(tmp_path) as venue:
        yield await venue.get("/openapi.json")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with openapi_oracle() as oracle:
        yield oracle


def flat(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references, and of what may be null the rest."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {**document["components"]["schemas"][name], **schema}
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    return flat(document, options[0]) if options else schema


def odd(document: dict[str, Any], table: Table, found: dict[str, tuple[bool, dict[str, Any]]]) -> list[str]:
    """Differences between the document's description and the table."""
    faults = [f"{name} is not described" for name in table.keys() - found.keys()]
    for name in table.keys() & found.keys():
        (needed, expected), (is_required, described) = table[name], found[name]
        schema = flat(document, described)
        if needed != is_required:
            faults.append(f"{name} is required: {is_required}")
        for key, value in expected.items():
            got = sorted(schema[key]) if key == "enum" else schema.get(key)
            if got != value:
                faults.append(f"{name} has {key} {got}, expected {value}")
        if not described.get("description"):
            faults.append(f"{name} has no description")
    return faults


@pytest.mark.parametrize(
    ("path", "method", "table"),
    [
        ("/v2/quote", "get", QUOTE),
        ("/v2/quote/stream", "get", QUOTE),
        ("/prices", "get", PRICES),
        ("/swap", "get", SWAP),
        ("/transactions/{chainId}", "post", TRANSACTION),
    ],
)
async def test_parameters_are_described(
    document: dict[str, Any], path: str, method: str, table: Table
) -> None:
    found = {
        one["name"]: (one["required"], one["schema"] | {"description": one["description"]})
        for one in document["paths"][path][method]["parameters"]
    }
    assert odd(document, table, found) == []


async def test_members_of_the_body_are_described(document: dict[str, Any]) -> None:
    body = document["components"]["schemas"]["TransactionBody"]
    found = {name: (name in body["required"], schema) for name, schema in body["properties"].items()}
    assert found.keys() == BODY.keys()
    assert odd(document, BODY, found) == []


@pytest.mark.parametrize("operation", ROWS, ids=[path for _, path in ROWS])
async def test_error_rows_are_described(document: dict[str, Any], operation: tuple[str, str]) -> None:
    method, path = operation
    responses = document["paths"][path][method]["responses"]
    examples = {
        message: answer["description"]
        for answer in responses.values()
        for message in answer["content"]["application/json"].get("examples", ())
    }
    assert [message for message in ROWS[operation] if message not in examples] == []


@pytest.mark.oracle
async def test_real_answers_are_as_described(tmp_path: Path, oracle: Oracle) -> None:
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        document = await venue.get("/openapi.json")
        faults = []
        for path, asked in targets(venue):
            response = await venue.ask("GET", asked)
            faults += against(oracle, document, "get", path, response.status, response.body)
        sale = await a_sale(venue)
        for query in ("", "onlyParams=true", "eip1559=true", "ignoreChecks=true", "gasPrice=x"):
            response = await posted(venue, sale, query)
            path = "/transactions/{chainId}"
            faults += against(oracle, document, "post", path, response.status, response.body)
        control = against(oracle, document, "get", "/prices", 200, b'{"priceRoute":{}}')
        assert control
    assert faults == []


def targets(venue: RunningVenue) -> Iterator[tuple[str, str]]:
    """Paths of the document, and what is asked there."""
    trades = [
        plain(venue, "/v2/quote") | {"mode": mode, "amount": amount}
        for mode in ("ALL", "DELTA", "MARKET")
        for amount in (10**12, 10**18, 12 * 10**18, 10**30)
    ]
    for trade in [*trades, venue.buying("USDC", 1_000, "ETH"), venue.selling("WBTC", 0.1, "DAI")]:
        yield "/v2/quote", f"/v2/quote?{urlencode(trade)}"
        yield "/v2/delta/prices", f"/v2/delta/prices?{urlencode(trade)}"
        yield "/prices", f"/prices?{urlencode(trade | {'otherExchangePrices': 'true'})}"
        yield "/swap", f"/swap?{urlencode(trade | {'slippage': 50, 'userAddress': TRADER})}"
    for path in (
        "/chains", "/healthz", "/readyz", "/resources/contracts.json", "/resources/errors.json",
        "/openapi.json", "/fiat/tokens/all", "/fiat/tokens/categories",
    ):  # fmt: skip
        yield path, path
    for path in ("/adapters/contracts", "/adapters/list", "/adapters/contract-takers", "/makers/scores"):
        for chain_id in (CHAIN_ID, 5, "x"):
            yield path, f"{path}?network={chain_id}"
    for chain_id in (CHAIN_ID, 5, "x"):
        yield "/tokens/{chainId}", f"/tokens/{chain_id}"
        yield "/users/tokens/{chainId}/{user}", f"/users/tokens/{chain_id}/{TRADER}"
        yield "/users/tokens/{chainId}/{user}/{token}", f"/users/tokens/{chain_id}/{TRADER}/ETH"
        yield "/fiat/tokens/{chainId}", f"/fiat/tokens/{chain_id}"
        yield "/prices/partnerfee/{chainId}", f"/prices/partnerfee/{chain_id}?partner=acme"
        yield "/v2/delta/agents/list/{chainId}", f"/v2/delta/agents/list/{chain_id}"
    yield "/makers/scores", "/makers/scores"
    yield "/v2/delta/auctions/{auctionId}", "/v2/delta/auctions/7"
    yield "/v2/delta/orders/{orderId}/explain", "/v2/delta/orders/7/explain"
    for name in ("bridge-routes", "bridge-protocols"):
        yield f"/v2/delta/prices/{name}", f"/v2/delta/prices/{name}"
    yield "/v2/delta/prices/strategies/{chainId}", f"/v2/delta/prices/strategies/{CHAIN_ID}"
    path = "/v2/delta/prices/is-token-supported"
    yield path, f"{path}?chainId={CHAIN_ID}&token={TRADER}"


def against(
    oracle: Oracle, document: dict[str, Any], method: str, path: str, status: int, body: bytes
) -> list[str]:
    """Faults of an answer by its schema."""
    responses = document["paths"][path][method]["responses"]
    if str(status) not in responses:
        return [f"{path}: {status} is not described"]
    schema = responses[str(status)]["content"]["application/json"]["schema"]
    told = oracle.ask(ask="instance", document=document, schema=schema, instance=msgspec.json.decode(body))
    return [f"{path}: {error}" for error in told["errors"]]
