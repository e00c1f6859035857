"""Rows in memory of a kind that has nothing beside them but a document."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
import structlog
import trio
import trio.testing
from msgspec import Struct

from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.errors import OrderNotFound, StoreUnavailable
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.store.follower import START, EventFollower
from cambist.engine.store.leases import Leases
from cambist.engine.store.queries import among
from cambist.engine.store.rows import OrderEvent, OtcOrderRow, amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import OTC_DOCUMENT, OTC_ORDER
from cambist.engine.store.units import Done, Unit, UnitOutcome, new, row_of
from cambist.engine.trade.orders.live_rows import Effects, LiveRows
from cambist.engine.trade.orders.order_units import OTC, step
from cambist.engine.trade.orders.places import OrderStake
from cambist.engine.trade.orders.step import OrderStep
from cambist.engine.trade.otc.life import gave_way
from support.chain.indexing import sqlite_engine
from support.store.store_work import now_ms
from support.store.stores import ALICE, BOB, NOW_MS, an_otc_order, document_of, hash_of, kept, moved


class Plain(Struct, eq=False):
    """An order and its document."""

    row: OtcOrderRow
    body: bytes
    ended_at: int | None = None
    causer: str = ""

    @property
    def order_hash(self) -> bytes:
        return self.row.order_hash


class PlainOrders(LiveRows[OtcOrderRow, Plain]):
    """Suspended ones give way to others.

    Attributes:
        broken: an order whose reading fails.
    """

    broken = b""

    async def _read_parts(
        self, rows: Sequence[OtcOrderRow], effects: Effects
    ) -> Mapping[bytes, bytes | None]:
        hashes = [row.order_hash for row in rows]
        (read,) = await self._store.read(among(OTC_DOCUMENT, "order_hash", hashes))
        found = {kept.order_hash: kept.body for values in read if (kept := row_of(OTC_DOCUMENT, values))}
        return {key: found.get(key) for key in hashes}

    def _made(self, row: OtcOrderRow, parts: bytes | None, known: Plain | None) -> Plain | None:
        if row.order_hash == self.broken:
            raise ZeroDivisionError
        if known is not None:
            return known
        return None if parts is None else Plain(row, parts)

    def _stake(self, live: Plain) -> OrderStake | None:
        return OrderStake.UNBACKED if live.row.status is OtcState.SUSPENDED else None

    def _gives_way(self, row: OtcOrderRow, now_ms: int) -> OrderStep[OtcOrderRow] | None:
        return gave_way(row, now_ms) if row.status is OtcState.SUSPENDED else None


@asynccontextmanager
async def orders_of(folder: Path, *rows: OtcOrderRow) -> AsyncIterator[tuple[Store, PlainOrders]]:
    """A store with some orders, which are in memory, and who was told of each change."""
    async with sqlite_engine(folder).open() as store, trio.open_nursery() as nursery:
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        await nursery.start(leases.run)
        orders = PlainOrders(OTC, store, leases)
        for row in rows:
            await kept(store, row)
        await orders.load(rows, ())
        yield store, orders
        nursery.cancel_scope.cancel()


async def all_events(store: Store) -> list[OrderEvent]:
    """That there were."""
    return [event for _, event in await EventFollower(store, START).page()]


async def test_orders_are_counted_by_whoever_is_their_owner_and_by_status(tmp_path: Path) -> None:
    rows = [an_otc_order(1), an_otc_order(2), an_otc_order(3, maker=BOB, status=OtcState.DRAFT)]
    async with orders_of(tmp_path, *rows) as (_, orders):
        assert (orders.count_of(ALICE), orders.count_of(BOB)) == (2, 1)
        assert orders.statistics().orders == {OtcState.PENDING: 2, OtcState.DRAFT: 1}
        live = orders.get(rows[0].order_hash)
        assert live is not None
        assert live.body == document_of(rows[0])


async def test_what_has_ended_by_its_life_cycle_is_kept_until_that_is_final(tmp_path: Path) -> None:
    row = an_otc_order(1)
    async with orders_of(tmp_path, row) as (_, orders):
        for status in (OtcState.FULFILLED, OtcState.PENDING, OtcState.CANCELLED):

            def decide(row: OtcOrderRow, status: OtcState = status) -> OrderStep[OtcOrderRow]:
                return OrderStep(step(row, NOW_MS, status=status))

            await orders.step(row.order_hash, decide)
            ended = [] if status is OtcState.PENDING else [row.order_hash]
            assert orders.settled(1, 20, 19) == []
            assert orders.settled(1, 30, 20) == ended, "it was seen to have ended at 20"
            assert orders.settled(2, 30, 20) == []
        await orders.step(row.order_hash, lambda row: OrderStep(step(row, NOW_MS, is_final=True)))
        assert (len(orders), orders.count_of(ALICE), orders.settled(1, 30, 20)) == (0, 0, [])


async def test_changes_by_fills_are_counted_and_others_are_not(tmp_path: Path) -> None:
    row = an_otc_order(1)
    whole, part = row.remaining, amount32(1)
    async with orders_of(tmp_path, row) as (_, orders):
        for remaining, fills in ((part, 1), (part, 1), (whole, 1), (part, 2), (amount32(0), 3)):

            def decide(row: OtcOrderRow, remaining: bytes = remaining) -> OrderStep[OtcOrderRow]:
                return OrderStep(step(row, row.updated_ms + 1, remaining=remaining))

            await orders.step(row.order_hash, decide)
            assert orders.statistics().fills == fills


async def test_what_others_have_written_is_heard(tmp_path: Path) -> None:
    row = an_otc_order(1)
    async with orders_of(tmp_path, row) as (store, orders):
        told: list[tuple[bytes, int]] = []
        orders.watch(lambda live: told.append((live.order_hash, live.row.version)))
        after = await moved(store, row, status=OtcState.SUSPENDED)
        fresh = await kept(store, an_otc_order(2))
        await orders.hear(await all_events(store))
        assert {live.order_hash: live.row for live in orders} == {
            row.order_hash: after,
            fresh.order_hash: fresh,
        }
        assert told == [(row.order_hash, 2), (fresh.order_hash, 1)], "what is known is not told again"


async def test_many_that_others_have_written_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [an_otc_order(number) for number in range(40)]
    async with orders_of(tmp_path, *rows) as (store, orders):
        after = [await moved(store, row, status=OtcState.SUSPENDED) for row in rows]
        events = await all_events(store)
        assert len(events) == 80
        read = AsyncMock(wraps=store.read)
        monkeypatch.setattr(store, "read", read)
        await orders.hear(events)
        assert [live.row for live in orders] == after
        assert read.await_count == 2, "the rows, and what is beside them"
        await orders.hear(events)
        assert read.await_count == 2, "what is known is not read"


@pytest.mark.parametrize("is_answered", [True, False])
async def test_an_order_is_read_only_if_its_writer_here_gets_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_answered: bool
) -> None:
    row = an_otc_order(1)
    async with orders_of(tmp_path, row) as (store, orders):
        read = AsyncMock(wraps=store.read)
        committed, answer = trio.Event(), trio.Event()
        apply = store._link.apply

        async def answered_late(number: int, units: Sequence[Any]) -> list[UnitOutcome]:
            outcomes = await apply(number, units)
            committed.set()
            await answer.wait()
            if is_answered:
                return outcomes
            raise StoreUnavailable("the connection is gone")

        async def write() -> None:
            with nullcontext() if is_answered else pytest.raises(StoreUnavailable):
                await orders.step(row.order_hash, lambda row: OrderStep(step(row, NOW_MS)))

        monkeypatch.setattr(store._link, "apply", answered_late)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await committed.wait()
            events = await all_events(store)
            monkeypatch.setattr(store, "read", read)
            nursery.start_soon(orders.hear, events)
            await trio.testing.wait_all_tasks_blocked()
            answer.set()
        assert [live.row.version for live in orders] == [2]
        assert read.await_count == (0 if is_answered else 2)


async def test_one_that_cannot_be_made_keeps_no_others_back(tmp_path: Path) -> None:
    rows = [an_otc_order(number) for number in range(5)]
    async with orders_of(tmp_path, *rows) as (store, orders):
        orders.broken = rows[2].order_hash
        after = [await moved(store, row, status=OtcState.SUSPENDED) for row in rows]
        with structlog.testing.capture_logs() as logs:
            await orders.hear(await all_events(store))
        assert [live.row for live in orders] == [*after[:2], rows[2], *after[3:]]
        assert [(entry["event"], entry["order"]) for entry in logs] == [
            ("an order is not followed", to_hex(rows[2].order_hash))
        ]


async def test_a_row_without_a_document_is_no_order(tmp_path: Path) -> None:
    async with orders_of(tmp_path) as (store, orders):
        row = an_otc_order(1)
        assert await store.write(Unit((new(OTC_ORDER, row),))) == Done()
        await orders.load([row], ())
        assert len(orders) == 0


async def test_orders_of_shards_that_are_left_are_run_elsewhere(tmp_path: Path) -> None:
    rows = [an_otc_order(1, shard=1), an_otc_order(2, shard=2)]
    async with orders_of(tmp_path, *rows) as (_, orders):
        orders.leave({2})
        assert [live.order_hash for live in orders] == [rows[1].order_hash]
        assert orders.statistics().orders == {OtcState.PENDING: 1}
        with pytest.raises(OrderNotFound):
            await orders.step(hash_of(9), lambda _: None)


async def test_a_step_is_fenced_unless_anybody_may_take_it(tmp_path: Path) -> None:
    row = an_otc_order(1)
    async with sqlite_engine(tmp_path).open() as store:
        orders = PlainOrders(OTC, store, Leases(store, "one", life_s=60, now_ms=now_ms))
        await kept(store, row)

        def decide(row: OtcOrderRow) -> OrderStep[OtcOrderRow]:
            return OrderStep(step(row, NOW_MS, status=OtcState.SUSPENDED))

        with pytest.raises(StoreUnavailable, match="another engine runs this order"):
            await orders.step(row.order_hash, decide)
        (after,) = await orders.step_all([row.order_hash], decide, is_fenced=False)
        assert (after.status, after.version) == (OtcState.SUSPENDED, 2)


# --- Places ---------------------------------------------------------------------------------------------


async def test_an_order_that_gives_way_has_ended_and_leaves_memory_at_once(tmp_path: Path) -> None:
    rows = [an_otc_order(number, status=OtcState.SUSPENDED) for number in (1, 2)]
    async with orders_of(tmp_path, *rows, an_otc_order(3)) as (store, orders):
        told: list[tuple[bytes, OtcState]] = []
        orders.watch(lambda live: told.append((live.order_hash, live.row.status)))
        assert await orders.make_room(OrderStake.BACKED, "network a", NOW_MS)
        assert orders.get(rows[0].order_hash) is None
        assert told == [(rows[0].order_hash, OtcState.EXPIRED)]
        event = (await all_events(store))[-1]
        assert (event.order_hash, event.status) == (rows[0].order_hash, "EXPIRED")
        assert (len(orders), orders.places.count(OrderStake.UNBACKED), orders.statistics().gave_way) == (
            2,
            1,
            1,
        )
        assert not await orders.make_room(OrderStake.UNBACKED, "", NOW_MS), "nobody has more"
        assert await orders.make_room(OrderStake.BACKED, "network a", NOW_MS)
        assert not await orders.make_room(OrderStake.BACKED, "network a", NOW_MS), "the third is backed"


async def test_an_order_keeps_its_place_if_it_was_not_ended(tmp_path: Path) -> None:
    """Its funds came back, says another writer; or the store does not answer."""
    row = an_otc_order(1, status=OtcState.SUSPENDED)
    async with orders_of(tmp_path, row) as (store, orders):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "write", AsyncMock(side_effect=StoreUnavailable("away")))
            with pytest.raises(StoreUnavailable):
                await orders.make_room(OrderStake.BACKED, "", NOW_MS)
        assert orders.places.count(OrderStake.UNBACKED) == 1
        await moved(store, row, status=OtcState.PENDING)
        assert await orders.make_room(OrderStake.BACKED, "", NOW_MS), "another look finds room or none"
        live = orders.get(row.order_hash)
        assert live is not None
        assert live.row.status is OtcState.PENDING
        assert (orders.places.count(OrderStake.UNBACKED), orders.statistics().gave_way) == (0, 0)


async def test_orders_that_come_at_once_end_one_other_each(tmp_path: Path) -> None:
    rows = [an_otc_order(number, status=OtcState.SUSPENDED) for number in (1, 2, 3)]
    async with orders_of(tmp_path, *rows) as (_, orders):
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(orders.make_room, OrderStake.BACKED, "", NOW_MS)
        assert [live.order_hash for live in orders] == [rows[2].order_hash]
