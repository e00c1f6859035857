"""Records the examples of the API's documents from a venue on a devnet: `make examples`."""

import sys
import tempfile
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

import httpx
import msgspec
import trio

from cambist.codecs.messages.auction_messages import Auction, ListedRound
from cambist.codecs.messages.event_messages import BeatMessage
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.transact import DEV_GAS, transact
from cambist.engine.trade.api.examples import Examples, OperationExample
from cambist.engine.trade.delta.endpoints.round_list import listed_order, public_round
from support.api import bodies
from support.chain.devnet import telling_process
from support.events.event_streams import EventStream
from support.events.webhook_receiver import SECRET
from support.patience import PATIENCE_S, until_told
from support.venue.venue_role import CHAIN_ID, USER, RunningVenue, running_venue

KEY = "a-key-of-a-partner"
BEGINNING = "0" * 32
"""Token ahead of all events."""
ENTRIES_MAX = 2
LINES_MAX = 6
MORE = """
[venue.agents.rapid]
url = "http://127.0.0.1:9/agent"
[venue.api_keys.acme]
secret = "env:API_KEY"
operator = true
[venue.webhooks.acme]
url = "http://127.0.0.1:9/orders"
private_addresses = true
secret = "env:HOOK_SECRET"
api_key = "acme"
give_up_s = 0.001
"""
BRIDGED = {
    "getV2DeltaPricesBridgeRoutes": "/v2/delta/prices/bridge-routes",
    "getV2DeltaPricesBridgeProtocols": "/v2/delta/prices/bridge-protocols",
    "getV2DeltaPricesStrategiesChainId": f"/v2/delta/prices/strategies/{CHAIN_ID}",
}
"""Operation id -> path that is asked at `cambist up`, which has a bridge and a vault."""
STATUS = {
    "readiness": {"ready": True, "reasons": []},
    "series": {"stepS": 10, "at": [1_795_000_000_000], "requests": [12], "quoteP50Ms": [0.15]},
    "boundsS": [0.0005, 0.001],
    "loopLag": {"delays": {"counts": [40, 2, 0], "total_s": 0.01}, "lag_s_max": 0.0009, "tasks": 40},
    "routes": {"GET /v2/quote": {"counts": [7, 1, 0], "total_s": 0.002}},
}
"""A few of the operator's counters, which differ from record to record."""
HISTORY = {
    "chainId": CHAIN_ID,
    "base": "0x73f1e34Ac49471AD3adAC19c7aD5a468b8D3DD78",
    "quote": "0x353315294F55815803D6313CDdEd876CC50f0F9E",
    "step": 15,
    "points": [
        [1_795_000_005, "2500.5", "2500.5", "2500.5", "2500.5"],
        [1_795_000_020, "2501.25", "2501.25", "2501.25", "2501.25"],
    ],
}
"""Prices of half a minute: a new venue has none."""
Operation: TypeAlias = dict[str, Any]


async def record(folder: Path) -> Examples:
    """Ask a venue for each operation of its document, and for each message of its streams."""
    environ = {"API_KEY": KEY, "HOOK_SECRET": SECRET}
    apart = await trio.to_thread.run_sync(asked_at_up, folder)
    apart |= {"getOperatorStatus": STATUS, "getPricesHistory": HISTORY}
    async with running_venue(folder, more=MORE, environ=environ) as venue:
        document = await venue.get("/openapi.json")
        found = await posted(venue)
        named = await bodies.what_there_is(venue)
        named |= {
            "name": "acme",
            "orderId": found["postV2DeltaOrders"].answer["id"],
            "user": named["account"],
            "makerName": "alpha",
        }
        await swapped(venue)
        await until_told(lambda: _dead(venue))
        messages = await streamed(venue)
        for path, methods in document["paths"].items():
            if "get" in methods:
                operation = methods["get"]
                name = operation["operationId"]
                if name in apart:
                    found[name] = OperationExample(apart[name])
                elif name in messages:
                    found[name] = OperationExample(messages[name].pop("text"))
                else:
                    found[name] = OperationExample(await asked(venue, path, operation, named))
        found["getV2DeltaAuctions"] = OperationExample([_listed(found["getV2DeltaAuctionsAuctionId"].answer)])
        books = await venue.get("/makers/books", network=CHAIN_ID, makerName="alpha", pair="WETH/USDC")
        found["getMakersBooks"] = OperationExample(cut(books))
        found["postOperatorMakersMakerName"] = await sent(venue, "/operator/makers/beta", {"act": "exclude"})
        purge = {"unlisted": True, "state": "DRAFT", "dryRun": True}
        found["postOperatorOtcPurge"] = await sent(venue, "/operator/otc/purge", purge)
        replay = "/v2/webhooks/acme/replay"
        found["postV2WebhooksNameReplay"] = await sent(venue, replay, {"tokens": [await _dead(venue)]})
    parameters = {
        name: named[name] for name in ("auctionId", "orderId", "hash", "orderHash", "name", "makerName")
    }
    return Examples(parameters, dict(sorted(found.items())), messages)


def asked_at_up(folder: Path) -> dict[str, Any]:
    """Answers of `cambist up` to BRIDGED."""
    with telling_process("up", "--port", "0", "--devnet-port", "0", folder=folder) as up:
        return {
            name: cut(httpx.get(up.told["venue"] + path, timeout=PATIENCE_S).json())
            for name, path in BRIDGED.items()
        }


