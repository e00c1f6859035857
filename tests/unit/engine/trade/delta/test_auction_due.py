"""Time at which an order's next round opens, and the memory of orders that this time needs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import trio

from cambist.codecs.messages.agent_messages import Notice, NoticeEntry
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.sections.venue import DeltaSettings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.port import Header, Upcoming
from cambist.engine.trade.delta.auction.agents import Agents, AuctioneerWakeup
from cambist.engine.trade.delta.auction.auction_queue import AuctionQueue
from cambist.engine.trade.delta.auction.own_bids import OwnBids
from cambist.engine.trade.delta.bids.agent_rest import AgentFault
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.settlement.settling import Settling
from cambist.engine.trade.orders.scheduler import Scheduler
from support.delta.auctioning import PlayedAgent, PlayedAuction, an_auction, on_each
from support.delta.bidding import (
    DELTA,
    HANDLER,
    RELAYER,
    WETH,
    a_delta_order,
    a_round_order,
    a_twap,
    an_external_order,
    asked_for,
)
from support.patience import until
from support.store.stores import NOW_MS

SALE, TWAP = a_round_order(1), a_round_order(2, a_twap())
NOW_S = NOW_MS // 1_000


class Clock:
    """Auctions of no agents, and their timers, at a time that is set."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.scheduler = Scheduler(lambda: self.now_ms)
        self.chain_s, self.looks = NOW_S, 0
        self.lives: dict[bytes, LiveOrder] = {}
        self.dear: set[bytes] = set()
        self.owner_rests_ms = 0
        wakeup, settings = AuctioneerWakeup(), DeltaSettings()

        def wall_ms() -> int:
            return self.now_ms

        agents = Agents({}, chain_id=1, settings=settings, wakeup=wakeup, wall_ms=wall_ms)
        self.own_bids = OwnBids(DELTA, RELAYER, WETH, lambda *_: 0, settings, agents.tell, wall_ms)
        self.queue = AuctionQueue(
            cast("Any", self),
            agents,
            self.own_bids,
            wakeup,
            cast("Any", self.lives),
            self.scheduler,
            head_time_s=lambda: 0,
            is_carried=lambda live: live.order_hash not in self.dear,
            owner_rests_until_ms=lambda owner: self.owner_rests_ms,
            settings=settings,
            wall_ms=wall_ms,
        )

    async def upcoming(self) -> Upcoming:
        """As `Chain`."""
        await trio.lowlevel.checkpoint()
        self.looks += 1
        return Upcoming(Header(1, b"\1" * 32, bytes(32), 0, 7), self.chain_s)

    def offer(self, live: LiveOrder) -> None:
        """Offer an order, as a listener of changes does."""
        self.lives[live.order_hash] = live
        self.queue.offer(live)

    def counts(self) -> tuple[int, int]:
        """(waiting, ready)."""
        return self.queue.waiting, self.queue.due


def a_live(order: Any, *, last_fill_s: int = 0, in_vain: int = 0) -> LiveOrder:
    asked = TWAP if order is TWAP.order else SALE
    row: Any = SimpleNamespace(order_hash=asked.order_hash, failures=0)
    return LiveOrder(row, order, asked.document, asked.terms, last_fill_s=last_fill_s, in_vain=in_vain)


async def test_only_a_slice_waits_for_the_time_of_the_last_fill() -> None:
    """The chain's clock decides: by its latest block, not even the first slice is settled."""
    for live, is_ready in (
        (a_live(a_delta_order(), last_fill_s=NOW_S), True),
        (a_live(TWAP.order), True),
        (a_live(TWAP.order, last_fill_s=NOW_S - 3_600), False),
    ):
        clock = Clock()
        assert clock.queue.due_ms(live) == NOW_MS
        clock.offer(live)
        assert clock.counts() == ((0, 1) if is_ready else (1, 0))


