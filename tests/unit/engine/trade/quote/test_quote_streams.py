"""Changes that a quote stream reports, their times, and events that a slow reader misses; on a MockClock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import msgspec
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from cambist.config.errors import (
    InvalidInput,
    InvalidToken,
    NoRoute,
    RateLimited,
    RequestError,
    ServiceUnavailable,
)
from cambist.config.limits import ADMISSION_STREAMS_PER_CALLER_MAX, ROUTE_FRESH_MS
from cambist.config.timeouts import QUOTE_STREAM_BEAT_S, QUOTE_STREAM_LOOK_S
from cambist.engine.trade.quote.quote_streams import _Stream
from support.venue.admitting import ALICE_KEY, a_call, an_admission
from support.venue.streaming import (
    AAVE,
    DAI,
    LINK,
    TARGET,
    USDC,
    WBTC,
    WETH,
    StreamingVenue,
    amount_of,
    sealed_at_s,
)


def a_venue(streams_max: int = 100) -> StreamingVenue:
    venue = StreamingVenue(streams_max=streams_max, admission=an_admission())
    venue.price(WETH, USDC, "2500")
    return venue


@asynccontextmanager
async def streamed(venue: StreamingVenue, target: bytes = TARGET) -> AsyncIterator[_Stream]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(venue.streams.run)
        reply = await venue.streams.open(a_call(target=target))
        assert (reply.status, reply.content_type, reply.endless) == (200, b"text/event-stream", True)
        assert isinstance(reply.pieces, _Stream)
        yield reply.pieces
        await reply.pieces.aclose()
        nursery.cancel_scope.cancel()
    assert venue.streams.statistics().streams == 0


async def event(stream: _Stream) -> tuple[str, dict[str, object]]:
    kind, data = (await anext(stream)).decode().removesuffix("\n\n").split("\n")
    return kind.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))


async def is_priced_after(venue: StreamingVenue, stream: _Stream) -> bool:
    """Whether what has just happened to the books has the stream priced, within a second."""
    before = venue.priced
    with trio.move_on_after(1):
        await anext(stream)
    return venue.priced > before


async def test_a_quote_at_once_and_again_when_the_book_changes(autojump_clock: MockClock) -> None:
    venue = a_venue()
    async with streamed(venue) as stream:
        assert amount_of(await event(stream)) == 2_500
        venue.price(WETH, USDC, "2501")
        assert amount_of(await event(stream)) == 2_501
        found = venue.streams.statistics()
    assert (found.streams, found.opened, found.quotes, found.errors) == (1, 1, 2, 0)


async def test_many_changes_are_one_quote_and_looks_lie_apart(autojump_clock: MockClock) -> None:
    venue = a_venue()
    async with streamed(venue) as stream:
        await event(stream)
        venue.price(WETH, USDC, "2501")
        assert amount_of(await event(stream)) == 2_501
        began = trio.current_time()
        for step in range(100):
            venue.price(WETH, USDC, f"26{step:02}")
        assert amount_of(await event(stream)) == 2_699
        assert trio.current_time() - began == pytest.approx(QUOTE_STREAM_LOOK_S)
        assert venue.priced == 3


async def test_a_quote_on_which_nothing_changes_is_sent_anew_before_it_is_stale(
    autojump_clock: MockClock,
) -> None:
    venue = a_venue()
    async with streamed(venue) as stream:
        first = await event(stream)

        async def change_beside() -> None:
            for step in range(100):
                venue.price(WETH, USDC, f"{step + 1}", maker="zeta")
                await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(change_beside)
            at = sealed_at_s(first)
            for _ in range(4):
                again = await event(stream)
                assert amount_of(again) == amount_of(first)
                assert sealed_at_s(again) - at == pytest.approx(QUOTE_STREAM_BEAT_S, abs=0.01)
                assert sealed_at_s(again) == pytest.approx(trio.current_time(), abs=0.01)
                at = sealed_at_s(again)
            nursery.cancel_scope.cancel()
        assert 2 * QUOTE_STREAM_BEAT_S * 1_000 <= ROUTE_FRESH_MS
        assert venue.priced > 10
        found = venue.streams.statistics()
        assert (found.quotes, found.beats) == (5, 0)


async def test_what_cannot_be_priced_for_long_has_comments(autojump_clock: MockClock) -> None:
    venue = a_venue()
    venue.clear(WETH, USDC)
    async with streamed(venue) as stream:
        assert (await event(stream))[0] == "error"
        began = trio.current_time()
        for beats in (1, 2):
            assert await anext(stream) == b": beat\n\n"
            assert trio.current_time() - began == pytest.approx(beats * QUOTE_STREAM_BEAT_S)
            assert venue.streams.statistics().beats == beats
        assert venue.streams.statistics().errors == 1


@pytest.mark.parametrize(
    ("base", "quote", "matters"),
    [
        pytest.param(WETH, USDC, True, id="the pair itself"),
        pytest.param(USDC, DAI, True, id="a pair of the destination"),
        pytest.param(LINK, WETH, True, id="a pair of the source"),
        pytest.param(WBTC, DAI, True, id="between neighbours of both"),
        pytest.param(DAI, WBTC, True, id="the same, the other way round"),
        pytest.param(AAVE, LINK, False, id="a pair of others"),
        pytest.param(WBTC, AAVE, False, id="a neighbour and a stranger"),
    ],
)
async def test_books_matter_that_can_stand_on_a_path(
    autojump_clock: MockClock, base: bytes, quote: bytes, matters: bool
) -> None:
    venue = a_venue()
    venue.price(WBTC, WETH, "15")
    venue.price(DAI, USDC, "1")
    async with streamed(venue) as stream:
        await event(stream)
        venue.price(base, quote, "3", maker="beta")
        assert await is_priced_after(venue, stream) is matters


async def test_a_book_that_goes_is_told_and_one_that_comes_back_too(autojump_clock: MockClock) -> None:
    venue = a_venue()
    async with streamed(venue) as stream:
        await event(stream)
        venue.clear(WETH, USDC)
        kind, body = await event(stream)
        assert kind == "error"
        assert body["errorType"] == "NoRoute"
        assert body["requestId"] == "id-1"
        venue.price(WETH, DAI, "2500")
        with trio.move_on_after(1) as waited:
            await event(stream)
        assert waited.cancelled_caught, "the same error is not told twice"
        venue.price(WETH, USDC, "2500")
        assert amount_of(await event(stream)) == 2_500
        assert venue.streams.statistics().errors == 1


async def test_an_error_whose_text_changes_all_the_time_is_told_once(autojump_clock: MockClock) -> None:
    venue = a_venue()
    async with streamed(venue) as stream:
        await event(stream)
        venue.is_away = True
        told = []

        async def take() -> None:
            while True:
                told.append((await anext(stream)).split(b"\n")[0])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            for step in range(20):
                venue.price(WETH, USDC, f"{2_600 + step}")
                await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert told == [b"event: error", b": beat"]
        venue.is_away = False
        venue.price(WETH, USDC, "2500")
        assert amount_of(await event(stream)) == 2_500


async def test_what_has_no_route_yet_is_streamed_from_an_error_on(autojump_clock: MockClock) -> None:
    venue = a_venue()
    venue.clear(WETH, USDC)
    async with streamed(venue) as stream:
        assert (await event(stream))[0] == "error"
        venue.price(WETH, USDC, "2500")
        assert amount_of(await event(stream)) == 2_500


async def test_a_slow_reader_gets_the_newest_quote_and_none_between(autojump_clock: MockClock) -> None:
    venue = a_venue()
    async with streamed(venue) as stream:
        await event(stream)
        for step in range(50):
            venue.price(WETH, USDC, f"26{step:02}")
            await trio.sleep(1)
        assert venue.priced == 1, "nothing is priced that nobody takes"
        assert amount_of(await event(stream)) == 2_649
        assert venue.priced == 2


async def test_a_wait_that_is_cancelled_loses_no_change(autojump_clock: MockClock) -> None:
    venue = a_venue()
    async with streamed(venue) as stream:
        await event(stream)
        for step in range(20):
            venue.price(WETH, USDC, f"26{step:02}")
            with trio.move_on_after(0.05 * step):
                await trio.sleep(0.01)
                event_now = amount_of(await event(stream))
                assert event_now == 2_600 + step
                continue
            assert amount_of(await event(stream)) == 2_600 + step


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ((b"chainId=1", b"chainId=99"), RequestError, "Unsupported chain: chainId"),
        ((b"destDecimals=18", b"destDecimals=6"), NoRoute, "No route: destDecimals"),
        ((b"&amount=1000000000000000000", b""), InvalidInput, "amount"),
        ((b"srcToken=0x01", b"srcToken=0xff"), RequestError, "Token not supported: srcToken"),
        ((WETH.hex().encode(), b"ee" * 20), InvalidToken, "Invalid srcToken: expected a token address"),
        ((USDC.hex().encode(), b"0"), InvalidToken, "Invalid destToken: expected a token address"),
        ((b"&mode", b"&destChainId=10&mode"), NoRoute, "No route (crosschain): destChainId"),
    ],
)
async def test_a_parameter_at_fault_is_refused_before_the_stream(
    autojump_clock: MockClock, change: tuple[bytes, bytes], error: type[RequestError], said: str
) -> None:
    venue = a_venue()
    target = TARGET.replace(*change)
    assert target != TARGET
    with pytest.raises(error) as refused:
        await venue.streams.open(a_call(target=target))
    assert said in str(refused.value)
    assert venue.streams.statistics().streams == 0


async def test_a_caller_and_all_together_have_a_bound(autojump_clock: MockClock) -> None:
    venue = a_venue(streams_max=72)
    opened = [
        await venue.streams.open(a_call(target=TARGET)) for _ in range(ADMISSION_STREAMS_PER_CALLER_MAX)
    ]
    with pytest.raises(RateLimited, match="at most 32 quote streams of one caller"):
        await venue.streams.open(a_call(target=TARGET))
    opened += [await venue.streams.open(a_call(target=TARGET, x_api_key=ALICE_KEY)) for _ in range(32)]
    with pytest.raises(ServiceUnavailable, match="too many quote streams") as refused:
        await venue.streams.open(a_call("192.0.2.99", target=TARGET))
    assert refused.value.retry_after_s == 1
    assert venue.streams.statistics().refused == 2
    for reply in opened:
        assert isinstance(reply.pieces, _Stream)
        await reply.pieces.aclose()
        await reply.pieces.aclose()
    assert venue.streams.statistics().streams == 0
    reply = await venue.streams.open(a_call("192.0.2.99", target=TARGET))
    assert isinstance(reply.pieces, _Stream)
    await reply.pieces.aclose()


async def test_the_default_partner_of_a_key_goes_into_each_quote(autojump_clock: MockClock) -> None:
    venue = a_venue()
    reply = await venue.streams.open(a_call(target=TARGET, x_api_key=ALICE_KEY))
    assert isinstance(reply.pieces, _Stream)
    await reply.pieces.aclose()
    assert venue.partners == ["acme"]


async def test_streams_are_priced_one_at_a_time_with_others_between(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    """Twenty streams that wake together leave a pass of the scheduler to others after each quote."""
    venue = a_venue()
    nursery.start_soon(venue.streams.run)
    pieces = []
    for _ in range(20):
        reply = await venue.streams.open(a_call(target=TARGET))
        assert isinstance(reply.pieces, _Stream)
        pieces.append(reply.pieces)
    seen: list[int] = []

    async def look() -> None:
        for _ in range(200):
            seen.append(venue.priced)
            await trio.lowlevel.checkpoint()

    async def take(stream: _Stream) -> None:
        await event(stream)
        assert amount_of(await event(stream)) == 2_501
        await stream.aclose()

    async with trio.open_nursery() as takers:
        for stream in pieces:
            takers.start_soon(take, stream)
        await trio.testing.wait_all_tasks_blocked()
        takers.start_soon(look)
        venue.price(WETH, USDC, "2501")
    between = [later - earlier for earlier, later in pairwise(seen)]
    assert max(between) <= 2, "one in each pass; two looks are at most the ends of two passes apart"
    assert seen[-1] == 40
    nursery.cancel_scope.cancel()
