"""A single step of the chain that changes very many OTC orders at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.limits import VENUE_LOAD_ORDERS
from cambist.engine.chain.index.indexer import Advance
from cambist.engine.chain.index.ring import Mark
from cambist.engine.store.leases import Leases
from cambist.engine.store.queries import IDS_MAX
from cambist.engine.store.rows import (
    NEVER_S,
    OrderDocument,
    OtcCancel,
    OtcCancelUntil,
    OtcFill,
    OtcOrderRow,
    amount32,
)
from cambist.engine.store.store import Store
from cambist.engine.store.tables import OTC_CANCEL, OTC_DOCUMENT, OTC_FILL, OTC_ORDER
from cambist.engine.store.units import Done, Unit, new, put
from cambist.engine.trade.otc.document import encode_document
from cambist.engine.trade.otc.live_orders import OtcOrders, cancel_by
from cambist.engine.trade.otc.projection import OtcProjection
from support.otc.otc_engine import a_document
from support.store.store_work import now_ms
from support.store.stores import NOW_MS, Engine, an_otc_order, found, hash_of

MANY = max(IDS_MAX, 2 * VENUE_LOAD_ORDERS) + 100
CONFIRMATIONS = 3
TOP = 50


@asynccontextmanager
async def many_orders(
    folder: Path, status: OtcState
) -> AsyncIterator[tuple[Store, OtcOrders, OtcProjection, list[OtcOrderRow]]]:
    """A store with MANY orders of a status, which are in memory."""
    rows = [an_otc_order(number, status=status) for number in range(MANY)]
    body = encode_document(a_document(an_otc_order(status=OtcState.DRAFT)))
    async with Engine("sqlite:cambist.sqlite3", folder, in_process=True).open() as store:
        for at in range(0, MANY, 100):
            some = rows[at : at + 100]
            documents = [put(OTC_DOCUMENT, OrderDocument(row.order_hash, body)) for row in some]
            assert await store.write(Unit((*(new(OTC_ORDER, row) for row in some), *documents))) == Done()
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        orders = OtcOrders(store, leases)
        projection = OtcProjection(
            store, orders, confirmations=CONFIRMATIONS, is_short=lambda _: False, now_ms=lambda: NOW_MS
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            await orders.load(rows, ())
            assert len(orders) == MANY
            yield store, orders, projection, rows
            nursery.cancel_scope.cancel()


def a_fill(row: OtcOrderRow, at: int, amount: bytes) -> OtcFill:
    block = row.chain_id, hash_of(TOP), hash_of(TOP + 1), at, TOP
    assets = row.maker_asset, row.taker_asset
    return OtcFill(*block, row.order_hash, row.maker, row.taker, *assets, amount, amount32(9), NOW_MS)


def a_step(number: int, *logs: OtcFill | OtcCancel, chain_id: int = 1) -> Advance:
    rows = tuple((OTC_FILL if isinstance(log, OtcFill) else OTC_CANCEL, log) for log in logs)
    return Advance(chain_id, Mark(number, hash_of(number)), (), (), rows)


async def test_a_step_may_fill_more_orders_than_the_store_is_asked_about_at_once(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OtcState.PENDING) as (store, _, projection, rows):
        fills = [a_fill(row, at, row.maker_amount) for at, row in enumerate(rows)]
        changes = await projection.changes(a_step(TOP, *fills))
        assert await store.write(Unit(tuple(changes))) == Done()
        after = [await found(store, row) for row in rows]
    assert {(one.status, one.remaining, one.transaction_hash) for one in after if one is not None} == {
        (OtcState.FULFILLED, amount32(0), hash_of(TOP + 1))
    }
    assert len(after) == MANY


async def test_orders_that_have_ended_become_final_by_so_many_a_step(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OtcState.EXPIRED) as (store, orders, projection, rows):
        assert not await projection.changes(a_step(TOP))
        finals: list[int] = []
        for number in range(TOP + CONFIRMATIONS - 1, TOP + CONFIRMATIONS + 3):
            changes = await projection.changes(a_step(number))
            if changes:
                assert await store.write(Unit(tuple(changes))) == Done()
            kept = [await found(store, row) for row in rows if orders.get(row.order_hash) is not None]
            ended = [one for one in kept if one is not None and one.is_final]
            finals.append(len(ended))
            await orders.step_all([one.order_hash for one in ended], lambda _: None, is_fenced=False)
    rest = MANY - 2 * VENUE_LOAD_ORDERS
    assert finals == [VENUE_LOAD_ORDERS, VENUE_LOAD_ORDERS, rest, 0]


async def test_a_log_of_another_chain_or_that_is_undone_in_the_same_step_is_none(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OtcState.PENDING) as (store, _, projection, rows):
        fill = a_fill(rows[0], 0, amount32(5))
        assert not await projection.changes(a_step(TOP, fill, chain_id=2))
        changes = await projection.changes(a_step(TOP, fill))
        assert await store.write(Unit((put(OTC_FILL, fill), *changes))) == Done()
        undone = Advance(1, Mark(TOP - 1, hash_of(TOP - 1)), ((OTC_FILL, fill),), (), ())
        assert await store.write(Unit(tuple(await projection.changes(undone)))) == Done()
        after = await found(store, rows[0])
    assert after is not None
    assert (after.remaining, after.transaction_hash) == (rows[0].remaining, None)


@pytest.mark.parametrize(
    ("expires_s", "is_cancelled"),
    [(TOP - 1, True), (TOP, True), (TOP + 1, False), (NEVER_S, True)],
)
def test_a_bulk_cancellation_ends_what_expires_by_its_second_or_never(
    expires_s: int, is_cancelled: bool
) -> None:
    row = an_otc_order(expires_s=expires_s)
    until = OtcCancelUntil(row.chain_id, hash_of(TOP), hash_of(TOP + 1), 0, TOP, row.maker, TOP, NOW_MS)
    assert (cancel_by(until, row) is not None) == is_cancelled


def test_a_bulk_cancellation_is_one_of_each_order_of_its_maker_on_its_chain() -> None:
    row = an_otc_order(expires_s=TOP)
    until = OtcCancelUntil(1, hash_of(TOP), hash_of(TOP + 1), 3, TOP, row.maker, TOP, NOW_MS)
    expected = OtcCancel(1, hash_of(TOP), hash_of(TOP + 1), 3, TOP, row.order_hash, row.maker, NOW_MS)
    assert cancel_by(until, row) == expected
    assert cancel_by(until, replace(row, maker=row.taker)) is None
    assert cancel_by(until, replace(row, chain_id=2)) is None
