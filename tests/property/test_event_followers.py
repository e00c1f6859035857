"""A follower misses and repeats no event, whatever the writers beside each other do and in which order."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count

import hypothesis
import psycopg
import pytest
from hypothesis import strategies as st

from cambist.engine.store import queries
from cambist.engine.store.postgres.postgres import PostgresBackend
from cambist.engine.store.tables import ORDER_EVENT
from cambist.engine.store.units import DONE, Unit, UnitOutcome
from support.store.store_orders import an_order, submitted

WRITERS = 3
WAIT_S = 30.0

_WRITER = st.integers(0, WRITERS - 1)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), _WRITER, st.integers(1, 3)),
        st.tuples(st.just("hold"), _WRITER, st.integers(1, 2)),
        st.tuples(st.just("commit"), _WRITER, st.just(0)),
        st.tuples(st.just("roll back"), _WRITER, st.just(0)),
        st.tuples(st.just("look"), st.just(0), st.integers(1, 4)),
    ),
    max_size=25,
)
"""(what, whose, how many): batches, transactions of others that stay open, looks of the follower."""

_PATIENT = [hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow]


class Follower:
    """Reads on from a cursor, a page at a time."""

    def __init__(self, backend: PostgresBackend) -> None:
        self._backend = backend
        (last,) = backend.read([queries.last_event()])
        self._after: tuple[int, int] = (last[0][0], last[0][1]) if last else (0, 0)
        self.seen: list[bytes] = []

    def look(self, limit: int) -> int:
        (rows,) = self._backend.read([queries.events_after(self._after, limit)])
        for row in rows:
            assert row[:2] > self._after
            self._after = (row[0], row[1])
            self.seen.append(row[3])
        return len(rows)


class Writer:
    """Writes batches in a thread of its own, and has a transaction that can stay open beside them."""

    def __init__(self, url: str, number: int, stack: ExitStack) -> None:
        self._backend = stack.enter_context(closing(PostgresBackend(url, lambda: 1)))
        self._open = stack.enter_context(psycopg.connect(url))
        self._thread = stack.enter_context(ThreadPoolExecutor(1))
        self._name = bytes([number]) * 16
        self._batches = count(1)
        self._held: list[bytes] = []

    def batch(self, units: list[Unit]) -> "Future[list[UnitOutcome]]":
        return self._thread.submit(self._backend.apply, self._name, next(self._batches), units)

    def hold(self, order_hashes: list[bytes]) -> None:
        """Write events in a transaction that stays open: the events already have their numbers."""
        columns = ", ".join(ORDER_EVENT.columns)
        for order_hash in order_hashes:
            self._open.execute(
                f"INSERT INTO order_event ({columns}) "
                "VALUES ('delta', %s, 0, 1, %s, 1, '', 1, '', '')".encode(),
                (order_hash, bytes(20)),
            )
        self._held += order_hashes

    def commit(self) -> list[bytes]:
        """The events that are there from now on."""
        self._open.commit()
        held, self._held = self._held, []
        return held

    def roll_back(self) -> None:
        self._open.rollback()
        self._held.clear()


@pytest.fixture
def company(postgres_url: str) -> Iterator[tuple[list[Writer], PostgresBackend]]:
    """(writers, whom the follower reads from)."""
    with ExitStack() as stack:
        reader = stack.enter_context(closing(PostgresBackend(postgres_url, lambda: 1)))
        yield [Writer(postgres_url, number, stack) for number in range(WRITERS)], reader


@hypothesis.given(steps=_STEPS)
@hypothesis.settings(suppress_health_check=_PATIENT)
def test_a_follower_misses_and_repeats_nothing(
    company: tuple[list[Writer], PostgresBackend], steps: list[tuple[str, int, int]]
) -> None:
    writers, reader = company
    follower = Follower(reader)
    batches: list[tuple[Future[list[UnitOutcome]], list[bytes]]] = []
    committed: list[bytes] = []
    for what, number, many in steps:
        writer = writers[number]
        orders = [an_order() for _ in range(many)]
        if what == "batch":
            hashes = [order.order_hash for order in orders]
            batches.append((writer.batch([submitted(order) for order in orders]), hashes))
        elif what == "hold":
            writer.hold([order.order_hash for order in orders])
        elif what == "commit":
            committed += writer.commit()
        elif what == "roll back":
            writer.roll_back()
        else:
            follower.look(many)
    for future, hashes in batches:
        assert future.result(WAIT_S) == [DONE] * len(hashes)
        committed += hashes
    for writer in writers:
        committed += writer.commit()
    while follower.look(3):
        pass
    assert sorted(follower.seen) == sorted(committed)
    for _, hashes in batches:
        places = [follower.seen.index(order_hash) for order_hash in hashes]
        assert places == list(range(places[0], places[0] + len(places))), "a batch stays together"


def test_numbers_alone_would_lose_an_event(company: tuple[list[Writer], PostgresBackend]) -> None:
    """The cursor holds a transaction because a later number can be committed first."""
    (first, second, _), reader = company
    early, late = an_order(), an_order()
    follower = Follower(reader)
    first.hold([early.order_hash])
    assert second.batch([submitted(late)]).result(WAIT_S) == [DONE]
    assert follower.look(10) == 0, "its place is not settled while an earlier one may still come"
    first.commit()
    follower.look(10)
    assert follower.seen == [early.order_hash, late.order_hash]


def test_an_owner_sees_the_events_that_are_the_owners(
    company: tuple[list[Writer], PostgresBackend],
) -> None:
    (writer, *_), reader = company
    order, another = an_order(), an_order()
    writer.batch([submitted(order), submitted(another)]).result(WAIT_S)
    (rows,) = reader.read([queries.events_after((0, 0), 10, owner=order.owner)])
    assert [row[3] for row in rows] == [order.order_hash]