async def posted(venue: RunningVenue) -> dict[str, OperationExample]:
    """Examples of the operations that are POST, but for a webhook's replay."""
    order = await bodies.an_order(venue)
    submission = await bodies.a_submission(venue)
    transaction, otc = await bodies.a_body(venue), bodies.an_otc_order(venue)
    found = {
        "postV2DeltaOrdersBuild": await sent(venue, bodies.BUILD, order),
        "postV2DeltaOrders": await sent(venue, bodies.SUBMIT, submission),
        "postFtP2pChainId": await sent(venue, f"/ft/p2p/{CHAIN_ID}", otc),
        "postTransactionsChainId": await sent(venue, f"/transactions/{CHAIN_ID}", transaction),
    }
    cancellation = await bodies.a_cancellation(venue)
    ids = {"orderIds": cancellation["orderIds"]}
    found["postV2DeltaOrdersBuildCancellation"] = await sent(venue, bodies.BUILD_CANCEL, ids)
    found["postV2DeltaOrdersCancel"] = await sent(venue, "/v2/delta/orders/cancel", cancellation)
    return found


async def swapped(venue: RunningVenue) -> None:
    """A Market swap is mined, and the venue tells of it."""
    status, envelope = await venue.post(f"/transactions/{CHAIN_ID}", await bodies.a_body(venue))
    assert status == 200, envelope
    to, data = parse_hex(envelope["to"], "to"), parse_hex(envelope["data"], "data")
    await transact(venue.devnet.chain, USER, to, data, gas=DEV_GAS)
    await until_told(lambda: venue.get("/v2/delta/trades", chainId=CHAIN_ID))


async def sent(venue: RunningVenue, path: str, body: Any) -> OperationExample:
    response = await venue.ask("POST", path, msgspec.json.encode(body), {"x-api-key": KEY})
    answer = msgspec.json.decode(response.body)
    assert response.status == 200, (path, answer)
    return OperationExample(cut(answer), body)


async def asked(venue: RunningVenue, path: str, operation: Operation, named: dict[str, Any]) -> Any:
    """Answer of a GET with the examples of its parameters, and an owner of orders where one may be given."""
    query = {}
    for parameter in operation["parameters"]:
        name = parameter["name"]
        value = named.get(name, parameter.get("example"))
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", str(value))
        elif "example" in parameter or name == "userAddress":
            query[name] = to_checksum(USER.address) if name == "userAddress" else parameter["example"]
    response = await venue.ask("GET", f"{path}?{urlencode(query)}", headers={"x-api-key": KEY})
    assert response.status == 200, (path, query, response.body)
    (kind,) = operation["responses"]["200"]["content"]
    if kind != "application/json":
        return "\n".join(response.body.decode().splitlines()[:LINES_MAX])
    answer = msgspec.json.decode(response.body)
    if "paths" in answer or "channels" in answer:
        return {name: answer[name] for name in ("openapi", "asyncapi", "info") if name in answer}
    return cut(answer)


async def streamed(venue: RunningVenue) -> dict[str, dict[str, Any]]:
    """Operation id of a stream -> its first messages by name, and `text` with their blocks as they came."""
    beat = msgspec.to_builtins(BeatMessage(BEGINNING[:-1] + "9"))
    after = {"after": BEGINNING}
    quote = venue.selling("WETH", 1, "USDC", mode="MARKET")
    unfilled = venue.selling("WETH", 10**6, "USDC", mode="MARKET")
    failed = await first_events(venue, "/v2/quote/stream", unfilled, 1)
    found = {
        "getV2QuoteStream": await first_events(venue, "/v2/quote/stream", quote, 1),
        "getV2DeltaOrdersEvents": await first_events(venue, "/v2/delta/orders/events", after, 2),
        "getFtEvents": await first_events(venue, "/ft/events", after, 2),
        "getV2DeltaTradesStream": await first_events(
            venue, "/v2/delta/trades/stream", {"chainId": CHAIN_ID} | after, 2
        ),
    }
    found["getV2QuoteStream"]["error"] = failed["error"]
    for name in ("getV2DeltaOrdersEvents", "getFtEvents"):
        found[name]["beat"] = beat
    return found


async def first_events(venue: RunningVenue, path: str, query: dict[str, Any], count: int) -> dict[str, Any]:
    found: dict[str, Any] = {"text": ""}
    async with await trio.open_tcp_stream("127.0.0.1", venue.port) as stream:
        events = EventStream(stream)
        await events.open(f"{path}?{urlencode(query)}".encode(), f"X-API-KEY: {KEY}".encode())
        for _ in range(count):
            kind, data = await events.event()
            found[kind] = cut(data)
            token = f"id: {events.last_id}\n" if events.last_id else ""
            found["text"] += f"event: {kind}\n{token}data: {msgspec.json.encode(cut(data)).decode()}\n\n"
    return found


def _listed(round_: Any) -> Any:
    """A round, as everybody sees it in the list."""
    found = msgspec.convert(round_, Auction)
    whole = ListedRound(
        auction_id=found.auction_id,
        chain_id=found.chain_id,
        opened_at=found.opened_at,
        closed_at=found.closed_at,
        orders=tuple(map(listed_order, found.orders)),
    )
    return msgspec.json.decode(msgspec.json.encode(public_round(whole)))


async def _dead(venue: RunningVenue) -> str:
    """Token of a delivery that the webhook has not accepted in time; empty before there is one."""
    response = await venue.ask("GET", "/v2/webhooks/acme/deliveries", headers={"x-api-key": KEY})
    deliveries = msgspec.json.decode(response.body)["deliveries"]
    return deliveries[0]["token"] if deliveries else ""


def cut(value: Any) -> Any:
    """Cut each list in a JSON value to its first entries."""
    if isinstance(value, list):
        return [cut(one) for one in value[:ENTRIES_MAX]]
    if isinstance(value, dict):
        return {name: cut(one) for name, one in value.items()}
    return value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        written = trio.run(record, Path(place))
    Path(sys.argv[1]).write_bytes(msgspec.json.format(msgspec.json.encode(written), indent=1) + b"\n")
