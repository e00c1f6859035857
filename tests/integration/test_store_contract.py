"""Guarantees of every store, independent of database and process: one suite over all engines."""

from typing import Any

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, OtcState
from cambist.config.errors import StoreFull, StoreUnavailable
from cambist.engine.store.queries import (
    DeltaFilter,
    OtcFilter,
    among,
    as_of_now,
    between,
    by,
    events_after,
    fills,
    intended_effects,
    last_event,
    of_order,
    open_orders,
    refunds,
)
from cambist.engine.store.rows import (
    BridgeEndState,
    DeltaOrderRow,
    IssuedRoute,
    OrderDocument,
    OtcOrderRow,
    amount32,
)
from cambist.engine.store.store import Store
from cambist.engine.store.tables import (
    BRIDGE_END,
    BRIDGE_TRANSFER,
    CHAIN_CURSOR,
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_ORDER,
    DELTA_REFUND,
    EFFECT,
    ISSUED_ROUTE,
    ORDER_EVENT,
    OTC_DOCUMENT,
    OTC_ORDER,
)
from cambist.engine.store.units import (
    Cas,
    Conflict,
    Done,
    Drop,
    Duplicate,
    Refused,
    Unit,
    cas,
    drop,
    new,
    put,
)
from cambist.engine.trade.orders.order_units import (
    DELTA,
    OTC,
    Intent,
    effect_key,
    finished,
    hashes_of_id,
    order_id,
)
from support.patience import PATIENCE_S
from support.store.stores import (
    ALICE,
    BOB,
    CAROL,
    NOW_MS,
    ONE,
    Engine,
    a_block,
    a_cursor,
    a_delta_order,
    a_fill,
    a_refund_of,
    a_step,
    a_transfer,
    all_at_once,
    an_end,
    an_otc_order,
    document_of,
    effect_of,
    events_of,
    found,
    hash_of,
    kept,
    moved,
    page_of,
    rows_of,
    structs_of,
    submission,
)

_D, _O = OrderStatus, OtcState


# --- Submit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "documents"),
    [(a_delta_order(), DELTA_DOCUMENT), (an_otc_order(), OTC_DOCUMENT)],
    ids=["delta", "otc"],
)
async def test_a_new_order_is_kept_with_its_document_and_an_event(
    store: Store, order: Any, documents: Any
) -> None:
    assert await store.write(submission(order)) == Done()
    assert await found(store, order) == order
    assert await rows_of(store, by(documents, order.order_hash)) == [(order.order_hash, document_of(order))]
    (event,) = await events_of(store)
    assert (event.order_hash, event.version, event.status) == (order.order_hash, 1, "PENDING")
    assert (event.surface, event.owner) == ("delta" if isinstance(order, DeltaOrderRow) else "otc", ALICE)


async def test_the_same_order_again_finds_the_stored_one_and_writes_nothing(store: Store) -> None:
    order = await kept(store, a_delta_order())
    order = await moved(store, order, status=_D.ACTIVE)
    outcome = await store.write(submission(a_delta_order(), Intent("auction")))
    assert isinstance(outcome, Duplicate)
    assert (outcome.table, outcome.unique) == ("delta_order", 0)
    assert DELTA.found(outcome.row) == order
    assert len(await events_of(store)) == 2
    assert await rows_of(store, intended_effects(range(256), "", 10)) == []


async def test_the_same_otc_order_again_finds_the_stored_one(store: Store) -> None:
    order = await kept(store, an_otc_order())
    outcome = await store.write(submission(order))
    assert isinstance(outcome, Duplicate)
    assert OTC.found(outcome.row) == order


async def test_a_step_may_give_an_order_another_document(store: Store) -> None:
    orders = [await kept(store, an_otc_order(number, status=_O.DRAFT)) for number in range(3)]
    late = await moved(store, orders[2], status=_O.EXPIRED)

    def other(order: OtcOrderRow, body: bytes) -> Unit:
        was = OrderDocument(order.order_hash, document_of(order))
        now = OrderDocument(order.order_hash, body)
        return a_step(order, status=_O.PENDING, more=[drop(OTC_DOCUMENT, was), put(OTC_DOCUMENT, now)])

    units = [other(orders[0], b"a"), other(orders[1], b"b"), other(orders[1], b"c"), other(orders[2], b"d")]
    came = [type(outcome) for outcome in await all_at_once(store, *units)]
    assert (came[0], came[3]) == (Done, Conflict)
    assert came[1:3] in ([Done, Conflict], [Conflict, Done]), "whoever was first"
    first = b"b" if came[1] is Done else b"c"
    for order, body in zip(orders, (b"a", first, document_of(late)), strict=True):
        assert await rows_of(store, by(OTC_DOCUMENT, order.order_hash)) == [(order.order_hash, body)]


