"""Issued Delta routes: known in memory at once, in the store soon, and only for their lifetime."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing

from cambist.config import limits
from cambist.config.errors import StoreUnavailable
from cambist.config.timeouts import ISSUED_ROUTES_EVERY_S
from cambist.engine.store.queries import Query, by
from cambist.engine.store.store import Store
from cambist.engine.store.tables import ISSUED_ROUTE
from cambist.engine.store.units import DONE, Unit, UnitOutcome
from cambist.engine.trade.quote import issued
from cambist.engine.trade.quote.issued import IssuedRoutes
from support.stretched_bounds import OWN_S, own_bounds

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000
LIFE_S = 600
LIFE_MS = LIFE_S * 1_000
ROUTE, OTHER = b'{"a":1}', b'{"a":2}'


async def test_a_route_is_known_here_at_once_and_elsewhere_once_written(store: Store) -> None:
    here, elsewhere = IssuedRoutes(store, LIFE_S), IssuedRoutes(store, LIFE_S)
    here.add(ROUTE, 1, NOW_MS)
    assert await here.is_issued(ROUTE, NOW_MS)
    assert not await elsewhere.is_issued(ROUTE, NOW_MS)
    await here.flush()
    assert await elsewhere.is_issued(ROUTE, NOW_MS)
    assert not await elsewhere.is_issued(OTHER, NOW_MS)


async def test_it_is_forgotten_ten_to_eleven_minutes_later_here_and_elsewhere(store: Store) -> None:
    here, elsewhere = IssuedRoutes(store, LIFE_S), IssuedRoutes(store, LIFE_S)
    here.add(ROUTE, 1, NOW_MS)
    await here.flush()
    for routes in (here, elsewhere):
        assert await routes.is_issued(ROUTE, NOW_MS + LIFE_MS)
        assert not await routes.is_issued(ROUTE, NOW_MS + LIFE_MS + MINUTE_MS)


async def test_one_that_is_given_out_again_lives_longer_and_is_written_once_a_minute(store: Store) -> None:
    here, elsewhere = IssuedRoutes(store, LIFE_S), IssuedRoutes(store, LIFE_S)
    for _ in range(100):
        here.add(ROUTE, 1, NOW_MS)
    await here.flush()
    assert here.statistics().written == 1
    here.add(ROUTE, 1, NOW_MS + 5 * MINUTE_MS)
    await here.flush()
    assert here.statistics().written == 2
    assert await elsewhere.is_issued(ROUTE, NOW_MS + 14 * MINUTE_MS)
    (rows,) = await store.read(by(ISSUED_ROUTE, hashlib.sha256(ROUTE).digest()))
    assert len(rows) == 1


async def test_what_another_process_gave_out_before_lives_as_long_as_the_later_one(store: Store) -> None:
    here, elsewhere, third = (IssuedRoutes(store, LIFE_S) for _ in range(3))
    elsewhere.add(ROUTE, 1, NOW_MS)
    await elsewhere.flush()
    here.add(OTHER, 1, NOW_MS + 5 * MINUTE_MS)
    here.add(ROUTE, 1, NOW_MS + 5 * MINUTE_MS)
    await here.flush()
    assert here.statistics().written == 2
    for route in (ROUTE, OTHER):
        assert await third.is_issued(route, NOW_MS + 14 * MINUTE_MS)


async def test_what_is_issued_later_forgets_what_has_expired(store: Store) -> None:
    routes = IssuedRoutes(store, LIFE_S)
    for number in range(10):
        routes.add(b"%d" % number, 1, NOW_MS)
    assert routes.statistics().kept == 10
    for number in range(5):
        routes.add(b"later %d" % number, 1, NOW_MS + LIFE_MS + MINUTE_MS)
    assert routes.statistics().kept == 5


async def test_memory_is_bounded_and_the_store_remembers(store: Store) -> None:
    routes = IssuedRoutes(store, LIFE_S, kept_max=3)
    for number in range(5):
        routes.add(b"%d" % number, 1, NOW_MS)
    assert routes.statistics().kept == 3
    assert not await routes.is_issued(b"0", NOW_MS)
    await routes.flush()
    assert await routes.is_issued(b"0", NOW_MS)


async def test_what_has_expired_leaves_the_store_a_batch_at_a_time(store: Store) -> None:
    routes = IssuedRoutes(store, LIFE_S)
    for number in range(limits.VENUE_ISSUED_BATCH_MAX + 2):
        routes.add(b"%d" % number, 1, NOW_MS)
    routes.add(OTHER, 1, NOW_MS + 5 * MINUTE_MS)
    await routes.flush()
    late_ms = NOW_MS + LIFE_MS + 3 * MINUTE_MS
    assert await routes.sweep(NOW_MS + LIFE_MS) == 0
    assert await routes.sweep(late_ms) == limits.VENUE_ISSUED_BATCH_MAX
    assert await routes.sweep(late_ms) == 2
    assert await routes.sweep(late_ms) == 0
    assert routes.statistics().swept == limits.VENUE_ISSUED_BATCH_MAX + 2
    (rows,) = await store.read(by(ISSUED_ROUTE, hashlib.sha256(b"0").digest()))
    assert rows == []
    assert await IssuedRoutes(store, LIFE_S).is_issued(OTHER, late_ms)


class Away:
    """A store that is away until a test brings it back; it counts the units that it receives."""

    is_shareable = False

    def __init__(self) -> None:
        self.is_away = True
        self.units: list[Unit] = []

    async def write(self, unit: Unit) -> UnitOutcome:
        await trio.lowlevel.checkpoint()
        if self.is_away:
            raise StoreUnavailable("it is away")
        self.units.append(unit)
        return DONE

    async def read(self, *queries: Query) -> Sequence[Any]:
        raise StoreUnavailable("it is away")


async def test_while_the_store_is_away_what_is_known_here_is_known(autojump_clock: object) -> None:
    away = Away()
    routes = IssuedRoutes(away, LIFE_S)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(routes.run)
        routes.add(ROUTE, 1, NOW_MS)
        await trio.sleep(10)
        assert routes.statistics().waiting == 1
        assert await routes.is_issued(ROUTE, NOW_MS)
        with pytest.raises(StoreUnavailable):
            await routes.is_issued(OTHER, NOW_MS)
        away.is_away = False
        await trio.sleep(2)
        assert routes.statistics().waiting == 0
        assert len(away.units) == 1
        nursery.cancel_scope.cancel()


async def test_what_comes_in_a_short_while_is_one_write(autojump_clock: object) -> None:
    away = Away()
    away.is_away = False
    routes = IssuedRoutes(away, LIFE_S)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(routes.run)
        for number in range(limits.VENUE_ISSUED_BATCH_MAX + 1):
            routes.add(b"%d" % number, 1, NOW_MS)
        await trio.sleep(2 * ISSUED_ROUTES_EVERY_S)
        nursery.cancel_scope.cancel()
    assert [len(unit.changes) for unit in away.units] == [limits.VENUE_ISSUED_BATCH_MAX, 1]


class Later(Away):
    """A store that other engines may share, in which a route appears after some seconds."""

    def __init__(self, shown_s: float, *, is_shareable: bool) -> None:
        super().__init__()
        self.is_shareable = is_shareable
        self.shown_at = trio.current_time() + shown_s
        self.reads = 0

    async def read(self, *queries: Query) -> Sequence[Any]:
        await trio.lowlevel.checkpoint()
        self.reads += 1
        digest = hashlib.sha256(ROUTE).digest()
        is_shown = trio.current_time() >= self.shown_at
        return [
            [(digest, 1, NOW_MS + 1)] if is_shown and query == by(ISSUED_ROUTE, digest) else []
            for query in queries
        ]


@pytest.mark.parametrize(
    ("is_shareable", "shown_s", "found", "lasting_s", "reads"),
    [
        (True, 0, 1, 0, 1),
        (True, 0.2, 1, 0.35, 4),
        (True, math.inf, None, OWN_S["ISSUED_ROUTES_SHOWN_S"], 5),
        (False, 0.2, None, 0, 1),
    ],
)
async def test_a_build_looks_again_for_a_route_that_another_engine_has_just_issued(
    is_shareable: bool,
    shown_s: float,
    found: int | None,
    lasting_s: float,
    reads: int,
    autojump_clock: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own_bounds(monkeypatch, issued)
    store, began = Later(shown_s, is_shareable=is_shareable), trio.current_time()
    routes = IssuedRoutes(store, LIFE_S)  # type: ignore[arg-type]
    assert await routes.first_issued([OTHER, ROUTE], NOW_MS) == found
    assert trio.current_time() - began == pytest.approx(lasting_s)
    assert store.reads == reads


async def test_what_may_wait_is_bounded() -> None:
    routes = IssuedRoutes(Away(), LIFE_S)  # type: ignore[arg-type]
    for number in range(limits.VENUE_ISSUED_WAITING_MAX + 3):
        routes.add(b"%d" % number, 1, NOW_MS)
    told = routes.statistics()
    assert (told.waiting, told.left_out) == (limits.VENUE_ISSUED_WAITING_MAX, 3)
