"""Benchmarks of order events: publish an event to 1,000 listeners, and make the event of an order's change.

The baselines are the plain forms: a channel per listener into which the message is put, and the event encoded
by `json`. Publishing ends when all subscribed listeners have the message.
"""

import hashlib
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import trio

from bench.trio_thread import Visited, living_in_trio
from cambist.codecs.iso_time import iso_ms
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.crypto.addresses import to_checksum
from cambist.engine.store.follower import START, token_of
from cambist.engine.store.rows import DeltaOrderRow, OrderEvent, amount32
from cambist.engine.store.store import Store
from cambist.engine.trade.events.filters import EventFilter
from cambist.engine.trade.events.hub import EventHub
from cambist.engine.trade.events.message import encode_event
from cambist.engine.trade.orders.order_units import DELTA, order_id

LISTENERS = 1_000
NOW_MS = 1_795_000_000_000
_numbers = itertools.count(1)


def an_order(number: int) -> DeltaOrderRow:
    order_hash = hashlib.sha256(b"order %d" % number).digest()
    return DeltaOrderRow(
        order_hash, order_hash[0], 1, owner_of(number), order_hash, OnChainOrderType.ORDER, OrderType.LIMIT,
        Side.SELL, "acme", NOW_MS, 1_900_000_000, 2, OrderStatus.ACTIVE, NOW_MS + number,
        amount32(10**18), amount32(2_500 * 10**6), False,
    )  # fmt: skip


def owner_of(number: int) -> bytes:
    return hashlib.sha256(b"owner %d" % (number % LISTENERS)).digest()[:20]


class Crowd:
    """Listeners to order events, with the number of those that have not received the last message yet."""

    def __init__(self) -> None:
        self.left = 0
        self.all_have_it = trio.Event()

    def took(self) -> None:
        self.left -= 1
        if not self.left:
            self.all_have_it.set()

    def expects(self, listeners: int) -> None:
        self.left, self.all_have_it = listeners, trio.Event()


class HubCrowd(Crowd):
    """Listeners that subscribe to order events of the venue's `EventHub`."""

    def __init__(self, *, owners: bool) -> None:
        super().__init__()
        self.hub = EventHub(cast("Store", None))  # nobody is behind: nothing is read
        self._owners = owners

    async def listen(self, number: int, *, task_status: trio.TaskStatus[None]) -> None:
        wanted = EventFilter(surface="delta", owner=owner_of(number) if self._owners else None)
        subscription = await self.hub.subscribe(wanted)
        task_status.started()
        while True:
            for entry in await subscription.take(16):
                assert entry.message
                self.took()

    async def tell(self) -> None:
        number = next(_numbers)
        self.expects(1 if self._owners else LISTENERS)
        await self.hub.publish(token_of(0, number), DELTA.event(an_order(number)))
        await self.all_have_it.wait()


class ChannelCrowd(Crowd):
    """Baseline: listeners that each receive order events from a trio channel of their own."""

    def __init__(self) -> None:
        super().__init__()
        self._channels: list[trio.MemorySendChannel[bytes]] = []

    async def listen(self, number: int, *, task_status: trio.TaskStatus[None]) -> None:  # noqa: ARG002
        send, receive = trio.open_memory_channel[bytes](16)
        self._channels.append(send)
        task_status.started()
        async for message in receive:
            assert message
            self.took()

    async def tell(self) -> None:
        number = next(_numbers)
        self.expects(LISTENERS)
        message = encode_event(token_of(0, number), DELTA.event(an_order(number)))
        for channel in self._channels:
            channel.send_nowait(message)
        await self.all_have_it.wait()


@asynccontextmanager
async def gathered(crowd: HubCrowd | ChannelCrowd) -> AsyncIterator[HubCrowd | ChannelCrowd]:
    async with trio.open_nursery() as nursery:
        for number in range(LISTENERS):
            await nursery.start(crowd.listen, number)
        await trio.sleep(0.1)
        yield crowd
        nursery.cancel_scope.cancel()


