"""Every planted fault is found, by the checks that are named for it and by no other.

Time is the clock's own: time passes where harness and maker both wait, so the tests never wait.
"""

import pytest
from trio.testing import MockClock

from cambist.engine.trader.conformance.rules import CheckStatus
from support.conformance.faulty_maker import Maker
from support.conformance.faulty_planting import Planted
from support.conformance.faulty_runs import failed, judge, mock_now_ms, told
from support.conformance.faulty_table import ADVISED, PLANTED


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED.keys())
async def test_a_planted_fault_is_found(planted: Planted, autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    planted.apply(maker)
    report = await judge(maker, planted.patterns, strict=planted.strict, clock=mock_now_ms)
    assert failed(report) == planted.expects, told(report)


@pytest.mark.parametrize("planted", ADVISED.values(), ids=ADVISED.keys())
async def test_what_is_advice_is_told_and_fails_nothing(planted: Planted, autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    planted.apply(maker)
    report = await judge(maker, planted.patterns)
    assert report.conforms, told(report)
    advised = {verdict.check.id for verdict in report.verdicts if verdict.status is CheckStatus.ADVISED}
    assert advised == planted.expects, told(report)


_WHOLE_RUNS = (
    "levels of numbers",
    "taker not echoed",
    "any access key",
    "an order in the updates",
    "dies of noise",
    "blacklisted twice",
)


@pytest.mark.parametrize("name", _WHOLE_RUNS)
async def test_a_whole_run_tells_one_fault_from_all_else(name: str, autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    PLANTED[name].apply(maker)
    report = await judge(maker)
    assert failed(report) == PLANTED[name].expects | _BESIDES.get(name, set()), told(report)


_BESIDES = {"levels of numbers": {"stream.grids"}}
