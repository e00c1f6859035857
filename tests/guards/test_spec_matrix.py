"""The pages of docs/reference/spec: rules are numbered in order, and each names existing tests."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from cambist.engine.trader.conformance.check_table import CHECKS
from support.conformance.faulty_table import ADVISED, PLANTED

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference" / "spec").glob("*.md"))
PARTS = ["1-swap-and-delta.md", "2-otc.md", "3-market-maker.md"]
HEADER = ["| Rule | Requirement | Test |", "|---|---|---|"]
NOT_BUILT, NO_RULE = "not built", "no rule"
FOUND_BY = {
    "test_a_planted_fault_is_found": {check for planted in PLANTED.values() for check in planted.expects},
    "test_what_is_advice_is_told_and_fails_nothing": {
        check for planted in ADVISED.values() for check in planted.expects
    },
}
"""Test of the harness -> the checks that its planted faults fail."""
_ROW = re.compile(r"\| (\d+\.\d+\.\d+) \| (.+) \| (.+) \|")
_COUNTS = re.compile(r"Rules: (\d+)\. Of these, `not built`: (\d+), `no rule` \(explanation alone\): (\d+)\.")


@cache
def known_tests() -> dict[str, frozenset[str]]:
    """File -> names of its tests; those of a class as `Class::name`."""
    return {path.name: frozenset(_names(path)) for path in (ROOT / "tests").rglob("test_*.py")}


def _names(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for function in inner:
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + function.name
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id  # a machine of Hypothesis: TestX = Machine.TestCase


def faults(text: str) -> list[str]:
    """Faults of a page; empty if the page is right."""
    return [*_faults_of_rows(text), *_faults_of_counts(text)]


def _faults_of_rows(text: str) -> Iterator[str]:
    part, section, rules = "", 0, count(1)
    for line in text.splitlines():
        if heading := re.fullmatch(r"## (\d+)\.(\d+) .+", line):
            part, section, rules = heading[1], section + 1, count(1)
            if int(heading[2]) != section:
                yield f"section {heading[2]} stands where {section} is next"
        elif line.startswith("|") and line not in HEADER:
            row = _ROW.fullmatch(line)
            if row is None:
                yield f"no row of three cells: {line}"
                continue
            expected = f"{part}.{section}.{next(rules)}"
            if row[1] != expected:
                yield f"rule {row[1]} stands where {expected} is next"
            yield from (f"{row[1]}: {fault}" for fault in _faults_of_entry(row[3]))


def _faults_of_entry(entry: str) -> Iterator[str]:
    if entry in (NOT_BUILT, NO_RULE):
        return
    for named in entry.split("; "):
        match = re.fullmatch(r"`(\w+\.py)::([\w:]+)`(?: \((.+)\))?", named)
        if match is None:
            yield f"neither a test nor `{NOT_BUILT}` nor `{NO_RULE}`: {named}"
            continue
        if match[2] not in known_tests().get(match[1], ()):
            yield f"there is no {match[1]}::{match[2]}"
        checks = re.findall(r"`(.+?)`", match[3] or "")
        yield from (f"there is no check {check}" for check in checks if check not in CHECKS)
        provoked = FOUND_BY.get(match[2], CHECKS)
        yield from (f"{match[2]} does not provoke {check}" for check in checks if check not in provoked)


def _faults_of_counts(text: str) -> Iterator[str]:
    entries = [row[3] for row in map(_ROW.fullmatch, text.splitlines()) if row]
    counted = len(entries), entries.count(NOT_BUILT), entries.count(NO_RULE)
    told = _COUNTS.search(text)
    if told is None or tuple(map(int, told.groups())) != counted:
        yield f"the head of the page does not say that {counted} are all, {NOT_BUILT} and {NO_RULE}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_rule_has_its_number_and_tests_that_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert faults(text) == []
    part = page.name[0]
    assert re.findall(r"^## (\d+)\.", text, re.MULTILINE)[0] == part


def test_the_pages_are_linked_where_documents_are_listed() -> None:
    assert [page.name for page in PAGES] == PARTS
    listed = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in PARTS if f"](docs/reference/spec/{name})" not in listed] == []


GOOD = """
Rules: 3. Of these, `not built`: 1, `no rule` (explanation alone): 1.

## 2.1 One

| Rule | Requirement | Test |
|---|---|---|
| 2.1.1 | A rule. | `test_spec_matrix.py::test_a_fault_of_a_page_is_found` (`tokens.type`) |
| 2.1.2 | Another. | not built |

## 2.2 Two

| Rule | Requirement | Test |
|---|---|---|
| 2.2.1 | An explanation. | no rule |
"""


@pytest.mark.parametrize(
    ("was", "now", "fault"),
    [
        ("2.1.2", "2.1.3", "rule 2.1.3 stands where 2.1.2 is next"),
        ("| 2.1.2", "| 2.1.1", "rule 2.1.1 stands where 2.1.2 is next"),
        ("## 2.2", "## 2.3", "section 3 stands where 2 is next"),
        ("::test_a_fault_of_a_page_is_found", "::test_nothing", "test_spec_matrix.py::test_nothing"),
        ("test_spec_matrix.py", "test_nowhere.py", "there is no test_nowhere.py"),
        ("tokens.type", "tokens.kind", "there is no check tokens.kind"),
        (
            "`test_spec_matrix.py::test_a_fault_of_a_page_is_found` (`tokens.type`)",
            "`test_conformance_faults.py::test_a_planted_fault_is_found` (`pairs.id`)",
            "test_a_planted_fault_is_found does not provoke pairs.id",
        ),
        ("| not built |", "| later |", "neither a test nor"),
        ("| not built |", "|  |", "no row of three cells"),
        ("Rules: 3", "Rules: 4", "the head of the page does not say"),
        ("`not built`: 1", "`not built`: 0", "the head of the page does not say"),
    ],
)
def test_a_fault_of_a_page_is_found(was: str, now: str, fault: str) -> None:
    assert faults(GOOD) == []
    assert any(fault in one for one in faults(GOOD.replace(was, now, 1)))
