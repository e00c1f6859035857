"""A venue of processes goes on trading while clocks jump and makers fall silent in the middle of a round."""

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
import trio

from support.patience import LATE_ROUND_S, PATIENCE_S, STORY_S, until_told
from support.venue.process_story import Story, a_story
from support.venue.venue_processes import Running, venue_processes

PAIRS = [("WETH", "USDC")]
JUMPS_S = (60, -60, 3_600, -3_600)
AT_ONCE = 20


def told(running: Running, story: Callable[[Story], Awaitable[None]]) -> None:
    """Run a story to its end."""

    async def within() -> None:
        with trio.fail_after(STORY_S):
            async with a_story(running) as found:
                await story(found)

    trio.run(within)


async def readiness(story: Story) -> tuple[int, list[str]]:
    answer = await story.clients[0].request(b"GET", b"/readyz", deadline_s=PATIENCE_S)
    return answer.status, msgspec.json.decode(answer.body)["reasons"]


@pytest.mark.long
@pytest.mark.process
def test_a_system_clock_that_jumps_moves_no_order_and_is_told(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")

    async def jumps(story: Story) -> None:
        number = 0
        for jump_s in JUMPS_S:
            waiting = [await story.submitted(number + at) for at in range(AT_ONCE)]
            moved = clock.with_suffix(".new")
            moved.write_text(str(jump_s))
            moved.rename(clock)
            status, reasons = await readiness(story)
            assert status == 503
            assert f"clock: the system's was moved by {jump_s:+d} s; restart this process" in reasons
            off_s = (await story.metrics())["cambist_clock_off_seconds"]
            assert abs(off_s - jump_s) < 1
            waiting += [await story.submitted(number + AT_ONCE + at) for at in range(AT_ONCE)]
            await story.completed(waiting)
            number += 2 * AT_ONCE
            moved.write_text("0")
            moved.rename(clock)
            assert (await readiness(story))[0] == 200
        assert (await story.metrics())["cambist_delta_shards"] == 256, "no lease ran out by it"

    with venue_processes(tmp_path, PAIRS, has_agent=True, clock=clock) as running:
        told(running, jumps)


@pytest.mark.long
@pytest.mark.process
def test_makers_that_fall_silent_in_the_middle_of_a_round_hold_up_what_is_theirs(tmp_path: Path) -> None:
    async def falls_silent(story: Story) -> None:
        alpha, beta = story.running.maker_pids
        await story.completed([await story.submitted(0)])
        ids = [await story.submitted(number) for number in range(1, AT_ONCE)]
        os.kill(alpha, signal.SIGSTOP)
        try:
            ids += [await story.submitted(number) for number in range(AT_ONCE, 2 * AT_ONCE)]
            await story.completed(ids)
            os.kill(beta, signal.SIGSTOP)
            try:
                ids = [await story.submitted(number) for number in range(2 * AT_ONCE, 3 * AT_ONCE)]

                async def is_told() -> bool:
                    said = await story.reasons(ids[-1])
                    return bool({"late", "agentsLate", "noBids"} & set(said))

                await until_told(is_told)
            finally:
                os.kill(beta, signal.SIGCONT)
            await story.completed(ids)
        finally:
            os.kill(alpha, signal.SIGCONT)
        ids = [await story.submitted(number) for number in range(3 * AT_ONCE, 4 * AT_ONCE)]
        await story.completed(ids)

    with venue_processes(tmp_path, PAIRS, has_agent=True, round_s=LATE_ROUND_S) as running:
        told(running, falls_silent)
