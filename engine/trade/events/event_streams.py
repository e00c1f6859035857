"""Streams of order events: sends the changes of Delta or OTC orders as they happen, from a resume token on.

    server-sent events                                  WebSocket on the same path
    event: open    id: token   data: OpenMessage        OpenMessage       at once
    event: order   id: token   data: OrderEventMessage  OrderEventMessage
    : beat         id: token                            BeatMessage       in quiet times

A client that reconnects with its last token gets each later event once, in order. The token of a heartbeat
(`beat`) comes after all earlier events that do not match the stream, so that a reconnect skips them. Delta
and OTC orders have a path each, with the parameters that select orders; both share the bounds on streams.

A stream without `after` starts at the newest event, and its first message holds the current token. A
WebSocket closes with 1013 if the client does not take the next batch of messages within EVENT_STALL_S.
Messages of the client are ignored; too many of them close the WebSocket with 1008.

Source: ARCHITECTURE.md, "Push"; WHATWG HTML, "Server-sent events".
Choice: An event stream names an owner, a taker or orders, or has a key: the operator's key sees every order,
    a partner's key the partner's. `taker` zero stands for OTC orders that anybody may fill.
Choice: `Last-Event-ID` overrides `after`, which a reconnecting browser repeats from its first URL.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias
from uuid import UUID

import trio
from msgspec import Struct

from ....codecs.messages.event_messages import BeatMessage, OpenMessage, OrderEventMessage
from ....codecs.messages.wire import encode
from ....config.errors import CambistError, InvalidInput, WebSocketClosed
from ....config.limits import VENUE_ORDER_IDS_MAX
from ....config.timeouts import EVENT_BEAT_S, EVENT_STALL_S
from ....crypto.hexadecimal import parse_hex
from ....feeds.transport.websocket import WebSocket
from ...host.admission.ledger import Causer, Hold, Ledger
from ...host.admission.open_streams import OpenStreams
from ...host.server.routing import HttpCall, StreamReply, WriteNow
from ...store.follower import place_of
from ..api.routes import Endpoint, Socket
from ..orders.order_units import DELTA, OTC, order_id
from .filters import EventFilter
from .hub import EventHub
from .message import sent_event
from .ring import RingEntry
from .subscription import Subscription

CONTENT_TYPE = b"text/event-stream"
HEADERS = ((b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))
_COST = 5
_HASH_BYTES = 32
_EVENTS_AT_ONCE = 16  # most events in a piece of a body, or before a WebSocket's client must have taken them
_HEARD_MAX = 1_000  # messages of a client that are ignored before its WebSocket is closed
_POLICY_VIOLATION, _TRY_AGAIN_LATER = 1008, 1013
_SLOW = "slow consumer: come back with the last token"
LAST_EVENT_ID = b"last-event-id"
"""Name of the header with the token of the last event that a reconnecting browser has received."""

ReadStreamQuery: TypeAlias = Callable[[bytes], tuple[EventFilter, str | None]]
"""Function that parses the query of a request for an event stream, or raises InvalidInput.

The result is (filter of the events, resume token after which the stream starts; None for new events only).
"""


Sees: TypeAlias = Callable[[HttpCall, str | None], bool]
"""Function (request, partner) -> whether the request may read orders of all owners.

