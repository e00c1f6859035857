"""A client of a venue's order events; after a lost connection it continues after the last event's token.

    connecting --open--> live --a change or a beat: the token moves on--> live
    connecting --no answer--> a pause with jitter, doubling --> connecting, after the token
    live       --ended--> a pause with jitter --> connecting, after the token
    connecting --refused--> over

After a reconnect the events continue after the last token, so that the receiver misses no event and gets none
twice. Without a token the events begin with the connection.

The client reads events over a WebSocket, whose pings reveal a dead connection. A refusal by a status of 400
to 499, except 408 and 429, is final. A close with 1008 is final too: the venue does not know the token, which
belongs to another database.

Source: ARCHITECTURE.md, "Push"; codecs/messages/event_messages.py.
"""

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from random import Random, SystemRandom
from typing import ClassVar

import trio
from msgspec import Struct

from ....codecs.messages.event_messages import BeatMessage, OrderStreamMessage, decode_stream_message
from ....config.errors import CambistError, InvalidInput, VenueError, WebSocketClosed
from ....config.timeouts import TRADER_ORDER_LOOK_PUSHED_S
from ....feeds.backoff import pause_s
from ....feeds.transport.websocket import WebSocket
from .client import VenueClient

_REFUSED, _SERVER_FAULT = 400, 500
_POLICY_VIOLATION = 1008
_LATER = frozenset((408, 429))


class _OrderFilters(Struct, frozen=True, kw_only=True):
    """Filters that events of Delta and of OTC orders share; an empty member matches any order.

    Attributes:
        order: a hash, or an id of a Delta order.
    """

    order: str = ""
    chain_ids: tuple[int, ...] = ()


class EventsWanted(_OrderFilters, frozen=True, kw_only=True):
    """Filters for events of Delta orders.

    Attributes:
        owner: address of the orders' owner; empty for any.
    """

    path: ClassVar[str] = "/v2/delta/orders/events"

    owner: str = ""
    partner: str = ""

    def filters(self) -> dict[str, str]:
        """Query parameters of the filters for events of Delta orders."""
        name = "orderHash" if self.order.startswith("0x") else "orderId"
        return {name: self.order, "userAddress": self.owner, "partner": self.partner}


class OtcEventsWanted(_OrderFilters, frozen=True, kw_only=True):
    """Filters for events of OTC orders.

    Attributes:
        maker, taker: addresses; an order's taker is its `taker` member or the address within its
            `nonceAndMeta`.
    """

    path: ClassVar[str] = "/ft/events"

    maker: str = ""
    taker: str = ""

    def filters(self) -> dict[str, str]:
        """Query parameters of the filters for events of OTC orders."""
        return {"orderHash": self.order, "maker": self.maker, "taker": self.taker}


EventSelection = EventsWanted | OtcEventsWanted
"""Filters that select events of one kind of orders."""


def _query(wanted: EventSelection, after: str) -> dict[str, str]:
    """Query parameters of the request that opens the event stream.

    Args:
        after: resume token of the last event already received; empty to begin with new events.
    """
    return wanted.filters() | {"chainId": ",".join(map(str, wanted.chain_ids)), "after": after}


