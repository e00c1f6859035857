"""Retention: rows that one step deletes, on every engine, and the task that takes the steps."""

from pathlib import Path

import trio
import trio.testing
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OrderStatus, OtcState
from cambist.config.timeouts import PRUNE_EVERY_S
from cambist.engine.store.queries import OtcFilter, among, by
from cambist.engine.store.retention import Retention
from cambist.engine.store.rows import (
    DeltaOrderRow,
    IntentState,
    IssuedRoute,
    OtcCancel,
    OtcFill,
    OtcOrderRow,
    PreSignature,
    TxStatus,
    UsedNonce,
    amount32,
)
from cambist.engine.store.store import Store
from cambist.engine.store.tables import (
    AUCTION_ROUND,
    BRIDGE_END,
    BRIDGE_TRANSFER,
    CHAIN_INTENT,
    CHAIN_TX,
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_REFUND,
    EFFECT,
    ISSUED_ROUTE,
    NONCE_USED,
    OTC_CANCEL,
    OTC_DOCUMENT,
    OTC_FILL,
    PRE_SIGNATURE,
)
from cambist.engine.store.units import Change, Unit, put
from cambist.engine.trade.orders.order_units import Intent, effect_key, finished
from support.store.stores import (
    ALICE,
    NOW_MS,
    Engine,
    a_delta_order,
    a_fill,
    a_refund_of,
    a_relay_intent,
    a_round,
    a_transaction,
    a_transfer,
    an_end,
    an_otc_order,
    events_of,
    found,
    hash_of,
    kept,
    moved,
    page_of,
    rows_of,
    structs_of,
)

_D, _O = OrderStatus, OtcState
_DAY_MS = 24 * 3_600_000


# --- One step -------------------------------------------------------------------------------------------

_BELONGING_TO_DELTA = (
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_REFUND,
    EFFECT,
    AUCTION_ROUND,
    BRIDGE_TRANSFER,
    BRIDGE_END,
    PRE_SIGNATURE,
)
_BELONGING = (*_BELONGING_TO_DELTA, OTC_DOCUMENT, OTC_FILL, OTC_CANCEL)


async def _with_all_that_belongs_to_it(
    store: Store, order: DeltaOrderRow, *, block: int, is_final: bool
) -> DeltaOrderRow:
    """An order that was auctioned, settled and refunded, with a row of everything."""
    await kept(store, order, Intent("settle"))
    key = effect_key(order.order_hash, 1, "settle")
    (effect,) = await structs_of(store, EFFECT, by(EFFECT, key))
    place = (1, hash_of(1_000_000 + block), hash_of(2_000_000 + block), 7)
    more = (
        finished(effect, order.updated_ms),
        put(DELTA_FILL, a_fill(order, block=block)),
        put(BRIDGE_TRANSFER, sent := a_transfer(order, block=block)),
        put(BRIDGE_END, an_end(sent, is_delivered=False)),
        put(DELTA_REFUND, a_refund_of(sent, tx=block)),
        put(AUCTION_ROUND, a_round(order, number=block)),
        put(PRE_SIGNATURE, PreSignature(*place, block, order.order_hash, order.owner, True, NOW_MS)),
        put(NONCE_USED, UsedNonce(1, order.owner, order.nonce, hash_of(block), block, None)),
        put(CHAIN_INTENT, a_relay_intent(key)),
        put(CHAIN_TX, a_transaction(key, nonce=block)),
    )
    return await moved(store, order, status=_D.COMPLETED, is_final=is_final, more=more)


def _filled_and_cancelled(order: OtcOrderRow, at_ms: int = NOW_MS) -> tuple[Change, Change]:
    place = (1, order.order_hash, order.order_hash, 1, 5, order.order_hash)
    fill = OtcFill(*place, order.maker, ALICE, ALICE, ALICE, amount32(1), amount32(2), at_ms)
    return put(OTC_FILL, fill), put(OTC_CANCEL, OtcCancel(*place, order.maker, at_ms))


