"""GET /v2/delta/orders/events on real sockets: server-sent events and WebSockets, over a real store."""

from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path

import msgspec
import pytest
import trio

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.sections.venue import RateTier
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.store.follower import START
from cambist.engine.trade.orders.order_units import order_id
from cambist.feeds.transport.websocket import HandshakeRefused, WebSocketClosed
from support.events.event_streams import (
    PATH,
    EventStream,
    Following,
    a_venue_at,
    an_event_venue,
    told,
    written,
)
from support.patience import PATIENCE_S, until
from support.server.server_harness import answers, field
from support.store.stores import ALICE, BOB, Engine, a_delta_order, an_otc_order, kept, moved
from support.venue.admitting import ALICE_KEY

_D = OrderStatus
GET = f"GET {PATH}?%b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)


# --- A client's view ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reactor", [True, False], ids=["reactor", "tasks"])
async def test_a_trader_follows_an_order(engine: Engine, reactor: bool) -> None:
    asked = f"userAddress={to_checksum(ALICE)}"
    async with an_event_venue(engine, reactor=reactor) as venue, venue.following(asked) as events:
        head = events.events.head.lower()
        assert head.startswith(b"http/1.1 200 ")
        assert b"content-type: text/event-stream" in head
        assert b"cache-control: no-store" in head
        assert b"ratelimit-remaining:" in head
        assert await events.begun() == START
        order = await kept(venue.store, a_delta_order(1, partner="acme"))
        first = await events.next()
        assert told(first) == written(order)
        assert msgspec.to_builtins(first) == {
            "event": "order",
            "token": first.token,
            "surface": "delta",
            "id": str(order_id(order.order_hash)),
            "orderHash": to_hex(order.order_hash),
            "chainId": 1,
            "owner": to_checksum(ALICE),
            "partner": "acme",
            "status": "PENDING",
            "version": 1,
            "at": "2023-11-14T22:13:20.001Z",
            "type": "MARKET",
            "onChainOrderType": "Order",
            "side": "SELL",
            "spentAmount": "0",
            "receivedAmount": "0",
        }
        filled = await moved(
            venue.store, order, status=_D.ACTIVE, spent=(5).to_bytes(32), received=(7).to_bytes(32)
        )
        second = await events.next()
        assert told(second) == written(filled)
        assert (second.spent_amount, second.received_amount) == ("5", "7")
        assert second.token > first.token


async def test_the_same_through_a_websocket(engine: Engine) -> None:
    async with an_event_venue(engine) as venue, venue.socket(f"userAddress={to_checksum(ALICE)}") as events:
        assert await events.begun() == START
        order = await kept(venue.store, a_delta_order(1))
        await kept(venue.store, a_delta_order(2, owner=BOB))
        active = await moved(venue.store, order, status=_D.ACTIVE)
        assert [told(message) for message in await events.take(2)] == [written(order), written(active)]


async def test_it_is_the_same_message_everywhere(engine: Engine) -> None:
    async with (
        an_event_venue(engine) as venue,
        venue.following() as events,
        venue.socket() as socket,
    ):
        assert await events.begun() == await socket.begun()
        await kept(venue.store, a_delta_order(1))
        (message,) = await socket.take(1)
        assert await events.next() == message