class OrderEvents:
    """A listener to one venue's order events; `run` is its task.

    Args:
        hear: receives each message of the venue, heartbeats included, which only show that the connection is
            alive.
        tell: receives one line of text when the connection is lost.
        random: random numbers for the jitter in the pauses before a new connection.
        after: resume token of the last event already received; empty to begin with new events.

    Attributes:
        token: resume token of the last message; a later listener that gets this token as `after` misses no
            event.
        is_live: whether the present connection has delivered a message.
    """

    def __init__(
        self,
        venue: VenueClient,
        wanted: EventSelection,
        hear: Callable[[OrderStreamMessage], None],
        *,
        tell: Callable[[str], None],
        random: Random,
        after: str = "",
    ) -> None:
        self._venue = venue
        self._wanted = wanted
        self._hear = hear
        self._tell = tell
        self._random = random
        self._failures = 0
        self.token = after
        self.is_live = False

    async def run(self, timeout_s: float = math.inf) -> None:
        """Receive events until the timeout, and connect again after a lost connection.

        Raises:
            VenueError: the venue refuses the event stream for good: by a status 400 to 499 except 408 and
                429, or because the resume token is from another database.
        """
        with trio.move_on_after(timeout_s):
            while True:
                try:
                    query = _query(self._wanted, self.token)
                    async with self._venue.events(self._wanted.path, query) as socket:
                        await self._listen(socket)
                except VenueError as fault:
                    if _REFUSED <= fault.status < _SERVER_FAULT and fault.status not in _LATER:
                        raise
                    self._failed(fault)
                except (WebSocketClosed, InvalidInput) as fault:
                    if isinstance(fault, WebSocketClosed) and fault.code == _POLICY_VIOLATION:
                        raise VenueError(f"events: {fault.detail}") from None
                    self._failed(fault)
                await trio.sleep(pause_s(self._failures, self._random))

    async def _listen(self, socket: WebSocket) -> None:
        """Pass on the messages of one connection to `hear` until the connection ends.

        Raises:
            WebSocketClosed: the connection has ended.
            InvalidInput: a message cannot be decoded.
        """
        while True:
            text = await socket.receive()
            message = decode_stream_message(text.encode() if isinstance(text, str) else text)
            self.token = message.token
            self.is_live = True
            self._failures = 0
            self._hear(message)

    def _failed(self, fault: CambistError) -> None:
        if not self._failures:
            self._tell(f"events: {fault.detail}: connecting again")
        self.is_live = False
        self._failures += 1


class OrderPush:
    """Wakes a waiting task when the venue pushes a change of the task's order; created by `pushed`.

    Attributes:
        is_live: whether the venue pushes events now; if False, the order must be polled.
    """

    def __init__(self, venue: VenueClient, wanted: EventSelection, tell: Callable[[str], None]) -> None:
        self._events = OrderEvents(venue, wanted, self._hear, tell=self._lost, random=SystemRandom())
        self._tell = tell
        self._heard = trio.Event()
        self._is_over = False

    @property
    def is_live(self) -> bool:
        """Whether the venue pushes events now; if False, the order must be polled."""
        return self._events.is_live and not self._is_over

    async def run(self) -> None:
        """Receive events until cancelled, or until the venue refuses the event stream for good.

        A venue without event streams refuses for good too. After the refusal, `is_live` is False.
        """
        try:
            await self._events.run()
        except VenueError:
            self._is_over = True

    async def wait(self, unpushed_s: float) -> None:
        """Wait until the order may have changed.

        Args:
            unpushed_s: maximum seconds to wait if the venue does not push; while the venue pushes, the wait
                ends after TRADER_ORDER_LOOK_PUSHED_S.
        """
        with trio.move_on_after(TRADER_ORDER_LOOK_PUSHED_S if self.is_live else unpushed_s):
            await self._heard.wait()
        # A message before this line is covered by the caller's next request for the order; a later message
        # sets the new event. No wake-up is lost.
        self._heard = trio.Event()

    def _hear(self, message: OrderStreamMessage) -> None:
        """Wake the waiting task at every message except a heartbeat.

        The first message of a connection wakes the task too, since the order may have changed before the
        connection was open.
        """
        if not isinstance(message, BeatMessage):
            self._heard.set()

    def _lost(self, line: str) -> None:
        self._tell(line)
        self._heard.set()


@asynccontextmanager
async def pushed(
    venue: VenueClient, wanted: EventSelection, tell: Callable[[str], None]
) -> AsyncGenerator[OrderPush]:
    """Context manager that receives an order's events in a task, and yields the OrderPush to wait with."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        push = OrderPush(venue, wanted, tell)
        nursery.start_soon(push.run)
        try:
            yield push
        except Exception as error:  # noqa: BLE001 - raised below, not within an exception group
            failure = error
        finally:
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
