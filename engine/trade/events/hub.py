"""Event hub: sends each order event of the store's log to the subscriptions of this process that want it.

    log -> EventFollower -> ring -> subscriptions that the event concerns -> woken, some at a time

A single follower reads the log for the whole process. Subscriptions that are up to date read the last 10,000
events from memory; lagging subscriptions read the store, at most 4 at a time and 64 events a page, with a
pause as long as each read. A token beyond the log's end is refused: it belongs to another database.

Source: ARCHITECTURE.md, "Push".
"""

from collections import defaultdict, deque
from time import perf_counter
from typing import Any

import trio
from msgspec import Struct

from ....config.errors import InvalidInput, StoreUnavailable
from ....config.limits import FOLLOW_REPLAYS_MAX, FOLLOW_RING_MAX
from ....config.timeouts import FOLLOW_LOOK_S
from ...store.follower import START, EventFollower, latest, place_of, token_of
from ...store.queries import Query
from ...store.rows import OrderEvent
from ...store.store import Store
from .filters import EventFilter, FilterKey, keys_of
from .ring import EventRing, RingEntry, RingPosition
from .subscription import Subscription

_AT_ONCE = 16  # listeners that are woken, or events that are added, between two checkpoints
_NOTED_AT_ONCE = 256  # listeners that note an event


class HubStatistics(Struct, frozen=True):
    """Counters of order events and subscriptions of this process at one moment.

    Attributes:
        subscriptions: number of subscriptions.
        events: order events received from the store's log so far.
        woken: number of times that a waiting subscription was woken for an event.
        pages: pages read from the store for subscriptions that lag behind.
        ring: number of events in memory.
        token: resume token of the last event received; before the first event, the token of the log's end
            when the hub started.
    """

    subscriptions: int
    events: int
    woken: int
    pages: int
    ring: int
    token: str


class EventHub:
    """Passes the order events of the store's log to this process's subscriptions; `run` is the hub's task.

    Call `subscribe` only after `run` has started.

    Args:
        ring_max: most events in memory.

    Attributes:
        ring: the last events of the log, in memory.
        told: place in the log; the hub has announced all events up to this place to the subscriptions whose
            filters they match.
    """

    def __init__(self, store: Store, *, ring_max: int = FOLLOW_RING_MAX) -> None:
        self.ring = EventRing(place_of(START), ring_max)
        self._store = store
        self._ring_max = ring_max
        self.told: RingPosition = self.ring.newest
        self._of_key: defaultdict[FilterKey, set[Subscription]] = defaultdict(set)
        self._subscriptions: set[Subscription] = set()
        self._to_wake: deque[Subscription] = deque()
        self._replays = trio.CapacityLimiter(FOLLOW_REPLAYS_MAX)
        self._read_at = 0.0  # end of the last read of a page, by perf_counter
        self._rested_at = 0.0  # earliest start of the next read of a page, by trio's clock
        self._woken = self._pages = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read new order events from the store's log and publish them to subscriptions, until cancelled."""
        start = await self._now()
        self.ring = EventRing(place_of(start), self._ring_max)
        self.told = self.ring.newest
        task_status.started()
        async for token, event in EventFollower(self._store, start):
            await self.publish(token, event)

    async def publish(self, token: str, event: OrderEvent) -> None:
        """Add a new order event, later in the log than all others; wake the subscriptions that want it."""
        await self._add(RingEntry(place_of(token), event))
        if self._to_wake or not self.ring.end % _AT_ONCE:
            await self._wake()

    async def subscribe(
        self, wanted: EventFilter, after: str | None = None, *, field: str = "after"
    ) -> Subscription:
        """Create a subscription to the order events that match a filter, from a place in the log on.

        Args:
            wanted: the filter.
            after: resume token; the subscription starts with the event after the token's event. None: the
                subscription starts with the next new event.
            field: name of the request's field that held the token, for the error.

        Raises:
            InvalidInput: `after` is no token of this log.
            StoreUnavailable: the token cannot be checked, because the store is unavailable.
        """
        # Without a token nothing is awaited from here to the entry into `_of_key`: no new event is missed.
        place = self.ring.newest if after is None else place_of(after, field)
        # A token beyond the ring may be valid: another process may have read a newer event from the log.
        if place > self.ring.newest:
            newest = place_of(await latest(self._store))
            if newest == place_of(START):  # the log is empty: the token's event may be pruned
                place = self.ring.newest
            elif newest < place:
                raise InvalidInput(field=field, expected="a token of this venue's events", got=after)
        made = Subscription(self, wanted, place)
        self._subscriptions.add(made)
        for key in wanted.keys:
            self._of_key[key].add(made)
        return made

    def leave(self, subscription: Subscription) -> None:
        """Remove a subscription from the hub, so that it gets no more events."""
        self._subscriptions.discard(subscription)
        for key in subscription.wanted.keys:
            others = self._of_key.get(key, set())
            others.discard(subscription)
            if not others:
                self._of_key.pop(key, None)

    async def read(self, query: Query) -> list[tuple[Any, ...]]:
        """Read a page of order events from the store, for a subscription that lags behind.

        After a read, the next read waits for as long as the read took, so that such reads are under way for
        at most half of the time.

        Raises:
            StoreUnavailable: the database cannot be read now.
        """
        async with self._replays:
            while (rest_s := self._rested_at - trio.current_time()) > 0:  # noqa: ASYNC110  it is a time
                await trio.sleep(rest_s)
            self._pages += 1
            began = perf_counter()
            (rows,) = await self._store.read(query)
            ended = perf_counter()
            took_s = ended - max(began, self._read_at)  # the time in which reads overlap counts once
            self._rested_at = max(self._rested_at, trio.current_time()) + took_s
            self._read_at = ended
        return rows

    def statistics(self) -> HubStatistics:
        """Return the counters of order events, subscriptions and page reads."""
        return HubStatistics(
            len(self._subscriptions),
            self.ring.end,
            self._woken,
            self._pages,
            len(self.ring),
            token_of(*self.ring.newest),
        )

    async def _add(self, entry: RingEntry) -> None:
        """Add an event to the ring, and announce the event to the waiting subscriptions whose filters match.

        The method advances `told` to the event last, so that no client gets a resume token beyond an event
        that it still has to receive. A subscription that does not wait, or is created during this call,
        finds the event itself, since a subscription waits only after it has read the whole ring.
        """
        before = self.ring.newest
        number = self.ring.add(entry)
        noted = 0
        for key in keys_of(entry):
            for listener in tuple(self._of_key.get(key, ())):
                if listener.note(number, entry, before):
                    self._to_wake.append(listener)
                noted += 1
                if not noted % _NOTED_AT_ONCE:
                    await trio.lowlevel.checkpoint()
        self.told = entry.place

    async def _wake(self) -> None:
        """Wake the subscriptions to which an event was announced, some at a time, to let other tasks run."""
        while True:
            for _ in range(min(_AT_ONCE, len(self._to_wake))):
                self._woken += 1
                self._to_wake.popleft().wake()
            await trio.lowlevel.checkpoint()
            if not self._to_wake:
                return

    async def _now(self) -> str:
        while True:
            try:
                return await latest(self._store)
            except StoreUnavailable:
                await trio.sleep(FOLLOW_LOOK_S)
