"""Timers of a process: one heap of callbacks with times, run by one task.

    add(key) --waits--> due --> run, once
        |                 \\-> raises: logged; the others are not affected
        |--add(key) again--> the new time and callback replace the old
        \\--cancel(key)---> never

A timer is an entry of a heap, not a task: it takes a fifth of a kilobyte, and a microsecond or two to add. A
cancelled or replaced timer stays in the heap as a dead entry. Once most entries are dead the heap is set
aside, and its live entries move to a new heap, a few with each call, which keeps every call short.

Source: docs/explanation/performance.md, "Orders that wait"; ARCHITECTURE.md, "Orders".
"""

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from math import inf
from time import perf_counter

import structlog
import trio
from msgspec import Struct

SLICE_S = 0.000_5
"""Seconds of running timers' callbacks after which the scheduler lets other tasks run."""

_MOVED = 4
_DEAD_MIN = 64

_log = structlog.get_logger("cambist.scheduler")


class Timer(Struct, frozen=True, order=True, gc=False):
    """Callback to be run at a time, Unix milliseconds. Timers sort by time, then as they were added."""

    at_ms: int
    number: int
    key: Hashable
    run: Callable[[], None]


class Timers:
    """Waiting timers of one process, at most one for each key. Pure: the caller passes the time."""

    __slots__ = ("_aside", "_by_key", "_heap", "_number", "_reached_ms")

    def __init__(self) -> None:
        self._by_key: dict[Hashable, Timer] = {}
        self._heap: list[Timer] = []
        self._aside: list[Timer] = []
        self._number = 0
        self._reached_ms = -inf

    def __len__(self) -> int:
        """Number of timers that wait for their time."""
        return len(self._by_key)

    @property
    def entries(self) -> int:
        """Number of entries in the heaps, including dead ones, i.e. cancelled and replaced timers.

        The number is at most three times the most timers that ever waited at once, plus a hundred.
        """
        return len(self._heap) + len(self._aside)

    def add(self, at_ms: int, key: Hashable, run: Callable[[], None]) -> Timer:
        """Add a timer, which replaces the waiting timer of the same key.

        Args:
            at_ms: time of the callback, Unix milliseconds. A timer with a past time is due at once, but after
                all timers that are due already: so a callback that always adds itself again cannot keep the
                other callbacks from running.
            run: callback; must be short and not wait.
        """
        reached = self._reached_ms
        self._number += 1
        timer = Timer(at_ms if at_ms >= reached else int(reached), self._number, key, run)
        self._by_key[key] = timer
        heappush(self._heap, timer)
        self._tidy()
        return timer

    def cancel(self, key: Hashable) -> bool:
        """Cancel the waiting timer of a key. Returns whether the key had a waiting timer."""
        waited = self._by_key.pop(key, None) is not None
        self._tidy()
        return waited

    def next_at(self) -> int | None:
        """Return the time at which to call `due` next, Unix milliseconds; None if the heaps are empty.

        The time is that of the first entry of the heaps. If that entry is of a cancelled or replaced timer,
        the time may be earlier than that of every waiting timer.
        """
        heap = self._first()
        return heap[0].at_ms if heap else None

    def due(self, now_ms: int) -> Timer | None:
        """Remove the timer with the earliest time, if that time has come, and return the timer.

        The caller repeats the call as long as the time from `next_at` is at most `now_ms`.

        Returns:
            The timer; None if no timer is due, or if the removed timer had been cancelled or replaced.
        """
        self._reached_ms = max(self._reached_ms, now_ms)
        heap = self._first()
        if not heap or heap[0].at_ms > now_ms:
            return None
        timer = heappop(heap)
        self._tidy()
        if self._by_key.get(timer.key) is not timer:
            return None
        del self._by_key[timer.key]
        return timer

    def _first(self) -> list[Timer]:
        """Return whichever of the two heaps has the earlier first timer; an empty heap if both are empty.

        New timers go to the heap in use; `_tidy` empties the old heap step by step.
        """
        if not self._aside or (self._heap and self._heap[0] < self._aside[0]):
            return self._heap
        return self._aside

    def _tidy(self) -> None:
        """Move a few waiting timers from the old heap to the heap in use, which removes dead entries.

        A heap whose entries are mostly dead (cancelled or replaced timers) becomes the old heap.
        """
        aside = self._aside
        if not aside:
            dead = len(self._heap) - len(self._by_key)
            if dead < _DEAD_MIN or dead < len(self._by_key):
                return
            self._aside = aside = self._heap
            self._heap = []
        by_key = self._by_key
        for _ in range(min(_MOVED, len(aside))):
            timer = aside.pop()
            if by_key.get(timer.key) is timer:
                heappush(self._heap, timer)


