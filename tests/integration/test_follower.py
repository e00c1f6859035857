"""The follower: every event once and in order, from any place, whoever writes and however many."""

import os
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import InvalidInput, StoreUnavailable
from cambist.config.timeouts import FOLLOW_LOOK_S
from cambist.engine.store.follower import START, EventFollower, latest, place_of, token_of
from cambist.engine.store.queries import Query, events_after, last_event
from cambist.engine.store.rows import OrderEvent
from cambist.engine.store.store import Store
from cambist.engine.store.tables import ORDER_EVENT
from support.examples import examples
from support.patience import PATIENCE_S
from support.store.stores import (
    ALICE,
    BOB,
    Engine,
    a_delta_order,
    all_at_once,
    events_of,
    kept,
    moved,
    submission,
)

_D = OrderStatus


async def take(follower: EventFollower, count: int) -> list[tuple[str, OrderEvent]]:
    """The next events, as many as that."""
    with trio.fail_after(PATIENCE_S):
        return [await anext(follower) for _ in range(count)]


# --- Tokens ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [(0, 0), (0, 1), (7, 2**40), (2**63 - 1, 2**63 - 1)])
def test_a_token_stands_for_a_place(place: tuple[int, int]) -> None:
    assert place_of(token_of(*place)) == place


@pytest.mark.parametrize(
    "token",
    [
        "",
        "0" * 31,
        "0" * 33,
        "g" * 32,
        "A" * 32,
        "f" * 32,
        "0" * 16 + "8" + "0" * 15,
        "٠" * 32,
        "0" * 32 + "\n",
    ],
)
def test_what_is_no_token_is_refused_by_name(token: str) -> None:
    with pytest.raises(InvalidInput, match="token of an event") as refused:
        place_of(token)
    assert refused.value.field == "after"


async def test_a_follower_refuses_what_is_no_token(store: Store) -> None:
    with pytest.raises(InvalidInput, match="after"):
        EventFollower(store, "yesterday")


# --- On every engine ------------------------------------------------------------------------------------


async def test_all_events_come_in_order_and_each_token_leads_on(store: Store) -> None:
    for number in range(5):
        order = await kept(store, a_delta_order(number))
        await moved(store, order, status=_D.ACTIVE)
    got = await take(EventFollower(store, START, page_max=3), 10)
    assert [event for _, event in got] == await events_of(store)
    tokens = [token for token, _ in got]
    assert tokens == sorted(set(tokens))
    for number in range(9):
        assert await take(EventFollower(store, tokens[number], page_max=2), 9 - number) == got[number + 1 :]


async def test_a_page_is_all_that_comes_without_waiting(store: Store) -> None:
    for number in range(5):
        await kept(store, a_delta_order(number))
    follower = EventFollower(store, START, page_max=3)
    (first,) = await take(follower, 1)
    pages = [await follower.page() for _ in range(2)]
    assert list(map(len, pages)) == [2, 2]
    assert [first, *pages[0], *pages[1]] == await take(EventFollower(store, START), 5)


async def test_from_now_only_what_is_new_comes(store: Store) -> None:
    assert await latest(store) == START
    await kept(store, a_delta_order(1))
    follower = EventFollower(store, await latest(store))
    await kept(store, a_delta_order(2))
    ((token, event),) = await take(follower, 1)
    assert event.order_hash == a_delta_order(2).order_hash
    assert await latest(store) == token


async def test_an_owners_events_are_his_alone(store: Store) -> None:
    for number in range(10):
        await kept(store, a_delta_order(number, owner=(ALICE, BOB)[number % 2]))
    got = await take(EventFollower(store, START, owner=BOB, page_max=2), 5)
    assert {event.owner for _, event in got} == {BOB}
    assert [event.order_hash for _, event in got] == [a_delta_order(n).order_hash for n in range(1, 10, 2)]


async def test_several_followers_hear_what_is_written_while_they_wait(store: Store) -> None:
    heard: list[list[Any]] = []

    async def follow() -> None:
        heard.append([event for _, event in await take(EventFollower(store, START), 20)])

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(follow)
        for number in range(20):
            await kept(store, a_delta_order(number))
    assert heard == [await events_of(store)] * 3


async def test_who_leaves_in_the_middle_goes_on_where_he_was(store: Store) -> None:
    follower = EventFollower(store, START)
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(follower)
    await kept(store, a_delta_order(1))
    ((token, event),) = await take(follower, 1)
    assert event.order_hash == a_delta_order(1).order_hash
    assert follower.statistics().token == token
    assert follower.statistics().events == 1


# --- Waiting --------------------------------------------------------------------------------------------


class Unread(Store):
    """A store that cannot be read at times."""

    is_away = False

    async def read(self, *queries: Query) -> list[list[tuple[Any, ...]]]:
        """As the switch says."""
        if self.is_away:
            raise StoreUnavailable("away")
        return await super().read(*queries)


