"""The store in a process of its own: opening, refusing, dying, coming back, hanging, closing."""

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
import trio
import trio.testing
from bench.peers.ports import held_port, port_of

from cambist.config.errors import ConfigError, StoreError, StoreFull, StoreUnavailable
from cambist.config.sections.store import StoreSettings
from cambist.config.settings import Settings
from cambist.config.timeouts import STORE_OUTCOME_S
from cambist.engine.store.process import process, process_link
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import OrderDocument
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELTA_DOCUMENT
from cambist.engine.store.units import Done, Put, Unit, put
from support.patience import PATIENCE_S, until
from support.store.store_work import Load, is_running, now_ms, operation, store_at, store_processes, written
from support.store.stores import a_delta_order, found, kept, submission


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cambist.sqlite3"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:{path}"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hung processes are given up soon."""
    monkeypatch.setattr(process_link, "STORE_OUTCOME_S", 0.3)


class Frozen:
    """The store process stands still during a block."""

    def __enter__(self) -> int:
        (self._pid,) = store_processes()
        os.kill(self._pid, signal.SIGSTOP)
        return self._pid

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):  # the process was killed
            os.kill(self._pid, signal.SIGCONT)


# --- Its start ----------------------------------------------------------------------------------------


def test_it_starts_without_what_logs_and_without_settings() -> None:
    command = [sys.executable, "-X", "importtime", "-P", "-m", process.__name__]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    imported = {
        line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:")
    }
    assert "cambist.engine.store.sqlite.sqlite" in imported
    assert not imported & {"structlog", "asyncio", "rich", "cambist.config.settings", "psycopg"}


def test_what_goes_wrong_in_it_is_logged_as_elsewhere(tmp_path: Path) -> None:
    program = (
        "from cambist.engine.store.process import process\nprocess._answer(None, process.Release('a'), [])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    told = json.loads(done.stderr)
    assert (told["event"], told["level"]) == ("the store failed", "error")
    assert told["exception"].endswith("AttributeError: 'NoneType' object has no attribute 'release'")


# --- Opening ------------------------------------------------------------------------------------------


async def test_what_is_written_is_read_and_is_there_again(url: str) -> None:
    order = a_delta_order()
    async with store_at(url) as store:
        await kept(store, order)
        assert await found(store, order) == order
    async with store_at(url) as store:
        assert await found(store, order) == order


async def test_without_settings_the_file_is_in_the_state_directory(tmp_path: Path) -> None:
    settings = Settings(state_dir="state")
    async with open_store(settings, {}, tmp_path, now_ms) as store:
        await kept(store, a_delta_order())
    assert (tmp_path / "state" / "cambist.sqlite3").is_file()


async def test_the_url_may_be_in_the_environment_and_goes_no_further(path: Path) -> None:
    settings = Settings(store=StoreSettings(url="env:STORE"))
    environ = {**os.environ, "STORE": f"sqlite:{path}", "OTHER": "a secret"}
    async with open_store(settings, environ, Path(), now_ms) as store:
        await kept(store, a_delta_order())
        (pid,) = store_processes()
        shown = _shown(pid)
    assert b"STORE=" not in shown
    assert b"a secret" not in shown
    assert bytes(path) not in shown
    async with store_at(f"sqlite:{path}") as store:
        assert await found(store, a_delta_order())


async def test_a_password_is_neither_an_argument_nor_in_the_environment(
    postgres_url: str, tmp_path: Path
) -> None:
    place = tmp_path / "url"
    place.write_text(postgres_url.replace("postgres@", "postgres:pa55word@"))
    settings = Settings(store=StoreSettings(url=f"file:{place}"))
    environ = {
        **os.environ,
        "PGPASSWORD": "pa55w0rd",
        "PGAPPNAME": "of the engine",
        "PG_URL": place.read_text(),
    }
    async with open_store(settings, environ, Path(), now_ms) as store:
        await kept(store, a_delta_order())
        (pid,) = store_processes()
        shown = _shown(pid)
    assert b"PGAPPNAME=of the engine" in shown
    assert b"pa55w" not in shown


def _shown(pid: int) -> bytes:
    """Environment and command line of a process, as `ps` shows them."""
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline"))


async def test_a_second_process_is_told_who_has_the_file(url: str) -> None:
    async with store_at(url) as store:
        (pid,) = store_processes()
        with pytest.raises(
            ConfigError, match=f"process {pid} uses .*cambist.sqlite3.lock is locked"
        ) as caught:
            async with store_at(url):
                pytest.fail("two have it")
        assert caught.value.key == "store.url"
        settings = Settings(store=StoreSettings(url=url))
        with pytest.raises(ConfigError, match=f"process {pid} uses"):
            async with open_store(settings, {}, Path(), now_ms, in_process=True):
                pytest.fail("two have it")
        await kept(store, a_delta_order())


async def test_a_link_to_the_file_is_the_same_file(url: str, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "link.sqlite3"
    other.parent.mkdir()
    async with store_at(url):
        other.symlink_to(path)
        with pytest.raises(ConfigError, match="is locked"):
            async with store_at(f"sqlite:{other}"):
                pytest.fail("two have it")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(b"this is no database at all, not at all" * 99), "not a database"),
        (lambda path: path.mkdir(), "unable to open"),
        (
            lambda path: _execute(path, "UPDATE schema_migration SET number = number + 9998"),
            "newer than this program",
        ),
        (lambda path: _execute(path, "UPDATE schema_migration SET checksum = 'x'"), "another text"),
    ],
    ids=["no database", "a folder", "newer", "changed"],
)
async def test_what_cannot_be_opened_says_why(url: str, path: Path, spoil: object, said: str) -> None:
    if said in ("newer than this program", "another text"):
        async with store_at(url):
            pass
    assert callable(spoil)
    spoil(path)
    with pytest.raises(ConfigError, match=said):
        async with store_at(url):
            pytest.fail("it was opened")
    await until(lambda: not store_processes())


def _execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


async def test_a_database_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with held_port() as held:
        port = port_of(held)
        with pytest.raises(ConfigError, match=rf"store\.url: .*{port}"):
            async with store_at(f"postgresql://postgres@127.0.0.1:{port}/none"):
                pytest.fail("it was opened")


async def test_signals_at_its_very_start_do_not_end_it(url: str) -> None:
    """The process ignores signals before its first instruction."""
    async with trio.open_nursery() as nursery:
        told: list[int] = []

        async def tell() -> None:
            await until(store_processes)
            for pid in store_processes():
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    os.kill(pid, number)
                told.append(pid)

        nursery.start_soon(tell)
        async with store_at(url) as store:
            await kept(store, a_delta_order())
            assert store_processes() == told


# --- Errors of the block ------------------------------------------------------------------------------


@pytest.mark.parametrize("in_process", [False, True])
async def test_an_error_of_the_block_comes_out_as_it_is(url: str, *, in_process: bool) -> None:
    settings = Settings(store=StoreSettings(url=url))
    with pytest.raises(KeyError, match="mine") as caught:
        async with open_store(settings, os.environ, Path(), now_ms, in_process=in_process):
            raise KeyError("mine")
    assert caught.value.__cause__ is None


# --- Dying and hanging --------------------------------------------------------------------------------


async def test_while_it_is_away_writes_end_at_once_and_reads_go_on(url: str, path: Path) -> None:
    order = a_delta_order(1)
    async with store_at(url) as store:
        await kept(store, order)
        (pid,) = store_processes()
        with path.with_name("cambist.sqlite3.lock").open("ab") as lock:
            os.kill(pid, signal.SIGKILL)
            fcntl.flock(lock, fcntl.LOCK_EX)  # as soon as it is dead: no other can open the file
            await until(lambda: store.statistics().away)
            with pytest.raises(StoreUnavailable, match="the store is away"):
                await store.write(operation(2))
            with pytest.raises(StoreUnavailable, match="the store is away"):
                await store.lease("me", 1, now_ms(), 1_000)
            assert await found(store, order) == order
            # The store reports the cause and goes on trying.
            await until(lambda: "is locked" in store.statistics().away)
            await until(lambda: store_processes() not in ([], [pid]))
        await until(lambda: not store.statistics().away)
        assert await store.write(operation(2)) == Done()
        assert store.statistics().batcher.unavailable == 1


async def test_the_batch_that_was_lost_is_sent_again_and_applied_once(url: str) -> None:
    outcomes: list[object] = []

    async def write(store: Store, number: int) -> None:
        outcomes.append(await store.write(operation(number)))

    async with store_at(url) as store, trio.open_nursery() as nursery:
        with Frozen() as pid:
            nursery.start_soon(write, store, 1)
            await until(lambda: store.statistics().batcher.in_flight == 1)
            os.kill(pid, signal.SIGKILL)
        await until(lambda: outcomes)
        assert outcomes == [Done()]
        assert await written(store) == {1}


async def test_one_that_hangs_is_replaced_and_the_outcome_is_said_to_be_unknown(
    url: str, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with store_at(url) as store:
        with Frozen() as pid:
            with pytest.raises(
                StoreUnavailable, match="outcome of a write is not known; submitting it again"
            ):
                await store.write(operation(1))
            monkeypatch.setattr(process_link, "STORE_OUTCOME_S", STORE_OUTCOME_S)
            await until(lambda: not is_running(pid))
        await until(lambda: not store.statistics().away)
        assert await store.write(operation(2)) == Done()
        assert {2} <= await written(store) <= {1, 2}


async def test_who_asks_when_it_dies_is_told_so(url: str) -> None:
    errors: list[StoreUnavailable] = []

    async def lease(store: Store) -> None:
        with pytest.raises(StoreUnavailable) as caught:
            await store.lease("me", 1, now_ms(), 1_000)
        errors.append(caught.value)

    for _ in range(6):  # link or caller may notice it first
        async with store_at(url) as store, trio.open_nursery() as nursery:
            with Frozen() as pid:
                nursery.start_soon(lease, store)
                await trio.testing.wait_all_tasks_blocked()
                os.kill(pid, signal.SIGKILL)
    assert [error.detail for error in errors] == ["the store is away: the store process ended"] * 6


async def test_a_lease_is_not_waited_for_for_ever(
    url: str, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with store_at(url) as store:
        with Frozen(), pytest.raises(StoreUnavailable, match="did not answer within"):
            await store.lease("me", 1, now_ms(), 1_000)
        monkeypatch.setattr(process_link, "STORE_OUTCOME_S", STORE_OUTCOME_S)
        await until(lambda: not store.statistics().away)
        assert len(await store.lease("me", 3, now_ms(), 1_000)) == 3


# --- Waiting ------------------------------------------------------------------------------------------


async def test_a_full_queue_takes_nothing_and_loses_nothing(url: str) -> None:
    async with store_at(url, queue_max=4) as store:
        async with trio.open_nursery() as nursery:
            with Frozen():
                nursery.start_soon(store.write, operation(0))
                await until(lambda: store.statistics().batcher.in_flight == 1)
                for number in range(1, 5):
                    nursery.start_soon(store.write, operation(number))
                await until(lambda: store.statistics().batcher.queued == 4)
                with pytest.raises(StoreFull, match="4 writes wait"):
                    await store.write(operation(5))
        assert await written(store) == {0, 1, 2, 3, 4}
        assert store.statistics().batcher.full == 1


async def test_who_does_not_wait_any_more_has_still_written(url: str) -> None:
    async with store_at(url) as store:
        with Frozen():
            for number in range(3):
                with trio.move_on_after(0.01) as left:
                    await store.write(operation(number))
                assert left.cancelled_caught
        assert await store.write(operation(3)) == Done()
        assert await written(store) == {0, 1, 2, 3}


async def test_who_does_not_wait_for_a_lease_leaves_the_next_answer_alone(url: str) -> None:
    async with store_at(url) as store:
        with Frozen():
            with trio.move_on_after(0.01):
                await store.lease("me", 2, now_ms(), 1_000)
            with trio.move_on_after(0.01):
                await store.prune(0, 1)
        assert await store.write(operation(1)) == Done()
        assert len(await store.lease("me", 2, now_ms(), 1_000)) == 2


async def test_a_batch_larger_than_the_socket_takes_at_once(url: str) -> None:
    orders = [a_delta_order(number) for number in range(8)]
    async with store_at(url) as store:
        async with trio.open_nursery() as nursery:
            with Frozen():
                nursery.start_soon(store.write, operation(1))
                await until(lambda: store.statistics().batcher.in_flight == 1)
                for order in orders:
                    unit = submission(order)
                    large = Unit((*unit.changes[:1], _document(order.order_hash, 1 << 20), unit.changes[2]))
                    nursery.start_soon(store.write, large)
                await until(lambda: store.statistics().batcher.queued == len(orders))
        sizes = await store.read(Query("SELECT length(body) FROM delta_document", ()))
        assert sizes == [[(1 << 20,)] * len(orders)]


async def test_a_write_that_is_too_large_is_refused_alone(url: str) -> None:
    async with store_at(url) as store:
        unit = submission(a_delta_order())
        with pytest.raises(StoreError, match="a write has"):
            await store.write(Unit((_document(bytes(32), 5 << 20),)))
        assert await store.write(unit) == Done()


def _document(order_hash: bytes, size: int) -> Put:
    return put(DELTA_DOCUMENT, OrderDocument(order_hash, bytes(size)))


async def test_what_another_engine_writes_is_announced_and_read(postgres_url: str) -> None:
    async with store_at(postgres_url) as store, store_at(postgres_url) as another:
        for number in range(5):  # the first may be the announcement that the listener listens
            changed = store.changed()
            await another.write(operation(number))
            with trio.fail_after(PATIENCE_S):
                await changed.wait()
        assert await written(store) == set(range(5))


# --- Closing ------------------------------------------------------------------------------------------


async def test_closing_writes_what_is_queued_and_takes_no_more(url: str) -> None:
    load = Load()
    async with trio.open_nursery() as nursery:
        async with store_at(url) as store:
            nursery.start_soon(load.run, store)
            await until(lambda: len(load.acknowledged) >= 100)
            (pid,) = store_processes()
        load.stopped = True
    assert not is_running(pid)
    assert load.reasons == {"the store is closed"}
    async with store_at(url) as store:
        assert await written(store) == load.acknowledged


async def test_cancelling_the_engine_drains_it_too(url: str) -> None:
    load = Load()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with store_at(url) as store:
                nursery.start_soon(load.run, store)
                await until(lambda: len(load.acknowledged) >= 100)
                scope.cancel()
                await trio.sleep_forever()
        load.stopped = True
    assert load.reasons == {"the store is closed"}
    async with store_at(url) as store:
        assert await written(store) == load.acknowledged


async def test_one_that_does_not_end_is_killed(
    url: str, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_link, "STORE_END_S", 0.3)
    async with store_at(url):
        (pid,) = store_processes()
        os.kill(pid, signal.SIGSTOP)
    assert not is_running(pid)
