"""The watches of deliveries and refunds: what they store, count and say, to the last block and unit."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from cambist.codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import ChainError
from cambist.engine.chain.port import Receipt
from cambist.engine.store.rows import BridgeEnd, BridgeEndState, amount32
from cambist.engine.trade.delta.orders.transfers import key_of
from support.bridge.watched_ends import OVERDUE, a_sent_one, deliveries, failed_ones, key, refunds, status
from support.delta.bridged_world import (
    ARRIVES,
    BLOCK_S,
    BOUNDS,
    CONFIRMATIONS,
    PART,
    START_S,
    BridgedWorld,
    a_bridged_world,
)
from support.store.stores import Engine

_S = OrderStatus
AGE_MS = BOUNDS.refund_ms
LATE_MS = 999_999


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BridgedWorld]:
    async with a_bridged_world(Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)) as world:
        yield world


# --- What is stored -------------------------------------------------------------------------------------


async def test_a_delivery_is_stored_as_its_log_shows_it_and_final_once_its_block_is(
    world: BridgedWorld,
) -> None:
    order, sent = await a_sent_one(world)
    world.passes(world.destination, 2)
    world.fills(sent, output=ARRIVES + 1)
    (log,) = world.destination.line[-1].logs
    for blocks in range(CONFIRMATIONS):
        await world.looks()
        (found,) = await world.transfers(order)
        is_final = blocks == CONFIRMATIONS - 1
        assert found.end == BridgeEnd(
            *key_of(found.sent), order, 10, 1 + is_final, BridgeEndState.DELIVERED,
            log.block_hash, 3, log.tx_hash, log.log_index, amount32(ARRIVES + 1),
            (START_S + 3 * BLOCK_S) * 1_000, is_final,
        )  # fmt: skip
        world.passes(world.destination, 1)
    assert deliveries(world).statistics().delivered == 1


async def test_a_failure_is_stored_with_the_confirmed_block_that_shows_it(world: BridgedWorld) -> None:
    order, sent = await a_sent_one(world)
    late = (sent.relay.fill_deadline - START_S) // BLOCK_S + 1
    world.passes(world.destination, late + CONFIRMATIONS - 2)
    await world.looks()
    assert (await world.transfers(order))[0].end is None
    world.passes(world.destination, 1)
    await world.looks()
    (found,) = await world.transfers(order)
    block = world.destination.line[late].header
    assert found.end == BridgeEnd(
        *key_of(found.sent), order, 10, 1, BridgeEndState.FAILED,
        block.hash, late, None, None, amount32(0), block.time_s * 1_000, is_final=True,
    )  # fmt: skip
    told = deliveries(world).statistics()
    assert (told.delivered, told.failed, told.gone, told.odd, told.late) == (0, 1, 0, 0, 0)


async def test_a_deposit_whose_deadline_was_over_in_the_first_block_has_failed_once_that_is_final(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.delta.bridged_world.FILL_WITHIN_S", -2 * BLOCK_S)
    order, _ = await a_sent_one(world)
    world.passes(world.destination, CONFIRMATIONS - 2)
    await world.looks()
    assert await status(world, order) is _S.BRIDGING
    world.passes(world.destination, 1)
    await world.looks()
    assert await status(world, order) is _S.REFUNDING


async def test_a_refund_is_final_once_its_block_is(world: BridgedWorld) -> None:
    (order,) = await failed_ones(world)
    world.refunds(PART)
    for is_final in (False, False, True):
        await world.looks()
        (transfer,) = await world.transfers(order)
        assert [refund.is_final for refund in transfer.refunds] == [is_final]
        world.passes(world.origin, 1)
    told = refunds(world).statistics()
    assert (told.owed, told.oldest_ms, told.late, told.refunded, told.gone) == (0, 0, 0, 1, 0)


async def test_what_a_reorganisation_undoes_is_counted_once(world: BridgedWorld) -> None:
    order, sent = await a_sent_one(world)
    world.fills(sent)
    await world.looks()
    world.destination.cut(0)
    world.passes(world.destination, OVERDUE)
    await world.looks()
    told = deliveries(world).statistics()
    assert (told.delivered, told.failed, told.gone) == (1, 1, 1)
    height = world.origin.head.number
    world.refunds(PART - 1)
    world.refunds(1)
    await world.looks()
    world.origin.cut(height + 1)
    world.passes(world.origin, 1)
    await world.looks()
    assert await status(world, order) is _S.REFUNDING
    owing = refunds(world).statistics()
    assert (owing.owed, owing.refunded, owing.gone) == (1, 1, 1)
    (transfer,) = await world.transfers(order)
    assert transfer.owed == 1


async def test_an_order_stays_refunded_while_its_parts_become_final_one_by_one(world: BridgedWorld) -> None:
    (order,) = await failed_ones(world)
    world.refunds(PART - 1)
    world.passes(world.origin, 1)
    world.refunds(1)
    await world.looks()
    finals: list[list[bool]] = []
    for _ in range(CONFIRMATIONS + 1):
        await refunds(world).look()
        (transfer,) = await world.transfers(order)
        assert (await status(world, order), transfer.owed) == (_S.REFUNDED, 0)
        finals.append([one.is_final for one in transfer.refunds])
        world.passes(world.origin, 1)
    assert finals == [[True, False], [True, False], [True, True], [True, True]]


async def test_a_refund_of_two_parts_is_followed_until_both_are_final(world: BridgedWorld) -> None:
    (order,) = await failed_ones(world)
    world.refunds(PART - 1)
    world.passes(world.origin, CONFIRMATIONS)
    world.refunds(1)
    await world.looks()
    height = world.origin.head.number
    world.origin.cut(height - 1)
    world.passes(world.origin, 2)
    await world.looks()
    (transfer,) = await world.transfers(order)
    assert (transfer.owed, [one.is_final for one in transfer.refunds]) == (1, [True])


# --- What is counted and said ---------------------------------------------------------------------------


async def test_a_transfer_is_late_above_its_bound_and_told_with_its_age(world: BridgedWorld) -> None:
    order, sent = await a_sent_one(world)
    at_ms, bound_ms = (START_S + BLOCK_S) * 1_000, BOUNDS.delivery_ms[BridgeKind.ACROSS]
    for age_ms, is_late in ((-5_000, False), (0, False), (bound_ms, False), (LATE_MS, True)):
        world.now_ms = at_ms + age_ms
        with capture_logs() as logs:
            await world.looks()
            await world.looks()
        told = deliveries(world).statistics()
        assert (told.under_way, told.late) == ({"across": (1, max(0, age_ms))}, int(is_late))
        alarms = [one["age_s"] for one in logs if one["event"] == "a bridge transfer is late"]
        assert alarms == [age_ms // 1_000] * is_late
    await a_sent_one(world)
    await world.looks()
    told = deliveries(world).statistics()
    assert (told.under_way, told.late) == ({"across": (2, LATE_MS)}, 2)
    world.fills(sent)
    await world.looks()
    assert deliveries(world).statistics().late == 1  # the other
    assert not deliveries(world).is_late(await key(world, order))


async def test_a_refund_is_late_above_its_bound_and_told_with_its_age(world: BridgedWorld) -> None:
    (order,) = await failed_ones(world)
    (transfer,) = await world.transfers(order)
    assert transfer.end is not None
    for age_ms, is_late in ((-5_000, False), (0, False), (AGE_MS, False), (LATE_MS, True)):
        world.now_ms = transfer.end.at_ms + age_ms
        with capture_logs() as logs:
            await refunds(world).look()
            await refunds(world).look()
        told = refunds(world).statistics()
        assert (told.owed, told.oldest_ms, told.late) == (1, max(0, age_ms), int(is_late))
        assert refunds(world).is_late(key_of(transfer.sent)) is is_late
        alarms = [one["age_s"] for one in logs if one["event"] == "a refund of a bridge is late"]
        assert alarms == [age_ms // 1_000] * is_late
    world.refunds(PART)
    await world.looks()
    told = refunds(world).statistics()
    assert (told.owed, told.oldest_ms, told.late, told.refunded) == (0, 0, 0, 1)


async def test_the_oldest_of_several_owed_refunds_is_told(world: BridgedWorld) -> None:
    orders = await failed_ones(world, 2)
    world.settles(extra := await world.placed())
    world.passes(world.destination, OVERDUE)
    await world.looks()
    ends = [(await world.transfers(order))[0].end for order in (*orders, extra)]
    oldest_ms = min(end.at_ms for end in ends if end is not None)
    world.now_ms = oldest_ms + 10**6
    await refunds(world).look()
    told = refunds(world).statistics()
    assert (told.owed, told.oldest_ms, told.late) == (3, 10**6, 3)


async def test_a_delivery_otherwise_than_promised_is_alarmed(world: BridgedWorld) -> None:
    _, sent = await a_sent_one(world)
    _, plain = await a_sent_one(world)
    world.fills(sent, output=ARRIVES - 5)
    world.fills(plain)
    with capture_logs() as logs:
        await world.looks()
    (alarm,) = [one for one in logs if one["event"] == "a bridge delivered otherwise than promised"]
    assert alarm["detail"] == f"{ARRIVES - 5} came of {ARRIVES}"
    assert deliveries(world).statistics().odd == 1


async def test_a_transfer_says_what_it_waits_for(world: BridgedWorld) -> None:
    order, sent = await a_sent_one(world, kind=BridgeKind.CCTP)
    burn = world.burns.copy()
    world.burns.clear()
    await world.looks()
    watch, of_order = deliveries(world), await key(world, order)
    assert watch.hint(of_order) == "it waits for its attestation"
    world.burns |= burn
    await world.looks()
    assert watch.hint(of_order).startswith("it is attested; the venue has no relayer")
    other, _ = await a_sent_one(world)
    await world.looks()
    of_other = await key(world, other)
    assert watch.hint(of_other) == ""
    watch.fault = "the node is away"
    assert watch.hint(of_other) == "the node is away"
    world.fills(sent)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_a_protocol_that_the_venue_does_not_know_is_late_at_once(world: BridgedWorld) -> None:
    order = await world.placed()
    sent = world.settles(order, in_block=False)
    pool, (address, (topics, data)), settled = sent.logs
    selector4 = SELECTORS[BridgeKind.ACROSS]
    assert data.count(selector4) == 1
    unknown = address, (topics, data.replace(selector4, b"\0\1\2\3"))
    world.mines(replace(sent, logs=(pool, unknown, settled)))
    world.now_ms = (START_S + BLOCK_S) * 1_000
    for age_ms in (0, 1):
        world.now_ms += age_ms
        await world.looks()
        told = deliveries(world).statistics()
        assert (told.under_way, told.late) == ({"unknown": (1, age_ms)}, age_ms)
    assert deliveries(world).hint(await key(world, order)) == "the bridge is not served any more"
    assert await status(world, order) is _S.BRIDGING


async def test_a_transfer_from_a_chain_without_a_bridge_says_so(world: BridgedWorld) -> None:
    order, sent = await a_sent_one(world)
    await world.starts(serves_origin=False)
    await world.looks()
    assert deliveries(world).hint(await key(world, order)) == "the bridge is not served any more"
    await world.starts()
    world.fills(sent)
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


@pytest.mark.parametrize(
    ("kind", "origin", "destination"),
    [
        (BridgeKind.ACROSS, {"spoke_pool": None}, {}),
        (BridgeKind.CCTP, {"transmitter": None}, {}),
        (BridgeKind.CCTP, {"domain": None}, {}),
        (BridgeKind.CCTP, {}, {"domain": None}),
    ],
    ids=["no pool", "no transmitter", "no domain", "no domain there"],
)
async def test_a_chain_outside_the_bridge_shows_no_transfer_of_it(
    world: BridgedWorld, kind: BridgeKind, origin: dict[str, Any], destination: dict[str, Any]
) -> None:
    """The destination has Ethereum's number at Circle, 0, or none."""
    order, sent = await a_sent_one(world, kind=kind)
    world.fills(sent)
    await world.starts(origin=origin, destination=destination)
    await world.looks()
    hint = "the configured contracts of the bridge show no such transfer on the origin"
    assert deliveries(world).hint(await key(world, order)) == hint
    assert await status(world, order) is _S.BRIDGING
    await world.starts()
    await world.looks()
    assert await status(world, order) is _S.COMPLETED


