"""Times at which a maker's books leave routing and return, on the test's clock."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from random import Random
from typing import Any

import pytest
import structlog
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from cambist.codecs.http1 import Request
from cambist.config import timeouts
from cambist.crypto.hmac_auth import RequestSigner, RequestVerifier
from cambist.feeds import poll, stream
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.standing import PairStanding
from cambist.feeds.stream import StreamStatistics
from cambist.feeds.supervisor import MakerFeed
from cambist.feeds.transport import websocket_handshake
from support.makers.maker_feeds import (
    DAI,
    STALE_MS,
    USDC,
    WBTC,
    WETH,
    a_feed,
    grid,
    live_of,
    pair,
    running,
)
from support.makers.memory_maker import BASE_URL, SOCKET_URL, MemoryMaker
from support.stretched_bounds import OWN_S, own_bounds

PAIR, OTHER = "WETH/USDC", "WBTC/USDC"
BOOK, OTHER_BOOK = (WETH, USDC), (WBTC, USDC)
EVERY = {"tokens_every_s": 60, "pairs_every_s": 30, "prices_every_s": 1, "blacklist_every_s": 60}
SIGNER = RequestSigner("venue", "key-1", b"secret")


@pytest.fixture
def clock(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> MockClock:
    own_bounds(monkeypatch, poll, stream, websocket_handshake)
    return autojump_clock


def wall_ms() -> int:
    return 1_795_000_000_000 + round(trio.current_time() * 1_000)


class Venue:
    """A feed, what it shows, and the maker that it follows."""

    def __init__(self, maker: MemoryMaker, feed: MakerFeed, index: PairIndex) -> None:
        self.maker = maker
        self.feed = feed
        self.index = index

    def live(self) -> set[tuple[bytes, bytes]]:
        return live_of(self.index)

    def bid(self) -> int:
        (live,) = self.index.between(*BOOK).values()
        return int(live.book.bids.quote_before[1] // 10**live.book.bids.quote_scale)

    def stream(self) -> StreamStatistics:
        statistics = self.feed.statistics().stream
        assert statistics
        return statistics

    async def until(self, condition: Callable[[], bool], seconds: float = 100.0) -> float:
        """Wait until `condition` holds, and return the time."""
        with trio.fail_after(seconds):
            while not condition():  # noqa: ASYNC110  nothing there can set an event
                await trio.sleep(0.05)
        return trio.current_time()


@asynccontextmanager
async def a_venue(*pair_ids: str, **more: Any) -> AsyncGenerator[Venue]:
    """A venue whose feed polls as often as settings have it by default."""
    async with trio.open_nursery() as nursery:
        maker, index = MemoryMaker(nursery, *(pair_ids or (PAIR, OTHER))), PairIndex()
        own: dict[str, Any] = {"wall_ms": wall_ms, "dial": maker.dial, "poll_dial": maker.dial}
        arguments: dict[str, Any] = EVERY | own | more
        feed = a_feed(BASE_URL, index=index, **arguments)
        async with running(feed):
            yield Venue(maker, feed, index)
        nursery.cancel_scope.cancel()


def over_socket(**more: Any) -> Any:
    return a_venue(ws_url=SOCKET_URL, **more)


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    structlog.reset_defaults()
    with capture_logs() as entries:
        yield entries


# --- Polls ----------------------------------------------------------------------------------------


FAILURES: dict[str, tuple[int, bytes]] = {
    "error": (500, b'{"error":"down"}'),
    "forbidden": (403, b'{"error":"no"}'),
    "redirect": (302, b"{}"),
    "no body": (200, b""),
    "no JSON": (200, b"<html>"),
    "another body": (200, b'{"pairs":{}}'),
    "a text": (200, b'{"prices":"none"}'),
}


@pytest.mark.parametrize("answer", FAILURES.values(), ids=FAILURES)
async def test_failing_prices_disable_the_maker_at_once_and_recovery_enables_it(
    clock: MockClock, answer: tuple[int, bytes]
) -> None:
    async with a_venue() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        venue.maker.answers["prices"] = answer
        began = trio.current_time()
        assert await venue.until(lambda: venue.live() == set()) - began < 1.5
        assert venue.feed.statistics().cache.withheld == ("prices",)
        del venue.maker.answers["prices"]
        began = trio.current_time()
        assert await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK}) - began < 1.5


async def test_prices_that_hang_disable_the_maker_when_their_time_is_over(clock: MockClock) -> None:
    async with a_venue() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        venue.maker.hangs.add("prices")
        await venue.until(lambda: venue.live() == set(), OWN_S["FEED_REQUEST_S"] + 2)
        assert "timed out" in venue.feed.statistics().polls["prices"].said


@pytest.mark.parametrize("resource", ["tokens", "pairs", "blacklist"])
async def test_failure_of_another_resource_leaves_books_as_they_are(clock: MockClock, resource: str) -> None:
    async with a_venue() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        venue.maker.answers[resource] = (500, b'{"error":"down"}')
        await venue.until(lambda: venue.feed.statistics().polls[resource].failures > 0)
        assert venue.live() == {BOOK, OTHER_BOOK}


async def test_polls_rest_after_five_failures_in_a_row(clock: MockClock, logs: list[Any]) -> None:
    async with a_venue() as venue:
        venue.maker.answers["prices"] = (500, b'{"error":"down"}')
        await venue.until(lambda: len(venue.maker.asked["prices"]) == 7, 300)
        at = [seconds for seconds, _ in venue.maker.asked["prices"]]
        gaps = [then - first for first, then in pairwise(at)]
        assert max(gaps[:4]) < 1.5
        assert all(0.9 * timeouts.FEED_REST_S < gap < 1.1 * timeouts.FEED_REST_S + 1 for gap in gaps[4:])
        del venue.maker.answers["prices"]
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK}, 100)
    told = [entry["event"] for entry in logs if entry.get("resource") == "prices"]
    assert told == ["poll failed", "polls rest", "poll answered again"]


async def test_polls_that_begin_together_spread_over_four_common_times(clock: MockClock) -> None:
    async with AsyncExitStack() as stack:
        venues = [await stack.enter_async_context(a_venue(random=Random(number))) for number in range(12)]
        await trio.sleep(10)
    at = [[round(seconds, 3) for seconds, _ in venue.maker.asked["prices"]] for venue in venues]
    assert {seconds % 1 for one in at for seconds in one[1:]} == {0.0, 0.25, 0.5, 0.75}
    for one in at:
        gaps = [then - first for first, then in pairwise(one)]
        assert 0 < gaps[0] <= 1.125
        assert {*gaps[1:]} == {1.0}


async def test_requests_are_signed_over_the_path_with_its_prefix(clock: MockClock) -> None:
    async with over_socket(signer=SIGNER) as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        await venue.until(lambda: len(venue.maker.asked) == 5)
        verifier = RequestVerifier({"venue": [("key-1", b"secret")]})
        for name, path in (("tokens", b"/prefix/1/tokens"), ("socket", b"/stream/1")):
            _, request = venue.maker.asked[name][0]
            assert request.path == path
            assert verify(verifier, request, path) == b"venue"
        assert venue.maker.asked["socket"][0][1].target == b"/stream/1?feed=a"


def verify(verifier: RequestVerifier, request: Request, target: bytes) -> bytes:
    headers = {name.lower(): value for name, value in request.headers}
    return verifier.verify(
        headers.get(b"x-auth-domain"),
        headers.get(b"x-auth-access-key"),
        headers.get(b"x-auth-timestamp"),
        headers.get(b"x-auth-signature"),
        b"GET",
        target,
        b"",
        wall_ms(),
    )


async def test_remarks_are_logged_and_bounded(clock: MockClock, logs: list[Any]) -> None:
    async with over_socket() as venue:
        await venue.until(lambda: len(venue.maker.sockets) == 1)
        for text in ("low on DAI\x1b[2J", "again " * 1_000, "too soon"):
            venue.maker.say(message=text)
        await venue.until(lambda: venue.feed.statistics().remarks_dropped == 2)
        await trio.sleep(timeouts.FEED_REMARK_EVERY_S)
        venue.maker.say(message="again " * 1_000)
        await venue.until(lambda: sum(entry["event"] == "maker remarks" for entry in logs) == 2)
    texts = [entry["remark"] for entry in logs if entry["event"] == "maker remarks"]
    assert texts[0] == "low on DAI\\x1b[2J"
    assert len(texts[1]) <= 500


async def test_the_log_has_the_reason_of_each_refusal_and_few_lines(
    clock: MockClock, logs: list[Any]
) -> None:
    def lines() -> list[Any]:
        return [entry for entry in logs if entry["event"] == "maker's pairs are refused"]

    async with over_socket() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        more = [f"P{number}" for number in range(7)]
        venue.maker.say(prices={PAIR: grid("2600", "2500"), OTHER: grid("1e", "2")})
        await venue.until(lambda: len(lines()) == 1)
        assert lines()[0]["log_level"] == "warning"
        assert lines()[0]["maker"] == "alpha"
        assert f"prices.{PAIR}.asks[0][0]: expected a price above" in lines()[0]["refused"][PAIR]
        assert "got '1e'" in lines()[0]["refused"][OTHER]
        venue.maker.say(prices={PAIR: grid("2600", "2500")})  # the same reason as before
        venue.maker.say(pairs={name: pair("NONE/USDC") for name in more})
        await trio.sleep(timeouts.FEED_REFUSALS_EVERY_S - 1)
        assert len(lines()) == 1
        await venue.until(lambda: len(lines()) == 2)
        assert list(lines()[1]["refused"]) == more[:5]
        assert lines()[1]["more"] == 2
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})  # a poll has brought good prices
        assert [*venue.feed.cache.refused_pairs()] == more


# --- The socket -----------------------------------------------------------------------------------


async def test_socket_brings_books_updates_and_the_blacklist(clock: MockClock) -> None:
    async with over_socket() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        venue.maker.say(
            prices={PAIR: grid("2600", "2601"), "WETH/DAI": grid()},
            pairs={"WETH/DAI": pair("WETH/DAI")},
            blacklist=["0x" + "bb" * 20],
        )
        await venue.until(lambda: (WETH, DAI) in venue.live())
        assert venue.bid() == 2_600 * 10**6
        assert venue.feed.cache.blacklist.holds(b"\xbb" * 20, wall_ms())


async def test_short_disconnect_costs_nothing(clock: MockClock) -> None:
    async with over_socket() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        hidden: list[Any] = []
        venue.index.watch(lambda *ends: hidden.append(ends))
        await venue.maker.cut()
        await venue.until(lambda: len(venue.maker.asked["socket"]) == 2)
        await venue.until(lambda: bool(venue.maker.sockets))
        await trio.sleep(2)
        assert venue.live() == {BOOK, OTHER_BOOK}
        assert not hidden


async def test_disconnect_longer_than_the_grace_takes_the_books_out(clock: MockClock) -> None:
    async with over_socket() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        venue.maker.refuses = True
        await venue.maker.cut()
        began = trio.current_time()
        gone = await venue.until(lambda: venue.live() == set()) - began
        assert 1.0 < gone < 1.0 + 2 * timeouts.BOOK_LOOK_S
        assert venue.feed.statistics().cache.withheld == ("socket",)
        await trio.sleep(20)
        assert venue.live() == set()
        venue.maker.refuses = False
        venue.maker.contents["prices"] = {PAIR: grid("2700", "2701")}
        await venue.until(lambda: venue.live() == {BOOK})
        assert venue.bid() == 2_700 * 10**6


async def test_maker_is_withheld_until_the_first_message_is_complete(clock: MockClock) -> None:
    async with over_socket() as venue:
        venue.maker.first = '{"tokens":{},"pairs":{},"prices":{}}'
        await venue.until(lambda: venue.stream().failures > 2)
        assert "blacklist" in venue.stream().said
        assert venue.feed.statistics().cache.withheld == ("socket",)
        venue.maker.first = None
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})


async def test_first_message_has_its_time(clock: MockClock) -> None:
    async with over_socket() as venue:
        venue.maker.first = ""
        await venue.until(lambda: venue.stream().failures > 0)
        assert venue.stream().said == "no first message within 10 s"
        assert 10 <= trio.current_time() < 16


@pytest.mark.parametrize("hang", ["dial", "handshake"])
async def test_connection_that_hangs_is_given_up(clock: MockClock, hang: str) -> None:
    async with over_socket() as venue:
        venue.maker.hangs.add(hang)
        await venue.until(lambda: venue.stream().failures > 0)
        venue.maker.hangs.clear()
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})


GARBAGE = {
    "no JSON": "<html>",
    "no object": "[]",
    "another type": '{"prices":7}',
    "nested too deep": "[" * 5_000,
    "too many bad entries": '{"prices":{' + ",".join(f'"{at}":0' for at in range(1_001)) + "}}",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_ends_the_socket_and_the_next_first_message_mends(
    clock: MockClock, garbage: str
) -> None:
    async with over_socket() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        venue.maker.contents["prices"] = {PAIR: grid("2700", "2701")}
        venue.maker.say_text(garbage)
        await venue.until(lambda: venue.live() == {BOOK})
        assert venue.bid() == 2_700 * 10**6


async def test_pairs_that_are_quiet_on_an_open_socket_stay_as_long_as_prices_confirm_them(
    clock: MockClock,
) -> None:
    async with over_socket() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        for _ in range(120):
            await trio.sleep(1)
            assert venue.live() == {BOOK, OTHER_BOOK}
        assert len(venue.maker.asked["socket"]) == 1
        assert 120 / STALE_MS * 1_000 * 2.5 < len(venue.maker.asked["prices"]) < 120 / STALE_MS * 1_000 * 3.5


async def test_pairs_that_are_quiet_stay_however_seldom_prices_are_polled_without_a_socket(
    clock: MockClock,
) -> None:
    async with over_socket(prices_every_s=60) as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        hidden: list[Any] = []
        venue.index.watch(lambda *ends: hidden.append(ends))
        await trio.sleep(120)
        assert venue.live() == {BOOK, OTHER_BOOK}
        assert not hidden


async def test_books_that_nothing_confirms_leave_routing_while_the_socket_is_up(clock: MockClock) -> None:
    async with over_socket(stale_s=1) as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        await trio.sleep(5)
        venue.maker.hangs.add("prices")
        confirmed = venue.maker.asked["prices"][-1][0]
        gone = await venue.until(lambda: venue.live() == set()) - confirmed
        assert 1.0 < gone < 1.0 + 2 * timeouts.BOOK_LOOK_S < OWN_S["FEED_REQUEST_S"]
        statistics = venue.feed.statistics()
        assert statistics.cache.withheld == ()
        assert statistics.cache.pairs == {PairStanding.STALE: 2}
        assert venue.stream().is_up
        venue.maker.say(prices={PAIR: grid()})
        await venue.until(lambda: venue.live() == {BOOK}, 1)
        assert len(venue.maker.asked["socket"]) == 1


async def test_failing_prices_are_the_off_switch_beside_an_open_socket_too(clock: MockClock) -> None:
    async with over_socket() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        venue.maker.answers["prices"] = (503, b'{"error":"stopped"}')
        await venue.until(lambda: venue.live() == set(), STALE_MS / 1_000)
        venue.maker.say(prices={PAIR: grid()})
        await trio.sleep(0.1)
        assert venue.live() == set()
        del venue.maker.answers["prices"]
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})


async def test_what_is_polled_beside_an_open_socket_brings_deletions(clock: MockClock) -> None:
    """choices.md#makers-at-the-venue. Sooner than the minute after which a blacklisted address is free in any
    case."""
    polled, user = ("tokens", "pairs", "blacklist"), b"\xbb" * 20
    every = {f"{resource}_every_s": 20 for resource in polled}
    async with a_venue(PAIR, OTHER, "WETH/DAI", ws_url=SOCKET_URL, **every) as venue:
        contents = venue.maker.contents
        contents["blacklist"] = ["0x" + user.hex()]
        await venue.until(lambda: venue.stream().is_up)
        assert venue.live() == {BOOK, OTHER_BOOK, (WETH, DAI)}
        assert venue.feed.cache.blacklist.holds(user, wall_ms())
        await trio.sleep(10)
        asked = {resource: len(venue.maker.asked[resource]) for resource in polled}
        del contents["pairs"][OTHER], contents["tokens"]["DAI"], contents["blacklist"][0]
        await trio.sleep(30)
        assert venue.live() == {BOOK}
        assert not venue.feed.cache.blacklist.holds(user, wall_ms())
        assert all(len(venue.maker.asked[resource]) > asked[resource] for resource in polled)
        assert len(venue.maker.asked["socket"]) == 1
        assert venue.stream().is_up


async def test_flapping_socket_is_connected_less_and_less_often(clock: MockClock) -> None:
    async with over_socket() as venue:
        tasks: list[int] = []
        while len(venue.maker.asked["socket"]) < 12:
            await venue.until(lambda: bool(venue.maker.sockets))
            await trio.testing.wait_all_tasks_blocked()
            tasks.append(trio.lowlevel.current_statistics().tasks_living)
            await venue.maker.cut()
            await venue.until(lambda: not venue.maker.sockets)
        assert tasks[-1] <= tasks[0]
        at = [seconds for seconds, _ in venue.maker.asked["socket"]]
        gaps = [then - first for first, then in pairwise(at)]
        assert gaps[0] < 1
        assert min(gaps[-4:]) > timeouts.FEED_PAUSE_S_MAX / 2 - 1
        assert max(gaps) < 1.5 * timeouts.FEED_PAUSE_S_MAX + 1


# --- Supervision ----------------------------------------------------------------------------------


async def test_task_that_fails_unexpectedly_is_logged_and_started_again(
    clock: MockClock, logs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_venue() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})

        def fails(*_: object) -> Any:
            raise RuntimeError("a bug")

        with monkeypatch.context() as patch:
            patch.setattr(venue.feed.cache, "apply_prices", fails)
            await venue.until(lambda: venue.live() == set())
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
        assert venue.feed.statistics().restarts["prices"] >= 1
        assert venue.feed.statistics().restarts.keys() == {"prices"}
    failed = [entry for entry in logs if entry["event"] == "feed task failed"]
    assert failed[0]["task"] == "prices"
    assert failed[0]["exc_info"]


async def test_feed_that_ends_takes_its_books_with_it(clock: MockClock) -> None:
    async with a_venue() as venue:
        await venue.until(lambda: venue.live() == {BOOK, OTHER_BOOK})
    assert venue.live() == set()
