"""kill -9 of the store process, the engine and the database server under load: no acknowledged unit is lost
and no unit is applied twice; an unacknowledged unit may be stored or not. `make test-long` kills twenty times
each.

A kill does not test the disk: `test_a_batch_is_on_the_disk_before_it_is_acknowledged` does.
"""

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import PIPE

import pytest
import trio

from cambist.config.timeouts import STORE_PAUSE_S
from cambist.engine.store.process import process_link
from cambist.engine.store.units import Done
from support.patience import PATIENCE_S, until
from support.programs import lack
from support.store.store_work import (
    TASKS,
    Load,
    is_running,
    now_ms,
    numbers_of,
    operation,
    store_at,
    store_processes,
    written,
)
from support.warm_processes import WarmProcess, warm_process

pytestmark = pytest.mark.seldom

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "3"))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'cambist.sqlite3'}"
    database: str = request.getfixturevalue("postgres_url")
    return database


class Engine:
    """An engine in a process of its own, which says what it heard from its store."""

    def __init__(self, process: WarmProcess, stdout: trio.lowlevel.FdStream) -> None:
        self.process = process
        self.pid = process.pid
        self.text = ""
        self._stdout = stdout

    async def listen(self) -> None:
        async for piece in self._stdout:
            self.text += piece.decode()

    def has_heard(self, count: int) -> bool:
        """Whether so many operations were acknowledged."""
        return self.text.count("ack") >= count

    @property
    def lines(self) -> list[str]:
        """Complete lines of the process's output."""
        return self.text.splitlines()[: self.text.count("\n")]


@asynccontextmanager
async def an_engine(mode: str, url: str, first: int = 0) -> AsyncIterator[Engine]:
    """A process that writes to a store, until it ends or is killed; all it said was heard by then."""
    ours, theirs = os.pipe()
    async with trio.lowlevel.FdStream(ours) as stdout, trio.open_nursery() as nursery:
        with os.fdopen(theirs, "wb") as file:
            process = await warm_process(
                "support.store.store_work:main", mode, url, str(first), stdout=file, process_group=0
            )
        engine = Engine(process, stdout)
        nursery.start_soon(engine.listen)
        try:
            await until(lambda: "ready" in engine.lines)
            yield engine
        finally:
            if process.returncode is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.ended()


async def acknowledged(load: Load, count: int) -> None:
    """Return once so many more operations are acknowledged."""
    enough = len(load.acknowledged) + count
    await until(lambda: len(load.acknowledged) >= enough)


async def refused(load: Load) -> None:
    """Return once one more operation was refused."""
    before = len(load.refused)
    await until(lambda: len(load.refused) > before)


def is_replaced(process: int) -> bool:
    return store_processes() not in ([], [process])


def has_ended(process: int) -> bool:
    return not is_running(process)


async def test_a_killed_store_process_loses_nothing_and_repeats_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_link, "STORE_PAUSE_S_MAX", STORE_PAUSE_S)
    load = Load()
    async with store_at(url) as store:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.run, store)
            for _ in range(ROUNDS):
                await acknowledged(load, 4 * TASKS)
                (process,) = store_processes()
                os.kill(process, signal.SIGKILL)
                await until(partial(is_replaced, process))
            await acknowledged(load, TASKS)
            load.stopped = True
        there = await written(store)
    assert load.acknowledged <= there
    assert there <= load.acknowledged | load.refused


async def test_a_killed_engine_loses_nothing_and_repeats_nothing(url: str) -> None:
    heard: set[int] = set()
    for number in range(ROUNDS):
        async with an_engine("load", url, number * 1_000_000) as engine:
            await until(partial(engine.has_heard, 4 * TASKS))
            (process,) = store_processes(engine.pid)
            os.kill(engine.pid, signal.SIGKILL)
        heard |= numbers_of(engine.lines, "ack")
        await until(partial(has_ended, process))
    async with store_at(url) as store:
        assert heard <= await written(store)


async def test_a_killed_server_loses_nothing_and_repeats_nothing() -> None:
    from support.store.postgres import running_postgres

    with running_postgres() as server:
        load = Load()
        async with store_at(server.migrated_database()) as store:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(load.run, store)
                for _ in range(ROUNDS):
                    await acknowledged(load, 4 * TASKS)
                    await trio.to_thread.run_sync(server.stop, "immediate")
                    await refused(load)
                    await trio.to_thread.run_sync(server.start)
                await acknowledged(load, TASKS)
                load.stopped = True
            there = await written(store)
    assert load.acknowledged <= there
    assert there <= load.acknowledged | load.refused


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_all_processes_drains_the_engine_before_the_store_ends(
    url: str, number: signal.Signals
) -> None:
    async with an_engine("load", url) as engine:
        await until(partial(engine.has_heard, 4 * TASKS))
        (process,) = store_processes(engine.pid)
        os.killpg(engine.pid, number)
        with trio.fail_after(PATIENCE_S):
            assert await engine.process.ended() == 0
    assert not is_running(process)
    assert {line for line in engine.lines if line.startswith("reason")} <= {"reason the store is closed"}
    async with store_at(url) as store:
        assert await written(store) == numbers_of(engine.lines, "ack")


async def test_what_a_frozen_leaseholder_writes_late_is_not_applied(postgres_url: str) -> None:
    url = postgres_url
    async with store_at(url) as store, an_engine("hold", url) as engine:
        await until(partial(engine.has_heard, 4 * TASKS))
        frozen = [engine.pid, *store_processes(engine.pid)]
        for process in frozen:
            os.kill(process, signal.SIGSTOP)
        claimed = 0
        with trio.fail_after(PATIENCE_S):
            while claimed < 256:  # its open write keeps its shards until the server gives it up
                later_ms = now_ms() + 60_000
                claimed = len(await store.lease("another", 256, later_ms, 60_000))
                await trio.sleep(0.01)
        before = await written(store)
        for process in frozen:
            os.kill(process, signal.SIGCONT)
        with trio.fail_after(PATIENCE_S):
            assert await engine.process.ended() == 0
        assert await written(store) == before
    assert len(numbers_of(engine.lines, "fenced")) >= 2 * TASKS
    assert numbers_of(engine.lines, "ack") <= before


@pytest.mark.needs("strace")
async def test_a_batch_is_on_the_disk_before_it_is_acknowledged(tmp_path: Path) -> None:
    """By hand: `strace -f -e trace=fdatasync,sendto -p PID` of the store process under load."""
    writes = 50
    log = tmp_path / "calls"
    async with store_at(f"sqlite:{tmp_path / 'cambist.sqlite3'}") as store:
        (process,) = store_processes()
        command = ["strace", "-f", "-e", "trace=fdatasync,sendto", "-o", str(log), "-p", str(process)]
        tracer = await trio.lowlevel.open_process(command, stderr=PIPE)
        assert tracer.stderr
        async with tracer.stderr:
            with trio.fail_after(PATIENCE_S):
                said = bytes(await tracer.stderr.receive_some())
            if b"attached" not in said:
                await tracer.wait()
                lack("ptrace")
            for number in range(writes):
                assert await store.write(operation(number)) == Done()
            tracer.send_signal(signal.SIGINT)
            with trio.fail_after(PATIENCE_S):
                await tracer.wait()
    calls = re.findall(r"(fdatasync|sendto)\(", log.read_text())
    assert calls.count("sendto") == writes
    synced = "".join("s" if call == "fdatasync" else "a" for call in calls)
    assert re.fullmatch("(s+a)+", synced), "an acknowledgement without a write to the disk"
    assert calls.count("fdatasync") <= writes + 2, "more than one for a batch"
