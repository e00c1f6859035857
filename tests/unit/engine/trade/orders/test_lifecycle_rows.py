"""The tables of life cycles drive the steps: each row is taken by a step, and a reason leads to one state."""

from enum import StrEnum
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OrderStatus, OrderType, OtcState
from cambist.engine.lifecycle import Lifecycle
from cambist.engine.store.rows import (
    DeltaFill,
    Effect,
    EffectState,
    OtcCancel,
    OtcFill,
    UsedNonce,
    amount32,
)
from cambist.engine.trade.delta.orders import life as delta_life
from cambist.engine.trade.delta.orders.life import DeltaFacts
from cambist.engine.trade.delta.orders.transfers import followed
from cambist.engine.trade.orders.lifecycles import DELTA_LIFECYCLE, OTC_LIFECYCLE, DeltaReason, OtcReason
from cambist.engine.trade.orders.order_units import effect_key
from cambist.engine.trade.otc import life as otc_life
from cambist.engine.trade.otc.balances import OrderBacking
from cambist.engine.trade.otc.life import OtcFacts
from support.store.stores import (
    ALICE,
    BOB,
    NOW_MS,
    ONE,
    USDC,
    WETH,
    a_delta_order,
    a_refund_of,
    a_transfer,
    an_end,
    an_otc_order,
    hash_of,
)

_D, _O = OrderStatus, OtcState

FAILURES_MAX = 3


def rows_taken(lifecycle: Lifecycle[Any, Any], monkeypatch: pytest.MonkeyPatch) -> set[tuple[Any, Any]]:
    """Rows that steps have taken since, as (before, reason)."""
    taken: set[tuple[Any, Any]] = set()
    after = lifecycle.after

    def noted(before: Any, reason: Any) -> Any:
        found = after(before, reason)
        if found is not None:
            taken.add((before, reason))
        return found

    monkeypatch.setattr(lifecycle, "after", noted)
    return taken


def take_delta_steps() -> None:
    """Take each step of a Delta order in each state, whatever its guard says."""
    for status, of_type, failures in product(_D, (OrderType.MARKET, OrderType.LIMIT), (0, FAILURES_MAX)):
        row = a_delta_order(1, status=status, type=of_type, failures=failures)
        key = effect_key(row.order_hash, row.version, delta_life.SETTLE)
        settle = Effect(
            key, row.order_hash, row.shard, delta_life.SETTLE, b"", 1, 1, EffectState.INTENDED, 0, 0, 1
        )
        cancel = replace(settle, kind=delta_life.CANCEL)
        delta_life.rested(row, 1)
        delta_life.won(row, b"", (), 1)
        delta_life.part_settled(row, settle, 1)
        delta_life.failed(row, settle, None, FAILURES_MAX, 1)
        delta_life.starved(row, settle, 1)
        delta_life.suspended(row, 1)
        delta_life.restored(row, 1)
        delta_life.cancel_asked(row, 1)
        delta_life.cancel_done(row, None, 1)
        delta_life.expired(row, 0, row.expires_s + 1, 1)
        delta_life.gave_way(row, 1)
        place = row.chain_id, hash_of(7), hash_of(8), 0, 9
        amounts = amount32(1), amount32(1), NOW_MS, amount32(1)
        fill = DeltaFill(*place, row.order_hash, None, *amounts, is_closed=True)
        given_up = UsedNonce(1, row.owner, row.nonce, hash_of(8), 9, None)
        nonces = (None, given_up, replace(given_up, order_hash=bytes(32)))
        for fills, nonce, is_signed, effects in product(
            ((), (fill,)), nonces, (False, True), ((), (cancel,))
        ):
            delta_life.step_from_logs(row, DeltaFacts(fills, nonce, is_signed, 0), effects, FAILURES_MAX, 1)
        sent = a_transfer(row)
        delivered, lost = an_end(sent), an_end(sent, is_delivered=False)
        for ends, refunds in (((), ()), ((delivered,), ()), ((lost,), ()), ((lost,), (a_refund_of(sent),))):
            facts = DeltaFacts((fill,), None, False, 0, transfers=followed((sent,), ends, refunds))
            delta_life.step_from_logs(row, facts, (), FAILURES_MAX, 1)


def take_otc_steps() -> None:
    """Take each step of an OTC order in each state, whatever its guard says."""
    for status in _O:
        row = an_otc_order(1, status=status, expires_s=NOW_MS)
        otc_life.signed(row, 1, is_backed=True)
        otc_life.signed(row, 1, is_backed=False)
        otc_life.stood(row, OrderBacking(_O.PENDING, 1, 1, 1), 1)
        otc_life.stood(row, OrderBacking(_O.SUSPENDED, 1, 1, 1), 1)
        otc_life.expired(row, row.expires_s + 1, 1)
        otc_life.gave_way(row, 1)
        place = row.chain_id, hash_of(7), hash_of(8), 0, 9
        cancel = OtcCancel(*place, row.order_hash, row.maker, NOW_MS)
        parties = row.order_hash, ALICE, BOB, WETH, USDC
        fills = [OtcFill(*place, *parties, amount32(part), amount32(1), NOW_MS) for part in (ONE // 2, ONE)]
        for some, cancels, by_contract, is_short in product(
            ((), fills[:1], fills[1:]), ((), (cancel,)), (False, True), (False, True)
        ):
            otc_life.step_from_logs(row, OtcFacts(some, cancels, 0, 0, None, by_contract, is_short), 1)


def test_each_row_of_a_delta_order_is_taken_by_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = rows_taken(DELTA_LIFECYCLE, monkeypatch)
    take_delta_steps()
    assert taken == DELTA_LIFECYCLE.table.keys()
    assert {reason for _, reason in DELTA_LIFECYCLE.table} == set(DeltaReason)


def test_each_row_of_an_otc_order_is_taken_by_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = rows_taken(OTC_LIFECYCLE, monkeypatch)
    take_otc_steps()
    assert taken == OTC_LIFECYCLE.table.keys()
    assert {reason for _, reason in OTC_LIFECYCLE.table} == set(OtcReason)


class _State(StrEnum):
    A = "a"
    B = "b"


class _Why(StrEnum):
    GO = "go"


def test_a_reason_that_leads_from_a_state_to_two_is_refused() -> None:
    rows = (((_State.A,), _Why.GO, _State.B), ((_State.A,), _Why.GO, _State.A))
    with pytest.raises(ValueError, match="two rows lead from a by go"):
        Lifecycle("test", frozenset({_State.A}), rows, ())


def test_a_reason_leads_nowhere_from_a_state_without_its_row() -> None:
    table = Lifecycle("test", frozenset({_State.A}), (((_State.A,), _Why.GO, _State.B),), ())
    assert table.after(_State.A, _Why.GO) is _State.B
    assert table.after(_State.B, _Why.GO) is None
    assert table.before(_Why.GO) == {_State.A}