The orders are those of the partner only, or of all partners if the partner is None.
"""

_WHOSE = {
    DELTA.name: ("userAddress", "an owner; or orderId, orderHash, or an operator's X-API-KEY"),
    OTC.name: ("maker", "a maker; or taker, orderHash, or an operator's X-API-KEY"),
}
"""Kind of orders (`delta`, `otc`) -> (parameter that an error reports as missing, its alternatives)."""


class EventStreamStatistics(Struct, frozen=True):
    """Counts of the event streams of Delta and OTC orders together.

    Attributes:
        streams: number of open streams, WebSockets included.
        opened, refused: number of streams opened, and of streams refused by the bounds on open streams.
        events, beats: number of order events and of heartbeats sent.
        slow: number of WebSockets closed because the client did not take a batch of messages in time.
    """

    streams: int
    opened: int
    refused: int
    events: int
    beats: int
    slow: int


class _StreamRequest(Struct, frozen=True):
    """Parsed parameters of a request for an event stream.

    Attributes:
        wanted: filter of the events to send.
        after: resume token of the last event that the client has; None to start after the newest event.
        field: name of the parameter or header that holds the token, for error messages.
    """

    wanted: EventFilter
    after: str | None
    field: str


class EventStreams:
    """Event streams of Delta and OTC orders, as server-sent events or over WebSockets.

    Args:
        hub: source of the events; must be running.
        causer: returns the caller whose limits a request counts towards.
        sees: returns whether a request may read orders without naming their owner.
        streams_max: greatest number of open streams.
        ledger: ledger in which open streams count.
    """

    def __init__(
        self,
        hub: EventHub,
        *,
        causer: Callable[[HttpCall], Causer],
        sees: Sees,
        streams_max: int,
        ledger: Ledger,
    ) -> None:
        self._hub = hub
        self._causer = causer
        self._sees = sees
        self._open = OpenStreams("streams of events", streams_max, ledger)
        self._events = self._beats = self._slow = 0

    def endpoint(
        self,
        path: str,
        asking: ReadStreamQuery,
        *,
        query: type[Struct],
        group: str,
        summary: str,
        detail: str,
    ) -> Endpoint:
        """Create the endpoint that streams the events of one kind of orders, Delta or OTC.

        Args:
            path: URL path of the endpoint.
            asking: parses the query of a request.
            query: the struct of the query's parameters, for the API's documentation.
            group, summary, detail: heading, short and long description in the API's documentation.
        """
        return Endpoint(
            method="GET",
            path=path,
            coroutine=partial(self._stream, asking),
            socket=Socket(partial(self._check, asking), partial(self._serve, asking)),
            cost=_COST,
            group=group,
            summary=summary,
            detail=f"{detail} Server-sent events: `open` with a token, then an `order` for each change, and "
            "a comment with a token after every 15 seconds without a change. A WebSocket of the same path "
            "carries the same messages. A client that reconnects with its last token, as `after` or "
            "`Last-Event-ID`, gets every later event exactly once.",
            query=query,
            content_type=CONTENT_TYPE,
            events={"open": OpenMessage, "order": OrderEventMessage, "beat": BeatMessage},
        )

    def statistics(self) -> EventStreamStatistics:
        """Return the number of open event streams, and the counts of streams and events since the start."""
        streams = self._open
        return EventStreamStatistics(
            len(streams), streams.opened, streams.refused, self._events, self._beats, self._slow
        )

    async def next(self, subscription: Subscription) -> list[RingEntry]:
        """Wait for the next events of a stream; return an empty list when a heartbeat is due instead."""
        entries = list[RingEntry]()
        with trio.move_on_after(EVENT_BEAT_S):
            entries = await subscription.take(_EVENTS_AT_ONCE)
        self._events += len(entries)
        self._beats += not entries
        return entries

    def pushed(self) -> None:
        """Count an event that was pushed to its client."""
        self._events += 1

    def leave(self, subscription: Subscription, place: Hold) -> None:
        """End the event subscription of a stream, and stop counting the stream for its caller."""
        subscription.leave()
        self._open.leave(place)

    def _request(self, asking: ReadStreamQuery, call: HttpCall) -> _StreamRequest:
        """Parse a request for an event stream, and check that the caller may read the orders that it names.

        Raises:
            InvalidInput: a parameter is malformed; or the request names neither orders nor an owner or taker,
                and the request's API key does not give access to the orders of every owner.
        """
        request = _request_of(asking, call)
        wanted = request.wanted
        is_named = wanted.orders or wanted.owner is not None or wanted.taker is not None
        if not is_named and not self._sees(call, wanted.partner):
            field, expected = _WHOSE[wanted.surface or DELTA.name]
            raise InvalidInput(field=field, expected=expected)
        return request

    # --- Server-sent events -----------------------------------------------------------------------------

    async def _stream(self, asking: ReadStreamQuery, call: HttpCall) -> StreamReply:
        request = self._request(asking, call)
        subscription, place = await self._enter(self._causer(call), request)
        pieces = _Pieces(self, subscription, place)
        return StreamReply(
            content_type=CONTENT_TYPE, headers=HEADERS, pieces=pieces, endless=True, attach=pieces.attach
        )

    async def _enter(self, causer: Causer, request: _StreamRequest) -> tuple[Subscription, Hold]:
        """Subscribe to the requested order events, and count the stream for its caller.

        Raises:
            RateLimited, ServiceUnavailable: the caller, or all callers together, have too many streams.
            InvalidInput: the resume token is no token of this log.
            StoreUnavailable: the resume token cannot be checked.
        """
        place = self._open.enter(causer)  # before the wait below: requests meanwhile count this stream
        try:
            subscription = await self._hub.subscribe(request.wanted, request.after, field=request.field)
        except BaseException:
            self._open.leave(place)
            raise
        self._open.opened += 1
        return subscription, place

    # --- WebSocket --------------------------------------------------------------------------------------

    def _check(self, asking: ReadStreamQuery, call: HttpCall) -> None:
        self._request(asking, call)
        self._open.check(self._causer(call))

    async def _serve(self, asking: ReadStreamQuery, call: HttpCall, socket: WebSocket) -> None:
        request = self._request(asking, call)
        try:
            subscription, place = await self._enter(self._causer(call), request)
        except CambistError as error:
            code = _POLICY_VIOLATION if isinstance(error, InvalidInput) else _TRY_AGAIN_LATER
            await socket.aclose(code, str(error))
            return
        is_slow = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_hear, socket, nursery.cancel_scope)
                is_slow = await self._push(socket, subscription)
                nursery.cancel_scope.cancel()
        finally:
            self.leave(subscription, place)
        self._slow += is_slow
        ended = (_TRY_AGAIN_LATER, _SLOW) if is_slow else (_POLICY_VIOLATION, "this channel is one-way")
        await socket.aclose(*ended)  # no effect if the client has closed it

    async def _push(self, socket: WebSocket, subscription: Subscription) -> bool:
        """Send a subscription's events to a WebSocket until the client closes it or is too slow.

        Returns:
            Whether the client was too slow, i.e. did not take a batch of messages within EVENT_STALL_S
            seconds.
        """
        messages = [encode(OpenMessage(subscription.token))]
        try:
            while True:
                with trio.move_on_after(EVENT_STALL_S) as waiting:
                    for message in messages:
                        await socket.send(message.decode())
                    await socket.until_sent()
                if waiting.cancelled_caught:
                    return True
                entries = await self.next(subscription)
                messages = [entry.message for entry in entries] or [encode(BeatMessage(subscription.token))]
        except WebSocketClosed:
            return False


class _Pieces:
    """Async iterator over one stream's server-sent events, as encoded parts of the HTTP body."""

    def __init__(self, events: EventStreams, subscription: Subscription, place: Hold) -> None:
        self._events = events
        self._subscription = subscription
        self._place = place
        self._has_begun = False
        self._is_open = True

    def __aiter__(self) -> "_Pieces":
        return self

    async def __anext__(self) -> bytes:
        """Wait for the next events and return them encoded; a heartbeat if no event comes in time."""
        if not self._has_begun:
            self._has_begun = True
            token = self._subscription.token
            return sent_event(b"open", token, encode(OpenMessage(token)))
        entries = await self._events.next(self._subscription)
        if not entries:
            return b": beat\nid: %b\n\n" % self._subscription.token.encode()
        return entries[0].frame if len(entries) == 1 else b"".join([entry.frame for entry in entries])

    def attach(self, write: WriteNow) -> None:
        """Push events to the client by a function of the server that writes without waiting."""

        def push(entry: RingEntry) -> bool:
            is_written = write(entry.frame)
            if is_written:
                self._events.pushed()
            return is_written

        self._subscription.push_by(push)

    async def aclose(self) -> None:
        """End the stream's event subscription; a second call has no effect."""
        if self._is_open:
            self._is_open = False
            self._events.leave(self._subscription, self._place)


