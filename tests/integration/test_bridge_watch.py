"""Orders across two chains, from the origin's settlement to delivery or refund, on every store."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from structlog.testing import capture_logs

from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import ChainError, StoreUnavailable
from cambist.engine.chain.port import At, Header, Log, LogFilter, Receipt
from cambist.engine.store.rows import amount_of
from cambist.engine.store.tables import BRIDGE_END
from cambist.engine.store.units import new
from cambist.engine.trade.delta.bridge_desk import BridgeDesk
from cambist.engine.trade.delta.bridging import bridge_rounds, delivery_watch, refund_watch
from cambist.engine.trade.delta.bridging.arrivals import Arrival, fill_of
from cambist.engine.trade.delta.orders.transfers import TransferState
from support.chain.scripted_chain import ScriptedChain, tx
from support.delta.bridged_world import (
    ARRIVES,
    CONFIRMATIONS,
    PART,
    BridgedWorld,
    a_bridged_world,
)
from support.store.stores import BOB, ENGINES, an_end, engine_for

_S = OrderStatus
DEADLINE_BLOCKS = 11
"""Blocks after a settlement until a block is past the fill deadline."""


@pytest.fixture(params=ENGINES)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BridgedWorld]:
    async with a_bridged_world(engine_for(request.param, request, tmp_path)) as world:
        yield world


async def status(world: BridgedWorld, order: bytes) -> OrderStatus:
    return (await world.row(order)).status


async def test_an_order_is_bridging_until_its_delivery_is_verified_and_final_after_both_chains(
    world: BridgedWorld,
) -> None:
    order = await world.placed()
    sent = world.settles(order)
    await world.looks()
    before = await world.row(order)
    assert (before.status, amount_of(before.received)) == (_S.BRIDGING, 0)
    record = await world.record(order)
    assert (record.input.chain_id, record.output.chain_id) == (world.origin.chain_id, 10)
    assert record.transactions[0].destination_tx is None
    world.fills(sent)
    await world.looks()
    after = await world.row(order)
    assert (after.status, amount_of(after.received), after.is_final) == (_S.COMPLETED, ARRIVES, False)
    assert (await world.record(order)).output.executed_amount == str(ARRIVES)
    world.passes(world.destination, CONFIRMATIONS)
    await world.looks()
    assert not (await world.row(order)).is_final
    world.passes(world.origin, CONFIRMATIONS)
    await world.looks()
    world.passes(world.origin, CONFIRMATIONS)
    await world.looks()
    assert (await world.row(order)).is_final
    assert len(world.orders) == 0


async def test_a_relayer_that_never_fills_leads_to_a_refund(world: BridgedWorld) -> None:
    order = await world.placed()
    world.settles(order)
    world.passes(world.destination, DEADLINE_BLOCKS + CONFIRMATIONS - 1)
    await world.looks()
    assert await status(world, order) is _S.BRIDGING
    world.passes(world.destination, 1)
    await world.looks()
    assert await status(world, order) is _S.REFUNDING
    assert (await world.record(order)).refunds == ()
    world.refunds(PART)
    await world.looks()
    row = await world.row(order)
    assert (row.status, row.is_final) == (_S.REFUNDED, False)
    (refund,) = (await world.record(order)).refunds
    assert (refund.chain_id, refund.amount) == (world.origin.chain_id, str(PART))
    world.passes(world.origin, CONFIRMATIONS)
    await world.looks()
    world.passes(world.origin, CONFIRMATIONS)
    await world.looks()
    assert (await world.row(order)).is_final


async def test_a_deadline_that_no_block_shows_is_told_with_what_is_waited_for(world: BridgedWorld) -> None:
    order = await world.placed()
    world.settles(order)
    await world.looks()
    assert [wait.hint for wait in await world.desk.waits(order)] == [""]
    world.now_ms += 86_400_000
    await world.looks()
    (wait,) = await world.desk.waits(order)
    assert wait.hint.startswith("its deadline passed at ")
    assert wait.hint.endswith(
        f"a confirmed block of chain {world.destination.chain_id} after that shows whether a refund is due"
    )
    assert await status(world, order) is _S.BRIDGING


async def test_a_fill_in_the_last_second_counts(world: BridgedWorld) -> None:
    order = await world.placed()
    sent = world.settles(order)
    world.passes(world.destination, DEADLINE_BLOCKS - 1)
    world.fills(sent)
    world.passes(world.destination, 40)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_reorganisations_of_each_chain_are_followed(world: BridgedWorld) -> None:
    order = await world.placed()
    sent = world.settles(order)
    world.fills(sent)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED
    world.destination.cut(0)
    world.passes(world.destination, 2)
    await world.looks()
    row = await world.row(order)
    assert (row.status, amount_of(row.received)) == (_S.BRIDGING, 0)
    world.fills(sent)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED
    world.origin.cut(0)
    world.passes(world.origin, 2)
    await world.looks()
    row = await world.row(order)
    assert (row.status, amount_of(row.spent), amount_of(row.received)) == (_S.ACTIVE, 0, 0)
    assert await world.transfers(order) == ()


async def test_a_failed_slice_that_is_mined_anew_is_looked_at_again(world: BridgedWorld) -> None:
    """The order's row says the same before and after."""
    order = await world.placed(slices=2)
    sent = world.settles(order, is_last=False)
    world.passes(world.destination, 60)
    await world.looks()
    (before,) = await world.transfers(order)
    assert before.state is TransferState.FAILED
    world.origin.cut(0)
    world.passes(world.origin, 1)
    world.mines(sent)
    await world.looks()
    (after,) = await world.transfers(order)
    assert after.sent != before.sent
    assert after.state is TransferState.FAILED
    world.refunds(PART)
    await world.looks()
    (back,) = await world.transfers(order)
    assert back.state is TransferState.REFUNDED


