"""The steps of a Delta order's life: the winners of races, and the facts that the chain decides."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType
from cambist.engine.store.rows import DeltaFill, DeltaOrderRow, Effect, EffectState, UsedNonce, amount32
from cambist.engine.store.units import Cas, Put
from cambist.engine.trade.delta.orders import life
from cambist.engine.trade.delta.orders.life import DeltaFacts, DeltaStep
from cambist.engine.trade.orders.lifecycles import DELTA_LIFECYCLE
from cambist.engine.trade.orders.order_units import DELTA, effect_key
from support.store.stores import NOW_MS, a_delta_order, hash_of

_S = OrderStatus
FAILURES_MAX = 3
DONE, FAILED, INTENDED = EffectState.DONE, EffectState.FAILED, EffectState.INTENDED
NOTHING = DeltaFacts((), None, is_pre_signed=False, final_height=0)


def an_order(status: OrderStatus = _S.PENDING, **changed: Any) -> DeltaOrderRow:
    return a_delta_order(1, status=status, **changed)


def an_effect(row: DeltaOrderRow, kind: str = life.SETTLE, state: EffectState = INTENDED) -> Effect:
    key = effect_key(row.order_hash, row.version, kind)
    return Effect(key, row.order_hash, row.shard, kind, b"payload", NOW_MS, 1, state, 0, 0, NOW_MS)


def a_fill(row: DeltaOrderRow, *, block: int = 10, is_closed: bool = True, spent: int = 7) -> DeltaFill:
    place = row.chain_id, hash_of(block), hash_of(block + 1), 0, block
    amounts = amount32(spent), amount32(2 * spent), NOW_MS, amount32(spent)
    return DeltaFill(*place, row.order_hash, None, *amounts, is_closed)


def a_nonce(row: DeltaOrderRow, order_hash: bytes | None, *, block: int = 10) -> UsedNonce:
    return UsedNonce(row.chain_id, row.owner, row.nonce, hash_of(block + 1), block, order_hash)


def ended_effects(step: DeltaStep) -> list[tuple[Any, str]]:
    """(key, state) of the effects that a step finishes."""
    return [(change.key, change.values[0]) for change in step.more if isinstance(change, Cas)]


def told(row: DeltaOrderRow, facts: DeltaFacts, *effects: Effect) -> DeltaStep | None:
    return life.step_from_logs(row, facts, effects, FAILURES_MAX, NOW_MS)


# --- From each state ------------------------------------------------------------------------------------

NOT_ENDED = (_S.AWAITING_SIGNATURE, _S.PENDING, _S.ACTIVE, _S.SUSPENDED)
ON_TWO_CHAINS = (_S.BRIDGING, _S.REFUNDING, _S.REFUNDED)
NONCE_USED: dict[OrderStatus, OrderStatus] = {
    _S.AWAITING_SIGNATURE: _S.CANCELLED,
    _S.PENDING: _S.FAILED,
    _S.ACTIVE: _S.FAILED,
    _S.SUSPENDED: _S.FAILED,
    _S.CANCELLING: _S.CANCELLED,
    **dict.fromkeys((_S.COMPLETED, *ON_TWO_CHAINS), _S.FAILED),
}
Take = Callable[[DeltaOrderRow], DeltaStep | None]
LEADS: dict[str, tuple[Take, dict[OrderStatus, OrderStatus]]] = {
    "the deadline has passed": (
        lambda row: life.expired(row, 0, row.expires_s + 1, NOW_MS),
        dict.fromkeys(NOT_ENDED, _S.EXPIRED),
    ),
    "the last settlement has failed": (
        lambda row: life.failed(row, an_effect(row), None, 1, NOW_MS),
        {_S.PENDING: _S.FAILED, _S.ACTIVE: _S.FAILED, _S.CANCELLING: _S.CANCELLED},
    ),
    "a part is settled": (
        lambda row: life.part_settled(row, an_effect(row), NOW_MS),
        {_S.CANCELLING: _S.CANCELLED},
    ),
    "a fill closes it": (
        lambda row: told(row, replace(NOTHING, fills=(a_fill(row),))),
        dict.fromkeys((*NOT_ENDED, _S.CANCELLING, _S.EXPIRED, _S.FAILED, _S.CANCELLED), _S.COMPLETED),
    ),
    "its owner has used the nonce up": (
        lambda row: told(row, replace(NOTHING, nonce_used=a_nonce(row, None))),
        dict.fromkeys((*NOT_ENDED, _S.CANCELLING, _S.COMPLETED, *ON_TWO_CHAINS), _S.CANCELLED),
    ),
    "another order has used the nonce": (
        lambda row: told(row, replace(NOTHING, nonce_used=a_nonce(row, hash_of(99)))),
        NONCE_USED,
    ),
    "its owner has signed by a call": (
        lambda row: told(row, replace(NOTHING, is_pre_signed=True)),
        {_S.AWAITING_SIGNATURE: _S.PENDING}
        | dict.fromkeys((_S.COMPLETED, _S.FAILED, _S.CANCELLED, *ON_TWO_CHAINS), _S.ACTIVE),
    ),
    "the chain has nothing of it": (
        lambda row: told(row, NOTHING),
        dict.fromkeys((_S.COMPLETED, _S.FAILED, _S.CANCELLED, *ON_TWO_CHAINS), _S.ACTIVE),
    ),
    "the chain has nothing of it, and its cancellation is signed": (
        lambda row: told(row, NOTHING, an_effect(row, life.CANCEL)),
        dict.fromkeys((_S.COMPLETED, *ON_TWO_CHAINS), _S.CANCELLING) | {_S.FAILED: _S.ACTIVE},
    ),
}
"""Event of an order -> the state after it, for each state that the event changes."""


@pytest.mark.parametrize("what", LEADS)
@pytest.mark.parametrize("status", _S)
def test_a_step_leads_from_each_state_where_the_spec_says(status: OrderStatus, what: str) -> None:
    take, leads = LEADS[what]
    step = take(an_order(status))
    assert (status if step is None else step.after.status) is leads.get(status, status)


# --- By those who run it --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", _S)
def test_what_wins_an_auction_is_settled_only_while_it_is_open(status: OrderStatus) -> None:
    step = life.won(an_order(status), b"payload", (), NOW_MS)
    if status not in (_S.PENDING, _S.ACTIVE):
        assert step is None
        return
    assert step is not None
    assert step.after.status is _S.ACTIVE
    assert [(intent.kind, intent.payload) for intent in step.effects] == [(life.SETTLE, b"payload")]


@pytest.mark.parametrize("status", _S)
def test_only_an_order_that_is_not_finalized_can_be_cancelled(status: OrderStatus) -> None:
    step = life.cancel_asked(an_order(status), NOW_MS)
    cancellable = {_S.PENDING, _S.AWAITING_SIGNATURE, _S.ACTIVE, _S.SUSPENDED}
    assert (step is not None) == (status in cancellable)
    if step is not None:
        assert step.after.status is _S.CANCELLING
        assert [intent.kind for intent in step.effects] == [life.CANCEL]


def test_a_cancellation_is_done_once_and_its_effect_with_it() -> None:
    row = an_order(_S.CANCELLING)
    cancel = an_effect(row, life.CANCEL)
    step = life.cancel_done(row, cancel, NOW_MS)
    assert step is not None
    assert step.after.status is _S.CANCELLED
    assert ended_effects(step) == [((cancel.key,), DONE)]
    assert life.cancel_done(step.after, cancel, NOW_MS) is None


def test_the_runner_up_follows_a_settlement_that_failed() -> None:
    row = an_order(_S.ACTIVE)
    effect = an_effect(row)
    step = life.failed(row, effect, b"second", FAILURES_MAX, NOW_MS)
    assert step is not None
    assert (step.after.status, step.after.failures) == (_S.ACTIVE, 1)
    assert [intent.payload for intent in step.effects] == [b"second"]
    assert ended_effects(step) == [((effect.key,), FAILED)]


def test_an_order_fails_with_its_last_settlement() -> None:
    row = an_order(_S.ACTIVE, failures=FAILURES_MAX - 1)
    step = life.failed(row, an_effect(row), b"second", FAILURES_MAX, NOW_MS)
    assert step is not None
    assert (step.after.status, step.effects) == (_S.FAILED, ())


def test_a_cancelled_order_gets_no_runner_up() -> None:
    row = an_order(_S.CANCELLING)
    step = life.failed(row, an_effect(row), b"second", FAILURES_MAX, NOW_MS)
    assert step is not None
    assert (step.after.status, step.effects) == (_S.CANCELLED, ())


def test_a_settlement_fails_once() -> None:
    row = an_order(_S.ACTIVE)
    assert life.failed(row, an_effect(row, state=FAILED), None, FAILURES_MAX, NOW_MS) is None


def test_limit_orders_and_twaps_wait_as_active() -> None:
    limit = life.rested(an_order(type=OrderType.LIMIT), NOW_MS)
    twap = life.rested(an_order(kind=OnChainOrderType.TWAP_ORDER), NOW_MS)
    assert limit is not None
    assert twap is not None
    assert limit.after.status is twap.after.status is _S.ACTIVE
    assert life.rested(an_order(), NOW_MS) is None
    assert life.rested(an_order(_S.CANCELLING, type=OrderType.LIMIT), NOW_MS) is None


def test_an_order_expires_after_its_deadline_and_not_at_it() -> None:
    row = an_order()
    until_s = row.expires_s
    assert life.expired(row, until_s, until_s, NOW_MS) is None
    step = life.expired(row, until_s, until_s + 1, NOW_MS)
    assert step is not None
    assert step.after.status is _S.EXPIRED
    assert life.expired(an_order(_S.CANCELLING), until_s, until_s + 1, NOW_MS) is None


def test_an_order_expires_once_what_is_left_does_not_fit_before_its_deadline() -> None:
    row = an_order(_S.ACTIVE)
    until_s = row.expires_s - 60
    assert life.expired(row, until_s, until_s, NOW_MS) is None
    step = life.expired(row, until_s, until_s + 1, NOW_MS)
    assert step is not None
    assert step.after.status is _S.EXPIRED


# --- By the chain ---------------------------------------------------------------------------------------


def test_a_settlement_in_the_chain_completes_an_order_and_is_final_when_deep() -> None:
    row = an_order(_S.ACTIVE)
    effect = an_effect(row)
    facts = DeltaFacts((a_fill(row),), None, is_pre_signed=False, final_height=9)
    step = told(row, facts, effect)
    assert step is not None
    assert (step.after.status, step.after.is_final) == (_S.COMPLETED, False)
    assert (step.after.spent, step.after.received) == (amount32(7), amount32(14))
    assert ended_effects(step) == []
    deep = told(step.after, DeltaFacts(facts.fills, None, is_pre_signed=False, final_height=10), effect)
    assert deep is not None
    assert deep.after.is_final
    assert ended_effects(deep) == [((effect.key,), DONE)]
    assert told(deep.after, NOTHING, effect) is None


@pytest.mark.parametrize(
    "status", [_S.CANCELLING, _S.SUSPENDED, _S.EXPIRED, _S.CANCELLED, _S.FAILED, _S.PENDING]
)
def test_a_settlement_in_the_chain_is_the_last_word(status: OrderStatus) -> None:
    row = an_order(status)
    step = told(row, DeltaFacts((a_fill(row),), None, is_pre_signed=False, final_height=0))
    assert step is not None
    assert step.after.status is _S.COMPLETED
    DELTA.advanced(row, step.after)


def test_a_settlement_that_left_the_chain_makes_its_order_active_or_cancelling_again() -> None:
    row = an_order(_S.COMPLETED, spent=amount32(7), received=amount32(14))
    settle = an_effect(row)
    step = told(row, NOTHING, settle)
    assert step is not None
    assert (step.after.status, step.after.spent) == (_S.ACTIVE, amount32(0))
    cancelled = told(row, NOTHING, settle, an_effect(row, life.CANCEL))
    assert cancelled is not None
    assert cancelled.after.status is _S.CANCELLING


def test_a_nonce_that_its_owner_gave_up_cancels_and_one_used_elsewhere_fails() -> None:
    row = an_order(_S.ACTIVE)
    given_up = DeltaFacts((), a_nonce(row, None), is_pre_signed=False, final_height=0)
    used = DeltaFacts((), a_nonce(row, hash_of(99)), is_pre_signed=False, final_height=0)
    cancelled, failed = told(row, given_up), told(row, used)
    assert cancelled is not None
    assert failed is not None
    assert (cancelled.after.status, failed.after.status) == (_S.CANCELLED, _S.FAILED)
    for ended in (cancelled.after, failed.after):
        again = told(ended, NOTHING)
        assert again is not None
        assert again.after.status is _S.ACTIVE


def test_an_order_that_its_owner_cancelled_or_that_failed_too_often_stays_so() -> None:
    cancelled = an_order(_S.CANCELLED)
    assert told(cancelled, NOTHING, an_effect(cancelled, life.CANCEL, DONE)) is None
    assert told(an_order(_S.FAILED, failures=FAILURES_MAX), NOTHING) is None


def test_a_pre_signature_makes_a_waiting_order_pending() -> None:
    signed = DeltaFacts((), None, is_pre_signed=True, final_height=0)
    step = told(an_order(_S.AWAITING_SIGNATURE), signed)
    assert step is not None
    assert step.after.status is _S.PENDING
    assert told(an_order(_S.AWAITING_SIGNATURE), NOTHING) is None


def test_an_order_that_ended_without_the_chain_is_final_later_and_not_with_a_settlement_under_way() -> None:
    row = an_order(_S.CANCELLED)
    cancel = an_effect(row, life.CANCEL, DONE)
    early = DeltaFacts((), None, is_pre_signed=False, final_height=19, ended_at=20)
    late = DeltaFacts((), None, is_pre_signed=False, final_height=20, ended_at=20)
    assert told(row, early, cancel) is None
    assert told(row, late, cancel, an_effect(row)) is None
    step = told(row, late, cancel)
    assert step is not None
    assert step.after.is_final


def test_a_part_in_the_chain_counts_and_closes_nothing() -> None:
    row = an_order(_S.ACTIVE)
    facts = DeltaFacts((a_fill(row, is_closed=False),), None, is_pre_signed=False, final_height=99)
    step = told(row, facts)
    assert step is not None
    assert (step.after.status, step.after.spent, step.after.is_final) == (_S.ACTIVE, amount32(7), False)


@given(
    status=st.sampled_from(_S),
    is_closed=st.sampled_from([None, True, False]),
    used=st.sampled_from([None, b"", hash_of(99)]),
    is_pre_signed=st.booleans(),
    failures=st.integers(0, FAILURES_MAX),
    kinds=st.lists(st.sampled_from([(life.SETTLE, INTENDED), (life.CANCEL, DONE), (life.SETTLE, FAILED)])),
    final_height=st.integers(0, 30),
)
def test_whatever_the_chain_says_it_is_a_step_that_the_life_cycle_has(
    status: OrderStatus,
    is_closed: bool | None,
    used: bytes | None,
    is_pre_signed: bool,
    failures: int,
    kinds: list[tuple[str, EffectState]],
    final_height: int,
) -> None:
    if status in (_S.BRIDGING, _S.REFUNDING, _S.REFUNDED):
        return
    row = an_order(status, failures=failures)
    fills = () if is_closed is None else (a_fill(row, is_closed=is_closed),)
    nonce = None if used is None else a_nonce(row, used or None)
    facts = DeltaFacts(fills, nonce, is_pre_signed, final_height, ended_at=5)
    effects = [an_effect(row, kind, state) for kind, state in kinds]
    step = life.step_from_logs(row, facts, effects, FAILURES_MAX, NOW_MS)
    if step is not None:
        DELTA_LIFECYCLE.check(row.status, step.after.status, is_final=row.is_final)
        unit = DELTA.advanced(row, step.after, effects=step.effects, more=step.more)
        assert any(isinstance(change, Put) for change in unit.changes)
        again = life.step_from_logs(step.after, facts, effects, FAILURES_MAX, NOW_MS)
        assert again is None or again.after.is_final, "what the chain says is taken in at once"
