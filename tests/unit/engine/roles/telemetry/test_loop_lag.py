"""The lag of the loop, in a time of its own."""

import trio
import trio.testing

from cambist.config.timeouts import LOOP_LAG_EVERY_S
from cambist.engine.roles.telemetry.loop_lag import LoopLag
from cambist.feeds.durations import BOUNDS_S


async def test_a_turn_that_comes_late_is_counted_by_how_late(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    lag = LoopLag()
    nursery.start_soon(lag.run)
    for late_s in (0.0, 0.015, 0.3, 60.0):
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(LOOP_LAG_EVERY_S + late_s)
    await trio.testing.wait_all_tasks_blocked()
    found = lag.statistics()
    bounds = (*BOUNDS_S, float("inf"))
    assert {bound: count for bound, count in zip(bounds, found.delays.counts, strict=True) if count} == {
        0.0002: 1, 0.02: 1, 0.5: 1, float("inf"): 1,
    }  # fmt: skip
    assert abs(found.delays.total_s - 60.315) < 1e-6
    assert abs(found.lag_s_max - 60.0) < 1e-6


async def test_the_worst_delay_is_that_since_it_was_last_taken(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    lag = LoopLag()
    nursery.start_soon(lag.run)
    assert lag.take_worst_s() is None
    for late in ((0.5, 0.25, 0.0), (0.0,)):
        for late_s in late:
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(LOOP_LAG_EVERY_S + late_s)
        await trio.testing.wait_all_tasks_blocked()
        worst_s = lag.take_worst_s()
        assert worst_s is not None
        assert abs(worst_s - late[0]) < 1e-9
    assert lag.take_worst_s() is None
