"""The package's own market maker conforms, strictly: judged as anybody's, over a real socket."""

from pathlib import Path

from cambist.engine.trader.conformance.checks.auth import Credentials
from cambist.engine.trader.conformance.options import CheckOptions, read_base_url
from cambist.engine.trader.conformance.rules import CheckStatus, Selection
from cambist.engine.trader.conformance.run import run_checks
from support.conformance.faulty_runs import UNTIMED, now_ms, told
from support.makers.maker_role import CHAIN_ID, CONTRACT, PREFIX, SECRET, TAKER, running_maker


async def test_our_maker_conforms(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (_, venue):
        report = await run_checks(
            CheckOptions(
                base=read_base_url(f"http://127.0.0.1:{venue.port}{PREFIX}", "URL", ("http",)),
                credentials=Credentials("venue", "key-1", SECRET.encode()),
                selection=Selection(skip=UNTIMED, strict=True),
                chain_id=CHAIN_ID,
                rfq_contract=bytes.fromhex(CONTRACT[2:]),
                taker=TAKER,
                watch_s=0.2,
                quotes=64,
            ),
            now_ms=now_ms,
        )
    assert report.conforms, told(report)
    assert not report.count(CheckStatus.ADVISED), told(report)
    assert report.count(CheckStatus.PASSED) > 160
