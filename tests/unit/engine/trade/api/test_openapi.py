"""The OpenAPI document: true to the routes, and valid by others' judgement."""

import re
from typing import Any

import msgspec
import pytest

from cambist.config.errors import catalogue_rows
from cambist.config.limits import PARTNER_FEE_BPS_MAX
from support.oracles import Oracle
from support.venue.quiet_venue import A_PURCHASE, A_SALE, CHAIN_ID, DAI, ONE, USER, QuietVenue

UNKNOWN = (b'"OrderNotFound"', b'"AuctionNotFound"')
"""Errors of an existing endpoint about a resource that does not exist."""


@pytest.fixture
async def document(venue: QuietVenue) -> dict[str, Any]:
    told: dict[str, Any] = await venue.get("/openapi.json")
    return told


def parameters(document: dict[str, Any], path: str, method: str = "get") -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in document["paths"][path][method]["parameters"]}


@pytest.mark.oracle
async def test_others_find_it_valid(document: dict[str, Any], oracle: Oracle) -> None:
    assert oracle.ask(ask="document", document=document) == {"errors": []}
    broken = document | {"paths": {"/x": {"get": {"parameters": [{"name": "a", "in": "nowhere"}]}}}}
    assert oracle.ask(ask="document", document=broken)["errors"]


async def test_every_route_that_is_served_is_described_and_no_other(
    venue: QuietVenue, document: dict[str, Any]
) -> None:
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    served = {
        (method, template)
        for method, template in (
            ("GET", "/v2/quote"), ("GET", "/v2/quote/stream"), ("GET", "/v2/delta/prices"),
            ("GET", "/v2/delta/prices/is-token-supported"), ("GET", "/v2/delta/prices/bridge-routes"),
            ("GET", "/v2/delta/prices/bridge-protocols"), ("GET", "/v2/delta/prices/strategies/{chainId}"),
            ("GET", "/prices"), ("GET", "/swap"),
            ("POST", "/transactions/{chainId}"), ("GET", "/chains"), ("GET", "/tokens/{chainId}"),
            ("POST", "/v2/delta/orders/build"), ("POST", "/v2/delta/orders"), ("GET", "/v2/delta/orders"),
            ("GET", "/v2/delta/orders/events"),
            ("GET", "/v2/delta/orders/{orderId}"), ("GET", "/v2/delta/orders/hash/{hash}"),
            ("GET", "/v2/delta/orders/fillablebalance/{chainId}/{user}"),
            ("GET", "/v2/delta/orders/fillablebalance/{chainId}/{user}/{token}"),
            ("GET", "/v2/delta/orders/availablebalance/{chainId}/{user}"),
            ("GET", "/v2/delta/orders/availablebalance/{chainId}/{user}/{token}"),
            ("POST", "/v2/delta/orders/build/cancellation"), ("POST", "/v2/delta/orders/cancel"),
            ("GET", "/v2/delta/auctions/{auctionId}"), ("GET", "/v2/delta/orders/{orderId}/explain"),
            ("GET", "/v2/delta/agents/list/{chainId}"), ("GET", "/v2/delta/agents/scores/{chainId}"),
            ("GET", "/v2/delta/trades"), ("GET", "/v2/delta/trades/stream"), ("GET", "/stats"),
            ("GET", "/v2/webhooks"), ("GET", "/v2/webhooks/{name}/deliveries"),
            ("POST", "/v2/webhooks/{name}/replay"),
            ("POST", "/ft/p2p/{chainId}"), ("GET", "/ft/order/{orderHash}"), ("GET", "/ft/events"),
            ("GET", "/ft/p2p/{chainId}/maker/{account}"), ("GET", "/ft/p2p/{chainId}/taker/{account}"),
            ("GET", "/ft/fillablebalance/{chainId}/{account}"),
            ("GET", "/ft/fillablebalance/{chainId}/{account}/{token}"),
            ("GET", "/users/tokens/{chainId}/{user}"), ("GET", "/users/tokens/{chainId}/{user}/{token}"),
            ("GET", "/fiat/tokens/{chainId}"), ("GET", "/fiat/tokens/all"),
            ("GET", "/fiat/tokens/categories"), ("GET", "/adapters/contracts"),
            ("GET", "/adapters/list"), ("GET", "/adapters/contract-takers"),
            ("GET", "/prices/partnerfee/{chainId}"), ("GET", "/makers/scores"), ("GET", "/makers/books"),
            ("GET", "/v2/delta/auctions"), ("GET", "/operator/status"), ("GET", "/prices/history"),
            ("GET", "/prices/depth"),
            ("POST", "/operator/makers/{makerName}"), ("POST", "/operator/otc/purge"),
            ("GET", "/resources/contracts.json"), ("GET", "/resources/errors.json"), ("GET", "/healthz"),
            ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("GET", "/asyncapi.json"),
        )
    }  # fmt: skip
    assert described == served
    for method, template in served:
        target = template
        for name, value in (
            ("chainId", CHAIN_ID), ("user", USER), ("token", DAI), ("hash", "0x" + "5a" * 32),
            ("orderId", "5a5a5a5a-5a5a-4a5a-9a5a-5a5a5a5a5a5a"), ("auctionId", 1), ("name", "acme"),
            ("makerName", "alpha"),
            ("orderHash", "0x" + "5a" * 32), ("account", USER),
        ):  # fmt: skip
            target = target.replace(f"{{{name}}}", str(value))
        for path in (target, f"{target}/"):
            reply = await venue.ask(method, f"{path}?after=never")  # what would stream refuses that
            is_there = reply.status not in (404, 405) or any(word in reply.body for word in UNKNOWN)
            assert is_there, path


