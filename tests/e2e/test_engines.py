"""Engines on one database share the orders while one joins, one leaves in good order, and one is killed."""

import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
import trio

from support.patience import STORY_S, until, until_told
from support.venue.process_story import Story, a_story
from support.venue.venue_processes import SERVE, Running, serving, venue_processes
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.seldom

ORDERS = 12
"""Orders that the load keeps under way, and orders that an engine takes right before its end."""
HOLDS = f'cambist_delta_relayer_holds{{chain="{CHAIN_ID}"}}'


class Load:
    """Owners who sell at the engines in turn.

    Attributes:
        engines: these engines take the orders; the list may change meanwhile.
        ids: ids of the orders, by number.
    """

    def __init__(self, engines: Sequence[Story]) -> None:
        self.engines = engines
        self.ids: list[str] = []
        self._is_over = False
        self._ended = trio.Event()

    async def run(self) -> None:
        """Sell on and on, with ORDERS under way, until `end`."""
        while not self._is_over:
            engine = self.engines[len(self.ids) % len(self.engines)]
            await self.send(engine)
            if len(self.ids) > ORDERS:
                await engine.completed([self.ids[-ORDERS]])
        self._ended.set()

    async def end(self) -> None:
        """Return once the load has sent its last order."""
        self._is_over = True
        await self._ended.wait()

    async def send(self, engine: Story, orders: int = 1) -> None:
        """Sell at one engine."""
        for _ in range(orders):
            number = len(self.ids)
            self.ids.append("")
            self.ids[number] = await engine.submitted(number)

    async def goes_on(self, orders: int) -> None:
        """Return once the load has sent so many orders more."""
        enough = len(self.ids) + orders
        await until(lambda: len(self.ids) >= enough)


async def shared(engines: Sequence[Story], *shards: int) -> None:
    """Return once the engines count themselves, and have so many shards; the fewest stand first."""

    async def is_shared() -> bool:
        told = [await engine.metrics() for engine in engines]
        counted = {each["cambist_delta_engines"] for each in told}
        held = sorted(each["cambist_delta_shards"] for each in told)
        return counted == {len(engines)} and held == [*shards]

    await until_told(is_shared)


async def relaying(engines: Sequence[Story]) -> Story:
    """The engine that relays, once one does."""
    holds: list[float] = []

    async def is_one() -> bool:
        holds[:] = [(await engine.metrics())[HOLDS] for engine in engines]
        return sum(holds) == 1

    await until_told(is_one)
    return engines[holds.index(1)]


async def join_leave_and_die(folder: Path, running: Running) -> None:
    async with a_story(running) as story, AsyncExitStack() as owned:
        engines = [await owned.enter_async_context(story.at(url)) for url in running.urls]
        pids = dict(zip(engines, running.pids, strict=True))
        await shared(engines, 128, 128)
        load = Load(engines)
        (await owned.enter_async_context(trio.open_nursery())).start_soon(load.run)
        processes = owned.enter_context(ExitStack())
        joins = await trio.to_thread.run_sync(processes.enter_context, serving(folder, *SERVE))
        engines.append(await owned.enter_async_context(story.at(joins.url)))
        pids[engines[-1]] = joins.pid
        await shared(engines, 85, 85, 86)
        await load.goes_on(2 * ORDERS)

        leaves = await relaying(engines)
        engines.remove(leaves)
        await load.goes_on(2)
        await load.send(leaves, ORDERS)
        os.kill(pids[leaves], signal.SIGTERM)
        await shared(engines, 128, 128)
        await load.end()

        dies = await relaying(engines)
        engines.remove(dies)
        await load.send(dies, ORDERS)
        os.kill(pids[dies], signal.SIGKILL)
        (last,) = engines
        await load.send(last)
        await last.completed(load.ids)
        await shared(engines, 256)
        await relaying(engines)
        await story.settled_once(range(len(load.ids)))


@pytest.mark.process
def test_engines_share_the_orders_and_go_on_with_those_of_engines_that_leave_or_are_killed(
    tmp_path: Path, postgres_url: str
) -> None:
    pairs = [("WETH", "USDC")]
    with venue_processes(tmp_path, pairs, has_agent=True, store_url=postgres_url, engines=2) as running:

        async def within() -> None:
            with trio.fail_after(STORY_S):
                await join_leave_and_die(tmp_path, running)

        trio.run(within)
