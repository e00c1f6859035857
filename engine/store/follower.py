"""Follow the log of order events from a token on, until the consumer stops.

    token -> page of events after it -> ... -> no new event: wait for a write by this engine, or until the
             next look for events written by other engines

A token stands for a place in the log: 32 hexadecimal digits, opaque to clients. Once an event is handed out,
no event appears at an earlier place, however many engines write at the same time. The follower passes over
events that retention has deleted.

Source: ARCHITECTURE.md, "Push".
"""

import re
from collections import deque
from typing import Any, Self

import trio
from msgspec import Struct

from ...config.errors import InvalidInput, StoreUnavailable
from ...config.limits import FOLLOW_EVENTS_MAX
from ...config.timeouts import FOLLOW_LOOK_S
from .queries import events_after, last_event
from .rows import OrderEvent
from .store import Store
from .tables import ORDER_EVENT
from .units import row_of

START = "0" * 32
"""Token of the place before the first event of the log."""

_TOKEN = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HALF_MAX = 1 << 63


def token_of(transaction: int, number: int) -> str:
    """Encode an event's place in the log as a resume token, 32 hexadecimal digits.

    Args:
        transaction: number of the database transaction that wrote the event; 0 in SQLite.
        number: number that sorts the events of one transaction.
    """
    return f"{transaction:016x}{number:016x}"


def place_of(token: str, field: str = "after") -> tuple[int, int]:
    """Decode a resume token to an event's place in the log: (transaction, number), as `token_of` takes them.

    Args:
        field: name of the request field with the token, for the error.

    Raises:
        InvalidInput: `token` is no resume token.
    """
    if _TOKEN.fullmatch(token):
        place = int(token[:16], 16), int(token[16:], 16)
        if max(place) < _HALF_MAX:
            return place
    raise InvalidInput(field=field, expected="the token of an event that was received", got=token)


async def latest(store: Store) -> str:
    """Return the resume token of the event log's last event: a follower that starts from it gets only later
    events.
    """
    (rows,) = await store.read(last_event())
    return token_of(*rows[0]) if rows else START


class FollowerStatistics(Struct, frozen=True):
    """Counters of a follower of the event log.

    Attributes:
        token: resume token of the last event returned; before the first event, the follower's `after`.
        events: number of events returned.
        reads: number of attempts to read a page of events, failed attempts included.
        away: number of failed attempts.
    """

    token: str
    events: int
    reads: int
    away: int


class EventFollower:
    """Endless iterator over the log of order events: (the event's resume token, event), oldest first. The
    iterator waits while the store is unavailable.

    Args:
        after: resume token of the event after which to start: a client's token, START (the beginning of the
            log), or `await latest(store)`.
        owner: account whose orders' events are returned, 20 bytes; None for all orders.
        page_max: most events of one read.

    Raises:
        InvalidInput: `after` is no resume token.
    """

    def __init__(
        self, store: Store, after: str, *, owner: bytes | None = None, page_max: int = FOLLOW_EVENTS_MAX
    ) -> None:
        self._store = store
        self._place = place_of(after)
        self._owner = owner
        self._page_max = page_max
        self._page: deque[Any] = deque()
        self._events = self._reads = self._away = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[str, OrderEvent]:
        """Wait for the log's next event and return (resume token, event). Cancellation loses no event."""
        while not self._page:
            await self._read()
        return self._next()

    async def page(self) -> list[tuple[str, OrderEvent]]:
        """Wait until the log has a next event, and return it with the rest of the page that was read.

        Cancelling the call loses no event.

        Returns:
            A (resume token, event) for each event, oldest first.
        """
        while not self._page:
            await self._read()
        return [self._next() for _ in range(len(self._page))]

    def _next(self) -> tuple[str, OrderEvent]:
        transaction, number, *columns = self._page.popleft()
        self._place = transaction, number
        self._events += 1
        event: OrderEvent = row_of(ORDER_EVENT, columns)
        return token_of(transaction, number), event

    def statistics(self) -> FollowerStatistics:
        """Return the counters of events and reads, and the resume token of the last event returned."""
        return FollowerStatistics(token_of(*self._place), self._events, self._reads, self._away)

    async def _read(self) -> None:
        """Read a page of the event log; on an empty page wait until there may be new events."""
        # The event is taken before the read: a write of this engine after the read sets the event.
        changed = self._store.changed()
        self._reads += 1
        try:
            (rows,) = await self._store.read(events_after(self._place, self._page_max, self._owner))
        except StoreUnavailable:
            self._away += 1
            rows = []
        if rows:
            self._page.extend(rows)
            return
        with trio.move_on_after(FOLLOW_LOOK_S):
            await changed.wait()
