"""Every planted fault is found, by the checks that are named for it and by no other."""

import pytest

from cambist.engine.conformance.rules import Status
from support.faulty_maker import Maker
from support.faulty_planting import Planted
from support.faulty_runs import failed, judge, now_ms, told
from support.faulty_table import ADVISED, PLANTED

_HANGS = {"prices hang", "no answer to noise", "one connection at a time", "nothing on the socket", "no pong"}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED.keys())
async def test_a_planted_fault_is_found(planted: Planted, request: pytest.FixtureRequest) -> None:
    maker = Maker(now_ms)
    planted.apply(maker)
    hangs = request.node.callspec.id in _HANGS
    timeout_s = 2.0 if hangs else 5.0
    report = await judge(maker, planted.patterns, strict=planted.strict, timeout_s=timeout_s)
    assert failed(report) == planted.expects, told(report)


@pytest.mark.parametrize("planted", ADVISED.values(), ids=ADVISED.keys())
async def test_what_is_advice_is_told_and_fails_nothing(planted: Planted) -> None:
    maker = Maker(now_ms)
    planted.apply(maker)
    report = await judge(maker, planted.patterns)
    assert report.conforms, told(report)
    advised = {verdict.check.id for verdict in report.verdicts if verdict.status is Status.ADVISED}
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
async def test_a_whole_run_tells_the_planted_fault_from_everything_else(name: str) -> None:
    maker = Maker(now_ms)
    PLANTED[name].apply(maker)
    report = await judge(maker)
    assert failed(report) == PLANTED[name].expects | _BESIDES.get(name, set()), told(report)


_BESIDES = {"levels of numbers": {"stream.grids"}}
