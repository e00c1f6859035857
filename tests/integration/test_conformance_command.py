"""`cambist maker check`: exit statuses, the report's three forms, and what wrong usage says."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from cambist.crypto.hexadecimal import to_hex
from cambist.engine.cli.maker_check import check
from cambist.engine.trader.conformance.check_table import CHECKS
from support.conformance.faulty_maker import (
    ACCESS_KEY,
    CHAIN_ID,
    CONTRACT,
    SECRET,
    TAKER,
)
from support.conformance.faulty_runs import SIGNED, Served
from support.patience import PATIENCE_S

QUICK = ("--watch", "0.2", "--quotes", "16")


@pytest.fixture
def served() -> Iterator[Served]:
    with Served() as server:
        yield server


def run(*arguments: str, secret: str = SECRET) -> Result:
    return CliRunner().invoke(check, arguments, env={"MAKER_SECRET": secret}, prog_name="cambist maker check")


def test_a_right_maker_ends_with_zero_and_one_line_says_so(served: Served) -> None:
    domain = ("--chain-id", str(CHAIN_ID), "--rfq-contract", to_hex(CONTRACT), "--taker", TAKER)
    done = run(served.url, *SIGNED, *domain, *QUICK, "--strict")
    assert done.exit_code == 0, done.output
    assert f"{len(CHECKS)} checks: " in done.stdout
    assert "0 failed" in done.stdout
    *_, counts, verdict = done.stdout.splitlines()
    assert "no node is given: --node-url" in counts
    assert verdict == "The maker conforms."
    assert SECRET not in done.output
    assert ACCESS_KEY not in done.output


def test_faults_end_with_one_and_say_rule_and_fix(served: Served) -> None:
    served.maker.flags.add("stale")
    done = run(served.url, *SIGNED, "--only", "auth.stale")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == "The maker has faults."
    for text in ("auth.stale", "signed 60 s ago", "expected 4xx", "came     200", "rule spec 3.10.22"):
        assert text in done.stdout


def test_the_report_as_json_alone_on_standard_output(served: Served) -> None:
    served.maker.flags.add("future")
    done = run(served.url, *SIGNED, "--only", "auth.*", "--json", "-", "--seed", "5")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert report["conforms"] is False
    assert (report["seed"], report["strict"]) == (5, False)
    assert report["summary"]["failed"] == 1
    assert [row["id"] for row in report["checks"]] == list(CHECKS)
    (row,) = [row for row in report["checks"] if row["status"] == "failed"]
    assert row["id"] == "auth.future"
    assert row["findings"][0]["expected"].startswith("4xx")
    assert row["fix"]
    assert "auth.future" in done.stderr


def test_the_report_as_junit(served: Served, tmp_path: Path) -> None:
    served.maker.flags.add("blacklist-error")
    file = tmp_path / "report.xml"
    taker = ("--taker", TAKER)
    done = run(served.url, *SIGNED, *taker, "--only", "firm.*", "--junit", str(file), "--quotes", "0")
    assert done.exit_code == 1
    root = ET.fromstring(file.read_text(encoding="utf-8"))
    cases = {case.get("name", "").partition(":")[0]: case for case in root.iter("testcase")}
    assert cases.keys() == CHECKS.keys()
    assert [name for name, case in cases.items() if case.find("failure") is not None] == ["firm.blacklisted"]
    assert cases["firm.quotes"].find("skipped") is None
    assert cases["auth.stale"].find("skipped") is not None
    suites = {suite.get("name"): suite for suite in root.iter("testsuite")}
    assert suites["firm"].get("failures") == "1"


def test_the_report_as_junit_alone_on_standard_output(served: Served) -> None:
    done = run(served.url, *SIGNED, "--only", "tokens.*", "--junit", "-")
    assert done.exit_code == 0
    assert ET.fromstring(done.stdout).tag == "testsuites"
    assert "0 failed" in done.stderr


def test_a_report_that_cannot_be_written_is_told_in_one_line(served: Served) -> None:
    done = run(served.url, *SIGNED, "--only", "tokens.*", "--json", "/dev/full")
    assert done.exit_code == 2
    assert "/dev/full: cannot be written: No space left on device" in done.stderr
    assert "0 failed" in done.stdout


def test_an_interrupt_ends_with_130_and_one_line(served: Served) -> None:
    listening = threading.Event()

    def first(message: object) -> object:
        listening.set()
        return message

    served.maker.first = first
    process = subprocess.Popen(
        [sys.executable, "-m", "cambist", "maker", "check", served.url, *SIGNED, "--watch", "600"],
        env=os.environ | {"MAKER_SECRET": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert listening.wait(PATIENCE_S)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert (out, said) == ("", "Error: stopped before the end: there is no report\n")


def test_a_maker_that_is_not_there_ends_with_three_and_says_why() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        done = run(f"http://127.0.0.1:{taken.getsockname()[1]}", "--timeout", "2")
    assert done.exit_code == 3
    assert "cannot be reached" in done.stderr
    assert "refused" in done.stderr


def test_tls_against_a_plain_port_cannot_be_reached(served: Served) -> None:
    done = run(served.url.replace("http:", "https:"), "--timeout", "2")
    assert done.exit_code == 3
    assert "cannot be reached" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "missing the maker's URL"),
        (("maker.example",), "URL: expected http or https://host[:port][/path]"),
        (("ftp://maker.example",), "URL: expected http or https"),
        (("http://maker.example/?a=1",), "without user, query or fragment"),
        (("http://user@maker.example/",), "without user, query or fragment"),
        (("http://maker.example/a b",), "percent-encode"),
        (("http://maker.example:99999",), "URL: expected"),
        (("http://maker.example", "--ws-url", "http://maker.example/ws"), "--ws-url: expected ws or wss"),
        (("http://maker.example", "--only", "nothing.*"), "no check matches nothing.*"),
        (("http://maker.example", "--skip", "authentication"), "no check matches authentication"),
        (("http://maker.example", "--only", "pairs.unknown-keys"), "a strict one needs --strict"),
        (("http://maker.example", "--domain", "venue"), "--access-key, --secret: needed too"),
        (("http://maker.example", *SIGNED[:-1], "hunter2"), "env:NAME or file:PATH"),
        (("http://maker.example", *SIGNED[:-1], "env:NOT_SET"), "NOT_SET is not set"),
        (("http://maker.example", *SIGNED, "--secret-encoding", "hex"), "is not hex text"),
        (("http://maker.example", "--taker", "0x12"), "expected an address"),
        (
            ("http://maker.example", "--rfq-contract", "0x5FbDB2315678afecb367f032d93F642f64180Aa3"),
            "checksum",
        ),
        (("http://a..b",), "URL: expected http or https"),
        (("http://" + "a" * 64 + ".example",), "URL: expected http or https"),
        (("http://maker.example", "--ws-url", "ws://a..b"), "--ws-url: expected ws or wss"),
        (("http://maker.example", "--node-url", "http://a..b"), "--node-url: expected http or https"),
        (("http://maker.example", "--json", "-", "--junit", "-"), "--json, --junit: name two files"),
        (("http://maker.example", "--quotes", "-1"), "--quotes"),
        (("http://maker.example", "--timeout", "0"), "--timeout"),
        (("https://maker.example", "--ca", "nowhere.pem"), "nowhere.pem"),
        (("http://maker.example", "--json", "nowhere/report.json"), "nowhere/report.json: cannot be written"),
    ],
)
def test_wrong_usage_ends_with_two_and_names_what_is_wrong(arguments: tuple[str, ...], says: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert says in " ".join(done.stderr.split())
    assert "hunter2" not in done.output


def test_a_run_that_skips_every_chosen_check_is_inconclusive(served: Served) -> None:
    done = run(served.url, *SIGNED, "--only", "chain.*")
    assert done.exit_code == 4
    assert done.stdout.splitlines()[-1] == "Inconclusive, nothing is proven: every chosen check was skipped."


def test_a_maker_that_quotes_nothing_is_inconclusive_and_the_reports_say_why(
    served: Served, tmp_path: Path
) -> None:
    served.maker.entries["prices"] = lambda prices: {}
    served.maker.flags.add("no-socket")
    file = tmp_path / "report.xml"
    done = run(served.url, *SIGNED, *QUICK, "--json", "-", "--junit", str(file))
    assert done.exit_code == 4, done.output
    report = json.loads(done.stdout)
    assert (report["conforms"], report["outcome"], report["summary"]["failed"]) == (False, "inconclusive", 0)
    assert any("firm" in reason and "no pair is quoted" in reason for reason in report["inconclusive"])
    assert done.stderr.splitlines()[-1].startswith("Inconclusive, nothing is proven: too little to judge ")
    (error,) = ET.fromstring(file.read_text(encoding="utf-8")).iter("error")
    assert "no pair is quoted" in error.get("message", "")


def test_a_file_that_holds_no_certificates_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    done = run("https://127.0.0.1:1", "--ca", str(file))
    assert done.exit_code == 2
    assert "ca.pem" in done.stderr


def test_the_table_of_checks_is_printed_without_a_maker() -> None:
    done = run("--list")
    assert done.exit_code == 0
    lines = done.stdout
    for check_id in ("auth.body-swapped", "prices.uncrossed", "hostile.pipelined"):
        assert check_id in lines
