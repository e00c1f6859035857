"""The hub of order events: other engines, restarts, a store that is away, and what happens in between."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import InvalidInput, StoreUnavailable
from cambist.config.limits import FOLLOW_REPLAYS_MAX
from cambist.config.timeouts import FOLLOW_LOOK_S
from cambist.engine.store.follower import START, latest, token_of
from cambist.engine.store.queries import Query
from cambist.engine.store.store import Store
from cambist.engine.trade.events import hub as hub_module
from cambist.engine.trade.events.filters import EventFilter
from cambist.engine.trade.events.hub import EventHub
from cambist.engine.trade.events.subscription import Subscription
from support.patience import PATIENCE_S, until
from support.store.stores import BOB, Engine, a_delta_order, all_at_once, events_of, kept, moved, submission

EVERYTHING = EventFilter()
_D = OrderStatus


@asynccontextmanager
async def a_hub(store: Store, **options: Any) -> AsyncIterator[EventHub]:
    hub = EventHub(store, **options)
    async with trio.open_nursery() as nursery:
        await nursery.start(hub.run)
        yield hub
        nursery.cancel_scope.cancel()


async def take(subscription: Subscription, count: int) -> list[Any]:
    """The next events, as many as that."""
    got: list[Any] = []
    with trio.fail_after(PATIENCE_S):
        while len(got) < count:
            got += await subscription.take(count - len(got))
    return [entry.event for entry in got]


# --- Several engines --------------------------------------------------------------------------------------


async def test_two_engines_hear_each_other(postgres_url: str, tmp_path: Path) -> None:
    engine = Engine(postgres_url, tmp_path, in_process=False)
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(engine.open(batch_max=8)) for _ in range(2)]
        hubs = [await stack.enter_async_context(a_hub(store, ring_max=16)) for store in stores]
        heard: list[list[Any]] = [[], [], []]

        async def listen(which: int, subscription: Subscription) -> None:
            heard[which] = await take(subscription, 200)

        async def write(which: int) -> None:
            for first in range(which * 1_000, which * 1_000 + 100, 10):
                orders = [a_delta_order(first + number) for number in range(10)]
                await all_at_once(stores[which], *map(submission, orders))

        async with trio.open_nursery() as nursery:
            for which, hub in enumerate((*hubs, hubs[0])):
                after = START if which else None
                nursery.start_soon(listen, which, await hub.subscribe(EVERYTHING, after))
            for which in range(2):
                nursery.start_soon(write, which)
        assert heard == [await events_of(stores[0])] * 3
        assert len({event.order_hash for event in heard[0]}) == 200


async def test_a_token_of_one_engine_is_good_at_the_other(postgres_url: str, tmp_path: Path) -> None:
    engine = Engine(postgres_url, tmp_path, in_process=False)
    async with engine.open() as one, engine.open() as other:
        order = await kept(one, a_delta_order(1))
        async with a_hub(one) as hub:
            order = await moved(one, order, status=_D.ACTIVE)
            with await hub.subscribe(EVERYTHING, START) as subscription:
                await take(subscription, 1)
                token = subscription.token
        order = await moved(other, order, status=_D.CANCELLING)
        async with a_hub(other) as hub:
            order = await moved(one, order, status=_D.CANCELLED)
            with await hub.subscribe(EVERYTHING, token) as subscription:
                statuses = [event.status for event in await take(subscription, 3)]
        assert statuses == ["ACTIVE", "CANCELLING", "CANCELLED"]


# --- What happens in between ------------------------------------------------------------------------------


class Watched(Store):
    """A store whose reads a test can make fail."""

    is_away = False

    async def read(self, *queries: Query) -> list[list[tuple[Any, ...]]]:
        """As the switch says."""
        if self.is_away:
            raise StoreUnavailable("away")
        return await super().read(*queries)


@asynccontextmanager
async def a_watched_store(folder: Path) -> AsyncIterator[Watched]:
    async with Engine("sqlite:cambist.sqlite3", folder, in_process=True).open() as store:
        store.__class__ = Watched
        assert isinstance(store, Watched)
        yield store


async def test_what_is_written_while_a_page_is_read_is_not_passed_over(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with a_watched_store(tmp_path) as store:
        orders = [await kept(store, a_delta_order(number)) for number in range(3)]
        async with a_hub(store, ring_max=2) as hub:
            subscription = await hub.subscribe(EVERYTHING, START)

            read = hub.read

            async def read_slowly(query: Query) -> list[tuple[Any, ...]]:
                rows = await read(query)
                hub.read = read  # type: ignore[method-assign]
                orders.append(await kept(store, a_delta_order(3)))
                await until(lambda: hub.statistics().events)
                return rows

            hub.read = read_slowly  # type: ignore[method-assign]
            assert [event.order_hash for event in await take(subscription, 4)] == [
                order.order_hash for order in orders
            ]


async def test_a_token_that_the_hub_has_not_come_to_is_kept_to(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with a_watched_store(tmp_path) as store, a_hub(store) as hub:
        silent: Any = store
        await trio.testing.wait_all_tasks_blocked()
        announce, silent.announce = silent.announce, lambda: None
        await kept(store, a_delta_order(1))
        subscription = await hub.subscribe(EVERYTHING, await latest(store))
        assert hub.statistics().events == 0
        silent.announce = announce
        second = await kept(store, a_delta_order(2))
        (event,) = await take(subscription, 1)
        assert event.order_hash == second.order_hash
        assert hub.statistics().events == 2


async def test_a_token_ahead_of_the_log_is_refused_and_of_an_empty_one_is_of_its_beginning(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    ahead = "7" + "f" * 15 + "0" * 16
    async with a_watched_store(tmp_path) as store, a_hub(store) as hub:
        subscription = await hub.subscribe(EVERYTHING, ahead)
        order = await kept(store, a_delta_order(1))
        (event,) = await take(subscription, 1)
        assert event.order_hash == order.order_hash
        subscription.leave()
        with pytest.raises(InvalidInput, match="token of this venue"):
            await hub.subscribe(EVERYTHING, ahead)
        assert hub.statistics().subscriptions == 0


async def test_a_store_that_is_away_is_waited_for(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with a_watched_store(tmp_path) as store:
        order = await kept(store, a_delta_order(1, owner=BOB))
        async with a_hub(store) as hub:
            subscription = await hub.subscribe(EventFilter(owner=BOB), START)
            store.is_away = True
            with trio.move_on_after(3.5 * FOLLOW_LOOK_S) as waiting:
                await subscription.take(1)
            assert waiting.cancelled_caught
            store.is_away = False
            (event,) = await take(subscription, 1)
            assert event.order_hash == order.order_hash


async def test_few_read_the_store_at_a_time(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with a_watched_store(tmp_path) as store:
        await kept(store, a_delta_order(1))
        reading = most = 0
        read = store.read

        async def counted(*queries: Query) -> list[list[tuple[Any, ...]]]:
            nonlocal reading, most
            reading += 1
            most = max(most, reading)
            await trio.sleep(0.1)
            reading -= 1
            return await read(*queries)

        async with a_hub(store) as hub, trio.open_nursery() as nursery:
            store.read = counted  # type: ignore[method-assign]
            for _ in range(20):
                nursery.start_soon(take, await hub.subscribe(EVERYTHING, START), 1)
        assert most == FOLLOW_REPLAYS_MAX


async def test_replays_take_half_of_the_time_at_most(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_watched_store(tmp_path) as store:
        orders = [a_delta_order(number) for number in range(200)]
        await all_at_once(store, *map(submission, orders))
        busy_s = 0.0
        sizes = list[int]()
        read = store.read
        monkeypatch.setattr(hub_module, "perf_counter", lambda: busy_s)

        async def blocks(*queries: Query) -> list[list[tuple[Any, ...]]]:
            nonlocal busy_s
            (rows,) = await read(*queries)
            busy_s += 0.1
            sizes.append(len(rows))
            return [rows]

        async with a_hub(store) as hub:
            store.read = blocks  # type: ignore[method-assign]
            began = trio.current_time()
            async with trio.open_nursery() as nursery:
                for _ in range(8):
                    nursery.start_soon(take, await hub.subscribe(EVERYTHING, START), 200)
            took_s = trio.current_time() - began
        pages = 8 * 4
        assert sizes.count(64) == 8 * 3, "a page is a small step"
        assert max(sizes) == 64
        assert hub.statistics().pages == pages
        assert took_s == pytest.approx(0.1 * pages, abs=0.5), "they rest as long as they have read"


@pytest.mark.turns
async def test_an_event_of_many_listeners_is_noted_in_slices_and_promised_by_no_token_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = 0
    note = Subscription.note

    def counted(*arguments: Any) -> bool:
        nonlocal noted
        noted += 1
        return note(*arguments)

    async with a_watched_store(tmp_path) as store, a_hub(store) as hub, trio.open_nursery() as nursery:
        first = await kept(store, a_delta_order(1))
        listeners = [await hub.subscribe(EVERYTHING, START) for _ in range(1_000)]
        heard = list[str]()

        async def listen(listener: Subscription) -> None:
            await take(listener, 1)
            heard.append((await take(listener, 1))[0].status)

        for listener in listeners:
            nursery.start_soon(listen, listener)
        await wait_all_tasks_blocked(0.05)
        before = token_of(*hub.ring.newest)
        assert {listener.token for listener in listeners} == {before}
        monkeypatch.setattr(Subscription, "note", counted)
        nursery.start_soon(moved_to_active, store, first)
        slices = list[int]()
        while len(heard) < len(listeners):
            seen = noted
            await trio.lowlevel.checkpoint()
            slices.append(noted - seen)
            if noted < len(listeners):
                assert {listener.token for listener in listeners} == {before}, "not all have noted it"
        assert sum(slices) == noted == 1_000
        assert max(slices) <= 2 * 256, "one slice in a pass, and this task looks once in two at the least"
        assert heard == ["ACTIVE"] * 1_000
        assert {listener.token for listener in listeners} == {await latest(store)}


async def moved_to_active(store: Store, order: Any) -> None:
    await moved(store, order, status=_D.ACTIVE)
