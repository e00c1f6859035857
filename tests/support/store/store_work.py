"""Load on a store that can be counted afterwards, here or as a program that is killed; a full disk for it.

    support.store.store_work:main load URL FIRST      write from 64 tasks until SIGTERM or SIGINT
    support.store.store_work:main hold URL FIRST      write as the holder of all shards

The program prints `ready`, then `ack N` for each operation that was acknowledged, and `fenced N`, `refused N`
for what was not. An operation leaves one event whose time is its number; every other one is an order too.
"""

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path

import trio

from cambist.config.errors import StoreUnavailable
from cambist.config.sections.store import StoreSettings
from cambist.config.settings import Settings
from cambist.engine.host.process.clock import WallClock
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.queries import Query
from cambist.engine.store.store import Store
from cambist.engine.store.tables import ORDER_EVENT
from cambist.engine.store.units import Done, Fence, Fenced, Unit, put
from cambist.engine.trade.orders.order_units import DELTA
from support.patience import until
from support.store.stores import a_delta_order, document_of, hash_of


@contextmanager
def full_disk(engine: int | None = None) -> Iterator[None]:
    """The real store process cannot write a byte to any file meanwhile.

    Args:
        engine: process whose store process it is; by default this one.
    """
    (pid,) = store_processes(engine)
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


TASKS = 64
HOLDER = "the one that freezes"
LIFE_MS = 3_000
_PAUSE_S = 0.05  # of a client that was told to come back later

now_ms = WallClock().now_ms


def store_at(url: str, **store: int) -> AbstractAsyncContextManager[Store]:
    """A store of its own process at a URL."""
    settings = Settings(store=StoreSettings(url=url, **store))
    return open_store(settings, os.environ, Path(), now_ms)


def operation(number: int, fences: Mapping[int, Fence] | None = None) -> Unit:
    """A write that shows if it is made twice: the database has no unique key on its event."""
    order = a_delta_order(number, updated_ms=number)
    fence = None if fences is None else fences[order.shard]
    if number % 2:
        return Unit((put(ORDER_EVENT, DELTA.event(order)),), fence)
    return Unit(DELTA.submitted(order, document_of(order)).changes, fence)


class Load:
    """Tasks that write operation after operation.

    Attributes:
        acknowledged, refused: numbers of operations; a refused operation may be kept or not.
        fenced: numbers of operations that came too late.
        reasons: causes of the refusals.
    """

    def __init__(
        self,
        first: int = 0,
        fences: Mapping[int, Fence] | None = None,
        tell: Callable[[str, int], None] = lambda what, number: None,
    ) -> None:
        self.acknowledged: set[int] = set()
        self.refused: set[int] = set()
        self.fenced: set[int] = set()
        self.reasons: set[str] = set()
        self.stopped = False
        self._numbers = count(first)
        self._fences = fences
        self._tell = tell

    async def run(self, store: Store, tasks: int = TASKS) -> None:
        """Write until `stopped`."""
        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(self._task, store)

    async def _task(self, store: Store) -> None:
        while not self.stopped:
            number = next(self._numbers)
            try:
                outcome = await store.write(operation(number, self._fences))
            except StoreUnavailable as error:
                self.refused.add(number)
                self.reasons.add(error.detail)
                self._tell("refused", number)
                await trio.sleep(_PAUSE_S)
                continue
            if isinstance(outcome, Fenced):
                self.fenced.add(number)
                self._tell("fenced", number)
            else:
                assert outcome == Done(), outcome
                self.acknowledged.add(number)
                self._tell("ack", number)


async def written(store: Store) -> set[int]:
    """Numbers of the kept operations; assert that each is kept once and whole."""
    events, orders, documents = await store.read(
        Query("SELECT at_ms, count(*) FROM order_event GROUP BY at_ms", ()),
        Query("SELECT updated_ms FROM delta_order", ()),
        Query("SELECT order_hash FROM delta_document", ()),
    )
    assert [number for number, times in events if times != 1] == []
    numbers = {number for number, _ in events}
    whole = {number for number in numbers if number % 2 == 0}
    assert {number for (number,) in orders} == whole
    assert {bytes(order_hash) for (order_hash,) in documents} == {hash_of(number) for number in whole}
    return numbers


def store_processes(engine: int | None = None) -> list[int]:
    """Ids of the store processes of an engine, by default this process."""
    children: list[int] = []
    for task in Path(f"/proc/{engine or os.getpid()}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            children += map(int, (task / "children").read_text().split())
    return [child for child in children if b"cambist.engine.store.process.process" in _command(child)]


def is_running(process: int) -> bool:
    """Whether a process runs; False if only its exit status is left."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def numbers_of(lines: Iterable[str], what: str) -> set[int]:
    """The numbers of the lines of the program that begin with a word."""
    return {int(line.split()[1]) for line in lines if line.split()[:1] == [what]}


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _tell(what: str, number: int) -> None:
    os.write(1, b"%s %d\n" % (what.encode(), number))


async def _load(url: str, first: int) -> None:
    load = Load(first, tell=_tell)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            async with store_at(url) as store:
                nursery.start_soon(load.run, store)
                os.write(1, b"ready\n")
                await anext(signals)
            # Queued operations are acknowledged by now; later operations are refused.
            load.stopped = True
    os.write(1, b"".join(b"reason %s\n" % reason.encode() for reason in load.reasons))


async def _hold(url: str, first: int) -> None:
    async with store_at(url) as store:
        leases = await store.lease(HOLDER, 256, now_ms(), LIFE_MS)
        load = Load(first, {lease.shard: Fence(lease.shard, lease.epoch) for lease in leases}, _tell)
        os.write(1, b"ready\n")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.run, store)
            await until(lambda: len(load.fenced) >= 2 * TASKS)
            load.stopped = True


def main() -> None:
    """The program (`support.warm_processes`)."""
    trio.run({"load": _load, "hold": _hold}[sys.argv[1]], sys.argv[2], int(sys.argv[3]))