@pytest.mark.parametrize("status", [_D.PENDING, _D.ACTIVE, _D.CANCELLING, _D.COMPLETED])
async def test_the_nonce_of_a_live_or_filled_order_is_refused(store: Store, status: OrderStatus) -> None:
    order = await kept(store, a_delta_order(1))
    order = await moved(store, order, status=status)
    outcome = await store.write(submission(a_delta_order(2, nonce=order.nonce)))
    assert isinstance(outcome, Duplicate)
    assert (outcome.table, outcome.unique) == ("delta_order", 1)
    assert DELTA.found(outcome.row) == order


@pytest.mark.parametrize("status", [_D.CANCELLED, _D.EXPIRED, _D.FAILED])
async def test_the_nonce_of_what_ended_unfilled_may_be_signed_again(
    store: Store, status: OrderStatus
) -> None:
    order = await kept(store, a_delta_order(1))
    await moved(store, order, status=status)
    again = await kept(store, a_delta_order(2, nonce=order.nonce))
    assert await found(store, again) == again


async def test_a_nonce_is_its_owners_and_its_chains_own(store: Store) -> None:
    await kept(store, a_delta_order(1))
    await kept(store, a_delta_order(2, nonce=amount32(1), owner=BOB))
    await kept(store, a_delta_order(3, nonce=amount32(1), chain_id=10))


async def test_of_two_submits_in_one_batch_one_is_new(store: Store) -> None:
    first, second = a_delta_order(1), a_delta_order(2, nonce=amount32(1))
    came = await all_at_once(store, submission(first), submission(second), submission(first))
    assert [type(outcome) for outcome in came].count(Done) == 1
    assert [type(outcome) for outcome in came].count(Duplicate) == 2
    assert store.statistics().batcher.batches == 1


# --- Advance --------------------------------------------------------------------------------------------


async def test_a_step_rewrites_the_order_and_tells_it(store: Store) -> None:
    order = await kept(store, a_delta_order())
    order = await moved(store, order, status=_D.COMPLETED, spent=amount32(ONE), received=amount32(7))
    assert order.version == 2
    assert await found(store, order) == order
    told = [(event.version, event.status) for event in await events_of(store)]
    assert told == [(1, "PENDING"), (2, "COMPLETED")]


async def test_an_otc_step_keeps_its_transaction(store: Store) -> None:
    order = await kept(store, an_otc_order())
    order = await moved(store, order, status=_O.FULFILLED, remaining=amount32(0), transaction_hash=hash_of(9))
    assert await found(store, order) == order


async def test_of_two_steps_from_one_version_the_first_wins(store: Store) -> None:
    order = await kept(store, a_delta_order())
    active = await moved(store, order, status=_D.ACTIVE)
    outcome = await store.write(a_step(order, status=_D.EXPIRED, effects=[Intent("tell")]))
    assert isinstance(outcome, Conflict)
    assert DELTA.found(outcome.row) == active
    assert await found(store, order) == active
    assert len(await events_of(store)) == 2


async def test_a_step_of_an_order_that_is_not_there_conflicts_with_nothing(store: Store) -> None:
    outcome = await store.write(a_step(a_delta_order(), status=_D.ACTIVE))
    assert outcome == Conflict("delta_order", None)
    assert await events_of(store) == []


async def test_steps_of_one_order_in_one_batch_follow_one_another(store: Store) -> None:
    order = await kept(store, a_delta_order())
    active = replace(order, version=2, status=_D.ACTIVE, updated_ms=order.updated_ms + 10_000)
    came = await all_at_once(store, a_step(order, status=_D.ACTIVE), a_step(order, status=_D.EXPIRED))
    assert sorted(type(outcome).__name__ for outcome in came) == ["Conflict", "Done"]
    after = await found(store, order)
    assert after is not None
    assert after.version == active.version


# --- Units of several changes -----------------------------------------------------------------------------


