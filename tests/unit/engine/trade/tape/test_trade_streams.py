"""Streams of trades on a MockClock: beats, filters, laggards, bounds, wrong parameters."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock

from cambist.config.errors import InvalidInput, RateLimited, ServiceUnavailable, UnsupportedChain
from cambist.config.limits import ADMISSION_STREAMS_PER_CALLER_MAX, TAPE_ARRIVALS_MAX
from cambist.config.timeouts import TAPE_BEAT_S
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.store.follower import START, token_of
from cambist.engine.store.store import Store
from cambist.engine.store.tables import OTC_FILL
from cambist.engine.store.units import Done, Unit, put
from cambist.engine.trade.tape.endpoints import TapeEndpoints
from cambist.engine.trade.tape.tape_follower import FollowedTape
from cambist.engine.trade.tape.trade_streams import TradeStreams, _TradeStream
from support.chain.indexing import sqlite_engine
from support.store.stores import NOW_MS
from support.tape.tape_rows import ACCOUNTS, CHAIN_ID, an_otc_fill
from support.venue.admitting import a_call, an_admission

TARGET = b"/v2/delta/trades/stream?chainId=1"


class Taped(msgspec.Struct):
    """A tape over a store, its streams and endpoints.

    Attributes:
        now_ms: the time.
    """

    store: Store
    followed: FollowedTape
    streams: TradeStreams
    endpoints: TapeEndpoints
    now_ms: int = NOW_MS

    async def trade(self, *numbers: int) -> None:
        """Swaps are mined and stored, and the indexer tells of them."""
        unit = Unit(tuple([put(OTC_FILL, an_otc_fill(number)) for number in numbers]))
        assert await self.store.write(unit) == Done()
        arrived = self.followed.arrived()
        self.followed.note(min(numbers) - 1)
        await arrived.wait()

    async def open(self, more: bytes = b"", last: str = "", client: str = "192.0.2.7") -> _TradeStream:
        headers = {"last-event-id": last} if last else {}
        reply = await self.streams.open(a_call(client, headers, target=TARGET + more))
        assert (reply.status, reply.content_type, reply.endless) == (200, b"text/event-stream", True)
        assert isinstance(reply.pieces, _TradeStream)
        return reply.pieces

    def answer(self, path: str, query: bytes = b"chainId=1") -> object:
        (handler,) = [row.plain for row in self.endpoints.endpoints() if row.path == path]
        assert handler is not None
        call = a_call(target=path.encode() + b"?" + query, now_ms=self.now_ms)
        return msgspec.json.decode(handler(call).body)


@asynccontextmanager
async def taped(folder: Path, *numbers: int, streams_max: int = 100) -> AsyncIterator[Taped]:
    """A tape with the swaps of some blocks, which were stored before."""
    async with sqlite_engine(folder).open() as store, trio.open_nursery() as nursery:
        unit = Unit(tuple([put(OTC_FILL, an_otc_fill(number)) for number in numbers]))
        assert await store.write(unit) == Done()
        followed = FollowedTape(store, CHAIN_ID, ACCOUNTS, lambda *_: 100, lambda: NOW_MS)
        tapes = {CHAIN_ID: followed}
        streams = TradeStreams(tapes, causer=an_admission().causer, streams_max=streams_max, ledger=Ledger())
        nursery.start_soon(followed.run)
        await followed.loaded.wait()
        yield Taped(store, followed, streams, TapeEndpoints(tapes, streams))
        nursery.cancel_scope.cancel()


def events(piece: bytes) -> list[tuple[str, str, dict[str, object]]]:
    """(kind, id, data) of each event of a piece."""
    found = []
    for block in piece.decode().removesuffix("\n\n").split("\n\n"):
        kind, token, data = block.split("\n")
        found.append(
            (kind.removeprefix("event: "), token.removeprefix("id: "), msgspec.json.decode(data[6:]))
        )
    return found


async def heights(stream: _TradeStream) -> list[object]:
    found = events(await anext(stream))
    assert {kind for kind, _, _ in found} == {"trade"}
    return [data["blockNumber"] for _, _, data in found]


async def test_a_stream_begins_after_the_newest_trade(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with taped(tmp_path, 1, 2) as venue:
        stream = await venue.open()
        ((kind, token, data),) = events(await anext(stream))
        assert (kind, token, data) == ("open", token_of(2, 3), {"event": "open", "token": token_of(2, 3)})
        await venue.trade(3, 4)
        assert await heights(stream) == [3, 4]
        found = venue.streams.statistics()
        assert (found.streams, found.opened, found.trades, found.beats) == (1, 1, 2, 0)
        later = await venue.open()
        assert events(await anext(later))[0][1] == token_of(4, 3)
        await venue.trade(5)
        assert await heights(later) == await heights(stream) == [5]
        await later.aclose()
        await stream.aclose()
        await stream.aclose()
        assert venue.streams.statistics().streams == 0


async def test_a_token_brings_each_later_trade_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with taped(tmp_path, 1, 2, 3) as venue:
        for more, last in (
            (b"&after=" + token_of(1, 3).encode(), ""),
            (b"&after=" + START.encode(), token_of(1, 3)),
        ):
            stream = await venue.open(more, last)
            assert events(await anext(stream))[0][1] == token_of(1, 3)
            assert await heights(stream) == [2, 3]
        await venue.trade(4)
        assert await heights(stream) == [4]


async def test_a_quiet_stream_has_comments_with_its_token(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with taped(tmp_path, 1) as venue:
        stream = await venue.open()
        await anext(stream)
        began = trio.current_time()
        assert await anext(stream) == b": beat\nid: %b\n\n" % token_of(1, 3).encode()
        assert trio.current_time() - began == pytest.approx(TAPE_BEAT_S)
        await venue.trade(2)
        assert await heights(stream) == [2]
        assert await anext(stream) == b": beat\nid: %b\n\n" % token_of(2, 3).encode()
        assert venue.streams.statistics().beats == 2


async def test_a_kind_is_streamed_alone(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with taped(tmp_path, 1) as venue:
        market, delta = await venue.open(b"&kind=market"), await venue.open(b"&kind=DELTA")
        for stream in (market, delta):
            await anext(stream)
        await venue.trade(2)
        assert await heights(market) == [2]
        assert (await anext(delta)).startswith(b": beat")


async def test_a_stream_that_opens_before_the_trades_are_read_waits_for_them(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with sqlite_engine(tmp_path).open() as store:
        followed = FollowedTape(store, CHAIN_ID, ACCOUNTS, lambda *_: 100, lambda: NOW_MS)
        streams = TradeStreams(
            {CHAIN_ID: followed}, causer=an_admission().causer, streams_max=9, ledger=Ledger()
        )
        stream = (await streams.open(a_call(target=TARGET + b"&after=" + START.encode()))).pieces
        assert (await anext(stream)).startswith(b": beat")
        assert await store.write(Unit((put(OTC_FILL, an_otc_fill(1)),))) == Done()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(followed.run)
            assert events(await anext(stream))[0][0] == "open"
            assert events(await anext(stream))[0][2]["blockNumber"] == 1
            nursery.cancel_scope.cancel()


async def test_a_laggard_goes_on_with_the_latest_trades(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with taped(tmp_path) as venue:
        stream = await venue.open()
        await anext(stream)
        await venue.trade(*range(1, TAPE_ARRIVALS_MAX + 11))
        found: list[object] = []
        while len(found) < TAPE_ARRIVALS_MAX:
            found += await heights(stream)
        assert found == [*range(11, TAPE_ARRIVALS_MAX + 11)]


@pytest.mark.parametrize(
    ("query", "last", "kind", "field"),
    [
        (b"", "", InvalidInput, "chainId"),
        (b"chainId=x", "", InvalidInput, "chainId"),
        (b"chainId=7", "", UnsupportedChain, "chainId"),
        (b"chainId=1&kind=OTC", "", InvalidInput, "kind"),
        (b"chainId=1&after=5", "", InvalidInput, "after"),
        (b"chainId=1", "newest", InvalidInput, "last-event-id"),
    ],
)
async def test_wrong_parameters_open_no_stream(
    tmp_path: Path, query: bytes, last: str, kind: type[InvalidInput], field: str
) -> None:
    async with taped(tmp_path) as venue:
        headers = {"last-event-id": last} if last else {}
        with pytest.raises(kind) as refused:
            await venue.streams.open(a_call(headers=headers, target=b"/v2/delta/trades/stream?" + query))
        assert refused.value.field == field
        assert venue.streams.statistics().streams == 0


async def test_a_caller_and_all_together_have_so_many_streams(tmp_path: Path) -> None:
    async with taped(tmp_path) as venue:
        streams = [await venue.open() for _ in range(ADMISSION_STREAMS_PER_CALLER_MAX)]
        with pytest.raises(RateLimited):
            await venue.open()
        await streams[0].aclose()
        await venue.open()
    async with taped(tmp_path, streams_max=1) as venue:
        await venue.open()
        with pytest.raises(ServiceUnavailable, match="too many streams of trades"):
            await venue.open(client="198.51.100.1")
        assert venue.streams.statistics().refused == 1


# --- Lists and statistics -------------------------------------------------------------------------------


async def test_answers_are_those_of_the_tape_and_its_latest_change(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with taped(tmp_path, 1, 2, 3) as venue:
        path = "/v2/delta/trades"

        def listed(query: bytes = b"chainId=1") -> list[int]:
            found = venue.answer(path, query)
            assert isinstance(found, list)
            return [trade["blockNumber"] for trade in found]

        assert listed() == [3, 2, 1]
        assert listed(b"chainId=1&limit=2") == [3, 2]
        assert listed(b"chainId=1&kind=DELTA") == []
        await venue.trade(4)
        assert listed() == [4, 3, 2, 1]
        assert listed(b"chainId=1&kind=market&limit=1") == [4]
        for limit in range(1, 60):  # more answers than are kept
            assert listed(b"chainId=1&limit=%d" % limit) == [4, 3, 2, 1][:limit]
        venue.now_ms += 86_400_000 + 2_500
        assert listed() == [4, 3]


async def test_statistics_are_computed_at_a_change_and_after_a_minute(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with taped(tmp_path, 1) as venue:

        def told() -> tuple[object, object]:
            found = venue.answer("/stats")
            assert isinstance(found, dict)
            return found["fills"], found["to"]

        assert told() == (1, "2023-11-14T22:13:20.000Z")
        venue.now_ms += 59_999
        assert told() == (1, "2023-11-14T22:13:20.000Z")
        venue.now_ms += 1
        assert told() == (1, "2023-11-14T22:14:20.000Z")
        venue.now_ms += 5
        await venue.trade(2)
        assert told() == (2, "2023-11-14T22:14:20.005Z")


@pytest.mark.parametrize(
    ("path", "query", "kind", "field"),
    [
        ("/v2/delta/trades", b"", InvalidInput, "chainId"),
        ("/v2/delta/trades", b"chainId=1&limit=0", InvalidInput, "limit"),
        ("/v2/delta/trades", b"chainId=1&limit=501", InvalidInput, "limit"),
        ("/v2/delta/trades", b"chainId=1&kind=SWAP", InvalidInput, "kind"),
        ("/v2/delta/trades", b"chainId=9", UnsupportedChain, "chainId"),
        ("/stats", b"", InvalidInput, "chainId"),
        ("/stats", b"chainId=9", UnsupportedChain, "chainId"),
    ],
)
async def test_wrong_parameters_of_lists_and_statistics(
    tmp_path: Path, path: str, query: bytes, kind: type[InvalidInput], field: str
) -> None:
    async with taped(tmp_path) as venue:
        with pytest.raises(kind) as refused:
            venue.answer(path, query)
        assert refused.value.field == field
