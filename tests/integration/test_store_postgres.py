"""The PostgreSQL back end on a real server: outcomes, order, fences, lost connections, listings, pruning."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Thread
from typing import Any

import psycopg
import pytest

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import ConfigError, StoreError, StoreUnavailable
from cambist.config.timeouts import STORE_STUCK_S
from cambist.engine.store import queries
from cambist.engine.store.backend import Lease
from cambist.engine.store.postgres.postgres import PostgresBackend
from cambist.engine.store.queries import DeltaFilter, Query
from cambist.engine.store.rows import DeltaOrderRow
from cambist.engine.store.tables import (
    CHAIN_CURSOR,
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_ORDER,
    EFFECT,
    ISSUED_ROUTE,
    ORDER_EVENT,
    OTC_ORDER,
)
from cambist.engine.store.units import (
    DONE,
    Cas,
    Conflict,
    Duplicate,
    Fence,
    Fenced,
    New,
    Put,
    Refused,
    Unit,
    UnitOutcome,
    cas,
    drop,
    put,
    row_of,
    values_of,
)
from cambist.engine.trade.orders.order_units import DELTA, effect_key, finished, step
from support.patience import PATIENCE_S
from support.store.postgres import CutInCommit, PostgresServer
from support.store.store_orders import a_cursor, a_fill, advanced, an_effect, an_order, submitted

WRITER = b"one writer's id."


class Writing:
    """A back end whose batches are counted."""

    def __init__(self, url: str, writer: bytes = WRITER) -> None:
        self.backend = PostgresBackend(url, lambda: 5_000)
        self.writer = writer
        self.number = 0

    def apply(self, *units: Unit) -> list[UnitOutcome]:
        self.number += 1
        return self.backend.apply(self.writer, self.number, units)

    def rows(self, query: Query) -> list[tuple[Any, ...]]:
        (rows,) = self.backend.read([query])
        return rows

    def order(self, order: DeltaOrderRow) -> DeltaOrderRow | None:
        rows = self.rows(queries.by(DELTA_ORDER, order.order_hash))
        return row_of(DELTA_ORDER, rows[0]) if rows else None

    def events(self) -> list[tuple[bytes, int]]:
        """(order, version) of all, as a follower reads them."""
        return [(row[3], row[7]) for row in self.rows(queries.events_after((0, 0), 1_000))]

    def close(self) -> None:
        self.backend.close()


@pytest.fixture
def store(postgres_url: str) -> Iterator[Writing]:
    with closing(Writing(postgres_url)) as writing:
        yield writing


@pytest.fixture
def other(postgres_url: str) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    """Connection of another client."""
    with psycopg.connect(postgres_url) as connection:
        yield connection


# --- Outcomes -----------------------------------------------------------------------------------------


def test_an_order_is_kept_with_what_belongs_to_it(store: Writing) -> None:
    order = an_order()
    assert store.apply(submitted(order, "auction")) == [DONE]
    assert store.order(order) == order
    document, effect = store.backend.read(
        [
            queries.by(DELTA_DOCUMENT, order.order_hash),
            queries.by(EFFECT, effect_key(order.order_hash, 1, "auction")),
        ]
    )
    assert document == [(order.order_hash, b"document")]
    assert len(effect) == 1
    assert store.events() == [(order.order_hash, 1)]


def test_rows_come_back_as_plain_values(store: Writing) -> None:
    store.apply(submitted(an_order()))
    (row,) = store.rows(queries.events_after((0, 0), 1))
    assert {type(value) for value in row} == {int, str, bytes}
    (row,) = store.rows(Query("SELECT is_final, shard, order_hash, status FROM delta_order", ()))
    assert [type(value) for value in row] == [bool, int, bytes, str]


def test_the_same_order_again_returns_the_one_that_is_there(store: Writing) -> None:
    order = an_order()
    store.apply(submitted(order))
    outcome = store.apply(submitted(order))[0]
    assert outcome == Duplicate(DELTA_ORDER.name, 0, values_of(order))
    assert store.events() == [(order.order_hash, 1)]


def test_a_nonce_that_is_held_returns_its_order(store: Writing) -> None:
    first = an_order()
    second = an_order(owner=first.owner, nonce=first.nonce)
    assert store.apply(submitted(first), submitted(second)) == [
        DONE,
        Duplicate(DELTA_ORDER.name, 1, values_of(first)),
    ]


def test_a_step_from_another_version_returns_the_row_as_it_is(store: Writing) -> None:
    order = an_order()
    after, unit = advanced(order, OrderStatus.ACTIVE)
    store.apply(submitted(order), unit)
    _, late = advanced(order, OrderStatus.EXPIRED, "tell")
    assert store.apply(late) == [Conflict(DELTA_ORDER.name, values_of(after))]
    assert store.order(order) == after
    assert store.events() == [(order.order_hash, 1), (order.order_hash, 2)]


def test_a_step_of_an_order_that_is_not_there(store: Writing) -> None:
    _, unit = advanced(an_order(), OrderStatus.ACTIVE)
    assert store.apply(unit) == [Conflict(DELTA_ORDER.name, None)]


def test_a_unit_of_several_decisions_is_made_whole_or_not_at_all(store: Writing) -> None:
    order = an_order()
    store.apply(submitted(order, "settle"), Unit((New(CHAIN_CURSOR.name, a_cursor()),)))
    key = effect_key(order.order_hash, 1, "settle")
    effect = row_of(EFFECT, store.rows(queries.by(EFFECT, key))[0])
    after, unit = advanced(
        order, OrderStatus.COMPLETED, more=(finished(effect, 9), put(DELTA_FILL, a_fill(order)))
    )
    stale = Unit((cas(DELTA_ORDER, order), cas(CHAIN_CURSOR, a_cursor(version=7))))
    moved = Unit((cas(CHAIN_CURSOR, a_cursor(block_number=2)), put(DELTA_FILL, a_fill(order, 1))))
    assert store.apply(stale, moved, unit) == [
        Conflict(CHAIN_CURSOR.name, values_of(a_cursor())),
        DONE,
        DONE,
    ]
    assert store.order(order) == after
    assert row_of(EFFECT, store.rows(queries.by(EFFECT, key))[0]).state == "DONE"
    assert len(store.rows(queries.fills(order.order_hash))) == 2


@pytest.mark.parametrize(
    "poison",
    [
        Unit((put(EFFECT, an_effect("nul \0 in it")),)),
        Unit((put(EFFECT, an_effect("lone surrogate \ud800")),)),
        Unit((Put(EFFECT.name, (None, *values_of(an_effect(""))[1:])),)),
        Unit((Put(EFFECT.name, ("too short",)),)),
        Unit((Put("no_table", ("x",)),)),
        Unit((put(EFFECT, an_effect("there")),)),
        Unit((New(DELTA_ORDER.name, an_order(spent=b"1")),)),
        Unit((New(DELTA_ORDER.name, an_order(owner="text")),)),
        Unit((New(DELTA_ORDER.name, an_order(chain_id=1 << 63)),)),
        Unit((Cas(ORDER_EVENT.name, (1,), 1, ()),)),
        Unit((put(ORDER_EVENT, DELTA.event(an_order(status="\0"))),)),
        Unit((put(EFFECT, an_effect("x" * 100_000)),)),
    ],
    ids=[
        "NUL", "surrogate", "null", "columns", "table", "there", "length", "type", "integer", "log", "event",
        "index",
    ],
)  # fmt: skip
def test_a_statement_that_fails_refuses_its_unit_alone(store: Writing, poison: Unit) -> None:
    before, after = an_order(), an_order()
    store.apply(Unit((put(EFFECT, an_effect("there")),)))
    if "x" * 100 in repr(poison):
        poison = Unit((put(EFFECT, an_effect(an_order().order_hash.hex() * 20_000)),))
    _, advance = advanced(before, OrderStatus.ACTIVE)
    outcomes = store.apply(submitted(before), poison, advance, submitted(after))
    assert isinstance(outcomes[1], Refused)
    assert len(outcomes[1].detail) > 10
    assert outcomes[:1] + outcomes[2:] == [DONE, DONE, DONE]
    assert store.events() == [(before.order_hash, 1), (before.order_hash, 2), (after.order_hash, 1)]


# --- The order of a batch -----------------------------------------------------------------------------


def test_units_of_one_order_in_one_batch_follow_each_other(store: Writing) -> None:
    order, another = an_order(), an_order()
    active, first = advanced(order, OrderStatus.ACTIVE)
    _, second = advanced(active, OrderStatus.SUSPENDED)
    _, late = advanced(active, OrderStatus.EXPIRED)
    outcomes = store.apply(submitted(order), first, submitted(another), second, late, submitted(order))
    assert outcomes[:4] == [DONE] * 4
    assert isinstance(outcomes[4], Conflict)
    assert row_of(DELTA_ORDER, outcomes[4].row).status == OrderStatus.SUSPENDED
    assert isinstance(outcomes[5], Duplicate)
    assert row_of(DELTA_ORDER, outcomes[5].row).version == 3
    order_hash = order.order_hash
    assert store.events() == [(order_hash, 1), (order_hash, 2), (another.order_hash, 1), (order_hash, 3)]


def test_a_nonce_is_free_after_the_cancellation_and_not_before(store: Writing) -> None:
    order = an_order()
    early = an_order(owner=order.owner, nonce=order.nonce)
    late = an_order(owner=order.owner, nonce=order.nonce)
    store.apply(submitted(order))
    _, cancel = advanced(order, OrderStatus.CANCELLED)
    assert store.apply(submitted(early), cancel, submitted(late)) == [
        Duplicate(DELTA_ORDER.name, 1, values_of(order)),
        DONE,
        DONE,
    ]
    assert store.order(late) == late


def test_what_is_dropped_can_be_put_again(store: Writing) -> None:
    order = an_order()
    fill = a_fill(order)
    store.apply(submitted(order), Unit((put(DELTA_FILL, fill),)))
    again = Unit((drop(DELTA_FILL, fill), put(DELTA_FILL, a_fill(order, 1)), put(DELTA_FILL, fill)))
    assert store.apply(Unit((drop(DELTA_FILL, fill),)), again, Unit((put(DELTA_FILL, fill),))) == [DONE] * 3
    assert len(store.rows(queries.fills(order.order_hash))) == 2


def test_a_large_batch_is_one_transaction(store: Writing) -> None:
    orders = [an_order() for _ in range(500)]
    assert store.apply(*map(submitted, orders)) == [DONE] * 500
    rows = store.rows(queries.events_after((0, 0), 1_000))
    assert [row[3] for row in rows] == [order.order_hash for order in orders]
    assert len({row[0] for row in rows}) == 1
    seen = store.rows(Query("SELECT order_hash FROM delta_order ORDER BY seq", ()))
    assert [order_hash for (order_hash,) in seen] == [order.order_hash for order in orders]


# --- Exactly once -------------------------------------------------------------------------------------


def test_a_batch_that_is_sent_again_is_not_applied_again(store: Writing) -> None:
    order = an_order()
    units = [submitted(order), submitted(order)]
    outcomes = store.backend.apply(WRITER, 1, units)
    again = store.backend.apply(WRITER, 1, units)
    assert again[0] == DONE
    assert isinstance(again[1], Duplicate)
    assert row_of(DELTA_ORDER, again[1].row) == order
    assert len(again) == len(outcomes)
    assert store.backend.apply(b"another writer..", 1, [submitted(an_order())]) == [DONE]
    store.backend.apply(WRITER, 2, [])
    with pytest.raises(StoreError, match="batch 1 is older than the last one applied, 2"):
        store.backend.apply(WRITER, 1, units)


@pytest.mark.parametrize("reached", [True, False], ids=["committed", "not committed"])
def test_a_connection_that_is_cut_in_commit_leaves_the_batch_applied_once(
    postgres_url: str, *, reached: bool
) -> None:
    order = an_order()
    with CutInCommit(postgres_url, reached=reached) as cut, closing(Writing(cut.url)) as store:
        cut.arm()
        assert store.apply(submitted(order)) == [DONE]
        assert cut.cuts == 1
        assert store.events() == [(order.order_hash, 1)]


def test_a_connection_that_is_ended_in_a_batch_is_opened_again(
    store: Writing, other: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    order = an_order()
    store.apply(submitted(order))
    after, unit = advanced(order, OrderStatus.ACTIVE)
    with _held(other, order), _in_thread(store, [unit, submitted(an_order())]) as outcomes:
        _until_waiting(other, then="pg_terminate_backend(pid)")
        other.rollback()
    assert outcomes == [DONE, DONE]
    assert store.order(order) == after


def test_idle_connections_that_were_ended_are_opened_again(
    store: Writing, other: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    store.apply(submitted(an_order()))
    store.events()
    other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cambist'")
    assert store.apply(submitted(an_order())) == [DONE]
    assert len(store.events()) == 2


def test_two_writers_that_lock_each_other_out_both_go_on(
    postgres_url: str, store: Writing, other: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    first, second = an_order(), an_order()
    store.apply(submitted(first), submitted(second))
    with _held(other, second):
        _, a = advanced(first, OrderStatus.ACTIVE)
        _, b = advanced(second, OrderStatus.ACTIVE)
        with _in_thread(store, [a, b]) as outcomes:
            _until_waiting(other)
            other.execute("SET deadlock_timeout = '10s'")
            other.execute("UPDATE delta_order SET partner = 'x' WHERE order_hash = %s", (first.order_hash,))
            other.commit()
    assert outcomes == [DONE, DONE]


# --- Fences and leases --------------------------------------------------------------------------------


def test_a_unit_counts_only_while_the_shard_has_its_epoch(store: Writing) -> None:
    order = an_order(bytes(32))
    store.apply(submitted(order))
    assert store.backend.lease("us", 1, 0, 100) == [Lease(0, 1)]
    after, unit = advanced(order, OrderStatus.ACTIVE, fence=Fence(0, 1))
    _, stale = advanced(after, OrderStatus.EXPIRED, fence=Fence(0, 0))
    _, nowhere = advanced(after, OrderStatus.EXPIRED, fence=Fence(999, 0))
    assert store.apply(unit, stale, nowhere) == [DONE, Fenced(0), Fenced(999)]
    assert store.order(order) == after


def test_a_shard_is_not_claimed_while_a_batch_depends_on_it(
    postgres_url: str, store: Writing, other: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    order = an_order(bytes(32))
    store.apply(submitted(order))
    store.backend.lease("us", 1, 0, 100)
    _, unit = advanced(order, OrderStatus.ACTIVE, fence=Fence(0, 1))
    with closing(PostgresBackend(postgres_url, lambda: 0)) as rival:
        with _held(other, order), _in_thread(store, [unit]) as outcomes:
            _until_waiting(other)
            assert [lease.shard for lease in rival.lease("them", 2, 1_000, 100)] == [1, 2]
            other.rollback()
        assert outcomes == [DONE]
        assert rival.lease("them", 3, 1_050, 100) == [Lease(0, 2), Lease(1, 1), Lease(2, 1)]
    _, late = advanced(order, OrderStatus.EXPIRED, fence=Fence(0, 1))
    assert store.apply(late) == [Fenced(0)]


def test_leases_are_renewed_run_out_and_are_given_back(postgres_url: str, store: Writing) -> None:
    ours = store.backend
    with closing(PostgresBackend(postgres_url, lambda: 0)) as theirs:
        assert ours.lease("us", 2, 0, 100) == [Lease(0, 1), Lease(1, 1)]
        assert theirs.lease("them", 1, 50, 100) == [Lease(2, 1)]
        assert ours.lease("us", 2, 90, 100) == [Lease(0, 1), Lease(1, 1)]
        assert theirs.lease("them", 3, 151, 100) == [Lease(2, 1), Lease(3, 1), Lease(4, 1)]
        assert theirs.lease("them", 300, 191, 100)[:2] == [Lease(0, 2), Lease(1, 2)]
        assert ours.lease("us", 2, 192, 100) == []
        theirs.release("them")
        assert ours.lease("us", 1, 193, 100) == [Lease(0, 3)]


def test_a_writer_that_hangs_in_a_transaction_loses_its_connection_and_its_locks(
    postgres_url: str, store: Writing
) -> None:
    """As a process that is stopped in a batch: its shards can be claimed all the same."""
    store.backend.lease("us", 1, 0, 100)
    pipe = store.backend._writer.open()
    bound = b"SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"  # ms
    assert pipe.ask(bound) == [(f"{STORE_STUCK_S * 1_000:.0f}",)]
    pipe.ask(b"BEGIN")
    pipe.ask(b"SELECT number FROM shard FOR SHARE")
    pipe.ask(b"SET idle_in_transaction_session_timeout = '50ms'")
    with closing(PostgresBackend(postgres_url, lambda: 0)) as rival:
        _until(lambda: Lease(0, 2) in rival.lease("them", 256, 1_000, 100))
    _, late = advanced(an_order(bytes(32)), OrderStatus.ACTIVE, fence=Fence(0, 1))
    assert store.apply(late) == [Fenced(0)]


# --- Reading ------------------------------------------------------------------------------------------


def test_a_listing_is_stable_while_orders_come_in(
    store: Writing, other: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    """Also where an order that was numbered before is committed after the first page was read."""
    wanted = DeltaFilter(owner=b"o" * 20)
    early = [an_order(owner=b"o" * 20) for _ in range(3)]
    store.apply(*map(submitted, early))
    columns = ", ".join(DELTA_ORDER.columns)
    late = an_order(owner=b"o" * 20)
    marks = ", ".join(["%s"] * len(DELTA_ORDER.columns))
    other.execute(f"INSERT INTO delta_order ({columns}) VALUES ({marks})".encode(), values_of(late))
    store.apply(submitted(an_order(owner=b"o" * 20)))
    (((as_of,),),) = store.backend.read([queries.as_of_now(DELTA_ORDER)])
    other.commit()
    store.apply(submitted(an_order(owner=b"o" * 20)))
    seen = []
    for offset in range(0, 6, 2):
        page, ((total,),) = store.backend.read(queries.delta_page(wanted, 2, offset, as_of))
        assert total == 4
        seen += [row[0] for row in page]
    assert seen[1:] == [order.order_hash for order in reversed(early)]
    assert late.order_hash not in seen
    ((now,),) = store.rows(queries.delta_page(wanted, 1, 0)[1])
    assert now == 6


@pytest.mark.parametrize("as_of", ["x", "12", "9:3:", "1:2:'); DROP TABLE delta_order --"])
def test_a_text_that_is_not_of_this_store_is_refused(store: Writing, as_of: str) -> None:
    with pytest.raises(ValueError, match="as_of is not of this store"):
        store.backend.read(queries.delta_page(DeltaFilter(), 1, 0, as_of))
    assert store.rows(queries.delta_page(DeltaFilter(), 1, 0)[1]) == [(0,)]


def test_questions_of_one_reading_see_one_state(store: Writing) -> None:
    store.apply(submitted(an_order()))
    events, last, now, orders = store.backend.read(
        [
            queries.events_after((0, 0), 10),
            queries.last_event(),
            queries.as_of_now(OTC_ORDER),
            queries.among(DELTA_ORDER, "chain_id", [1, 2]),
        ]
    )
    assert [row[:2] for row in events] == last
    assert len(orders) == len(events) == 1
    assert isinstance(now[0][0], str)


def test_events_wake_whoever_waits(postgres_url: str, store: Writing) -> None:
    with closing(PostgresBackend(postgres_url, lambda: 0)) as follower:
        assert follower.wait_for_events(0)
        assert not follower.wait_for_events(0)
        store.apply(Unit((put(EFFECT, an_effect("no event")),)))
        assert not follower.wait_for_events(0)
        store.apply(submitted(an_order()))
        assert follower.wait_for_events(PATIENCE_S)


def test_who_waits_looks_again_after_a_lost_connection(
    store: Writing, other: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    assert store.backend.wait_for_events(0)
    other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'")
    with pytest.raises(StoreUnavailable):
        store.backend.wait_for_events(PATIENCE_S)
    assert store.backend.wait_for_events(0)
    assert not store.backend.wait_for_events(0)


# --- Retention ----------------------------------------------------------------------------------------


def test_what_has_ended_long_ago_is_deleted_with_all_that_belongs_to_it(store: Writing) -> None:
    order, kept = an_order(), an_order()
    ended = step(order, 1_500, status=OrderStatus.EXPIRED, is_final=True)
    store.apply(
        submitted(order, "auction"),
        submitted(kept, "auction"),
        DELTA.advanced(order, ended),
        Unit((finished(an_effect(effect_key(order.order_hash, 1, "auction")), 9),)),
        Unit((put(DELTA_FILL, a_fill(order)), put(DELTA_FILL, a_fill(kept, 1)))),
        Unit((Put(ISSUED_ROUTE.name, (bytes(32), 1, 999)),)),
    )
    assert store.backend.prune(1_200, 100) == 3, "two events and a route"
    assert store.backend.prune(1_600, 100) == 5, "the order, its document, fill, effect and last event"
    assert store.backend.prune(1_600, 100) == 0
    assert store.order(order) is None
    assert store.order(kept) == kept
    counts = [
        store.rows(Query(f"SELECT count(*) FROM {table.name}", ()))[0][0]
        for table in (DELTA_ORDER, DELTA_DOCUMENT, DELTA_FILL, EFFECT, ORDER_EVENT, ISSUED_ROUTE)
    ]
    assert counts == [1, 1, 1, 1, 0, 0]


# --- A server that is away ----------------------------------------------------------------------------


def test_a_server_that_is_away_and_comes_back(postgres_server: PostgresServer, postgres_url: str) -> None:
    order = an_order()
    with closing(Writing(postgres_url)) as store:
        store.apply(submitted(order))
        postgres_server.stop("immediate")
        try:
            with pytest.raises(StoreUnavailable, match="the database cannot be reached"):
                store.backend.apply(WRITER, 2, [submitted(an_order())])
            with pytest.raises(StoreUnavailable):
                store.events()
            with pytest.raises(StoreUnavailable):
                store.backend.lease("us", 1, 0, 1)
            with pytest.raises(ConfigError, match=r"store\.url: the database cannot be used: .*refused"):
                PostgresBackend(postgres_url, lambda: 0)
        finally:
            postgres_server.start()
        assert store.backend.apply(WRITER, 2, [submitted(an_order())]) == [DONE]
        assert len(store.events()) == 2


def test_a_default_of_read_only_is_no_ban_but_missing_rights_are_named(
    store: Writing, other: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    name = other.info.dbname
    other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    other.commit()
    store.backend._writer.close()
    order = an_order()
    assert store.apply(submitted(order)) == [DONE], "a default is not a ban"
    store.backend._writer.open().ask(b"SET ROLE pg_read_all_data")
    with pytest.raises(StoreError, match="permission denied"):
        store.apply(submitted(an_order()))


def test_a_lock_that_is_not_to_be_had_is_a_store_that_is_away(
    store: Writing, other: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    other.execute("LOCK TABLE delta_order IN EXCLUSIVE MODE")
    store.backend._writer.open().ask(b"SET lock_timeout = '10ms'")
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        store.apply(submitted(an_order()))
    other.rollback()
    assert store.apply(submitted(an_order())) == [DONE]


# --- Waiting for what another thread does -------------------------------------------------------------


@contextmanager
def _held(other: "psycopg.Connection[tuple[Any, ...]]", order: DeltaOrderRow) -> Iterator[None]:
    """Hold the row of an order in another client's transaction."""
    other.execute("SELECT FROM delta_order WHERE order_hash = %s FOR UPDATE", (order.order_hash,))
    try:
        yield
    finally:
        other.rollback()


@contextmanager
def _in_thread(store: Writing, units: Sequence[Unit]) -> Iterator[list[UnitOutcome]]:
    """Apply a batch meanwhile; the outcomes are there at the end of the block."""
    outcomes: list[UnitOutcome] = []
    thread = Thread(target=lambda: outcomes.extend(store.apply(*units)))
    thread.start()
    try:
        yield outcomes
    finally:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def _until(done: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < ends, "it does not come"


def _until_waiting(other: "psycopg.Connection[tuple[Any, ...]]", then: str = "pid") -> None:
    """Until a back end waits for a lock; then do something to it."""
    sql = (
        f"SELECT {then} FROM pg_stat_activity, pg_stat_clear_snapshot() "
        "WHERE wait_event_type = 'Lock' AND application_name = 'cambist' AND datname = current_database()"
    )
    _until(lambda: other.execute(sql.encode()).fetchone() is not None)
