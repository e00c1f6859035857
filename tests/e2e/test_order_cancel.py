"""Cancelling before, during and after a settlement: the mined transaction decides, and no order is lost."""

from pathlib import Path

import msgspec
import pytest
import trio

from cambist.codecs.contracts.delta_calldata import show_cancellation
from cambist.engine.chain.index.indexer import Indexer
from cambist.engine.trade.orders.order_units import order_id
from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import a_delta_story
from support.patience import until
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def test_an_order_that_nobody_fills_is_cancelled_and_its_nonce_is_free(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        order = await world.a_delta_order()
        before = await story.balances()
        record = await story.submitted(order)
        status, told = await story.cancel(record)
        assert (status, told) == (200, {"success": True, "cancelled": [record["id"]]})
        await story.becomes(record, "CANCELLED")
        ann.gives = lambda _: 2_500 * USDC
        status, refused = await story.cancel(record)
        assert (status, refused["errorType"]) == (400, "OrderAlreadySettled")
        assert await story.balances() == before
        again = msgspec.structs.replace(order, dest_amount=order.dest_amount - 1)
        await story.becomes(await story.submitted(again), "COMPLETED")
        assert (await story.record(record["id"]))["status"] == "CANCELLED"


async def test_an_order_that_is_cancelled_during_a_round_is_let_go(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: 2_500 * USDC
        ann.habit = "bids"
        ann.waits()
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order())
        await ann.asked.wait()
        assert (await story.cancel(record))[0] == 200
        await story.becomes(record, "CANCELLED")
        ann.may_answer.set()
        await story.heard("ann", record, "lost")
        (lost,) = ann.told("lost")
        assert lost.detail == "an order of it was not open any more"
        assert ann.told("won") == ann.told("settling") == []
        (bid,) = (await story.last_auction(record))["orders"][0]["bids"]
        assert (bid["agent"], bid["notice"]) == ("ann", "lost")
        assert await story.balances() == before


async def test_a_settlement_under_way_wins_over_a_cancellation(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        assert (await story.cancel(record))[0] == 200
        assert (await story.record(record["id"]))["status"] == "CANCELLING"
        assert (await story.cancel(record))[0] == 200
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(2_500 * USDC)
        status, refused = await story.cancel(record)
        assert (status, refused["errorType"]) == (400, "OrderAlreadySettled")
        assert await story.record(record["id"]) == record


async def test_a_cancellation_wins_when_the_settlement_under_way_fails(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        story.agents["bob"].gives = lambda _: 2_450 * USDC
        await story.hold()
        order = await world.a_delta_order()
        record = await story.submitted(order)
        await story.under_way(record)
        assert (await story.cancel(record))[0] == 200
        await story.disallow(world.user, "WETH")
        await story.mine()
        await story.confirm()
        await story.becomes(record, "CANCELLED")
        await story.heard("ann", record, "reverted")
        assert story.agents["bob"].told("settling") == [], "a cancelled order gets no runner-up"
        assert (await world.balance(world.weth, world.user)) == 10 * ONE


async def test_several_are_cancelled_together_or_not_at_all(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        order = await world.a_delta_order()
        records = [
            await story.submitted(msgspec.structs.replace(order, nonce=number)) for number in (1, 2, 3)
        ]
        status, refused = await story.cancel(*records, key=world.stranger)
        assert (status, refused["errorType"]) == (400, "InvalidSignature")
        assert {(await story.record(record["id"]))["status"] for record in records} == {"PENDING"}
        assert (await story.cancel(*records))[0] == 200
        for record in records:
            await story.becomes(record, "CANCELLED")


async def test_a_nonce_that_the_owner_gives_up_on_chain_cancels(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        order = await world.a_delta_order()
        record = await story.submitted(order)
        await story.give_up(world.user, order.nonce)
        await story.becomes(record, "CANCELLED")
        status, refused = await story.submit(msgspec.structs.replace(order, dest_amount=1))
        assert (status, refused["errorType"]) == (400, "NonceUsed")


async def test_an_order_is_not_taken_before_its_cancellation_on_chain_would_be_read(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new venue reads the logs of its chain from its first look on."""
    may_look, step = trio.Event(), Indexer.step

    async def looks_late(indexer: Indexer) -> bool:
        await may_look.wait()
        return await step(indexer)

    monkeypatch.setattr(Indexer, "step", looks_late)
    async with a_delta_story(world, tmp_path, "ann") as story, trio.open_nursery() as nursery:
        order = await world.a_delta_order()
        answers: list[tuple[int, dict[str, str]]] = []

        async def submits() -> None:
            answers.append(await story.submit(order))

        nursery.start_soon(submits)
        followed = story.web.app.chains[CHAIN_ID].followed
        await until(lambda: followed.statistics().tasks_waiting == 1)
        ids = [str(order_id(world.delta_hash(order)))]
        shown = show_cancellation(world.user.address, ids, world.cancellation(ids), [order])
        await world.send(world.stranger, world.at.delta, shown)
        assert answers == []
        may_look.set()
        await until(lambda: answers)
        ((status, refused),) = answers
        assert (status, refused["errorType"]) == (400, "NonceUsed")
