"""The whole surface against requests generated from its document: no 5xx, answers as described.

The venue enforces the OpenAPI document's parameters, and every operation also succeeds. The same requests are
made for the same document, except in a long run, which searches.
"""

import os
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import trio
from bench.peers.process import PEERS_PYTHON

from cambist.codecs.eip712_orders.nonce_and_meta import pack_otc
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config import limits
from cambist.crypto.addresses import ZERO_ADDRESS, to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.signatures import to_compact64
from cambist.engine.delta.auction.auction import decide
from cambist.engine.delta.auction.auction_record import Rejections, RoundTimes, round_rows
from cambist.engine.delta.orders.document import encode_document
from cambist.engine.orders.order_units import order_id
from cambist.engine.store.rows import OrderDocument
from cambist.engine.store.tables import AUCTION_ROUND, DELTA_DOCUMENT, DELTA_ORDER
from cambist.engine.store.units import Done, Unit, new, put
from support.delta.bidding import a_proven, a_round_order
from support.events.webhook_receiver import SECRET
from support.examples import IS_LONG
from support.oracles import require_oracle
from support.patience import STORY_S
from support.store.stores import a_delta_order as a_row
from support.venue.venue_role import CHAIN_ID, USER, RunningVenue, running_venue

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "negative_data_rejection",
    "unsupported_method", "allow_header_conformance",
)  # fmt: skip
TRANSACTIONS = "/transactions/{chainId}"
ENDLESS = ("/v2/quote/stream", "/v2/delta/orders/events", "/ft/events")
BUILD = "/v2/delta/orders/build"
SUBMIT = "/v2/delta/orders"
CANCEL = "/v2/delta/orders/cancel"
BUILD_CANCEL = "/v2/delta/orders/build/cancellation"
POST_OTC = "/ft/p2p/{chainId}"
API_KEY = "a-key-of-a-partner"
WEBHOOK = """
[venue.api_keys.acme]
secret = "env:API_KEY"
[venue.webhooks.acme]
url = "http://127.0.0.1:9/orders"
private_addresses = true
secret = "env:HOOK_SECRET"
statuses = ["REFUNDED"]
api_key = "acme"
"""
HOOKS = Path(__file__).parents[1] / "oracles" / "schemathesis_hooks.py"
TABLES = Path(__file__).parents[2] / ".hypothesis"
"""Folder of Hypothesis's character tables, which take a second to build and are kept between runs."""
# Methods that HTTP here does not know at all, as TRACE, are 501 (RFC 9110 15.6.2).
SETTINGS = f"""
[phases.coverage]
unexpected-methods = ["DELETE", "PATCH", "PUT", "POST", "GET"]
[checks.negative_data_rejection]
expected-statuses = [400, 404, 405, 414, 422]
[[operations]]
include-path-regex = "^/v2/webhooks"
headers = {{ X-API-KEY = "{API_KEY}" }}
"""

Seen = dict[str, set[int]]


@pytest.mark.oracle
async def test_requests_that_schemathesis_makes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROUTE_FRESH_MS", 86_400_000)  # an example lasts for the whole test
    environ = {"API_KEY": API_KEY, "HOOK_SECRET": SECRET}
    async with running_venue(tmp_path, more=WEBHOOK, environ=environ) as venue:
        (tmp_path / "schemathesis.toml").write_text(SETTINGS)
        document = await venue.get("/openapi.json")
        operations = {
            f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods
        }

        def give_example(path: str, example: Any) -> None:
            content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
            content["example"] = example

        for path, example in (
            (BUILD, await an_order(venue)),
            (SUBMIT, await a_submission(venue)),
            (BUILD_CANCEL, {"orderIds": [await a_kept_order(venue)]}),
            (CANCEL, await a_cancellation(venue)),
            ("/v2/webhooks/{name}/replay", {"tokens": ["0" * 32]}),
            (POST_OTC, an_otc_order(venue)),
            (TRANSACTIONS, await a_body(venue)),
        ):
            give_example(path, example)
        await name_what_there_is(venue, document)
        seen = await made_up(venue, document, tmp_path)
        assert seen.keys() == operations - {f"GET {path}" for path in ENDLESS}
        assert [operation for operation, statuses in seen.items() if 200 not in statuses] == []
        assert venue.app.server.statistics().errors == 0