async def test_a_block_moves_its_cursor_with_all_its_orders(store: Store) -> None:
    cursor = a_cursor()
    assert await store.write(Unit((new(CHAIN_CURSOR, cursor),))) == Done()
    orders = [await kept(store, a_delta_order(number)) for number in range(3)]
    steps = [
        a_step(o, status=_D.COMPLETED, more=[put(DELTA_FILL, a_fill(o, log=n))]) for n, o in enumerate(orders)
    ]
    assert await store.write(a_block(cursor, *steps)) == Done()
    (after,) = await structs_of(store, CHAIN_CURSOR, by(CHAIN_CURSOR, 1))
    assert (after.block_number, after.version) == (101, 2)
    for order in orders:
        stored = await found(store, order)
        assert stored is not None
        assert stored.status is _D.COMPLETED
        assert len(await rows_of(store, fills(order.order_hash))) == 1


@pytest.mark.parametrize("changed", [0, 1, 2])
async def test_a_block_writes_nothing_if_one_of_its_orders_conflicts(store: Store, changed: int) -> None:
    cursor = a_cursor()
    await store.write(Unit((new(CHAIN_CURSOR, cursor),)))
    orders = [await kept(store, a_delta_order(number)) for number in range(3)]
    block = a_block(
        cursor,
        *(a_step(o, status=_D.COMPLETED, more=[put(DELTA_FILL, a_fill(o))]) for o in orders),
    )
    suspended = await moved(store, orders[changed], status=_D.SUSPENDED)
    outcome = await store.write(block)
    assert isinstance(outcome, Conflict)
    assert DELTA.found(outcome.row) == suspended
    assert await structs_of(store, CHAIN_CURSOR, by(CHAIN_CURSOR, 1)) == [cursor]
    for order in orders:
        assert await found(store, order) == (suspended if order is orders[changed] else order)
        assert await rows_of(store, fills(order.order_hash)) == []
    assert len(await events_of(store)) == 4


async def test_two_readers_of_one_block_apply_it_once(store: Store) -> None:
    cursor = a_cursor()
    await store.write(Unit((new(CHAIN_CURSOR, cursor),)))
    order = await kept(store, a_delta_order())
    block = a_block(cursor, a_step(order, status=_D.COMPLETED))
    came = await all_at_once(store, block, block)
    assert came[came.index(Done()) - 1] != Done()
    assert len(await events_of(store)) == 2


async def test_what_is_written_before_the_decision_goes_with_it(store: Store) -> None:
    order = await kept(store, a_delta_order())
    await moved(store, order, status=_D.ACTIVE)
    fill_first = Unit((put(DELTA_FILL, a_fill(order)), *a_step(order, status=_D.COMPLETED).changes))
    assert isinstance(await store.write(fill_first), Conflict)
    assert await rows_of(store, fills(order.order_hash)) == []


async def test_what_is_known_by_its_key_is_put_once(store: Store) -> None:
    order = await kept(store, a_delta_order())
    fill, sent, route = a_fill(order), a_transfer(order), IssuedRoute(hash_of(5), 1, NOW_MS)
    puts = Unit((put(DELTA_FILL, fill), put(BRIDGE_TRANSFER, sent), put(ISSUED_ROUTE, route)))
    assert await store.write(puts) == Done()
    assert await store.write(puts) == Done()
    assert await structs_of(store, DELTA_FILL, fills(order.order_hash)) == [fill]
    assert await structs_of(store, BRIDGE_TRANSFER, of_order(BRIDGE_TRANSFER, order.order_hash)) == [sent]
    assert await structs_of(store, ISSUED_ROUTE, by(ISSUED_ROUTE, hash_of(5))) == [route]


async def test_a_log_of_the_destination_ends_one_transfer_and_a_transfer_ends_once(store: Store) -> None:
    order = await kept(store, a_delta_order())
    first, second, third = (a_transfer(order, block=block) for block in (101, 102, 103))
    end = an_end(first)
    assert await store.write(Unit((new(BRIDGE_END, end),))) == Done()
    again = await store.write(Unit((new(BRIDGE_END, replace(end, end_log=7)),)))
    assert isinstance(again, Duplicate)
    assert again.unique == 0
    same_log = an_end(second, end_tx=end.end_tx, end_log=end.end_log)
    taken = await store.write(Unit((new(BRIDGE_END, same_log),)))
    assert isinstance(taken, Duplicate)
    assert taken.unique == 1
    failures = [new(BRIDGE_END, an_end(one, is_delivered=False)) for one in (second, third)]
    assert await store.write(Unit(tuple(failures))) == Done()
    assert await store.write(Unit((cas(BRIDGE_END, replace(end, is_final=True)),))) == Done()
    stale = await store.write(Unit((cas(BRIDGE_END, replace(end, is_final=False)),)))
    assert isinstance(stale, Conflict)
    ends = await structs_of(store, BRIDGE_END, among(BRIDGE_END, "order_hash", [order.order_hash]))
    assert {(one.state, one.is_final, one.version) for one in ends} == {
        (BridgeEndState.DELIVERED, True, 2),
        (BridgeEndState.FAILED, True, 1),
    }


