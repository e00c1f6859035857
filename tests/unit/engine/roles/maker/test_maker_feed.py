"""From a price source to the board: updates, failures, restarts, and messages to the consumers."""

import random
from collections.abc import AsyncGenerator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
import trio
import trio.testing

from cambist.config.timeouts import SOURCE_PAUSE_S_MAX
from cambist.engine.roles.maker.feed import Feed
from cambist.engine.roles.maker.role import ChainRole
from support.makers.maker_role import GRID, NOW_MS, a_chain, firm_request

PAIR = "WETH/USDC"


class Source:
    """Gives these updates, a second apart, then raises or ends."""

    def __init__(self, *updates: Mapping[str, Any], fault: Exception | None = None) -> None:
        self._updates = updates
        self._fault = fault
        self.closed = False

    async def updates(self) -> AsyncGenerator[Mapping[str, Any], None]:
        try:
            for update in self._updates:
                yield update
                await trio.sleep(1)
            if self._fault:
                raise self._fault
        finally:
            self.closed = True


class Consumers:
    """Record of the published messages."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def publish(self, message: bytes) -> None:
        self.messages.append(msgspec.json.decode(message))


def a_feed(role: ChainRole, *sources: Source) -> tuple[Feed, Consumers, list[float]]:
    waiting, consumers, made_at = iter(sources), Consumers(), []

    def make_source() -> Any:
        made_at.append(trio.current_time())
        return next(waiting)

    feed = Feed(
        desk=role.desk,
        broadcast=consumers,  # type: ignore[arg-type]
        make_source=make_source,
        refresh_ms=2_000,
        wall_ms=lambda: NOW_MS + int(trio.current_time() * 1_000),
        random=random.Random(1),
    )
    return feed, consumers, made_at


async def test_a_source_that_fails_or_ends_is_made_anew_with_growing_pauses(
    autojump_clock: trio.testing.MockClock,
) -> None:
    role = a_chain(grid=None)
    sources = [Source({PAIR: GRID}, fault=RuntimeError("gone")), Source(fault=ValueError()), Source()]
    sources.append(Source({PAIR: GRID}))
    feed, consumers, made_at = a_feed(role, *sources, *[Source(fault=OSError()) for _ in range(12)])
    with trio.move_on_after(300):
        await feed.follow_source()
    assert feed.updates == 2
    assert consumers.messages[0]["prices"][PAIR] != {}
    pauses = [later - earlier for earlier, later in pairwise(made_at)]
    assert len(made_at) > 9
    assert feed.restarts == len(made_at)
    assert 4 * pauses[0] < max(pauses) <= 1.5 * SOURCE_PAUSE_S_MAX
    assert all(source.closed for source in sources)


async def test_prices_of_a_source_that_is_silent_are_taken_down_and_not_repeated_as_fresh(
    autojump_clock: trio.testing.MockClock,
) -> None:
    role = a_chain(grid=None)
    feed, consumers, _ = a_feed(role)
    await feed.apply({PAIR: GRID})
    with trio.move_on_after(30):
        await feed.keep_fresh()
    assert [message["prices"][PAIR] != {} for message in consumers.messages] == [True, False]


async def test_what_expires_is_released_by_itself(autojump_clock: trio.testing.MockClock) -> None:
    role = a_chain()
    feed, _, _ = a_feed(role)
    for _ in range(200):
        role.desk.answer(firm_request(takerAmount=str(10**15)), NOW_MS)
    assert role.board.pairs[PAIR].exposure.base_sold < 0
    with trio.move_on_after(170):
        await feed.keep_fresh()
    assert len(role.desk.ledger) == 0
    assert role.board.pairs[PAIR].exposure.base_sold == 0


async def test_a_large_update_gives_other_tasks_their_turn(autojump_clock: trio.testing.MockClock) -> None:
    role = a_chain(grid=None)
    feed, _, _ = a_feed(role)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        await feed.apply({f"none-{number}": GRID for number in range(5_000)})
        nursery.cancel_scope.cancel()
    assert feed.refused == 5_000
    assert turns > 2
