"""The life cycle steps of a Delta order: from its row and an occurrence to its next row and effects. Pure.

`DELTA_LIFECYCLE` (lifecycles.md) maps states and reasons to next states; each function here checks the
condition of its reason, and takes the next state from that table.

Each function returns None if the order needs no step, so that a caller that lost a race against another step
can call it again with the new row. An order has at most one settlement without a known outcome: its INTENDED
effect.

Source: spec 1.11; ARCHITECTURE.md, "Transitions".
Choice: The venue does not write a signed cancellation to the chain. Only relayers settle, and the venue's
    relayer settles no cancelled order. The owner may sign another order with the same nonce; an owner who
    wants the nonce used up on chain calls `invalidateNonces`.
Choice: A cancelled order stays CANCELLING until its settlement under way has ended for good.
Choice: A suspended order whose funds return is ACTIVE if it is a limit order or TWAP, or was partly settled
    or failed before; else PENDING.
Choice: If a settlement fails while an owner's funds lack, the next best bid on that owner's order is not
    settled. The failure counts towards `failures_max` of no order of the settlement. All orders of the
    settlement wait longer before the next round.
Choice: A MARKET order stays PENDING over rounds until its first winning bid; limit orders and TWAPs wait
    ACTIVE. `failures_max` counted failures, or another order that uses up the nonce, make an order FAILED; a
    deadline before the last fill makes it EXPIRED.
"""

from collections.abc import Sequence

from msgspec import Struct

from .....codecs.messages.vocabulary import OrderStatus, OrderType
from ....store.rows import DeltaFill, DeltaOrderRow, Effect, EffectState, UsedNonce, amount32, amount_of
from ....store.units import Change
from ...orders.lifecycles import DELTA_LIFECYCLE, DeltaReason
from ...orders.order_units import Intent, finished, step
from ...orders.step import OrderStep
from .transfers import OrderTransfer, delivered, settled_reason

SETTLE, CANCEL = "settle", "cancel"
"""Kinds of effects (stored requests) of a Delta order: to settle a winning bid, to cancel the order."""

_S, _W = OrderStatus, DeltaReason
OPEN = DELTA_LIFECYCLE.before(_W.FAILURES)
"""States of orders that may be auctioned and settled."""
CANCELLABLE = DELTA_LIFECYCLE.before(_W.CANCEL_SIGNED)
ENDED = DELTA_LIFECYCLE.terminal()
SETTLED_WHOLE = frozenset({_S.COMPLETED, _S.BRIDGING, _S.REFUNDING, _S.REFUNDED})
"""States of orders that are settled wholly on the chain where they are signed."""

DeltaStep = OrderStep[DeltaOrderRow]
"""A life cycle step of a Delta order: its next row, with the effects and changes stored together."""


class DeltaFacts(Struct, frozen=True):
    """Facts about a Delta order that the chain's logs show up to a block; input of `step_from_logs`.

    Attributes:
        fills: indexed settlements of the order.
        nonce_used: indexed log by which the order's nonce became used; None while the nonce is unused.
        is_pre_signed: whether the owner has signed the order by a call on the chain.
        final_height: height up to which blocks are final.
        ended_at: height to which the chain was indexed when the order ended without a log, e.g. expired;
            None if unknown.
        transfers: the order's bridge transfers, oldest first; empty for an order on one chain.
    """

    fills: tuple[DeltaFill, ...]
    nonce_used: UsedNonce | None
    is_pre_signed: bool
    final_height: int
    ended_at: int | None = None
    transfers: tuple[OrderTransfer, ...] = ()


def rested(row: DeltaOrderRow, now_ms: int) -> DeltaStep | None:
    """Make the step to ACTIVE of a PENDING limit order or TWAP, which begins to wait for its price or time.

    None for other orders and other states.
    """
    return _moved(row, _W.RESTS, now_ms) if _waits_active(row) else None


