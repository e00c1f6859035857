"""The SQLite store with a failing disk or file: it reports the failure and acknowledges no lost unit.

The disks are real where that takes root (a small tmpfs, a read-only one); elsewhere the process's own bound
on file sizes and the file's own bound on pages stand for them, which anybody can set.
"""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from cambist.config.errors import ConfigError, StoreError, StoreUnavailable
from cambist.config.settings import Settings
from cambist.engine.store.operator.upkeep import SqliteUpkeep
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.process.place import FILE_NAME
from cambist.engine.store.queries import Query, by
from cambist.engine.store.rows import DeltaOrderRow
from cambist.engine.store.sqlite.sqlite import SqliteBackend, open_for_reading, read
from cambist.engine.store.store import InlineLink, Store
from cambist.engine.store.tables import DELTA_ORDER, NONCE_USED
from cambist.engine.store.units import DONE, Put, Refused, Unit, UnitOutcome
from cambist.engine.trade.orders.order_units import DELTA
from support.patience import until
from support.store.stores import NOW_MS, a_delta_order, submission

WRITER = b"w" * 16
DISK_BYTES = 3 << 20
PAGE_BYTES = 4_096
ORDERS_MAX = 2_000
"""More than any of the small disks here holds, at 4 kB a document."""

needs_root = pytest.mark.needs("mount")


class Writer:
    """Writes orders, a batch each, and keeps in mind what was acknowledged."""

    def __init__(self, backend: SqliteBackend) -> None:
        self.backend = backend
        self.acknowledged: list[DeltaOrderRow] = []
        self._batch = 0
        self._number = 0

    def write(self) -> None:
        """Write one more order."""
        self._batch += 1
        self._number += 1
        order = a_delta_order(self._number)
        unit = DELTA.submitted(order, bytes(4_000))
        assert self.backend.apply(WRITER, self._batch, [unit]) == [DONE]
        self.acknowledged.append(order)

    def write_until_it_fails(self) -> StoreUnavailable:
        """Fill the disk."""
        for _ in range(ORDERS_MAX):
            try:
                self.write()
            except StoreUnavailable as error:
                return error
        raise AssertionError(f"{ORDERS_MAX} orders fit")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "cambist-test", folder],
        check=True,
        capture_output=True,
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True, capture_output=True)


@contextmanager
def files_bounded(most_bytes: int) -> Iterator[None]:
    """No file of this process grows beyond it: a write fails as on a disk with an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write where nobody may: here it is nobody."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


def opened(path: Path) -> SqliteBackend:
    return SqliteBackend(path, lambda: NOW_MS)


def stored(path: Path) -> set[bytes]:
    """The hashes of all orders, as a connection of its own sees them."""
    with closing(open_for_reading(path)) as connection:
        (rows,) = read(connection, [Query("SELECT order_hash FROM delta_order", ())])
    return {row[0] for row in rows}


def hashes(orders: list[DeltaOrderRow]) -> set[bytes]:
    return {order.order_hash for order in orders}


def check_nothing_is_lost(path: Path, writer: Writer) -> None:
    """Check that the intact file holds exactly the acknowledged orders, with documents and events."""
    assert stored(path) == hashes(writer.acknowledged)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for table in ("delta_body", "order_event"):
            (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert count == len(writer.acknowledged)


# --- Full ------------------------------------------------------------------------------------------------


@needs_root
def test_a_full_disk_refuses_and_recovers_when_there_is_space(small_disk: Path) -> None:
    path = small_disk / "db.sqlite3"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(DISK_BYTES // 2))
    with closing(opened(path)) as backend:
        writer = Writer(backend)
        error = writer.write_until_it_fails()
        assert "full" in error.detail
        assert error.retry_after_s > 0
        count = len(writer.acknowledged)
        assert count > 10
        with pytest.raises(StoreUnavailable):
            writer.write()
        assert stored(path) == hashes(writer.acknowledged), "what is there can be read"
        ballast.unlink()
        writer.write()
        writer.write()
        assert len(writer.acknowledged) == count + 2
    check_nothing_is_lost(path, writer)


@needs_root
def test_a_disk_that_is_full_at_the_start_is_named(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(shutil.disk_usage(small_disk).free))
    with pytest.raises(ConfigError, match=r"store\.url: .*db\.sqlite3 cannot be (opened|migrated): .*full"):
        opened(small_disk / "db.sqlite3")


@needs_root
def test_a_process_that_dies_on_a_full_disk_leaves_a_store_that_opens(small_disk: Path) -> None:
    path = small_disk / "db.sqlite3"
    with closing(opened(path)) as backend:
        writer = Writer(backend)
        writer.write_until_it_fails()
        # The files as kill -9 would leave them: nothing is closed, no checkpoint is made.
        left = small_disk.parent / "left"
        left.mkdir()
        for name in ("db.sqlite3", "db.sqlite3-wal"):
            shutil.copy(small_disk / name, left)
    check_nothing_is_lost(left / "db.sqlite3", writer)


def test_a_write_that_the_system_refuses_is_not_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        writer = Writer(backend)
        writer.write()
        with files_bounded(1 << 20):
            error = writer.write_until_it_fails()
            with pytest.raises(StoreUnavailable):
                writer.write()
        assert "disk I/O error" in error.detail
        writer.write()
    check_nothing_is_lost(path, writer)


def test_a_database_at_its_bound_refuses_and_goes_on_when_it_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        writer = Writer(backend)
        connection = backend._connection
        connection.execute("PRAGMA max_page_count = 200")
        assert "full" in writer.write_until_it_fails().detail
        assert not connection.in_transaction
        connection.execute("PRAGMA max_page_count = 100000")
        writer.write()
    check_nothing_is_lost(path, writer)


def test_a_full_disk_refuses_the_whole_batch_and_no_unit_alone(tmp_path: Path) -> None:
    """A poisoned unit is refused alone; a disk is nobody's fault."""
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        (pages,) = backend._connection.execute("PRAGMA page_count").fetchone()
        backend._connection.execute(f"PRAGMA max_page_count = {pages + 90}")
        poison = Unit((Put(NONCE_USED.name, (1,)),))
        units = [DELTA.submitted(a_delta_order(number), bytes(4_000)) for number in range(100)]
        with pytest.raises(StoreUnavailable):
            backend.apply(WRITER, 1, [*units, poison])
        assert stored(path) == set()
        few: list[UnitOutcome] = backend.apply(WRITER, 2, [*units[:2], poison])
        assert few[:2] == [DONE, DONE]
        assert isinstance(few[2], Refused)