async def test_each_unit_of_a_refund_pays_one_transfer(store: Store) -> None:
    order = await kept(store, a_delta_order())
    first, second = a_transfer(order, block=101), a_transfer(order, block=102)
    refund = a_refund_of(first)
    assert await store.write(Unit((new(DELTA_REFUND, refund),))) == Done()
    assert isinstance(await store.write(Unit((new(DELTA_REFUND, a_refund_of(second)),))), Duplicate)
    rest = a_refund_of(second, taken=refund.amount)
    assert await store.write(Unit((new(DELTA_REFUND, rest),))) == Done()
    assert await structs_of(store, DELTA_REFUND, refunds(order.order_hash)) == [refund, rest]


async def test_what_a_reorganisation_undoes_is_dropped_with_the_step_back(store: Store) -> None:
    order = await kept(store, a_delta_order())
    lost, stays = a_fill(order, block=101), a_fill(order, block=100)
    order = await moved(
        store, order, status=_D.COMPLETED, more=[put(DELTA_FILL, lost), put(DELTA_FILL, stays)]
    )
    order = await moved(store, order, status=_D.ACTIVE, more=[drop(DELTA_FILL, lost)])
    assert await structs_of(store, DELTA_FILL, fills(order.order_hash)) == [stays]
    assert await store.write(Unit((drop(DELTA_FILL, lost),))) == Done()


async def test_fills_come_in_the_order_of_the_chain(store: Store) -> None:
    order = await kept(store, a_delta_order())
    in_order = [a_fill(order, block=block, log=log) for block, log in ((9, 4), (10, 0), (10, 2), (11, 1))]
    await store.write(Unit(tuple(put(DELTA_FILL, fill) for fill in reversed(in_order))))
    assert await structs_of(store, DELTA_FILL, fills(order.order_hash)) == in_order


# --- Effects ----------------------------------------------------------------------------------------------


async def test_an_effect_is_intended_and_finished(store: Store) -> None:
    order = await kept(store, a_delta_order(), Intent("auction", b"round 1", due_ms=NOW_MS + 5))
    key = effect_key(order.order_hash, 1, "auction")
    effect = await effect_of(store, key)
    assert (effect.state, effect.payload, effect.due_ms) == ("INTENDED", b"round 1", NOW_MS + 5)

    await moved(store, order, status=_D.ACTIVE, more=[finished(effect, NOW_MS + 9)])
    assert (await effect_of(store, key)).state == "DONE"
    assert await rows_of(store, intended_effects(range(256), "", 10)) == []


async def test_an_effect_that_somebody_else_finished_holds_up_the_step(store: Store) -> None:
    order = await kept(store, a_delta_order(), Intent("settle"))
    effect = await effect_of(store, effect_key(order.order_hash, 1, "settle"))
    await store.write(Unit((finished(effect, NOW_MS, failed=True),)))
    outcome = await store.write(a_step(order, status=_D.ACTIVE, more=[finished(effect, NOW_MS)]))
    assert isinstance(outcome, Conflict)
    assert outcome.table == "effect"
    assert await found(store, order) == order
    assert (await effect_of(store, effect.key)).state == "FAILED"


async def test_intended_effects_and_open_orders_are_read_shard_by_shard_page_by_page(store: Store) -> None:
    orders = [
        await kept(store, a_delta_order(n, shard=n % 3), Intent("auction"), Intent("tell")) for n in range(12)
    ]
    await moved(store, orders[0], status=_D.EXPIRED, is_final=True)
    open_ones, after_hash = [], b""
    while page := await structs_of(store, DELTA_ORDER, open_orders(DELTA_ORDER, [0, 2], after_hash, 3)):
        open_ones += page
        after_hash = page[-1].order_hash
    mine = [order for order in orders if order.shard != 1]
    assert open_ones == mine[1:], "as they came in"

    keys, after_key = [], ""
    while page := await structs_of(store, EFFECT, intended_effects([0, 2], after_key, 5)):
        keys += [effect.key for effect in page]
        after_key = keys[-1]
    assert keys == sorted(effect_key(o.order_hash, 1, kind) for o in mine for kind in ("auction", "tell"))
    assert await rows_of(store, open_orders(DELTA_ORDER, [], b"", 5)) == []


