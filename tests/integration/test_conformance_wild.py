"""The harness ends with a report, and never with a traceback, against makers that answer at random."""

import io
import json
from xml.etree import ElementTree as ET

import trio
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.console import Console
from trio.testing import MockClock

from cambist.engine.conformance.options import read_base_url
from cambist.engine.conformance.report import print_report, to_json, to_junit
from cambist.engine.conformance.run import RunReport
from support.examples import examples
from support.faulty_maker import CHAIN_ID
from support.faulty_runs import judge, mock_now_ms
from support.wild_maker import WildMaker, WildNode

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller seed is no simpler run


@given(st.integers(0, 1 << 32), st.sampled_from((0.02, 0.1, 0.3, 0.8)))
@settings(max_examples=examples(8), phases=UNSHRUNK)
def test_a_maker_that_answers_at_random_gets_a_report(seed: int, wildness: float) -> None:

    async def judged() -> RunReport:
        maker, node = WildMaker(mock_now_ms, seed, wildness), WildNode(CHAIN_ID, seed, wildness / 4)
        async with trio.open_nursery() as nursery:
            port = await nursery.start(node.run)
            place = read_base_url(f"http://127.0.0.1:{port}", "--node-url", ("http",))
            report = await judge(maker, strict=True, quotes=24, timeout_s=1.0, connections=2, node=place)
            nursery.cancel_scope.cancel()
        return report

    report = trio.run(judged, clock=MockClock(autojump_threshold=0))
    assert report.broken == ()
    print_report(report, Console(file=io.TextIOWrapper(io.BytesIO(), "utf-8"), width=110))
    json.loads(to_json(report))
    ET.fromstring(to_junit(report))
