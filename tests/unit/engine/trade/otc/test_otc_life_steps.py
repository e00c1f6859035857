"""The steps of an OTC order's life, one by one: permitted steps, and facts that the chain decides."""

from typing import Any

import pytest

from cambist.codecs.messages.vocabulary import OtcState
from cambist.engine.store.rows import NEVER_S, OtcCancel, OtcFill, OtcOrderRow, amount32, amount_of
from cambist.engine.trade.orders.lifecycles import OTC_LIFECYCLE
from cambist.engine.trade.orders.step import OrderStep
from cambist.engine.trade.otc import life
from cambist.engine.trade.otc.balances import OrderBacking
from cambist.engine.trade.otc.life import ENDED, LIVE, OtcFacts
from support.otc.otc_logs import a_cancel, a_fill
from support.store.stores import ALICE, BOB, NOW_MS, ONE, an_otc_order, hash_of

_S = OtcState
NONE = amount32(0)
LATER_MS = NOW_MS + 5_000


def an_order(status: OtcState = _S.PENDING, **changed: Any) -> OtcOrderRow:
    """An order, with funds if its status has some."""
    if status in ENDED:
        changed = {"maker_balance": NONE, "reserved": NONE, "swappable": NONE} | changed
    elif status is not _S.PENDING:
        changed = {"swappable": NONE} | changed
    return an_otc_order(1, status=status, **changed)


def facts(*logs: OtcFill | OtcCancel, **changed: Any) -> OtcFacts:
    fills = [log for log in logs if isinstance(log, OtcFill)]
    cancels = [log for log in logs if isinstance(log, OtcCancel)]
    values: dict[str, Any] = {"filled_before": 0, "final_height": 0}
    return OtcFacts(fills, cancels, **values | changed)


def told(row: OtcOrderRow, known: OtcFacts) -> OtcOrderRow | None:
    return checked(row, life.step_from_logs(row, known, LATER_MS))


def checked(row: OtcOrderRow, step: OrderStep[OtcOrderRow] | None) -> OtcOrderRow | None:
    """The next row, if there is one, as the tables allow it."""
    if step is None:
        return None
    after = step.after
    OTC_LIFECYCLE.check(row.status, after.status, is_final=row.is_final)
    is_news = (after.status, after.remaining) != (row.status, row.remaining) or not after.is_final
    assert (after.version, after.updated_ms) == (row.version + 1, LATER_MS if is_news else row.updated_ms)
    assert (step.effects, step.more) == ((), ())
    return after


def funds(row: OtcOrderRow) -> tuple[int, int, int]:
    return amount_of(row.maker_balance), amount_of(row.reserved), amount_of(row.swappable)


# --- Logs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", sorted(LIVE))
def test_a_live_order_that_is_filled_whole_is_fulfilled(status: OtcState) -> None:
    row = an_order(status)
    after = told(row, facts(a_fill(row)))
    assert after is not None
    assert (after.status, after.remaining, after.transaction_hash) == (_S.FULFILLED, NONE, hash_of(1_010))
    assert funds(after) == (0, 0, 0)
    assert not after.is_final


