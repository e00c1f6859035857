"""Units: the changes of a step, which survive the way to another process."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OrderStatus, OtcState
from cambist.config.errors import StoreError, TransitionError
from cambist.engine.store.queries import IDS_MAX, Query, among, by, render
from cambist.engine.store.rows import Effect, EffectState, amount32, amount_of
from cambist.engine.store.sqlite.sqlite import compare_and_set, delete, insert
from cambist.engine.store.tables import DELTA_FILL, DELTA_ORDER, EFFECT, ORDER_EVENT, TABLES
from cambist.engine.store.units import (
    Cas,
    Conflict,
    Done,
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
    new,
    put,
    row_of,
    values_of,
)
from cambist.engine.trade.orders.order_units import (
    DELTA,
    Intent,
    effect_key,
    finished,
    hashes_of_id,
    order_id,
    step,
)
from support.store.stores import NOW_MS, ONE, a_delta_order, a_fill, a_step, an_otc_order, hash_of, submission

_D = OrderStatus


# --- Orders as units ------------------------------------------------------------------------------------


def test_a_submit_decides_by_its_order_alone() -> None:
    unit = submission(a_delta_order(), Intent("auction"))
    assert [type(change).__name__ for change in unit.changes] == ["New", "Put", "Put", "Put"]
    assert [change.table for change in unit.changes] == [
        "delta_order", "delta_document", "order_event", "effect",
    ]  # fmt: skip
    assert unit.is_decided_first
    assert unit.fence is None


def test_a_step_decides_by_the_version_that_it_was_taken_from() -> None:
    order = a_delta_order()
    unit = a_step(order, status=_D.COMPLETED, spent=amount32(ONE), fence=Fence(order.shard, 4))
    (decides, event) = unit.changes
    assert isinstance(decides, Cas)
    assert (decides.table, decides.key, decides.version) == ("delta_order", (order.order_hash,), 1)
    assert decides.values == ("COMPLETED", order.updated_ms + 10_000, amount32(ONE), amount32(0), False, 0)
    assert isinstance(event, Put)
    assert (event.row.version, event.row.status) == (2, "COMPLETED")
    assert unit.fence == Fence(order.shard, 4)


def test_what_may_conflict_later_is_told_apart() -> None:
    order = a_delta_order()
    effect = Effect(
        "key", order.order_hash, order.shard, "kind", b"", NOW_MS, 1, EffectState.INTENDED, 0, 0, NOW_MS
    )
    assert not a_step(order, status=_D.ACTIVE, more=[finished(effect, NOW_MS)]).is_decided_first
    assert not Unit((put(DELTA_FILL, a_fill(order)), cas(DELTA_ORDER, order))).is_decided_first
    assert Unit((put(DELTA_FILL, a_fill(order)), drop(DELTA_FILL, a_fill(order)))).is_decided_first


@pytest.mark.parametrize("changed", [{"version": 2}, {"shard": 1 ^ hash_of(1)[0]}], ids=["version", "shard"])
def test_a_new_order_that_is_none_is_our_bug(changed: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="version 1 and the shard of its hash"):
        submission(replace(a_delta_order(), **changed))


def test_a_step_that_is_none_is_our_bug() -> None:
    order = a_delta_order()
    with pytest.raises(TransitionError, match="no order begins as ACTIVE"):
        submission(a_delta_order(status=_D.ACTIVE))
    with pytest.raises(TransitionError, match="no step leads from PENDING to REFUNDED"):
        a_step(order, status=_D.REFUNDED)
    with pytest.raises(TransitionError, match="COMPLETED is final"):
        a_step(a_delta_order(status=_D.COMPLETED, is_final=True), status=_D.ACTIVE)
    with pytest.raises(StoreError, match="the next version"):
        DELTA.advanced(order, order)
    with pytest.raises(StoreError, match="the next version"):
        DELTA.advanced(order, replace(order, version=3))


def test_an_effect_is_known_by_order_version_and_kind() -> None:
    order = a_delta_order()
    assert effect_key(order.order_hash, 3, "settle") == f"{order.order_hash.hex()}:3:settle"
    change = a_step(order, status=_D.ACTIVE, effects=[Intent("settle", b"x", 7)]).changes[-1]
    assert isinstance(change, Put)
    assert change.row.key == effect_key(order.order_hash, 2, "settle")
    assert (change.row.payload, change.row.due_ms, change.row.version, change.row.attempts) == (b"x", 7, 1, 0)
    assert finished(change.row, NOW_MS) == Cas("effect", (change.row.key,), 1, ("DONE", 0, 7, NOW_MS))
    assert finished(change.row, NOW_MS, failed=True).values[0] == "FAILED"  # type: ignore[union-attr]


def test_a_step_changes_the_version_the_time_and_what_is_named() -> None:
    order = an_otc_order()
    after = step(order, NOW_MS + 5, status=OtcState.SUSPENDED, swappable=amount32(0))
    assert (after.version, after.updated_ms, after.status, amount_of(after.swappable)) == (
        2, NOW_MS + 5, "SUSPENDED", 0,
    )  # fmt: skip
    assert (
        replace(after, version=1, updated_ms=order.updated_ms, status=order.status, swappable=order.swappable)
        == order
    )


# --- Ids and amounts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(50))
def test_an_id_is_a_uuid4_whose_order_lies_between_its_hashes(number: int) -> None:
    order_hash = hash_of(number)
    known = order_id(order_hash)
    assert (known.version, known.variant) == (4, "specified in RFC 4122")
    least, greatest = hashes_of_id(known)
    assert least <= order_hash <= greatest
    assert len(least) == len(greatest) == 32


def test_amounts_sort_as_numbers() -> None:
    amounts = [0, 1, 255, 256, 10**18, 2**255, 2**256 - 1]
    assert sorted(map(amount32, reversed(amounts))) == [amount32(amount) for amount in amounts]
    assert [amount_of(amount32(amount)) for amount in amounts] == amounts
    for wrong in (-1, 2**256):
        with pytest.raises(OverflowError):
            amount32(wrong)


# --- Over the wire ----------------------------------------------------------------------------------------


def test_a_unit_is_the_same_on_the_other_side() -> None:
    order = a_delta_order()
    unit = a_step(
        order, status=_D.COMPLETED, more=[put(DELTA_FILL, a_fill(order)), drop(DELTA_FILL, a_fill(order))],
        effects=[Intent("tell")], fence=Fence(order.shard, 9),
    )  # fmt: skip
    for sent in (unit, submission(order), Unit((new(DELTA_ORDER, order),))):
        came = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=Unit)
        assert came.fence == sent.fence
        for change, original in zip(came.changes, sent.changes, strict=True):
            assert type(change) is type(original)
            if isinstance(change, Put | New):
                table = TABLES[change.table]
                assert values_of(change.row) == values_of(original.row)  # type: ignore[union-attr]
                assert row_of(table, change.row) == original.row  # type: ignore[union-attr]
            else:
                assert change == original


@pytest.mark.parametrize(
    "outcome",
    [Done(), Duplicate("delta_order", 1, [1]), Conflict("effect", None), Fenced(7), Refused("because")],
    ids=lambda outcome: type(outcome).__name__,
)
def test_an_outcome_is_the_same_on_the_other_side(outcome: UnitOutcome) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode([outcome]), type=list[UnitOutcome]) == [outcome]


# --- Statements -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_statements_name_columns_of_their_table_and_take_a_value_for_each(name: str) -> None:
    table = TABLES[name]
    assert insert(name, unless_there=True).count("?") == len(table.columns)
    assert ("ON CONFLICT DO NOTHING" in insert(name, unless_there=False)) == table.repeatable
    for unique in table.unique:
        assert set(unique.columns) <= set(table.columns)
    if table.unique:
        assert delete(name).count("?") == len(table.key)
    if table.mutable:
        assert "version" in table.columns
        assert set(table.mutable) <= set(table.columns) - set(table.key) - {"version"}
        assert compare_and_set(name).count("?") == len(table.mutable) + len(table.key) + 1


def test_a_question_about_a_column_that_is_none_or_too_many_values_is_our_bug() -> None:
    with pytest.raises(ValueError, match="delta_order has no column 1=1"):
        among(DELTA_ORDER, "1=1", [])
    with pytest.raises(ValueError, match=f"at most {IDS_MAX} values, got {IDS_MAX + 1}"):
        among(DELTA_ORDER, "order_hash", [b""] * (IDS_MAX + 1))


def test_a_question_uses_the_conditions_of_its_unique() -> None:
    assert by(DELTA_ORDER, 1, b"", b"", unique=1).sql.endswith(
        "WHERE chain_id = ? AND owner = ? AND nonce = ? AND status NOT IN ('CANCELLED', 'EXPIRED', 'FAILED')"
    )
    assert by(EFFECT, "key").sql.endswith("FROM effect WHERE key = ?")
    assert not ORDER_EVENT.unique


def test_words_of_a_dialect_are_filled_in_and_unknown_ones_are_our_bug() -> None:
    assert (
        render(Query("SELECT {tx} WHERE {after}", ()), {"tx": "0", "after": "n > 1"})
        == "SELECT 0 WHERE n > 1"
    )
    with pytest.raises(KeyError):
        render(Query("SELECT {other}", ()), {})