async def a_body(venue: RunningVenue) -> dict[str, Any]:
    """Buildable body of POST /transactions: the user has the source tokens and has allowed them."""
    await venue.devnet.allow(USER, "WETH", "router")
    route = (await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC", mode="MARKET")))["market"]
    return {
        "priceRoute": route,
        "srcToken": route["srcToken"],
        "destToken": route["destToken"],
        "srcAmount": route["srcAmount"],
        "slippage": 100,
        "userAddress": to_checksum(USER.address),
    }


async def an_order(venue: RunningVenue) -> dict[str, Any]:
    """Buildable body of POST /v2/delta/orders/build."""
    quote = await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC", mode="DELTA"))
    return {"route": quote["delta"]["route"], "owner": to_checksum(USER.address), "deadline": 2**37}


async def a_submission(venue: RunningVenue) -> dict[str, Any]:
    """Valid body of POST /v2/delta/orders: a limit order that no agent fills."""
    await venue.devnet.allow(USER, "WETH", "delta")
    status, built = await venue.post(BUILD, await an_order(venue) | {"limitAmount": str(10**15)})
    assert status == 200, built
    signature = to_compact64(*USER.sign(parse_hex(built["orderHash"], "orderHash")))
    order = built["toSign"]["value"]
    return {"chainId": CHAIN_ID, "order": order, "signature": to_hex(signature), "type": "LIMIT"}


async def a_kept_order(venue: RunningVenue) -> str:
    """The id of one."""
    status, record = await venue.post(SUBMIT, await a_submission(venue))
    assert status == 200, record
    order_id: str = record["id"]
    return order_id


async def a_cancellation(venue: RunningVenue) -> dict[str, Any]:
    """Valid body of POST /v2/delta/orders/cancel."""
    ids = [await a_kept_order(venue)]
    _, built = await venue.post(BUILD_CANCEL, {"orderIds": ids})
    signature = to_compact64(*USER.sign(parse_hex(built["hash"], "hash")))
    return {"orderIds": ids, "signature": to_hex(signature)}


def an_otc_order(venue: RunningVenue) -> dict[str, Any]:
    """Valid body of POST /ft/p2p/{chainId}."""
    place = venue.app.places[CHAIN_ID]
    domain = rfq_domain_separator(place.settings.rfq_domain_name, CHAIN_ID, place.rfq)
    assets = (venue.devnet.at("WETH"), venue.devnet.at("USDC"))
    order = RfqOrder(pack_otc(USER.address, 1), 0, *assets, USER.address, ZERO_ADDRESS, 10**15, 10**6)
    signature = to_compact64(*USER.sign(RFQ_ORDER.compiled.digest_for(domain)(order)))
    return {
        **RFQ_ORDER.to_wire(order),
        "nonceAndMeta": str(order.nonce_and_meta),
        "expiry": 0,
        "signature": to_hex(signature),
    }


async def a_kept_otc_order(venue: RunningVenue) -> str:
    """The hash of one."""
    status, stored = await venue.post(POST_OTC.replace("{chainId}", str(CHAIN_ID)), an_otc_order(venue))
    assert status == 200, stored
    order_hash: str = stored["orderHash"]
    return order_hash


async def name_what_there_is(venue: RunningVenue, document: dict[str, Any]) -> None:
    """Keep an order that is filled, and a round that it was in; paths that name one lead there."""
    asked = a_round_order(1)
    settled = {"status": OrderStatus.COMPLETED, "is_final": True, "chain_id": CHAIN_ID}
    row = msgspec.structs.replace(a_row(), order_hash=asked.order_hash, shard=asked.order_hash[0], **settled)
    times = RoundTimes(7, CHAIN_ID, row.created_ms, row.created_ms + 1_000)
    decision = decide([asked], [a_proven("alpha", (asked, asked.limit))], 0, {})
    (kept,) = round_rows(times, decision.verdicts.values(), Rejections(()))
    changes = (
        new(DELTA_ORDER, row),
        put(DELTA_DOCUMENT, OrderDocument(row.order_hash, encode_document(asked.document))),
        put(AUCTION_ROUND, kept),
    )
    assert await cast("Any", venue.app)._store.write(Unit(changes)) == Done()
    named = {
        "name": "acme",
        "auctionId": 7,
        "orderId": str(order_id(row.order_hash)),
        "hash": f"0x{row.order_hash.hex()}",
        "orderHash": await a_kept_otc_order(venue),
        "account": to_checksum(USER.address),
    }
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "path" and parameter["name"] in named:
                    parameter["example"] = named[parameter["name"]]


async def made_up(venue: RunningVenue, document: dict[str, Any], folder: Path) -> Seen:
    """Have requests made up from a document. Returns the statuses of each operation that was asked."""
    program = PEERS_PYTHON.with_name("schemathesis")
    require_oracle(program)
    described, report = folder / "openapi.json", folder / "statuses.txt"
    described.write_bytes(msgspec.json.encode(document))
    extent = ["--max-examples", "3", "--generation-deterministic"]
    if IS_LONG:
        extent = ["--max-examples", "100", "--generation-database", "none"]
    with trio.fail_after(4 * STORY_S if IS_LONG else STORY_S):
        done = await trio.run_process(
            [
                program, "run", described, "--url", venue.url, *extent,
                *(word for path in ENDLESS for word in ("--exclude-path", path)),
                "--checks", ",".join(CHECKS),
                "--phases", "examples,coverage,fuzzing",
                "--suppress-health-check", "all",
                "--output-sanitize", "false",
                "--no-color",
            ],
            cwd=folder,
            env=os.environ
            | {
                "HYPOTHESIS_STORAGE_DIRECTORY": str(TABLES),
                "SCHEMATHESIS_HOOKS": str(HOOKS),
                "STATUSES": str(report),
                "EACH_FAULT": "often" if IS_LONG else "once",
            },
            check=False,
            capture_stdout=True,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode()
    seen: defaultdict[str, set[int]] = defaultdict(set)
    for line in report.read_text().splitlines():
        operation, _, status = line.rpartition(" ")
        seen[operation].add(int(status))
    return seen
