"""Follow the log of order events from a token on, until the consumer stops.

    token -> page of events after it -> ... -> no new event: wait for a write by this engine, or until the
             next look for events written by other engines

A token stands for a place in the log: 32 hexadecimal digits, opaque to clients. No event appears at a place
before that of an event which was already handed out, however many engines write at the same time. The
follower passes over events that retention has deleted.

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
    """Encode an event's place in the log, (transaction, number), as a token, 32 hexadecimal digits."""
    return f"{transaction:016x}{number:016x}"


def place_of(token: str, field: str = "after") -> tuple[int, int]:
    """Decode a token to the place in the log that it stands for: (transaction, number).

    Args:
        field: name of the request's field that held the token, for the error.

    Raises:
        InvalidInput: the text is no token.
    """
    if _TOKEN.fullmatch(token):
        place = int(token[:16], 16), int(token[16:], 16)
        if max(place) < _HALF_MAX:
            return place
    raise InvalidInput(field=field, expected="the token of an event that was received", got=token)


async def latest(store: Store) -> str:
    """Return the token of the event log's current end: a follower that starts there gets only later
    events.
    """
    (rows,) = await store.read(last_event())
    return token_of(*rows[0]) if rows else START


class FollowerStatistics(Struct, frozen=True):
    """Counters of a follower of the event log.

    Attributes:
        token: the follower's place in the log.
        events, reads: number of events returned, and of pages read.
        away: count of failed reads of the store.
    """

    token: str
    events: int
    reads: int
    away: int


class EventFollower:
    """Endless iterator over the log of order events: (token of the place, event), oldest first. Waits while
    the store is unavailable.

    Args:
        after: token of the place after which to start: from a client, START, or `await latest(store)`.
        owner: the account whose orders are followed; without an owner, all orders.
        page_max: most events of one read.

    Raises:
        InvalidInput: `after` is no token.
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
        """Wait for the log's next event and return (token, event). Cancelling the call loses no event."""
        while not self._page:
            await self._read()
        return self._next()

    async def page(self) -> list[tuple[str, OrderEvent]]:
        """Wait for at least one event of the log, and return all (token, event) available then. Cancelling
        the call loses no event.
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
        """Return the counters of events and reads, and the present place in the log."""
        return FollowerStatistics(token_of(*self._place), self._events, self._reads, self._away)

    async def _read(self) -> None:
        """Read a page of the event log; on an empty page wait until there may be new events."""
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
