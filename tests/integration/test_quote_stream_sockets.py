"""GET /v2/quote/stream on real sockets: a trader's view, a drain, a reader that does not read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair

from cambist.config.sections.venue import RateTier
from support.events.event_streams import EventStream
from support.patience import PATIENCE_S, until
from support.server.server_harness import MemoryListener, Served, answers, field, serving, serving_memory
from support.venue.admitting import an_admission
from support.venue.streaming import TARGET, USDC, WETH, StreamingVenue, amount_of

GET = b"GET %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % TARGET


def a_venue(*, streams_max: int = 100, burst: int = 100) -> StreamingVenue:
    admission = an_admission(public=RateTier(per_s=1, burst=burst))
    venue = StreamingVenue(streams_max=streams_max, admission=admission)
    venue.price(WETH, USDC, "2500")
    return venue


@asynccontextmanager
async def served(venue: StreamingVenue, *, reactor: bool = True) -> AsyncIterator[Served]:
    async with serving(venue.router(), reactor=reactor) as server, trio.open_nursery() as nursery:
        nursery.start_soon(venue.streams.run)
        yield server
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def opened(server: Served) -> AsyncIterator[EventStream]:
    async with await server.connect() as stream:
        events = EventStream(stream)
        await events.open(TARGET)
        yield events


@pytest.mark.parametrize("reactor", [True, False], ids=["reactor", "tasks"])
async def test_a_trader_follows_a_price(reactor: bool) -> None:
    venue = a_venue()
    async with served(venue, reactor=reactor) as server, opened(server) as events:
        assert events.head.startswith(b"HTTP/1.1 200 ")
        for line in (
            b"content-type: text/event-stream",
            b"cache-control: no-store",
            b"ratelimit-remaining: 99",
        ):
            assert line in events.head.lower()
        assert amount_of(await events.event()) == 2_500
        for bid in (2_510, 2_490, 2_495):
            venue.price(WETH, USDC, str(bid))
            assert amount_of(await events.event()) == bid
        venue.clear(WETH, USDC)
        kind, body = await events.event()
        assert (kind, body["errorType"], body["details"]) == ("error", "NoRoute", "No route")
        venue.price(WETH, USDC, "2500")
        assert amount_of(await events.event()) == 2_500


async def test_a_drain_ends_every_stream() -> None:
    venue = a_venue()
    async with served(venue) as server, opened(server) as one, opened(server) as other:
        for events in (one, other):
            await events.event()
        server.server.drain()
        assert await one.rest() == b""
        assert await other.rest() == b""
        with trio.fail_after(PATIENCE_S):
            await server.ended.wait()
        assert venue.streams.statistics().streams == 0


async def test_a_client_that_leaves_makes_room() -> None:
    venue = a_venue(streams_max=1)
    async with served(venue) as server:
        async with opened(server) as events:
            await events.event()
            (refused,) = answers(await server.converse(GET))
            assert refused.status == 503
            assert field(refused, b"retry-after") == b"1"
            assert (
                msgspec.json.decode(refused.body)["details"] == "Service unavailable: too many quote streams"
            )
        await until(lambda: not venue.streams.statistics().streams)
        async with opened(server) as events:
            assert amount_of(await events.event()) == 2_500


async def test_opening_streams_costs() -> None:
    venue = a_venue(burst=1)
    async with served(venue) as server, opened(server):
        (refused,) = answers(await server.converse(GET))
        assert refused.status == 429
        assert field(refused, b"retry-after") == b"1"


async def test_what_is_asked_wrongly_is_an_ordinary_answer() -> None:
    venue = a_venue()
    async with served(venue) as server:
        (refused,) = answers(await server.converse(GET.replace(b"amount=1", b"amounts=1")))
        assert refused.status == 400
        assert "amount" in msgspec.json.decode(refused.body)["details"]
        assert field(refused, b"ratelimit-remaining") == b"99"


async def test_head_leaves_no_stream_behind() -> None:
    venue = a_venue()
    async with served(venue) as server:
        answer = await server.converse(GET.replace(b"GET", b"HEAD"))
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"\r\n\r\n")
        assert venue.streams.statistics().streams == 0


async def test_a_reader_that_is_slow_gets_the_newest_and_one_that_stops_is_cut_off(
    autojump_clock: MockClock,
) -> None:
    """A lockstep stream has no buffer: a write waits until its bytes are read."""
    venue = a_venue()
    listener = MemoryListener(lockstep_stream_pair)
    async with (
        serving_memory(venue.router(), listener, write_s=20.0) as (server, _),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(venue.streams.run)
        stream = listener.connect()
        events = EventStream(stream)
        await events.open(TARGET)
        assert amount_of(await events.event()) == 2_500
        for bid in range(2_501, 2_601):
            venue.price(WETH, USDC, str(bid))
            await trio.sleep(0.15)
        assert amount_of(await events.event()) == 2_501, "what was being written"
        assert amount_of(await events.event()) == 2_600
        assert venue.priced == 3
        venue.price(WETH, USDC, "2601")
        await trio.sleep(25)
        assert venue.streams.statistics().streams == 0
        assert server.statistics().cut_off == 1
        nursery.cancel_scope.cancel()
