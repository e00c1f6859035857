"""Makers that misbehave on real sockets: the makers lose their own books, and other makers lose no book."""

import gzip
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from cambist.codecs.http1 import Request
from cambist.config.limits import MAKER_JSON_BYTES_MAX
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.books.fill import quote_received
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.supervisor import MakerFeed
from support.call_counts import Calls, counted_calls
from support.makers.maker_feeds import a_feed, grid, live_of, pair, running, token
from support.makers.maker_role import PREFIX, USDC, WETH, running_maker, settings_of, write_prices
from support.makers.memory_maker import MemoryMaker
from support.patience import until
from support.server.raw_websocket import BINARY, CONTINUATION, TEXT, RawPeer, answer_handshake, frame
from support.server.scripted_server import Caller, Script, keep_answering, scripted_server

BASE, QUOTE = bytes.fromhex(WETH[2:]), bytes.fromhex(USDC[2:])
LISTED = {BASE: 18, QUOTE: 6}
BOOK = {(BASE, QUOTE)}
PAIR = "WETH/USDC"
CONTENTS: dict[str, Any] = {
    "tokens": {"WETH": token("WETH", address=WETH), "USDC": token("USDC", address=USDC)},
    "pairs": {PAIR: pair(PAIR)},
    "prices": {PAIR: grid()},
    "blacklist": [],
}
FIRST = msgspec.json.encode(CONTENTS)
HUGE_BYTES = 100 << 20
PIECE = b" " * 65_536


class Market:
    """A good maker of ours and a bad one, in one index; `bad` and `good` are their feeds."""

    def __init__(self, folder: Path, index: PairIndex, good: MakerFeed, bad: MakerFeed) -> None:
        self._folder = folder
        self._price = 2_500
        self.index = index
        self.good = good
        self.bad = bad

    def live(self, maker: str) -> set[tuple[bytes, bytes]]:
        return live_of(self.index, maker)

    async def follows_the_good_maker(self) -> None:
        """The good maker's next price gets through."""
        self._price += 1
        bid = str(self._price)
        write_prices(self._folder, **{PAIR: {"bids": [[bid, "1"]], "asks": [["9999", "1"]]}})
        await until(lambda: self.good_bid() == self._price)

    def good_bid(self) -> int | None:
        live = self.index.between(BASE, QUOTE).get(("good", BASE))
        received = None if live is None else quote_received(live.book.bids, 10**18)
        return None if received is None else received // 10**6


@asynccontextmanager
async def a_market(
    folder: Path, *scripts: Script, socket: bool = True, **more: Any
) -> AsyncGenerator[Market]:
    """A market whose bad maker does as the scripts say."""
    index = PairIndex()
    async with (
        running_maker(folder, settings_of("", folder, auth="optional")) as (_, venue),
        scripted_server(*scripts) as port,
    ):
        good_url = f"127.0.0.1:{venue.port}{PREFIX}"
        good = a_feed(
            f"http://{good_url}",
            index=index,
            maker="good",
            decimals=LISTED,
            ws_url=f"ws://{good_url}/ws",
        )
        bad_url = f"127.0.0.1:{port}"
        ws_url = f"ws://{bad_url}/ws" if socket else ""
        slow: dict[str, Any] = (
            dict.fromkeys(("tokens_every_s", "pairs_every_s", "blacklist_every_s"), 3_600) if socket else {}
        )
        bad = a_feed(
            f"http://{bad_url}",
            index=index,
            maker="bad",
            decimals=LISTED,
            ws_url=ws_url,
            **(slow | more),
        )
        async with running(good, bad):
            market = Market(folder, index, good, bad)
            await until(lambda: market.live("good") == BOOK)
            yield market
    assert live_of(index) == set()


def with_socket(behave: Callable[[RawPeer], Awaitable[object]]) -> Script:
    """Polls are answered; after the handshake of a socket this is done, and the connection ends."""

    async def serve(caller: Caller) -> None:
        data = bytes(await caller.stream.receive_some(65_536))
        if not data:
            return
        if b"Upgrade" not in data:
            name = data.split(b" ")[1].removeprefix(b"/").decode()
            body = msgspec.json.encode({name: CONTENTS[name]})
            head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            await caller.stream.send_all(head + body)
            return
        peer = RawPeer(caller.stream, masks=False)
        peer.data = data
        try:
            await answer_handshake(peer)
            await behave(peer)
        except (trio.BrokenResourceError, EOFError):
            pass

    return serve