@pytest.fixture(scope="module")
def everybody() -> Iterator[Visited[Any]]:
    """Fixture: 1,000 listeners that subscribe to the events of all orders."""
    with living_in_trio(lambda: gathered(HubCrowd(owners=False))) as visited:
        yield visited


@pytest.fixture(scope="module")
def owners() -> Iterator[Visited[Any]]:
    """Fixture: 1,000 listeners that each subscribe to the orders of an owner's address."""
    with living_in_trio(lambda: gathered(HubCrowd(owners=True))) as visited:
        yield visited


@pytest.fixture(scope="module")
def channels() -> Iterator[Visited[Any]]:
    """Fixture of the baseline: 1,000 listeners that each receive events from a channel."""
    with living_in_trio(lambda: gathered(ChannelCrowd())) as visited:
        yield visited


async def tell(crowd: HubCrowd | ChannelCrowd) -> None:
    await crowd.tell()


def bench_event_to_1000_listeners(benchmark: Any, everybody: Visited[Any]) -> None:
    """Measure the publication of an order event that all 1,000 listeners subscribe to."""
    benchmark(everybody.visit, tell)


def bench_event_to_1000_channels(benchmark: Any, channels: Visited[Any]) -> None:
    """Baseline: measure sending the message of an order event into 1,000 channels."""
    benchmark(channels.visit, tell)


def bench_event_to_one_of_1000_owners(benchmark: Any, owners: Visited[Any]) -> None:
    """Measure the publication of an order event that only one of 1,000 listeners subscribes to."""
    benchmark(owners.visit, tell)


# --- Making it --------------------------------------------------------------------------------------------


def bench_event_made(benchmark: Any) -> None:
    """Measure the making of the event of an order's change, with its JSON body."""
    orders = itertools.cycle([an_order(number) for number in range(256)]).__next__
    made: OrderEvent = benchmark(lambda: DELTA.event(orders()))
    assert json.loads(made.body)["receivedAmount"] == "2500000000"


def bench_event_encoded(benchmark: Any) -> None:
    """Measure the encoding of an order event as the message that clients receive."""
    events = itertools.cycle([DELTA.event(an_order(number)) for number in range(256)]).__next__
    message = json.loads(benchmark(lambda: encode_event(START, events())))
    assert message.keys() == plain(an_order(0), START).keys()
    assert json.loads(encode_event(START, DELTA.event(an_order(7)))) == plain(an_order(7), START)


def bench_event_encoded_json(benchmark: Any) -> None:
    """Baseline: measure the encoding of an event's message from the order by `json`."""
    orders = itertools.cycle([an_order(number) for number in range(256)]).__next__
    assert benchmark(lambda: json.dumps(plain(orders(), START)).encode())


def bench_event_body_json(benchmark: Any) -> None:
    """Baseline: measure the encoding of an event's body by `json`."""
    orders = itertools.cycle([an_order(number) for number in range(256)]).__next__
    assert benchmark(lambda: json.dumps(body(orders())).encode())


def body(order: DeltaOrderRow) -> dict[str, Any]:
    return {
        "type": order.type,
        "onChainOrderType": order.kind,
        "side": order.side,
        "spentAmount": str(int.from_bytes(order.spent)),
        "receivedAmount": str(int.from_bytes(order.received)),
    }


def plain(order: DeltaOrderRow, token: str) -> dict[str, Any]:
    return {
        "event": "order",
        "token": token,
        "surface": "delta",
        "id": str(order_id(order.order_hash)),
        "orderHash": f"0x{order.order_hash.hex()}",
        "chainId": order.chain_id,
        "owner": to_checksum(order.owner),
        "partner": order.partner,
        "status": order.status,
        "version": order.version,
        "at": iso_ms(order.updated_ms),
        **body(order),
    }
