"""kill -9 of the venue at each step between the submission of a Delta order and its completion: after its
next start every acknowledged order comes to the right end, none is settled twice, no cancellation is lost."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.config.errors import MakerError
from cambist.crypto.keccak import keccak256
from support.chain.world import ONE, USDC
from support.delta.delta_process import CrashStory, Record, a_crash_story

pytestmark = pytest.mark.seldom

BEST, NEXT = 2_500 * USDC, 2_450 * USDC
SOLD = {"user WETH": -ONE, "user USDC": BEST, "agent WETH": ONE, "agent USDC": -BEST}
"""Balance changes once the order of `World.a_delta_order` is settled with the agents' own contract."""


async def moved(story: CrashStory, before: dict[str, int]) -> dict[str, int]:
    """Balance changes since `before`."""
    after = await story.traded()
    return {name: after[name] - before[name] for name in before if after[name] != before[name]}


async def is_completed_once(story: CrashStory, record: Record, before: dict[str, int]) -> None:
    """Check that the sale is completed once and stays so, and that a later order settles."""
    record = await story.becomes(record, "COMPLETED")
    assert record["output"]["executedAmount"] == str(BEST)
    assert await moved(story, before) == SOLD
    assert await story.relayed() == 1
    await story.confirm()
    await story.becomes(await story.submitted(await story.world.a_delta_order()), "COMPLETED")
    assert await story.record(record) | {"updatedAt": ""} == record | {"updatedAt": ""}
    assert await story.times_settled(record) == 1
    assert await story.relayed() == 2


async def is_never_settled(story: CrashStory, record: Record, relayed: int) -> None:
    """A cancelled order stays so while rounds go on and others are settled."""
    await story.becomes(record, "CANCELLED")
    await story.becomes(await story.submitted(await story.world.a_delta_order()), "COMPLETED")
    await story.confirm()
    await story.becomes(await story.submitted(await story.world.a_delta_order()), "COMPLETED")
    assert (await story.record(record))["status"] == "CANCELLED"
    assert await story.times_settled(record) == 0
    assert await story.relayed() == relayed + 2


# --- A sale -------------------------------------------------------------------------------------------------


async def right_after_the_answer(story: CrashStory, order: DeltaOrder) -> Record:
    return await story.submitted(order)


async def during_a_round(story: CrashStory, order: DeltaOrder) -> Record:
    ann = story.agents["ann"]
    ann.waits()
    record = await story.submitted(order)
    await ann.asked.wait()
    return record


async def at(story: CrashStory, order: DeltaOrder, method: str) -> Record:
    """Submit the order and wait until the venue has sent its first request with `method`."""
    record = await story.submitted(order)
    await story.node.swallows(method).wait()
    return record


async def before_it_is_simulated(story: CrashStory, order: DeltaOrder) -> Record:
    ann = story.agents["ann"]
    ann.waits()
    record = await story.submitted(order)
    await ann.asked.wait()
    reached = story.node.swallows("eth_call")
    ann.may_answer.set()
    await reached.wait()
    return record


async def before_it_is_signed(story: CrashStory, order: DeltaOrder) -> Record:
    """The winner and the relayer's intent are durable, its nonce is not chosen."""
    story.node.swallows("eth_getTransactionCount")
    return await at(story, order, "eth_getTransactionCount")


async def before_it_is_handed_in(story: CrashStory, order: DeltaOrder) -> Record:
    story.node.swallows("eth_sendRawTransaction")
    return await at(story, order, "eth_sendRawTransaction")


async def after_it_was_handed_in(story: CrashStory, order: DeltaOrder) -> Record:
    await story.chain.set_automine(on=False)
    record = await story.submitted(order)
    await story.handed_in()
    return record


async def before_it_is_seen_mined(story: CrashStory, order: DeltaOrder) -> Record:
    """The indexer may have seen it; the relayer has not."""
    story.node.swallows("eth_getTransactionReceipt")
    return await at(story, order, "eth_getTransactionReceipt")