async def test_parameters_of_a_quote(document: dict[str, Any]) -> None:
    told = parameters(document, "/v2/quote")
    assert {name for name, one in told.items() if one["required"]} == {
        "chainId", "srcToken", "destToken", "amount", "srcDecimals", "destDecimals",
    }  # fmt: skip
    assert told["mode"]["schema"]["default"] == "ALL"
    assert told["side"]["schema"]["default"] == "SELL"
    assert told["partnerFeeBps"]["schema"] == {
        "type": "integer", "minimum": 0, "maximum": PARTNER_FEE_BPS_MAX,
    }  # fmt: skip
    assert told["maxImpact"]["schema"] == {"type": "number", "minimum": 0}
    assert all(one["description"] for one in told.values())
    listed = parameters(document, "/prices")["includeDEXS"]
    assert (listed["style"], listed["explode"], listed["schema"]["type"]) == ("form", False, "array")


async def test_what_is_required_though_its_struct_has_a_default(document: dict[str, Any]) -> None:
    assert parameters(document, "/swap")["userAddress"]["required"]
    assert parameters(document, "/swap")["slippage"]["required"]
    assert not parameters(document, "/prices")["userAddress"]["required"]


async def test_what_needs_a_key_says_so(document: dict[str, Any]) -> None:
    needing = {
        (path, method)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation.get("security") == [{"apiKey": []}]
    }
    assert needing == {
        ("/operator/makers/{makerName}", "post"),
        ("/operator/otc/purge", "post"),
        ("/operator/status", "get"),
        ("/v2/webhooks", "get"),
        ("/v2/webhooks/{name}/deliveries", "get"),
        ("/v2/webhooks/{name}/replay", "post"),
    }
    for path, method in needing:
        assert document["paths"][path][method]["responses"]["401"]["description"] == "X-API-KEY"
    assert "401" not in document["paths"]["/prices"]["get"]["responses"]


async def test_errors_are_those_that_the_catalogue_has_for_the_endpoint(document: dict[str, Any]) -> None:
    responses = document["paths"]["/v2/quote"]["get"]["responses"]
    texts = " ".join(response["description"] for response in responses.values())
    for row in catalogue_rows():
        named = "GET /v2/quote" in [name.strip() for name in row.endpoint.split(",")]
        if named:
            assert all(message in texts for message in row.messages)
    assert "Stale priceRoute" not in texts
    stale = document["paths"]["/transactions/{chainId}"]["post"]["responses"]["400"]
    example = stale["content"]["application/json"]["examples"]["Stale priceRoute"]["value"]
    assert example["errorType"] == "StalePriceRoute"
    assert example["details"] == "Stale priceRoute"


@pytest.mark.oracle
async def test_answers_are_as_described(venue: QuietVenue, document: dict[str, Any], oracle: Oracle) -> None:
    dust = A_SALE | {"amount": "1000000000000"}
    for path, query in (
        ("/v2/quote", A_SALE),
        ("/v2/quote", A_PURCHASE | {"mode": "MARKET"}),
        ("/v2/quote", dust),
        ("/v2/delta/prices", A_SALE | {"srcToken": DAI, "amount": str(100 * ONE)}),
        ("/prices", A_SALE | {"otherExchangePrices": "true"}),
        ("/chains", {}),
        ("/makers/scores", {"network": CHAIN_ID}),
        ("/adapters/contracts", {"network": CHAIN_ID}),
        ("/resources/contracts.json", {}),
        ("/resources/errors.json", {}),
        ("/readyz", {}),
        ("/openapi.json", {}),
    ):
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        told = await venue.get(path, **query)
        asked = oracle.ask(ask="instance", document=document, schema=schema, instance=told)
        assert asked == {"errors": []}, path
    status, refusal = await venue.answer("/v2/quote", **A_SALE | {"amount": "x"})
    schema = document["paths"]["/v2/quote"]["get"]["responses"]["400"]["content"]["application/json"][
        "schema"
    ]
    assert status == 400
    assert oracle.ask(ask="instance", document=document, schema=schema, instance=refusal) == {"errors": []}
    assert oracle.ask(ask="instance", document=document, schema=schema, instance={})["errors"]


async def test_no_shape_tells_of_pages_that_readers_do_not_have(document: dict[str, Any]) -> None:
    text = msgspec.json.encode(document).decode()
    assert not re.search(r"[Ss]pec \d|interop\.md|choices\.md", text)
