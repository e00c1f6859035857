"""GET /ft/events on real sockets: OTC orders by maker, taker, order and chain, from a token on."""

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair

from cambist.codecs.messages.event_messages import OrderEventMessage, OrderStreamMessage, OtcEventsQuery
from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.sections.venue import RateTier
from cambist.config.timeouts import EVENT_BEAT_S
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.store.follower import START
from cambist.engine.store.rows import amount32
from cambist.engine.trade.api.openapi import openapi_document
from cambist.engine.trade.events import event_streams
from cambist.engine.trade.otc.endpoints import otc_event_endpoints
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.events import OrderEvents, OtcEventsWanted
from cambist.feeds.transport import websocket
from cambist.feeds.transport.websocket import HandshakeRefused, WebSocketClosed
from support.events.event_streams import (
    OTC_PATH,
    EventStream,
    EventVenue,
    Following,
    a_venue_at,
    an_event_venue,
    an_event_venue_in_memory,
    told,
    written,
)
from support.patience import PATIENCE_S
from support.server.raw_websocket import CLOSE, HANDSHAKE, RawPeer
from support.server.server_harness import answers, field
from support.store.stores import (
    ALICE,
    BOB,
    CAROL,
    NOBODY,
    Engine,
    a_delta_order,
    an_otc_order,
    hash_of,
    kept,
    moved,
)
from support.stretched_bounds import OWN_S, own_bounds
from support.venue.admitting import ALICE_KEY

GET = f"GET {OTC_PATH}?%b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
AHEAD = "7" + "f" * 15 + "0" * 16


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)


# --- A client's view ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reactor", [True, False], ids=["reactor", "tasks"])
async def test_a_taker_follows_an_order(engine: Engine, reactor: bool) -> None:
    asked = f"taker={to_checksum(BOB).lower()}"
    async with (
        an_event_venue(engine, reactor=reactor) as venue,
        venue.following(asked, path=OTC_PATH) as events,
    ):
        head = events.events.head.lower()
        assert head.startswith(b"http/1.1 200 ")
        assert b"content-type: text/event-stream" in head
        assert b"ratelimit-remaining:" in head
        assert await events.begun() == START
        order = await kept(venue.store, an_otc_order(1))
        first = await events.next()
        assert told(first) == written(order)
        assert msgspec.to_builtins(first) == {
            "event": "order",
            "token": first.token,
            "surface": "otc",
            "orderHash": to_hex(order.order_hash),
            "chainId": 1,
            "owner": to_checksum(ALICE),
            "partner": "",
            "status": "PENDING",
            "version": 1,
            "at": "2023-11-14T22:13:20.001Z",
            "type": "P2P",
            "taker": to_checksum(BOB),
            "takerFromMeta": to_checksum(NOBODY),
            "fillableBalance": str(10**18),
            "swappableBalance": str(10**18),
        }
        suspended = await moved(venue.store, order, status=OtcState.SUSPENDED, swappable=amount32(0))
        second = await events.next()
        assert (second.status, second.fillable_balance, second.swappable_balance) == (
            "SUSPENDED",
            str(10**18),
            "0",
        )
        back = await moved(venue.store, suspended, status=OtcState.PENDING)
        none = amount32(0)
        filled = await moved(
            venue.store, back, status=OtcState.FULFILLED, remaining=none, transaction_hash=hash_of(9)
        )
        _, last = await events.take(2)
        assert told(last) == written(filled)
        assert (last.fillable_balance, last.transaction_hash) == ("0", to_hex(hash_of(9)))


async def test_it_is_the_same_message_everywhere(engine: Engine) -> None:
    async with (
        an_event_venue(engine) as venue,
        venue.following(path=OTC_PATH) as events,
        venue.socket(path=OTC_PATH) as socket,
        venue.following(f"maker={to_checksum(ALICE)}", path=f"{OTC_PATH}/") as slashed,
    ):
        assert await events.begun() == await socket.begun() == await slashed.begun()
        await kept(venue.store, an_otc_order(1))
        (message,) = await socket.take(1)
        assert await events.next() == await slashed.next() == message


async def test_each_surface_hears_of_its_own(engine: Engine) -> None:
    async with an_event_venue(engine) as venue, venue.following() as delta, venue.socket() as delta_too:
        await delta.begun()
        await delta_too.begun()
        async with venue.following(path=OTC_PATH) as otc:
            await otc.begun()
            orders: list[Any] = [a_delta_order(1), an_otc_order(2), an_otc_order(3), a_delta_order(4)]
            for order in orders:
                await kept(venue.store, order)
            expected = [written(orders[0]), written(orders[3])]
            assert [told(message) for message in await delta.take(2)] == expected
            assert [told(message) for message in await delta_too.take(2)] == expected
            assert [told(message) for message in await otc.take(2)] == [
                written(orders[1]),
                written(orders[2]),
            ]


