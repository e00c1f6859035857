"""Child process of another implementation that answers one line for each line that it reads."""

import subprocess
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"


class Peer:
    """A child process that answers lines until it is closed."""

    def __init__(self, *command: str | Path, folder: Path = ROOT) -> None:
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=folder,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, line: str) -> str:
        """Send one line to the child process and wait for its answer, one line."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line + "\n")
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
    """Start a child process that signs and recovers signatures by eth-account.

    A line such as `sign 50` or `recover 50` names the operation and the number of its repetitions.
    """
    if not PEERS_PYTHON.exists():
        raise FileNotFoundError(f"{PEERS_PYTHON} is missing: make setup-peers")
    return Peer(PEERS_PYTHON, ROOT / "bench" / "peers" / "eth_account_peer.py")