@pytest.mark.parametrize("status", [_S.PENDING, _S.SUSPENDED])
def test_a_part_leaves_the_status_and_is_taken_back_with_its_transaction(status: OtcState) -> None:
    row = an_order(status)
    first, second = a_fill(row, ONE // 4), a_fill(row, ONE // 2, block=11)
    after = told(row, facts(first))
    assert after is not None
    assert (after.status, amount_of(after.remaining)) == (status, ONE - ONE // 4)
    assert after.transaction_hash == first.tx_hash
    assert funds(after)[:2] == (ONE - ONE // 4,) * 2
    assert funds(after)[2] == (ONE - ONE // 4 if status is _S.PENDING else 0)
    later = told(after, facts(second, first))
    assert later is not None
    assert (amount_of(later.remaining), later.transaction_hash) == (ONE // 4, second.tx_hash)
    back = told(later, facts(first))
    assert back is not None
    assert (back.remaining, back.transaction_hash) == (after.remaining, first.tx_hash)
    none = told(back, facts())
    assert none is not None
    assert (none.status, none.remaining, none.transaction_hash) == (status, row.remaining, None)
    assert funds(none)[0] <= ONE, "what is there is not known before it is read"


def test_the_same_log_twice_is_one_and_nothing_new_is_no_step() -> None:
    row = an_order()
    fill = a_fill(row, ONE // 2)
    after = told(row, facts(fill, fill))
    assert after is not None
    assert amount_of(after.remaining) == ONE // 2
    assert told(after, facts(fill, fill, fill)) is None
    assert told(row, facts()) is None


@pytest.mark.parametrize("status", sorted(LIVE))
def test_only_the_makers_own_cancellation_cancels(status: OtcState) -> None:
    row = an_order(status)
    stranger = a_cancel(row, sender=BOB)
    assert told(row, facts(stranger)) is None
    own = a_cancel(row, block=21)
    after = told(row, facts(stranger, own))
    assert after is not None
    assert (after.status, after.transaction_hash, after.remaining) == (
        _S.CANCELLED,
        own.tx_hash,
        row.remaining,
    )
    assert funds(after) == (0, 0, 0)


def test_of_several_cancellations_of_the_maker_the_first_on_the_chain_is_shown() -> None:
    row = an_order()
    first, second = a_cancel(row, block=21), a_cancel(row, block=22)
    for cancels in ((first, second), (second, first)):
        after = told(row, facts(*cancels))
        assert after is not None
        assert (after.status, after.transaction_hash) == (_S.CANCELLED, first.tx_hash)
    assert told(row, facts(second, first, final_height=20)) == told(row, facts(first))
    final = told(row, facts(second, first, final_height=21))
    assert final is not None
    assert final.is_final, "the first is enough"


def test_a_part_before_a_cancellation_counts() -> None:
    row = an_order()
    fill, cancel = a_fill(row, ONE // 4), a_cancel(row)
    after = told(row, facts(fill, cancel))
    assert after is not None
    assert (after.status, amount_of(after.remaining)) == (_S.CANCELLED, ONE - ONE // 4)
    assert after.transaction_hash == cancel.tx_hash
    open_again = told(after, facts(fill))
    assert open_again is not None
    assert (open_again.status, open_again.transaction_hash) == (_S.PENDING, fill.tx_hash)


def test_a_fill_whose_token_has_the_maker_cancel_is_before_and_after_the_cancellation() -> None:
    """The contract books a fill, calls the tokens, and logs it: a maker's token may cancel in between."""
    row = an_order()
    cancel = a_cancel(row, block=10)
    after = told(row, facts(a_fill(row, ONE // 4, log=1), cancel))
    assert after is not None
    assert (after.status, amount_of(after.remaining)) == (_S.CANCELLED, ONE - ONE // 4)


@pytest.mark.parametrize(
    ("ended", "log"), [(_S.FULFILLED, a_fill), (_S.CANCELLED, a_cancel)], ids=["filled", "cancelled"]
)
@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, _S.PENDING),
        ({"is_short": True}, _S.SUSPENDED),
        ({"is_by_contract": True}, _S.DRAFT),
        ({"is_by_contract": True, "filled_before": 1}, _S.PENDING),
        ({"is_by_contract": True, "filled_before": 1, "is_short": True}, _S.SUSPENDED),
    ],
)
def test_what_is_taken_back_opens_again_without_funds_until_they_are_read(
    ended: OtcState, log: Any, known: dict[str, Any], expected: OtcState
) -> None:
    row = an_order()
    after = told(row, facts(log(row), **known))
    assert after is not None
    assert after.status is ended
    again = told(after, facts(**known))
    assert again is not None
    assert (again.status, again.transaction_hash, funds(again)) == (expected, None, (0, 0, 0))
    assert amount_of(again.remaining) == ONE - known.get("filled_before", 0)


@pytest.mark.parametrize(("first", "second"), [(a_fill, a_cancel), (a_cancel, a_fill)])
def test_one_end_may_be_in_the_chain_in_place_of_the_other(first: Any, second: Any) -> None:
    row = an_order()
    ended = told(row, facts(first(row)))
    assert ended is not None
    other = told(ended, facts(second(row, block=30)))
    assert other is not None
    assert {ended.status, other.status} == {_S.FULFILLED, _S.CANCELLED}
    assert other.transaction_hash == hash_of(1_030)


def test_a_draft_that_was_filled_in_part_has_been_signed() -> None:
    row = an_order(_S.DRAFT)
    after = told(row, facts(a_fill(row, 1)))
    assert after is not None
    assert after.status is _S.PENDING
    short = told(row, facts(a_fill(row, 1), is_short=True))
    assert short is not None
    assert short.status is _S.SUSPENDED
    assert told(after, facts(is_by_contract=True)).status is _S.PENDING, "it accepted once"  # type: ignore[union-attr]


def test_an_expired_order_hears_what_happened_in_time() -> None:
    expires_s = NOW_MS // 1_000
    row = an_order(_S.EXPIRED, expires_s=expires_s)
    part = told(row, facts(a_fill(row, ONE // 4)))
    assert part is not None
    assert (part.status, amount_of(part.remaining)) == (_S.EXPIRED, ONE - ONE // 4)
    assert (part.transaction_hash, funds(part)) == (hash_of(1_010), (0, 0, 0))
    whole = told(part, facts(a_fill(row)))
    assert whole is not None
    assert whole.status is _S.FULFILLED
    cancelled = told(row, facts(a_cancel(row, at_ms=expires_s * 1_000 + 999)))
    assert cancelled is not None
    assert cancelled.status is _S.CANCELLED
    assert told(row, facts(a_cancel(row, at_ms=(expires_s + 1) * 1_000))) is None


def test_what_was_filled_before_the_chain_was_followed_counts() -> None:
    left = amount32(ONE // 4)
    row = an_order(remaining=left, maker_balance=left, reserved=left, swappable=left)
    assert told(row, facts(filled_before=ONE - ONE // 4)) is None
    after = told(row, facts(a_fill(row, ONE // 4), filled_before=ONE - ONE // 4))
    assert after is not None
    assert after.status is _S.FULFILLED


def test_an_end_without_logs_that_was_before_the_chain_was_followed_is_final_at_once() -> None:
    after = told(an_order(), facts(filled_before=ONE))
    assert after is not None
    assert (after.status, after.transaction_hash, after.is_final) == (_S.FULFILLED, None, True)


@pytest.mark.parametrize(
    ("status", "logs", "ended_at", "final_at"),
    [
        (_S.FULFILLED, (a_fill,), None, 10),
        (_S.CANCELLED, (a_cancel,), None, 20),
        (_S.EXPIRED, (), 30, 30),
        (_S.EXPIRED, (lambda row: a_fill(row, 1, block=31),), 30, 31),
    ],
)
def test_an_end_is_final_once_nothing_of_it_can_be_undone(
    status: OtcState, logs: Any, ended_at: int | None, final_at: int
) -> None:
    row = an_order(_S.EXPIRED if status is _S.EXPIRED else _S.PENDING)
    some = [log(row) for log in logs]
    before = told(row, facts(*some, final_height=final_at - 1, ended_at=ended_at)) or row
    assert (before.status, before.is_final) == (status, False)
    after = told(before, facts(*some, final_height=final_at, ended_at=ended_at))
    assert after is not None
    assert (after.status, after.is_final) == (status, True)
    assert told(after, facts(final_height=final_at)) is None, "nothing is undone any more"


def test_an_expired_order_is_not_final_before_somebody_knows_since_when() -> None:
    assert told(an_order(_S.EXPIRED), facts(final_height=10**9)) is None


# --- Funds, signatures, time ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", _S)
def test_funds_suspend_and_restore_what_is_signed_and_live(status: OtcState) -> None:
    row = an_order(status)
    for found in (OrderBacking(_S.SUSPENDED, 3, 2, 0), OrderBacking(_S.PENDING, 9, 8, 7)):
        after = checked(row, life.stood(row, found, LATER_MS))
        if status not in life.BACKED:
            assert after is None
        else:
            assert after is not None
            assert after.status is found.status
            assert funds(after) == (found.maker_balance, found.reserved, found.swappable)
            assert checked(after, life.stood(after, found, LATER_MS)) is None


def test_a_drafts_funds_are_told_and_it_stays_a_draft() -> None:
    row = an_order(_S.DRAFT)
    after = checked(row, life.stood(row, OrderBacking(_S.DRAFT, 5, 0, 0), LATER_MS))
    assert after is not None
    assert (after.status, funds(after)) == (_S.DRAFT, (5, 0, 0))
    signed_since = an_order(_S.SUSPENDED)
    assert life.stood(signed_since, OrderBacking(_S.DRAFT, 5, 0, 0), LATER_MS) is None


@pytest.mark.parametrize("status", _S)
@pytest.mark.parametrize("is_backed", [True, False])
def test_only_a_draft_is_signed(status: OtcState, *, is_backed: bool) -> None:
    row = an_order(status)
    after = checked(row, life.signed(row, LATER_MS, is_backed=is_backed))
    if status is not _S.DRAFT:
        assert after is None
    else:
        assert after is not None
        assert after.status is (_S.PENDING if is_backed else _S.SUSPENDED)
        assert funds(after)[2] == 0


@pytest.mark.parametrize("status", _S)
def test_only_what_lives_expires_and_not_before_its_time(status: OtcState) -> None:
    row = an_order(status, expires_s=1_000)
    assert life.expired(row, 1_000, LATER_MS) is None
    after = checked(row, life.expired(row, 1_001, LATER_MS))
    if status in ENDED:
        assert after is None
    else:
        assert after is not None
        assert (after.status, after.remaining, funds(after)) == (_S.EXPIRED, row.remaining, (0, 0, 0))


def test_an_order_without_an_expiry_never_expires() -> None:
    assert life.expired(an_order(expires_s=NEVER_S), 1 << 200, LATER_MS) is None


@pytest.mark.parametrize("status", _S)
def test_only_what_lives_gives_way_and_that_is_its_end_for_good(status: OtcState) -> None:
    row = an_order(status)
    after = checked(row, life.gave_way(row, LATER_MS))
    if status in ENDED:
        assert after is None
    else:
        assert after is not None
        assert (after.status, after.is_final, funds(after)) == (_S.EXPIRED, True, (0, 0, 0))
        assert (after.remaining, after.transaction_hash) == (row.remaining, row.transaction_hash)


def test_the_states_are_those_of_the_table() -> None:
    assert OTC_LIFECYCLE.terminal() == ENDED
    assert frozenset(_S) == ENDED | LIVE
    assert an_order().maker == ALICE
