"""A subscription: the events that match its filter, from a place in the log on, each once and in order.

    behind the ring   reads pages of the store, until the ring holds all remaining events
    in the ring       reads entry after entry
    idle              has read every event; the hub wakes the subscription at the next

A subscription has a place and no queue: a slow subscription reads from the store the events that the ring
has dropped by then.

Source: ARCHITECTURE.md, "Push".
"""

from collections import deque
from typing import Any, Protocol, Self

import trio

from ...config.errors import StoreUnavailable
from ...config.limits import FOLLOW_EVENTS_MAX, FOLLOW_REPLAY_EVENTS_MAX
from ...config.timeouts import FOLLOW_LOOK_S
from ..store.follower import token_of
from ..store.queries import Query, events_after
from ..store.rows import OrderEvent
from ..store.tables import ORDER_EVENT
from ..store.units import row_of
from .filters import EventFilter
from .ring import EventRing, RingEntry, RingPosition


class SubscribedHub(Protocol):
    """Protocol: the attributes and methods of `EventHub` that a subscription uses."""

    @property
    def ring(self) -> EventRing:
        """The log's last events, in memory."""
        ...

    @property
    def told(self) -> RingPosition:
        """Place in the log up to which every subscription was notified of the events that concern it."""
        ...

    async def read(self, query: Query) -> list[tuple[Any, ...]]:
        """Read a page of events from the store. Raises StoreUnavailable."""
        ...

    def leave(self, subscription: "Subscription") -> None:
        """Remove a subscription whose client is gone; repeated calls do no harm."""
        ...


class Subscription:
    """The events that match one client's filter. Created by `EventHub.subscribe`; the client's task calls
    `leave` at the end.

    Args:
        place: place in the log; the subscription starts with the event after it.

    Attributes:
        wanted: filter of the events that the client wants.
    """

    def __init__(self, hub: SubscribedHub, wanted: EventFilter, place: RingPosition) -> None:
        self.wanted = wanted
        self._hub = hub
        self._place = place  # all events up to it were handed out, or are not wanted
        self._number: int | None = None  # of the next entry to read
        self._is_idle = False
        self._woken = trio.Event()
        self._page: deque[RingEntry] = deque()  # read from the store, not handed out yet
        self._page_end = place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    @property
    def token(self) -> str:
        """Token of the log place up to which `take` has returned all matching events."""
        return token_of(*(max(self._place, self._hub.told) if self._is_idle else self._place))

    async def take(self, count: int) -> list[RingEntry]:
        """Wait for at least one event that matches the filter and return the next ones. Cancelling the call
        loses none.

        Args:
            count: most events to return.
        """
        while True:
            if self._page:
                return self._from_page(count)
            if self._is_idle:
                self._woken = trio.Event()
                await self._woken.wait()
            elif self._place < self._hub.ring.floor:
                await self._read()
            elif found := self._matching(count):
                return found
            elif not self._is_idle:
                await trio.lowlevel.checkpoint()

    def note(self, number: int, entry: RingEntry, before: RingPosition) -> bool:
        """Mark a new event that shares an index key with the filter for reading; returns whether to wake the
        reader.

        Args:
            before: log place of the event before.
        """
        if not self._is_idle or entry.place <= self._place or not self.wanted.matches(entry):
            return False
        self._is_idle, self._number = False, number
        self._place = max(self._place, before)
        return True

    def wake(self) -> None:
        """Wake the reader: an event that concerns the subscription was added."""
        self._woken.set()

    def leave(self) -> None:
        """End the subscription and remove it from the hub; repeated calls do no harm."""
        self._hub.leave(self)

    def _from_page(self, count: int) -> list[RingEntry]:
        taken = [self._page.popleft() for _ in range(min(count, len(self._page)))]
        self._place = taken[-1].place if self._page else self._page_end
        return taken

    def _matching(self, count: int) -> list[RingEntry]:
        """Return the events that match the filter among the next unread ones in memory."""
        ring, found = self._hub.ring, list[RingEntry]()
        number = ring.after(self._place) if self._number is None else self._number
        for at in range(number, min(ring.end, number + FOLLOW_EVENTS_MAX)):
            entry = ring.entry(at)
            number = at + 1
            if entry.place <= self._place:
                continue
            self._place = entry.place
            if self.wanted.matches(entry):
                found.append(entry)
                if len(found) == count:
                    break
        self._number, self._is_idle = number, number == ring.end
        return found

    async def _read(self) -> None:
        """Read a page of the log's events from the store, for a subscription behind the ones in memory; wait
        while the store is unavailable.
        """
        self._number = None
        in_store = self._hub.ring.newest
        try:
            rows = await self._hub.read(
                events_after(self._place, FOLLOW_REPLAY_EVENTS_MAX, self.wanted.owner)
            )
        except StoreUnavailable:
            await trio.sleep(FOLLOW_LOOK_S)
            return
        end = self._place
        for transaction, number, *columns in rows:
            end = transaction, number
            event: OrderEvent = row_of(ORDER_EVENT, columns)
            entry = RingEntry(end, event)
            if self.wanted.matches(entry):
                self._page.append(entry)
        if len(rows) < FOLLOW_REPLAY_EVENTS_MAX:
            end = max(end, in_store)
        self._page_end = end
        if not self._page:
            self._place = end
        await trio.lowlevel.checkpoint()
