"""The exit statuses of trading commands."""

from cambist.engine.cli.trading import EXIT
from cambist.engine.trader.client.outcome import TradeVerdict


def test_each_verdict_has_its_exit_status() -> None:
    by_status = {
        status: {verdict.value for verdict in TradeVerdict if EXIT[verdict] == status} for status in (0, 3, 4)
    }
    assert by_status == {
        0: {"swapped", "filled", "settled", "fulfilled", "placed", "posted", "rehearsed"},
        3: {"ended", "reverted"},
        4: {"unknown"},
    }
    assert set(EXIT) == set(TradeVerdict)
