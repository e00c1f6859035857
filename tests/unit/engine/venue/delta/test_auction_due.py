"""When the next round of an order opens, and what is remembered of orders for that."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import trio

from cambist.config.errors import NodeUnavailable
from cambist.config.venue import DeltaSettings
from cambist.engine.chain.port import Header
from cambist.engine.scheduler import Scheduler
from cambist.engine.venue.delta.auctioneer import Auctioneer, AuctionIds
from cambist.engine.venue.delta.live_orders import LiveOrder
from cambist.engine.venue.delta.settling import Settling
from cambist.engine.venue.delta.simulating import reached
from support.auctioning import PlayedAgent, an_auction
from support.bidding import a_delta_order, a_round_order, a_twap
from support.patience import until
from support.store_work import now_ms
from support.stores import NOW_MS

SALE, TWAP = a_round_order(1), a_round_order(2, a_twap())
NOW_S = NOW_MS // 1_000
INTERVAL_MS = 60_000


class Clock:
    """Auctions of no agents, and their timers, at a time that is set."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.scheduler = Scheduler(lambda: self.now_ms)
        place: Any = SimpleNamespace(place=SimpleNamespace(chain_id=1))
        nothing: Any = None
        self.lives: dict[bytes, LiveOrder] = {}
        self.auctioneer = Auctioneer(
            place,
            {},
            cast("Any", self.lives),
            nothing,
            self.scheduler,
            ids=AuctionIds(),
            settings=DeltaSettings(),
            wall_ms=lambda: self.now_ms,
        )
        self.auctioneer.claims = cast("Any", SimpleNamespace(leave=lambda _: None))

    def offer(self, live: LiveOrder) -> None:
        """As whoever is told of a change."""
        self.lives[live.order_hash] = live
        self.auctioneer.offer(live)

    def counts(self) -> tuple[int, int]:
        """(waiting, ready)."""
        told = self.auctioneer.statistics()
        return told.waiting, told.ready


def a_live(order: Any, *, last_fill_s: int = 0, in_vain: int = 0) -> LiveOrder:
    asked = TWAP if order is TWAP.order else SALE
    row: Any = SimpleNamespace(order_hash=asked.order_hash, failures=0)
    return LiveOrder(row, order, asked.document, asked.terms, last_fill_s=last_fill_s, in_vain=in_vain)


async def test_only_a_slice_waits_for_the_time_of_the_last_fill() -> None:
    """The time of blocks may be ahead of the clock."""
    due_ms = Clock().auctioneer.due_ms
    assert due_ms(a_live(a_delta_order(), last_fill_s=NOW_S + 3_600)) == NOW_MS
    assert due_ms(a_live(TWAP.order, last_fill_s=NOW_S + 3_600)) == NOW_MS + 3_600_000 + INTERVAL_MS
    assert due_ms(a_live(TWAP.order)) == NOW_MS


async def test_a_slice_that_is_undone_waits_no_longer_for_the_one_before_it() -> None:
    clock = Clock()
    live = a_live(TWAP.order, last_fill_s=NOW_S)
    clock.offer(live)
    assert clock.counts() == (1, 0)
    live.last_fill_s = 0
    clock.offer(live)
    assert clock.counts() == (0, 1)


async def test_a_slice_whose_last_fill_is_another_now_waits_for_that_one() -> None:
    clock = Clock()
    live = a_live(TWAP.order, last_fill_s=NOW_S)
    clock.offer(live)
    live.last_fill_s += 30
    clock.offer(live)
    async with trio.open_nursery() as tasks:
        clock.now_ms = NOW_MS + INTERVAL_MS
        await tasks.start(clock.scheduler.run)
        assert clock.counts() == (1, 0)
        clock.now_ms += 30_000
        clock.scheduler.at(0, "wake", lambda: None)
        await until(lambda: clock.counts() == (0, 1))
        tasks.cancel_scope.cancel()


async def test_offering_what_waits_does_not_put_it_off() -> None:
    clock = Clock()
    live = a_live(a_delta_order(), in_vain=1)
    clock.offer(live)
    due_ms = clock.auctioneer.due_ms(live)
    clock.now_ms = due_ms - 100
    clock.offer(live)
    clock.now_ms = due_ms
    async with trio.open_nursery() as tasks:
        await tasks.start(clock.scheduler.run)
        await until(lambda: clock.counts() == (0, 1))
        tasks.cancel_scope.cancel()


