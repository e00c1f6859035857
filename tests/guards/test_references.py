"""References of sources and pages: each rule, section, page and file that they name is in this repository.

spec 1.4.2, 1.9 and 2.3.1 to 2.3.5       rules and sections of docs/reference/spec
agents.md, docs/guides/store.md                 pages
ARCHITECTURE.md, "Orders", "Funds"       sections of a page
choices.md#otc-orders, [a](#otc-orders)  sections of a page, as links have them
interop.md 3                             numbered sections of docs/reference/interop.md
codecs/contracts/calldata.py, contracts/Rfq.sol    files, by the end of their path
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.tracked_files import ROOT, tracked_files

SPEC = sorted((ROOT / "docs" / "reference" / "spec").glob("*.md"))
KINDS = {".py", ".sol", ".mjs", ".toml", ".md"}
MADE = {
    "report.md": "`make bench` writes it",
    "bench/results/report.md": "`make bench` writes it",
    "e2e/file.py": "a form in a docstring",
    "contracts/Opened.sol": "`make proofs` copies it from tests/proofs",
}
"""Names of files that are not in the repository, and the reason."""

_NUMBER = r"\d+(?:\.\d+){0,2}"
_RULES = re.compile(rf"\b[Ss]pec\s+({_NUMBER}(?:(?:,| and| to)\s+\d+\.\d+(?:\.\d+)?)*)")
_SECTIONS = re.compile(r'([\w./-]+\.md),\s+("[^"\n]+"(?:(?:,| and)\s+"[^"\n]+")*)')
_ANCHORS = re.compile(r"([\w./-]+\.md)#([\w-]+)")
_OWN_ANCHORS = re.compile(r"\]\(#([\w-]+)\)")
_PAGES = re.compile(r"(?<![\w*/.{}-])((?:\.\./)*[\w./-]*\w\.md)\b")
_FILES = re.compile(r"(?<![\w./{}-])((?:[\w-]+/)+[\w-]+\.(?:py|sol|mjs|toml))\b(?!/)")
_INTEROP = re.compile(r"interop\.md,?\s+(?:sections?\s+)?(\d(?:(?:,| and)\s+\d(?![\w.]))*)")
_OUTSIDE = re.compile(r"\b[Dd]ocuments?\s+[123]\b|\bD[123]\b(?!\")|\b[Dd]esign[,:]\s+\"")


@cache
def rules() -> frozenset[str]:
    """Numbers of all parts, sections and rules of docs/reference/spec."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in SPEC)
    sections = re.findall(r"^## (\d+\.\d+) ", text, re.MULTILINE)
    return frozenset(
        [page.name[0] for page in SPEC] + sections + re.findall(r"^\| (\d+\.\d+\.\d+) \|", text, re.MULTILINE)
    )


@cache
def paths() -> frozenset[str]:
    """Paths of all files of the repository, and each end of them that begins with a folder or the name."""
    ends: set[str] = set()
    for path in tracked_files():
        parts = path.relative_to(ROOT).parts
        ends.update("/".join(parts[start:]) for start in range(len(parts)))
    return frozenset([*ends, *(f"src/cambist/{end}" for end in ends)])


@cache
def headings(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of a page's headings, as links write them."""
    return frozenset(re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings(page))


def page_of(name: str, folder: Path) -> Path | None:
    """The page that a file of a folder names: beside the file, at the top, or in docs."""
    parts = (
        ROOT / "docs" / part for part in ("start", "guides", "reference", "explanation", "reference/spec")
    )
    folders = (folder, ROOT, ROOT / "docs", *parts)
    return next((found for one in folders if (found := one / name).is_file()), None)


def faults(text: str, path: Path) -> Iterator[str]:
    """References of a file's text that lead nowhere."""
    for cited in _RULES.findall(text):
        yield from (f"spec {rule}" for rule in re.findall(_NUMBER, cited) if rule not in rules())
    if ".md" in text or path.suffix == ".md":
        yield from _faults_of_pages(text, path)
    yield from (name for name in _FILES.findall(text) if name not in paths() and name not in MADE)
    yield from _OUTSIDE.findall(text)


def _faults_of_pages(text: str, path: Path) -> Iterator[str]:
    for name in _PAGES.findall(text):
        if page_of(name, path.parent) is None and name not in MADE:
            yield name
    for name, titles in _SECTIONS.findall(text):
        page = page_of(name, path.parent)
        there = headings(page) if page else frozenset()
        yield from (f'{name}, "{title}"' for title in re.findall(r'"(.+?)"', titles) if title not in there)
    for name, anchor in _ANCHORS.findall(text):
        page = page_of(name, path.parent)
        if page is None or anchor not in anchors(page):
            yield f"{name}#{anchor}"
    if path.suffix == ".md":
        yield from (f"#{anchor}" for anchor in _OWN_ANCHORS.findall(text) if anchor not in anchors(path))
    numbered = {title[0] for title in headings(ROOT / "docs" / "reference" / "interop.md")}
    for cited in _INTEROP.findall(text):
        yield from (f"interop.md {number}" for number in re.findall(r"\d", cited) if number not in numbered)


def test_every_reference_leads_somewhere() -> None:
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in tracked_files()
        if path.suffix in KINDS and path != Path(__file__)
        if (wrong := [*faults(path.read_text(encoding="utf-8"), path)])
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "Source: spec 1.4.2, 1.9 and 2.3.1 to 2.3.5; interop.md 1 and 3.",
        "The interface (spec 3) and\nspec\n3.10.",
        'Source: ARCHITECTURE.md, "Orders",\n"Funds" and "Start"; docs/guides/store.md.',
        "See [it](docs/guides/otc.md), codecs/contracts/calldata.py and contracts/Rfq.sol.",
    ],
)
def test_what_leads_somewhere_is_no_fault(text: str) -> None:
    assert [*faults(text, ROOT / "README.md")] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Source: spec 1.4.99.", "spec 1.4.99"),
        ("Source: spec 1.4.2, 1.99.", "spec 1.99"),
        ("Source: spec 1.4.1 to\n1.4.99.", "spec 1.4.99"),
        ("The interface (spec 4).", "spec 4"),
        ("Source: nowhere.md.", "nowhere.md"),
        ("See [it](docs/nowhere.md).", "docs/nowhere.md"),
        ('Source: ARCHITECTURE.md, "Orders",\n"Nothing".', 'ARCHITECTURE.md, "Nothing"'),
        ('Source: nowhere.md, "Orders".', 'nowhere.md, "Orders"'),
        ("[a page](docs/guides/otc.md#nothing)", "docs/guides/otc.md#nothing"),
        ("[below](#nothing)", "#nothing"),
        ("interop.md 1 and 9", "interop.md 9"),
        ("Source: codecs/nowhere.py.", "codecs/nowhere.py"),
        ("Rules of " + "document 1", "document" + " 1"),
        ("As " + "Documents\n2 and 3 say", "Documents" + "\n2"),
        ("A rule of " + "D2", "D" + "2"),
        ("Source: " + 'design, "Orders"', "design" + ', "'),
    ],
)
def test_a_reference_that_leads_nowhere_is_found(text: str, fault: str) -> None:
    assert fault in [*faults(text, ROOT / "README.md")]
