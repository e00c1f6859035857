"""Streams of order events and time: beats, consumers that are slow or stop, what others notice of them."""

from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair

from cambist.codecs.messages.event_messages import (
    BeatMessage,
    OpenMessage,
    OrderEventMessage,
    OrderStreamMessage,
    decode_stream_message,
)
from cambist.config.timeouts import EVENT_BEAT_S
from cambist.crypto.addresses import to_checksum
from cambist.engine.trade.events import event_streams
from cambist.feeds.transport import websocket
from support.events.event_streams import PATH, EventStream, Following, an_event_venue_in_memory, told, written
from support.server.raw_websocket import CLOSE, HANDSHAKE, PING, TEXT, RawPeer
from support.server.server_harness import MemoryListener
from support.store.stores import ALICE, BOB, Engine, a_delta_order, kept
from support.stretched_bounds import OWN_S, own_bounds

BOBS = f"userAddress={to_checksum(BOB)}"
EVENT_STALL_S, WEBSOCKET_CLOSE_S = OWN_S["EVENT_STALL_S"], OWN_S["WEBSOCKET_CLOSE_S"]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)


@pytest.fixture
def clock(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> MockClock:
    own_bounds(monkeypatch, event_streams, websocket)
    return autojump_clock


async def following(listener: MemoryListener, query: str = "") -> Following:
    events = EventStream(listener.connect())
    await events.open(f"{PATH}?{query}".encode())
    return Following(events)


async def a_socket(listener: MemoryListener, query: str = "") -> RawPeer:
    """A WebSocket that only reads when it is told to."""
    peer = RawPeer(listener.connect(), masks=True)
    lines = [b"GET %b?%b HTTP/1.1" % (PATH.encode(), query.encode())]
    lines += [b"%b: %b" % header for header in HANDSHAKE]
    await peer.stream.send_all(b"\r\n".join([*lines, b"", b""]))
    assert b" 101 " in await peer.head()
    return peer


async def message_of(peer: RawPeer) -> OrderStreamMessage:
    """The next message; pings are passed over."""
    while True:
        opcode, data = await peer.receive()
        if opcode != PING:
            assert opcode == TEXT, (opcode, data)
            message: OrderStreamMessage = decode_stream_message(data)
            return message


async def test_a_beat_carries_the_newest_place(engine: Engine, autojump_clock: MockClock) -> None:
    async with an_event_venue_in_memory(engine) as (venue, listener):
        bobs, everybodys = await following(listener, BOBS), await following(listener)
        peer = await a_socket(listener, BOBS)
        token = await bobs.begun()
        assert await message_of(peer) == OpenMessage(token)
        await everybodys.begun()
        began = trio.current_time()
        for number in range(3):
            await kept(venue.store, a_delta_order(number, owner=ALICE))
        newest = (await everybodys.take(3))[-1].token
        assert await bobs.events.block() == f": beat\nid: {newest}\n\n".encode()
        assert trio.current_time() == pytest.approx(began + EVENT_BEAT_S, abs=1)
        assert await message_of(peer) == BeatMessage(newest)
        pages = venue.hub.statistics().pages
        again = await following(listener, f"{BOBS}&after={newest}")
        assert await again.begun() == newest
        order = await kept(venue.store, a_delta_order(9, owner=BOB))
        for one in (bobs, again):
            assert told(await one.next()) == written(order)
        assert venue.hub.statistics().pages == pages, "nothing had to be read"
        assert venue.events.statistics().beats >= 2


async def test_a_reader_that_is_slow_gets_everything_and_nothing_waits_for_it(
    engine: Engine, autojump_clock: MockClock
) -> None:
    """A lockstep stream has no buffer: a write waits until its bytes are read."""
    async with an_event_venue_in_memory(engine, lockstep_stream_pair, ring_max=5) as (venue, listener):
        slow, quick = await following(listener), await following(listener)
        peer = await a_socket(listener)
        for begun in (slow.begun(), quick.begun(), message_of(peer)):
            await begun
        orders = []
        for number in range(60):
            orders.append(await kept(venue.store, a_delta_order(number)))
            assert told(await quick.next()) == written(orders[-1])
            if not number % 10:
                assert told(await slow.next()) == written(orders[number // 10])
                message = await message_of(peer)
                assert told(message) == written(orders[number // 10])
        assert len(venue.hub.ring) == 5
        expected = [written(order) for order in orders[6:]]
        assert [told(message) for message in await slow.take(54)] == expected
        assert [told(await message_of(peer)) for _ in range(54)] == expected
        assert venue.hub.statistics().pages > 0


async def test_a_reader_that_stops_is_cut_off_and_comes_back(
    engine: Engine, autojump_clock: MockClock
) -> None:
    async with an_event_venue_in_memory(engine, lockstep_stream_pair, write_s=20.0) as (venue, listener):
        stopped, reads = await following(listener), await following(listener)
        await stopped.begun()
        await reads.begun()
        orders = [await kept(venue.store, a_delta_order(number)) for number in range(3)]
        assert [told(message) for message in await reads.take(3)] == [written(order) for order in orders]
        first = await stopped.next()
        orders += [await kept(venue.store, a_delta_order(number)) for number in range(3, 6)]
        assert [told(message) for message in await reads.take(3)] == [written(order) for order in orders[3:]]
        await trio.sleep(25)
        assert venue.events.statistics().streams == 1
        again = await following(listener, f"after={first.token}")
        assert await again.begun() == first.token
        assert [told(message) for message in await again.take(5)] == [written(order) for order in orders[1:]]


async def test_a_websocket_that_stops_reading_is_told_to_come_back(engine: Engine, clock: MockClock) -> None:
    async with an_event_venue_in_memory(engine, lockstep_stream_pair) as (venue, listener):
        peer, reads = await a_socket(listener), await following(listener)
        await message_of(peer)
        await reads.begun()
        first = await kept(venue.store, a_delta_order(1))
        await reads.next()
        assert venue.events.statistics().slow == 0
        await trio.sleep(EVENT_STALL_S + WEBSOCKET_CLOSE_S / 2)
        assert (await reads.events.block()).startswith(b": beat")
        others = [await kept(venue.store, a_delta_order(number)) for number in (2, 3)]
        assert [told(message) for message in await reads.take(2)] == [written(order) for order in others]
        message = await message_of(peer)
        assert told(message) == written(first)
        opcode, data = await peer.receive()
        while opcode == PING:
            opcode, data = await peer.receive()
        assert opcode == CLOSE
        assert int.from_bytes(data[:2]) == 1013
        assert data[2:] == b"slow consumer: come back with the last token"
        assert venue.events.statistics().slow == 1
        assert venue.events.statistics().streams == 1
        assert isinstance(message, OrderEventMessage)
        again = await following(listener, f"after={message.token}")
        await again.begun()
        assert [told(message) for message in await again.take(2)] == [written(order) for order in others]


async def test_a_websocket_that_is_cut_is_gone_after_a_while(engine: Engine, clock: MockClock) -> None:
    async with an_event_venue_in_memory(engine, lockstep_stream_pair) as (venue, listener):
        peer = await a_socket(listener)
        await message_of(peer)
        await kept(venue.store, a_delta_order(1))
        await trio.sleep(EVENT_STALL_S + 2 * WEBSOCKET_CLOSE_S)
        assert venue.events.statistics().streams == 0
        assert venue.hub.statistics().subscriptions == 0
        assert msgspec.to_builtins(venue.events.statistics())["slow"] == 1
