"""Streams of order events over a real store, on real sockets, read as a browser reads server-sent events.

async with an_event_venue(tmp_path) as venue:
    order = await kept(venue.store, a_delta_order(1))
    async with venue.following("userAddress=0x...") as events:
        token = await events.begun()
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
from trio.testing import memory_stream_pair

from cambist.codecs.messages.event_messages import (
    OpenMessage,
    OrderEventMessage,
    OrderStreamMessage,
    decode_order_event,
    decode_stream_message,
)
from cambist.config.sections.venue import RateTier
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.host.admission.admission import Admission
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.server import Router
from cambist.engine.store.store import Store
from cambist.engine.trade.api.routes import encode_trading_error, mount_endpoints
from cambist.engine.trade.delta.endpoints.order_events import order_event_endpoints
from cambist.engine.trade.events.event_streams import EventStreams, Sees
from cambist.engine.trade.events.hub import EventHub
from cambist.engine.trade.otc.endpoints import otc_event_endpoints
from cambist.feeds.transport.websocket import WebSocket, connect_websocket
from support.patience import PATIENCE_S
from support.server.server_harness import MemoryListener, Served, serving, serving_memory
from support.store.stores import Engine
from support.venue.admitting import an_admission


class EventStream:
    """A GET of a stream.

    Attributes:
        head: of the answer, once `open` returned.
        last_id: of the last event that had one.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._text = b""
        self.head = b""
        self.last_id = ""

    async def open(self, target: bytes, *headers: bytes) -> None:
        """Ask, and wait for the head of the answer."""
        await self._stream.send_all(
            b"".join(
                [b"GET %b HTTP/1.0\r\nHost: a\r\n" % target, *(line + b"\r\n" for line in headers), b"\r\n"]
            )
        )
        self.head = await self._until(b"\r\n\r\n")

    async def event(self) -> tuple[str, dict[str, object]]:
        """The next event and its data; comments are passed over."""
        while True:
            block = await self._until(b"\n\n")
            if not block.startswith(b":"):
                kind, *others, data = block.strip().split(b"\n")
                assert kind.startswith(b"event: ")
                assert data.startswith(b"data: ")
                assert all(line.startswith(b"id: ") for line in others)
                self.last_id = others[0][4:].decode() if others else self.last_id
                return kind[7:].decode(), msgspec.json.decode(data[6:])

    async def block(self) -> bytes:
        """Next block of the stream, an event or a comment."""
        return await self._until(b"\n\n")

    async def rest(self) -> bytes:
        """All that comes until the end."""
        with trio.fail_after(PATIENCE_S):
            while data := await self._stream.receive_some(65_536):
                self._text += data
        return self._text

    async def _until(self, mark: bytes) -> bytes:
        with trio.fail_after(PATIENCE_S):
            while mark not in self._text:
                data = await self._stream.receive_some(65_536)
                assert data, self._text
                self._text += data
        block, _, self._text = self._text.partition(mark)
        return block + mark


PATH, OTC_PATH = "/v2/delta/orders/events", "/ft/events"
PLENTY = RateTier(per_s=100_000, burst=100_000)

StreamPair = Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]]
Told = tuple[str, str, int]
"""(order's hash, status, version)."""


def told(message: OrderStreamMessage) -> Told:
    """Hash, status and version of an event's message, to compare with `written`."""
    assert isinstance(message, OrderEventMessage), message
    return message.order_hash, message.status, message.version


def written(order: Any) -> Told:
    """Hash, status and version that the event of an order's step has."""
    return to_hex(order.order_hash), str(order.status), order.version