class SchedulerStatistics(Struct, frozen=True):
    """Counters of the scheduler of timers.

    Attributes:
        waiting: timers that wait now.
        entries: entries of the heaps, including dead ones, i.e. cancelled and replaced timers.
        fired, failed: callbacks that were run, and callbacks among them that raised.
        late_ms_max: greatest delay of a callback after its time, milliseconds.
    """

    waiting: int
    entries: int
    fired: int
    failed: int
    late_ms_max: int


class Scheduler:
    """Task that runs the callbacks of timers at their times.

    Timers may be added before `run` starts. The garbage collector does not track timers, since it would walk
    all of them in each collection; it therefore cannot free the reference cycle of timer, callback, engine
    and scheduler. To break this cycle, `run` drops all timers when it ends.

    Args:
        now_ms: returns the time, Unix milliseconds (`WallClock.now_ms`); must advance as fast as trio's
            clock.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._timers = Timers()
        self._asleep = trio.lowlevel.ParkingLot()
        self._wakes_ms = inf
        self._fired = self._failed = self._late_ms_max = 0

    def at(self, at_ms: int, key: Hashable, run: Callable[[], None]) -> None:
        """Schedule a callback at a time, Unix milliseconds; a waiting callback of the same key is dropped."""
        timer = self._timers.add(at_ms, key, run)
        if timer.at_ms < self._wakes_ms:
            self._asleep.unpark()

    def cancel(self, key: Hashable) -> bool:
        """Cancel the waiting timer of a key. Returns whether the key had a waiting timer."""
        return self._timers.cancel(key)

    def statistics(self) -> SchedulerStatistics:
        """Return the number of waiting timers, and the counts of callbacks run so far."""
        timers = self._timers
        return SchedulerStatistics(len(timers), timers.entries, self._fired, self._failed, self._late_ms_max)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the callback of each timer at its time, until cancelled."""
        task_status.started()
        try:
            while True:
                await self._pass()
                # No checkpoint until `park`: `next_at` sees each timer added before, and a timer added later
                # finds `_wakes_ms` set and wakes this task if it is due earlier.
                at_ms = self._timers.next_at()
                self._wakes_ms = inf if at_ms is None else at_ms
                wait_s = inf if at_ms is None else max(0, at_ms - self._now_ms()) / 1_000
                with trio.move_on_after(wait_s):
                    await self._asleep.park()
                self._wakes_ms = -inf
        finally:
            self._timers = Timers()

    async def _pass(self) -> None:
        """Run all due callbacks, yielding to other tasks after every `SLICE_S` seconds of work."""
        timers = self._timers
        slice_ends = perf_counter() + SLICE_S
        now_ms = self._now_ms()
        while (at_ms := timers.next_at()) is not None and at_ms <= now_ms:
            timer = timers.due(now_ms)
            if timer is not None:
                self._fire(timer, now_ms)
            if perf_counter() >= slice_ends:
                await trio.lowlevel.checkpoint()
                slice_ends = perf_counter() + SLICE_S
                now_ms = self._now_ms()

    def _fire(self, timer: Timer, now_ms: int) -> None:
        self._fired += 1
        self._late_ms_max = max(self._late_ms_max, now_ms - timer.at_ms)
        try:
            timer.run()
        except Exception as error:  # noqa: BLE001  one timer's bug is not the others' end
            self._failed += 1
            _log.error("timer failed", key=repr(timer.key), detail=repr(error), exc_info=True)