async def test_what_ended_long_ago_goes_with_all_that_belongs_to_it_and_nothing_else(store: Store) -> None:
    ended = await _with_all_that_belongs_to_it(store, a_delta_order(1), block=1, is_final=True)
    not_final = await _with_all_that_belongs_to_it(store, a_delta_order(2), block=2, is_final=False)
    live = await kept(store, a_delta_order(4))
    otc_ended = await kept(store, an_otc_order(5))
    otc_ended = await moved(
        store, otc_ended, status=_O.CANCELLED, is_final=True, more=_filled_and_cancelled(otc_ended)
    )
    otc_live = await kept(store, an_otc_order(6))
    await store.write(Unit(_filled_and_cancelled(otc_live)))
    recent = a_delta_order(3, created_ms=NOW_MS + 50_000, updated_ms=NOW_MS + 50_000)
    recent = await _with_all_that_belongs_to_it(store, recent, block=3, is_final=True)
    await store.write(Unit((put(ISSUED_ROUTE, IssuedRoute(hash_of(7), 1, NOW_MS)),)))
    await store.write(Unit((put(ISSUED_ROUTE, IssuedRoute(hash_of(8), 1, NOW_MS + 60_000)),)))

    while await store.prune(NOW_MS + 30_000, 2):
        pass

    assert await found(store, ended) is None
    assert await found(store, otc_ended) is None
    for table in _BELONGING:
        hashes = [ended.order_hash, otc_ended.order_hash]
        assert await rows_of(store, among(table, "order_hash", hashes)) == [], table.name
    for order in (not_final, recent):
        assert await found(store, order) == order
        for table in _BELONGING_TO_DELTA:
            assert len(await rows_of(store, among(table, "order_hash", [order.order_hash]))) == 1, table.name
    kept_txs = await structs_of(store, CHAIN_TX, among(CHAIN_TX, "chain_id", [1]))
    assert sorted(tx.nonce for tx in kept_txs) == [2, 3]
    assert await found(store, live) == live
    assert await found(store, otc_live) == otc_live
    for table in (OTC_DOCUMENT, OTC_FILL, OTC_CANCEL):
        assert len(await rows_of(store, among(table, "order_hash", [otc_live.order_hash]))) == 1
    assert await rows_of(store, among(ISSUED_ROUTE, "chain_id", [1])) == [(hash_of(8), 1, NOW_MS + 60_000)]
    assert await structs_of(store, NONCE_USED, by(NONCE_USED, 1, ALICE, amount32(1)))
    assert {event.at_ms for event in await events_of(store)} == {NOW_MS + 50_000, NOW_MS + 60_000}
    assert await store.prune(NOW_MS + 30_000, 2) == 0


async def test_what_the_rfq_contract_says_of_no_order_goes_by_age(store: Store) -> None:
    live = await kept(store, an_otc_order(6))
    old, recent = an_otc_order(7), an_otc_order(8)  # never kept: firm quotes
    for order, at_ms in ((live, NOW_MS), (old, NOW_MS), (recent, NOW_MS + 60_000)):
        await store.write(Unit(_filled_and_cancelled(order, at_ms)))
    hashes = [order.order_hash for order in (live, old, recent)]
    while await store.prune(NOW_MS + 30_000, 1):
        pass
    for table in (OTC_FILL, OTC_CANCEL):
        left = {row.order_hash for row in await structs_of(store, table, among(table, "order_hash", hashes))}
        assert left == {live.order_hash, recent.order_hash}, table.name


