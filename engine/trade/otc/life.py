"""Life cycle steps of an OTC order: functions from its row and an occurrence to its next row. Pure.

`OTC_LIFECYCLE` (lifecycles.md) has the transitions of each reason; each function here checks the
condition of its reason, and takes the next state from the table.

Each function returns None for no change, so that it can be called again with the new row after another writer
has changed the order first. Fills and cancellations have happened and cannot be refused. The unfilled amount
of an order, its end on chain and its transaction hash are therefore computed from all of its logs each time,
independently of the earlier row; the same logs in another sequence, or twice, give the same row. An order
filled in whole is FULFILLED even if its maker has cancelled it. The transaction is the cancellation's if the
order is CANCELLED, else the last fill's.

Source: spec 2.5.
Choice: A partial fill changes the rest and the transaction, not the status; undone, both return.
Choice: A cancellation counts if the order's maker made it: the contract stores cancellations of any sender.
Choice: An expired order stays EXPIRED, except for timely events that are indexed late: its last fill, and a
    cancellation in a block up to its expiry. A late partial fill reduces the rest.
Choice: A reopened order is PENDING, SUSPENDED where the last known funds do not cover it, or DRAFT where its
    maker is a contract and nothing is filled: the contract then has to accept the signature again. Its
    balances are 0 until they are read again.
Choice: Finality of an end is no event: `updatedAt` stays the time of the end.
Choice: A contract's first acceptance of a signature counts until the order ends; the contract is not asked
    again.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ....codecs.messages.vocabulary import OtcState
from ...store.rows import NEVER_S, OtcCancel, OtcFill, OtcOrderRow, amount32, amount_of
from ..orders.lifecycles import OTC_LIFECYCLE, OtcReason
from ..orders.order_units import step
from ..orders.step import OrderStep
from .balances import OrderBacking

_S, _W = OtcState, OtcReason
LIVE = OTC_LIFECYCLE.before(_W.EXPIRY)
BACKED = LIVE - OTC_LIFECYCLE.before(_W.ACCEPTED)
"""States of OTC orders to which a part of the maker's funds may be assigned: PENDING and SUSPENDED."""
ENDED = OTC_LIFECYCLE.terminal()

_NONE32 = amount32(0)
_NO_FUNDS = {"maker_balance": _NONE32, "reserved": _NONE32, "swappable": _NONE32}


class OtcFacts(Struct, frozen=True):
    """Logs of an OTC order up to one block, and the other facts that determine the order's state.

    Attributes:
        fills, cancels: logs of the order, in any sequence and possibly repeated. `cancels` may contain
            cancellations by other senders than the maker, which do not count.
        filled_before: raw units of the maker's asset that were filled before the indexer followed the chain.
        final_height: height up to which blocks are final.
        ended_at: for an order that ended without a log (by expiry), the last indexed height when the end was
            first noticed; None if unknown.
        is_by_contract: whether a reopened order without fills becomes a DRAFT, since its maker is a contract,
            whose acceptance of the signature is unknown.
        is_short: whether the maker's last known funds do not cover the order.
    """

    fills: Sequence[OtcFill]
    cancels: Sequence[OtcCancel]
    filled_before: int
    final_height: int
    ended_at: int | None = None
    is_by_contract: bool = False
    is_short: bool = False


def signed(row: OtcOrderRow, now_ms: int, *, is_backed: bool) -> OrderStep[OtcOrderRow] | None:
    """Return the life cycle step of a DRAFT order after its maker's contract has accepted the signature.

    The result is None if the order is no DRAFT. The next read of the maker's funds sets the order's balances.

    Args:
        is_backed: whether the maker's funds cover the order's unfilled amount.
    """
    return _moved(row, _W.ACCEPTED if is_backed else _W.ACCEPTED_SHORT, now_ms)


def stood(row: OtcOrderRow, standing: OrderBacking, now_ms: int) -> OrderStep[OtcOrderRow] | None:
    """Return the life cycle step to the status and balances that the maker's funds imply; None for no change.

    The result is also None if the order was signed or has ended since the funds were read.

    Args:
        standing: status and balances, computed with the unfilled amount in `row`.
    """
    if row.status not in LIVE or (row.status is _S.DRAFT) != (standing.status is _S.DRAFT):
        return None
    after = step(
        row,
        now_ms,
        status=_after(row, _W.FUNDS_BACK if standing.status is _S.PENDING else _W.FUNDS_LACK),
        maker_balance=amount32(standing.maker_balance),
        reserved=amount32(standing.reserved),
        swappable=amount32(standing.swappable),
    )
    return None if _shown(after) == _shown(row) else OrderStep(after)


def expired(row: OtcOrderRow, now_s: int, now_ms: int) -> OrderStep[OtcOrderRow] | None:
    """Return the step to EXPIRED; None if the order's expiry has not passed, or the order has ended.

    Args:
        now_s: time that the expiry is compared with, Unix seconds.
        now_ms: time that the step records, Unix milliseconds.
    """
    is_over = row.expires_s != NEVER_S and now_s > row.expires_s
    return _moved(row, _W.EXPIRY, now_ms, **_NO_FUNDS) if is_over else None


