"""Orders whose transfers are followed: which they are, by which chains, and what a write of theirs says."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.bridges.bridge_terms import SELECTORS, AcrossTerms, BridgeFee, BridgeKind, pack_terms
from cambist.codecs.eip712_orders.delta import SAME_CHAIN, DeltaBridge, DeltaOrder
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import OrderNotFound
from cambist.engine.store.rows import DeltaOrderRow, amount32
from cambist.engine.store.tables import BRIDGE_END
from cambist.engine.store.units import new
from cambist.engine.trade.delta.bridging.bridged_orders import BridgedOrder, BridgedOrders, is_carried
from cambist.engine.trade.delta.orders.document import DeltaDocument
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.terms import terms_of
from cambist.engine.trade.delta.orders.transfers import OrderTransfer
from support.chain.bridge_logs import PARTIES
from support.delta.bidding import a_delta_order as an_order
from support.store.stores import NOW_MS, USDC, a_delta_order, a_fill, a_transfer, an_end

ORIGIN, DESTINATION = 1, 10
TERMS = pack_terms(AcrossTerms(BridgeFee(1_000, 5), 7_200, bytes(20), 0))
_NOTHING: Any = None


def bridged(destination: int = DESTINATION) -> DeltaOrder:
    return an_order(bridge=DeltaBridge(SELECTORS[BridgeKind.ACROSS], destination, USDC, 0, TERMS))


def a_live(
    number: int = 1, order: DeltaOrder | None = None, arrivals: bytes = b"", **changed: Any
) -> LiveOrder:
    given: dict[str, Any] = {"spent": amount32(1)} | changed
    found = order or bridged()
    document = DeltaDocument("Order", b"", b"", arrivals=arrivals)
    return LiveOrder(a_delta_order(number, **given), found, document, terms_of(an_order()))


class InMemory:
    """Live orders in memory, whose steps are decided on given rows, one after the other."""

    def __init__(self, *orders: LiveOrder) -> None:
        self.orders = {live.order_hash: live for live in orders}
        self.rows: list[DeltaOrderRow] = []
        self.decided: list[Any] = []

    def get(self, order_hash: bytes) -> LiveOrder | None:
        """As `LiveOrders.get`."""
        return self.orders.get(order_hash)

    async def step(self, order_hash: bytes, decide: Callable[[DeltaOrderRow], Any]) -> None:
        """As `LiveOrders.step`, with a conflict after each row but the last."""
        await trio.lowlevel.checkpoint()
        if order_hash not in self.orders:
            raise OrderNotFound("no such order")
        self.decided = [decide(row) for row in self.rows]


def followed_of(memory: InMemory) -> BridgedOrders:
    unreal: Any = memory
    return BridgedOrders(_NOTHING, unreal, lambda: NOW_MS)


# --- Fees of bridges ------------------------------------------------------------------------------------


class Lanes:
    def __init__(self, *, carries: bool) -> None:
        self.carries, self.asked = carries, list[tuple[Any, ...]]()

    def carries_at_fee(self, *given: Any) -> bool:
        """As `BridgeLanes.carries_at_fee`."""
        self.asked.append(given)
        return self.carries


@pytest.mark.parametrize("carries", [True, False])
def test_the_next_part_of_an_order_across_chains_has_to_be_carried(*, carries: bool) -> None:
    lanes: Any = Lanes(carries=carries)
    live = a_live(chain_id=5)
    assert is_carried(lanes, live, 99, None) is carries
    part = live.part()
    assert part is not None
    assert lanes.asked == [(bridged().bridge, 5, terms_of(an_order()).dest_token, part.dest_amount, 99)]


def test_no_bridge_is_asked_about_an_order_on_one_chain_or_settled_wholly() -> None:
    lanes: Any = Lanes(carries=False)
    settled = a_live()
    settled.filled = bridged().src_amount
    assert settled.part() is None
    for live in (a_live(order=an_order(bridge=SAME_CHAIN)), settled):
        assert is_carried(lanes, live, 99, None)
    assert lanes.asked == []


def test_what_is_known_to_enter_has_to_be_carried_in_place_of_the_minimum() -> None:
    """A low limit says nothing about the amount that the fee has to be worth."""
    lanes: Any = Lanes(carries=True)
    assert is_carried(lanes, a_live(), 99, 10**9)
    ((_, _, _, amount, _),) = lanes.asked
    assert amount == 10**9


# --- Followed orders ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("destination", "spent", "is_final"), [*product((0, 1, DESTINATION), (0, 1, 2), (False, True))]
)
def test_orders_across_chains_are_followed_from_their_first_settlement_until_they_are_final(
    destination: int, spent: int, is_final: bool
) -> None:
    orders = followed_of(InMemory())
    live = a_live(order=bridged(destination), spent=amount32(spent), is_final=is_final)
    is_followed = bool(destination and spent and not is_final)
    before = a_live(order=bridged())
    for first in (None, before):
        if first is not None:
            assert orders.follow(first)
        assert orders.follow(live) is is_followed
        assert len(orders._ends) == is_followed
        assert orders.to(destination) == [live.order_hash] * is_followed
        assert orders.from_(ORIGIN) == [live.order_hash] * is_followed


def test_orders_are_listed_by_their_ends() -> None:
    there = a_live(1, bridged(10), arrivals=b"\xaa" * 20)
    plain = a_live(2, bridged(10), version=4)
    back = a_live(3, bridged(1), chain_id=10, arrivals=b"\xaa" * 20)
    gone = a_live(4, bridged(10), arrivals=b"\xaa" * 20)
    orders = followed_of(InMemory(there, plain, back))
    for live in (there, plain, back, gone):
        assert orders.follow(live)
    assert orders.to(10) == [there.order_hash, plain.order_hash, gone.order_hash]
    assert orders.to(1) == [back.order_hash]
    assert orders.from_(1) == [there.order_hash, plain.order_hash, gone.order_hash]
    assert orders.from_(10) == [back.order_hash]
    assert (orders.arriving_at(10), orders.arriving_at(1)) == ([there.order_hash], [back.order_hash])
    assert [orders.version(live.order_hash) for live in (there, plain, gone)] == [1, 4, 0]


def test_orders_of_shards_that_are_not_held_are_forgotten() -> None:
    orders = followed_of(InMemory())
    lives = [a_live(number, shard=shard) for number, shard in ((1, 3), (2, 4), (3, 3))]
    for live in lives:
        orders.follow(live)
    orders.leave({3, 5})
    assert orders.to(DESTINATION) == [lives[0].order_hash, lives[2].order_hash]
    orders.leave(())
    assert orders.to(DESTINATION) == []


# --- Writes ---------------------------------------------------------------------------------------------


def a_bridged_order(live: LiveOrder) -> BridgedOrder:
    fill = replace(a_fill(live.row, block=7), is_closed=False)
    return BridgedOrder(live.row, PARTIES, (fill,), (OrderTransfer(a_transfer(live.row, block=7)),))


@pytest.mark.parametrize(
    ("versions", "is_written"), [([1], True), ([2], False), ([1, 2], False), ([2, 1], True), ([], False)]
)
async def test_a_change_is_written_if_its_last_decision_was_on_the_row_that_was_read(
    versions: list[int], is_written: bool
) -> None:
    live = a_live(status=OrderStatus.ACTIVE)
    memory = InMemory(live)
    memory.rows = [replace(live.row, version=version) for version in versions]
    order = a_bridged_order(live)
    (transfer,) = order.transfers
    end = an_end(transfer.sent)
    more = [new(BRIDGE_END, end)]
    assert await followed_of(memory).write(order, [replace(transfer, end=end)], more) is is_written
    steps = [step for step in memory.decided if step is not None]
    assert len(steps) == versions.count(1)
    for step in steps:
        assert (step.after.received, step.more) == (end.amount, tuple(more))


async def test_no_change_is_no_write() -> None:
    live = a_live(status=OrderStatus.ACTIVE, received=amount32(0))
    memory = InMemory(live)
    memory.rows = [live.row]
    assert not await followed_of(memory).write(a_bridged_order(live), [])


async def test_an_order_that_the_store_has_no_more_is_not_written_and_followed_no_more() -> None:
    live, other = a_live(1), a_live(2)
    orders = followed_of(InMemory(other))
    orders.follow(live)
    orders.follow(other)
    assert not await orders.write(a_bridged_order(live), [])
    assert orders.to(DESTINATION) == [other.order_hash]
