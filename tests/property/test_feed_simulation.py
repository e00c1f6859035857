"""Random life of a maker: the index shows the books that spec 3.8 and 3.11 allow.

The feed is the real one, on memory streams and a clock of the test's. A model receives each of the maker's
messages at the same moment. The test compares effects of messages to the unit whenever all tasks are at rest;
effects of time may come as late as the next check of the books' age.
"""

from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from cambist.codecs.http1 import Request, Upgrade, encode_response
from cambist.config.timeouts import BOOK_LOOK_S
from cambist.feeds import backoff, poll, stream
from cambist.feeds.books.fill import quote_paid, quote_received
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.transport import websocket_handshake
from support.examples import IS_LONG
from support.makers.maker_feeds import (
    ADDRESSES,
    DECIMALS,
    LISTED,
    STALE_MS,
    a_feed,
    pair,
    running,
    tokens,
)
from support.makers.memory_maker import BASE_URL, SOCKET_URL, MemoryMaker
from support.stretched_bounds import OWN_S, own_bounds

SPAN_S = 3_600.0 if IS_LONG else 450.0
LOOK_MS = round(BOOK_LOOK_S * 1_000) + 1
GRACE_MS = round(OWN_S["SOCKET_GRACE_S"] * 1_000)
NAMES = tuple(DECIMALS)
PAIRS_MIN = 5  # a maker that has forgotten all of them has little to be wrong about
PAIRS_MAX = 12
REFUSED: dict[str, Any] = {"bids": 7}
GRIDS: tuple[tuple[dict[str, Any], bool], ...] = (  # whether it makes a book to be routed
    ({"bids": [["2500", "1"]], "asks": [["2501", "1"]]}, True),
    ({"bids": [["2500", "1"], ["2499", "3"]], "asks": [["2502.5", "1"]]}, True),
    ({"bids": [["2400", "1"]]}, True),
    ({"asks": [["2600", "1"]]}, True),
    ({}, False),
    ({"bids": [], "asks": []}, False),
    ({"bids": [["2", "1"]], "asks": [["2", "1"]]}, False),
    ({"bids": [["2", "1"], ["3", "1"]]}, False),
    (REFUSED, False),
)

Seen = dict[tuple[bytes, bytes], tuple[int | None, int | None]]


class Reading:
    """Spec 3.8 and 3.11, read literally: all that was said, when, and what may be routed because of it."""

    def __init__(self, *, has_socket: bool) -> None:
        self.said: dict[str, dict[str, tuple[Any, int]]] = {"tokens": {}, "pairs": {}, "prices": {}}
        self.confirmed: dict[str, int] = {}
        self.is_off = False
        self.down_ms: float | None = -1e9 if has_socket else None  # None while it is up, or there is none
        self.was_up = not has_socket
        self.first_ms = 0

    def polled(self, name: str, content: dict[str, Any], asked_ms: int, now_ms: int) -> None:
        """All there is, but for what came over the socket since it was asked for; a first message is all."""
        if name == "prices":
            self.is_off = False
        if name == "blacklist" or asked_ms < self.first_ms:
            return
        newer = {key: (value, heard) for key, (value, heard) in self.said[name].items() if heard > asked_ms}
        self.said[name] = {key: (value, 0) for key, value in content.items()} | newer
        if name == "prices":
            self.confirmed |= dict.fromkeys(content.keys() - newer.keys(), now_ms)

    def failed(self, name: str) -> None:
        """A poll did; only prices are the off switch."""
        if name == "prices":
            self.is_off = True

    def heard(self, contents: dict[str, Any], now_ms: int, *, is_first: bool) -> None:
        """Over the socket: all there is, or what has changed."""
        for name in self.said:
            if name in contents:
                told = {key: (value, now_ms) for key, value in contents[name].items()}
                self.said[name] = told if is_first else self.said[name] | told
        self.confirmed |= dict.fromkeys(contents.get("prices", ()), now_ms)
        if is_first:
            self.down_ms, self.was_up, self.first_ms = None, True, now_ms

    def live(self, now_ms: int, late_ms: int) -> Seen:
        """Routed books, of which time-outs may take effect `late_ms` later."""
        is_down = self.down_ms is not None and now_ms - self.down_ms > GRACE_MS + late_ms
        if self.is_off or is_down or not self.was_up:
            return {}
        found: dict[frozenset[bytes], tuple[bytes, bytes, dict[str, Any]]] = {}
        for pair_id, (told, _) in sorted(self.said["pairs"].items()):
            if not isinstance(told, dict) or pair_id not in self.said["prices"]:
                continue
            grid = self.said["prices"][pair_id][0]
            base, quote = self._address(told["base"]), self._address(told["quote"])
            is_stale = now_ms > self.confirmed[pair_id] + STALE_MS + late_ms
            if base and quote and base != quote and (grid, True) in GRIDS and not is_stale:
                found.setdefault(frozenset((base, quote)), (base, quote, grid))
        return {
            (base, quote): (_best(grid.get("bids"), quote), _best(grid.get("asks"), quote))
            for base, quote, grid in found.values()
        }

    def entries(self, now_ms: int) -> set[str]:
        """Pair ids that are worth remembering."""
        prices = self.said["prices"]
        refused = {name for name, (grid, _) in prices.items() if grid == REFUSED}
        fresh = {name for name in prices if now_ms <= self.confirmed[name] + STALE_MS + LOOK_MS}
        return refused | fresh | self.said["pairs"].keys()

    def _address(self, token_id: str) -> bytes | None:
        told = self.said["tokens"].get(token_id, (None, 0))[0]
        if not isinstance(told, dict):
            return None
        address = bytes.fromhex(told["address"][2:])
        return address if LISTED.get(address) == told["decimals"] else None


