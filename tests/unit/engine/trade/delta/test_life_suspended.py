"""The steps into SUSPENDED and out of it."""

from typing import Any

import pytest

from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType
from cambist.engine.store.rows import DeltaOrderRow, Effect, EffectState, amount32
from cambist.engine.store.units import Cas
from cambist.engine.trade.delta.orders import life
from cambist.engine.trade.orders.lifecycles import DELTA_LIFECYCLE
from cambist.engine.trade.orders.order_units import effect_key
from support.store.stores import NOW_MS, a_delta_order

_S = OrderStatus
OPEN = {_S.PENDING, _S.ACTIVE}
FAILED, INTENDED = EffectState.FAILED, EffectState.INTENDED


def an_order(status: OrderStatus, **changed: Any) -> DeltaOrderRow:
    return a_delta_order(1, status=status, **changed)


def a_settlement(row: DeltaOrderRow, state: EffectState = INTENDED) -> Effect:
    key = effect_key(row.order_hash, row.version, life.SETTLE)
    return Effect(key, row.order_hash, row.shard, life.SETTLE, b"payload", NOW_MS, 1, state, 0, 0, NOW_MS)


@pytest.mark.parametrize("status", _S)
def test_only_an_open_order_is_suspended(status: OrderStatus) -> None:
    step = life.suspended(an_order(status), NOW_MS)
    assert (step is not None) == (status in OPEN)
    if step is not None:
        assert step.after.status is _S.SUSPENDED
        DELTA_LIFECYCLE.check(status, step.after.status, is_final=False)


@pytest.mark.parametrize("status", _S)
def test_only_a_suspended_order_is_restored(status: OrderStatus) -> None:
    assert (life.restored(an_order(status), NOW_MS) is not None) == (status is _S.SUSPENDED)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, _S.PENDING),
        ({"type": OrderType.LIMIT}, _S.ACTIVE),
        ({"kind": OnChainOrderType.TWAP_ORDER}, _S.ACTIVE),
        ({"kind": OnChainOrderType.TWAP_BUY_ORDER}, _S.ACTIVE),
        ({"spent": amount32(1)}, _S.ACTIVE),
        ({"failures": 1}, _S.ACTIVE),
    ],
)
def test_an_order_comes_back_as_what_it_waited_for(changed: dict[str, Any], status: OrderStatus) -> None:
    step = life.restored(an_order(_S.SUSPENDED, **changed), NOW_MS)
    assert step is not None
    assert step.after.status is status
    DELTA_LIFECYCLE.check(_S.SUSPENDED, status, is_final=False)


@pytest.mark.parametrize("status", _S)
def test_a_settlement_without_funds_suspends_and_is_no_failure(status: OrderStatus) -> None:
    row = an_order(status, failures=1)
    effect = a_settlement(row)
    step = life.starved(row, effect, NOW_MS)
    if status not in OPEN:
        assert step is None
        return
    assert step is not None
    assert (step.after.status, step.after.failures, step.effects) == (_S.SUSPENDED, 1, ())
    ended = [(change.key, change.values[0]) for change in step.more if isinstance(change, Cas)]
    assert ended == [((effect.key,), FAILED)]
    assert life.starved(row, a_settlement(row, FAILED), NOW_MS) is None
