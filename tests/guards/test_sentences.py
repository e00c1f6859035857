"""Docstrings of the package: each sentence begins with the thing that it is about.

    What the maker may know of it.      ->   Score report shown to the maker.
    When it was issued.                 ->   Time of issue.

`Choice:` paragraphs and indented blocks (figures, Args, Attributes) are left out.
"""

import ast
import re
from collections.abc import Iterator

from support.tracked_files import ROOT, tracked_files

FOLDERS = ("config", "crypto", "codecs", "feeds", "engine")
_OPAQUE = re.compile(
    r"(?:What|Who|Whoever|Whom|Whose|Those|That which|One|There|So|Such|None of|It|They|Which|How|When|Where"
    r"|Nobody|Nothing|Everybody|Everything|Somebody|Something)\b"
)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def opaque(docstring: str) -> Iterator[str]:
    """Sentences that begin with a word that names nothing."""
    for paragraph in re.split(r"\n\s*\n", docstring):
        if paragraph.startswith("    "):
            continue
        text = " ".join(paragraph.split()).partition("Choice:")[0]
        yield from (sentence for sentence in re.split(r"(?<=[.;:])\s+", text) if _OPAQUE.match(sentence))


def test_sentences_of_docstrings_begin_with_a_noun() -> None:
    found = {}
    for path in tracked_files():
        if path.suffix != ".py" or path.relative_to(ROOT).parts[0] not in FOLDERS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, _DOCUMENTED) and (wrong := [*opaque(ast.get_docstring(node) or "")]):
                found[f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"] = wrong
    assert found == {}


def test_an_opaque_beginning_is_found() -> None:
    assert [*opaque("Report.\n\nWhat it knows; when it was read.\n\n    What a figure says")] == [
        "What it knows;"
    ]
    assert not [*opaque("Time of issue, Unix milliseconds.\n\nChoice: what is silent.")]