async def test_an_order_whose_effect_is_still_to_be_done_is_kept_until_it_is(store: Store) -> None:
    order = await kept(store, a_delta_order(), Intent("refund"))
    order = await moved(store, order, status=_D.FAILED, is_final=True)
    key = effect_key(order.order_hash, 1, "refund")
    (effect,) = await structs_of(store, EFFECT, by(EFFECT, key))
    await store.write(
        Unit((put(CHAIN_INTENT, a_relay_intent(key)), put(CHAIN_TX, a_transaction(key, nonce=1))))
    )

    await store.prune(NOW_MS + 60_000, 10)
    assert await found(store, order) == order
    assert await structs_of(store, EFFECT, by(EFFECT, key)) == [effect]
    assert len(await rows_of(store, by(CHAIN_INTENT, key))) == 1
    assert len(await rows_of(store, among(CHAIN_TX, "effect_key", [key]))) == 1

    await store.write(Unit((finished(effect, NOW_MS),)))
    while await store.prune(NOW_MS + 60_000, 10):
        pass
    assert await found(store, order) is None
    assert await rows_of(store, by(EFFECT, key)) == []
    assert await rows_of(store, among(CHAIN_TX, "effect_key", [key])) == []


async def test_what_was_relayed_for_no_order_goes_once_it_has_ended(store: Store) -> None:
    intents = [
        a_relay_intent("done"),
        a_relay_intent("open", state=IntentState.PENDING),
        replace(a_relay_intent("recent"), updated_ms=NOW_MS + 60_000),
    ]
    transactions = [
        a_transaction("done", nonce=1),
        a_transaction("open", nonce=2, status=TxStatus.MINED),
        a_transaction("recent", nonce=3),
        a_transaction("", nonce=4),
        a_transaction("", nonce=5, status=TxStatus.SIGNED),
    ]
    kept_here = [put(CHAIN_INTENT, intent) for intent in intents]
    await store.write(Unit((*kept_here, *(put(CHAIN_TX, tx) for tx in transactions))))
    while await store.prune(NOW_MS + 30_000, 1):
        pass
    left = await structs_of(store, CHAIN_INTENT, among(CHAIN_INTENT, "chain_id", [1]))
    assert sorted(intent.effect_key for intent in left) == ["open", "recent"]
    left = await structs_of(store, CHAIN_TX, among(CHAIN_TX, "chain_id", [1]))
    assert sorted(tx.nonce for tx in left) == [2, 3, 5]


async def test_one_step_of_retention_is_bounded(store: Store) -> None:
    for number in range(5):
        order = await kept(store, an_otc_order(number))
        await moved(store, order, status=_O.EXPIRED, is_final=True)
    assert await store.prune(NOW_MS + 60_000, 2) > 0
    assert (await page_of(store, OtcFilter(1, maker=ALICE)))[1] == 3
    assert len(await events_of(store)) == 8


# --- The task -------------------------------------------------------------------------------------------


async def _ended_orders(store: Store, count: int) -> None:
    for number in range(count):
        order = await kept(store, an_otc_order(number))
        await moved(store, order, status=_O.EXPIRED, is_final=True)


async def test_the_task_deletes_in_steps_what_has_become_old_enough(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    def now_ms() -> int:
        return NOW_MS + round(trio.current_time() * 1_000)

    async with (
        Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True).open() as store,
        trio.open_nursery() as nursery,
    ):
        await _ended_orders(store, 7)
        live = await kept(store, an_otc_order(100))
        retention = Retention(store, days=2, now_ms=now_ms, rows_max=3)
        await nursery.start(retention.run)
        await trio.sleep(2 * 86_400)
        assert retention.statistics().rows == 0
        await trio.sleep(PRUNE_EVERY_S + 60)
        assert await page_of(store, OtcFilter(1, maker=ALICE)) == ([live], 1)
        assert retention.statistics().steps >= 3
        rows = retention.statistics().rows
        await trio.sleep(10 * PRUNE_EVERY_S)
        assert retention.statistics().rows == rows
        assert retention.statistics().failed == 0
        nursery.cancel_scope.cancel()


async def test_the_task_ends_at_once_where_everything_is_kept(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True).open() as store:
        await _ended_orders(store, 2)
        await Retention(store, days=0, now_ms=lambda: NOW_MS + 10_000 * _DAY_MS).run()
        assert trio.current_time() == autojump_clock.current_time()
        assert (await page_of(store, OtcFilter(1, maker=ALICE)))[1] == 2