class EventVenue:
    """Events of the orders of a store, as a venue serves them, on both surfaces: everybody's for everybody,
    unless it `is_strict`.

    Attributes:
        store: its log.
        hub, events: what is tested.
        served: where it listens.
    """

    def __init__(
        self,
        store: Store,
        *,
        ring_max: int,
        streams_max: int,
        admission: Admission,
        is_strict: bool = False,
    ) -> None:
        self.store = store
        self.hub = EventHub(store, ring_max=ring_max)
        sees: Sees = admission.sees_orders if is_strict else lambda *_: True
        self.events = EventStreams(
            self.hub, causer=admission.causer, sees=sees, streams_max=streams_max, ledger=Ledger()
        )
        self.router = Router(encode_trading_error)
        rows = (*order_event_endpoints(self.events), *otc_event_endpoints(self.events))
        mount_endpoints(self.router, rows, admission, body_bytes_max=65_536)
        self.served: Served

    @asynccontextmanager
    async def following(self, query: str = "", *headers: str, path: str = PATH) -> AsyncIterator["Following"]:
        """A stream of server-sent events."""
        async with await self.served.connect() as stream:
            events = EventStream(stream)
            target = f"{path}?{query}" if query else path
            await events.open(target.encode(), *(header.encode() for header in headers))
            yield Following(events)

    @asynccontextmanager
    async def socket(
        self, query: str = "", *, path: str = PATH, key: str = ""
    ) -> AsyncIterator["SocketFollowing"]:
        """The same through a WebSocket."""
        async with connect_websocket(
            "127.0.0.1",
            self.served.port,
            f"{path}?{query}",
            tls=None,
            headers={"X-API-KEY": key} if key else {},
            message_bytes_max=65_536,
            send_bytes_max=65_536,
        ) as socket:
            yield SocketFollowing(socket)


class Following:
    """A stream, as its client reads it.

    Attributes:
        events: the bytes beneath.
    """

    def __init__(self, events: EventStream) -> None:
        self.events = events

    async def begun(self) -> str:
        """The token of the first piece."""
        kind, data = await self.events.event()
        assert kind == "open", data
        opened = msgspec.convert(data, OpenMessage)
        assert self.events.last_id == opened.token
        return opened.token

    async def next(self) -> OrderEventMessage:
        """The next event."""
        kind, data = await self.events.event()
        assert kind == "order", data
        message = decode_order_event(msgspec.json.encode(data))
        assert self.events.last_id == message.token
        return message

    async def take(self, count: int) -> list[OrderEventMessage]:
        """The next events, as many as that."""
        return [await self.next() for _ in range(count)]

    async def until_status(self, status: str) -> list[OrderEventMessage]:
        """The next events up to one of an order with this status."""
        messages = [await self.next()]
        while messages[-1].status != status:
            messages.append(await self.next())
        return messages


@asynccontextmanager
async def following(port: int, query: str) -> AsyncIterator[Following]:
    """A stream of a venue that listens at a port."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        events = EventStream(stream)
        await events.open(f"{PATH}?{query}".encode())
        yield Following(events)


class SocketFollowing:
    """A WebSocket, as its client reads it."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket

    async def message(self) -> OrderStreamMessage:
        """The next message of any kind."""
        with trio.fail_after(PATIENCE_S):
            text = await self.socket.receive()
        assert isinstance(text, str)
        message: OrderStreamMessage = decode_stream_message(text.encode())
        return message

    async def begun(self) -> str:
        """The token of the first message."""
        message = await self.message()
        assert isinstance(message, OpenMessage)
        return message.token

    async def take(self, count: int) -> list[OrderEventMessage]:
        """The next messages, as many as that, all of them events."""
        messages = [await self.message() for _ in range(count)]
        assert all(isinstance(message, OrderEventMessage) for message in messages)
        return messages  # type: ignore[return-value]


@asynccontextmanager
async def a_venue_at(
    store: Store,
    *,
    reactor: bool = True,
    ring_max: int = 100,
    streams_max: int = 100,
    public: RateTier = PLENTY,
    is_strict: bool = False,
    **server: Any,
) -> AsyncIterator[EventVenue]:
    """A venue over a store that is open."""
    admission = an_admission(public=public, keyed=PLENTY)
    venue = EventVenue(
        store, ring_max=ring_max, streams_max=streams_max, admission=admission, is_strict=is_strict
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(venue.hub.run)
        async with serving(venue.router, reactor=reactor, **server) as venue.served:
            yield venue
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def an_event_venue_in_memory(
    engine: Engine, pair: StreamPair = memory_stream_pair, *, ring_max: int = 100, **server: Any
) -> AsyncIterator[tuple[EventVenue, MemoryListener]]:
    """A venue whose connections are in memory, on the test's clock; and where to connect."""
    listener = MemoryListener(pair)
    async with engine.open() as store:
        venue = EventVenue(store, ring_max=ring_max, streams_max=100, admission=an_admission(public=PLENTY))
        async with trio.open_nursery() as nursery:
            await nursery.start(venue.hub.run)
            async with serving_memory(venue.router, listener, **server):
                yield venue, listener
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def an_event_venue(engine: Engine, **options: Any) -> AsyncIterator[EventVenue]:
    """A venue over a store of its own."""
    async with engine.open() as store, a_venue_at(store, **options) as venue:
        yield venue
