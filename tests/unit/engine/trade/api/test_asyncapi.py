"""The AsyncAPI document: valid by the schema of its authors, true to streams, webhooks and structs."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.event_messages import BeatMessage, OpenMessage, OrderEventMessage
from cambist.codecs.messages.wire import encode
from cambist.crypto.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from cambist.engine.trade.api.asyncapi import asyncapi_document
from support.oracles import Oracle
from support.venue.quiet_venue import A_SALE, QuietVenue

TOKEN = "0" * 31 + "7"
AN_EVENT = OrderEventMessage(
    token=TOKEN,
    surface="delta",
    id="f3d6f0d5-5b05-4fde-b011-6c2eaffd74e9",
    order_hash="0x" + "5a" * 32,
    chain_id=1,
    owner="0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    partner="acme",
    status="ACTIVE",
    version=2,
    at="2026-11-14T22:13:20.001Z",
    type="LIMIT",
)


@pytest.fixture
async def document(venue: QuietVenue) -> dict[str, Any]:
    told: dict[str, Any] = await venue.get("/asyncapi.json")
    return told


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


@pytest.mark.oracle
async def test_its_authors_find_it_valid(document: dict[str, Any], oracle: Oracle) -> None:
    assert oracle.ask(ask="asyncapi", document=document) == {"errors": []}
    broken = document | {"operations": {"a": {"action": "shout", "channel": {"$ref": "#/channels/a"}}}}
    assert oracle.ask(ask="asyncapi", document=broken)["errors"]


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    found = set(references(document))
    assert len(found) > 20
    for reference in found:
        node: Any = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in node, reference
            node = node[part]


async def test_channels_are_the_paths_that_stream_and_the_webhook(
    venue: QuietVenue, document: dict[str, Any]
) -> None:
    requests = await venue.get("/openapi.json")
    streaming = {
        path
        for path, methods in requests["paths"].items()
        for operation in methods.values()
        if "text/event-stream" in operation["responses"]["200"]["content"]
    }
    addresses = {channel["address"] for channel in document["channels"].values()}
    assert addresses == streaming | {None}
    operations = {operation["channel"]["$ref"] for operation in document["operations"].values()}
    assert operations == {f"#/channels/{name}" for name in document["channels"]}


async def test_the_order_streams_have_websockets_and_the_quote_stream_has_none(
    document: dict[str, Any],
) -> None:
    servers = {
        channel["address"]: {one["$ref"] for one in channel.get("servers", ())}
        for channel in document["channels"].values()
    }
    both = {"#/servers/streams", "#/servers/sockets"}
    assert servers["/v2/delta/orders/events"] == servers["/ft/events"] == both
    assert servers["/v2/quote/stream"] == {"#/servers/streams"}
    assert document["servers"]["sockets"]["protocol"] == "ws"


async def test_queries_are_those_of_the_openapi_document(venue: QuietVenue, document: dict[str, Any]) -> None:
    requests = await venue.get("/openapi.json")
    for name, operation in document["operations"].items():
        address = document["channels"][name.removeprefix("send")]["address"]
        if address is None:
            continue
        query = operation["bindings"]["http"]["query"]
        parameters = requests["paths"][address]["get"]["parameters"]
        assert set(query["properties"]) == {one["name"] for one in parameters}
        assert set(query["required"]) == {one["name"] for one in parameters if one["required"]}


@pytest.mark.oracle
async def test_messages_are_as_described(venue: QuietVenue, document: dict[str, Any], oracle: Oracle) -> None:
    orders = document["channels"]["getV2DeltaOrdersEvents"]["messages"]
    webhook = document["channels"]["webhook"]["messages"]["order"]
    quotes = document["channels"]["getV2QuoteStream"]["messages"]
    status, refusal = await venue.answer("/v2/quote", **A_SALE | {"amount": "x"})
    assert status == 400
    for message, told in (
        (orders["open"], OpenMessage(TOKEN)),
        (orders["beat"], BeatMessage(TOKEN)),
        (orders["order"], AN_EVENT),
        (webhook, AN_EVENT),
        (quotes["quote"], await venue.get("/v2/quote", **A_SALE)),
        (quotes["error"], refusal),
    ):
        instance = msgspec.json.decode(encode(told))
        ask = {"document": document, "schema": message["payload"]}
        assert oracle.ask(ask="instance", instance=instance, **ask) == {"errors": []}
        assert oracle.ask(ask="instance", instance=[], **ask)["errors"]


async def test_the_headers_of_a_webhook_are_described(document: dict[str, Any]) -> None:
    headers = document["channels"]["webhook"]["messages"]["order"]["headers"]
    assert headers["required"] == [ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER]
    assert set(headers["properties"]) == set(headers["required"])


async def test_a_venue_with_tls_has_streams_over_tls(venue: QuietVenue) -> None:
    rows = venue.app.reference.described
    servers = asyncapi_document(rows, is_tls=True)["servers"]
    protocols = {name: server["protocol"] for name, server in servers.items()}
    assert protocols == {"streams": "https", "sockets": "wss"}