async def test_what_others_wrote_is_found_by_a_slow_look(tmp_path: Path, autojump_clock: MockClock) -> None:
    engine = Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)
    async with engine.open() as store, trio.open_nursery() as nursery:
        follower = EventFollower(store, START)
        got = list[Any]()

        async def follow() -> None:
            got.append(await anext(follower))

        nursery.start_soon(follow)
        await trio.sleep(10 * FOLLOW_LOOK_S)
        assert not got
        assert 10 <= follower.statistics().reads <= 12
        silent: Any = store
        silent.announce = lambda: None
        await kept(store, a_delta_order(1))
        assert not got
        await trio.sleep(1.5 * FOLLOW_LOOK_S)
        assert len(got) == 1


async def test_a_store_that_is_away_is_waited_for(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True).open() as store:
        store.__class__ = Unread
        assert isinstance(store, Unread)
        await kept(store, a_delta_order(1))
        store.is_away = True
        follower = EventFollower(store, START)
        with trio.move_on_after(5.5 * FOLLOW_LOOK_S) as waiting:
            await anext(follower)
        assert waiting.cancelled_caught
        assert follower.statistics().away == 6
        store.is_away = False
        assert len(await take(follower, 1)) == 1


# --- Several writers ------------------------------------------------------------------------------------


async def test_with_several_store_processes_nothing_is_missed_or_repeated(
    postgres_url: str, tmp_path: Path
) -> None:
    writers, bursts = 3, 12
    chance = random.Random(4)
    sizes = [[chance.randrange(1, 30) for _ in range(bursts)] for _ in range(writers)]
    engine = Engine(postgres_url, tmp_path, in_process=False)
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(engine.open(batch_max=8)) for _ in range(writers)]
        reader = await stack.enter_async_context(engine.open())
        followers = [EventFollower(reader, START, page_max=7), EventFollower(stores[0], START)]
        got: list[list[tuple[str, OrderEvent]]] = [[], []]

        async def write(writer: int) -> None:
            number = writer * 100_000
            for size in sizes[writer]:
                orders = [a_delta_order(number + n) for n in range(size)]
                number += size
                await all_at_once(stores[writer], *map(submission, orders))

        async def follow(which: int) -> None:
            got[which] = await take(followers[which], sum(map(sum, sizes)))

        async with trio.open_nursery() as nursery:
            for writer in range(writers):
                nursery.start_soon(write, writer)
            for which in range(2):
                nursery.start_soon(follow, which)
        assert got[0] == got[1]
        assert [event for _, event in got[0]] == await events_of(reader)
        hashes = [event.order_hash for _, event in got[0]]
        assert sorted(hashes) == sorted(
            a_delta_order(writer * 100_000 + n).order_hash
            for writer in range(writers)
            for n in range(sum(sizes[writer]))
        )


ACTIONS = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from(["write", "write", "commit", "commit", "undo", "read", "read"])
    ),
    min_size=5,
    max_size=40,
)


@given(ACTIONS)
@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_however_transactions_overlap_a_reader_misses_and_repeats_nothing(
    postgres_url: str, actions: list[tuple[int, str]]
) -> None:
    import psycopg

    from cambist.engine.store.postgres.postgres import PostgresBackend

    backend = PostgresBackend(postgres_url, lambda: 0)
    writers = [psycopg.connect(postgres_url) for _ in range(4)]
    marks = ", ".join(["%s"] * len(ORDER_EVENT.columns))
    insert = f"INSERT INTO order_event ({', '.join(ORDER_EVENT.columns)}) VALUES ({marks})".encode()
    open_now: list[list[bytes]] = [[] for _ in writers]
    committed, seen = set[bytes](), list[tuple[int, int, bytes]]()
    try:
        (first,) = backend.read([last_event()])
        place = first[0] if first else (0, 0)

        def read(limit: int) -> int:
            nonlocal place
            (rows,) = backend.read([events_after(place, limit)])
            seen.extend((row[0], row[1], bytes(row[3])) for row in rows)
            place = (rows[-1][0], rows[-1][1]) if rows else place
            return len(rows)

        for number, what in actions:
            writer = writers[number]
            if what == "write":
                event_hash = os.urandom(32)
                writer.execute(insert, ("delta", event_hash, 0, 1, ALICE, 1, "PENDING", 0, b"", ""))
                open_now[number].append(event_hash)
            elif what == "read":
                read(number + 1)
            else:
                if what == "commit":
                    writer.commit()
                    committed.update(open_now[number])
                else:
                    writer.rollback()
                open_now[number] = []
        for writer, hashes in zip(writers, open_now, strict=True):
            writer.commit()
            committed.update(hashes)
        while read(3):
            pass
    finally:
        for writer in writers:
            writer.close()
        backend.close()
    assert [place[:2] for place in seen] == sorted({place[:2] for place in seen})
    assert {event_hash for *_, event_hash in seen} == committed
    assert len(seen) == len(committed)