async def huge_message(peer: RawPeer) -> None:
    await peer.send(TEXT, FIRST)
    await peer.stream.send_all(frame(TEXT, b"", masked=False)[:1] + b"\x7f" + HUGE_BYTES.to_bytes(8, "big"))
    for _ in range(HUGE_BYTES // len(PIECE)):
        await peer.stream.send_all(PIECE)


async def huge_message_in_fragments(peer: RawPeer) -> None:
    await peer.send(TEXT, FIRST)
    await peer.send(TEXT, PIECE, fin=False)
    for _ in range(HUGE_BYTES // len(PIECE)):
        await peer.send(CONTINUATION, PIECE, fin=False)


async def garbage(peer: RawPeer) -> None:
    await peer.send(TEXT, FIRST)
    await peer.stream.send_all(bytes(range(256)) * 100)


async def no_json(peer: RawPeer) -> None:
    await peer.send(TEXT, FIRST)
    await peer.send(BINARY, b"\xff\x00")


async def flood(peer: RawPeer) -> None:
    await peer.send(TEXT, FIRST)
    update = msgspec.json.encode({"prices": {PAIR: grid()}})
    many = b"".join(peer.frame(TEXT, update) for _ in range(100))
    for _ in range(20):
        await peer.stream.send_all(many)
    await peer.stream.send_all(b"\xff")


async def cut(peer: RawPeer) -> None:
    await peer.send(TEXT, FIRST)


async def cut_in_the_first_message(peer: RawPeer) -> None:
    await peer.stream.send_all(peer.frame(TEXT, FIRST)[: len(FIRST) // 2])


FAULTS = {
    behave.__name__: behave
    for behave in (
        huge_message, huge_message_in_fragments, garbage, no_json, flood, cut, cut_in_the_first_message
    )
}  # fmt: skip


@pytest.mark.parametrize("behave", FAULTS.values(), ids=FAULTS)
async def test_bad_socket_costs_its_own_connection_alone(
    tmp_path: Path, behave: Callable[[RawPeer], Awaitable[object]]
) -> None:
    async with a_market(tmp_path, with_socket(behave)) as market:
        hidden: list[Any] = []

        def watch(base: bytes, quote: bytes) -> None:
            if market.live("good") != BOOK:
                hidden.append((base, quote))

        market.index.watch(watch)
        await until(lambda: failures(market.bad) >= 2)
        for _ in range(3):
            await market.follows_the_good_maker()
        assert not hidden
        assert not market.bad.statistics().restarts


async def test_bad_socket_that_comes_to_reason_is_used_again(tmp_path: Path) -> None:
    async def good(peer: RawPeer) -> None:
        await peer.send(TEXT, FIRST)
        await peer.at_end()

    async with a_market(tmp_path, *map(with_socket, (garbage, good)), tokens_every_s=3_600) as market:
        await until(lambda: market.live("bad") == BOOK)


async def test_half_open_socket_is_bridged_by_polls_of_prices(tmp_path: Path) -> None:
    async def half_open(peer: RawPeer) -> None:
        await peer.send(TEXT, FIRST)
        await trio.sleep_forever()

    async def polled_twice() -> None:
        prices = market.bad.statistics().polls["prices"].answers
        await until(lambda: market.bad.statistics().polls["prices"].answers > prices + 1)

    now_ms = WallClock().now_ms()
    async with a_market(tmp_path, with_socket(half_open), stale_s=0.3, wall_ms=lambda: now_ms) as market:
        await until(lambda: market.live("bad") == BOOK)
        hidden: list[Any] = []
        market.index.watch(lambda *ends: hidden.append(ends) if market.live("bad") != BOOK else None)
        for _ in range(6):
            now_ms += 300
            await polled_twice()
        assert not hidden
        await market.follows_the_good_maker()


async def test_poll_of_a_hundred_megabytes_is_refused(tmp_path: Path) -> None:
    async def huge(caller: Caller) -> None:
        try:
            await caller.request()
            await caller.stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % HUGE_BYTES)
            for _ in range(HUGE_BYTES // len(PIECE)):
                await caller.stream.send_all(PIECE)
        except (trio.BrokenResourceError, EOFError):
            pass

    async with a_market(tmp_path, huge, socket=False) as market:
        await until(lambda: market.bad.statistics().polls["prices"].failures > 0)
        assert str(MAKER_JSON_BYTES_MAX) in market.bad.statistics().polls["prices"].said
        await market.follows_the_good_maker()


async def test_poll_with_a_compressed_answer_is_refused(tmp_path: Path) -> None:
    """Whatever was asked for: some proxies compress all that passes them."""
    packed = gzip.compress(msgspec.json.encode({"prices": CONTENTS["prices"]}))
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    asked: list[Request] = []

    async def compressed(caller: Caller) -> None:
        try:
            asked.append(await caller.request())
            await caller.stream.send_all(head % len(packed) + packed)
        except (trio.BrokenResourceError, EOFError):  # a poll that the end of the test cut off
            pass

    async with a_market(tmp_path, compressed, socket=False) as market:
        await until(lambda: market.bad.statistics().polls["prices"].failures > 0)
        assert market.bad.statistics().polls["prices"].said == "an unsolicited content-encoding: 'gzip'"
        assert all((b"accept-encoding", b"identity") in request.headers for request in asked)
        await market.follows_the_good_maker()


async def test_endpoints_that_answer_nonsense_are_failures(tmp_path: Path) -> None:
    async with a_market(tmp_path, keep_answering, socket=False) as market:
        await until(lambda: all(poll.failures for poll in market.bad.statistics().polls.values()))
        assert market.bad.statistics().cache.withheld == ("prices",)
        await market.follows_the_good_maker()


def failures(feed: MakerFeed) -> int:
    stream = feed.statistics().stream
    assert stream
    return stream.failures


# --- Large snapshots ------------------------------------------------------------------------------


class FeedSteps(trio.abc.Instrument):
    """Work of the feeds' tasks: in all, and the most without a turn for other tasks."""

    def __init__(self, calls: Calls) -> None:
        self.longest = self.all = 0
        self._calls = calls
        self._before = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._before = self._calls.made

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if "MakerFeed._keep" in task.name:
            made = self._calls.made - self._before
            self.longest, self.all = max(self.longest, made), self.all + made


def snapshot(tokens: int, pairs: int, bid: int) -> dict[str, Any]:
    names = [f"T{at}" for at in range(tokens)]
    ids = [f"{base}/{quote}" for at, base in enumerate(names) for quote in names[at + 1 :]][:pairs]
    levels = range(20)
    return {
        "tokens": {
            name: {"address": f"0x{at + 1:040x}", "decimals": 18, "type": "ERC20"}
            for at, name in enumerate(names)
        },
        "pairs": {pair_id: pair(pair_id) for pair_id in ids},
        "prices": {
            pair_id: {
                "bids": [[f"{bid}.{at:03}{99 - level}", f"{level + 1}.{at:05}"] for level in levels],
                "asks": [[f"{bid + 1}.{at:03}{10 + level}", f"{level + 1}.{at:05}"] for level in levels],
            }
            for at, pair_id in enumerate(ids)
        },
        "blacklist": [f"0x{at:040x}" for at in range(2_000)],
    }


@pytest.mark.parametrize("over", ["polls", "socket"])
async def test_snapshots_of_five_hundred_pairs_are_applied_in_slices(over: str) -> None:
    listed = {(at + 1).to_bytes(20, "big"): 18 for at in range(33)}
    index = PairIndex()
    async with trio.open_nursery() as nursery:
        maker = MemoryMaker(nursery)
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, maker.serve, [listener])
        address = f"127.0.0.1:{listener.socket.getsockname()[1]}"
        maker.contents = snapshot(33, 500, 1_000)
        ws_url = f"ws://{address}/ws" if over == "socket" else ""
        feed = a_feed(f"http://{address}/1", index=index, decimals=listed, ws_url=ws_url)
        async with running(feed):
            await until(lambda: len(live_of(index)) == 500)
            with counted_calls() as calls:
                steps = FeedSteps(calls)
                trio.lowlevel.add_instrument(steps)
                for bid in (2_000, 3_000, 4_000):
                    maker.contents["prices"] = snapshot(33, 500, bid)["prices"]
                    if over == "socket":
                        maker.say(prices=maker.contents["prices"])
                    await until(partial(all_bid, index, bid))
                trio.lowlevel.remove_instrument(steps)
        nursery.cancel_scope.cancel()
    assert 0 < steps.longest < steps.all / 12, "a quarter of a snapshot"


def all_bid(index: PairIndex, bid: int) -> bool:
    """Whether every book is of the snapshot with that price."""
    return all(live.book.bids.prices[0] // 10**live.book.bids.quote_scale == bid for live in index.books())