def _best(side: Any, quote: bytes) -> int | None:
    return int(Decimal(side[0][0]) * 10 ** LISTED[quote]) if side else None


def wall_ms() -> int:
    return 1_795_000_000_000 + round(trio.current_time() * 1_000)


class WilfulMaker(MemoryMaker):
    """Changes what it quotes, and answers as it likes; `reading` is told."""

    def __init__(self, nursery: trio.Nursery, random: Random, reading: Reading) -> None:
        super().__init__(nursery)
        self.random = random
        self.reading = reading
        self.ill_of_hundred = 10
        self._made = 0
        self.contents["tokens"] = tokens()
        for _ in range(PAIRS_MAX // 2):
            self._change()

    # --- What it quotes -------------------------------------------------------------------------------

    def _change(self) -> dict[str, Any]:
        """Make a change; return its update, or an empty one if updates cannot express it."""
        random, held = self.random, self.contents
        kind = random.choice(("price", "price", "price", "pair", "retire", "forget", "token", "unprice"))
        if kind == "forget" and len(held["pairs"]) <= PAIRS_MIN:
            kind = "pair"
        if kind == "pair" and len(held["pairs"]) < PAIRS_MAX:
            self._made += 1
            name = f"{random.choice('abc')}-{self._made}"
            told: Any = pair(f"{random.choice(NAMES)}/{random.choice(NAMES)}")
            told = told if random.random() < 0.9 else 7
            grid = random.choice(GRIDS)[0]
            held["pairs"] = held["pairs"] | {name: told}
            held["prices"] = held["prices"] | {name: grid}
            return {"pairs": {name: told}, "prices": {name: grid}}
        if kind == "token":
            name = random.choice(NAMES)
            decimals = DECIMALS[name] + (random.random() < 0.15)
            told = {"address": ADDRESSES[name], "decimals": decimals, "type": "ERC20"}
            held["tokens"] = held["tokens"] | {name: told}
            return {"tokens": {name: told}}
        if not held["pairs"]:
            return {}
        name = random.choice(sorted(held["pairs"]))
        if kind == "forget":
            held["pairs"] = {key: told for key, told in held["pairs"].items() if key != name}
            held["prices"] = {key: grid for key, grid in held["prices"].items() if key != name}
            return {}
        if kind == "unprice":
            held["prices"] = {key: grid for key, grid in held["prices"].items() if key != name}
            return {}
        grid = {} if kind == "retire" else random.choice(GRIDS)[0]
        held["prices"] = held["prices"] | {name: grid}
        return {"prices": {name: grid}}

    async def live_on(self) -> None:
        """Quote, be quiet, cut, babble, be ill for a while: for ever."""
        random = self.random
        while True:
            await trio.sleep(random.expovariate(1.0))
            update = self._change()
            turn = random.randrange(100)
            if turn < 4 or (turn < 10 and self.ill_of_hundred > 10):  # grave faults end sooner
                self.ill_of_hundred = random.choice((0, 0, 0, 10, 50, 100))
            elif turn < 7:
                self._down()
                await self.cut()
            elif turn < 9 and self.sockets:
                self._down()
                self.say_text(random.choice(("<html>", "[1]", '{"prices":7}')))
            elif turn < 12:
                await trio.sleep(random.uniform(0, 15))
            elif turn < 80 and self.sockets and self.reading.down_ms is None and update:
                self.reading.heard(update, wall_ms(), is_first=False)
                self.say(**update)

    def _down(self) -> None:
        if self.reading.down_ms is None and self.sockets:
            self.reading.down_ms = wall_ms()

    def _is_ill(self) -> bool:
        return self.random.randrange(100) < self.ill_of_hundred

    # --- How it answers -------------------------------------------------------------------------------

    async def _answer(self, stream: trio.abc.Stream, request: Request) -> None:
        name, asked_ms = request.path.decode().rpartition("/")[2], wall_ms()
        mood = self.random.choice(("error", "garbage", "hang", "cut")) if self._is_ill() else ""
        content = self.contents[name]
        if self.random.random() < 0.2:
            await trio.sleep(self.random.uniform(0, OWN_S["FEED_REQUEST_S"] / 2))
        if mood == "hang":
            while await stream.receive_some():
                pass
            self.reading.failed(name)
        elif mood == "cut":
            self.reading.failed(name)
            await stream.send_all(b"HTTP/1.1 200 OK\r\n")  # or it would be asked again
            await trio.aclose_forcefully(stream)
        elif mood:
            self.reading.failed(name)
            status = 500 if mood == "error" else 200
            await stream.send_all(encode_response(status, b'{"error":"not today"}'))
        else:
            self.reading.polled(name, content, asked_ms, wall_ms())
            await stream.send_all(encode_response(200, msgspec.json.encode({name: content})))

    async def _open(self, stream: trio.abc.Stream, upgrade: Upgrade) -> None:
        mood = self.random.choice(("incomplete", "silent", "garbage")) if self._is_ill() else ""
        if mood:
            self.first = {"incomplete": '{"tokens":{}}', "silent": "", "garbage": "{"}[mood]
        else:
            self.first = None
            self.reading.heard(self.contents, wall_ms(), is_first=True)
        await super()._open(stream, upgrade)

    async def dial_socket(self, *where: Any, **more: Any) -> trio.abc.Stream:
        """As `dial`, but now and then it is refused."""
        if self._is_ill():
            raise ConnectionRefusedError
        return await self.dial(*where, **more)


def seen(index: PairIndex) -> Seen:
    return {
        (live.base, live.quote): (
            quote_received(live.book.bids, 10 ** LISTED[live.base]),
            quote_paid(live.book.asks, 10 ** LISTED[live.base]),
        )
        for live in index.books()
    }


async def look(index: PairIndex, reading: Reading, entries: Callable[[], int]) -> bool:
    """Hold the index against the reading, once. Returns whether a book is routed."""
    await wait_all_tasks_blocked()
    now_ms, shown = wall_ms(), seen(index)
    least, most = reading.live(now_ms, -1), reading.live(now_ms, LOOK_MS)
    assert least.keys() <= shown.keys() <= most.keys(), (trio.current_time(), least, shown, most)
    assert all(most[ends] == book for ends, book in shown.items()), (trio.current_time(), most, shown)
    assert entries() <= len(reading.entries(now_ms))
    return bool(shown)


@pytest.mark.parametrize("seed", range(6 if IS_LONG else 1))
@pytest.mark.parametrize("has_socket", [False, True], ids=["polled", "socket"])
async def test_the_life_of_a_wilful_maker(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, seed: int, has_socket: bool
) -> None:
    print(f"seed {seed}")  # noqa: T201
    monkeypatch.setattr("trio._core._run._r", Random(seed))  # the order of tasks belongs to the life
    monkeypatch.setattr(backoff, "FEED_PAUSE_S_MAX", 3.0)  # a life full of events
    own_bounds(monkeypatch, poll, stream, websocket_handshake)
    monkeypatch.setattr(poll, "FEED_REST_S", 5.0)
    random, reading, index = Random(seed), Reading(has_socket=has_socket), PairIndex()
    looks = routed = 0
    async with trio.open_nursery() as nursery:
        maker = WilfulMaker(nursery, random, reading)
        feed = a_feed(
            BASE_URL,
            index=index,
            ws_url=SOCKET_URL if has_socket else "",
            dial=maker.dial_socket,
            poll_dial=maker.dial,
            wall_ms=wall_ms,
            tokens_every_s=7,
            pairs_every_s=4,
            prices_every_s=1,
            blacklist_every_s=20,
        )

        def entries() -> int:
            return sum(feed.statistics().cache.pairs.values())

        async with running(feed):
            nursery.start_soon(maker.live_on)
            while trio.current_time() < SPAN_S:
                await trio.sleep(random.expovariate(2.0))
                routed += await look(index, reading, entries)
                looks += 1
            statistics = feed.statistics()
        nursery.cancel_scope.cancel()
    assert not statistics.restarts
    assert looks / 10 < routed < looks, "a life without books, or without trouble, shows nothing"
