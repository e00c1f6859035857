"""Agents that lose, lie, are late, talk nonsense or are not there: the user is settled by who delivers."""

from pathlib import Path

import pytest
import trio

from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import a_delta_story
from support.patience import LATE_ROUND_S, until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

SOON = f"round_s = {LATE_ROUND_S / 4}\nrest_s = 0.2\nrest_s_max = 0.3"


@pytest.mark.parametrize("habit", ["hangs", "garbage", "refuses"])
async def test_one_that_gives_no_answer_of_use_costs_the_user_nothing(
    world: World, tmp_path: Path, habit: str
) -> None:
    delta = f"round_s = {LATE_ROUND_S}" if habit == "hangs" else ""
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=delta) as story:
        story.agents["ann"].habit = habit
        story.agents["bob"].gives = lambda _: 2_450 * USDC
        record, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == 2_450 * USDC
        auction = await story.last_auction(record)
        (order,) = auction["orders"]
        told = {bid["agent"]: bid["notice"] for bid in order["bids"]}
        assert told == {"bob": "won", "ann": "late" if habit == "hangs" else "malformed"}


async def test_a_promise_that_the_simulation_belies_wins_nothing_and_is_told(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: 2_500 * USDC
        ann.lies_by = 100 * USDC
        story.agents["bob"].gives = lambda _: 2_450 * USDC
        record, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == 2_450 * USDC
        await story.heard("ann", record, "simulationMismatch")
        (mismatch,) = ann.told("simulationMismatch")
        assert f"promised {2_600 * USDC}, simulated {2_500 * USDC}" in mismatch.detail
        assert mismatch.simulated_amount == str(2_500 * USDC)
        await until(lambda: bool(ann.told("banned")))
        asked = len(ann.requests)
        ann.lies_by = 0
        second, _ = await story.completed(await world.a_delta_order())
        assert len(ann.requests) == asked, "it rests"
        assert second["output"]["executedAmount"] == str(2_450 * USDC)


async def test_agents_that_an_order_excludes_are_not_shown_it(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob", "cid") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        story.agents["bob"].gives = lambda _: 2_480 * USDC
        story.agents["cid"].gives = lambda _: 2_490 * USDC
        record, moved = await story.completed(await world.a_delta_order(), excludeAgents=["ann"])
        assert moved["user", "USDC"] == 2_490 * USDC
        record, moved = await story.completed(await world.a_delta_order(), includeAgents=["bob"])
        assert moved["user", "USDC"] == 2_480 * USDC
        assert [len(story.agents[name].requests) for name in ("ann", "bob", "cid")] == [0, 2, 1]
        metrics = (await story.web.ask("GET", "/metrics")).body.decode()
        for name, labels, count in (
            ("questions", 'agent="bob",chain="31337"', 2),
            ("questions_failed", 'agent="bob",chain="31337",whose="agent"', 0),
            ("questions_failed", 'agent="bob",chain="31337",whose="venue"', 0),
            ("notices", 'agent="ann",chain="31337",what="lost"', 0),
        ):
            assert f"cambist_delta_agent_{name}_total{{{labels}}} {count}.0" in metrics
        names = await story.web.get("/v2/delta/agents/list/31337")
        assert names == ["ann", "bob", "cid"]
        assert (await story.explain(record))["status"] == "COMPLETED"


async def test_the_promise_wins_and_between_equals_who_was_first(world: World, tmp_path: Path) -> None:
    """The user keeps any delivery beyond the promise; the extra does not help a bid win."""
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.gives, bob.gives = lambda _: 2_520 * USDC, lambda _: 2_500 * USDC
        ann.lies_by = -30 * USDC
        record, moved = await story.completed(await world.a_delta_order())
        await story.heard("bob", record, "won")
        assert moved["user", "USDC"] == 2_500 * USDC
        bob.gives = lambda _: 2_480 * USDC
        record, moved = await story.completed(await world.a_delta_order())
        await story.heard("ann", record, "won", "settled")
        assert moved["user", "USDC"] == 2_520 * USDC
        ann.lies_by, ann.gives, bob.gives = 0, lambda _: 2_500 * USDC, lambda _: 2_500 * USDC
        bob.waits()
        second = await story.submitted(await world.a_delta_order())
        await bob.asked.wait()
        await until(lambda: ann.answered == 3)
        await trio.testing.wait_all_tasks_blocked(0.01)
        bob.may_answer.set()
        await story.becomes(second, "COMPLETED")
        await story.heard("ann", second, "won")


async def test_nobody_learns_of_a_bid_before_the_round_is_closed(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.gives = lambda _: 2_500 * USDC
        bob.gives = lambda _: 2_400 * USDC
        bob.waits()
        record = await story.submitted(await world.a_delta_order())
        await bob.asked.wait()
        await until(lambda: bool(ann.requests))
        auction_id = bob.requests[0].auction_id
        status, _ = await story.web.answer(f"/v2/delta/auctions/{auction_id}")
        assert status == 404
        assert (await story.explain(record))["lastRounds"] == []
        assert ann.notices == bob.notices == []
        assert b"2500" not in bob.requests[0].orders[0].dest_amount.encode()
        bob.may_answer.set()
        await story.becomes(record, "COMPLETED")
        auction = await story.web.get(f"/v2/delta/auctions/{auction_id}")
        (order,) = auction["orders"]
        assert [(bid["agent"], bid["notice"]) for bid in order["bids"]] == [("ann", "won"), ("bob", "lost")]


async def test_with_every_agent_down_an_order_waits_and_is_filled_once_one_is_back(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob", delta=SOON) as story:
        for agent in story.agents.values():
            agent.habit = "hangs"
        record = await story.submitted(await world.a_delta_order())
        await until(lambda: len(story.agents["ann"].requests) >= 2)
        now = await story.record(record["id"])
        assert (now["status"], now["transactions"]) == ("PENDING", [])
        ann = story.agents["ann"]
        ann.habit, ann.gives = "bids", lambda _: 2_500 * USDC
        await story.becomes(record, "COMPLETED")
        assert (await world.balance(world.weth, world.user)) == 9 * ONE
