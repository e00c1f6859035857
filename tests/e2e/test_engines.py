"""Several engines on one database share the orders, and one goes on with those of another that is killed."""

import os
import signal
from pathlib import Path

import pytest
import trio

from support.patience import STORY_S, until_told
from support.process_story import Story, a_story
from support.venue_processes import Running, venue_processes

ORDERS = 24


async def shards(story: Story, engine: int) -> float:
    return (await story.metrics(engine=engine))["cambist_delta_shards"]


async def share_and_inherit(running: Running) -> None:
    async with a_story(running) as story:

        async def is_shared() -> bool:
            return await shards(story, 0) == await shards(story, 1) == 128

        await until_told(is_shared)
        assert (await story.metrics())["cambist_delta_engines"] == 2
        ids = [await story.submitted(number, engine=number % 2) for number in range(ORDERS)]
        for engine in range(2):
            await story.completed(ids, engine=engine)
        more = [await story.submitted(number, engine=number % 2) for number in range(ORDERS, 2 * ORDERS)]
        os.kill(running.pids[0], signal.SIGKILL)
        more.append(await story.submitted(2 * ORDERS, engine=1))
        await story.completed(more, engine=1)
        assert await shards(story, 1) == 256


@pytest.mark.process
def test_engines_share_the_orders_and_one_goes_on_with_those_of_another(
    tmp_path: Path, postgres_url: str
) -> None:
    pairs = [("WETH", "USDC")]
    with venue_processes(tmp_path, pairs, has_agent=True, store_url=postgres_url, engines=2) as running:

        async def within() -> None:
            with trio.fail_after(STORY_S):
                await share_and_inherit(running)

        trio.run(within)
