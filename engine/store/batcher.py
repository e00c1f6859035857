"""Group commit as a state machine without I/O: all units that wait form the next batch.

    add --queue--> take --one batch in flight--> settle: an outcome for each unit
           |                                 \\-> fail: an error for all units of the batch
           '-> lose: the store is away; an error for all queued units, and for new ones until `recover`

If the store dies, the link sends the batch in flight again: that batch stays in flight here. Cancelling the
task that waits for a unit does not remove the unit. A full queue refuses units.

Source: ARCHITECTURE.md, "Store process".
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from ...config.errors import StoreError, StoreFull, StoreUnavailable
from .units import UnitOutcome

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024)
"""Upper bounds of the histogram of batch sizes, in units per batch."""


class PendingUnit:
    """A unit of changes that is queued for the database or being written.

    Attributes:
        unit: the unit as encoded by `Link.prepare`.
        wake: called once the unit has an outcome or an error; None after `abandon`.
        outcome, error: result of the write; both None until exactly one is set.
    """

    __slots__ = ("error", "outcome", "unit", "wake")

    def __init__(self, unit: Any, wake: Callable[[], None]) -> None:
        self.unit = unit
        self.wake: Callable[[], None] | None = wake
        self.outcome: UnitOutcome | None = None
        self.error: StoreError | None = None

    def end(self, outcome: UnitOutcome | None, error: StoreError | None) -> None:
        """Set the unit's outcome or error, and wake the task that waits for the write."""
        self.outcome, self.error = outcome, error
        if self.wake is not None:
            self.wake()

    def abandon(self) -> None:
        """Drop `wake`, because the task that waits for the write is cancelled; the unit is still written."""
        self.wake = None


class BatcherStatistics(Struct, frozen=True):
    """Counters of the batcher, the queue of units (atomic groups of changes) to write to the database.

    Attributes:
        queued, in_flight: units waiting and units being written at this moment.
        units, batches: units and batches that have an outcome so far.
        full: units refused because the queue was full.
        unavailable: units refused while the store was unavailable, and units that got an error instead of an
            outcome.
        sizes: histogram of units per batch: number of batches up to each bound of SIZES; the last number
            counts larger batches.
    """

    queued: int
    in_flight: int
    units: int
    batches: int
    full: int
    unavailable: int
    sizes: tuple[int, ...]


class Batcher:
    """Queue of an engine's units (atomic groups of changes), from which batches go to the database.

    Args:
        queue_max: most units that wait, not counting the units of the batch being written.
        batch_max: most units of one batch.

    Attributes:
        number: number of the batch being written, or of the last batch.
        away: error with which `add` refuses units now; None while the store is available.
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

    def add(self, unit: Any, wake: Callable[[], None]) -> PendingUnit:
        """Queue a unit of changes to be written.

        Args:
            wake: called once the unit has an outcome or an error.

        Raises:
            StoreFull: too many units wait.
            StoreUnavailable: the store is unavailable (`away`). No unit was queued in either case.
        """
        if self.away is not None:
            self._unavailable += 1
            raise StoreUnavailable(self.away.detail, self.away.retry_after_s)
        if self.full:
            self._full += 1
            raise StoreFull(self.full)
        ticket = PendingUnit(unit, wake)
        self._queue.append(ticket)
        return ticket

    @property
    def full(self) -> str:
        """Reason why the queue of writes accepts no unit now; empty while it has room."""
        return f"{self._queue_max} writes wait for the store" if len(self._queue) >= self._queue_max else ""

    @property
    def has_work(self) -> bool:
        """Whether a batch can be written now: units are queued, and no batch is being written."""
        return bool(self._queue) and not self._in_flight

    @property
    def is_empty(self) -> bool:
        """Whether no unit is queued or being written."""
        return not self._queue and not self._in_flight

    def take(self) -> list[Any]:
        """Remove the next batch from the queue, mark it as being written, and return its units."""
        queue = self._queue
        self._in_flight = [queue.popleft() for _ in range(min(len(queue), self._batch_max))]
        self.number += 1
        return [ticket.unit for ticket in self._in_flight]

    def settle(self, outcomes: Sequence[UnitOutcome]) -> None:
        """Give each unit of the batch being written its outcome, now that the batch is durable.

        Args:
            outcomes: one outcome per unit, in the order in which `take` returned the units.

        Raises:
            StoreError: the number of outcomes is not that of the units.
        """
        if len(outcomes) != len(self._in_flight):
            raise StoreError(f"{len(self._in_flight)} writes came back with {len(outcomes)} outcomes")
        tickets, self._in_flight = self._in_flight, []
        self._batches += 1
        self._units += len(tickets)
        self._sizes[_bucket(len(tickets))] += 1
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            ticket.end(outcome, None)

    def fail(self, error: StoreError) -> None:
        """Set `error` as the result of each unit in the batch that was being written.

        The batch was not written, or the batch's outcome is unknown.
        """
        tickets, self._in_flight = self._in_flight, []
        self._unavailable += len(tickets)
        for ticket in tickets:
            ticket.end(None, error)

    def lose(self, error: StoreUnavailable) -> None:
        """Give all queued units `error` as their result, and refuse new units until `recover`; called when
        the database becomes unavailable.
        """
        self.away = error
        waiting, self._queue = self._queue, deque()
        self._unavailable += len(waiting)
        for ticket in waiting:
            ticket.end(None, error)

    def recover(self) -> None:
        """Accept units of changes again, because the database is available again."""
        self.away = self._closed

    def close(self, error: StoreUnavailable) -> None:
        """Refuse new units with `error`, because the store closes; queued units are still written."""
        self.away = self._closed = error

    def statistics(self) -> BatcherStatistics:
        """Return the counters of units and batches, and the numbers of units queued and being written."""
        return BatcherStatistics(
            queued=len(self._queue),
            in_flight=len(self._in_flight),
            units=self._units,
            batches=self._batches,
            full=self._full,
            unavailable=self._unavailable,
            sizes=tuple(self._sizes),
        )


def _bucket(size: int) -> int:
    return next((number for number, bound in enumerate(SIZES) if size <= bound), len(SIZES))
