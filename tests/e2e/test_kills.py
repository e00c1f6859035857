"""A venue is killed again and again while orders come: none is lost, each is settled, and only once."""

import os
import random
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import trio

from cambist.config.errors import CambistError
from support.patience import STORY_S, until
from support.venue.process_story import Story, a_story
from support.venue.venue_processes import SERVE, Running, serving, venue_processes

pytestmark = pytest.mark.seldom

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "3"))
SEED = int(os.environ.get("CRASH_SEED", "20"))
SUBMITTERS = 4
LOOKED_AT = 5
WAITING = {"notAuctioned", "settling"}
"""Why an order waits at a venue that has just started, whose agent answers."""


class Orders:
    """The orders that owners send.

    Attributes:
        taken: number -> id of those that the venue has acknowledged.
    """

    def __init__(self) -> None:
        self.taken: dict[int, str] = {}
        self._next: Iterator[int] = count()
        self._again: list[int] = []

    async def send(self, story: Story) -> None:
        """Until the venue is gone; an order without an answer is sent again at its next start."""
        while True:
            number = self._again.pop() if self._again else next(self._next)
            try:
                self.taken[number] = await story.submitted(number)
            except CambistError:
                self._again.append(number)
                return

    async def send_rest(self, story: Story) -> None:
        """All that have no answer yet."""
        for number in self._again:
            self.taken[number] = await story.submitted(number)


async def explained(story: Story, ids: list[str]) -> None:
    """Orders that wait say why, truly."""
    for order_id in ids:
        told = await story.ask("GET", f"/v2/delta/orders/{order_id}/explain")
        codes = {one["code"] for one in told["reasons"]}
        assert codes <= WAITING, told
        assert codes or told["status"] == "COMPLETED", told


async def killed_and_started(folder: Path, running: Running) -> None:
    chance, orders = random.Random(SEED), Orders()
    os.kill(running.pids[0], signal.SIGKILL)
    async with a_story(running) as story:
        for _ in range(ROUNDS):
            with serving(folder, *SERVE) as engine:
                async with story.at(engine.url) as here, trio.open_nursery() as nursery:
                    await explained(here, list(orders.taken.values())[-LOOKED_AT:])
                    for _ in range(SUBMITTERS):
                        nursery.start_soon(orders.send, here)
                    enough = len(orders.taken) + chance.randint(1, 40)
                    await until(lambda enough=enough: len(orders.taken) >= enough)  # type: ignore[misc]
                    os.kill(engine.pid, signal.SIGKILL)
        with serving(folder, *SERVE) as engine:
            async with story.at(engine.url) as here:
                await orders.send_rest(here)
                await here.completed(list(orders.taken.values()))
        await story.settled_once(orders.taken)


@pytest.mark.process
def test_a_venue_that_is_killed_under_load_loses_nothing_and_settles_nothing_twice(tmp_path: Path) -> None:
    with venue_processes(tmp_path, [("WETH", "USDC")], has_agent=True) as running:

        async def within() -> None:
            with trio.fail_after(STORY_S * max(1, ROUNDS // 3)):
                await killed_and_started(tmp_path, running)

        trio.run(within)
