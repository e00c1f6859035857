"""OTC orders in memory: what their logs make of them, what stands behind them, how they come and go."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.errors import OrderNotFound, StoreError, StoreUnavailable
from cambist.config.limits import OTC_LIVE_UNLISTED_EXPIRY_S, VENUE_STEP_TRIES_MAX
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import NEVER_S, OtcCancel, OtcFill, OtcOrderRow, amount32, amount_of
from cambist.engine.store.tables import OTC_CANCEL, OTC_FILL, OTC_ORDER
from cambist.engine.store.units import Conflict, Done, Fence, Unit, drop, new, put
from cambist.engine.trade.orders.places import OrderStake
from cambist.engine.trade.otc.life import gave_way
from cambist.engine.trade.otc.live_orders import OtcOrders, is_endless
from support.otc.otc_engine import MAKER, OtcVenue, a_document, an_order, idle
from support.otc.otc_logs import a_cancel, a_fill
from support.store.stores import BOB, CAROL, NOW_MS, USDC, WETH, hash_of, moved

_S = OtcState
LATER_MS = NOW_MS + 5_000


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[OtcVenue]:
    async with idle(tmp_path) as venue:
        yield venue


async def logged(venue: OtcVenue, *logs: OtcFill | OtcCancel) -> None:
    """The indexer stored logs, and found no order to change."""
    changes = [put(OTC_FILL if isinstance(log, OtcFill) else OTC_CANCEL, log) for log in logs]
    assert await venue.store.write(Unit(tuple(changes))) == Done()


async def caught_up(venue: OtcVenue, row: OtcOrderRow, *, is_short: bool = False) -> OtcOrderRow | None:
    return await venue.orders.catch_up(row.order_hash, LATER_MS, lambda _: is_short)


def counts(venue: OtcVenue) -> tuple[int, int]:
    """(steps, conflicts) so far."""
    told = venue.orders.statistics()
    return told.steps, told.conflicts


# --- Catching up with logs ------------------------------------------------------------------------------


async def test_an_order_is_behind_until_its_logs_are_read(venue: OtcVenue, mock_clock: object) -> None:
    row = await venue.submit(an_order())
    assert venue.live(row).is_behind
    assert await caught_up(venue, row) == row
    assert (venue.live(row).is_behind, counts(venue)) == (False, (0, 0))


async def test_logs_make_a_new_row_in_store_and_memory(venue: OtcVenue, mock_clock: object) -> None:
    row = await venue.submit(an_order())
    await logged(venue, a_fill(row, 40))
    for _ in range(2):
        after = await caught_up(venue, row)
        assert after is not None
        assert (amount_of(after.remaining), after.version, after.updated_ms) == (60, 2, LATER_MS)
        assert await venue.row(row) == after == venue.live(row).row
        assert (venue.live(row).is_behind, counts(venue)) == (False, (1, 0))


@pytest.mark.parametrize("is_short", [True, False])
async def test_a_draft_that_was_filled_in_part_is_suspended_only_where_funds_are_short(
    venue: OtcVenue, mock_clock: object, is_short: bool
) -> None:
    row = await venue.submit(an_order(status=_S.DRAFT))
    await logged(venue, a_fill(row, 40))
    after = await caught_up(venue, row, is_short=is_short)
    assert after is not None
    assert after.status is (_S.SUSPENDED if is_short else _S.PENDING)


async def test_an_order_that_is_not_in_memory_or_nowhere(venue: OtcVenue, mock_clock: object) -> None:
    assert await caught_up(venue, an_order()) is None
    row = await venue.submit(an_order())
    assert await venue.store.write(Unit((drop(OTC_ORDER, row),))) == Done()
    with pytest.raises(OrderNotFound):
        await caught_up(venue, row)


@pytest.mark.parametrize(
    ("epochs", "reason"), [(None, "another engine runs this order"), (1, "was not changed")]
)
async def test_no_order_is_changed_that_another_engine_runs(
    venue: OtcVenue,
    mock_clock: object,
    monkeypatch: pytest.MonkeyPatch,
    epochs: int | None,
    reason: str,
) -> None:
    """The lease is lost, or will be found lost by the store."""
    row = await venue.submit(an_order())
    await logged(venue, a_fill(row, 40))
    known = venue.leases.fence(row.shard)
    assert known is not None
    fence = None if epochs is None else Fence(row.shard, known.epoch + epochs)
    monkeypatch.setattr(venue.leases, "fence", lambda _: fence)
    with pytest.raises(StoreUnavailable, match=reason):
        await caught_up(venue, row)
    assert (await venue.row(row), venue.live(row).row, counts(venue)) == (row, row, (0, 0))


@pytest.mark.parametrize("times", [1, VENUE_STEP_TRIES_MAX - 1, VENUE_STEP_TRIES_MAX])
async def test_an_order_that_others_change_meanwhile_is_read_again_so_many_times(
    venue: OtcVenue, mock_clock: object, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    row = await venue.submit(an_order())
    await logged(venue, a_fill(row, 40))
    read, newest = venue.store.read, row

    async def overtaken(*queries: Query) -> Any:
        nonlocal newest
        found = await read(*queries)
        if newest.version - row.version < times:
            newest = await moved(venue.store, newest, status=_S.SUSPENDED)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(venue.store, "read", overtaken)
        if times == VENUE_STEP_TRIES_MAX:
            with pytest.raises(StoreUnavailable, match=f"changed by others {times} times meanwhile"):
                await caught_up(venue, row)
        else:
            after = await caught_up(venue, row)
            assert after is not None
            assert (after.status, amount_of(after.remaining)) == (_S.SUSPENDED, 60)
    assert counts(venue) == (times < VENUE_STEP_TRIES_MAX, times)


# --- Coming into memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "ended_at"), [(_S.FULFILLED, 12), (_S.CANCELLED, 15), (_S.EXPIRED, None), (_S.PENDING, None)]
)
async def test_an_order_that_is_loaded_has_ended_at_the_last_of_its_logs(
    venue: OtcVenue, mock_clock: object, status: OtcState, ended_at: int | None
) -> None:
    row = an_order()
    fills = [a_fill(row, 40, block=12), a_fill(row, 60 if status is _S.FULFILLED else 1, block=10)]
    cancels = [a_cancel(row, block=15), a_cancel(row, block=11)] if status is _S.CANCELLED else []
    await venue.submit(row)
    await logged(venue, *fills, *cancels)
    row = await moved(venue.store, row, status=status)
    venue.orders.leave(())
    await venue.orders.load([row], ())
    assert (venue.live(row).ended_at, venue.live(row).is_behind) == (ended_at, True)
    after = await caught_up(venue, row)
    assert after is not None
    venue.orders.leave(())
    await venue.orders.load([after], ())
    assert (venue.live(row).ended_at, venue.live(row).is_behind) == (ended_at, False)


async def test_a_row_without_a_document_is_no_order(venue: OtcVenue, mock_clock: object) -> None:
    row = an_order()
    assert await venue.store.write(Unit((new(OTC_ORDER, row),))) == Done()
    await venue.orders.load([row], ())
    assert len(venue.orders) == 0


async def test_an_order_that_the_store_refuses_is_not_kept(
    venue: OtcVenue, mock_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(_: Unit) -> Conflict:
        return Conflict(OTC_ORDER.name, None)

    monkeypatch.setattr(venue.store, "write", refused)
    with pytest.raises(StoreError, match="an order was not kept"):
        await venue.submit(an_order())
    assert len(venue.orders) == 0


async def test_an_order_that_is_nowhere_is_not_signed(venue: OtcVenue, mock_clock: object) -> None:
    with pytest.raises(OrderNotFound):
        await venue.orders.sign(hash_of(9), bytes(65), None, lambda _: None)


# --- Listed tokens, stakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expires_s", "expected"),
    [
        (NOW_MS // 1_000 + 1, False),
        (NOW_MS // 1_000 + OTC_LIVE_UNLISTED_EXPIRY_S, False),
        (NOW_MS // 1_000 + OTC_LIVE_UNLISTED_EXPIRY_S + 1, True),
        (NEVER_S, True),
    ],
)
@pytest.mark.parametrize("into_s_ms", [0, 999])
def test_an_order_is_endless_that_expires_late_or_never(
    expires_s: int, into_s_ms: int, expected: bool
) -> None:
    assert is_endless(an_order(created_ms=NOW_MS + into_s_ms, expires_s=expires_s)) == expected


def orders_of(venue: OtcVenue) -> OtcOrders:
    """Orders of a process where WETH and USDC are listed on chain 1, and up to 10 raw units are small."""
    return OtcOrders(
        venue.store,
        venue.leases,
        lambda chain_id, token: chain_id == 1 and token in (WETH, USDC),
        lambda row: amount_of(row.maker_amount) <= 10,
    )


@pytest.mark.parametrize(
    ("columns", "causer", "stake"),
    [
        ({}, "key a", OrderStake.BACKED),
        ({"maker_amount": amount32(11)}, "", OrderStake.BACKED),
        ({"maker_amount": amount32(10)}, "network a", OrderStake.UNBACKED),
        ({"maker_amount": amount32(10)}, "key a", OrderStake.KEYED),
        ({"status": _S.SUSPENDED}, "", OrderStake.UNBACKED),
        ({"status": _S.DRAFT}, "key a", OrderStake.KEYED),
        ({"maker_asset": CAROL}, "key a", OrderStake.UNLISTED),
        ({"taker_asset": CAROL}, "", OrderStake.UNLISTED),
        ({"chain_id": 2}, "", OrderStake.UNLISTED),
        ({"status": _S.EXPIRED}, "", None),
        ({"status": _S.CANCELLED, "maker_asset": CAROL}, "", None),
    ],
)
async def test_what_stands_behind_an_order(
    venue: OtcVenue, mock_clock: object, columns: dict[str, Any], causer: str, stake: OrderStake | None
) -> None:
    orders, row = orders_of(venue), an_order(**columns)
    assert orders.stake_of(row, causer) is stake
    if stake is not None:
        await orders.add(row, a_document(row), causer)
        assert orders.places.count(stake) == orders.places.total == 1


async def test_orders_of_unlisted_tokens_are_counted_until_they_leave(
    venue: OtcVenue, mock_clock: object
) -> None:
    orders = orders_of(venue)
    soon = NOW_MS // 1_000 + 1_000
    rows = [
        an_order(1, taker_asset=CAROL),
        an_order(2, taker_asset=CAROL, expires_s=soon),
        an_order(3, maker_asset=CAROL, maker=BOB),
        an_order(4),
    ]
    for row in rows:
        await orders.add(row, a_document(row))
    left = [(orders.unlisted(MAKER), orders.unlisted(BOB), orders.endless)]
    for row in (rows[3], rows[0], rows[1], rows[2]):
        await orders.step(row.order_hash, lambda now: gave_way(now, NOW_MS))
        left.append((orders.unlisted(MAKER), orders.unlisted(BOB), orders.endless))
    assert left == [(2, 1, 2), (2, 1, 2), (1, 1, 1), (0, 1, 1), (0, 0, 0)]
    assert orders._unlisted == {}, "nothing is kept of makers that are gone"
