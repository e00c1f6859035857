"""Processes of a load test: a server on a port that the system chooses, and a load, each pinned to a core.

A server is ready when it has answered a request, without a fixed waiting time. Each process is ended by its
own id. The error of a failed process shows its standard error.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from bench.load_answers import AnswerFault, take_answer
from bench.maker_work import signed_request, wall_ms
from bench.measured import Measured, Wrk
from cambist.feeds.transport.streams import listen

ROOT = Path(__file__).parents[1]
HOST = "127.0.0.1"
READY_S = 60.0
END_S = 10.0
LOAD_S = 180.0
ERRORS_SHOWN = 3_000
_PAUSE_S = 0.05
MAKE_TARGET = {
    ".venv": "make setup",
    ".venv-load": "make setup-load",
    ".venv-peers": "make setup-peers",
}
_READY_FROM = 1 << 40  # numbers of the first requests, which no load uses
_PINNED = (
    "import os, sys\n"
    "if sys.argv[1]: os.sched_setaffinity(0, {int(sys.argv[1])})\n"
    "os.execvp(sys.argv[2], sys.argv[2:])"
)


class LoadError(Exception):
    """Error: a server cannot be measured, or an answer was wrong."""


def cores() -> tuple[int | None, int | None]:
    """Return (the server's CPU core, the load's CPU core).

    Both are None if processes cannot be pinned or only one core exists.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    ours = sorted(os.sched_getaffinity(0))
    return (ours[0], ours[-1]) if len(ours) > 1 else (None, None)


def pinned(core: int | None, command: Sequence[str]) -> list[str]:
    """Extend a command so that it runs on one CPU core; the started process keeps its process id."""
    return [sys.executable, "-c", _PINNED, "" if core is None else str(core), *command]


def python_of(environment: str) -> str:
    """Return the path of the Python interpreter of a virtual environment of the repository.

    Raises:
        LoadError: the environment is missing; names the command that makes it.
    """
    path = ROOT / environment / "bin" / "python"
    if not path.exists():
        raise LoadError(f"{environment} is missing: {MAKE_TARGET[environment]}")
    return str(path)


class ServerProcess:
    """A server under load as a child process, from its start to its end.

    Args:
        name: the server's name in errors.
        environment: virtual environment whose interpreter runs the server.
        module: the server's module.
        more: further command-line options.
        core: core to pin the server to.
        request: first request; by default a signed request for a firm quote.
        shows: bytes that a right answer to the first request contains.

    Attributes:
        port, pid: port and id of the listening process.
    """

    def __init__(
        self,
        name: str,
        environment: str,
        module: str,
        more: Sequence[str],
        core: int | None,
        *,
        request: bytes = b"",
        shows: bytes = b'"signature"',
    ) -> None:
        self.name = name
        self._request = request
        self._shows = shows
        self._environment = environment
        self._errors = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed by __exit__
        with listen(HOST, 0) as listener:
            self.port: int = listener.getsockname()[1]
            command = [python_of(environment), "-m", module, "--fd", str(listener.fileno()), *more]
            self._process = subprocess.Popen(
                pinned(core, command),
                cwd=ROOT,
                pass_fds=[listener.fileno()],
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
            )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        try:
            self._await_first_answer()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _await_first_answer(self) -> None:
        """Repeat the first request until the server is ready.

        Before that, a server may answer 503; one that makes a socket of its own answers nothing.
        """
        ends = time.perf_counter() + READY_S
        answer = self._first_answer()
        while (
            answer.startswith((b"HTTP/1.1 503", b" (["))
            and self._process.poll() is None
            and time.perf_counter() < ends
        ):
            time.sleep(_PAUSE_S)
            answer = self._first_answer()
        if not answer.startswith(b"HTTP/1.1 200") or self._shows not in answer:
            raise LoadError(self._said(f"{self.name} gave no quote: {answer[:300]!r}"))

    def _first_answer(self) -> bytes:
        """Return the answer to the first request; if the connection fails, its bytes and the error's text."""
        answer = b""
        try:
            with socket.create_connection((HOST, self.port), READY_S) as connection:
                connection.sendall(self._request or signed_request(_READY_FROM, wall_ms()))
                while (taken := take_answer(answer, 0)) is None:
                    piece = connection.recv(65_536)
                    if not piece:
                        return answer
                    answer += piece
        except (OSError, AnswerFault) as error:
            return answer + f" ({error})".encode()
        return answer[: taken[2]]

    def _said(self, text: str) -> str:
        """Make the text of an error: the failure, the server's standard error, and a remedy."""
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")[-ERRORS_SHOWN:]
        if "No module named" in said:
            text += f"; {self._environment} lacks a package: {MAKE_TARGET[self._environment]}"
        return f"{text}\n{said}" if said else text


def run_generator(
    server: ServerProcess, core: int | None, *arguments: str, module: str = "bench.load_generator"
) -> Measured:
    """Measure a server once with a load generator, a process of its own.

    Args:
        core: core to pin the generator to.
        arguments: the generator's command-line options.
        module: the generator's module.

    Raises:
        LoadError: the generator failed, or an answer was wrong.
    """
    command = [python_of(".venv-load"), "-m", module, *arguments]
    command += ["--host", HOST, "--port", str(server.port), "--server-pid", str(server.pid)]
    done = subprocess.run(pinned(core, command), cwd=ROOT, capture_output=True, check=False, timeout=LOAD_S)
    if done.returncode:
        said = done.stderr.decode(errors="replace")[-ERRORS_SHOWN:]
        hint = f"; {MAKE_TARGET['.venv-load']}" if "No module named" in said else ""
        raise LoadError(f"the load generator failed{hint}\n{said}")
    measured = msgspec.json.decode(done.stdout, type=Measured)
    if measured.failures:
        raise LoadError(f"{server.name}: " + "; ".join(measured.failures))
    return measured


def has_wrk() -> bool:
    """Whether the load generator wrk, by which throughput is measured a second time, is installed."""
    return shutil.which("wrk") is not None


def run_wrk(
    server: ServerProcess, core: int | None, *, clients: int, seconds: int, first: int, count: int
) -> Wrk:
    """Measure a server once with wrk, which sends `count` requests signed for this measurement.

    Args:
        first: number of the first request.

    Raises:
        LoadError: wrk failed, or not every answer was a success.
    """
    with tempfile.NamedTemporaryFile() as requests:
        now_ms = wall_ms()
        for number in range(first, first + count):
            request = signed_request(number, now_ms)
            requests.write(b"%08d%b" % (len(request), request))
        requests.flush()
        script = str(ROOT / "bench" / "peers" / "firm.lua")
        command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "10s", "-s", script]
        command += [f"http://{HOST}:{server.port}", "--", requests.name]
        done = subprocess.run(
            pinned(core, command), cwd=ROOT, capture_output=True, text=True, check=False, timeout=LOAD_S
        )
    line = done.stdout.strip().rpartition("\n")[2]
    if done.returncode or not line.startswith("{"):
        raise LoadError(f"wrk failed: {done.stdout}{done.stderr}")
    found = msgspec.json.decode(line, type=Wrk)
    if found.failures:
        raise LoadError(f"{server.name}: wrk counts {found.failures} answers or connections that failed")
    return found