async def _hear(socket: WebSocket, scope: trio.CancelScope) -> None:
    """Read and ignore the messages of a WebSocket client.

    The stream's cancel scope is cancelled once the client closes the WebSocket or sends too many messages.
    """
    try:
        for _ in range(_HEARD_MAX):
            await socket.receive()
    except WebSocketClosed:
        pass
    scope.cancel()


def _request_of(asking: ReadStreamQuery, call: HttpCall) -> _StreamRequest:
    """Parse a request for an event stream; the Last-Event-ID header takes precedence over `after`.

    Raises:
        InvalidInput: a parameter or the header is malformed.
    """
    wanted, after = asking(call.request.query or b"")
    field = "after"
    last = call.request.fields.get(LAST_EVENT_ID, b"")
    if after is not None:
        place_of(after)
    if last:
        after, field = last.decode("latin-1"), LAST_EVENT_ID.decode()
        place_of(after, field)
    return _StreamRequest(wanted, after, field)


def ids_of_hashes(texts: Sequence[str]) -> list[UUID]:
    """Convert the order hashes in the parameter `orderHash` to order ids.

    Raises:
        InvalidInput: the parameter has too many hashes, or a malformed hash.
    """
    check_count("orderHash", texts)
    return [order_id(_hash(text)) for text in texts]


def check_count(field: str, texts: Sequence[str]) -> None:
    """Check that a parameter of an event stream names at most VENUE_ORDER_IDS_MAX orders.

    Args:
        field: name of the parameter, for the error.
        texts: values of the parameter, one for each order.

    Raises:
        InvalidInput: the parameter names more orders.
    """
    if len(texts) > VENUE_ORDER_IDS_MAX:
        raise InvalidInput(field=field, expected=f"at most {VENUE_ORDER_IDS_MAX}", got=len(texts))


def _hash(text: str) -> bytes:
    expected = f"0x and {2 * _HASH_BYTES} hexadecimal digits"
    order_hash = parse_hex(text, "orderHash", expected)
    if len(order_hash) != _HASH_BYTES:
        raise InvalidInput(field="orderHash", expected=expected, got=text)
    return order_hash
