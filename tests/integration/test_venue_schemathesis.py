"""The whole surface against requests that others make up from its document: no 5xx, answers as described.

What the document says of parameters is enforced, and every operation is seen to succeed too. The same
requests are made for the same document, except in a long run, which searches.
"""

import os
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from bench.peers.process import PEERS_PYTHON

from cambist.crypto.addresses import to_checksum
from support.oracles import require_oracle
from support.venue_role import USER, RunningVenue, running_venue

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "negative_data_rejection",
    "unsupported_method", "allow_header_conformance",
)  # fmt: skip
TRANSACTIONS = "/transactions/{chainId}"
ENDLESS = "/v2/quote/stream"
BUILD = "/v2/delta/orders/build"
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
# Methods that HTTP here does not know at all, as TRACE, are 501 (RFC 9110 15.6.2).
SETTINGS = """
[phases.coverage]
unexpected-methods = ["DELETE", "PATCH", "PUT", "POST", "GET"]
[checks.negative_data_rejection]
expected-statuses = [400, 404, 405, 414, 422]
"""

Seen = dict[str, set[int]]


@pytest.mark.oracle
async def test_requests_that_schemathesis_makes_up(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue:
        (tmp_path / "schemathesis.toml").write_text(SETTINGS)
        document = await venue.get("/openapi.json")
        operations = {
            f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods
        }
        # A route can be built for half a minute: what takes one goes first.
        content = document["paths"][TRANSACTIONS]["post"]["requestBody"]["content"]["application/json"]
        content["example"] = await a_body(venue)
        content = document["paths"][BUILD]["post"]["requestBody"]["content"]["application/json"]
        content["example"] = await an_order(venue)
        seen = await made_up(venue, document, tmp_path, "--include-path", TRANSACTIONS)
        seen |= await made_up(
            venue, document, tmp_path, "--exclude-path", TRANSACTIONS, "--exclude-path", ENDLESS
        )
        assert seen.keys() == operations - {f"GET {ENDLESS}"}
        assert [operation for operation, statuses in seen.items() if 200 not in statuses] == []
        assert venue.app.server.statistics().errors == 0


async def a_body(venue: RunningVenue) -> dict[str, Any]:
    """What POST /transactions builds: the user has what it takes, and has allowed it."""
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
    """What POST /v2/delta/orders/build builds."""
    quote = await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC", mode="DELTA"))
    return {"route": quote["delta"]["route"], "owner": to_checksum(USER.address), "deadline": 2**40}


async def made_up(venue: RunningVenue, document: dict[str, Any], folder: Path, *which: str) -> Seen:
    """Have requests made up from a document. Returns the statuses of each operation that was asked."""
    program = PEERS_PYTHON.with_name("schemathesis")
    require_oracle(program)
    described, report = folder / "openapi.json", folder / "report.ndjson"
    described.write_bytes(msgspec.json.encode(document))
    extent = ["--max-examples", "5", "--generation-deterministic"]
    if IS_LONG:
        extent = ["--max-examples", "100", "--generation-database", "none"]
    with trio.fail_after(600 if IS_LONG else 180):
        done = await trio.run_process(
            [
                program, "run", described, "--url", venue.url, *which, *extent,
                "--checks", ",".join(CHECKS),
                "--phases", "examples,coverage,fuzzing",
                "--suppress-health-check", "all",
                "--report", "ndjson", "--report-ndjson-path", report,
                "--output-sanitize", "false",
                "--no-color",
            ],
            cwd=folder,
            check=False,
            capture_stdout=True,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode()
    seen: defaultdict[str, set[int]] = defaultdict(set)
    for line in report.read_bytes().splitlines():
        recorder = msgspec.json.decode(line).get("ScenarioFinished", {}).get("recorder", {})
        for interaction in recorder.get("interactions", {}).values():
            seen[f"{recorder['label']}"].add(interaction["response"]["status_code"])
    return seen