def won(row: DeltaOrderRow, payload: bytes, more: Sequence[Change], now_ms: int) -> DeltaStep | None:
    """Make the life cycle step that begins the settlement of an order by a winning bid.

    None if the order is not open.

    Args:
        payload: encoded settlement, stored as the payload of the new `settle` effect.
        more: store changes that write the auction round's record of the order.
    """
    if row.status not in OPEN:
        return None
    after = step(row, now_ms, status=_after(row, _W.FIRST_BID))
    return OrderStep(after, (Intent(SETTLE, payload),), tuple(more))


def part_settled(row: DeltaOrderRow, effect: Effect, now_ms: int) -> DeltaStep | None:
    """Make the life cycle step after a mined settlement that filled only a part of the order.

    None if another step has finished `effect`.

    Args:
        effect: the stored `settle` effect of the settlement.
    """
    if effect.state is not EffectState.INTENDED:
        return None
    after = step(row, now_ms, status=_after(row, _W.NOTHING_UNDER_WAY))
    return OrderStep(after, more=(finished(effect, now_ms),))


def failed(
    row: DeltaOrderRow,
    effect: Effect,
    runner_up: bytes | None,
    failures_max: int,
    now_ms: int,
    *,
    is_counted: bool = True,
) -> DeltaStep | None:
    """Make the life cycle step after a failed settlement; None if another step has finished `effect`.

    An order that its owner has cancelled becomes CANCELLED, one with `failures_max` counted failures FAILED;
    neither is settled again. Any other order is settled by the next bid, or is open again without a next bid.

    Args:
        effect: the stored `settle` effect of the failed settlement.
        runner_up: settlement payload of the round's next bid, to be settled now; None without a next bid.
        failures_max: number of counted failures that makes the order FAILED.
        is_counted: whether the failure counts against the order; False if an order crossed with this one is
            the cause, or if the settlement of any other bid would have failed, too.
    """
    if effect.state is not EffectState.INTENDED:
        return None
    failures = row.failures + is_counted
    is_last = is_counted and failures >= failures_max and row.status in OPEN
    status = _after(row, _W.FAILURES if is_last else _W.NOTHING_UNDER_WAY)
    # By the new status: a runner-up must not settle an order that this step makes CANCELLED or FAILED.
    effects = () if runner_up is None or status not in OPEN else (Intent(SETTLE, runner_up),)
    more = (finished(effect, now_ms, failed=True),)
    return OrderStep(step(row, now_ms, status=status, failures=failures), effects, more)


def starved(row: DeltaOrderRow, effect: Effect, now_ms: int) -> DeltaStep | None:
    """Make the step to SUSPENDED after a settlement has failed because the order's owner lacks funds.

    None if another step has finished `effect`, or the order is not open.

    Args:
        effect: the stored `settle` effect of the failed settlement.
    """
    if effect.state is not EffectState.INTENDED:
        return None
    return _moved(row, _W.FUNDS_MOVED, now_ms, more=(finished(effect, now_ms, failed=True),))


def suspended(row: DeltaOrderRow, now_ms: int) -> DeltaStep | None:
    """Make the step of an open order to SUSPENDED, since its owner lacks funds; None in other states.

    The caller has to check that no settlement of the order is under way.
    """
    return _moved(row, _W.FUNDS_MOVED, now_ms)


def restored(row: DeltaOrderRow, now_ms: int) -> DeltaStep | None:
    """Make the step of a SUSPENDED order whose owner has the needed funds again: to ACTIVE or PENDING.

    None if the order is not SUSPENDED.
    """
    is_begun = amount_of(row.spent) > 0 or row.failures > 0
    reason = _W.FUNDS_BACK if is_begun or _waits_active(row) else _W.FUNDS_BACK_UNBID
    return _moved(row, reason, now_ms)


def cancel_asked(row: DeltaOrderRow, now_ms: int) -> DeltaStep | None:
    """Make the step to CANCELLING, with a `cancel` effect, after the owner has signed the cancellation.

    None if the order cannot be cancelled in its state.
    """
    return _moved(row, _W.CANCEL_SIGNED, now_ms, (Intent(CANCEL),))


