"""Both back ends, given the same batches, say the same and keep the same: SQLite writes unit after unit."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest
from hypothesis import strategies as st

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.engine.store.postgres.postgres import PostgresBackend
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import OrderDocument, OrderEvent, amount32
from cambist.engine.store.sqlite.sqlite import SqliteBackend
from cambist.engine.store.tables import (
    CHAIN_CURSOR,
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_ORDER,
    EFFECT,
    ORDER_EVENT,
)
from cambist.engine.store.units import Cas, Change, Drop, Fence, New, Put, Refused, Unit, UnitOutcome
from cambist.engine.trade.orders.order_units import effect_key
from support.store.store_orders import ZERO, a_cursor, a_fill, an_effect, an_order

_FEW = st.integers(0, 2)
_STATUSES = st.sampled_from([OrderStatus.PENDING, OrderStatus.ACTIVE, OrderStatus.CANCELLED])
_HASHES = [bytes([number]) * 32 for number in range(4)]
_COMPARED = (DELTA_DOCUMENT, DELTA_ORDER, DELTA_FILL, ORDER_EVENT, EFFECT, CHAIN_CURSOR)

_EMPTY = [f"DELETE FROM {name}" for name in (*(table.name for table in _COMPARED), "writer")] + [
    "UPDATE shard SET epoch = 0, holder = '', until_ms = 0"
]


@st.composite
def _orders(draw: st.DrawFn) -> Any:
    """Few hashes and few nonces, so that they meet."""
    return an_order(
        draw(st.sampled_from(_HASHES)), owner=bytes(20), nonce=amount32(draw(_FEW)), status=draw(_STATUSES)
    )


@st.composite
def _rewrites(draw: st.DrawFn) -> Cas:
    values = (str(draw(_STATUSES)), 5, ZERO, ZERO, False)
    return Cas(DELTA_ORDER.name, (draw(st.sampled_from(_HASHES)),), draw(st.integers(1, 3)), values)


def _event(order_hash: bytes, text: str = "x") -> Put:
    return Put(ORDER_EVENT.name, OrderEvent("delta", order_hash, 0, 1, bytes(20), 1, text, 1, b""))


def _effect_name(number: int) -> str:
    return effect_key(_HASHES[number], 1, "test")


_NEWS = st.builds(lambda order: New(DELTA_ORDER.name, order), _orders())
_DECIDING = st.one_of(
    _NEWS,
    _NEWS,
    _rewrites(),
    _rewrites(),
    st.builds(
        lambda number, version: Cas(EFFECT.name, (_effect_name(number),), version, ("DONE", 1, 2, 3)),
        _FEW,
        st.integers(1, 2),
    ),
    st.builds(lambda version: Cas(CHAIN_CURSOR.name, (1,), version, (9, bytes(32), b"", 1)), _FEW),
    st.just(New(CHAIN_CURSOR.name, a_cursor())),
)
_BELONGING = st.one_of(
    st.builds(lambda number: Put(EFFECT.name, an_effect(_effect_name(number))), _FEW),
    st.builds(lambda number: Put(DELTA_FILL.name, a_fill(an_order(_HASHES[number]), number)), _FEW),
    st.builds(lambda number: Drop(DELTA_FILL.name, (1, bytes(32), bytes(32), number)), _FEW),
    st.builds(lambda number: Drop(EFFECT.name, (_effect_name(number),)), _FEW),
    st.builds(_event, st.sampled_from(_HASHES)),
    st.builds(_event, st.sampled_from(_HASHES)),
)
_POISON = st.sampled_from(
    [
        Put(ORDER_EVENT.name, OrderEvent("delta", None, 0, 1, bytes(20), 1, "", 1, b"")),  # type: ignore[arg-type]
        Put(EFFECT.name, an_effect("\ud800")),
        Put("no_table", ()),
    ]
)
_FENCES = st.one_of(st.none(), st.none(), st.builds(Fence, st.just(0), st.integers(1, 2)))


@st.composite
def _units(draw: st.DrawFn) -> Unit:
    changes: list[Change] = [draw(_DECIDING)] if draw(st.integers(0, 4)) else []
    changes += [
        Put(DELTA_DOCUMENT.name, OrderDocument(change.row.order_hash, b"signed"))
        for change in changes
        if isinstance(change, New) and change.table == DELTA_ORDER.name
    ]
    changes += draw(st.lists(_BELONGING, max_size=2))
    if not draw(st.integers(0, 5)):
        changes.append(draw(_DECIDING))
    if not draw(st.integers(0, 9)):
        changes.append(draw(_POISON))  # last: of what decides and what is poison, either may be seen first
    return Unit(tuple(changes), draw(_FENCES))


_PATIENT = [hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow]
_BATCHES = st.lists(st.lists(_units(), min_size=1, max_size=8), min_size=1, max_size=3)


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[PostgresBackend]:
    with closing(PostgresBackend(postgres_url, lambda: 1)) as backend:
        yield backend


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteBackend]:
    with closing(SqliteBackend(tmp_path / "store.sqlite3", lambda: 1)) as backend:
        yield backend


@hypothesis.given(batches=_BATCHES)
@hypothesis.settings(suppress_health_check=_PATIENT)
def test_the_same_comes_of_the_same_batches(
    sqlite: SqliteBackend,
    postgres: PostgresBackend,
    postgres_url: str,
    tmp_path: Path,
    batches: list[list[Unit]],
) -> None:
    with psycopg.connect(postgres_url) as connection:
        for statement in _EMPTY:
            connection.execute(statement.encode())
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as file, file:
        for statement in _EMPTY:
            file.execute(statement)
    sqlite.lease("us", 1, 0, 1_000)
    postgres.lease("us", 1, 0, 1_000)
    for number, units in enumerate(batches, 1):
        expected = sqlite.apply(b"w" * 16, number, units)
        got = postgres.apply(b"w" * 16, number, units)
        assert _plain(got) == _plain(expected)
    assert _kept(postgres) == _kept(sqlite)


def _plain(outcomes: list[UnitOutcome]) -> list[Any]:
    """Outcomes without the texts of Refused, which differ between databases."""
    return [Refused("") if isinstance(outcome, Refused) else outcome for outcome in outcomes]


def _kept(backend: PostgresBackend | SqliteBackend) -> list[list[tuple[Any, ...]]]:
    rows = backend.read(
        [
            Query(f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {_order(table.name)}", ())
            for table in _COMPARED
        ]
    )
    return [[tuple(row) for row in of_table] for of_table in rows]


def _order(name: str) -> str:
    return "n" if name == ORDER_EVENT.name else "1, 2, 3, 4" if name == DELTA_FILL.name else "1"
