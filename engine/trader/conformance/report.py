"""Renders the report of a conformance run: tables for people, JSON for programs, JUnit XML for build servers.

Source of the JUnit form: the testsuites/testsuite/testcase elements that build servers read.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....config.version import __version__
from .check_table import CHECKS, TOPICS
from .checks.load import LoadReport
from .rules import CheckStatus, CheckVerdict, Result
from .run import RunOutcome, RunReport

_STYLES = {
    CheckStatus.FAILED: "bold red",
    CheckStatus.ADVISED: "yellow",
    CheckStatus.SKIPPED: "dim",
    CheckStatus.PASSED: "green",
}


def summary(report: RunReport) -> str:
    """Format the counts of a run's verdicts as `NN checks: x passed, y failed, z skipped (reasons)`."""
    parts = [f"{report.count(CheckStatus.PASSED)} passed", f"{report.count(CheckStatus.FAILED)} failed"]
    if report.count(CheckStatus.ADVISED):
        parts.append(f"{report.count(CheckStatus.ADVISED)} advised")
    reasons = Counter(verdict.reason for verdict in report.verdicts if verdict.status is CheckStatus.SKIPPED)
    skips = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    parts.append(f"{report.count(CheckStatus.SKIPPED)} skipped" + (f" ({skips})" if skips else ""))
    return f"{len(report.verdicts)} checks: {', '.join(parts)}"


def print_report(report: RunReport, console: Console) -> None:
    """Print a run's report: counts by topic, faults and advice with fixes, load figures, summary, outcome."""
    console.print(_topics(report.verdicts))
    for title, status in (("Faults", CheckStatus.FAILED), ("Advice", CheckStatus.ADVISED)):
        found = [verdict for verdict in report.verdicts if verdict.status is status]
        if found:
            console.print()
            console.print(_findings(title, found))
    if report.load is not None:
        console.print()
        console.print(load_line(report.load), soft_wrap=True)
    console.print()
    mode = ", strict" if report.strict else ""
    sent = f"{report.requests} requests, {report.firm_requests} of them for firm quotes"
    console.print(
        f"{report.url}{mode}: {sent}, in {report.elapsed_s:.1f} s, seed {report.seed}", soft_wrap=True
    )
    console.print(summary(report), soft_wrap=True)
    console.print(verdict_line(report), style="green" if report.conforms else "red", soft_wrap=True)


def verdict_line(report: RunReport) -> str:
    """Format the outcome of a run as a sentence, with the reasons of an inconclusive outcome."""
    if report.outcome is RunOutcome.CONFORMS:
        return "The maker conforms."
    if report.outcome is RunOutcome.FAULTS:
        return "The maker has faults."
    return f"Inconclusive, nothing is proven: {'; '.join(_reasons(report))}."


def _reasons(report: RunReport) -> Iterator[str]:
    """Yield the reasons for an inconclusive run: harness bugs, too few judged checks, or none at all."""
    for broken in report.broken:
        yield f"the harness has a bug, please report it: {broken}"
    topics: dict[str, list[str]] = {}
    for topic, reason in report.thin.items():
        topics.setdefault(reason, []).append(topic)
    for reason, names in topics.items():
        yield f"too little to judge {', '.join(names)} on ({reason})"
    if report.lacks_quotes:
        yield "the maker gave no firm quote (--allow-no-quotes accepts that)"
    if report.count(CheckStatus.SKIPPED) == len(report.verdicts):
        yield "every chosen check was skipped"


def _topics(verdicts: Sequence[CheckVerdict]) -> Table:
    table = Table("topic", *(status.value for status in CheckStatus), title=None)
    for topic in TOPICS:
        counts = Counter(verdict.status for verdict in verdicts if verdict.check.topic == topic)
        cells = [
            Text(str(counts[status]) if counts[status] else "-", _STYLES[status] if counts[status] else "dim")
            for status in CheckStatus
        ]
        table.add_row(topic, *cells)
    return table


def _findings(title: str, verdicts: Sequence[CheckVerdict]) -> Table:
    """Build a table of failed or advised checks with their faults and fixes, a section per topic."""
    table = Table("check", "finding, and fix", title=title, title_justify="left", expand=True)
    last = ""
    for verdict in verdicts:
        if last and verdict.check.topic != last:
            table.add_section()
        last = verdict.check.topic
        table.add_row(Text(verdict.check.id, _STYLES[verdict.status]), _explained(verdict))
    return table


def _explained(verdict: CheckVerdict) -> Text:
    check = verdict.check
    text = Text(check.title)
    for result in verdict.faults:
        text.append(f"\n{result.where}", "bold")
        for label, value in (("expected", result.expected), ("came", result.got)):
            text.append(f"\n  {label:<9}", "dim").append(value)
    if verdict.fault_count > len(verdict.faults):
        text.append(f"\n  and {verdict.fault_count - len(verdict.faults)} more like these", "dim")
    for label, value in (("rule", check.source), ("fix", check.fix)):
        text.append(f"\n{label:<5}", "dim").append(value)
    return text