async def test_the_store_answers_every_writer_and_recovers_by_itself(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        store = Store(InlineLink(backend, WRITER), queue_max=64, batch_max=16)
        await nursery.start(store.run)
        assert await store.write(submission(a_delta_order(1))) == DONE
        with files_bounded(0):
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="the database cannot be used"):
                    await store.write(submission(a_delta_order(2)))
            assert len(await store.read(by(DELTA_ORDER, a_delta_order(1).order_hash))) == 1
        assert await store.write(submission(a_delta_order(2))) == DONE
        statistics = store.statistics()
        assert statistics.batcher.unavailable == 2
        assert statistics.batcher.units == 2
        nursery.cancel_scope.cancel()
    assert stored(path) == hashes([a_delta_order(1), a_delta_order(2)])


@needs_root
async def test_a_store_process_on_a_full_disk_refuses_and_recovers(small_disk: Path) -> None:
    settings = Settings(state_dir=str(small_disk))
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(DISK_BYTES // 2))
    acknowledged: list[DeltaOrderRow] = []

    async def write(store: Store) -> None:
        order = a_delta_order(len(acknowledged))
        assert await store.write(DELTA.submitted(order, bytes(4_000))) == DONE
        acknowledged.append(order)

    async def fill(store: Store) -> None:
        for _ in range(ORDERS_MAX):
            await write(store)

    async with open_store(settings, os.environ, small_disk, lambda: NOW_MS) as store:
        with pytest.raises(StoreUnavailable, match="full"):
            await fill(store)
        for order in acknowledged[:1], acknowledged[-1:]:
            assert len((await store.read(by(DELTA_ORDER, order[0].order_hash)))[0]) == 1
        ballast.unlink()
        await write(store)
    assert stored(small_disk / FILE_NAME) == hashes(acknowledged)


def test_a_vacuum_without_space_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        writer = Writer(backend)
        for _ in range(50):
            writer.write()
    with files_bounded(64 << 10), pytest.raises(StoreUnavailable, match="the database cannot be used"):
        SqliteUpkeep(path).vacuum()
    check_nothing_is_lost(path, writer)


# --- Read-only -------------------------------------------------------------------------------------------


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Make a file or folder read-only: by a mount for root, by permissions for other users."""
    if os.geteuid() == 0:
        for options in ("bind", "remount,ro,bind"):
            subprocess.run(["mount", "-o", options, path, path], check=True, capture_output=True)
        try:
            yield
        finally:
            subprocess.run(["umount", path], check=True, capture_output=True)
    else:
        mode = path.stat().st_mode
        path.chmod(mode & 0o555)
        try:
            yield
        finally:
            path.chmod(mode)


def test_a_read_only_file_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        Writer(backend).write()
    with read_only(path), closing(opened(path)) as backend:
        with pytest.raises(StoreUnavailable, match="attempt to write a readonly database"):
            backend.apply(WRITER, 2, [submission(a_delta_order(2))])
        with pytest.raises(StoreUnavailable, match="attempt to write a readonly database"):
            backend.lease("me", 1, NOW_MS, 1_000)
        assert len(backend.read([by(DELTA_ORDER, a_delta_order(1).order_hash)])[0]) == 1
    assert stored(path) == hashes([a_delta_order(1)])


def test_a_read_only_folder_is_named_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    with read_only(folder), pytest.raises(ConfigError, match=r"store\.url: .*db\.sqlite3 cannot be opened: "):
        opened(folder / "db.sqlite3")
    with closing(opened(folder / "db.sqlite3")) as backend:
        Writer(backend).write()
    with read_only(folder), pytest.raises(ConfigError, match=r"store\.url: .*db\.sqlite3 cannot be "):
        opened(folder / "db.sqlite3")
    assert stored(folder / "db.sqlite3") == hashes([a_delta_order(1)])


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(ConfigError, match=r"store\.url: .*state/db\.sqlite3 cannot be opened: "):
        opened(tmp_path / "state" / "db.sqlite3")


# --- Damaged -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"hello", b"hello, I am no database\n" * 500], ids=["short", "long"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "db.sqlite3"
    path.write_bytes(content)
    with pytest.raises(
        ConfigError, match=r"store\.url: .*db\.sqlite3 cannot be opened: file is not a database"
    ):
        opened(path)
    assert path.read_bytes() == content


def damage(path: Path, *, pages: range) -> None:
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE_BYTES)
            file.write(os.urandom(PAGE_BYTES))


def test_a_damaged_page_is_no_passing_failure(tmp_path: Path) -> None:
    """Trying again does not help: damage raises a StoreError, and no unit is acknowledged."""
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        writer = Writer(backend)
        for _ in range(50):
            writer.write()
        (page,) = backend._connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'delta_order_hash'"
        ).fetchone()
    damage(path, pages=range(page, page + 1))
    with closing(opened(path)) as backend:
        with pytest.raises(
            StoreError, match="the database failed: database disk image is malformed"
        ) as caught:
            backend.apply(b"x" * 16, 1, [submission(a_delta_order(1_000))])
        assert not isinstance(caught.value, StoreUnavailable)
        with pytest.raises(StoreError, match="the database failed"):
            backend.read([by(DELTA_ORDER, a_delta_order(1).order_hash)])


def test_a_file_whose_schema_is_damaged_is_refused_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    opened(path).close()
    damage(path, pages=range(2, path.stat().st_size // PAGE_BYTES + 1))
    with pytest.raises(ConfigError, match=r"store\.url: .*db\.sqlite3 cannot be opened: .*malformed"):
        opened(path)


def test_tables_that_are_missing_are_no_passing_failure(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        backend._connection.execute("DROP TABLE delta_fill")
        with pytest.raises(StoreError, match="no such table: delta_fill") as caught:
            backend.read([Query("SELECT count(*) FROM delta_fill", ())])
        assert not isinstance(caught.value, StoreUnavailable)


# --- Removed, replaced, in use -----------------------------------------------------------------------------


def moved_away(path: Path) -> Callable[[], None]:
    elsewhere = path.with_name(f"{path.name}.elsewhere")
    path.rename(elsewhere)
    return lambda: Path(elsewhere.rename(path)).touch()


def replaced(path: Path) -> Callable[[], None]:
    elsewhere = path.with_name(f"{path.name}.elsewhere")
    path.rename(elsewhere)
    shutil.copy(elsewhere, path)
    return lambda: Path(elsewhere.replace(path)).touch()


@pytest.mark.parametrize("happened", [moved_away, replaced])
@pytest.mark.parametrize("name", ["db.sqlite3", "db.sqlite3-wal"])
def test_nothing_is_acknowledged_into_a_file_that_has_lost_its_name(
    tmp_path: Path, name: str, happened: Callable[[Path], Callable[[], None]]
) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend:
        writer = Writer(backend)
        writer.write()
        undo = happened(tmp_path / name)
        for batch in (2, 3):
            with pytest.raises(StoreUnavailable, match=f"{name} was removed or replaced while it was in use"):
                backend.apply(WRITER, batch, [submission(a_delta_order(2))])
        with pytest.raises(StoreUnavailable, match="was removed or replaced"):
            backend.apply(WRITER, 3, [])  # the batch again, whose outcome is remembered in the lost file
        with pytest.raises(StoreUnavailable, match="was removed or replaced"):
            backend.lease("me", 1, NOW_MS, 1_000)
        undo()
        assert backend.apply(WRITER, 4, [submission(a_delta_order(3))]) == [DONE]
    assert hashes([a_delta_order(1), a_delta_order(3)]) <= stored(path)


@pytest.mark.parametrize("happened", [moved_away, replaced])
async def test_a_store_process_that_starts_again_serves_the_same_file_or_none(
    tmp_path: Path, happened: Callable[[Path], Callable[[], None]]
) -> None:
    """Its engine has read the other one, and holds its shards."""
    path = tmp_path / FILE_NAME

    async with open_store(Settings(state_dir=str(tmp_path)), os.environ, tmp_path, lambda: NOW_MS) as store:
        assert await store.write(submission(a_delta_order(1))) == DONE
        undo = happened(path)
        os.kill(int(path.with_name(f"{FILE_NAME}.lock").read_text()), signal.SIGKILL)
        await until(lambda: "was removed or replaced" in store.statistics().away)
        with pytest.raises(StoreUnavailable, match="was removed or replaced"):
            await store.write(submission(a_delta_order(2)))
        undo()
        await until(lambda: not store.statistics().away)
        assert await store.write(submission(a_delta_order(3))) == DONE
    assert stored(path) == hashes([a_delta_order(1), a_delta_order(3)])


def test_a_database_behind_a_link_is_written(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    path = tmp_path / "db.sqlite3"
    path.symlink_to(tmp_path / "disk" / "real.sqlite3")
    with closing(opened(path)) as backend:
        writer = Writer(backend)
        writer.write()
    check_nothing_is_lost(tmp_path / "disk" / "real.sqlite3", writer)


def test_a_database_that_another_writes_is_away_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(opened(path)) as backend, closing(sqlite3.connect(path, isolation_level=None)) as other:
        backend._connection.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="database is locked"):
            backend.apply(WRITER, 1, [submission(a_delta_order(1))])
        other.execute("ROLLBACK")
        assert backend.apply(WRITER, 2, [submission(a_delta_order(1))]) == [DONE]


# --- One unit's fault --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        (1,),  # too few columns
        (1, b"o", b"n", b"t", 1 << 63),  # too large
        (1, b"o", b"n", b"t", "text"),  # of another type
        (1, None, b"n", b"t", 1),  # missing
        (1, b"o", b"n", b"t", object()),  # a type that no database knows
        (1, "\ud800", b"n", b"t", 1),  # no Unicode
        7,
    ],
    ids=["short", "large", "type", "null", "object", "surrogate", "no row"],
)
def test_a_unit_that_cannot_be_written_is_refused_alone(tmp_path: Path, row: object) -> None:
    path = tmp_path / "db.sqlite3"
    before, after = a_delta_order(1), a_delta_order(2)
    with closing(opened(path)) as backend:
        outcomes = backend.apply(
            WRITER,
            1,
            [
                submission(before),
                Unit((*submission(a_delta_order(3)).changes, Put(NONCE_USED.name, row))),
                submission(after),
            ],
        )
        assert outcomes[0] == outcomes[2] == DONE
        assert isinstance(outcomes[1], Refused)
        assert backend.apply(WRITER, 1, []) == outcomes, "the same when it is asked again"
    assert stored(path) == hashes([before, after])


def test_a_renewal_of_leases_writes_nothing(tmp_path: Path) -> None:
    file, life_ms = tmp_path / FILE_NAME, 10_000
    with closing(opened(file)) as backend:
        backend.attend("engine", NOW_MS, life_ms)
        held = backend.lease("engine", 256, NOW_MS, life_ms)
        wal = file.with_name(f"{FILE_NAME}-wal")
        before = wal.read_bytes()
        for second in range(1, 60):
            backend.attend("engine", NOW_MS + 1_000 * second, life_ms)
            assert backend.lease("engine", 256, NOW_MS + 1_000 * second, life_ms) == held
        assert wal.read_bytes() == before
        later_ms = NOW_MS + 59_000 + life_ms + 1
        assert len(backend.lease("another", 256, later_ms, life_ms)) == 256, "a lease that has ended is free"
