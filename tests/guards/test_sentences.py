"""Sentences of the package, its tests, benches and pages begin with the thing that they are about.

    What the maker may know of it.      ->   Score report shown to the maker.
    When it was issued.                 ->   Time of issue.

The tests read docstrings, pages, help texts of commands, and summaries of the API. Left out are
`Choice:` paragraphs and indented blocks of docstrings (figures, Args, Attributes), fenced blocks of pages,
and two generated pages.
"""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from support.tracked_files import ROOT, tracked_files

FOLDERS = ("config", "crypto", "codecs", "feeds", "engine", "bench", "tests")
GENERATED = {"choices.md", "lifecycles.md"}
SHOWN = {"help", "short_help", "epilog", "summary"}
"""Arguments of calls whose texts users read: pages of `--help`, and the OpenAPI document."""

_OPAQUE = re.compile(
    r"(?:What|Who|Whoever|Whom|Whose|Those|That which|One|There|So|Such|None of|It|They|Which|How|When|Where"
    r"|Nobody|Nothing|Everybody|Everything|Somebody|Something)\b"
)
_OPAQUE_OF_PAGES = re.compile(
    r"(?:What(?:ever)?|Who(?:ever|m|se)?|Those|That which|There|So|None of|They|Which|How|When|Where"
    r"|Nobody|Everybody|Everything|Somebody|Something|what(?:ever)?|who(?:ever|m|se)?|those|there|nobody)\b"
)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_HEADINGS = re.compile(r"^(#+ .*)$", re.MULTILINE)
_BREAKS = re.compile(r"\n\s*\n|\n(?=\||\s*(?:[-*]|\d+\.) )|(?<!\\)\|")
_MARKS = re.compile(r"^\s*(?:#+|[-*]|\d+\.)?\s*\**")


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.;:?])\s+", " ".join(text.split()))


def opaque(docstring: str) -> Iterator[str]:
    """Sentences that begin with a word that names no thing."""
    for paragraph in re.split(r"\n\s*\n", docstring):
        if paragraph.startswith("    "):
            continue
        text = paragraph.partition("Choice:")[0]
        yield from (sentence for sentence in _sentences(text) if _OPAQUE.match(sentence))


def opaque_of_page(page: str) -> Iterator[str]:
    """Sentences of a page that begin so: in paragraphs, headings, items of lists, and cells of tables."""
    for part in _BREAKS.split(_HEADINGS.sub(r"\n\1\n", _FENCED.sub("\n\n", page))):
        text = _MARKS.sub("", part)
        yield from (sentence for sentence in _sentences(text) if _OPAQUE_OF_PAGES.match(sentence))


def documented(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, those of constants and attributes included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
        body = getattr(node, "body", None)
        for before, after in pairwise(body) if isinstance(body, list) else ():
            match before, after:
                case ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(text))):
                    yield after.lineno, text


def shown(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each help text and summary; values of a formatted text are empty."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg in SHOWN:
            texts = [
                part.value
                for part in ast.walk(node.value)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            yield node.value.lineno, "".join(texts)


def _sources() -> Iterator[Path]:
    for path in tracked_files():
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in FOLDERS:
            yield path


def test_sentences_of_docstrings_begin_with_a_noun() -> None:
    read, found = 0, {}
    for path in _sources():
        for line, text in documented(path.read_text(encoding="utf-8")):
            read += 1
            if wrong := [*opaque(text)]:
                found[f"{path.relative_to(ROOT)}:{line}"] = wrong
    assert read > 5_000
    assert found == {}


def test_help_texts_and_summaries_begin_with_a_noun() -> None:
    read, found = 0, {}
    for path in _sources():
        for line, text in shown(path.read_text(encoding="utf-8")):
            read += 1
            if wrong := [*opaque(text)]:
                found[f"{path.relative_to(ROOT)}:{line}"] = wrong
    assert read > 150
    assert found == {}


def test_sentences_of_pages_begin_with_a_noun() -> None:
    pages = [path for path in tracked_files() if path.suffix == ".md" and path.name not in GENERATED]
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in pages
        if (wrong := [*opaque_of_page(path.read_text(encoding="utf-8"))])
    }
    assert len(pages) > 25
    assert found == {}


def test_an_opaque_beginning_is_found() -> None:
    assert [*opaque("Report.\n\nWhat it knows; when it was read.\n\n    What a figure says")] == [
        "What it knows;"
    ]
    assert [*documented('LIMIT = 1\n"""What it bounds."""\n')][1:] == [(2, "What it bounds.")]
    assert not [*opaque("Time of issue, Unix milliseconds.\n\nChoice: what is silent.")]


def test_an_opaque_beginning_of_a_page_or_a_help_text_is_found() -> None:
    page = (
        "# What it is\nA venue.\n\n| Way | who may |\n|---|---|\n| `a` | the owner; there it ends |\n\n"
        "- **When it ends**: now\n\n```\nWhat is fenced.\n```\n"
    )
    assert [*opaque_of_page(page)] == ["What it is", "who may", "there it ends", "When it ends**:"]
    assert [*shown('option("--a", help="Who " f"asks {name}.", default="When it ends.")')] == [
        (1, "Who asks .")
    ]
