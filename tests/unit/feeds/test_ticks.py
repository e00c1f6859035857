"""Looks of one period run in one pass of the event loop, whenever their tasks began."""

import trio
from trio.testing import MockClock

from cambist.feeds.ticks import nearest_tick, next_tick, tick


async def test_tasks_that_began_at_different_times_look_together(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    looks: dict[str, list[float]] = {"four a second": [], "also four": [], "one a second": []}

    async def look(name: str, every_s: float) -> None:
        while True:
            await tick(every_s)
            looks[name].append(round(trio.current_time(), 6))

    await trio.sleep(0.1)
    nursery.start_soon(look, "four a second", 0.25)
    await trio.sleep(0.07)
    nursery.start_soon(look, "also four", 0.25)
    nursery.start_soon(look, "one a second", 1.0)
    await trio.sleep(3)
    assert looks["four a second"] == looks["also four"] == [number / 4 for number in range(1, 13)]
    assert looks["one a second"] == [1.0, 2.0, 3.0]
    nursery.cancel_scope.cancel()


async def test_a_tick_is_always_ahead_and_at_most_a_period(autojump_clock: MockClock) -> None:
    for every_s in (0.1, 0.25, 1 / 3, 0.04):
        for _ in range(1_000):
            now = trio.current_time()
            assert now < next_tick(every_s) <= now + every_s * (1 + 1e-9)
            await tick(every_s)


def test_the_nearest_tick_is_at_most_half_a_period_away_and_shared() -> None:
    assert [nearest_tick(at, 0.125) for at in (1.0, 1.06, 1.07, 1.18, 1.19)] == [1.0, 1.0, 1.125, 1.125, 1.25]