def load_line(load: LoadReport) -> str:
    """Format the figures of the load stage on one line: quotes, latencies, price drift, failures."""
    return (
        f"load: {load.quotes} quotes over {load.connections} connections, {load.quotes_per_s:.0f}/s: "
        f"p50 {load.p50_ms:.1f} ms, p95 {load.p95_ms:.1f} ms, p99 {load.p99_ms:.1f} ms; "
        f"drift p50 {load.drift_p50_bps:.2f} bps, max {load.drift_max_bps:.2f} bps; "
        f"{load.failed} failed, {load.refused} refused, {load.duplicate_nonces} duplicate nonces"
    )


def list_table() -> Table:
    """Build the terminal table of all checks, which the option `--list` prints."""
    table = Table("check", "what holds", "kind", "weight", "rule")
    last = ""
    for check in CHECKS.values():
        if last and check.topic != last:
            table.add_section()
        last = check.topic
        table.add_row(check.id, check.title, check.kind, check.severity.value, check.source)
    return table


def markdown_table() -> str:
    """Build the Markdown table of all conformance checks for docs/guides/maker-check.md."""
    rows = [
        "| Check | Statement | Kind | Weight | Rule | Fix |",
        "|---|---|---|---|---|---|",
        *(
            f"| `{check.id}` | {check.title} | {check.kind} | {check.severity.value} "
            f"| {check.source} | {check.fix} |"
            for check in CHECKS.values()
        ),
    ]
    return "\n".join(rows) + "\n"


def to_json(report: RunReport) -> bytes:
    """Encode the report of a run as one JSON object: outcome, figures, and the verdict of every check."""
    document = {
        "cambist": __version__,
        "url": report.url,
        "strict": report.strict,
        "seed": report.seed,
        "conforms": report.conforms,
        "outcome": report.outcome.value,
        "inconclusive": [*_reasons(report)],
        "elapsedS": round(report.elapsed_s, 3),
        "requests": report.requests,
        "firmRequests": report.firm_requests,
        "summary": {status.value: report.count(status) for status in CheckStatus},
        "load": report.load,
        "checks": [_as_object(verdict) for verdict in report.verdicts],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _as_object(verdict: CheckVerdict) -> dict[str, Any]:
    check = verdict.check
    return {
        "id": check.id,
        "title": check.title,
        "rule": check.source,
        "kind": check.kind,
        "weight": check.severity.value,
        "status": verdict.status.value,
        "looks": verdict.looks,
        "faults": verdict.fault_count,
        "findings": [
            {"where": result.where, "expected": result.expected, "got": result.got}
            for result in verdict.faults
        ],
        "reason": verdict.reason,
        "fix": check.fix if verdict.faults else "",
    }


def to_junit(report: RunReport) -> bytes:
    """Encode the report of a run as JUnit XML: a test suite per topic, a test case per check.

    A check with advice alone is a passed test case, with the advice as output.

    An inconclusive run has one more test case: an error that names all reasons.
    """
    root = ET.Element("testsuites", name=f"cambist maker check {report.url}")
    for topic in TOPICS:
        verdicts = [verdict for verdict in report.verdicts if verdict.check.topic == topic]
        counts = Counter(verdict.status for verdict in verdicts)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=topic,
            tests=str(len(verdicts)),
            failures=str(counts[CheckStatus.FAILED]),
            skipped=str(counts[CheckStatus.SKIPPED]),
            errors="0",
        )
        for verdict in verdicts:
            _add_case(suite, verdict)
    reasons = [*_reasons(report)]
    if reasons:
        suite = ET.SubElement(
            root, "testsuite", name="enough", tests="1", failures="0", skipped="0", errors="1"
        )
        case = ET.SubElement(suite, "testcase", classname="enough", name="enough could be judged")
        ET.SubElement(case, "error", message="; ".join(reasons))
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add_case(suite: ET.Element, verdict: CheckVerdict) -> None:
    check = verdict.check
    case = ET.SubElement(suite, "testcase", classname=check.topic, name=f"{check.id}: {check.title}")
    text = "\n".join(_lines(verdict))
    if verdict.status is CheckStatus.FAILED:
        failure = ET.SubElement(case, "failure", message=verdict.faults[0].expected)
        failure.text = text
    elif verdict.status is CheckStatus.SKIPPED:
        ET.SubElement(case, "skipped", message=verdict.reason)
    elif verdict.status is CheckStatus.ADVISED:
        ET.SubElement(case, "system-out").text = text


def _lines(verdict: CheckVerdict) -> Iterator[str]:
    for result in verdict.faults:
        yield _line(result)
    yield f"rule: {verdict.check.source}"
    yield f"fix: {verdict.check.fix}"


def _line(result: Result) -> str:
    return f"{result.where}: expected {result.expected}; got {result.got}"