async def test_an_order_waits_while_its_bridge_asks_more_than_was_signed() -> None:
    clock = Clock()
    live = a_live(a_delta_order())
    clock.dear.add(live.order_hash)
    clock.offer(live)
    assert clock.counts() == (1, 0)
    clock.offer(live)
    assert clock.counts() == (1, 0)
    clock.dear.clear()
    assert clock.counts() == (1, 0)
    clock.now_ms += 3_600_000
    async with trio.open_nursery() as tasks:
        await tasks.start(clock.scheduler.run)
        await until(lambda: clock.counts() == (0, 1))
        tasks.cancel_scope.cancel()


async def test_an_order_waits_for_the_end_of_its_owners_rest_though_it_is_offered_as_due() -> None:
    clock = Clock()
    live = a_live(a_delta_order())
    clock.owner_rests_ms = NOW_MS + 60_000
    assert clock.queue.due_ms(live) == NOW_MS + 60_000
    clock.offer(live)
    clock.queue.offer(live, is_due=True)
    assert clock.counts() == (1, 0)
    clock.owner_rests_ms = 0
    clock.now_ms += 60_001
    async with trio.open_nursery() as tasks:
        await tasks.start(clock.scheduler.run)
        await until(lambda: clock.counts() == (0, 1))
        tasks.cancel_scope.cancel()


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
        clock.chain_s = NOW_S + 60
        await tasks.start(clock.queue.slices.run)
        await until(lambda: clock.looks)
        assert clock.counts() == (1, 0)
        clock.chain_s += 30
        await until(lambda: clock.counts() == (0, 1))
        tasks.cancel_scope.cancel()


async def test_a_slice_that_is_due_and_failed_before_pauses_as_any_order_does() -> None:
    clock = Clock()
    live = a_live(TWAP.order, last_fill_s=NOW_S, in_vain=1)
    clock.queue.slices.time_s = NOW_S + 60
    clock.offer(live)
    assert clock.queue.due_ms(live) > NOW_MS
    assert (clock.counts(), len(clock.queue.slices)) == ((1, 0), 0)


async def test_offering_what_waits_does_not_put_it_off() -> None:
    clock = Clock()
    live = a_live(a_delta_order(), in_vain=1)
    clock.offer(live)
    due_ms = clock.queue.due_ms(live)
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
        due_ms = auction.queue.due_ms(auction.live(SALE))
        here.leave({})
        assert not here.last_round_ms(SALE.order_hash)
        assert here.statistics().waiting == 0
        assert auction.queue.due_ms(auction.live(SALE)) < due_ms  # its rounds do not count any more


def test_the_runners_up_of_shards_that_others_hold_are_forgotten() -> None:
    nothing: Any = None
    settling = Settling(
        nothing, nothing, nothing, nothing, delta=b"", failures_max=1, tell=nothing, are_lacking=nothing,
        calls_contract=nothing, owner_costs=nothing, unspent=nothing, gas_max=1, read_to=nothing,
        wall_ms=nothing,
    )  # fmt: skip
    kept, left = b"\x01" * 32, b"\x02" * 32
    settling.line_up(kept, [])
    settling.line_up(left, [])
    settling.leave({1})
    assert list(settling._runners_up) == [kept]


# --- The chain's time -----------------------------------------------------------------------------------


async def test_a_slice_is_in_no_round_before_the_chain_would_settle_it(tmp_path: Path) -> None:
    """The venue's clock does not matter: an hour has passed by it."""
    agent = PlayedAgent(lambda _: None)
    async with an_auction(tmp_path, ann=agent) as auction:
        await auction.submitted(TWAP)
        await until(lambda: auction.auctioneer.statistics().waiting == 1)
        auction.auctioneer.withdraw(TWAP.order_hash)
        live = auction.live(TWAP)
        live.last_fill_s = NOW_S - 3_600
        chain: Any = found_chain(auction)
        chain.time_s, chain.asked = live.last_fill_s + 59, trio.Event()
        auction.queue.slices.time_s = 0
        asked = len(agent.asked)
        auction.queue.offer(live)
        await chain.asked.wait()
        auction.queue.offer(live)  # as whoever is told of a change
        assert (auction.auctioneer.statistics().waiting, auction.auctioneer.statistics().ready) == (1, 0)
        assert len(agent.asked) == asked
        chain.time_s += 1
        await until(lambda: len(agent.asked) > asked)
        assert msgspec.json.decode(agent.asked[-1])["orders"]