async def test_a_trader_listens_and_goes_on_where_it_was(engine: Engine) -> None:
    """By the client's own reader, which asks for what it wants and keeps the token."""
    wanted = OtcEventsWanted(maker=A, taker=B, chain_ids=(1, 10))
    async with (
        an_event_venue(engine) as venue,
        VenueClient.open(f"http://127.0.0.1:{venue.served.port}") as client,
    ):
        order = await kept(venue.store, an_otc_order(1))
        (first,), token = await heard(client, wanted, 1, START)
        assert told(first) == written(order)
        orders = [
            await kept(venue.store, an_otc_order(number, maker=(ALICE, CAROL)[number % 2], chain_id=chain_id))
            for number, chain_id in ((2, 1), (3, 1), (4, 56), (6, 10))
        ]
        second, _ = await heard(client, wanted, 2, token)
        assert [told(message) for message in second] == [written(orders[0]), written(orders[3])]
        only = OtcEventsWanted(order=to_hex(orders[2].order_hash))
        (third,), _ = await heard(client, only, 1, START)
        assert told(third) == written(orders[2])


async def heard(
    client: VenueClient, wanted: OtcEventsWanted, count: int, after: str
) -> tuple[list[OrderEventMessage], str]:
    """The next events after a token, and the token of the last."""
    found: list[OrderEventMessage] = []
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:

            def hear(message: OrderStreamMessage) -> None:
                if isinstance(message, OrderEventMessage):
                    found.append(message)
                    if len(found) == count:
                        nursery.cancel_scope.cancel()

            events = OrderEvents(client, wanted, hear, tell=print, random=Random(1), after=after)
            nursery.start_soon(events.run)
    assert events.is_live
    return found, events.token


# --- What is told to whom, and from where on ------------------------------------------------------------

ORDERS = [
    an_otc_order(1),
    an_otc_order(2, maker=BOB, taker=CAROL),
    an_otc_order(3, taker=CAROL, taker_from_meta=BOB, chain_id=10),
    an_otc_order(4, maker=BOB, taker=NOBODY, taker_from_meta=CAROL, chain_id=56),
    an_otc_order(5, maker=CAROL, taker=BOB, taker_from_meta=BOB),
]
HASHES = [to_hex(order.order_hash) for order in ORDERS]
A, B, C, NONE = (to_checksum(account) for account in (ALICE, BOB, CAROL, NOBODY))
WANTED = {
    "": [1, 2, 3, 4, 5],
    f"maker={A}": [1, 3],
    f"taker={B}": [1, 3, 5],
    f"taker={C}": [2, 3, 4],
    f"taker={A}": [],
    f"taker={NONE}": [1, 2, 4],
    f"maker={B}&taker={C}": [2, 4],
    f"orderHash={HASHES[0]},{HASHES[4].upper().replace('0X', '0x')}": [1, 5],
    f"taker={C}&orderHash={HASHES[0]},{HASHES[2]}": [3],
    "chainId=10": [3],
    "chainId=1,56": [1, 2, 4, 5],
    f"taker={C}&chainId=56": [4],
    f"maker={C}&chainId=10": [],
    "userAddress=x&orderId=y&partner=acme": [1, 2, 3, 4, 5],
}


async def write_all(venue: EventVenue) -> None:
    """Write the OTC orders among Delta orders of the same accounts."""
    for number, order in enumerate(ORDERS):
        await kept(venue.store, a_delta_order(10 + number, owner=BOB, partner="acme"))
        await kept(venue.store, order)


@pytest.mark.parametrize("query", WANTED)
async def test_filters(engine: Engine, query: str) -> None:
    """As it happens; and the same from a token: out of memory, and by pages of the store."""
    expected = [written(ORDERS[number - 1]) for number in WANTED[query]]
    mark = an_otc_order(99, maker=CAROL, taker=CAROL)  # shows that nothing else comes
    async with an_event_venue(engine) as venue:
        async with (
            venue.following(query, path=OTC_PATH) as events,
            venue.socket(query, path=OTC_PATH) as socket,
            venue.following(path=OTC_PATH) as everything,
        ):
            for one in (events, socket, everything):
                await one.begun()
            await write_all(venue)
            whole = await everything.take(5)
            live = await events.take(len(expected))
            assert await socket.take(len(expected)) == live
        assert [told(message) for message in live] == expected
        await kept(venue.store, mark)
        for ring_max in (100, 1):
            async with a_venue_at(venue.store, ring_max=ring_max) as other:
                await assert_replayed(other, query, [START, *(message.token for message in whole)])


