"""Runs of pytest without imports: forks of a process that has imported the libraries of the tests.

    code, output = ForkedPytest(folder, environment).run(["-q", "tests/unit"], within_s=60.0)

The process that forks imports neither the package nor the tests: each run reads them anew from its folder. It
ends with the process that started it.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path

_LIBRARIES = (
    "pytest", "pytest_trio.plugin", "pytest_benchmark.plugin", "xdist.plugin", "hypothesis.core",
    "hypothesis.strategies", "trio.testing", "msgspec", "structlog", "httpx", "httptools", "websockets",
    "coincurve", "Crypto.Hash.keccak", "psycopg", "pyrevm", "prometheus_client", "rich.console",
)  # fmt: skip


class ForkedPytest:
    """Process that runs pytest in forks, one after the other.

    Args:
        folder: of every run.
        environment: of every run.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._output = folder / ".pytest-output"
        self._forking = subprocess.Popen(
            [sys.executable, "-P", __file__, str(self._output)],
            cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def close(self) -> None:
        """End the process that forks."""
        assert self._forking.stdin is not None
        assert self._forking.stdout is not None
        self._forking.stdin.close()
        self._forking.wait()
        self._forking.stdout.close()

    def run(self, arguments: Sequence[str], within_s: float) -> tuple[int, str]:
        """Exit code and output of a run. TimeoutError after so many seconds, at which it is killed."""
        stdin, stdout = self._forking.stdin, self._forking.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(arguments).encode() + b"\n")
        stdin.flush()
        pid = int(stdout.readline())
        is_ended = bool(select.select([stdout], [], [], within_s)[0])
        if not is_ended:
            _kill(pid)
        code = int(stdout.readline())
        if not is_ended:
            raise TimeoutError
        return code, self._output.read_text(encoding="utf-8", errors="replace")


def write_source(source: Path, text: str) -> None:
    """Write a module between two runs; its bytecode of before is not valid any more.

    Python itself compares only the size and the second of the last change: a fault of the same size that is
    taken out within a second would stay.
    """
    source.write_text(text, encoding="utf-8")
    Path(cache_from_source(str(source))).unlink(missing_ok=True)


# --- The process that forks -------------------------------------------------------------------------------


def _main(output: str) -> None:
    """Fork for each line of arguments; tell the fork's number, then its exit code."""
    for library in _LIBRARIES:
        with suppress(ImportError):
            import_module(library)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run(json.loads(line), output)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its number is not used again before `waitpid`
        _kill(pid)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _run(arguments: list[str], output: str) -> None:
    os.setsid()
    file = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    code = 3  # pytest's own for an internal error
    try:
        code = int(import_module("pytest").main(arguments))
    finally:
        sys.stdout.flush()
        os._exit(code)


def _kill(group: int) -> None:
    """Kill a run, and the processes that its tests have started."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    _main(sys.argv[1])
