"""The docs are true: links lead to targets, choices are collected, settings load."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from docs.generators import choices_page as choices
from docs.generators import public_page

from cambist.codecs.messages.resource_messages import DocumentMeta
from cambist.config.settings import parse_settings
from cambist.engine.chain.deploy.address_book import AddressBook
from cambist.engine.trade.routing.served import served_chains
from support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.process
def test_the_sample_settings_load(tmp_path: Path) -> None:
    """In a process of its own: the defaults of this one are stretched."""
    (tmp_path / "sample.toml").write_text(
        "\n".join(blocks(ROOT / "docs" / "reference" / "settings.md", "toml")), encoding="utf-8"
    )
    (tmp_path / "maker-key.json").write_text("01" * 32)
    done = subprocess.run(
        [sys.executable, "-m", "support.sample_settings", tmp_path / "sample.toml", tmp_path],
        cwd=ROOT / "tests",
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_sample_venue_loads(tmp_path: Path) -> None:
    sample = blocks(ROOT / "docs" / "guides" / "venue.md", "toml")[0]
    settings = parse_settings(sample, {"ROUTE_SEAL": "x" * 16, "ALPHA_SECRET": "y"}, tmp_path)
    assert settings.venue
    assert served_chains(settings, settings.venue.makers, AddressBook(DocumentMeta("", ""), {})).keys() == {1}


def test_every_choice_in_the_code_is_collected() -> None:
    """tests/unit/docs/test_choices.py compares the page itself."""
    written = sum(
        path.read_text(encoding="utf-8").count("Choice:")
        for layer in choices.FOLDERS
        for path in (ROOT / layer).rglob("*.py")
        if path != ROOT / "docs" / "generators" / "choices_page.py"
    )
    assert sum(map(len, choices.collected().values())) == written, "a choice begins a line of a docstring"


def test_choices_are_cited_by_topic() -> None:
    """Citations name a heading, as in choices.md#otc-orders: a choice has no number."""
    sources = [path for folder in (*choices.FOLDERS, "tests") for path in (ROOT / folder).rglob("*.py")]
    numbered = re.compile(r"\bchoices?(?:\.md)?,?\s+\d+")
    texts = {path: path.read_text(encoding="utf-8") for path in (*PAGES, *sources)}
    assert [path.name for path, text in texts.items() if numbered.search(text)] == []


def test_every_target_of_the_makefile_that_docs_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        target
        for page in PAGES
        for target in re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)\b(?=[`\s])", page.read_text(encoding="utf-8"))
        if f"`make {target}" in page.read_text(encoding="utf-8")
        or f"\nmake {target}" in page.read_text(encoding="utf-8")
    }
    assert named
    assert named <= targets


def test_the_page_of_public_names_is_generated() -> None:
    assert (ROOT / public_page.PAGE).read_text(encoding="utf-8") == public_page.page(), "make catalogue"


def test_programs_of_the_docs_import_public_names_alone() -> None:
    imports = re.compile(r"^ *(?:from|import) (cambist[\w.]*)(?: import (.*))?", re.MULTILINE)
    programs = [text for page in PAGES for text in blocks(page, "python")]
    files = [path for path in ROOT.glob("docs/**/*.py") if path.parent.name != "generators"]
    programs += [path.read_text(encoding="utf-8") for path in files]
    found = [match for text in programs for match in imports.findall(text)]
    assert len(found) >= 6
    for module, names in found:
        assert module in {f"cambist.{name}" for name in public_page.MODULES}
        assert set(names.split(", ")) <= set(import_module(module).__all__)


def named_tests(text: str) -> list[str]:
    """Tests that a text names, as `e2e/file.py::test`; assert that each exists."""
    named = re.findall(r"`((?:conformance|e2e|integration|property|unit)/[^`]+)`", text)
    for name in named:
        path, _, test = name.partition("::")
        source = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert not test or re.search(rf"^(async )?def {test}\(", source, re.MULTILINE), name
    return named


@pytest.mark.parametrize(
    ("head", "least"), [("| Party | Can | Test |", 9), ("| Promise | Test |", 20), ("| Cost |", 9)]
)
def test_every_power_and_promise_of_security_names_tests_that_are_there(head: str, least: int) -> None:
    page = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
    rows = page.partition(head)[2].splitlines()[2:]
    told = [row for row in rows[: rows.index("")] if row]
    assert len(told) >= least
    for row in told:
        assert named_tests(row), row


def test_every_incident_names_the_tests_that_rehearse_it() -> None:
    _, *incidents = (ROOT / "docs" / "guides" / "incidents.md").read_text(encoding="utf-8").split("\n## ")
    assert len(incidents) >= 6
    for incident in incidents:
        assert named_tests(incident.partition("**Rehearsed**")[2]), incident
