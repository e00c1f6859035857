"""The steps of an order across chains: its status, received amount and finality follow from both chains."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.engine.store.rows import (
    BridgeEnd,
    BridgeEndState,
    BridgeTransfer,
    DeltaFill,
    DeltaOrderRow,
    amount32,
    amount_of,
)
from cambist.engine.trade.delta.orders import life
from cambist.engine.trade.delta.orders.life import DeltaFacts, DeltaStep
from cambist.engine.trade.delta.orders.transfers import OrderTransfer, TransferState, followed
from cambist.engine.trade.orders.order_units import DELTA
from support.store.stores import NOW_MS, a_delta_order, a_fill, a_refund_of, a_transfer, an_end

_S = OrderStatus
SETTLED = (_S.BRIDGING, _S.REFUNDING, _S.COMPLETED, _S.REFUNDED)
WAITING = (_S.PENDING, _S.AWAITING_SIGNATURE, _S.ACTIVE, _S.SUSPENDED, _S.CANCELLING)
ROW = a_delta_order(1, status=_S.ACTIVE)


def a_slice(number: int, *, is_last: bool) -> tuple[DeltaFill, BridgeTransfer]:
    fill = replace(a_fill(ROW, block=number, log=2), is_closed=is_last)
    return fill, a_transfer(ROW, block=number)


def in_state(sent: BridgeTransfer, state: TransferState, *, is_final: bool = False) -> OrderTransfer:
    if state is TransferState.UNDER_WAY:
        return OrderTransfer(sent)
    if state is TransferState.DELIVERED:
        return OrderTransfer(sent, an_end(sent, is_final=is_final))
    if state is TransferState.ARRIVED:
        return OrderTransfer(sent, replace(an_end(sent, is_final=is_final), state=BridgeEndState.ARRIVED))
    lost = an_end(sent, is_delivered=False)
    back = a_refund_of(sent, tx=sent.block_number, is_final=is_final)
    return OrderTransfer(sent, lost, (back,) if state is TransferState.REFUNDED else ())


def told(
    row: DeltaOrderRow,
    fills: Sequence[DeltaFill],
    transfers: Sequence[OrderTransfer],
    *,
    final_height: int = 0,
    **changed: Any,
) -> DeltaStep | None:
    facts = DeltaFacts(tuple(fills), None, False, final_height, transfers=tuple(transfers), **changed)
    return life.step_from_logs(row, facts, (), 3, NOW_MS)


FILL, SENT = a_slice(7, is_last=True)
OF_ONE = {
    TransferState.UNDER_WAY: _S.BRIDGING,
    TransferState.ARRIVED: _S.BRIDGING,
    TransferState.DELIVERED: _S.COMPLETED,
    TransferState.FAILED: _S.REFUNDING,
    TransferState.REFUNDED: _S.REFUNDED,
}


@pytest.mark.parametrize("state", TransferState)
@pytest.mark.parametrize("status", SETTLED)
def test_a_settled_order_has_the_state_of_its_transfer_from_any_state(
    status: OrderStatus, state: TransferState
) -> None:
    row = replace(ROW, status=status, spent=FILL.spent)
    transfer = in_state(SENT, state)
    step = told(row, [FILL], [transfer])
    after = row if step is None else step.after
    assert after.status is OF_ONE[state]
    arrived = SENT.output if state is TransferState.DELIVERED else amount32(0)
    assert after.received == arrived
    if step is not None:
        DELTA.advanced(row, step.after)
    by_bridge = life.told_by_bridge(row, [FILL], [transfer], (), NOW_MS)
    assert (row if by_bridge is None else by_bridge.after) == after


@pytest.mark.parametrize("status", [*WAITING, _S.EXPIRED, _S.FAILED, _S.CANCELLED])
@pytest.mark.parametrize("state", TransferState)
def test_the_origins_settlement_makes_an_order_bridging_whatever_happened_before(
    status: OrderStatus, state: TransferState
) -> None:
    row = replace(ROW, status=status)
    step = told(row, [FILL], [in_state(SENT, state)])
    assert step is not None
    assert (step.after.status, step.after.spent) == (_S.BRIDGING, FILL.spent)
    DELTA.advanced(row, step.after)


U, A, D, F, R = TransferState
MIXED = {
    (D, U): _S.BRIDGING, (F, U): _S.BRIDGING, (R, U): _S.BRIDGING, (D, F): _S.REFUNDING, (R, F): _S.REFUNDING,
    (D, R): _S.REFUNDED, (R, R): _S.REFUNDED, (D, D): _S.COMPLETED, (A, D): _S.BRIDGING, (A, F): _S.BRIDGING,
}  # fmt: skip


@pytest.mark.parametrize("states", MIXED)
def test_an_order_of_several_transfers_waits_for_each(states: tuple[TransferState, TransferState]) -> None:
    slices = [a_slice(number, is_last=number == len(states)) for number in range(1, len(states) + 1)]
    transfers = [in_state(sent, state) for (_, sent), state in zip(slices, states, strict=True)]
    row = replace(ROW, status=_S.BRIDGING)
    step = told(row, [fill for fill, _ in slices], transfers)
    after = row if step is None else step.after
    assert after.status is MIXED[states]
    assert amount_of(after.received) == sum(
        amount_of(one.end.amount) for one in transfers if one.end is not None and one.state is D
    )


def test_a_slice_before_the_last_changes_no_state_and_counts_when_it_arrives() -> None:
    fill, sent = a_slice(1, is_last=False)
    first = told(ROW, [fill], [OrderTransfer(sent)])
    assert first is not None
    assert (first.after.status, first.after.received) == (_S.ACTIVE, amount32(0))
    arrived = life.told_by_bridge(first.after, [fill], [in_state(sent, D)], (), NOW_MS)
    assert arrived is not None
    assert (arrived.after.status, arrived.after.received) == (_S.ACTIVE, sent.output)


def test_a_settlement_whose_transfer_is_not_indexed_is_under_way() -> None:
    (one, sent), (last, _) = a_slice(1, is_last=False), a_slice(2, is_last=True)
    step = told(ROW, [one, last], [in_state(sent, D)])
    assert step is not None
    assert step.after.status is _S.BRIDGING


def test_an_order_is_final_once_both_chains_have_confirmed_its_end() -> None:
    for state, status in ((D, _S.COMPLETED), (R, _S.REFUNDED)):
        row = replace(
            ROW, status=status, spent=FILL.spent, received=SENT.output if state is D else amount32(0)
        )
        fresh, confirmed = in_state(SENT, state), in_state(SENT, state, is_final=True)
        assert told(row, [FILL], [fresh], final_height=FILL.block_number) is None
        assert told(row, [FILL], [confirmed], final_height=FILL.block_number - 1) is None
        step = told(row, [FILL], [confirmed], final_height=FILL.block_number)
        assert step is not None
        assert (step.after.status, step.after.is_final) == (status, True)
        assert told(step.after, [], []) is None
        assert life.told_by_bridge(step.after, [FILL], [fresh], (), NOW_MS) is None


@pytest.mark.parametrize("status", [_S.FAILED, _S.EXPIRED])
def test_an_ended_twap_is_not_final_before_its_transfers_are(status: OrderStatus) -> None:
    fill, sent = a_slice(1, is_last=False)
    row = replace(ROW, status=status, spent=fill.spent, failures=3)
    for state in (U, F):
        assert told(row, [fill], [in_state(sent, state)], final_height=99, ended_at=50) is None
    row = replace(row, received=sent.output)
    step = told(row, [fill], [in_state(sent, D, is_final=True)], final_height=99, ended_at=50)
    assert step is not None
    assert (step.after.status, step.after.is_final) == (status, True)


def test_ends_of_transfers_that_are_not_in_the_chain_do_not_count() -> None:
    gone: BridgeEnd = an_end(a_transfer(ROW, block=8))
    (transfer,) = followed([SENT], [gone], [])
    assert transfer.state is U
