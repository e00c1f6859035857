"""Group commit as a state machine without I/O: everything that waits goes into the next batch.

    add --queue--> take --one batch in flight--> settle | fail
                                              \\-> lost: the store died; the same batch is sent again

A pending unit is on its way. Its waiter may leave; the unit stays. A full queue takes nothing.

Source: ARCHITECTURE.md, "Store process".
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from ...config.errors import StoreError, StoreFull, StoreUnavailable
from .units import UnitOutcome

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024)
"""Upper bounds of the histogram of batch sizes."""


class PendingUnit:
    """A unit queued or being written.

    Attributes:
        unit: as `Link.prepare` returns it.
        wake: called once the unit is settled, if a task waits.
        outcome, error: exactly one is set once the unit is settled.
    """

    __slots__ = ("error", "outcome", "unit", "wake")

    def __init__(self, unit: Any) -> None:
        self.unit = unit
        self.wake: Callable[[], None] | None = None
        self.outcome: UnitOutcome | None = None
        self.error: StoreError | None = None

    def end(self, outcome: UnitOutcome | None, error: StoreError | None) -> None:
        """Say what came of it."""
        self.outcome, self.error = outcome, error
        if self.wake is not None:
            self.wake()


class BatcherStatistics(Struct, frozen=True):
    """Counters of the batcher.

    Attributes:
        queued, in_flight: units now.
        units, batches: settled so far.
        full, unavailable: units refused because the queue was full, and units that ended without an outcome.
        sizes: count of batches per size bound of SIZES.
    """

    queued: int
    in_flight: int
    units: int
    batches: int
    full: int
    unavailable: int
    sizes: tuple[int, ...]


class Batcher:
    """The queue of one writer.

    Args:
        queue_max: units that may wait, those in flight apart.
        batch_max: units of one batch.

    Attributes:
        number: of the batch in flight, or of the last one.
        away: why nothing is taken now; None while all is well.
    """

    def __init__(self, queue_max: int, batch_max: int) -> None:
        self.number = 0
        self.away: StoreUnavailable | None = None
        self._closed: StoreUnavailable | None = None
        self._queue: deque[PendingUnit] = deque()
        self._in_flight: list[PendingUnit] = []
        self._queue_max = queue_max
        self._batch_max = batch_max
        self._units = self._batches = self._full = self._unavailable = 0
        self._sizes = [0] * (len(SIZES) + 1)

    def add(self, unit: Any) -> PendingUnit:
        """Queue a unit.

        Raises:
            StoreFull: too many wait.
            StoreUnavailable: the store is away. No unit was queued in either case.
        """
        if self.away is not None:
            self._unavailable += 1
            raise StoreUnavailable(self.away.detail, self.away.retry_after_s)
        if self.full:
            self._full += 1
            raise StoreFull(self.full)
        ticket = PendingUnit(unit)
        self._queue.append(ticket)
        return ticket

    @property
    def full(self) -> str:
        """Reason for which the queue takes nothing now; empty while it has room."""
        return f"{self._queue_max} writes wait for the store" if len(self._queue) >= self._queue_max else ""

    @property
    def has_work(self) -> bool:
        """Whether a batch can be taken."""
        return bool(self._queue) and not self._in_flight

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        return not self._queue and not self._in_flight

    def take(self) -> list[Any]:
        """The units of the next batch, which is in flight from now on."""
        queue = self._queue
        self._in_flight = [queue.popleft() for _ in range(min(len(queue), self._batch_max))]
        self.number += 1
        return [ticket.unit for ticket in self._in_flight]

    def settle(self, outcomes: Sequence[UnitOutcome]) -> None:
        """The batch in flight is durable; an outcome for each of its units, in order."""
        if len(outcomes) != len(self._in_flight):
            raise StoreError(f"{len(self._in_flight)} writes came back with {len(outcomes)} outcomes")
        tickets, self._in_flight = self._in_flight, []
        self._batches += 1
        self._units += len(tickets)
        self._sizes[_bucket(len(tickets))] += 1
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            ticket.end(outcome, None)

    def fail(self, error: StoreError) -> None:
        """End the units in flight with an error: the batch was not written, or its outcome is unknown."""
        tickets, self._in_flight = self._in_flight, []
        self._unavailable += len(tickets)
        for ticket in tickets:
            ticket.end(None, error)

    def lose(self, error: StoreUnavailable) -> None:
        """The store is away: what was not sent ends now, and nothing is taken until `recover`."""
        self.away = error
        waiting, self._queue = self._queue, deque()
        self._unavailable += len(waiting)
        for ticket in waiting:
            ticket.end(None, error)

    def recover(self) -> None:
        """The store is back."""
        self.away = self._closed

    def close(self, error: StoreUnavailable) -> None:
        """Take nothing more for good; what is queued still goes."""
        self.away = self._closed = error

    def statistics(self) -> BatcherStatistics:
        """Counters and present sizes."""
        return BatcherStatistics(
            len(self._queue),
            len(self._in_flight),
            self._units,
            self._batches,
            self._full,
            self._unavailable,
            tuple(self._sizes),
        )


def _bucket(size: int) -> int:
    return next((number for number, bound in enumerate(SIZES) if size <= bound), len(SIZES))