async def assert_replayed(venue: EventVenue, query: str, tokens: list[str]) -> None:
    """From each place on comes what is left, and then what is new; begun over HTTP with the last token."""
    wanted = WANTED[query]
    for count, token in enumerate(tokens):
        left = [written(ORDERS[number - 1]) for number in wanted if number > count]
        async with (
            venue.following(f"{query}&after={token}", path=OTC_PATH) as events,
            venue.following(f"{query}&after={START}", f"Last-Event-ID: {token}", path=OTC_PATH) as again,
            venue.socket(f"{query}&after={token}", path=OTC_PATH) as socket,
        ):
            assert await events.begun() == await again.begun() == await socket.begun() == token
            messages = await events.take(len(left))
            assert [told(message) for message in messages] == left
            assert await again.take(len(left)) == await socket.take(len(left)) == messages


async def test_nothing_is_decoded_or_woken_for_who_asks_for_others(engine: Engine) -> None:
    async with (
        an_event_venue(engine) as venue,
        venue.following(f"taker={C}", path=OTC_PATH) as carols,
        venue.following(path=OTC_PATH) as everything,
    ):
        await carols.begun()
        await everything.begun()
        for number in range(20):
            await kept(venue.store, an_otc_order(number))
        await everything.take(20)
        hers = await kept(venue.store, an_otc_order(30, taker_from_meta=CAROL))
        assert told(await carols.next()) == written(hers)
        await everything.take(1)
        statistics = venue.hub.statistics()
        assert statistics.events == 21
        assert statistics.woken <= 22, "twenty-one of everybody's, one of Carol's"


# --- Limits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "details"),
    [
        ("after=yesterday", "Invalid input: after: expected the token of an event that was received"),
        (f"after={AHEAD}", "Invalid input: after: expected a token of this venue's events"),
        ("maker=0x12", "Invalid input: maker: expected an address: 0x and 40 hexadecimal digits, got '0x12'"),
        ("taker=bob", "Invalid input: taker: expected an address: 0x and 40 hexadecimal digits, got 'bob'"),
        ("orderHash=0x12", "Invalid input: orderHash: expected 0x and 64 hexadecimal digits, got '0x12'"),
        (
            "orderHash=" + ",".join([HASHES[0]] * 101),
            "Invalid input: orderHash: expected at most 100, got 101",
        ),
        ("chainId=one", "Invalid input: chainId: expected an integer from 1"),
        (f"maker={A}&maker={B}", "Invalid input: maker: given twice"),
    ],
)
async def test_what_is_asked_wrongly_has_the_body_of_its_surface(
    engine: Engine, query: str, details: str
) -> None:
    async with an_event_venue(engine) as venue:
        await kept(venue.store, an_otc_order(1))
        (refused,) = answers(await venue.served.converse(GET % query.encode()))
        assert refused.status == 400
        body = msgspec.json.decode(refused.body)
        assert body.keys() == {"errorType", "details", "requestId"}
        assert body["errorType"] == "InvalidInput"
        assert body["details"].startswith(details)
        if AHEAD not in query:  # that is known once it is open
            with pytest.raises(HandshakeRefused, match="400") as shaken:
                async with venue.socket(query, path=OTC_PATH):
                    pass
            assert msgspec.json.decode(shaken.value.body).keys() == body.keys()
        assert venue.events.statistics().opened == 0


