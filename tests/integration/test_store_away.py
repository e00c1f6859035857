"""A real store that nobody writes to tells who asks when it cannot be written, and when it can be again."""

import fcntl
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from cambist.config.errors import StoreUnavailable
from cambist.engine.store import store as of_store
from cambist.engine.store.store import Store
from support.patience import until, until_found
from support.store.postgres import running_postgres
from support.store.store_work import full_disk, operation, store_at, store_processes
from support.stretched_bounds import own_bounds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cambist.sqlite3"


@asynccontextmanager
async def written(url: str) -> AsyncGenerator[Store]:
    """A store of its own process that was written once."""
    async with store_at(url) as store:
        await store.write(operation(1))
        assert not store.away
        yield store


@contextmanager
def killed(path: Path) -> Iterator[None]:
    """The store process is dead, and no other can open the file."""
    (pid,) = store_processes()
    with path.with_name(f"{path.name}.lock").open("ab") as lock:
        os.kill(pid, signal.SIGKILL)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def frozen() -> Iterator[None]:
    """The store process does nothing."""
    (pid,) = store_processes()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("what", ["full", "dead", "frozen"])
async def test_sqlite(path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with written(f"sqlite:{path}") as store:
        happening, said = {
            "full": (full_disk(), "the database cannot be used"),
            "dead": (killed(path), "the store is away"),
            "frozen": (frozen(), "does not answer within"),
        }[what]
        with happening, monkeypatch.context() as late:
            own_bounds(late, of_store)
            await until_found(store.probe, lambda reason: said in reason)
        await until(lambda: not store.away)
        await store.write(operation(2))


async def test_a_full_disk_refuses_what_it_says_it_refuses(path: Path) -> None:
    async with written(f"sqlite:{path}") as store:
        with full_disk():
            await until_found(store.probe, bool)
            with pytest.raises(StoreUnavailable, match="the database cannot be used"):
                await store.write(operation(2))
            assert store.away
        await until(lambda: not store.away)


async def test_postgres() -> None:
    with running_postgres() as server:
        async with written(server.migrated_database()) as store:
            server.stop("immediate")
            await until_found(store.probe, bool)
            with pytest.raises(StoreUnavailable):
                await store.write(operation(2))
            server.start()
            await until(lambda: not store.away)
            await store.write(operation(3))