async def test_the_bids_of_a_round_with_slices_are_simulated_at_the_time_of_the_next_block(
    tmp_path: Path,
) -> None:
    async with an_auction(tmp_path, ann=PlayedAgent(on_each)) as auction:
        chain: Any = found_chain(auction)
        chain.time_s = NOW_S + 7
        await auction.submitted(SALE)
        await until(lambda: chain.times == [None])
        await auction.submitted(TWAP)
        await until(lambda: chain.times == [None, NOW_S + 7])


async def test_a_chain_that_goes_back_is_believed_after_one_round_in_vain(tmp_path: Path) -> None:
    agent = PlayedAgent(lambda _: None)
    async with an_auction(tmp_path, ann=agent) as auction:
        chain: Any = found_chain(auction)
        chain.time_s = NOW_S
        await auction.submitted(TWAP)
        await until(lambda: auction.auctioneer.statistics().waiting == 1)
        auction.auctioneer.withdraw(TWAP.order_hash)
        live = auction.live(TWAP)
        auction.queue.slices.time_s = live.last_fill_s = NOW_S + 3_600
        live.last_fill_s -= 60
        asked = len(agent.asked)
        agent.bids = on_each
        auction.queue.offer(live)
        await until(lambda: len(agent.asked) == asked + 1)
        await until(lambda: auction.auctioneer.chain_s == NOW_S)


def found_chain(auction: PlayedAuction) -> Any:
    """The played chain of an auction."""
    return auction.auctioneer._served.chain


# --- Orders of handlers ---------------------------------------------------------------------------------


def a_handled(number: int) -> LiveOrder:
    asked = asked_for(an_external_order(), number)
    row: Any = SimpleNamespace(order_hash=asked.order_hash, failures=0, status=OrderStatus.PENDING)
    return LiveOrder(row, asked.order, asked.document, asked.terms)


async def test_orders_of_handlers_are_due_without_an_agent_and_share_a_round() -> None:
    clock = Clock()
    lives = [a_handled(number) for number in (1, 2)]
    for live in lives:
        clock.offer(live)
        clock.offer(live)
    assert clock.counts() == (0, 2)
    assert clock.queue.next_at({}, 5.0) == 5.0
    (due,) = clock.queue.take({}, 5.0)
    assert list(due.orders) == list(due.agents) == [live.order_hash for live in lives]
    assert set(due.agents.values()) == {()}
    clock.offer(lives[0])
    assert clock.counts() == (0, 0), "it is in a round"
    assert clock.queue.take({}, 5.0) == []


async def test_orders_of_handlers_have_one_round_at_a_time() -> None:
    clock = Clock()
    first, second = a_handled(1), a_handled(2)
    clock.offer(first)
    clock.queue.take({}, 5.0)
    clock.offer(second)
    assert clock.queue.take({}, 5.0) == []
    assert clock.queue.next_at({}, 5.0) > 5.0
    assert clock.counts() == (0, 1)
    clock.queue.unsettled(first.order_hash)
    assert clock.queue.next_at({}, 5.0) == 5.0
    (due,) = clock.queue.take({}, 5.0)
    assert list(due.orders) == [second.order_hash]


async def test_a_withdrawn_order_of_a_handler_is_not_due() -> None:
    clock = Clock()
    live = a_handled(1)
    clock.offer(live)
    assert live.order_hash in list(clock.queue)
    clock.queue.withdraw(live.order_hash)
    assert clock.counts() == (0, 0)


async def test_orders_of_a_handler_that_rests_wait_as_long() -> None:
    clock = Clock()
    asked = asked_for(an_external_order())
    list(clock.own_bids.bids(asked))
    reverted = NoticeEntry(Notice.REVERTED, to_hex(asked.order_hash))
    clock.own_bids.tell(to_checksum(HANDLER), 1, reverted, AgentFault.REVERTED)
    until_ms = clock.own_bids.rests_until_ms(an_external_order())
    assert until_ms > NOW_MS
    live = a_handled(1)
    assert clock.queue.due_ms(live) == until_ms
    clock.offer(live)
    assert clock.counts() == (1, 0)