async def test_a_refund_that_leaves_the_chain_is_owed_again(world: BridgedWorld) -> None:
    order = await world.placed()
    world.settles(order)
    world.passes(world.destination, 40)
    await world.looks()
    world.passes(world.origin, 1)
    height = world.origin.head.number
    world.refunds(PART)
    await world.looks()
    assert await status(world, order) is _S.REFUNDED
    world.origin.cut(height)
    world.passes(world.origin, 1)
    await world.looks()
    assert await status(world, order) is _S.REFUNDING
    world.refunds(PART // 2)
    await world.looks()
    assert await status(world, order) is _S.REFUNDING
    world.refunds(PART - PART // 2)
    await world.looks()
    assert await status(world, order) is _S.REFUNDED
    assert [int(one.amount) for one in (await world.record(order)).refunds] == [PART // 2, PART - PART // 2]


async def test_a_part_of_a_refund_that_moves_to_another_block_is_found_there(world: BridgedWorld) -> None:
    """Blocks that were read before they were final are read again."""
    order = await world.placed()
    world.settles(order)
    world.passes(world.destination, 60)
    await world.looks()
    height = world.origin.head.number
    world.refunds(PART // 2)
    (block,) = world.origin.line[height + 1 :]
    world.passes(world.origin, 1)
    await world.looks()
    (before,) = await world.transfers(order)
    assert before.owed == PART // 2
    world.origin.cut(height)
    logs = [(log.address, (log.topics, log.data)) for log in block.logs]
    world.origin.grow([tx(world.names[-1], *logs)], [], [])
    await world.looks()
    (after,) = await world.transfers(order)
    assert after.owed == PART // 2
    assert after.refunds[0].block_hash == world.origin.line[height + 1].header.hash


async def test_a_step_decided_on_rows_that_have_changed_is_not_written(world: BridgedWorld) -> None:
    order = await world.placed(slices=2)
    world.settles(order, is_last=False)
    await world.indexes()
    (seen,) = await world.desk._orders.read([order])
    world.settles(order)
    await world.indexes()
    end = an_end(seen.transfers[0].sent)
    changed = [replace(seen.transfers[0], end=end)]
    assert not await world.desk._orders.write(seen, changed, [new(BRIDGE_END, end)])
    assert [one.state for one in await world.transfers(order)] == [TransferState.UNDER_WAY] * 2
    (now,) = await world.desk._orders.read([order])
    assert await world.desk._orders.write(now, changed, [new(BRIDGE_END, end)])
    assert await status(world, order) is _S.BRIDGING


async def test_slices_are_delivered_and_refunded_each_for_itself(world: BridgedWorld) -> None:
    order = await world.placed(slices=3)
    first = world.settles(order, is_last=False)
    await world.looks()
    world.fills(first)
    await world.looks()
    row = await world.row(order)
    assert (row.status, amount_of(row.received)) == (_S.ACTIVE, ARRIVES)
    world.settles(order, is_last=False)
    third = world.settles(order)
    world.fills(third)
    await world.looks()
    assert await status(world, order) is _S.BRIDGING
    world.passes(world.destination, 40)
    await world.looks()
    assert await status(world, order) is _S.REFUNDING
    world.refunds(PART)
    await world.looks()
    row = await world.row(order)
    assert (row.status, amount_of(row.received)) == (_S.REFUNDED, 2 * ARRIVES)
    record = await world.record(order)
    assert [one.received_amount for one in record.transactions] == [str(ARRIVES), None, str(ARRIVES)]


async def test_one_entry_refunds_several_deposits_and_no_unit_counts_twice(world: BridgedWorld) -> None:
    orders = [await world.placed() for _ in range(3)]
    for order in orders:
        world.settles(order)
    world.passes(world.destination, 60)
    await world.looks()
    world.refunds(2 * PART)
    await world.looks()
    assert [await status(world, order) for order in orders] == [_S.REFUNDED, _S.REFUNDED, _S.REFUNDING]
    world.refunds(PART, is_paid=False)
    world.refunds(PART, to=BOB)
    await world.looks()
    assert await status(world, orders[2]) is _S.REFUNDING
    world.refunds(PART)
    await world.looks()
    assert await status(world, orders[2]) is _S.REFUNDED


async def test_a_forged_fill_delivers_nothing_and_a_fill_of_less_counts_with_what_came(
    world: BridgedWorld,
) -> None:
    order, other = await world.placed(), await world.placed()
    sent, cheap = world.settles(order), world.settles(other)
    world.fills(sent, pool=b"\x77" * 20)
    foreign = world.settles(order, in_block=False)
    forged = replace(sent.relay, output_amount=1)
    world.fills(replace(foreign, name=b"forged", relay=forged))
    world.fills(cheap, output=ARRIVES - 5)
    await world.looks()
    assert await status(world, order) is _S.BRIDGING
    row = await world.row(other)
    assert (row.status, amount_of(row.received)) == (_S.COMPLETED, ARRIVES - 5)
    assert world.desk.statistics()[10].deliveries.odd == 1


async def test_a_flood_of_forged_fills_is_read_for_its_own_deposit_alone(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def counted(log: Log, *others: Any) -> Arrival | None:
        read.append(log.tx_hash)
        return fill_of(log, *others)

    monkeypatch.setattr(delivery_watch, "fill_of", counted)
    orders = [await world.placed() for _ in range(4)]
    sent = [world.settles(order) for order in orders]
    for number in range(5):
        forged = replace(sent[0].relay, output_amount=1)
        world.fills(replace(sent[0], name=b"forged %d" % number, relay=forged))
    world.fills(sent[1])
    for watch in world.watches():
        await world.indexes()
        await watch.look()
    assert len(read) == 6
    await world.looks()
    assert [await status(world, order) for order in orders[:2]] == [_S.BRIDGING, _S.COMPLETED]


async def test_a_node_is_asked_for_the_fills_of_waiting_deposits_alone(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[LogFilter] = []
    read = world.destination.logs

    async def noted(wanted: LogFilter, first: int, last: int) -> list[Log]:
        asked.append(wanted)
        return await read(wanted, first, last)

    delivered = world.settles(await world.placed())
    world.fills(delivered)
    await world.looks()
    sent = world.settles(await world.placed())
    monkeypatch.setattr(world.destination, "logs", noted)
    await world.looks()
    topics = {wanted.topics[1:] for wanted in asked}
    assert topics == {((uint_word(world.origin.chain_id),), (uint_word(sent.relay.deposit_id),))}


async def test_forged_fills_in_many_blocks_cost_no_request_each(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one deposit's forged fills, which anybody can make, keep a look from its end, and all orders."""
    asked: list[At] = []
    read = world.destination.block

    async def counted(at: At = None) -> Header | None:
        asked.append(at)
        return await read(at)

    sent = world.settles(await world.placed())
    for number in range(100):
        forged = replace(sent.relay, output_amount=1)
        world.fills(replace(sent, name=b"forged %d" % number, relay=forged))
    await world.indexes()
    monkeypatch.setattr(world.destination, "block", counted)
    for watch in world.watches():
        await watch.look()
    assert len(asked) < 20


async def test_an_order_whose_transfers_are_all_final_is_read_again_only_after_a_change(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await world.placed(slices=2)
    world.fills(world.settles(order, is_last=False))
    for _ in range(3):
        await world.looks()
        world.passes(world.destination, CONFIRMATIONS)
        world.passes(world.origin, CONFIRMATIONS)
    reads: list[int] = []
    read = world.store.read

    async def counted(*queries: Any) -> Any:
        reads.append(len(queries))
        return await read(*queries)

    monkeypatch.setattr(world.store, "read", counted)
    deliveries = world.watches()[1]
    await deliveries.look()
    assert reads == []
    monkeypatch.undo()
    sent = world.settles(order)
    await world.looks()
    world.fills(sent)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_a_look_that_has_no_time_left_asks_for_no_more_deliveries_and_refunds(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else deliveries in very many blocks keep each look from its end, and none of them is ever final."""
    deliveries, refunds = world.watches()[1], world.watches()[2]
    for order in [await world.placed() for _ in range(9)]:
        world.settles(order)
    world.passes(world.destination, 40)
    await world.looks()
    for _ in range(9):
        world.refunds(PART)
    await refunds.look()
    for one in [world.settles(await world.placed()) for _ in range(9)]:
        world.fills(one)
    await world.indexes()
    await deliveries.look()
    asked: list[At] = []
    for chain in (world.origin, world.destination):
        read = chain.block

        async def counted(at: At = None, read: Any = read) -> Header | None:
            asked.append(at)
            found: Header | None = await read(at)
            return found

        monkeypatch.setattr(chain, "block", counted)
    with monkeypatch.context() as hurried:
        hurried.setattr(bridge_rounds, "BRIDGE_SEARCH_S", -1.0)
        assert await deliveries.look()
        assert await refunds.look()
    assert asked == [None, None]


async def test_a_delivery_under_a_false_attestation_is_found_once_the_service_tells_the_truth(
    world: BridgedWorld,
) -> None:
    world.false_nonce = b"\x66" * 32
    order = await world.placed(kind=BridgeKind.CCTP)
    sent = world.settles(order)
    await world.looks()
    world.fills(sent)
    world.passes(world.destination, 2 * CONFIRMATIONS)
    await world.looks()
    assert await status(world, order) is _S.BRIDGING
    world.false_nonce = b""
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_a_crash_at_any_point_loses_nothing(world: BridgedWorld) -> None:
    order = await world.placed(slices=2)
    first = world.settles(order, is_last=False)
    await world.starts()
    await world.looks()
    world.fills(first)
    second = world.settles(order)
    await world.starts()
    await world.indexes()
    await world.starts()
    await world.looks()
    assert await status(world, order) is _S.BRIDGING
    world.fills(second)
    world.passes(world.destination, CONFIRMATIONS)
    await world.starts()
    await world.looks()
    world.passes(world.origin, CONFIRMATIONS)
    await world.starts()
    await world.looks()
    world.passes(world.origin, CONFIRMATIONS)
    await world.looks()
    row = await world.row(order)
    assert (row.status, row.is_final, amount_of(row.received)) == (_S.COMPLETED, True, 2 * ARRIVES)


async def test_a_node_that_answers_few_blocks_at_a_time_is_asked_for_fewer(world: BridgedWorld) -> None:
    world.origin.range_blocks_max = world.destination.range_blocks_max = 3
    order, other = await world.placed(), await world.placed()
    sent = world.settles(order)
    world.settles(other)
    world.fills(sent)
    world.passes(world.destination, 60)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED
    world.passes(world.origin, 30)
    world.refunds(PART)
    world.passes(world.origin, 30)
    await world.looks()
    assert await status(world, other) is _S.REFUNDED


async def test_a_refund_many_ranges_after_the_failure_is_found_by_looks_that_follow_at_once(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_rounds, "BRIDGE_RANGE_BLOCKS_MAX", 3)
    monkeypatch.setattr(refund_watch, "BRIDGE_RANGES_PER_ROUND", 2)
    await world.starts()
    order = await world.placed()
    world.settles(order)
    world.passes(world.destination, DEADLINE_BLOCKS + CONFIRMATIONS)
    await world.looks()
    assert await status(world, order) is _S.REFUNDING
    world.passes(world.origin, 60)
    world.refunds(PART)
    await world.indexes()
    while await world.desk._refunds[world.origin.chain_id].look():
        pass
    await world.indexes()
    assert await status(world, order) is _S.REFUNDED


async def test_a_fill_many_ranges_after_the_transfer_is_found_by_looks_that_follow_at_once(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_rounds, "BRIDGE_RANGE_BLOCKS_MAX", 1)
    monkeypatch.setattr(delivery_watch, "BRIDGE_RANGES_PER_ROUND", 2)
    await world.starts()
    order = await world.placed()
    sent = world.settles(order)
    world.passes(world.destination, DEADLINE_BLOCKS - 2)
    world.fills(sent)
    await world.indexes()
    while await world.desk._deliveries[world.destination.chain_id].look():
        pass
    assert await status(world, order) is _S.COMPLETED


async def test_a_node_that_hides_a_fill_makes_no_transfer_fail(world: BridgedWorld) -> None:
    """The pool's own state says that the deposit is filled."""
    order = await world.placed()
    sent = world.settles(order)
    world.fills(sent)
    world.passes(world.destination, 60)
    world.destination.hides_logs = True
    await world.indexes()
    for _ in range(3):
        await world.glances()
    assert await status(world, order) is _S.BRIDGING
    (wait,) = await world.desk.waits(order)
    assert wait.hint == "the bridge says that it delivered, and the node shows no log"
    world.destination.hides_logs = False
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_an_outage_of_the_destination_delays_and_loses_nothing(world: BridgedWorld) -> None:
    order = await world.placed()
    sent = world.settles(order)
    world.destination.is_away = True
    world.fills(sent)
    await world.indexes()
    await world.glances()
    assert await status(world, order) is _S.BRIDGING
    world.destination.is_away = False
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_an_origin_that_is_away_is_asked_for_one_receipt_in_a_look(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def away(tx_hash: bytes) -> None:
        asked.append(tx_hash)
        await trio.lowlevel.checkpoint()
        raise ChainError("no answer")

    for _ in range(3):
        world.settles(await world.placed())
    await world.indexes()
    monkeypatch.setattr(world.origin, "receipt", away)
    await world.glances()
    assert len(asked) == 1


@pytest.mark.parametrize("is_there", [False, True], ids=["no receipt", "a receipt without logs"])
async def test_a_node_that_lacks_a_receipt_loses_no_delivery_and_no_refund(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    """Logs and receipts may come from different nodes, of which one is behind."""

    async def lacks(tx_hash: bytes) -> Receipt | None:
        found = await ScriptedChain.receipt(chain, tx_hash)
        return replace(found, logs=()) if found is not None and is_there else None

    order, other = await world.placed(), await world.placed()
    sent = world.settles(order)
    world.settles(other)
    await world.looks()
    world.fills(sent)
    world.passes(world.destination, 2 * CONFIRMATIONS)
    chain: ScriptedChain = world.destination
    with monkeypatch.context() as behind:
        behind.setattr(chain, "receipt", lacks)
        with pytest.raises(ChainError, match="no receipt"):
            await world.looks()
    world.passes(world.destination, DEADLINE_BLOCKS)
    await world.looks()
    assert [await status(world, one) for one in (order, other)] == [_S.COMPLETED, _S.REFUNDING]
    world.refunds(PART)
    world.passes(world.origin, 2 * CONFIRMATIONS)
    await world.indexes()
    chain = world.origin
    with monkeypatch.context() as behind:
        behind.setattr(chain, "receipt", lacks)
        with pytest.raises(ChainError, match="no receipt"):
            await world.looks()
    await world.looks()
    assert await status(world, other) is _S.REFUNDED


async def test_engines_that_share_a_store_do_not_count_a_refund_twice(world: BridgedWorld) -> None:
    """Each sees the entry whole, and allocates it to an order of its own."""
    orders = [await world.placed() for _ in range(2)]
    for order in orders:
        world.settles(order)
    world.passes(world.destination, 60)
    await world.looks()
    world.refunds(PART)
    await world.indexes()
    await world.looks()
    states = sorted([(await world.transfers(order))[0].state for order in orders])
    assert states == [TransferState.FAILED, TransferState.REFUNDED]
    owing = orders[[(await world.transfers(order))[0].owed > 0 for order in orders].index(True)]
    await world.starts(only=owing)
    await world.looks()
    assert await status(world, owing) is _S.REFUNDING


async def test_engines_that_allocate_an_entry_at_once_count_each_unit_once(world: BridgedWorld) -> None:
    orders = [await world.placed() for _ in range(2)]
    for order in orders:
        world.settles(order)
    world.passes(world.destination, 60)
    await world.looks()
    world.refunds(PART + PART // 2)
    desks = []
    for order in orders:
        await world.starts(only=order)
        desks.append(world.desk)
    refused = 0

    async def looks(desk: BridgeDesk) -> None:
        nonlocal refused
        try:
            await desk._refunds[world.origin.chain_id].look()
        except StoreUnavailable:
            refused += 1

    for _ in range(3):
        async with trio.open_nursery() as nursery:
            for desk in desks:
                nursery.start_soon(looks, desk)
    owed = sorted([(await world.transfers(order))[0].owed for order in orders])
    assert owed == [0, PART // 2]
    assert refused <= 1


async def test_a_transfer_to_a_chain_without_a_bridge_says_so(world: BridgedWorld) -> None:
    order = await world.placed()
    world.settles(order)
    await world.starts(only=order, serves_destination=False)
    await world.indexes()
    (wait,) = await world.desk.waits(order)
    assert (wait.is_late, "no bridge of that chain" in wait.hint) == (True, True)


async def test_a_destination_without_the_bridges_contract_says_so_and_lets_the_node_rest(
    world: BridgedWorld,
) -> None:
    order = await world.placed()
    sent = world.settles(order)
    await world.starts(destination={"spoke_pool": None})
    await world.looks()
    (wait,) = await world.desk.waits(order)
    assert "no contract of its bridge" in wait.hint
    assert await status(world, order) is _S.BRIDGING
    await world.starts()
    world.fills(sent)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_a_transfer_that_waits_too_long_is_late_and_says_so(world: BridgedWorld) -> None:
    order = await world.placed()
    sent = world.settles(order)
    await world.looks()
    (wait,) = await world.desk.waits(order)
    assert (wait.transfer.state, wait.is_late) == (TransferState.UNDER_WAY, False)
    world.now_ms += 120_000
    await world.looks()
    (wait,) = await world.desk.waits(order)
    assert wait.is_late
    told = world.desk.statistics()[10].deliveries
    assert (told.late, told.under_way) == (1, {"across": (1, 108_000)})
    world.fills(sent)
    await world.looks()
    await world.looks()
    told = world.desk.statistics()[10].deliveries
    assert await world.desk.waits(order) == ()
    assert (told.delivered, told.under_way) == (1, {})


async def test_a_transfer_that_is_late_at_the_first_look_is_alarmed_with_what_it_waits_for(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_receipt(_: bytes) -> None:
        return None

    order = await world.placed()
    world.settles(order)
    await world.indexes()
    world.now_ms += 120_000
    monkeypatch.setattr(world.origin, "receipt", no_receipt)
    with capture_logs() as logs:
        await world.glances()
    (alarm,) = [one for one in logs if one["event"] == "a bridge transfer is late"]
    assert alarm["waits"] == "the origin's node does not show the settlement"
    (wait,) = await world.desk.waits(order)
    assert (wait.is_late, wait.hint) == (True, alarm["waits"])
