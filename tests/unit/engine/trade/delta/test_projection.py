"""A single step of the chain that changes very many orders at once."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.limits import VENUE_LOAD_ORDERS
from cambist.engine.chain.index.applied import KeptRow
from cambist.engine.chain.index.indexer import Advance
from cambist.engine.chain.index.ring import Mark
from cambist.engine.store.leases import Leases
from cambist.engine.store.queries import IDS_MAX, Query, among
from cambist.engine.store.rows import (
    DeltaFill,
    DeltaOrderRow,
    Effect,
    EffectState,
    OrderDocument,
    PreSignature,
    UsedNonce,
    amount32,
)
from cambist.engine.store.store import Store
from cambist.engine.store.tables import (
    BRIDGE_END,
    BRIDGE_TRANSFER,
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_ORDER,
    DELTA_REFUND,
    EFFECT,
    NONCE_USED,
    PRE_SIGNATURE,
)
from cambist.engine.store.units import Change, Done, Unit, drop, new, put
from cambist.engine.trade.delta.orders.document import encode_document
from cambist.engine.trade.delta.orders.life import SETTLE
from cambist.engine.trade.delta.orders.live_orders import LiveOrders
from cambist.engine.trade.delta.settlement.projection import DeltaProjection
from cambist.engine.trade.orders.order_units import effect_key
from support.delta.bidding import a_round_order
from support.store.store_work import now_ms
from support.store.stores import (
    ALICE,
    BOB,
    NOW_MS,
    Engine,
    a_delta_order,
    a_refund_of,
    a_transfer,
    an_end,
    found,
    hash_of,
    moved,
    rows_of,
    structs_of,
)

MANY = max(IDS_MAX, 2 * VENUE_LOAD_ORDERS) + 100
CONFIRMATIONS = 3
TOP = 50


@asynccontextmanager
async def many_orders(
    folder: Path, status: OrderStatus, *, count: int = MANY, confirmations: int = CONFIRMATIONS
) -> AsyncIterator[tuple[Store, LiveOrders, DeltaProjection, list[DeltaOrderRow]]]:
    """A store with MANY orders of a status, which are in memory."""
    rows = [a_delta_order(number, status=status) for number in range(count)]
    async with Engine("sqlite:cambist.sqlite3", folder, in_process=True).open() as store:
        await stored(store, rows)
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        orders = LiveOrders(store, leases)
        projection = DeltaProjection(
            store,
            orders,
            confirmations=confirmations,
            failures_max=3,
            now_ms=lambda: NOW_MS,
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            await orders.load(rows, ())
            assert len(orders) == count
            yield store, orders, projection, rows
            nursery.cancel_scope.cancel()


async def stored(store: Store, rows: Sequence[DeltaOrderRow]) -> None:
    """Put orders with their documents into a store."""
    body = encode_document(a_round_order(1).document)
    for at in range(0, len(rows), 100):
        some = rows[at : at + 100]
        documents = [put(DELTA_DOCUMENT, OrderDocument(row.order_hash, body)) for row in some]
        assert await store.write(Unit((*(new(DELTA_ORDER, row) for row in some), *documents))) == Done()


async def stepped(
    store: Store, projection: DeltaProjection, row: DeltaOrderRow, advance: Advance
) -> DeltaOrderRow | None:
    """An order after a step of the indexer, which writes its own rows too."""
    undone = [drop(table, log) for table, log in advance.undone]
    added = [put(table, log) for table, log in advance.rows]
    changes = await projection.changes(advance)
    assert await store.write(Unit((*undone, *added, *changes))) == Done()
    return await found(store, row)


def effects_of(rows: Sequence[DeltaOrderRow]) -> Query:
    """Query for the effects of orders."""
    return among(EFFECT, "order_hash", [row.order_hash for row in rows])


def a_step(number: int, *fills: DeltaFill) -> Advance:
    return Advance(1, Mark(number, hash_of(number)), (), (), tuple((DELTA_FILL, fill) for fill in fills))


def a_fill(row: DeltaOrderRow, at: int) -> DeltaFill:
    block = row.chain_id, hash_of(TOP), hash_of(TOP + 1), at, TOP
    amounts = amount32(5), amount32(9), NOW_MS, amount32(5)
    return DeltaFill(*block, row.order_hash, None, *amounts, is_closed=True)


async def test_a_step_may_settle_more_orders_than_the_store_is_asked_about_at_once(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.ACTIVE) as (store, _, projection, rows):
        fills = [a_fill(row, at) for at, row in enumerate(rows)]
        changes = await projection.changes(a_step(TOP, *fills))
        assert await store.write(Unit(tuple(changes))) == Done()
        after = [await found(store, row) for row in rows]
    assert {(one.status, one.spent) for one in after if one is not None} == {
        (OrderStatus.COMPLETED, amount32(5))
    }
    assert len(after) == MANY


async def test_orders_that_have_ended_become_final_by_so_many_a_step(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.EXPIRED) as (store, orders, projection, rows):
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


async def test_orders_that_wait_for_another_chain_hold_up_no_others(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.EXPIRED) as (_, orders, _, rows):
        orders.settled(1, TOP, TOP)
        seen = [set(orders.settled(1, TOP + step, TOP)) for step in range(-(-MANY // VENUE_LOAD_ORDERS))]
        assert set().union(*seen) == {row.order_hash for row in rows}


async def test_an_order_that_is_not_in_memory_is_cancelled_with_its_nonce(tmp_path: Path) -> None:
    """Another engine may run it, or this one may not have loaded it yet."""
    async with many_orders(tmp_path, OrderStatus.ACTIVE) as (store, _, projection, _):
        other = a_delta_order(MANY + 1, status=OrderStatus.ACTIVE)
        body = encode_document(a_round_order(1).document)
        documents = put(DELTA_DOCUMENT, OrderDocument(other.order_hash, body))
        assert await store.write(Unit((new(DELTA_ORDER, other), documents))) == Done()
        used = UsedNonce(other.chain_id, other.owner, other.nonce, hash_of(TOP + 1), TOP, None)
        changes = await projection.changes(replace(a_step(TOP), rows=((NONCE_USED, used),)))
        assert await store.write(Unit(tuple(changes))) == Done()
        after = await found(store, other)
        assert after is not None
        assert after.status is OrderStatus.CANCELLED
        changes = await projection.changes(replace(a_step(TOP), undone=((NONCE_USED, used),)))
        assert await store.write(Unit(tuple(changes))) == Done()
        again = await found(store, other)
    assert again is not None
    assert again.status is OrderStatus.ACTIVE


@pytest.mark.parametrize(
    ("logs", "status"),
    [
        ([(ALICE, 0, True)], OrderStatus.PENDING),
        ([(ALICE, 0, False), (ALICE, 1, True)], OrderStatus.PENDING),
        ([(ALICE, 0, True), (ALICE, 1, False)], OrderStatus.AWAITING_SIGNATURE),
        ([(ALICE, 1, False), (ALICE, 0, True)], OrderStatus.AWAITING_SIGNATURE),
        ([(BOB, 0, True)], OrderStatus.AWAITING_SIGNATURE),
    ],
)
async def test_the_latest_pre_signature_of_its_owner_makes_an_order_pending(
    tmp_path: Path, logs: list[tuple[bytes, int, bool]], status: OrderStatus
) -> None:
    async with many_orders(tmp_path, OrderStatus.AWAITING_SIGNATURE) as (store, _, projection, (row, *_)):
        assert row.owner == ALICE
        block = row.chain_id, hash_of(TOP)
        signed = [
            PreSignature(*block, hash_of(at), at, TOP, row.order_hash, owner, is_signed, NOW_MS)
            for owner, at, is_signed in logs
        ]
        step = replace(a_step(TOP), rows=tuple((PRE_SIGNATURE, one) for one in signed))
        assert await store.write(Unit(tuple(await projection.changes(step)))) == Done()
        after = await found(store, row)
    assert after is not None
    assert after.status is status


# --- What an order's state is made of -------------------------------------------------------------------


async def test_an_order_and_its_settlement_are_final_with_the_last_confirmation(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.ACTIVE, count=2) as (store, orders, projection, rows):
        row, other = rows
        for one in rows:
            key = effect_key(one.order_hash, 1, SETTLE)
            times = 1, EffectState.INTENDED, 0, NOW_MS, NOW_MS
            effect = Effect(key, one.order_hash, one.shard, SETTLE, b"", NOW_MS, *times)
            assert await store.write(Unit((new(EFFECT, effect),))) == Done()
        for top, expected in (
            (TOP, False),
            (TOP + CONFIRMATIONS - 2, False),
            (TOP + CONFIRMATIONS - 1, True),
        ):
            advance = a_step(top, *([a_fill(row, 0)] if top == TOP else []))
            after = await stepped(store, projection, row, advance)
            assert after is not None
            assert (after.status, after.is_final) == (OrderStatus.COMPLETED, expected)
            assert (after.spent, after.received) == (amount32(5), amount32(9))
            assert after.updated_ms == NOW_MS
            effects = {one.key: one.state for one in await structs_of(store, EFFECT, effects_of(rows))}
            assert effects == {
                effect_key(row.order_hash, 1, SETTLE): EffectState.DONE if expected else EffectState.INTENDED,
                effect_key(other.order_hash, 1, SETTLE): EffectState.INTENDED,
            }
            await orders.notice([after])
        assert await found(store, other) == other


async def test_the_fills_of_an_order_count_once_whether_stored_or_of_the_step(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.ACTIVE, count=2) as (store, _, projection, (row, other)):
        first, second, third = (replace(a_fill(row, at), is_closed=False) for at in range(3))
        await stepped(store, projection, row, a_step(TOP, first, second))
        after = await stepped(store, projection, row, a_step(TOP, second, third, a_fill(other, 3)))
        assert after is not None
        assert (after.spent, after.received) == (amount32(15), amount32(27))
        undone = replace(a_step(TOP - 1), undone=((DELTA_FILL, first), (DELTA_FILL, third)))
        after = await stepped(store, projection, row, undone)
        assert after is not None
        assert (after.status, after.spent) == (OrderStatus.ACTIVE, amount32(5))


async def test_a_log_about_an_order_of_another_chain_changes_nothing(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.ACTIVE, count=1) as (store, _, projection, _):
        elsewhere = a_delta_order(9, status=OrderStatus.ACTIVE, chain_id=10)
        await stored(store, [elsewhere])
        assert await stepped(store, projection, elsewhere, a_step(TOP, a_fill(elsewhere, 0))) == elsewhere
        used = UsedNonce(10, elsewhere.owner, elsewhere.nonce, hash_of(3), TOP, None)
        advance = replace(a_step(TOP), rows=((NONCE_USED, used),))
        assert await stepped(store, projection, elsewhere, advance) == elsewhere


def a_used_nonce(row: DeltaOrderRow, order_hash: bytes | None = None, tx: int = 1) -> UsedNonce:
    return UsedNonce(row.chain_id, row.owner, row.nonce, hash_of(tx), TOP, order_hash)


async def test_very_many_nonces_of_orders_that_others_run_are_looked_up_some_at_a_time(
    tmp_path: Path,
) -> None:
    async with many_orders(tmp_path, OrderStatus.ACTIVE, count=1) as (store, _, projection, (known,)):
        others = [a_delta_order(number, status=OrderStatus.ACTIVE) for number in range(1, 131)]
        await stored(store, others)
        logs: tuple[KeptRow, ...] = tuple((NONCE_USED, a_used_nonce(row)) for row in (known, *others))
        await stepped(store, projection, known, replace(a_step(TOP), rows=logs))
        after = [await found(store, row) for row in (known, *others)]
        assert {one.status for one in after if one is not None} == {OrderStatus.CANCELLED}
        await stepped(store, projection, known, replace(a_step(TOP - 1), undone=logs))
        after = [await found(store, row) for row in (known, *others)]
        assert {one.status for one in after if one is not None} == {OrderStatus.ACTIVE}
        assert len(after) == 131


async def test_a_nonce_that_is_used_changes_no_order_that_has_ended_before(tmp_path: Path) -> None:
    """Its nonce was free for another order."""
    orders = many_orders(tmp_path, OrderStatus.ACTIVE, count=1, confirmations=1)
    async with orders as (store, _, projection, (known,)):
        ended = a_delta_order(8, status=OrderStatus.EXPIRED, nonce=amount32(77))
        await stored(store, [ended])
        advance = replace(a_step(TOP), rows=((NONCE_USED, a_used_nonce(ended)),))
        assert await projection.changes(advance) == ()
        assert await found(store, known) == known


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        (None, hash_of(99), OrderStatus.CANCELLED),
        (hash_of(99), None, OrderStatus.FAILED),
    ],
)
async def test_the_first_log_of_a_nonce_tells_how_its_order_ends(
    tmp_path: Path, first: bytes | None, second: bytes | None, status: OrderStatus
) -> None:
    async with many_orders(tmp_path, OrderStatus.ACTIVE, count=1) as (store, _, projection, (row,)):
        assert await store.write(Unit((put(NONCE_USED, a_used_nonce(row, first)),))) == Done()
        changes = await projection.changes(
            replace(a_step(TOP), rows=((NONCE_USED, a_used_nonce(row, second, tx=2)),))
        )
        assert await store.write(Unit(tuple(changes))) == Done()
        after = await found(store, row)
        assert after is not None
        assert after.status is status


# --- Across chains --------------------------------------------------------------------------------------


async def test_a_reorganisation_of_the_origin_undoes_a_transfer_with_end_and_refund(tmp_path: Path) -> None:
    async with many_orders(tmp_path, OrderStatus.ACTIVE) as (store, _, projection, rows):
        row = rows[0]
        fill = a_bridged_fill(row)
        sent = a_transfer(row, block=TOP)
        logs: tuple[KeptRow, ...] = ((BRIDGE_TRANSFER, sent), (DELTA_FILL, fill))
        forth = replace(a_step(TOP), rows=logs)
        changes = await projection.changes(forth)
        puts = [put(table, log) for table, log in logs]
        assert await store.write(Unit((*puts, *changes))) == Done()
        bridging = await found(store, row)
        assert bridging is not None
        assert (bridging.status, bridging.received) == (OrderStatus.BRIDGING, amount32(0))

        lost, back = an_end(sent, is_delivered=False), a_refund_of(sent)
        ends = (new(BRIDGE_END, lost), new(DELTA_REFUND, back))
        refunded = await moved(store, bridging, status=OrderStatus.REFUNDED, more=ends)
        changes = await projection.changes(replace(a_step(TOP - 1), undone=logs))
        drops = [drop(table, log) for table, log in logs]
        assert await store.write(Unit((*drops, *changes))) == Done()
        after = await found(store, refunded)
        assert after is not None
        assert (after.status, after.spent) == (OrderStatus.ACTIVE, amount32(0))
        for table in (BRIDGE_TRANSFER, BRIDGE_END, DELTA_REFUND):
            assert await rows_of(store, among(table, "order_hash", [row.order_hash])) == []


async def test_a_settlement_that_moves_to_another_block_is_followed_anew(tmp_path: Path) -> None:
    """Its delivery belonged to the transfer of the block that is gone, and is looked for again."""
    async with many_orders(tmp_path, OrderStatus.ACTIVE) as (store, _, projection, rows):
        row = rows[0]
        fill, sent = a_bridged_fill(row), a_transfer(row, block=TOP)
        logs: tuple[KeptRow, ...] = ((BRIDGE_TRANSFER, sent), (DELTA_FILL, fill))
        arrived = new(BRIDGE_END, an_end(sent))
        more = (*(put(table, log) for table, log in logs), arrived)
        done = await moved(store, row, status=OrderStatus.BRIDGING, spent=fill.spent, more=more)
        done = await moved(store, done, status=OrderStatus.COMPLETED, received=sent.output)
        moved_logs: tuple[KeptRow, ...] = (
            (BRIDGE_TRANSFER, replace(sent, block_hash=hash_of(77), block_number=TOP + 1)),
            (DELTA_FILL, replace(fill, block_hash=hash_of(77), block_number=TOP + 1)),
        )
        step = replace(a_step(TOP + 1), undone=logs, rows=moved_logs)
        changes = await projection.changes(step)
        own: list[Change] = [drop(table, log) for table, log in logs]
        own += [put(table, log) for table, log in moved_logs]
        assert await store.write(Unit((*own, *changes))) == Done()
        after = await found(store, done)
        assert after is not None
        assert (after.status, after.received) == (OrderStatus.BRIDGING, amount32(0))
        assert await rows_of(store, among(BRIDGE_END, "order_hash", [row.order_hash])) == []


def a_bridged_fill(row: DeltaOrderRow) -> DeltaFill:
    """The settlement that closes an order in the transaction of `a_transfer`."""
    sent = a_transfer(row, block=TOP)
    return replace(a_fill(row, 2), block_hash=sent.block_hash, tx_hash=sent.tx_hash)