def cancel_done(row: DeltaOrderRow, cancel: Effect | None, now_ms: int) -> DeltaStep | None:
    """Make the step from CANCELLING to CANCELLED, which finishes the `cancel` effect; None in other states.

    The caller has to check that no settlement of the order is under way.
    """
    more = (finished(cancel, now_ms),) if cancel is not None and cancel.state is EffectState.INTENDED else ()
    return _moved(row, _W.NOTHING_UNDER_WAY, now_ms, more=more)


def expired(row: DeltaOrderRow, fits_until_s: int, now_s: int, now_ms: int) -> DeltaStep | None:
    """Make the step to EXPIRED of an order that can no longer be settled completely by its deadline.

    None if the order has ended or its next part may still settle. The caller has to check that no settlement
    of the order is under way.

    Args:
        fits_until_s: last second at which the next part may settle, Unix seconds; see `terms.fits_until`.
    """
    is_over = now_s > min(row.expires_s, fits_until_s)
    return _moved(row, _W.DEADLINE, now_ms) if is_over else None


def gave_way(row: DeltaOrderRow, now_ms: int) -> DeltaStep | None:
    """Make the step to EXPIRED of an order without signature or funds that gives its place to another.

    None in other states, and for an order with a fill: its end would not be final. The caller has to check
    that no settlement of the order is under way.
    """
    status = DELTA_LIFECYCLE.after(row.status, _W.GAVE_WAY)
    return (
        None
        if status is None or amount_of(row.spent)
        else OrderStep(step(row, now_ms, status=status, is_final=True))
    )


def has_given_way(row: DeltaOrderRow) -> bool:
    """Whether an order gave its place to another: it expired before its deadline, and is no TWAP.

    The rest of a TWAP may expire earlier, once its slices cannot all be settled in time.
    """
    is_twap = row.kind in (row.kind.TWAP_ORDER, row.kind.TWAP_BUY_ORDER)
    return row.status is _S.EXPIRED and not is_twap and row.updated_ms < row.expires_s * 1_000


def step_from_logs(
    row: DeltaOrderRow,
    facts: DeltaFacts,
    effects: Sequence[Effect],
    failures_max: int,
    now_ms: int,
    gone: tuple[Change, ...] = (),
) -> DeltaStep | None:
    """Make the step to the status and settled amounts that logs on chain imply; None if nothing changes.

    Args:
        facts: facts about the order that the logs show up to a block.
        effects: all effects of the order.
        failures_max: number of counted failures that makes an order FAILED.
        gone: changes that delete ends and refunds of transfers that are not in the chain any more; the order
            changes with them, so that its transfers are looked at again.
    """
    if row.is_final:
        return None
    is_cancel_wanted = any(effect.kind == CANCEL for effect in effects)
    reason = _reason(row, facts, is_cancel_wanted=is_cancel_wanted, failures_max=failures_max)
    status = row.status if reason is None else _after(row, reason)
    spent = amount32(sum(amount_of(fill.spent) for fill in facts.fills))
    received = _received(facts.fills, facts.transfers)
    intended = [effect for effect in effects if effect.state is EffectState.INTENDED]
    is_final = status in ENDED and _is_final(status, facts, intended)
    before = row.status, row.spent, row.received, row.is_final
    if (status, spent, received, is_final) == before and not gone:
        return None
    # Effects end only with a final order: after a re-organisation an order that is open again still needs its
    # `settle` effect, whose transaction may be mined anew.
    ended = [finished(effect, now_ms, failed=_is_in_vain(effect, status)) for effect in intended if is_final]
    after = step(row, now_ms, status=status, spent=spent, received=received, is_final=is_final)
    return OrderStep(after, more=(*ended, *gone))


