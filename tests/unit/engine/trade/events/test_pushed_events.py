"""Events that the hub pushes to clients whose tasks wait: each once, in order, whatever comes in between."""

import random
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from cambist.engine.store.follower import token_of
from cambist.engine.store.rows import OrderEvent
from cambist.engine.store.store import Store
from cambist.engine.trade.events.filters import EventFilter
from cambist.engine.trade.events.hub import EventHub
from cambist.engine.trade.events.ring import RingEntry
from cambist.engine.trade.orders.order_units import DELTA
from support.store.stores import ALICE, BOB, a_delta_order

EVENTS = 120


def a_hub() -> EventHub:
    """A hub whose ring holds all that a test publishes: nothing is read from a store."""
    return EventHub(cast("Store", None))


def an_event(number: int) -> OrderEvent:
    return DELTA.event(a_delta_order(number, owner=(ALICE, BOB)[number % 2]))


class Client:
    """A client that notes what it is handed, by its task and by pushes.

    Attributes:
        got: all entries in order; pushed, taken: numbers of those that came each way.
        refuses: whether the next push is refused.
    """

    def __init__(self) -> None:
        self.got: list[RingEntry] = []
        self.pushed = self.taken = 0
        self.refuses: Any = lambda: False

    def push(self, entry: RingEntry) -> bool:
        if self.refuses():
            return False
        self.pushed += 1
        self.got.append(entry)
        return True

    async def run(self, hub: EventHub, wanted: EventFilter, wait_s: Any, *, task_status: Any) -> None:
        subscription = await hub.subscribe(wanted)
        subscription.push_by(self.push)
        task_status.started(subscription)
        while True:
            entries: list[RingEntry] = []
            with trio.move_on_after(wait_s()):
                entries = await subscription.take(3)
            self.taken += len(entries)
            self.got += entries


async def test_a_waiting_client_is_handed_an_event_and_no_task_is_woken() -> None:
    hub, client = a_hub(), Client()
    async with trio.open_nursery() as nursery:
        subscription = await nursery.start(client.run, hub, EventFilter(owner=ALICE), lambda: 1e6)
        for number in range(1, 7):
            await wait_all_tasks_blocked()
            await hub.publish(token_of(0, number), an_event(number))
        await wait_all_tasks_blocked()
        assert (client.pushed, client.taken) == (3, 0)
        assert subscription.token == token_of(0, 6)
        subscription.leave()
        nursery.cancel_scope.cancel()


async def test_what_a_push_refuses_its_task_takes() -> None:
    hub, client = a_hub(), Client()
    client.refuses = lambda: True
    async with trio.open_nursery() as nursery:
        await nursery.start(client.run, hub, EventFilter(), lambda: 1e6)
        for number in range(1, 4):
            await wait_all_tasks_blocked()
            await hub.publish(token_of(0, number), an_event(number))
        await wait_all_tasks_blocked()
        assert (client.pushed, client.taken) == (0, 3)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(20))
async def test_each_event_comes_once_and_in_order(seed: int, autojump_clock: MockClock) -> None:
    """Pushes are refused at times, waits are cut short, and events come in bursts or with pauses."""
    draw = random.Random(seed)
    hub, clients = a_hub(), [Client() for _ in range(4)]
    filters = EventFilter(), EventFilter(owner=ALICE), EventFilter(owner=BOB), EventFilter(surface="delta")
    async with trio.open_nursery() as nursery:
        for client, wanted in zip(clients, filters, strict=True):
            client.refuses = lambda: draw.random() < 0.3
            await nursery.start(client.run, hub, wanted, lambda: draw.choice((0.001, 0.01, 1)))
        for number in range(1, EVENTS + 1):
            await hub.publish(token_of(0, number), an_event(number))
            if draw.random() < 0.5:
                await trio.sleep(draw.choice((0, 0.001, 0.01)))
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    places = [(0, number) for number in range(1, EVENTS + 1)]
    wanted_places = places, places[1::2], places[::2], places
    for client, wanted_by in zip(clients, wanted_places, strict=True):
        assert [entry.place for entry in client.got] == wanted_by
        assert min(client.pushed, client.taken) > 0
