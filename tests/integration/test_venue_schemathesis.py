"""The whole surface against requests generated from its document: no 5xx, answers as described.

The venue enforces the OpenAPI document's parameters, and every operation also succeeds. The same requests are
made for the same document, except in a long run, which searches.
"""

import os
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from cambist.config import limits
from support.api.bodies import (
    BUILD,
    BUILD_CANCEL,
    POST_OTC,
    SUBMIT,
    a_body,
    a_cancellation,
    a_kept_order,
    a_submission,
    an_order,
    an_otc_order,
    what_there_is,
)
from support.events.webhook_receiver import SECRET
from support.examples import IS_LONG
from support.patience import STORY_S
from support.programs import program
from support.venue.venue_role import ENVIRON, RunningVenue, running_venue

pytestmark = pytest.mark.seldom

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "negative_data_rejection",
    "unsupported_method", "allow_header_conformance",
)  # fmt: skip
TRANSACTIONS = "/transactions/{chainId}"
ENDLESS = ("/v2/quote/stream", "/v2/delta/orders/events", "/ft/events")
CANCEL = "/v2/delta/orders/cancel"
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
expected-statuses = [400, 401, 404, 405, 414, 422]
[[operations]]
include-path-regex = "^/v2/webhooks"
headers = {{ X-API-KEY = "{API_KEY}" }}
[[operations]]
include-path-regex = "^/operator/"
headers = {{ X-API-KEY = "{ENVIRON["TESTER_KEY"]}" }}
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


async def name_what_there_is(venue: RunningVenue, document: dict[str, Any]) -> None:
    """Let each path of the document lead to a thing that the venue keeps."""
    named = await what_there_is(venue) | {"name": "acme"}
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "path" and parameter["name"] in named:
                    parameter["example"] = named[parameter["name"]]


def defaulted(document: dict[str, Any]) -> set[str]:
    """Members with a default other than null, which null stands for too."""
    schemas = document["components"]["schemas"].values()
    members = [member for schema in schemas for member in schema.get("properties", {}).items()]
    return {name for name, schema in members if schema.get("default") is not None}


async def made_up(venue: RunningVenue, document: dict[str, Any], folder: Path) -> Seen:
    """Have requests made up from a document. Returns the statuses of each operation that was asked."""
    schemathesis = program("peers").with_name("schemathesis")
    described, report = folder / "openapi.json", folder / "statuses.txt"
    described.write_bytes(msgspec.json.encode(document))
    extent = ["--max-examples", "3", "--generation-deterministic"]
    if IS_LONG:
        extent = ["--max-examples", "100", "--generation-database", "none"]
    with trio.fail_after(4 * STORY_S if IS_LONG else STORY_S):
        done = await trio.run_process(
            [
                schemathesis, "run", described, "--url", venue.url, *extent,
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
                "DEFAULTED": ",".join(defaulted(document)),
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
