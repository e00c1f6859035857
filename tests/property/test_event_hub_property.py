"""A listener gets each of its events once and in order, even if it leaves, returns or reads slowly.

Random orders change while listeners begin anywhere in the log, take a little, leave, and come back with the
last token that they had. The ring and the pages of the store are so small that every listener is behind at
times.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import msgspec
import pytest
import trio
import trio.testing
from hypothesis import strategies as st

from cambist.crypto.addresses import to_checksum
from cambist.engine.store.follower import START, place_of, token_of
from cambist.engine.store.queries import events_after
from cambist.engine.store.rows import OrderEvent
from cambist.engine.store.store import Store
from cambist.engine.store.tables import ORDER_EVENT
from cambist.engine.store.units import row_of
from cambist.engine.trade.events import hub as hub_module
from cambist.engine.trade.events import subscription as subscription_module
from cambist.engine.trade.events.filters import EventFilter
from cambist.engine.trade.events.hub import EventHub
from cambist.engine.trade.events.ring import RingPosition
from cambist.engine.trade.events.subscription import Subscription
from cambist.engine.trade.orders.order_units import order_id
from support.store.stores import (
    ALICE,
    BOB,
    CAROL,
    NOBODY,
    Engine,
    a_delta_order,
    all_at_once,
    an_otc_order,
    hash_of,
    rows_of,
    submission,
)

RING, PAGE = 4, 3
FILTERS = (
    EventFilter(),
    EventFilter(surface="delta"),
    EventFilter(surface="delta", owner=ALICE),
    EventFilter(owner=BOB),
    EventFilter(partner="acme"),
    EventFilter(chain_ids=frozenset({1, 10})),
    EventFilter(orders=frozenset({order_id(hash_of(number)) for number in (2, 3, 11)})),
    EventFilter(surface="delta", owner=BOB, chain_ids=frozenset({10}), partner="acme"),
    EventFilter(surface="otc"),
    EventFilter(surface="otc", taker=BOB),
    EventFilter(surface="otc", taker=CAROL),
    EventFilter(surface="otc", owner=ALICE, taker=CAROL),
    EventFilter(surface="otc", taker=NOBODY, chain_ids=frozenset({10})),
)
_WHICH = st.integers(0, 5)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6), st.integers(0, 15)),
        st.tuples(st.just("listen"), st.integers(0, len(FILTERS) - 1), st.integers(-1, 40)),
        st.tuples(st.just("take"), _WHICH, st.integers(1, 7)),
        st.tuples(st.just("come back"), _WHICH, st.integers(0, 1)),
        st.tuples(st.just("rest"), st.just(0), st.just(0)),
    ),
    min_size=12,
    max_size=40,
)
"""(what, of which, how many or from where)."""


class Listener:
    """Listener that records its events.

    Attributes:
        start: the place that it began behind.
        heard: (place, event).
    """

    def __init__(self, hub: EventHub, subscription: Subscription) -> None:
        self.subscription = subscription
        self.start: RingPosition = place_of(subscription.token)
        self.heard: list[tuple[RingPosition, OrderEvent]] = []
        self._hub = hub

    async def take(self, at_most: int) -> bool:
        """Hear a little; whether there was anything."""
        with trio.move_on_after(0.5):
            before = self.subscription.token
            entries = await self.subscription.take(at_most)
            assert 0 < len(entries) <= at_most
            assert before < entries[0].token
            assert self.subscription.token >= entries[-1].token
            self.heard += [(entry.place, entry.event) for entry in entries]
            return True
        return False

    async def come_back(self, *, with_beat: bool) -> None:
        """Leave, and go on at the last token: of an event, or of a beat."""
        last = token_of(*self.heard[-1][0]) if self.heard else token_of(*self.start)
        after = self.subscription.token if with_beat else last
        self.subscription.leave()
        self.subscription = await self._hub.subscribe(self.subscription.wanted, after)


def an_order_like(number: int, kind: int) -> Any:
    """Of Alice or Bob, on chain 1 or 10, brought by acme or anon; or an OTC order, for Bob, Carol or any."""
    owner, chain_id = (ALICE, BOB)[kind & 1], (1, 10)[kind >> 1 & 1]
    if kind >> 3:
        taker, meta = (BOB, NOBODY, CAROL)[number % 3], (NOBODY, CAROL)[kind >> 2 & 1]
        return an_otc_order(number, maker=owner, chain_id=chain_id, taker=taker, taker_from_meta=meta)
    return a_delta_order(number, owner=owner, chain_id=chain_id, partner=("acme", "anon")[kind >> 2])


async def write(store: Store, numbers: Iterator[int], many: int, kind: int) -> None:
    """New orders, one after the other in the log, of this kind and the next ones."""
    orders: list[Any] = [an_order_like(next(numbers), kind + at & 15) for at in range(many)]
    await all_at_once(store, *map(submission, orders))


def is_wanted(wanted: EventFilter, event: OrderEvent) -> bool:
    """Whether a filter matches an event, judged by the event's row."""
    body = msgspec.json.decode(event.body)
    takers = [body[name] for name in ("taker", "takerFromMeta") if name in body]
    return (
        wanted.surface in (None, event.surface)
        and wanted.owner in (None, event.owner)
        and wanted.partner in (None, event.partner)
        and event.chain_id in (wanted.chain_ids or [event.chain_id])
        and (not wanted.orders or order_id(event.order_hash) in wanted.orders)
        and (wanted.taker is None or to_checksum(wanted.taker) in takers)
    )