async def test_who_comes_back_with_a_token_goes_on_there(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        orders = [await kept(venue.store, a_delta_order(number)) for number in range(20)]
        async with venue.following(f"after={START}") as events:
            assert await events.begun() == START
            messages = await events.take(20)
        assert [told(message) for message in messages] == [written(order) for order in orders]
        for place in (0, 7, 18):
            rest = messages[place + 1 :]
            token = messages[place].token
            async with venue.following(f"after={token}") as events, venue.socket(f"after={token}") as socket:
                assert await events.begun() == await socket.begun() == token
                assert await events.take(len(rest)) == await socket.take(len(rest)) == rest
            async with venue.following(f"after={START}", f"Last-Event-ID: {token}") as events:
                assert await events.begun() == token
                assert await events.take(len(rest)) == rest
        async with venue.following(f"after={messages[-1].token}") as events:
            await events.begun()
            last = await kept(venue.store, a_delta_order(99))
            assert told(await events.next()) == written(last)


async def test_a_token_counts_across_a_restart(engine: Engine) -> None:
    async with an_event_venue(engine) as venue, venue.following() as events:
        await events.begun()
        first = await kept(venue.store, a_delta_order(1))
        token = (await events.next()).token
        second = await moved(venue.store, first, status=_D.ACTIVE)
    async with an_event_venue(engine) as venue:
        third = await moved(venue.store, second, status=_D.COMPLETED)
        async with venue.following(f"after={token}") as events:
            await events.begun()
            assert [told(message) for message in await events.take(2)] == [written(second), written(third)]


async def test_what_retention_deleted_is_passed_over(engine: Engine) -> None:
    async with an_event_venue(engine) as venue, venue.following() as events:
        await events.begun()
        for number in range(1, 6):
            await kept(venue.store, a_delta_order(number))
        messages = await events.take(5)
        await venue.store.prune(a_delta_order(4).updated_ms, 100)
        async with (
            a_venue_at(venue.store) as other,
            other.following(f"after={messages[0].token}") as late,
        ):
            await late.begun()
            assert await late.take(2) == messages[3:]


# --- What is told to whom -------------------------------------------------------------------------------


async def test_filters(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        orders = [
            a_delta_order(1),
            a_delta_order(2, owner=BOB, partner="acme"),
            a_delta_order(3, chain_id=10),
            a_delta_order(4, owner=BOB, chain_id=56, partner="acme"),
        ]
        hashes = [to_hex(order.order_hash) for order in orders]
        ids = [str(order_id(order.order_hash)) for order in orders]
        wanted = {
            "": [1, 2, 3, 4],
            f"userAddress={to_checksum(BOB)}": [2, 4],
            "chainId=10": [3],
            "chainId=1,56": [1, 2, 4],
            "partner=acme": [2, 4],
            "partner=nobody": [],
            f"orderId={ids[0]},{ids[3]}": [1, 4],
            f"orderHash={hashes[1]}": [2],
            f"orderHash={hashes[1]}&orderId={ids[2]}": [2, 3],
            f"userAddress={to_checksum(BOB)}&chainId=56": [4],
            f"orderId={ids[0]}&chainId=10": [],
            f"partner=acme&chainId=1&orderId={ids[1]},{ids[3]}": [2],
        }
        heard: dict[tuple[str, str], list[int]] = {}
        numbers = {order_hash: number for number, order_hash in enumerate(hashes, 1)}

        async def hear(query: str, mark: str, *, task_status: trio.TaskStatus[None]) -> None:
            """As many as there should be."""
            listening = venue.following(f"{query}{mark}") if mark else venue.socket(query)
            async with listening as events:
                await events.begun()
                task_status.started()
                heard[query, mark] = found = list[int]()
                while len(found) < len(wanted[query]):
                    (message,) = await events.take(1)
                    found.append(numbers[message.order_hash])

        async with trio.open_nursery() as nursery:
            for query in wanted:
                await nursery.start(hear, query, "&")
                await nursery.start(hear, query, "")
            await kept(venue.store, an_otc_order(5))
            for order in orders:
                await kept(venue.store, order)
        async with trio.open_nursery() as nursery:
            for query in wanted:
                await nursery.start(hear, query, f"&after={START}")
        assert heard == {(query, mark): wanted[query] for query, mark in heard}
        assert len(heard) == 3 * len(wanted)
        await until(lambda: not venue.hub.statistics().subscriptions)


async def test_nobody_is_woken_for_what_is_not_his(engine: Engine) -> None:
    async with (
        an_event_venue(engine) as venue,
        venue.following(f"userAddress={to_checksum(BOB)}") as events,
        venue.following("chainId=10") as others,
        venue.following() as everything,
    ):
        for one in (events, others, everything):
            await one.begun()
        for number in range(20):
            await kept(venue.store, a_delta_order(number))
        await everything.take(20)
        bobs = await kept(venue.store, a_delta_order(30, owner=BOB))
        assert told(await events.next()) == written(bobs)
        await everything.take(1)
        statistics = venue.hub.statistics()
        assert statistics.events == 21
        assert statistics.woken <= 22, "twenty of everybody's, one of Bob's"


# --- Limits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "field_name"),
    [
        ("after=yesterday", "after"),
        ("userAddress=0x12", "userAddress"),
        ("orderId=one", "orderId"),
        ("orderHash=0x12", "orderHash"),
        ("orderHash=0x" + "00" * 31, "orderHash"),
        ("chainId=one", "chainId"),
        ("orderId=" + ",".join(["5a5a5a5a-5a5a-4a5a-9a5a-5a5a5a5a5a5a"] * 101), "orderId"),
    ],
)
async def test_what_is_asked_wrongly_is_an_ordinary_answer(
    engine: Engine, query: str, field_name: str
) -> None:
    async with an_event_venue(engine) as venue:
        (refused,) = answers(await venue.served.converse(GET % query.encode()))
        assert refused.status == 400
        assert field_name in msgspec.json.decode(refused.body)["details"]
        with pytest.raises(HandshakeRefused, match="400"):
            async with venue.socket(query):
                pass
        assert venue.events.statistics().opened == 0


async def test_a_wrong_last_event_id_is_named(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        request = (GET % b"").replace(b"Host: a", b"Host: a\r\nLast-Event-ID: 7")
        (refused,) = answers(await venue.served.converse(request))
        assert refused.status == 400
        assert msgspec.json.decode(refused.body)["details"] == (
            "Invalid input: last-event-id: expected the token of an event that was received, got '7'"
        )


async def test_a_last_event_id_of_another_log_is_named(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        await kept(venue.store, a_delta_order(1))
        ahead = b"7" + b"f" * 15 + b"0" * 16
        request = (GET % b"").replace(b"Host: a", b"Host: a\r\nLast-Event-ID: " + ahead)
        (refused,) = answers(await venue.served.converse(request))
        assert refused.status == 400
        said = msgspec.json.decode(refused.body)["details"]
        assert said.startswith("Invalid input: last-event-id: expected a token of this venue's events")
        assert "after" not in said


async def test_a_token_of_another_log_is_refused(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        await kept(venue.store, a_delta_order(1))
        ahead = "7" + "f" * 15 + "0" * 16
        (refused,) = answers(await venue.served.converse(GET % f"after={ahead}".encode()))
        assert refused.status == 400
        assert "token" in msgspec.json.decode(refused.body)["details"]
        async with venue.socket(f"after={ahead}") as socket:
            with pytest.raises(WebSocketClosed) as closed:
                await socket.message()
        assert closed.value.code == 1008
        assert venue.events.statistics().streams == 0


async def test_a_client_that_leaves_makes_room(engine: Engine) -> None:
    async with an_event_venue(engine, streams_max=1) as venue:
        async with venue.following() as events:
            await events.begun()
            (refused,) = answers(await venue.served.converse(GET % b""))
            assert refused.status == 503
            assert field(refused, b"retry-after") == b"1"
            with pytest.raises(HandshakeRefused, match="503"):
                async with venue.socket():
                    pass
        await until(lambda: not venue.events.statistics().streams)
        async with venue.socket() as socket:
            await socket.begun()
            assert venue.events.statistics().streams == 1
        await until(lambda: not venue.events.statistics().streams)
        assert venue.events.statistics().refused == 2


async def test_idle_readers_of_many_addresses_leave_streams_for_other_networks(engine: Engine) -> None:
    """A network has 256 addresses, and thirty-two streams for each: more than the venue has at all.

    Of 64 streams 56 are for who has no key: each network gets half of those that the ones before have left.
    """
    async with an_event_venue(engine, streams_max=64) as venue, AsyncExitStack() as held:

        async def opened(source: str, *headers: str) -> bool:
            stream = await held.enter_async_context(await venue.served.connect_from(source))
            events = EventStream(stream)
            await events.open(PATH.encode(), *(header.encode() for header in headers))
            return events.head.startswith(b"HTTP/1.1 200 ")

        got = [0] * 4
        for network, address in product(range(4), range(1, 4)):
            for _ in range(32):
                got[network] += await opened(f"127.0.{network}.{address}")
        assert got == [28, 14, 7, 4]
        assert venue.events.statistics().streams == 53
        async with await venue.served.connect_from("127.0.100.1") as stream:
            newcomer = Following(EventStream(stream))
            await newcomer.events.open(PATH.encode())
            await newcomer.begun()
            order = await kept(venue.store, a_delta_order(1))
            assert told(await newcomer.next()) == written(order)
        await until(lambda: venue.events.statistics().streams == 53)
        late = [await opened(f"127.0.{network}.1") for network in range(101, 106)]
        assert late == [True] * 3 + [False] * 2, "the last ones without a key"
        keyed = [await opened("127.0.1.1", f"X-API-KEY: {ALICE_KEY}") for _ in range(9)]
        assert keyed == [True] * 8 + [False]


async def test_opening_streams_costs(engine: Engine) -> None:
    async with an_event_venue(engine, public=RateTier(per_s=0.001, burst=5)) as venue:
        async with venue.following() as events:
            await events.begun()
        (refused,) = answers(await venue.served.converse(GET % b""))
        assert refused.status == 429
        with pytest.raises(HandshakeRefused, match="429"):
            async with venue.socket():
                pass


async def test_a_drain_ends_every_stream(engine: Engine) -> None:
    async with an_event_venue(engine) as venue, venue.following() as events, venue.socket() as socket:
        await events.begun()
        await socket.begun()
        venue.served.server.drain()
        assert await events.events.rest() == b""
        with pytest.raises(WebSocketClosed) as closed:
            await socket.message()
        assert closed.value.code == 1001
        with trio.fail_after(PATIENCE_S):
            await venue.served.ended.wait()
        assert venue.events.statistics().streams == 0


async def test_head_leaves_no_stream_behind(engine: Engine) -> None:
    async with an_event_venue(engine) as venue:
        answer = await venue.served.converse((GET % b"").replace(b"GET", b"HEAD"))
        assert answer.startswith(b"HTTP/1.1 200 ")
        await until(lambda: not venue.events.statistics().streams)
        assert venue.hub.statistics().subscriptions == 0


async def test_a_websocket_that_talks_is_closed(engine: Engine) -> None:
    async with an_event_venue(engine) as venue, venue.socket() as socket:
        await socket.begun()

        async def talk() -> None:
            for _ in range(2_000):
                await socket.socket.send("hello")
            await socket.message()

        with pytest.raises(WebSocketClosed) as closed:
            await talk()
        assert closed.value.code == 1008
