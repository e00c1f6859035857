"""Cost of 100,000 waiting orders in a process of its own, by the way in which the orders wait.

    task     a trio task for each, asleep with a time-out
    timer    a timer of the engine's scheduler for each, as the engine adds it for the order's end
    whole    all that the engine keeps of a resting limit order beside its data: the table of live orders and
             of nonces, the timer, the price index, the funds that are followed

Each holds the same orders: row, signed struct and terms, as they are read from the store. An owner has ten.
Time is of this process; memory is what Python has allocated, counted in a second pass, since counting takes
time. `python -m bench.waiting_orders WHAT [--count N] [--memory]` prints JSON.
"""

import argparse
import gc
import hashlib
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import msgspec
import trio
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from bench.bench_resting import ENDS, NOW_MS, Market
from cambist.codecs.eip712_orders.delta import KIND_SELL, SAME_CHAIN, DeltaOrder
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.engine.chain.index.watch import Watch
from cambist.engine.store.rows import DeltaOrderRow, amount32
from cambist.engine.store.units import Fence
from cambist.engine.trade.delta.bridge_desk import BridgeDesk
from cambist.engine.trade.delta.engine import DeltaChain, DeltaEngine
from cambist.engine.trade.delta.open_bridge_desk import bounds_of
from cambist.engine.trade.delta.orders.document import (
    DeltaDocument,
    decode_document,
    encode_document,
    order_json,
    order_of,
    without_struct,
)
from cambist.engine.trade.delta.orders.live_orders import LiveOrder, LiveOrders
from cambist.engine.trade.delta.orders.terms import terms_of
from cambist.engine.trade.delta.settlement.funds_watch import FundsWatch
from cambist.engine.trade.orders.scheduler import Scheduler

TASK, TIMER, WHOLE = "task", "timer", "whole"
COUNT = 100_000
PER_OWNER = 10
DEADLINE_S = 1_900_000_000
_SECONDS = 100_000.0


class Waited(msgspec.Struct, frozen=True):
    """CPU and memory that the waiting of orders costs, per order.

    Attributes:
        start_us, end_us: CPU to start and to end the waiting of all orders, microseconds per order.
        bytes_each: memory while all wait; 0 if memory was not counted.
        data_bytes: memory of the order's own data, counted likewise.
    """

    start_us: float
    end_us: float
    bytes_each: float
    data_bytes: float


class _Fences:
    """Stand-in for the leases of shards: this engine holds all shards."""

    def fence(self, shard: int) -> Fence:
        return Fence(shard, 1)


class _Auctions:
    """Stand-in for an auctioneer that auctions no order."""

    def withdraw(self, order_hash: bytes) -> None:
        """Do nothing, since no order is in an auction round."""


class _Settlements:
    """Stand-in for the runner of settlements, which settles no order."""

    def carry_on(self, live: LiveOrder) -> None:
        """Do nothing, since no order is being settled."""


class Engine:
    """Engine of Delta orders on one chain, without auctions and settlements."""

    def __init__(self) -> None:
        nobody, leases = cast("Any", None), cast("Any", _Fences())
        self.orders = LiveOrders(nobody, leases)
        self.scheduler = Scheduler(lambda: NOW_MS)
        self.prices = Market([]).watch
        auctions = cast("Any", _Auctions())
        self.funds = FundsWatch(
            nobody,
            self.orders,
            Watch(),
            delta=bytes(20),
            vaults=nobody,
            revalued=self.prices.revalued,
            read_to=lambda: None,
            wall_ms=lambda: NOW_MS,
        )
        settling = cast("Any", _Settlements())
        self.delta = DeltaEngine(
            nobody,
            self.scheduler,
            orders=self.orders,
            chains={1: DeltaChain(nobody, nobody, settling, auctions, self.prices, self.funds, lambda: 0)},
            bridges=BridgeDesk(
                nobody, self.orders, {}, attester=None, bounds=bounds_of({}), wall_ms=lambda: NOW_MS
            ),
            wall_ms=lambda: NOW_MS,
        )

    def waiting(self) -> dict[str, int]:
        """Return the number of entries of each table that holds waiting orders."""
        return {
            "orders": len(self.orders),
            "timers": self.scheduler.statistics().waiting,
            "resting": self.prices.statistics().orders,
            "funds": self.funds.statistics().orders,
        }


