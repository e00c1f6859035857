"""The store as the engine uses it: writes are batched, reads see committed states.

    write -> Batcher -> Link.apply -> database        one batch in flight; everything that waits is the next
    read  -> Link.read

`Link` is the way to the database: in this process (`InlineLink`), or a store process of its own
(`process_link`). A write is answered once it is durable.

`away` is the reason why a write would fail now, as far as writes have shown: the link has lost the store,
the last batch was refused (the disk is full, the database server is gone), a batch is not answered, or the
queue is full. `probe` writes an empty unit, for a caller that wants to know without a write of its own;
`run_probes` does so while the store is unavailable, so that `away` ends without other writes. An idle store
is not written.

A store that refused a batch counts as unavailable until it has refused none for READY_STEADY_S: on a nearly
full disk small writes still succeed between failures. A store that was opened again counts as unavailable
until its first write has succeeded.
"""

from collections.abc import Sequence
from math import inf
from time import perf_counter
from typing import Any, NoReturn, Protocol

import trio
from msgspec import Struct

from ...config.errors import StoreError, StoreUnavailable
from ...config.timeouts import READY_AGAIN_S, READY_ANSWER_S, READY_LOOK_S, READY_STEADY_S
from .backend import Backend, Lease
from .batcher import Batcher, BatcherStatistics
from .queries import Query
from .units import Unit, UnitOutcome

COMMIT_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the histogram of the database's commit times, seconds."""

_PROBE = Unit(())
_UNPROVEN = "no write has succeeded since the store was opened again"


class Link(Protocol):
    """Protocol: the store's access to a database, in this process or in a store process.

    A failed call raises StoreUnavailable, or StoreError if the cause is a bug of this program.
    """

    def prepare(self, unit: Unit) -> Any:
        """Encode a unit (an atomic group of changes) in the form that `apply` takes."""
        ...

    async def apply(self, number: int, units: Sequence[Any]) -> list[UnitOutcome]:
        """Write batch `number` of units, encoded by `prepare`. See `Backend.apply`.

        If the connection is lost before the answer, the link itself sends the batch again.
        """
        ...

    async def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query, all read from one committed state. See `Backend.read`."""
        ...

    async def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Record that an engine (`holder`) is alive. See `Backend.attend`."""
        ...

    async def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew an engine's shard leases and claim free shards. See `Backend.lease`."""
        ...

    async def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Release an engine's shards, so that other engines can claim them. See `Backend.release`."""
        ...

    async def prune(self, before_ms: int, count_max: int) -> int:
        """Delete final orders, old events and expired routes. See `Backend.prune`."""
        ...


class StoreStatistics(Struct, frozen=True):
    """Counters of one store.

    Attributes:
        batcher: counters of the queue of writes.
        commits: histogram: number of commits that took up to each bound of COMMIT_BOUNDS_S; the last number
            counts longer commits.
        commit_s: total time of all commits, seconds, including the transfer of each batch to the store
            process and of the answer back.
        away: reason why a write would be refused now; empty if the store is available.
    """

    batcher: BatcherStatistics
    commits: tuple[int, ...]
    commit_s: float
    away: str


