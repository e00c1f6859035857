"""A peer as a process: `run(operation, count)` makes it repeat an operation and waits until it is done."""

import subprocess
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]


class Peer:
    """One line asks ("sign 50"), one line answers ("done")."""

    def __init__(self, python: Path, script: Path) -> None:
        if not python.exists():
            raise FileNotFoundError(f"{python} is missing: make setup-peers")
        self._process = subprocess.Popen(
            [python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def run(self, operation: str, count: int) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{operation} {count}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"the peer ended with {self._process.wait()}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def eth_account_peer() -> Peer:
    return Peer(ROOT / ".venv-peers" / "bin" / "python", ROOT / "bench" / "peers" / "eth_account_peer.py")
