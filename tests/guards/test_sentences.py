"""Docstrings of the package: each sentence begins with the thing that it is about.

    What the maker may know of it.      ->   Score report shown to the maker.
    When it was issued.                 ->   Time of issue.

`Choice:` paragraphs and indented blocks (figures, Args, Attributes) are left out.
"""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

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


def test_sentences_of_docstrings_begin_with_a_noun() -> None:
    read, found = 0, {}
    for path in tracked_files():
        if path.suffix != ".py" or path.relative_to(ROOT).parts[0] not in FOLDERS:
            continue
        for line, text in documented(path.read_text(encoding="utf-8")):
            read += 1
            if wrong := [*opaque(text)]:
                found[f"{path.relative_to(ROOT)}:{line}"] = wrong
    assert read > 5_000
    assert found == {}


def test_an_opaque_beginning_is_found() -> None:
    assert [*opaque("Report.\n\nWhat it knows; when it was read.\n\n    What a figure says")] == [
        "What it knows;"
    ]
    assert [*documented('LIMIT = 1\n"""What it bounds."""\n')][1:] == [(2, "What it bounds.")]
    assert not [*opaque("Time of issue, Unix milliseconds.\n\nChoice: what is silent.")]
