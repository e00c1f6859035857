"""The table of checks, its page in the docs, and that planted faults reach it."""

import re
from pathlib import Path

import click
import pytest

from cambist.engine.cli.maker_check import check as command
from cambist.engine.trader.conformance.check_table import CHECKS, TOPICS
from cambist.engine.trader.conformance.report import markdown_table
from support.conformance.faulty_table import ADVISED, PLANTED

ROOT = Path(__file__).parents[5]
PAGE = (ROOT / "docs" / "guides" / "maker-check.md").read_text(encoding="utf-8")


def test_every_check_says_rule_and_fix_in_one_line() -> None:
    for check_id, check in CHECKS.items():
        assert re.fullmatch(r"[a-z]+\.[a-z0-9-]+", check_id)
        for text in (check.title, check.source, check.fix):
            assert text
            assert "|" not in text
            assert "\n" not in text


def test_topics_are_those_of_the_checks() -> None:
    assert {check.topic for check in CHECKS.values()} == set(TOPICS)
    assert len(set(TOPICS)) == len(TOPICS)


def test_the_page_shows_the_table() -> None:
    assert PAGE.endswith("\n" + markdown_table())


def test_the_page_shows_every_option() -> None:
    named = set(re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE))
    options = {
        max(parameter.opts, key=len) for parameter in command.params if isinstance(parameter, click.Option)
    }
    assert named == options


def test_what_the_code_judges_is_in_the_table() -> None:
    folder = ROOT / "engine" / "trader" / "conformance"
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name != "check_table.py"
    )
    judged = set(re.findall(rf'"((?:{"|".join(TOPICS)})\.[a-z0-9-]+)"', text))
    assert len(judged) > 50
    assert judged <= CHECKS.keys()


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_name_checks_that_exist(name: str) -> None:
    planted = PLANTED[name]
    assert planted.expects
    assert planted.expects <= CHECKS.keys()


def test_the_list_of_planted_faults_is_long() -> None:
    assert len(PLANTED) >= 200


def test_every_check_is_provoked_by_a_planted_fault() -> None:
    provoked = {
        check_id for planted in (*PLANTED.values(), *ADVISED.values()) for check_id in planted.expects
    }
    elsewhere = {
        "run.": "test_conformance_right",
        "stream.handshake": "test_conformance_right",
        "chain.": "test_conformance_node",
        "stream.closes": "test_conformance_right",
        "load.latency": "test_conformance_judges",
    }
    left = {check_id for check_id in CHECKS.keys() - provoked if not any(map(check_id.startswith, elsewhere))}
    assert not left
