"""Draws mutants of all contracts and of the money paths by a seed. Pure but for reading.

A mutant's place in the draw is the hash of the seed and of its text: a change of one source leaves the order
of the mutants of all others as it is. Each piece of text has one mutant in a draw. A draw leaves out the
mutants of equivalent.toml, which behave as the original does; each entry there says why.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mutations.contract_faults import Node, contract_faults
from mutations.edits import as_mutant
from mutations.mutants import CONTRACTS, TESTS, Mutant, contract_tests
from mutations.python_faults import python_faults

HERE = Path(__file__).parent
ROOT = TESTS.parent
_NO_CONTRACTS = "dev/"
_FIRST_MAX = 8
"""Number of test files of a Python mutant that run before all others."""
_FOLDERS = ("unit", "property", "conformance", "integration", "e2e")
"""Folders of tests, quick ones first."""


def equivalents() -> list[dict[str, str]]:
    """Entries of equivalent.toml: file, old, new, reason."""
    text = (HERE / "equivalent.toml").read_text(encoding="utf-8")
    entries: list[dict[str, str]] = tomllib.loads(text).get("equivalent", [])
    return entries


def python_mutants() -> list[Mutant]:
    """All mutants of the money paths."""
    found: list[Mutant] = []
    for path in python_files():
        source = (ROOT / path).read_text(encoding="utf-8")
        found.extend(as_mutant(path.as_posix(), source, edit) for edit in python_faults(source))
    return found


def contract_mutants(trees: dict[str, Node]) -> list[Mutant]:
    """All mutants of the contracts but those for devnets, by the compiler's tree of each source."""
    found: list[Mutant] = []
    for name in sorted(name for name in trees if not name.startswith(_NO_CONTRACTS)):
        source = (ROOT / CONTRACTS / name).read_text(encoding="utf-8")
        found.extend(as_mutant(name, source, edit) for edit in contract_faults(source, trees[name]))
    return found


def drawn(mutants: Iterable[Mutant], seed: str) -> Iterator[Mutant]:
    """Mutants in the order of a seed, one for each piece of text, without equivalents."""
    left_out = {(entry["file"], entry["old"], entry["new"]) for entry in equivalents()}
    taken: set[tuple[str, str]] = set()
    for mutant in sorted(mutants, key=lambda one: _rank(one, seed)):
        is_left_out = (mutant.file, mutant.old, mutant.new) in left_out
        if not is_left_out and (mutant.file, mutant.old) not in taken:
            taken.add((mutant.file, mutant.old))
            yield mutant


def _rank(mutant: Mutant, seed: str) -> bytes:
    text = f"{seed}\0{mutant.file}\0{mutant.old}\0{mutant.new}"
    return hashlib.sha256(text.encode()).digest()


def python_files() -> list[Path]:
    """Sources of the money paths, relative to the repository."""
    names = {path for entry in _table()["python"] for glob in entry["files"] for path in ROOT.glob(glob)}
    return sorted(path.relative_to(ROOT) for path in names if path.name != "__init__.py")


def contract_files() -> list[str]:
    """Contracts of the table, relative to their folder."""
    return sorted(name for entry in _table()["contract"] for name in entry["files"])


def stages(mutant: Mutant) -> list[list[Path]]:
    """Test files of the two runs that judge a drawn mutant, near ones first, relative to the repository."""
    if mutant.is_of_contract:
        near = _tests(entry for entry in _table()["contract"] if mutant.file in entry["files"])
        return [near, [path for path in contract_tests() if path not in near]]
    known = _tests(
        entry
        for entry in _table()["python"]
        if any(ROOT / mutant.path in ROOT.glob(glob) for glob in entry["files"])
    )
    ordered = [*dict.fromkeys([*importing_tests(mutant.path), *known])]
    return [ordered[:_FIRST_MAX], ordered[_FIRST_MAX:]]


def importing_tests(module: Path) -> list[Path]:
    """Test files that import a module, quick folders first, and files with the fewest imports first."""
    parent, name = re.escape(".".join(["cambist", *module.parent.parts])), module.stem
    imports = re.compile(rf"from {parent}(?:\.{name} import| import (?:\([^)]*|[^\n(]*)\b{name}\b)")
    found: list[tuple[int, int, Path]] = []
    for rank, folder in enumerate(_FOLDERS):
        for path in sorted((TESTS / folder).rglob("test_*.py")):
            text = path.read_text(encoding="utf-8")
            if imports.search(text) is not None:
                found.append((rank, text.count("\nfrom cambist."), path.relative_to(ROOT)))
    return [path for _, _, path in sorted(found)]


def _tests(entries: Iterable[dict[str, Any]]) -> list[Path]:
    globs = [glob for entry in entries for glob in entry["tests"]]
    return [path.relative_to(ROOT) for glob in globs for path in sorted(TESTS.glob(glob))]


def _table() -> dict[str, Any]:
    return tomllib.loads((HERE / "money_paths.toml").read_text(encoding="utf-8"))