def gave_way(row: OtcOrderRow, now_ms: int) -> OrderStep[OtcOrderRow] | None:
    """Return the step to EXPIRED of an order that gives its place to another; None if the order has ended.

    The venue then forgets the order: the end is final, and later fills on the chain change it no more.
    """
    return _moved(row, _W.GAVE_WAY, now_ms, is_final=True, **_NO_FUNDS)


def step_from_logs(row: OtcOrderRow, facts: OtcFacts, now_ms: int) -> OrderStep[OtcOrderRow] | None:
    """Return the life cycle step to the state that an order's fills and cancellations on chain imply.

    The result is None if the row already has this state, or if the order's end is final.
    """
    if row.is_final:
        return None
    fills = sorted({_log(fill): fill for fill in facts.fills}.values(), key=_place)
    given = facts.filled_before + sum(amount_of(fill.maker_amount) for fill in fills)
    left = max(amount_of(row.maker_amount) - given, 0)
    cancel = min((cancel for cancel in facts.cancels if _counts(cancel, row)), key=_place, default=None)
    reason = _reason(row, facts, left, cancel)
    status = row.status if reason is None else _after(row, reason)
    last = cancel if status is _S.CANCELLED else (fills[-1] if fills else None)
    left32 = amount32(left)
    if status in ENDED or row.status in ENDED:
        funds = _NO_FUNDS
    else:  # the last known balances, until the funds are read again
        is_pending = status is _S.PENDING
        funds = {
            "maker_balance": min(row.maker_balance, left32),
            "reserved": min(row.reserved, left32),
            "swappable": min(row.swappable, left32) if is_pending else _NONE32,
        }
    after = step(
        row,
        now_ms,
        status=status,
        remaining=left32,
        transaction_hash=None if last is None else last.tx_hash,
        is_final=status in ENDED and _is_final(status, facts, cancel),
        **funds,
    )
    if _shown(after) == _shown(row):  # callers repeat this function: no version and no event without a change
        return None
    is_only_final = _shown(replace(after, is_final=False)) == _shown(row)
    return OrderStep(replace(after, updated_ms=row.updated_ms) if is_only_final else after)


def _reason(row: OtcOrderRow, facts: OtcFacts, left: int, cancel: OtcCancel | None) -> OtcReason | None:
    """Determine from an order's logs the reason for a change of the order's state; None for no change.

    Args:
        left: unfilled raw units of the maker's asset.
        cancel: first cancellation that counts for the order, if any.
    """
    if not left:
        return _W.FILLED
    if cancel is not None:
        return _W.CANCELLED
    is_begun = left < amount_of(row.maker_amount)
    match row.status:
        case _S.DRAFT if is_begun:  # a fill shows that the contract accepts the signature
            return _W.ACCEPTED_SHORT if facts.is_short else _W.ACCEPTED
        case _S.FULFILLED | _S.CANCELLED if facts.is_by_contract and not is_begun:
            return _W.REOPENED_UNSIGNED
        case _S.FULFILLED | _S.CANCELLED:
            return _W.REOPENED_SHORT if facts.is_short else _W.REOPENED
        case _:
            return None


def _after(row: OtcOrderRow, reason: OtcReason) -> OtcState:
    """Return the state after the transition for a reason; the present state if no such transition exists."""
    return OTC_LIFECYCLE.after(row.status, reason) or row.status


def _moved(
    row: OtcOrderRow, reason: OtcReason, now_ms: int, **changed: bytes | bool
) -> OrderStep[OtcOrderRow] | None:
    """Return the life cycle step of an order for a reason; None if no such transition exists.

    Args:
        changed: new values of further columns of the row, by name.
    """
    status = OTC_LIFECYCLE.after(row.status, reason)
    return None if status is None else OrderStep(step(row, now_ms, status=status, **changed))


def _counts(cancel: OtcCancel, row: OtcOrderRow) -> bool:
    is_in_time = row.status is not _S.EXPIRED or cancel.at_ms // 1_000 <= row.expires_s
    return cancel.maker == row.maker and is_in_time


def _is_final(status: OtcState, facts: OtcFacts, cancel: OtcCancel | None) -> bool:
    heights = [fill.block_number for fill in facts.fills]
    if cancel is not None:
        heights.append(cancel.block_number)
    elif status is _S.EXPIRED:
        if facts.ended_at is None:
            return False
        heights.append(facts.ended_at)
    return max(heights, default=0) <= facts.final_height


def _shown(row: OtcOrderRow) -> tuple[object, ...]:
    """Return the columns of a row that users can see, and whether the order's end is final."""
    balances = row.remaining, row.maker_balance, row.reserved, row.swappable
    return row.status, *balances, row.transaction_hash, row.is_final


def _place(row: OtcFill | OtcCancel) -> tuple[int, int]:
    return row.block_number, row.log_index


def _log(row: OtcFill) -> tuple[bytes, bytes, int]:
    return row.block_hash, row.tx_hash, row.log_index
