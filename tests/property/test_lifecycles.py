"""Random lives of orders: the tables hold, and the store does what a dictionary would."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OrderStatus, OtcState
from cambist.config.errors import TransitionError
from cambist.engine.lifecycle import Lifecycle
from cambist.engine.store.queries import Query, events_after
from cambist.engine.store.rows import ChainCursor, DeltaOrderRow, Effect, OtcOrderRow, amount32
from cambist.engine.store.sqlite.sqlite import SqliteBackend
from cambist.engine.store.tables import (
    CHAIN_CURSOR,
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_ORDER,
    EFFECT,
    HOLDS_NONCE,
    ORDER_EVENT,
    OTC_DOCUMENT,
    OTC_ORDER,
    TABLES,
    Table,
)
from cambist.engine.store.units import (
    Cas,
    Change,
    Conflict,
    Done,
    Drop,
    Duplicate,
    Fence,
    Fenced,
    New,
    Refused,
    Unit,
    UnitOutcome,
    drop,
    new,
    put,
    row_of,
)
from cambist.engine.trade.orders.lifecycles import DELTA_LIFECYCLE, OTC_LIFECYCLE
from cambist.engine.trade.orders.order_units import Intent, finished
from support.store.stores import (
    NOW_MS,
    a_block,
    a_cursor,
    a_delta_order,
    a_fill,
    a_step,
    an_otc_order,
    submission,
)

# --- The tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lifecycle", [DELTA_LIFECYCLE, OTC_LIFECYCLE], ids=lambda table: table.name)
@given(data=st.data())
def test_a_random_life_never_leaves_its_end_unless_the_chain_takes_it_back(
    lifecycle: Lifecycle[Any, Any], data: st.DataObject
) -> None:
    state = data.draw(st.sampled_from(sorted(lifecycle.initial)))
    lifecycle.check_new(state)
    is_final = False
    for wanted, final in data.draw(
        st.lists(st.tuples(st.sampled_from(sorted(lifecycle.states())), st.booleans()), max_size=40)
    ):
        ended, undoes = state in lifecycle.terminal(), (state, wanted) in lifecycle.undone
        try:
            lifecycle.check(state, wanted, is_final=is_final)
        except TransitionError:
            assert wanted is not state
            continue
        if wanted is not state:
            assert not (ended and is_final)
            assert not ended or undoes
            assert not undoes or not is_final
        state = wanted
        is_final = state in lifecycle.terminal() and (final or is_final)


# --- The store ------------------------------------------------------------------------------------------

_KEPT = (DELTA_ORDER, DELTA_DOCUMENT, OTC_ORDER, OTC_DOCUMENT, DELTA_FILL, EFFECT, CHAIN_CURSOR)
_NONCE_FREE = {"CANCELLED", "EXPIRED", "FAILED"}


class Model:
    """Contents of a store as dictionaries; a unit changes copies, which replace them if it succeeds."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], Any]] = {table.name: {} for table in _KEPT}
        self.events: list[Any] = []
        self.epochs = dict.fromkeys(range(256), 0)

    def apply(self, unit: Unit) -> UnitOutcome:
        """Apply a unit and return its outcome."""
        if unit.fence and self.epochs[unit.fence.shard] != unit.fence.epoch:
            return Fenced(unit.fence.shard)
        rows, events = {name: dict(kept) for name, kept in self.rows.items()}, list(self.events)
        for change in unit.changes:
            outcome = self._change(change, rows, events)
            if outcome is not None:
                return outcome
        self.rows, self.events = rows, events
        return Done()

    def _change(self, change: Change, rows: Any, events: list[Any]) -> UnitOutcome | None:
        table = TABLES[change.table]
        if table is ORDER_EVENT:
            events.append(change.row)  # type: ignore[union-attr]
            return None
        kept = rows[table.name]
        if isinstance(change, Cas):
            row = kept.get(change.key)
            if row is None or row.version != change.version:
                return Conflict(table.name, row)
            changed = dict(zip(table.mutable, change.values, strict=True))
            kept[change.key] = replace(row, version=row.version + 1, **changed)
            return self._refused(table, kept, change.key)
        if isinstance(change, Drop):
            kept.pop(change.key, None)
            return None
        key = self._columns(change.row, table.key)
        if isinstance(change, New):
            for number, unique in enumerate(table.unique):
                for row in kept.values():
                    held = not unique.where or row.status not in _NONCE_FREE
                    if held and self._columns(row, unique.columns) == self._columns(
                        change.row, unique.columns
                    ):
                        return Duplicate(table.name, number, row)
        elif key in kept:
            return None if table.repeatable else Refused("")
        kept[key] = change.row
        return None

    def _refused(self, table: Table, kept: Any, key: tuple[Any, ...]) -> UnitOutcome | None:
        """A nonce that was signed again meanwhile is not this order's any more."""
        row = kept[key]
        if table is not DELTA_ORDER or row.status in _NONCE_FREE:
            return None
        others = [other for other in kept.values() if other is not row and other.status not in _NONCE_FREE]
        nonce = (row.chain_id, row.owner, row.nonce)
        return Refused("") if nonce in [(o.chain_id, o.owner, o.nonce) for o in others] else None

    @staticmethod
    def _columns(row: Any, columns: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(getattr(row, name) for name in columns)


def shape(outcome: UnitOutcome) -> tuple[Any, ...]:
    """An outcome, to compare: rows as structs, the words of a refusal left out."""
    if isinstance(outcome, Duplicate | Conflict):
        row = None if outcome.row is None else row_of(TABLES[outcome.table], outcome.row)
        unique = outcome.unique if isinstance(outcome, Duplicate) else None
        return type(outcome), outcome.table, unique, row
    return (type(outcome), outcome.shard) if isinstance(outcome, Fenced) else (type(outcome),)


ORDERS = st.integers(0, 11).flatmap(
    lambda number: st.sampled_from(
        [
            a_delta_order(number, nonce=amount32(number % 8)),
            a_delta_order(number, nonce=amount32(number % 8), status=OrderStatus.AWAITING_SIGNATURE),
            an_otc_order(number),
            an_otc_order(number, status=OtcState.DRAFT),
        ]
    )
)
CHOICE = st.integers(0, 10**6)


class StoreMachine(RuleBasedStateMachine):
    """Units are made of what was ever seen, stale versions included, and written in batches of any size."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.backend = SqliteBackend(Path(self.folder.name) / "db", lambda: NOW_MS)
        self.model = Model()
        self.batch = 0
        self.waiting: list[Unit] = []
        self.last: tuple[list[Unit], list[UnitOutcome]] = ([], [])

    def teardown(self) -> None:
        """Write waiting units and compare the store with the model."""
        if not hasattr(self, "model"):
            return
        try:
            self.flush()
            self.everything_is_there()
        finally:
            self.backend.close()
            self.folder.cleanup()

    def picked(self, kind: type[Any], choice: int) -> Any:
        """A row of a table, by chance as it was written or one version old."""
        rows = [row for kept in self.model.rows.values() for row in kept.values() if isinstance(row, kind)]
        row = rows[choice % len(rows)] if rows else None
        if row is not None and choice % 4 == 0 and row.version > 1:
            row = replace(row, version=row.version - 1)
        return row

    def step_of(self, choice: int, to: int, final: bool, **more: Any) -> Unit | None:
        """A step of some order to some state; None where its life does not have it."""
        order = self.picked(OtcOrderRow if choice % 3 == 0 else DeltaOrderRow, choice)
        if order is None:
            return None
        states = sorted(OrderStatus if isinstance(order, DeltaOrderRow) else OtcState)
        if "fill" in more and isinstance(order, DeltaOrderRow):
            more["more"] = [*more.get("more", ()), more["fill"](order)]
        more.pop("fill", None)
        try:
            return a_step(order, status=states[to % len(states)], is_final=final, **more)
        except TransitionError:
            return None

    @rule(order=ORDERS, effect=st.booleans())
    def submit(self, order: Any, effect: bool) -> None:
        self.waiting.append(submission(order, *[Intent("auction")] * effect))

    @rule(choice=CHOICE, to=CHOICE, final=st.booleans(), effect=st.booleans(), log=st.integers(-1, 2))
    def advance(self, choice: int, to: int, final: bool, effect: bool, log: int) -> None:
        def fill(order: DeltaOrderRow) -> Change:
            row = a_fill(order, log=abs(log))
            return drop(DELTA_FILL, row) if log < 0 else put(DELTA_FILL, row)

        unit = self.step_of(choice, to, final, effects=[Intent("tell")] * effect, fill=fill)
        self.waiting += [unit] if unit else []

    @rule(choice=CHOICE, to=CHOICE, shift=st.sampled_from([0, 0, 1]))
    def advance_fenced(self, choice: int, to: int, shift: int) -> None:
        unit = self.step_of(choice, to, final=False)
        if unit is not None:
            decides = unit.changes[0]
            assert isinstance(decides, Cas)
            shard = decides.key[0][0]
            self.waiting.append(Unit(unit.changes, Fence(shard, self.model.epochs[shard] + shift)))

    @rule(choice=CHOICE, done=st.booleans())
    def do_effect(self, choice: int, done: bool) -> None:
        effect = self.picked(Effect, choice)
        if effect is not None:
            self.waiting.append(Unit((finished(effect, NOW_MS, failed=not done),)))

    @rule(steps=st.lists(st.tuples(CHOICE, CHOICE), max_size=3))
    def read_block(self, steps: list[tuple[int, int]]) -> None:
        cursor = self.picked(ChainCursor, len(steps) + 1)
        if cursor is None:
            self.waiting.append(Unit((new(CHAIN_CURSOR, a_cursor()),)))
        else:
            units = [self.step_of(choice, to, final=False) for choice, to in steps]
            self.waiting.append(a_block(cursor, *(unit for unit in units if unit)))

    @rule(order=ORDERS)
    def poison(self, order: Any) -> None:
        self.waiting.append(submission(order, Intent("twice"), Intent("twice")))

    @rule()
    def flush(self) -> None:
        self.batch += 1
        outcomes = self.backend.apply(bytes(16), self.batch, self.waiting)
        expected = [self.model.apply(unit) for unit in self.waiting]
        assert list(map(shape, outcomes)) == list(map(shape, expected))
        self.last, self.waiting = (self.waiting, outcomes), []

    @precondition(lambda self: self.batch)
    @rule()
    def send_again(self) -> None:
        units, outcomes = self.last
        again = self.backend.apply(bytes(16), self.batch, units)
        assert list(map(shape, again)) == list(map(shape, outcomes))

    @rule(count=st.integers(1, 256), elapsed=st.sampled_from([0, 20_000]))
    def lease(self, count: int, elapsed: int) -> None:
        self.flush()
        holder = f"holder {count % 2}"
        self.now_ms = getattr(self, "now_ms", NOW_MS) + elapsed
        for held in self.backend.lease(holder, count, self.now_ms, 10_000):
            assert held.epoch >= self.model.epochs[held.shard]
            self.model.epochs[held.shard] = held.epoch

    @rule()
    def everything_is_there(self) -> None:
        for table in _KEPT:
            (rows,) = self.backend.read([Query(f"SELECT {', '.join(table.columns)} FROM {table.name}", ())])
            stored = {row_of(table, values) for values in rows}
            assert stored == set(self.model.rows[table.name].values()), table.name
        (rows,) = self.backend.read([events_after((0, 0), 100_000)])
        assert [row_of(ORDER_EVENT, row[2:]) for row in rows] == self.model.events


def test_the_model_frees_the_nonces_that_the_tables_free() -> None:
    assert all(f"'{status}'" in HOLDS_NONCE for status in _NONCE_FREE)
    assert HOLDS_NONCE.count("'") == 2 * len(_NONCE_FREE)


TestStoreAgainstAModel = StoreMachine.TestCase
TestStoreAgainstAModel.settings = settings(stateful_step_count=40)
