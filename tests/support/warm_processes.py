"""Processes that start without imports: forks of a process that has imported the modules, one in each worker.

    with log.open("wb") as file:
        process = await warm_process("cambist.engine.cli:main", "serve", "--config", path, stdout=file)
    process.kill()
    assert await process.ended() == -signal.SIGKILL

Each has arguments, environment, folder, files and signals of its own, as if its function had been called from
a command line. The tests of the commands start them the long way, and so test the start itself.

The process that forks runs `python -m support.warm_processes` and ends with the worker. Each forked process
has another one as its parent, which waits for its end and reports it.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import trio

_REQUEST_BYTES_MAX = 1 << 17
_FILES_MAX = 8
_NUMBER = struct.Struct("!i")
_TESTS = Path(__file__).parents[1]


class WarmProcess:
    """Counterpart of `subprocess.Popen` for a forked process.

    Attributes:
        pid: of the process; nobody else has it before its end was noticed.
    """

    def __init__(self, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self._status = status
        self._returncode: int | None = None

    @property
    def returncode(self) -> int | None:
        """The exit status, or the number of the signal that ended it, below zero; None while it runs."""
        if self._returncode is None:
            try:
                told = self._status.recv(_NUMBER.size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            (self._returncode,) = _NUMBER.unpack(told)
            self._status.close()
        return self._returncode

    def kill(self) -> None:
        """kill -9, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Returns `returncode` at its end; subprocess.TimeoutExpired after so many seconds."""
        if self._returncode is None:
            select.select([self._status], [], [], timeout)
        if (code := self.returncode) is None:
            raise subprocess.TimeoutExpired("a warm process", timeout)
        return code

    async def ended(self) -> int:
        """Returns `returncode` at its end."""
        while (code := self.returncode) is None:
            await trio.lowlevel.wait_readable(self._status)
        return code


def start_warm(
    function: str,
    *arguments: str,
    needs: Sequence[str] = (),
    stdout: int = subprocess.DEVNULL,
    stderr: int = 2,
    inherited: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
    process_group: int | None = None,
) -> WarmProcess:
    """Start a process that calls a function, with the arguments in sys.argv.

    Args:
        function: `module:name`.
        needs: other modules that it will import.
        stdout, stderr: descriptors.
        inherited: descriptors that the process has too; their numbers there are its last arguments.
        env: this process's own unless it is given.
        process_group: as `subprocess.Popen`'s.
    """
    asked = {
        "function": function,
        "needs": needs,
        "argv": [function, *arguments],
        "env": dict(os.environ if env is None else env),
        "folder": str(Path.cwd()),
        "process_group": process_group,
    }
    status, theirs = socket.socketpair()
    with theirs, Path(os.devnull).open("wb") as nowhere:
        files = [nowhere.fileno() if file == subprocess.DEVNULL else file for file in (stdout, stderr)]
        socket.send_fds(_forked(), [json.dumps(asked).encode()], [theirs.fileno(), *files, *inherited])
    (pid,) = _NUMBER.unpack(status.recv(_NUMBER.size))
    return WarmProcess(pid, status)


async def warm_process(
    function: str,
    *arguments: str,
    stdout: IO[bytes],
    stderr: IO[bytes] | None = None,
    **how: Any,
) -> WarmProcess:
    """As `start_warm`, while other tasks go on."""
    how |= {"stdout": stdout.fileno(), "stderr": 2 if stderr is None else stderr.fileno()}
    return await trio.to_thread.run_sync(partial(start_warm, function, *arguments, **how))


@cache
def _forked() -> socket.socket:
    """Socket to the process that forks."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "support.warm_processes", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": f"{_TESTS}{os.pathsep}{_TESTS.parent}"},
        )
    atexit.register(_end, process, ours)
    return ours


def _end(process: subprocess.Popen[bytes], requests: socket.socket) -> None:
    requests.close()
    process.wait()


# --- The process that forks -------------------------------------------------------------------------------


def _main(descriptor: str) -> None:
    """Fork for each request; go on as the process that was asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import_module("support.stretched_bounds")  # as in the test's process
    with socket.socket(fileno=int(descriptor)) as requests:
        while True:
            text, files, _, _ = socket.recv_fds(requests, _REQUEST_BYTES_MAX, _FILES_MAX)
            _forget_ended()
            if not text:
                return
            asked = json.loads(text)
            called = _imported(asked["function"], asked["needs"])
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
    pid = os.fork()
    if pid:
        _tell_of(pid, *files)
        os._exit(0)
    _become(asked, *files)
    called()


def _imported(function: str, needs: Sequence[str]) -> Callable[[], object]:
    before = len(sys.modules)
    module, _, name = function.partition(":")
    called: Callable[[], object] = getattr(import_module(module), name)
    for other in needs:
        import_module(other)
    if len(sys.modules) != before:
        gc.collect()
        gc.freeze()
    return called


def _forget_ended() -> None:
    """Reap the parents that have reported an end."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _tell_of(pid: int, status: int, *files: int) -> None:
    """Send a process's number and exit status; the process is reaped once the receiver has the number."""
    for file in files:
        os.close(file)
    os.write(status, _NUMBER.pack(pid))
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert end
    os.write(status, _NUMBER.pack(end.si_status if end.si_code == os.CLD_EXITED else -end.si_status))
    os.read(status, 1)
    os.waitpid(pid, 0)


def _become(asked: dict[str, Any], status: int, stdout: int, stderr: int, *inherited: int) -> None:
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    for file in (status, stdout, stderr):
        os.close(file)
    if asked["process_group"] is not None:
        os.setpgid(0, asked["process_group"])
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["folder"])
    sys.argv = [*asked["argv"], *map(str, inherited)]
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    _main(sys.argv[1])
