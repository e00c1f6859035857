"""Names of types are unique: no two classes and no two type aliases of the package share a name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYERS = ("config", "crypto", "codecs", "feeds", "engine")

SHARED: dict[str, str] = {}
"""Name that two or more files define on purpose -> the reason."""

_is_type_name = re.compile(r"_?[A-Z]\w*[a-z]\w*").fullmatch


def type_names(source: str) -> Iterator[str]:
    """Names of all classes of a module, and of its own type aliases; type variables are left out."""
    tree = ast.parse(source)
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                is_variable = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "TypeVar"
                if _is_type_name(name) and not is_variable:
                    yield name


def shared_names(modules: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Name -> the modules that define it, for names with several definitions.

    Args:
        modules: (path, source) of each.
    """
    places = defaultdict(list)
    for path, source in modules:
        for name in type_names(source):
            places[name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def modules_of(root: Path) -> Iterator[tuple[str, str]]:
    """(path, source) of each module of the package."""
    for layer in LAYERS:
        for path in sorted((root / layer).rglob("*.py")):
            yield str(path.relative_to(root)), path.read_text(encoding="utf-8")


def test_a_class_name_stands_for_one_thing() -> None:
    shared = shared_names(modules_of(ROOT))
    assert {name: paths for name, paths in shared.items() if name not in SHARED} == {}


def test_a_listed_name_is_shared_and_has_a_reason() -> None:
    assert SHARED.keys() <= shared_names(modules_of(ROOT)).keys()
    assert all(SHARED.values())


def test_the_glossary_names_files_that_exist() -> None:
    rows = re.findall(
        r"^\| .* \|(.*)\|$", (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    places = [place for cell in rows for place in re.findall(r"`([^`]+)`", cell)]
    assert len(places) > 100
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_names_are_found_in_classes_and_aliases() -> None:
    modules = [
        ("a.py", "class Call: ...\nPlace = tuple[int, int]\nT = TypeVar('T')\nItem = TypeVar('Item')\n"),
        (
            "b.py",
            "def f():\n    class Call: ...\nPlace: Alias = 'str'\nItem = TypeVar('Item')\nLIMIT = 1\n",
        ),
        ("c.py", "LIMIT = 2\nclass Other: ...\n"),
    ]
    assert shared_names(modules) == {"Call": ["a.py", "b.py"], "Place": ["a.py", "b.py"]}