def told_by_bridge(
    row: DeltaOrderRow,
    fills: Sequence[DeltaFill],
    transfers: Sequence[OrderTransfer],
    more: tuple[Change, ...],
    now_ms: int,
) -> DeltaStep | None:
    """Make the step after a change of an order's bridge transfers: their ends or refunds.

    The step changes status and received amount; only a later `step_from_logs` makes the order final. The
    result is None if nothing changes.

    Args:
        fills: indexed settlements of the order.
        transfers: the order's transfers after the change, oldest first.
        more: store changes that write the change of the transfers.
    """
    if row.is_final:
        return None
    status = row.status
    if any(fill.is_closed for fill in fills):
        status = _after(row, settled_reason(row.status, len(fills), transfers))
    received = _received(fills, transfers)
    if not more and (status, received) == (row.status, row.received):
        return None
    return OrderStep(step(row, now_ms, status=status, received=received), more=more)


def _received(fills: Sequence[DeltaFill], transfers: Sequence[OrderTransfer]) -> bytes:
    if transfers:
        return amount32(delivered(transfers))
    return amount32(sum(amount_of(fill.received) for fill in fills))


def _reason(
    row: DeltaOrderRow, facts: DeltaFacts, *, is_cancel_wanted: bool, failures_max: int
) -> DeltaReason | None:
    """Derive from the order's logs why its status has to change; None if the logs require no change."""
    if any(fill.is_closed for fill in facts.fills):
        if facts.transfers:
            return settled_reason(row.status, len(facts.fills), facts.transfers)
        return _W.SETTLED
    if facts.nonce_used is not None:
        return _W.NONCE_INVALIDATED if facts.nonce_used.order_hash is None else _W.NONCE_USED
    match row.status:
        case _S.COMPLETED:
            return _W.FILL_GONE_CANCEL if is_cancel_wanted else _W.FILL_GONE
        case _S.BRIDGING | _S.REFUNDING | _S.REFUNDED:
            return _W.ORIGIN_GONE_CANCEL if is_cancel_wanted else _W.ORIGIN_GONE
        case _S.CANCELLED if not is_cancel_wanted:
            return _W.NONCE_FREE
        case _S.FAILED if row.failures < failures_max:
            return _W.NONCE_FREE
        case _S.AWAITING_SIGNATURE if facts.is_pre_signed:
            return _W.SIGNED
        case _:
            return None


def _after(row: DeltaOrderRow, reason: DeltaReason) -> OrderStatus:
    """Return the status to which `reason` moves the order; its present status if no transition fits."""
    return DELTA_LIFECYCLE.after(row.status, reason) or row.status


def _moved(
    row: DeltaOrderRow,
    reason: DeltaReason,
    now_ms: int,
    effects: tuple[Intent, ...] = (),
    more: tuple[Change, ...] = (),
) -> DeltaStep | None:
    """Make the step to the status to which `reason` moves the order; None if no transition fits."""
    status = DELTA_LIFECYCLE.after(row.status, reason)
    return None if status is None else OrderStep(step(row, now_ms, status=status), effects, more)


def _waits_active(row: DeltaOrderRow) -> bool:
    """Whether the order is a limit order or TWAP, which is ACTIVE while it waits for its price or time."""
    is_scheduled = row.kind in (row.kind.TWAP_ORDER, row.kind.TWAP_BUY_ORDER)
    return is_scheduled or row.type is OrderType.LIMIT


def _is_final(status: OrderStatus, facts: DeltaFacts, intended: Sequence[Effect]) -> bool:
    if not all(transfer.is_final for transfer in facts.transfers):
        return False
    closing = [fill.block_number for fill in facts.fills if fill.is_closed]
    if status in SETTLED_WHOLE:
        return bool(closing) and closing[0] <= facts.final_height
    if any(effect.kind == SETTLE for effect in intended):
        return False
    ended_at = facts.nonce_used.block_number if facts.nonce_used is not None else facts.ended_at
    return ended_at is not None and ended_at <= facts.final_height


def _is_in_vain(effect: Effect, status: OrderStatus) -> bool:
    """Whether an unfinished effect of an ended order counts as failed.

    A `cancel` effect failed if the order was filled; a `settle` effect failed if the order was not filled.
    """
    return (effect.kind == SETTLE) != (status in SETTLED_WHOLE)
