"""The searches of deliveries and refunds: what they ask of nodes and the store, and what they write."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import ChainError, StoreUnavailable
from cambist.engine.chain.port import At, EthCall, Header, LogFilter
from cambist.engine.store.rows import amount_of
from cambist.engine.trade.delta.bridging import bridge_rounds, bridged_orders, delivery_watch, refund_watch
from cambist.engine.trade.delta.orders.transfers import TransferState
from support.bridge.watched_ends import OVERDUE, a_sent_one, deliveries, failed_ones, key, refunds, status
from support.chain.scripted_chain import ScriptedChain
from support.delta.bridged_world import (
    ARRIVES,
    BLOCK_S,
    CONFIRMATIONS,
    PART,
    BridgedWorld,
    a_bridged_world,
)
from support.store.stores import BOB, Engine

_S = OrderStatus


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BridgedWorld]:
    async with a_bridged_world(Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)) as world:
        yield world


def ranges(chain: ScriptedChain, monkeypatch: pytest.MonkeyPatch) -> list[tuple[LogFilter, int, int]]:
    """Requests for logs of a chain from now on."""
    asked: list[tuple[LogFilter, int, int]] = []
    read = chain.logs

    async def noted(wanted: LogFilter, first: int, last: int) -> Any:
        asked.append((wanted, first, last))
        return await read(wanted, first, last)

    monkeypatch.setattr(chain, "logs", noted)
    return asked


# --- What is asked --------------------------------------------------------------------------------------


async def test_a_search_begins_at_the_transfers_time_and_goes_on_where_blocks_are_not_final(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_watch, "BRIDGE_CLOCK_SLACK_S", 5 * BLOCK_S)
    world.passes(world.origin, 49)
    world.passes(world.destination, 55)
    asked = ranges(world.destination, monkeypatch)
    await a_sent_one(world)  # in block 50
    await world.indexes()
    before = world.origin.asked["receipt"]
    assert not await deliveries(world).look()
    world.passes(world.destination, 2)
    assert not await deliveries(world).look()
    assert [(first, last) for _, first, last in asked] == [(45, 55), (54, 57)]
    assert world.origin.asked["receipt"] == before + 1  # the deposit is known then
    await world.starts()
    await world.indexes()
    world.destination.cut(47)
    asked.clear()
    await deliveries(world).look()  # the head is older than the transfer
    assert [(first, last) for _, first, last in asked] == [(42, 47)]


async def test_a_search_never_goes_back_behind_the_transfers_time(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_watch, "BRIDGE_CLOCK_SLACK_S", 0)
    world.passes(world.origin, 49)
    world.passes(world.destination, 50)
    asked = ranges(world.destination, monkeypatch)
    await a_sent_one(world)  # in block 50
    await world.indexes()
    for _ in range(2):
        await deliveries(world).look()
        world.passes(world.destination, 1)
    assert [(first, last) for _, first, last in asked] == [(50, 50), (50, 51)]


async def test_a_search_for_a_burn_goes_on_where_blocks_are_not_final(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ranges(world.destination, monkeypatch)
    world.passes(world.destination, 20)
    await a_sent_one(world, kind=BridgeKind.CCTP)
    await world.looks()
    world.passes(world.destination, 1)
    await deliveries(world).look()
    world.passes(world.destination, 1)
    await deliveries(world).look()
    assert [(first, last) for _, first, last in asked] == [(0, 20), (19, 21), (20, 22)]


async def test_ranges_follow_one_after_the_other_and_some_in_a_look(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_rounds, "BRIDGE_RANGE_BLOCKS_MAX", 4)
    monkeypatch.setattr(delivery_watch, "BRIDGE_RANGES_PER_ROUND", 2)
    monkeypatch.setattr(refund_watch, "BRIDGE_RANGES_PER_ROUND", 2)
    await world.starts()
    world.passes(world.origin, 3)
    await a_sent_one(world)  # in block 4
    world.passes(world.destination, OVERDUE)
    asked = ranges(world.destination, monkeypatch)
    await world.indexes()
    told = [await deliveries(world).look() for _ in range(4)]
    assert [(first, last) for _, first, last in asked] == [
        (0, 3), (4, 7), (8, 11), (12, 15), (16, 19), (20, 20),
    ]  # fmt: skip
    assert told == [True, True, True, False]  # the last change is the failure
    world.passes(world.origin, OVERDUE - 4)
    await world.indexes()
    asked = ranges(world.origin, monkeypatch)
    told = [await refunds(world).look() for _ in range(3)]
    assert [(first, last) for _, first, last in asked] == [(4, 7), (8, 11), (12, 15), (16, 19), (19, 20)]
    assert told == [True, True, False]


async def test_more_transfers_than_one_request_names_are_all_followed(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_watch, "BRIDGE_IDS_PER_FILTER", 2)
    monkeypatch.setattr(bridged_orders, "BRIDGE_ORDERS_READ", 2)
    monkeypatch.setattr(refund_watch, "IDS_MAX", 2)
    made = [await a_sent_one(world) for _ in range(10)]
    for _, sent in made[::2]:
        world.fills(sent)
    world.passes(world.destination, OVERDUE)
    await world.looks()
    assert [await status(world, order) for order, _ in made] == [_S.COMPLETED, _S.REFUNDING] * 5
    for amount in (PART, PART // 2, PART, PART, PART + 1):
        world.refunds(amount)
    await world.looks()
    owed = sum([(await world.transfers(order))[0].owed for order, _ in made[1::2]])
    assert owed == PART - PART // 2 - 1
    assert refunds(world).statistics().refunded == 4


async def test_the_least_searched_transfers_are_searched_first(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_watch, "BRIDGE_IDS_PER_FILTER", 1)
    world.passes(world.destination, 8)
    asked = ranges(world.destination, monkeypatch)
    for number in range(4):
        _, sent = await a_sent_one(world)
        await world.indexes()
        asked.clear()
        await deliveries(world).look()
        assert asked[0][0].topics[2] == (uint_word(sent.relay.deposit_id),)
        assert len(asked) == number + 1


async def test_a_transfer_that_is_indexed_late_is_found_in_blocks_that_were_read_for_others(
    world: BridgedWorld,
) -> None:
    await a_sent_one(world)
    await world.indexes()
    late, sent = await a_sent_one(world)
    world.fills(sent)
    world.passes(world.destination, 5)
    await deliveries(world).look()
    await world.looks()
    assert await status(world, late) is _S.COMPLETED


async def test_a_refund_is_found_in_blocks_that_were_read_for_others(world: BridgedWorld) -> None:
    """The transfer failed after the other, and was refunded before anybody looked."""
    first, _ = await a_sent_one(world)
    second = await world.placed()
    world.settles(second)
    world.passes(world.destination, OVERDUE)
    await world.looks()
    world.refunds(PART)
    world.passes(world.origin, CONFIRMATIONS)
    await world.looks()
    assert [await status(world, one) for one in (first, second)] == [_S.REFUNDED, _S.REFUNDING]
    third, _ = await a_sent_one(world)
    world.refunds(2 * PART)
    world.passes(world.origin, CONFIRMATIONS)
    await world.looks()
    assert await status(world, second) is _S.REFUNDED
    world.passes(world.destination, OVERDUE)
    await world.looks()
    assert await status(world, third) is _S.REFUNDED


async def test_two_leaves_of_one_transaction_pay_each_once(world: BridgedWorld) -> None:
    orders = await failed_ones(world, 4)
    world.refunds(PART, leaves=2)
    await world.looks()
    states = [(await world.transfers(order))[0].state for order in orders]
    assert states == [TransferState.REFUNDED] * 2 + [TransferState.FAILED] * 2
    assert world.origin.asked["receipt"] < 20


async def test_only_a_pools_own_answer_about_a_deposit_without_a_log_lets_it_fail(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def malformed(_: EthCall, at: At = None) -> bytes:
        return b""

    order, _ = await a_sent_one(world)
    world.passes(world.destination, OVERDUE)
    with monkeypatch.context() as patched:
        patched.setattr(world.destination, "call", malformed)
        with pytest.raises(ChainError):
            await world.looks()
        assert await status(world, order) is _S.BRIDGING
    await world.looks()
    assert await status(world, order) is _S.REFUNDING


async def test_a_pool_is_not_asked_about_a_deposit_whose_fill_is_found(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EthCall] = []

    async def noted(call: EthCall, at: At = None) -> bytes:
        asked.append(call)
        return uint_word(0)

    order, sent = await a_sent_one(world)
    world.fills(sent)
    world.passes(world.destination, OVERDUE)
    monkeypatch.setattr(world.destination, "call", noted)
    await world.looks()
    assert (await status(world, order), asked) == (_S.COMPLETED, [])


async def test_a_fill_that_a_node_hid_until_the_deadline_is_found(world: BridgedWorld) -> None:
    order, sent = await a_sent_one(world)
    world.fills(sent)
    world.passes(world.destination, 2 * CONFIRMATIONS)
    world.destination.hides_logs = True
    await world.looks()
    world.passes(world.destination, OVERDUE)
    await world.indexes()
    await deliveries(world).look()
    world.destination.hides_logs = False
    await world.looks()
    assert await status(world, order) is _S.COMPLETED
    assert deliveries(world).hint(await key(world, order)) == ""


async def test_a_node_that_lacks_old_blocks_delays_a_search(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = world.destination.block

    async def lacks(at: At = None) -> Header | None:
        return await read(at) if at is None else None

    order, sent = await a_sent_one(world)
    world.passes(world.destination, 5)
    world.fills(sent)
    with monkeypatch.context() as patched:
        patched.setattr(world.destination, "block", lacks)
        with pytest.raises(ChainError, match="shows no block"):
            await world.looks()
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


# --- What is written ------------------------------------------------------------------------------------


async def test_a_store_that_fails_for_one_order_holds_up_no_other_and_loses_nothing(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [await a_sent_one(world) for _ in range(6)]
    for _, sent in made[:4]:
        world.fills(sent)
    world.passes(world.destination, OVERDUE)
    await world.indexes()
    order_of_rows = [one.row.order_hash for one in await world.desk._orders.read([key for key, _ in made])]
    step = world.orders.step
    refused = {order_of_rows[1], order_of_rows[4]}

    async def refuses(order_hash: bytes, decide: Any) -> Any:
        if order_hash in refused:
            raise StoreUnavailable("away")
        return await step(order_hash, decide)

    ends = {order: _S.COMPLETED if at < 4 else _S.REFUNDING for at, (order, _) in enumerate(made)}
    with monkeypatch.context() as patched:
        patched.setattr(world.orders, "step", refuses)
        with pytest.raises(StoreUnavailable):
            await deliveries(world).look()
    for order, end in ends.items():
        assert await status(world, order) is (_S.BRIDGING if order in refused else end)
    told = deliveries(world).statistics()
    assert told.delivered + told.failed == 4
    await world.looks()
    assert {order: await status(world, order) for order in ends} == ends


async def test_a_store_that_fails_for_one_refund_holds_up_no_other_and_loses_nothing(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = await failed_ones(world, 3)
    for _ in orders:
        world.refunds(PART)
    world.passes(world.origin, CONFIRMATIONS)
    await world.indexes()
    refused = (await world.desk._orders.read(orders))[1].row.order_hash
    step = world.orders.step

    async def refuses(order_hash: bytes, decide: Any) -> Any:
        if order_hash == refused:
            raise StoreUnavailable("away")
        return await step(order_hash, decide)

    with monkeypatch.context() as patched:
        patched.setattr(world.orders, "step", refuses)
        with pytest.raises(StoreUnavailable):
            await refunds(world).look()
    assert await status(world, refused) is _S.REFUNDING
    assert refunds(world).statistics().refunded == 2
    await world.looks()
    assert [await status(world, order) for order in orders] == [_S.REFUNDED] * 3
    assert refunds(world).statistics().refunded == 3


async def test_a_look_says_whether_it_changed_something(world: BridgedWorld) -> None:
    order, sent = await a_sent_one(world)
    world.fills(sent)
    await world.indexes()
    told = [await deliveries(world).look() for _ in range(2)]
    world.passes(world.destination, CONFIRMATIONS)
    told += [await deliveries(world).look() for _ in range(2)]
    assert told == [True, False, True, False]
    await failed_ones(world)
    world.refunds(PART)
    await world.indexes()
    assert [await refunds(world).look() for _ in range(2)] == [True, False]
    world.passes(world.origin, CONFIRMATIONS)
    assert [await refunds(world).look() for _ in range(2)] == [True, False]
    assert amount_of((await world.row(order)).received) == ARRIVES


async def test_orders_whose_refunds_are_settled_are_read_again_only_after_a_change(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await failed_ones(world)
    world.refunds(PART)
    world.passes(world.origin, OVERDUE)
    order, open_one = await a_sent_one(world)
    await world.looks()
    world.passes(world.origin, CONFIRMATIONS)
    for _ in range(2):
        await world.looks()
    reads: list[int] = []
    read = world.store.read

    async def counted(*queries: Any) -> Any:
        reads.append(len(queries))
        return await read(*queries)

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "read", counted)
        await refunds(world).look()
    assert reads == []
    world.fills(open_one)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_orders_of_shards_that_went_are_forgotten(world: BridgedWorld) -> None:
    orders = await failed_ones(world, 4)
    world.passes(world.origin, OVERDUE)
    late, _ = await a_sent_one(world)
    await world.looks()
    held = {orders[0][0], late[0]}
    kept = [order for order in orders if order[0] in held]
    for shards, owing, waiting in ((held, len(kept), 1), ((), 0, 0)):
        world.desk.leave(shards)
        for watch in world.watches():
            await watch.look()
        assert refunds(world).statistics().owed == owing
        assert deliveries(world).statistics().under_way == ({"across": (1, 0)} if waiting else {})


async def test_a_refund_to_another_account_pays_nobody(world: BridgedWorld) -> None:
    (order,) = await failed_ones(world)
    world.refunds(PART, to=BOB)
    world.refunds(PART - 1)
    await world.looks()
    (transfer,) = await world.transfers(order)
    assert transfer.owed == 1