# --- Reading ----------------------------------------------------------------------------------------------


async def test_orders_are_found_by_hash_by_id_and_many_at_once(store: Store) -> None:
    order = await kept(store, a_delta_order(1))
    twin_hash = order.order_hash[:6] + hash_of(2)[6:]
    twin = await kept(store, a_delta_order(2, order_hash=twin_hash, shard=twin_hash[0]))
    other = await kept(store, a_delta_order(3))
    near = await structs_of(store, DELTA_ORDER, between(DELTA_ORDER, *hashes_of_id(order_id(twin_hash))))
    assert {row.order_hash for row in near} == {order.order_hash, twin_hash}
    assert [row for row in near if order_id(row.order_hash) == order_id(twin_hash)] == [twin]

    wanted = [other.order_hash, hash_of(99), order.order_hash]
    many = await structs_of(store, DELTA_ORDER, among(DELTA_ORDER, "order_hash", wanted))
    assert sorted(many, key=lambda row: row.created_ms) == [order, other]
    assert await rows_of(store, among(DELTA_ORDER, "order_hash", [])) == []
    assert await rows_of(store, by(DELTA_ORDER, hash_of(99))) == []


async def test_delta_listings_filter_by_all_that_can_be_asked(store: Store) -> None:
    orders: list[DeltaOrderRow] = []
    for number in range(24):
        order = a_delta_order(
            number,
            owner=(ALICE, BOB)[number % 2],
            chain_id=(1, 10, 56)[number % 3],
            type=(OrderType.MARKET, OrderType.LIMIT)[number // 3 % 2],
            kind=(OnChainOrderType.ORDER, OnChainOrderType.TWAP_ORDER)[number // 6 % 2],
        )
        orders.append(await kept(store, order))
    for wanted in (
        DeltaFilter(),
        DeltaFilter(owner=BOB),
        DeltaFilter(chain_ids=(10,)),
        DeltaFilter(chain_ids=(56, 1), statuses=(OrderStatus.PENDING, OrderStatus.ACTIVE)),
        DeltaFilter(statuses=(OrderStatus.EXPIRED,)),
        DeltaFilter(type=OrderType.LIMIT),
        DeltaFilter(kind=OnChainOrderType.TWAP_ORDER),
        DeltaFilter(ALICE, (1,), OrderType.MARKET, OnChainOrderType.ORDER),
        DeltaFilter(owner=CAROL),
    ):
        expected = [
            order
            for order in reversed(orders)
            if wanted.owner in (None, order.owner)
            and (not wanted.chain_ids or order.chain_id in wanted.chain_ids)
            and (not wanted.statuses or order.status in wanted.statuses)
            and wanted.type in (None, order.type)
            and wanted.kind in (None, order.kind)
        ]
        assert await page_of(store, wanted) == (expected, len(expected))
        assert await page_of(store, wanted, limit=2, offset=1) == (expected[1:3], len(expected))


async def test_pages_of_then_do_not_move_while_orders_come_in(store: Store) -> None:
    orders = [await kept(store, a_delta_order(number)) for number in range(7)]
    (((then,),),) = await store.read(as_of_now(DELTA_ORDER))
    listed: list[Any] = []
    for number, offset in enumerate(range(0, 8, 2)):
        page, total = await page_of(store, DeltaFilter(), 2, offset, then)
        assert total == 7
        listed += page
        await kept(store, a_delta_order(100 + number))
    assert listed == orders[::-1]
    assert (await page_of(store, DeltaFilter()))[1] == 11


async def test_an_empty_listing_has_a_then_too(store: Store) -> None:
    (((then,),),) = await store.read(as_of_now(OTC_ORDER))
    await kept(store, an_otc_order())
    assert await page_of(store, OtcFilter(1, maker=ALICE), as_of=then) == ([], 0)


async def test_events_come_in_order_after_a_place_and_of_an_owner(store: Store) -> None:
    assert await rows_of(store, last_event()) == []
    for number in range(6):
        order = await kept(store, a_delta_order(number, owner=(ALICE, BOB)[number % 2]))
        await moved(store, order, status=_D.ACTIVE)
    rows = await rows_of(store, events_after((0, 0), 100))
    places = [(row[0], row[1]) for row in rows]
    assert len(rows) == 12
    assert places == sorted(places)
    body = DELTA.event(a_delta_order(0)).body
    assert body.startswith(b'{"type":"MARKET"')
    assert [row[2:] for row in rows[:2]] == [
        ("delta", hash_of(0), hash_of(0)[0], 1, ALICE, 1, "PENDING", NOW_MS, body, "anon"),
        ("delta", hash_of(0), hash_of(0)[0], 1, ALICE, 2, "ACTIVE", NOW_MS + 10_000, body, "anon"),
    ]
    assert await rows_of(store, events_after(places[3], 5)) == rows[4:9]
    assert await rows_of(store, events_after(places[3], 100, BOB)) == [
        row for row in rows[4:] if row[6] == BOB
    ]
    assert await rows_of(store, last_event()) == [places[-1]]
    assert await rows_of(store, events_after(places[-1], 5)) == []


# --- The queue --------------------------------------------------------------------------------------------

_ORDER = a_delta_order(50)
POISONS = {
    "a hash too short": submission(replace(_ORDER, nonce=b"short")),
    "a number too large": submission(replace(_ORDER, expires_s=1 << 63)),
    "an effect twice": submission(_ORDER, Intent("auction"), Intent("auction")),
    "no value": submission(replace(_ORDER, partner=None)),
    "a log is only added to": Unit((*submission(_ORDER).changes, Drop(ORDER_EVENT.name, (1,)))),
    "nothing that changes": Unit((Cas(DELTA_DOCUMENT.name, (_ORDER.order_hash,), 1, (b"",)),)),
}


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
@pytest.mark.turns
async def test_a_unit_that_the_database_refuses_harms_no_other_of_its_batch(
    store: Store, poison: Unit
) -> None:
    before, after = a_delta_order(1), a_delta_order(2)
    first, refused, last = await all_at_once(store, submission(before), poison, submission(after))
    assert isinstance(refused, Refused)
    assert refused.detail
    assert (first, last) == (Done(), Done())
    assert store.statistics().batcher.batches == 1
    listed, total = await page_of(store, DeltaFilter())
    assert sorted(listed, key=lambda order: order.created_ms) == [before, after]
    assert total == 2
    assert len(await events_of(store)) == 2
    assert await rows_of(store, intended_effects(range(256), "", 10)) == []


@pytest.mark.turns
async def test_a_full_queue_takes_nothing_more_and_keeps_what_it_has(engine: Engine) -> None:
    orders = [a_delta_order(number) for number in range(6)]
    async with engine.open(queue_max=4) as store:
        came = await all_at_once(store, *map(submission, orders))
        full = [order for order, outcome in zip(orders, came, strict=True) if isinstance(outcome, StoreFull)]
        assert len(full) == 2
        assert store.statistics().batcher.full == 2
        for order in orders:
            assert await found(store, order) == (None if order in full else order)
        await kept(store, full[0])


async def test_what_is_more_than_a_batch_is_written_in_several(engine: Engine) -> None:
    orders = [a_delta_order(number) for number in range(10)]
    async with engine.open(batch_max=4) as store:
        assert await all_at_once(store, *map(submission, orders)) == [Done()] * 10
        statistics = store.statistics()
        assert (statistics.batcher.units, statistics.batcher.batches) == (10, 3)
        assert sum(statistics.commits) == 3
        assert (await page_of(store, DeltaFilter()))[1] == 10


async def test_who_waits_may_leave_and_the_write_stays(store: Store) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.write(submission(a_delta_order()))
    assert scope.cancelled_caught
    await store.drained()
    assert await found(store, a_delta_order()) == a_delta_order()


async def test_a_closed_store_takes_nothing_and_what_it_took_is_kept(engine: Engine) -> None:
    async with engine.open() as store:
        await kept(store, a_delta_order(1))
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.write(submission(a_delta_order(2)))
    await store.drained()
    async with engine.open() as store:
        assert await page_of(store, DeltaFilter()) == ([a_delta_order(1)], 1)
        outcome = await store.write(submission(a_delta_order(1)))
        assert isinstance(outcome, Duplicate)


async def test_a_write_is_announced(store: Store) -> None:
    changed = store.changed()
    assert not changed.is_set()
    await kept(store, a_delta_order())
    with trio.fail_after(PATIENCE_S):
        await changed.wait()