def an_order(number: int) -> LiveOrder:
    """Make a live order as after a start of the engine, with all parts as new objects."""
    order_hash = hashlib.sha256(b"waiting %d" % number).digest()
    src, dest = ENDS[number % len(ENDS)]
    made = DeltaOrder(
        _owner(number), _owner(number), src, dest, 10**18 + number, 10**24 + 10**18 * number, 0, DEADLINE_S,
        KIND_SELL, number, 0, b"", b"", SAME_CHAIN,
    )  # fmt: skip
    document = decode_document(encode_document(DeltaDocument("Order", order_json("Order", made), bytes(64))))
    order = order_of(document)
    row = DeltaOrderRow(
        order_hash, order_hash[0], 1, _owner(number), amount32(number), OnChainOrderType.ORDER,
        OrderType.LIMIT, Side.SELL, "anon", NOW_MS + number, DEADLINE_S, 2, OrderStatus.ACTIVE, NOW_MS,
        amount32(0), amount32(0), is_final=False,
    )  # fmt: skip
    return LiveOrder(row, order, without_struct(document), terms_of(order))


def _owner(number: int) -> bytes:
    return hashlib.sha256(b"owner %d" % (number // PER_OWNER)).digest()[:20]


# --- Who waits ----------------------------------------------------------------------------------------


@asynccontextmanager
async def tasks(orders: list[LiveOrder], _engine: Engine, times: list[float]) -> AsyncIterator[None]:
    """Context manager in which each order waits in a trio task of its own."""

    async def wait(live: LiveOrder) -> bytes:
        with trio.move_on_after(_SECONDS):
            await trio.sleep_forever()
        return live.order_hash

    times.append(time.process_time())
    async with trio.open_nursery() as nursery:
        for live in orders:
            nursery.start_soon(wait, live)
        await wait_all_tasks_blocked()
        times.append(time.process_time())
        yield
        times.append(time.process_time())
        nursery.cancel_scope.cancel()
    times.append(time.process_time())


@asynccontextmanager
async def timers(orders: list[LiveOrder], engine: Engine, times: list[float]) -> AsyncIterator[None]:
    """Context manager in which each order waits by a timer of the engine's scheduler."""
    times.append(time.process_time())
    for live in orders:
        engine.delta._expire_at(live.row, 1_000 * live.row.expires_s)
    times.append(time.process_time())
    assert engine.waiting()["timers"] == len(orders)
    yield
    keys = list(engine.scheduler._timers._by_key)
    times.append(time.process_time())
    for key in keys:
        engine.scheduler.cancel(key)
    times.append(time.process_time())
    assert not engine.waiting()["timers"]


@asynccontextmanager
async def whole(orders: list[LiveOrder], engine: Engine, times: list[float]) -> AsyncIterator[None]:
    """Context manager in which the engine holds each order as it holds a waiting limit order."""
    before = [live.row for live in orders]
    ended = [replace(row, version=3, status=OrderStatus.EXPIRED, is_final=True) for row in before]
    times.append(time.process_time())
    for live in orders:
        engine.orders._put(live)
    times.append(time.process_time())
    assert set(engine.waiting().values()) == {len(orders)}, engine.waiting()
    yield
    times.append(time.process_time())
    for row in ended:
        engine.orders._refresh(row)
    times.append(time.process_time())
    assert not any(engine.waiting().values()), engine.waiting()
    for live, row in zip(orders, before, strict=True):
        live.row = row


Kind = Callable[[list[LiveOrder], Engine, list[float]], AbstractAsyncContextManager[None]]
KINDS: dict[str, Kind] = {TASK: tasks, TIMER: timers, WHOLE: whole}


async def waited(what: str, count: int, *, counts_memory: bool) -> Waited:
    """Start and end the waiting of `count` orders, and measure CPU and memory.

    Args:
        what: way in which the orders wait: task, timer or whole.
    """
    data_bytes = bytes_each = 0.0
    if counts_memory:
        tracemalloc.start()
        orders = [an_order(number) for number in range(count)]
        data_bytes = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
    else:
        orders = [an_order(number) for number in range(count)]
    gc.collect()
    gc.freeze()
    times: list[float] = []
    async with KINDS[what](orders, Engine(), times):
        pass
    began, waits, ends, ended = times
    if counts_memory:
        engine = Engine()
        gc.collect()
        tracemalloc.start()
        async with KINDS[what](orders, engine, []):
            gc.collect()
            bytes_each = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
    gc.unfreeze()
    return Waited(1e6 * (waits - began) / count, 1e6 * (ended - ends) / count, bytes_each, data_bytes)


def main() -> None:
    """Measure one way in which orders wait, and print the result as JSON."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("what", choices=KINDS)
    arguments.add_argument("--count", type=int, default=COUNT)
    arguments.add_argument("--memory", action="store_true")
    chosen = arguments.parse_args()
    found = trio.run(lambda: waited(chosen.what, chosen.count, counts_memory=chosen.memory))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
