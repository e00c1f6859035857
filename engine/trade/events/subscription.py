"""Subscription to the order events that match a filter, from a place in the log on, each once and in order.

    behind the ring   reads pages of the store, until the ring in memory holds all remaining events
    in the ring       reads entry after entry
    idle              has read every event; the hub pushes the next to the client, or wakes the reading task

With a `push`, an event to a client that has read all others costs a write and wakes no task: of many clients
each would wait for a pass of the event loop.

A subscription has a place and no queue: a slow subscription reads from the store the events that the ring
has dropped.

Source: ARCHITECTURE.md, "Push".
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeAlias

import trio

from ....config.errors import StoreUnavailable
from ....config.limits import FOLLOW_EVENTS_MAX, FOLLOW_REPLAY_EVENTS_MAX
from ....config.timeouts import FOLLOW_LOOK_S
from ...store.follower import token_of
from ...store.queries import Query, events_after
from ...store.rows import OrderEvent
from ...store.tables import ORDER_EVENT
from ...store.units import row_of
from .filters import EventFilter
from .ring import EventRing, RingEntry, RingPosition

Push: TypeAlias = Callable[[RingEntry], bool]
"""Function that hands an event to the client without waiting; False if it cannot: nothing was handed out."""


class SubscribedHub(Protocol):
    """Protocol of the event hub: the attributes and methods of `EventHub` that a subscription uses."""

    @property
    def ring(self) -> EventRing:
        """The last order events of the store's log, in memory."""
        ...

    @property
    def told(self) -> RingPosition:
        """Place in the log up to which the hub has announced all events to their subscriptions."""
        ...

    async def read(self, query: Query) -> list[tuple[Any, ...]]:
        """Read a page of order events from the store; raise StoreUnavailable if the store does not answer."""
        ...

    def leave(self, subscription: "Subscription") -> None:
        """Remove a subscription from the hub, for good; repeated calls have no effect."""
        ...


class Subscription:
    """Subscription of one client to the order events that match a filter; created by `EventHub.subscribe`.

    The client's task calls `leave` at the end.

    Args:
        place: place in the log; the subscription starts with the event after it.

    Attributes:
        wanted: filter of the events that the client receives.
    """

    def __init__(self, hub: SubscribedHub, wanted: EventFilter, place: RingPosition) -> None:
        self.wanted = wanted
        self._hub = hub
        self._place = place  # all events up to it were handed out, or are not wanted
        self._number: int | None = None  # of the next entry to read
        self._is_idle = False
        self._push: Push | None = None
        self._is_parked = False  # the task waits in `take`
        self._woken = trio.Event()
        self._page: deque[RingEntry] = deque()  # read from the store, not handed out yet
        self._page_end = place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    @property
    def token(self) -> str:
        """Resume token of the place in the log up to which `take` has returned all matching events."""
        return token_of(*(max(self._place, self._hub.told) if self._is_idle else self._place))

    def push_by(self, push: Push) -> None:
        """Hand further events to the client by a function, while the client's task waits in `take`."""
        self._push = push

    async def take(self, count: int) -> list[RingEntry]:
        """Wait for at least one event that matches the filter, and return the next such events.

        Cancelling the call loses no event.

        Args:
            count: most events to return.
        """
        while True:
            if self._page:
                return self._from_page(count)
            if self._is_idle:
                self._woken = trio.Event()
                self._is_parked = True
                try:
                    await self._woken.wait()
                finally:
                    self._is_parked = False
            elif self._place < self._hub.ring.floor:
                await self._read()
            elif found := self._matching(count):
                return found
            elif not self._is_idle:
                await trio.lowlevel.checkpoint()

    def note(self, number: int, entry: RingEntry, before: RingPosition) -> bool:
        """End the wait for a matching event, if the subscription waits and a new event matches its filter.

        A subscription that does not wait finds the event itself later.

        Args:
            number: number of the event's entry in the ring.
            before: place in the log of the preceding event.

        Returns:
            Whether the wait has ended, so that the hub has to wake the reading task.
        """
        if not self._is_idle or entry.place <= self._place or not self.wanted.matches(entry):
            return False
        self._is_idle, self._number = False, number
        self._place = max(self._place, before)
        return True

    def wake(self) -> None:
        """Push the matching event that was added to the client, or wake the task that reads."""
        # A parked task hands nothing out, and writes nothing, before it is woken or its wait is cancelled;
        # what runs after a cancelled wait finds the event handed out. So each event goes to the client once,
        # by one of the two, and no two writes meet.
        if self._is_parked and self._push is not None and self._pushed(self._push):
            return
        self._woken.set()

    def _pushed(self, push: Push) -> bool:
        """Push the noted event; return whether all events in memory are read then."""
        ring, number = self._hub.ring, self._number
        if number is None or not ring.first <= number < ring.end:
            return False
        entry = ring.entry(number)
        if not push(entry):
            return False
        self._place, self._number = entry.place, number + 1
        self._is_idle = self._number == ring.end
        return self._is_idle

    def leave(self) -> None:
        """End the subscription and remove it from the hub; repeated calls have no effect."""
        self._push = None
        self._hub.leave(self)

    def _from_page(self, count: int) -> list[RingEntry]:
        taken = [self._page.popleft() for _ in range(min(count, len(self._page)))]
        self._place = taken[-1].place if self._page else self._page_end
        return taken

    def _matching(self, count: int) -> list[RingEntry]:
        """Return up to `count` of the next unread events in memory that match the filter."""
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
        """Read a page of events from the store, for a subscription that lags behind the events in memory.

        While the store is unavailable, the call waits a moment and reads nothing.
        """
        self._number = None
        # Taken before the read: every event up to this place is in the store, so a page that is not full
        # covers them all.
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
        if not self._page:  # else `_from_page` moves the place, so that `token` skips no event of the page
            self._place = end
        await trio.lowlevel.checkpoint()