async def before_it_is_final(story: CrashStory, order: DeltaOrder) -> Record:
    return await story.becomes(await story.submitted(order), "COMPLETED")


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "moment",
    [
        right_after_the_answer,
        during_a_round,
        before_it_is_simulated,
        before_it_is_signed,
        before_it_is_handed_in,
        after_it_was_handed_in,
        before_it_is_seen_mined,
        before_it_is_final,
    ],
    ids=lambda moment: moment.__name__,
)
async def test_a_sale_is_completed_once(
    tmp_path: Path, moment: Callable[[CrashStory, DeltaOrder], Awaitable[Record]]
) -> None:
    async with a_crash_story(tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: BEST
        before = await story.traded()
        record = await moment(story, await story.world.a_delta_order())
        await story.kill()
        story.agents["ann"].may_answer.set()
        story.node.lets_through()
        await story.start()
        assert (await story.record(record))["id"] == record["id"]
        await story.mine()
        await is_completed_once(story, record, before)
        first = keccak256(story.node.handed_in[0])
        assert (await story.chain.receipt(first)) is not None, "what is handed in again is the same"


async def test_what_is_mined_while_the_venue_is_dead_is_found(tmp_path: Path) -> None:
    async with a_crash_story(tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: BEST
        before = await story.traded()
        record = await after_it_was_handed_in(story, await story.world.a_delta_order())
        await story.kill()
        await story.mine()
        await story.confirm()
        await story.start()
        await is_completed_once(story, record, before)
        assert len(set(story.node.handed_in)) == 2


async def test_what_the_chain_takes_back_while_the_venue_is_dead_is_settled_again(tmp_path: Path) -> None:
    async with a_crash_story(tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: BEST
        before = await story.traded()
        record = await before_it_is_final(story, await story.world.a_delta_order())
        await story.kill()
        await story.chain.reorganise(1)
        assert await story.traded() == before
        await story.chain.set_automine(on=False)
        await story.start()
        await story.handed_in()
        await story.undone(record)
        await story.mine()
        await is_completed_once(story, record, before)


async def test_one_without_an_answer_is_submitted_again(tmp_path: Path) -> None:
    async with a_crash_story(tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: BEST
        before = await story.traded()
        order = await story.world.a_delta_order()
        reached = story.node.swallows("eth_call")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(without_an_answer, story, order)
            await reached.wait()
            await story.kill()
        story.node.lets_through()
        await story.start()
        record = await story.submitted(order)
        assert (await story.submitted(order))["id"] == record["id"]
        await is_completed_once(story, record, before)


async def without_an_answer(story: CrashStory, order: DeltaOrder) -> None:
    with pytest.raises(MakerError):
        await story.submitted(order)


# --- A cancellation -----------------------------------------------------------------------------------------


async def test_a_cancellation_of_what_waits_is_not_lost(tmp_path: Path) -> None:
    async with a_crash_story(tmp_path, "ann") as story:
        before = await story.traded()
        record = await story.submitted(await story.world.a_delta_order())
        await story.cancelled(record)
        await story.kill()
        assert await story.traded() == before
        story.agents["ann"].gives = lambda _: BEST
        await story.start()
        await is_never_settled(story, record, 0)


async def test_a_cancellation_during_a_round_is_not_lost(tmp_path: Path) -> None:
    async with a_crash_story(tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: BEST
        record = await during_a_round(story, await story.world.a_delta_order())
        await story.cancelled(record)
        await story.kill()
        ann.may_answer.set()
        await story.start()
        await is_never_settled(story, record, 0)


@pytest.mark.parametrize("dead_when_mined", [True, False])
async def test_a_settlement_under_way_wins_over_a_cancellation(
    tmp_path: Path, *, dead_when_mined: bool
) -> None:
    async with a_crash_story(tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: BEST
        before = await story.traded()
        record = await after_it_was_handed_in(story, await story.world.a_delta_order())
        await story.cancelled(record)
        await story.kill()
        if dead_when_mined:
            await story.mine()
        await story.start()
        if not dead_when_mined:
            assert (await story.record(record))["status"] == "CANCELLING"
            await story.mine()
        await is_completed_once(story, record, before)


@pytest.mark.parametrize("dead_when_mined", [True, False])
async def test_a_cancellation_wins_when_the_settlement_under_way_fails(
    tmp_path: Path, *, dead_when_mined: bool
) -> None:
    async with a_crash_story(tmp_path, "ann", "bob") as story:
        story.agents["ann"].gives = lambda _: BEST
        story.agents["bob"].gives = lambda _: NEXT
        before = await story.traded()
        record = await after_it_was_handed_in(story, await story.world.a_delta_order())
        await story.cancelled(record)
        await story.kill()
        await story.disallow()
        if dead_when_mined:
            await story.mine()
        await story.start()
        if not dead_when_mined:
            assert (await story.record(record))["status"] == "CANCELLING"
            await story.mine()
        await story.confirm()
        await story.becomes(record, "CANCELLED")
        assert await story.traded() == before
        await story.world.approve(story.world.user, story.world.weth, story.world.at.delta)
        await is_never_settled(story, record, 1)


# --- A settlement that is reverted --------------------------------------------------------------------------


async def before_the_revert_is_seen(story: CrashStory) -> None:
    reached = story.node.swallows("eth_getTransactionReceipt")
    await story.mine()
    await reached.wait()


async def before_the_runner_up_is_handed_in(story: CrashStory) -> None:
    reached = story.node.swallows("eth_sendRawTransaction")
    await story.mine()
    await reached.wait()


@pytest.mark.parametrize(
    "moment",
    [before_the_revert_is_seen, before_the_runner_up_is_handed_in],
    ids=lambda moment: moment.__name__,
)
async def test_the_runner_up_settles_what_the_winner_did_not(
    tmp_path: Path, moment: Callable[[CrashStory], Awaitable[None]]
) -> None:
    async with a_crash_story(tmp_path, "ann", "bob") as story:
        story.agents["ann"].gives = lambda _: BEST
        story.agents["bob"].gives = lambda _: NEXT
        stock = await story.with_its_own_stock("ann")
        before = await story.traded()
        record = await after_it_was_handed_in(story, await story.world.a_delta_order())
        await story.emptied(stock)
        await moment(story)
        await story.killed_and_started()
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(NEXT)
        sold = {"user WETH": -ONE, "user USDC": NEXT, "agent WETH": ONE, "agent USDC": -NEXT}
        assert await moved(story, before) == sold
        await story.confirm()
        assert (await story.record(record))["status"] == "COMPLETED"
        assert await story.times_settled(record) == 1
        assert await story.relayed() == 2