async def log_of(store: Store) -> list[tuple[RingPosition, OrderEvent]]:
    rows = await rows_of(store, events_after((0, 0), 10_000))
    return [((row[0], row[1]), row_of(ORDER_EVENT, row[2:])) for row in rows]


async def play(store: Store, steps: list[tuple[str, int, int]]) -> None:
    hub = EventHub(store, ring_max=RING)
    numbers = count()
    await write(store, numbers, RING, 0)
    async with trio.open_nursery() as nursery:
        await nursery.start(hub.run)
        listeners = [Listener(hub, await hub.subscribe(wanted, START)) for wanted in FILTERS[::2]]
        for what, which, many in steps:
            if what == "write":
                await write(store, numbers, which, many)
            elif what == "listen":
                log = await log_of(store)
                after = None if many < 0 else token_of(*log[many % len(log)][0]) if log else START
                listeners.append(Listener(hub, await hub.subscribe(FILTERS[which], after)))
            elif what == "rest":
                await trio.sleep(2)
            elif listeners:
                listener = listeners[which % len(listeners)]
                if what == "take":
                    await listener.take(many)
                else:
                    await listener.come_back(with_beat=bool(many))
        for kind in range(0, 16, 3):  # no listener is behind at the first kind
            for listener in listeners:
                while await listener.take(2):
                    pass
            await write(store, numbers, 2, kind)
        log = await log_of(store)
        for listener in listeners:
            while await listener.take(5):
                pass
            wanted = listener.subscription.wanted
            assert listener.heard == [
                (place, event) for place, event in log if place > listener.start and is_wanted(wanted, event)
            ]
            assert not log or place_of(listener.subscription.token) == log[-1][0]
            listener.subscription.leave()
        assert hub.statistics().subscriptions == 0
        assert hub.statistics().events == len(log) - RING
        nursery.cancel_scope.cancel()


@hypothesis.given(steps=_STEPS)
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_everybody_hears_the_log(monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, int, int]]) -> None:
    monkeypatch.setattr(subscription_module, "FOLLOW_EVENTS_MAX", PAGE)
    monkeypatch.setattr(subscription_module, "FOLLOW_REPLAY_EVENTS_MAX", PAGE)
    monkeypatch.setattr(hub_module, "_NOTED_AT_ONCE", 1)
    monkeypatch.setattr(hub_module, "perf_counter", lambda: 0.0)  # the clock that jumps is not the machine's

    async def run(folder: Path) -> None:
        async with Engine("sqlite:cambist.sqlite3", folder, in_process=True).open() as store:
            await play(store, steps)

    with tempfile.TemporaryDirectory() as folder:
        trio.run(partial(run, Path(folder)), clock=trio.testing.MockClock(autojump_threshold=0))
