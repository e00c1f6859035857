"""The last events, in order, each with its number, for subscriptions that are up to date. Pure.

    floor < place of the first ... place of the last

Every event whose place is above `floor` and not above `newest` is here.
"""

from bisect import bisect_right

from ..store.follower import token_of
from ..store.rows import OrderEvent
from .message import encode_event, takers_of

RingPosition = tuple[int, int]


class RingEntry:
    """An event at its place. Its message is made at first use, once for all subscriptions."""

    __slots__ = ("_message", "_takers", "_token", "event", "place")

    def __init__(self, place: RingPosition, event: OrderEvent) -> None:
        self.place = place
        self.event = event
        self._token = ""
        self._message = b""
        self._takers: tuple[bytes, ...] | None = None

    @property
    def token(self) -> str:
        """Of its place."""
        if not self._token:
            self._token = token_of(*self.place)
        return self._token

    @property
    def message(self) -> bytes:
        """The event as JSON."""
        if not self._message:
            self._message = encode_event(self.token, self.event)
        return self._message

    @property
    def takers(self) -> tuple[bytes, ...]:
        """Takers whom the event may concern (`takers_of`)."""
        if self._takers is None:
            self._takers = takers_of(self.event)
        return self._takers


class EventRing:
    """A bounded list whose entries keep their numbers when older ones are dropped.

    Args:
        start: the place that the first event comes after.
        entries_max: kept; the oldest goes first.

    Attributes:
        floor: the place of what was dropped last.
        newest: the place of what was added last.
        end: the number that the next entry gets.
    """

    def __init__(self, start: RingPosition, entries_max: int) -> None:
        self._slots: list[RingEntry | None] = [None] * entries_max
        self.floor = self.newest = start
        self.end = 0

    def __len__(self) -> int:
        """Count of entries kept."""
        return min(self.end, len(self._slots))

    @property
    def first(self) -> int:
        """The number of the oldest entry; `end` where there is none."""
        return self.end - len(self)

    def add(self, entry: RingEntry) -> int:
        """Keep an entry, whose place is above `newest`; returns its number."""
        at = self.end % len(self._slots)
        dropped = self._slots[at]
        if dropped is not None:
            self.floor = dropped.place
        self._slots[at] = entry
        self.newest = entry.place
        self.end += 1
        return self.end - 1

    def entry(self, number: int) -> RingEntry:
        """An entry that is kept.

        Raises:
            LookupError: it is not: our bug.
        """
        found = self._slots[number % len(self._slots)] if self.first <= number < self.end else None
        if found is None:
            raise LookupError(f"entry {number} of {self.first} to {self.end}")
        return found

    def after(self, place: RingPosition) -> int:
        """The number of the first entry whose place is above one; `end` where there is none."""
        kept = range(self.end)
        return bisect_right(kept, place, lo=self.first, key=lambda number: self.entry(number).place)
