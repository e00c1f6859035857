"""Several processes behind one socket: the processes share it, are replaced, drain, and never outlive the
parent.
"""

import errno
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import structlog
import trio

from cambist.config.sections.server import ServerSettings
from cambist.engine.host.process import processes
from cambist.engine.host.process.processes import (
    ProcessNumber,
    inherited_listener,
    process_place,
    run_processes,
)
from cambist.feeds.transport.streams import listen
from support.patience import PATIENCE_S
from support.server.server_harness import GET, LAST_GET, answers, read_to_end

TRIES = 5
PROGRAM = Path(__file__).parents[1] / "support" / "server" / "server_program.py"


@asynccontextmanager
async def a_parent() -> AsyncIterator[tuple[trio.Process, int]]:
    with trio.fail_after(PATIENCE_S * 2):
        parent = await trio.lowlevel.open_process([sys.executable, str(PROGRAM), "parent"], stdout=-1)
        assert parent.stdout
        try:
            async with parent.stdout:
                port = int((await parent.stdout.receive_some(100)).decode())
                yield parent, port
        finally:
            if parent.returncode is None:
                parent.kill()
                await parent.wait()


async def who(port: int) -> tuple[int, int, int]:
    """Process id, index and count of who answers."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(LAST_GET)
        (answer,) = answers(await read_to_end(stream))
        pid, index, count = map(int, answer.body.split())
        return pid, index, count


async def everyone(port: int, but: frozenset[int] = frozenset()) -> dict[int, int]:
    """Process ids by index, once both answer and none of them is in `but`."""
    while True:
        found: dict[int, int] = {}
        async with trio.open_nursery() as nursery:
            for _ in range(32):
                nursery.start_soon(_note, port, found)
        if len(found) == 2 and not but & set(found.values()):
            return found
        await trio.lowlevel.checkpoint()


async def _note(port: int, found: dict[int, int]) -> None:
    pid, index, count = await who(port)
    assert count == 2
    found[index] = pid


async def test_children_share_the_socket_are_replaced_and_drain() -> None:
    async with a_parent() as (parent, port):
        first = await everyone(port)
        os.kill(first[0], signal.SIGKILL)
        second = await everyone(port, but=frozenset({first[0]}))
        assert second[1] == first[1]
        parent.terminate()
        assert await parent.wait() == 0
        await _until_refused(port)


@asynccontextmanager
async def connections(port: int, count: int, *, at_once: bool) -> AsyncIterator[Counter[int]]:
    """Open connections; how many each process has, by its index."""
    streams: list[trio.SocketStream] = []
    found: Counter[int] = Counter()

    async def connect() -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        streams.append(stream)
        if not at_once:
            found[await _ask_who(stream)] += 1

    async with AsyncExitStack() as stack:
        if at_once:
            async with trio.open_nursery() as nursery:
                for _ in range(count):
                    nursery.start_soon(connect)
            for stream in streams:
                found[await _ask_who(stream)] += 1
        else:
            for _ in range(count):
                await connect()
        for stream in streams:
            stack.push_async_callback(stream.aclose)
        yield found


async def _ask_who(stream: trio.SocketStream) -> int:
    await stream.send_all(GET)
    _, index, _ = (await stream.receive_some(1_000)).rpartition(b"\r\n\r\n")[2].split()
    return int(index)


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
async def test_each_process_gets_its_share_of_the_connections(at_once: bool) -> None:
    """On a busy machine a process may not run for longer than the other waits for it: most tries are even."""
    async with a_parent() as (_, port):
        await everyone(port)
        shares = []
        for _ in range(TRIES):
            async with connections(port, 64, at_once=at_once) as found:
                shares.append(min(found[0], found[1]))
        assert median(shares) >= 30, shares


async def test_a_process_that_was_started_anew_gets_the_next_connections() -> None:
    async with a_parent() as (_, port):
        pids = await everyone(port)
        async with connections(port, 32, at_once=True) as before:
            os.kill(pids[0], signal.SIGKILL)
            kept = before[1]
            await everyone(port, but=frozenset({pids[0]}))
            shares = []
            for _ in range(TRIES):
                async with connections(port, kept, at_once=True) as found:
                    shares.append(found[0])
            assert median(shares) >= kept - 4, shares


async def test_a_process_that_stands_still_leaves_its_connections_to_the_other() -> None:
    async with a_parent() as (_, port):
        pids = await everyone(port)
        os.kill(pids[0], signal.SIGSTOP)
        async with connections(port, 64, at_once=True) as found:
            assert found == {1: 64}
        os.kill(pids[0], signal.SIGCONT)


async def test_children_end_when_their_parent_is_killed() -> None:
    async with a_parent() as (parent, port):
        await everyone(port)
        parent.kill()
        await parent.wait()
        await _until_refused(port)


async def test_children_that_keep_crashing_end_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PROCESS_PAUSE_S", 0.001)
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    with listen("127.0.0.1", 0) as listener, structlog.testing.capture_logs() as logs:
        with trio.fail_after(PATIENCE_S):
            assert await run_processes(ServerSettings(processes=2, drain_s=1), command, listener) == 1
    assert max(entry["in_a_row"] for entry in logs) == 5
    assert {entry["status"] for entry in logs} <= {3, -signal.SIGTERM}


async def test_a_child_that_cannot_be_started_is_a_crash_and_no_end_of_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes, "PROCESS_PAUSE_S", 0.001)
    start = trio.lowlevel.open_process
    killed = tmp_path / "told"
    program = (
        "import signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (open({str(killed)!r}, 'w').close(), sys.exit(0)))\n"
        f"open({str(tmp_path / 'ready')!r}, 'w').close()\n"
        "time.sleep(60)\n"
    )

    async def start_one(command: Any, **options: Any) -> trio.Process:
        if options["env"]["CAMBIST_PROCESS_INDEX"] == "1":
            while not (tmp_path / "ready").exists():
                await trio.lowlevel.checkpoint()
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        return await start(command, **options)

    monkeypatch.setattr(trio.lowlevel, "open_process", start_one)
    with listen("127.0.0.1", 0) as listener, structlog.testing.capture_logs() as logs:
        with trio.fail_after(PATIENCE_S):
            command = [sys.executable, "-c", program]
            assert await run_processes(ServerSettings(processes=2, drain_s=5), command, listener) == 1
    assert [entry["in_a_row"] for entry in logs] == [1, 2, 3, 4, 5]
    assert logs[0]["status"] == "not started: Resource temporarily unavailable"
    assert killed.exists()


async def test_the_parent_lets_go_of_the_socket_when_the_end_begins() -> None:
    """A child that takes long to end leaves a socket on which nobody would be answered."""
    program = (
        "import os, signal, sys, time\n"
        "os.close(int(os.environ['CAMBIST_LISTENER_FD']))\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1), sys.exit(0)))\n"
        "os.kill(os.getppid(), signal.SIGTERM)\n"
        "time.sleep(60)\n"
    )
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    command = [sys.executable, "-c", program]
    done = trio.Event()

    async def run() -> None:
        assert await run_processes(ServerSettings(processes=1, drain_s=5), command, listener) == 0
        done.set()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await _until_refused(port)
            assert not done.is_set()


async def _until_refused(port: int) -> None:
    """Return when nobody listens any more."""
    while True:
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
        except OSError:
            return
        await stream.aclose()
        await trio.sleep(0.01)


async def test_nothing_is_left_open() -> None:
    command = [sys.executable, "-X", "dev", str(PROGRAM), "parent"]
    with trio.fail_after(PATIENCE_S * 2):
        parent = await trio.lowlevel.open_process(command, stdout=-1, stderr=-1)
        assert parent.stdout
        assert parent.stderr
        port = int((await parent.stdout.receive_some(100)).decode())
        await everyone(port)
        parent.terminate()
        said = b""
        while piece := await parent.stderr.receive_some():
            said += piece
        assert await parent.wait() == 0
        await parent.stdout.aclose()
        await parent.stderr.aclose()
    assert b"Warning" not in said, said.decode()


async def test_a_process_without_a_parent_is_the_only_one() -> None:
    assert inherited_listener() is None
    assert process_place() == ProcessNumber(0, 1)