class Store:
    """The engine's durable state, in a database. `run` writes the queued units (atomic groups of changes) in
    batches.

    Args:
        link: access to the database.
        queue_max: most units that wait to be written.
        batch_max: most units written in one transaction.
        is_shareable: whether other engines may use the database at the same time.

    Attributes:
        is_shareable: as the argument.
    """

    def __init__(self, link: Link, *, queue_max: int, batch_max: int, is_shareable: bool = False) -> None:
        self.is_shareable = is_shareable
        self._link = link
        self._batcher = Batcher(queue_max, batch_max)
        self._work = trio.lowlevel.ParkingLot()
        self._idle = trio.lowlevel.ParkingLot()
        self._answered = trio.lowlevel.ParkingLot()
        self._changed = trio.Event()
        self._commits = [0] * (len(COMMIT_BOUNDS_S) + 1)
        self._commit_s = 0.0
        self._refusal = ""  # the last one, for READY_STEADY_S at least
        self._refused_at = 0.0  # trio time
        self._doubted = trio.lowlevel.ParkingLot()  # `run_probes`, while nothing speaks against a write
        self._known_at = -inf  # trio time of the last batch that was written or refused
        self._probed = trio.Event()  # set once the last probe has its outcome
        self._probed.set()
        self._sent_at: float | None = None  # trio time of the batch in flight

    @property
    def away(self) -> str:
        """Reason why a write would now be refused or delayed for long; empty if the store is available."""
        if self._batcher.away is not None:
            return self._batcher.away.detail
        if self._sent_at is not None and trio.current_time() - self._sent_at > READY_ANSWER_S:
            return f"the store does not answer within {READY_ANSWER_S:g} s"
        return self._refusal or self._batcher.full

    async def write(self, unit: Unit) -> UnitOutcome:
        """Write a unit (an atomic group of changes), and return its outcome once the changes are durable.

        Cancelling the call does not cancel the write.

        Raises:
            StoreFull: too many writes wait; the unit was not queued.
            StoreUnavailable: the database is unreachable or read-only, or the disk is full. The unit was not
                written or, if the store was lost during the write, the outcome is unknown. A second write of
                the unit is safe.
        """
        # No await between `add` and the wait: no batch can settle, and reschedule this task, before it waits.
        task = trio.lowlevel.current_task()
        ticket = self._batcher.add(self._link.prepare(unit), lambda: trio.lowlevel.reschedule(task))
        self._work.unpark()

        def leave(_: Any) -> trio.lowlevel.Abort:
            ticket.abandon()
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(leave)
        if ticket.error is not None:
            raise ticket.error
        if ticket.outcome is None:
            raise StoreError("a write ended without an outcome")
        return ticket.outcome

    async def read(self, *queries: Query) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query; all queries see the same committed state."""
        return await self._link.read(queries)

    async def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Record that an engine (`holder`) is alive. See `Backend.attend`."""
        return await self._link.attend(holder, now_ms, life_ms)

    async def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew an engine's shard leases and claim free shards. See `Backend.lease`."""
        return await self._link.lease(holder, count, now_ms, life_ms)

    async def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Release an engine's shards, so that other engines can claim them. See `Backend.release`."""
        await self._link.release(holder, shards)

    async def prune(self, before_ms: int, count_max: int) -> int:
        """Delete final orders, old events and expired routes. See `Backend.prune`."""
        return await self._link.prune(before_ms, count_max)

    def changed(self) -> trio.Event:
        """Return the trio event that is set at the next write of this engine, or by the next `announce`.

        A caller that gets the event before reading from the store misses no write.
        """
        return self._changed

    async def drained(self) -> None:
        """Wait until every write queued so far has its outcome."""
        while not self._batcher.is_empty:
            await self._idle.park()

    async def answered(self) -> None:
        """Wait until the batch being written, if any, has its outcomes, and its writers' tasks have run.

        The wait ends with the batch: the link gives up a batch without an answer.
        """
        if self._sent_at is not None:
            await self._answered.park()
        await trio.lowlevel.checkpoint()

    def lose(self, error: StoreUnavailable) -> None:
        """Fail all queued writes, and refuse new writes until `recover`.

        The link (`Link`) calls `lose` after losing the database.
        """
        self._batcher.lose(error)

    def recover(self) -> None:
        """Accept writes again. The link (`Link`) calls `recover` once the database is available again."""
        self._refusal = ""
        if self._batcher.away is not None:
            self._refusal, self._refused_at = _UNPROVEN, -inf  # the first write that succeeds ends it
            self._doubted.unpark_all()
        self._batcher.recover()

    def close(self) -> None:
        """Refuse new writes; queued writes are still made (see `drained`)."""
        self._batcher.close(StoreUnavailable("the store is closed"))

    def announce(self) -> None:
        """Set the event of `changed`, because another engine has written."""
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def statistics(self) -> StoreStatistics:
        """Return the counters of writes and commits, and the numbers of units queued and being written."""
        return StoreStatistics(self._batcher.statistics(), tuple(self._commits), self._commit_s, self.away)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write queued units of changes, batch after batch, until cancelled.

        On cancellation, tasks that still wait for an outcome receive StoreUnavailable.
        """
        batcher = self._batcher
        task_status.started()
        try:
            while True:
                # No await between this look and `park`: a unit that is added in between would wake nobody.
                if not batcher.has_work:
                    self._idle.unpark_all()
                    await self._work.park()
                    continue
                units = batcher.take()
                began = perf_counter()
                self._sent_at = trio.current_time()
                try:
                    batcher.settle(await self._link.apply(batcher.number, units))
                except StoreError as error:
                    self._known_at = trio.current_time()
                    self._doubt(error.detail)
                    batcher.fail(error)
                    continue
                finally:  # after `settle` or `fail`: `answered` promises that each unit has its outcome
                    self._sent_at = None
                    self._answered.unpark_all()
                self._known_at = trio.current_time()
                if self._refusal and self._known_at - self._refused_at >= READY_STEADY_S:
                    self._refusal = ""
                self._count(perf_counter() - began)
                self.announce()
        finally:  # `lose` ends the queued units, `fail` those of the batch in flight
            batcher.lose(StoreUnavailable("the store is closed"))
            batcher.fail(
                StoreUnavailable("the store was closed before it answered; submitting again is safe")
            )
            self._idle.unpark_all()

    async def probe(self) -> str:
        """Bring `away` up to date by an empty write, at most once in READY_LOOK_S seconds, whoever asks.

        Returns:
            `away`, which also tells of a write without an outcome within READY_ANSWER_S.
        """
        known_s = READY_AGAIN_S if self.away else READY_LOOK_S
        if self._batcher.away is not None or trio.current_time() - self._known_at < known_s:
            return self.away
        if self._probed.is_set():  # else all wait for the probe under way: a hanging store collects no more
            probed = trio.Event()
            try:
                self._batcher.add(self._link.prepare(_PROBE), probed.set)
            except StoreError:
                return self.away
            self._probed = probed
            self._work.unpark()
        with trio.move_on_after(READY_ANSWER_S):
            await self._probed.wait()
            return self.away
        self._doubt(f"the store does not answer within {READY_ANSWER_S:g} s")
        return self.away

    async def run_probes(self) -> NoReturn:
        """Write an empty unit every READY_AGAIN_S seconds while the store is unavailable, until cancelled."""
        while True:
            # No await between the look and `park`: a refusal in between would wake nobody.
            if not self._refusal or self._batcher.away is not None:
                await self._doubted.park()  # while the link has lost the store, until `recover`
                continue
            await self.probe()
            await trio.sleep(READY_AGAIN_S)

    def _doubt(self, reason: str) -> None:
        """Count the store as unavailable until it has refused no write for READY_STEADY_S."""
        self._refusal, self._refused_at = reason, trio.current_time()
        self._doubted.unpark_all()

    def _count(self, took_s: float) -> None:
        bucket = next((n for n, bound in enumerate(COMMIT_BOUNDS_S) if took_s <= bound), -1)
        self._commits[bucket] += 1
        self._commit_s += took_s


class InlineLink:
    """Implementation of `Link` that calls the database in this process, and blocks the event loop meanwhile.

    Tests, devnets and commands use it.
    """

    def __init__(self, backend: Backend, writer: bytes) -> None:
        self._backend = backend
        self._writer = writer

    def prepare(self, unit: Unit) -> Unit:
        """Return the unit unchanged, since no encoding is needed within one process."""
        return unit

    async def apply(self, number: int, units: Sequence[Unit]) -> list[UnitOutcome]:
        """Write a batch of units (atomic groups of changes) in one transaction. See `Backend.apply`."""
        await trio.lowlevel.checkpoint()
        return self._backend.apply(self._writer, number, units)

    async def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query, all read from one committed state. See `Backend.read`."""
        await trio.lowlevel.checkpoint()
        return self._backend.read(queries)

    async def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        """Record that an engine (`holder`) is alive. See `Backend.attend`."""
        await trio.lowlevel.checkpoint()
        return self._backend.attend(holder, now_ms, life_ms)

    async def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        """Renew an engine's shard leases and claim free shards. See `Backend.lease`."""
        await trio.lowlevel.checkpoint()
        return self._backend.lease(holder, count, now_ms, life_ms)

    async def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        """Release an engine's shards, so that other engines can claim them. See `Backend.release`."""
        await trio.lowlevel.checkpoint()
        self._backend.release(holder, shards)

    async def prune(self, before_ms: int, count_max: int) -> int:
        """Delete final orders, old events and expired routes. See `Backend.prune`."""
        await trio.lowlevel.checkpoint()
        return self._backend.prune(before_ms, count_max)
