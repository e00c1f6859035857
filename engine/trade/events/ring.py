"""Ring of the last order events in memory, numbered, for subscriptions that are up to date. Pure.

    floor < place of the first ... place of the last

Every event of the log whose place is above `floor` and not above `newest` is in the ring.
"""

from bisect import bisect_right

from ...store.follower import token_of
from ...store.rows import OrderEvent
from .message import encode_event, sent_event, takers_of

RingPosition = tuple[int, int]  # place in the log: (transaction, number), as `token_of` takes them


class RingEntry:
    """An order event and its place in the log; it is encoded once for all subscriptions."""

    __slots__ = ("_frame", "_message", "_takers", "_token", "event", "place")

    def __init__(self, place: RingPosition, event: OrderEvent) -> None:
        self.place = place
        self.event = event
        self._token = ""
        self._message = self._frame = b""
        self._takers: tuple[bytes, ...] | None = None

    @property
    def token(self) -> str:
        """Resume token: a client that sends it back receives the events after this one."""
        if not self._token:
            self._token = token_of(*self.place)
        return self._token

    @property
    def message(self) -> bytes:
        """JSON message of the event, as clients receive it."""
        if not self._message:
            self._message = encode_event(self.token, self.event)
        return self._message

    @property
    def frame(self) -> bytes:
        """Server-sent event `order` of the message."""
        if not self._frame:
            self._frame = sent_event(b"order", self.token, self.message)
        return self._frame

    @property
    def takers(self) -> tuple[bytes, ...]:
        """Addresses of the takers that the order of an OTC event names; empty for a Delta order."""
        if self._takers is None:
            self._takers = takers_of(self.event)
        return self._takers


class EventRing:
    """Bounded list of the last order events; an entry keeps its number when older entries are dropped.

    Args:
        start: place in the log before the first event.
        entries_max: most entries kept; the oldest is dropped first.

    Attributes:
        floor: place in the log of the last dropped entry; `start` as long as no entry has been dropped.
        newest: place in the log of the last added entry; `start` before the first.
        end: number that the next added entry gets.
    """

    def __init__(self, start: RingPosition, entries_max: int) -> None:
        self._slots: list[RingEntry | None] = [None] * entries_max
        self.floor = self.newest = start
        self.end = 0

    def __len__(self) -> int:
        """Number of order events in memory."""
        return min(self.end, len(self._slots))

    @property
    def first(self) -> int:
        """Number of the oldest entry in memory; `end`, the next entry's number, if none is in memory."""
        return self.end - len(self)

    def add(self, entry: RingEntry) -> int:
        """Append an order event, later in the log than all in memory; return the number of its entry."""
        at = self.end % len(self._slots)
        dropped = self._slots[at]
        if dropped is not None:
            self.floor = dropped.place
        self._slots[at] = entry
        self.newest = entry.place
        self.end += 1
        return self.end - 1

    def entry(self, number: int) -> RingEntry:
        """Return the entry in memory with a number that `add` returned.

        Raises:
            LookupError: the entry was dropped; a bug of the caller.
        """
        found = self._slots[number % len(self._slots)] if self.first <= number < self.end else None
        if found is None:
            raise LookupError(f"entry {number} of {self.first} to {self.end}")
        return found

    def after(self, place: RingPosition) -> int:
        """Return the number of the first entry later in the log than `place`; `end` if no entry is later."""
        kept = range(self.end)
        return bisect_right(kept, place, lo=self.first, key=lambda number: self.entry(number).place)