async def test_nothing_is_remembered_of_orders_of_shards_that_others_hold(tmp_path: Path) -> None:
    async with an_auction(tmp_path, ann=PlayedAgent(lambda _: None)) as auction:
        here = auction.auctioneer
        await auction.submitted(SALE)
        await until(lambda: here.statistics().waiting == 1)
        assert here.last_round_ms(SALE.order_hash)
        here.leave(range(256))
        assert here.last_round_ms(SALE.order_hash)
        assert here.statistics().waiting == 1
        due_ms = here.due_ms(auction.live(SALE))
        here.leave({})
        assert not here.last_round_ms(SALE.order_hash)
        assert here.statistics().waiting == 0
        assert here.due_ms(auction.live(SALE)) < due_ms  # its rounds do not count any more


def test_the_runners_up_of_shards_that_others_hold_are_forgotten() -> None:
    nothing: Any = None
    settling = Settling(
        nothing, nothing, nothing, delta=b"", failures_max=1, tell=nothing, are_lacking=nothing,
        runs_code=nothing, read_to=nothing, wall_ms=nothing,
    )  # fmt: skip
    kept, left = b"\x01" * 32, b"\x02" * 32
    settling.line_up(kept, [])
    settling.line_up(left, [])
    settling.leave({1})
    assert list(settling._runners_up) == [kept]


# --- The chain's time -----------------------------------------------------------------------------------


class SlowChain:
    """A chain whose latest block is of a time."""

    def __init__(self, time_s: int) -> None:
        self.time_s = time_s
        self.grown, self.awaited = trio.Event(), trio.Event()
        self.is_away = False

    async def block(self) -> Header:
        """The latest."""
        await trio.lowlevel.checkpoint()
        if self.is_away:
            raise NodeUnavailable("nobody answers")
        return Header(self.time_s, self.time_s.to_bytes(32, "big"), bytes(32), self.time_s, 7)

    async def wait_head(self, known: bytes) -> None:
        """Until it has grown."""
        self.awaited.set()
        await self.grown.wait()

    def grow(self, time_s: int) -> None:
        """A block."""
        self.time_s = time_s
        self.grown.set()
        self.grown = trio.Event()


@pytest.mark.parametrize(("blocks", "is_early"), [([100], False), ([99, 100], True), ([80, 90, 101], True)])
async def test_a_block_of_a_time_is_waited_for(
    blocks: list[int], is_early: bool, autojump_clock: Any
) -> None:
    chain = SlowChain(blocks[0])

    async def grow() -> None:
        for time_s in blocks[1:]:
            await trio.sleep(1)
            chain.grow(time_s)

    async with trio.open_nursery() as tasks:
        tasks.start_soon(grow)
        assert await reached(cast("Any", chain), 100, 30) == is_early
        assert chain.time_s == blocks[-1]


async def test_a_chain_that_stands_still_or_is_away_is_not_waited_for(autojump_clock: Any) -> None:
    chain, before_s = SlowChain(99), trio.current_time()
    assert not await reached(cast("Any", chain), 100, 30)
    assert trio.current_time() - before_s == pytest.approx(30)
    chain.is_away = True
    assert not await reached(cast("Any", chain), 100, 30)


async def test_a_slice_that_came_before_its_time_is_auctioned_at_the_next_block_and_no_round_counts(
    tmp_path: Path,
) -> None:
    agent = PlayedAgent(lambda _: None)
    async with an_auction(tmp_path, ann=agent) as auction:
        await auction.submitted(TWAP)
        await until(lambda: auction.auctioneer.statistics().waiting == 1)
        live = auction.live(TWAP)
        auction.auctioneer.withdraw(TWAP.order_hash)
        live.last_fill_s = NOW_S - 3_600
        chain = SlowChain(live.last_fill_s + 59)
        found: Any = auction.auctioneer
        found._place.chain.block, found._place.chain.wait_head = chain.block, chain.wait_head
        asked = len(agent.asked)
        auction.auctioneer.offer(live)
        await until(lambda: len(agent.asked) == asked + 1)
        await chain.awaited.wait()
        auction.auctioneer.offer(live)  # as whoever is told of a change
        assert (auction.auctioneer.statistics().waiting, auction.auctioneer.statistics().ready) == (0, 0)
        chain.grow(live.last_fill_s + 60)
        await until(lambda: len(agent.asked) >= asked + 2)
        assert msgspec.json.decode(agent.asked[-1])["orders"]
        await until(lambda: auction.auctioneer.statistics().waiting == 1)
        pause_ms = auction.auctioneer.due_ms(live) - now_ms()
        assert pause_ms <= 1_000  # one round counts: that of the block that was late enough