async def test_an_origin_without_a_pool_any_more_shows_no_refund(world: BridgedWorld) -> None:
    (order,) = await failed_ones(world)
    world.refunds(PART)
    await world.starts(origin={"spoke_pool": None})
    await world.looks()
    assert await status(world, order) is _S.REFUNDING
    await world.starts()
    await world.looks()
    assert await status(world, order) is _S.REFUNDED


async def test_a_settlement_in_another_block_shows_no_deposit(
    world: BridgedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node may have another line of blocks by now than the index."""
    read = world.origin.receipt

    async def elsewhere(tx_hash: bytes) -> Receipt | None:
        found = await read(tx_hash)
        return None if found is None else replace(found, block_hash=b"\x99" * 32)

    async def away(_: bytes) -> None:
        raise ChainError("no answer")

    order, sent = await a_sent_one(world)
    world.fills(sent)
    await world.indexes()
    hints = {
        elsewhere: "the origin's node does not show the settlement",
        away: f"the origin's node is away: {ChainError('no answer').detail}",
    }
    for receipt, hint in hints.items():
        with monkeypatch.context() as patched:
            patched.setattr(world.origin, "receipt", receipt)
            await deliveries(world).look()
        assert deliveries(world).hint(await key(world, order)) == hint
        assert await status(world, order) is _S.BRIDGING
    await world.looks()
    assert await status(world, order) is _S.COMPLETED
    assert deliveries(world).hint(await key(world, order)) == ""