async def test_a_wrong_last_event_id_is_named(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        request = (GET % b"").replace(b"Host: a", b"Host: a\r\nLast-Event-ID: 7")
        (refused,) = answers(await venue.served.converse(request))
        assert msgspec.json.decode(refused.body)["details"].startswith("Invalid input: last-event-id: ")


async def test_a_token_of_another_log_closes_a_websocket(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        await kept(venue.store, an_otc_order(1))
        async with venue.socket(f"after={AHEAD}", path=OTC_PATH) as socket:
            with pytest.raises(WebSocketClosed) as closed:
                await socket.message()
        assert closed.value.code == 1008
        assert venue.events.statistics().streams == 0


async def test_the_bounds_are_those_of_both_surfaces(engine: Engine) -> None:
    async with (
        an_event_venue(engine, streams_max=2) as venue,
        venue.following("", f"X-API-KEY: {ALICE_KEY}") as delta,
        venue.socket(path=OTC_PATH, key=ALICE_KEY) as otc,
    ):
        await delta.begun()
        await otc.begun()
        (refused,) = answers(await venue.served.converse(GET % b""))
        assert refused.status == 503
        assert field(refused, b"retry-after") == b"1"
        assert msgspec.json.decode(refused.body).keys() == {"errorType", "details", "requestId"}
        with pytest.raises(HandshakeRefused, match="503"):
            async with venue.socket():
                pass
        assert venue.events.statistics().streams == 2


async def test_opening_streams_costs(engine: Engine) -> None:
    async with an_event_venue(engine, public=RateTier(per_s=0.001, burst=5)) as venue:
        async with venue.following(path=OTC_PATH) as events:
            await events.begun()
        (refused,) = answers(await venue.served.converse(GET % b""))
        assert refused.status == 429
        assert msgspec.json.decode(refused.body)["errorType"] == "RateLimited"


async def test_other_methods_are_refused_in_the_shape_of_the_surface(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        (refused,) = answers(await venue.served.converse((GET % b"").replace(b"GET", b"POST")))
        assert refused.status == 405
        assert msgspec.json.decode(refused.body).keys() == {"errorType", "details", "requestId"}


# --- Time -----------------------------------------------------------------------------------------------


async def test_a_taker_that_stops_reading_is_told_to_come_back(
    engine: Engine, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lockstep stream has no buffer; the taker that keeps reading is not delayed."""
    own_bounds(monkeypatch, event_streams, websocket)
    stall_s, close_s = OWN_S["EVENT_STALL_S"], OWN_S["WEBSOCKET_CLOSE_S"]
    async with an_event_venue_in_memory(engine, lockstep_stream_pair, ring_max=2) as (venue, listener):
        peer = RawPeer(listener.connect(), masks=True)
        lines = [b"GET %b?taker=%b HTTP/1.1" % (OTC_PATH.encode(), B.encode())]
        lines += [b"%b: %b" % header for header in HANDSHAKE]
        await peer.stream.send_all(b"\r\n".join([*lines, b"", b""]))
        assert b" 101 " in await peer.head()
        events = EventStream(listener.connect())
        await events.open(f"{OTC_PATH}?taker={B}".encode())
        reads = Following(events)
        await reads.begun()
        _, opened = await peer.receive()
        token = msgspec.json.decode(opened)["token"]
        orders = []
        for number in range(6):
            orders.append(await kept(venue.store, an_otc_order(number, taker=(BOB, CAROL)[number % 2])))
            if not number % 2:
                assert told(await reads.next()) == written(orders[-1])
        await trio.sleep(stall_s + close_s / 2)
        assert venue.events.statistics().slow == 1
        with trio.fail_after(close_s * 2):
            opcode, data = await peer.receive()
            while opcode != CLOSE:
                opcode, data = await peer.receive()
        assert int.from_bytes(data[:2]) == 1013
        again = EventStream(listener.connect())
        await again.open(f"{OTC_PATH}?taker={B}&after={token}".encode())
        late = Following(again)
        assert await late.begun() == token
        assert [told(message) for message in await late.take(3)] == [written(order) for order in orders[::2]]
        assert venue.hub.statistics().pages > 0, "it was behind the ring"


async def test_a_beat_passes_what_is_for_others(engine: Engine, autojump_clock: MockClock) -> None:
    async with an_event_venue_in_memory(engine) as (venue, listener):
        events = EventStream(listener.connect())
        await events.open(f"{OTC_PATH}?taker={C}".encode())
        carols = Following(events)
        await carols.begun()
        everything = Following(EventStream(listener.connect()))
        await everything.events.open(OTC_PATH.encode())
        await everything.begun()
        began = trio.current_time()
        await kept(venue.store, an_otc_order(1))
        newest = (await everything.next()).token
        assert await carols.events.block() == f": beat\nid: {newest}\n\n".encode()
        assert trio.current_time() == pytest.approx(began + EVENT_BEAT_S, abs=1)


# --- Its row --------------------------------------------------------------------------------------------


async def test_its_row_describes_it(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        rows = otc_event_endpoints(venue.events)
    document = openapi_document(rows, {})
    operation = document["paths"][OTC_PATH]["get"]
    described = {one["name"]: one for one in operation["parameters"]}
    assert described.keys() == set(OtcEventsQuery.__struct_encode_fields__)
    assert not any(one["required"] for one in described.values())
    assert "`orderId`" not in described["orderHash"]["description"]
    assert (described["chainId"]["style"], described["chainId"]["explode"]) == ("form", False)
    assert described["maker"]["schema"] == described["taker"]["schema"]
    assert described["taker"]["schema"]["pattern"] == "^$|^0[xX][0-9a-fA-F]{40}$"
    assert "text/event-stream" in operation["responses"]["200"]["content"]
    assert {"400", "429", "503"} <= operation["responses"].keys()
