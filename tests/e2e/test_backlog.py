"""Orders that wait for an agent are settled once it can bid; venue, agent and node are processes."""

import os
import signal
from pathlib import Path

import pytest
import trio

from support.patience import LATE_ROUND_S, STORY_S, until_told
from support.venue.process_story import a_story
from support.venue.venue_processes import AGENT, Running, venue_processes
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.seldom

COUNT = 120


async def stands_still(running: Running) -> None:
    """The only agent stops in the middle of a backlog, until the venue says so, and goes on."""
    async with a_story(running) as story:
        first = await story.submitted(0)
        await story.completed([first])
        os.kill(running.agent_pid, signal.SIGSTOP)
        try:
            ids = [await story.submitted(number) for number in range(1, COUNT)]

            async def is_told() -> bool:
                return "late" in await story.reasons(ids[0])

            await until_told(is_told)
            said = await story.reasons(ids[0])
            assert said["late"].startswith(f"{AGENT} answered too late or not at all")
            (score,) = await story.ask("GET", f"/v2/delta/agents/scores/{CHAIN_ID}")
        finally:
            os.kill(running.agent_pid, signal.SIGCONT)
        assert score["faults"]["late"] >= 1
        await story.completed(ids)

        async def has_delivered() -> bool:
            (after,) = await story.ask("GET", f"/v2/delta/agents/scores/{CHAIN_ID}")
            assert (after["strikes"], after["restsUntil"]) == (0, None)
            assert after["ordersMax"] >= score["ordersMax"]
            return bool(after["delivered"] == COUNT)

        await until_told(has_delivered)


@pytest.mark.process
def test_a_backlog_is_settled_once_the_only_agent_goes_on(tmp_path: Path) -> None:
    pairs = [("WETH", "USDC")]
    with venue_processes(tmp_path, pairs, has_agent=True, round_s=LATE_ROUND_S) as running:

        async def within() -> None:
            with trio.fail_after(STORY_S):
                await stands_still(running)

        trio.run(within)
