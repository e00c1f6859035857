"""The demo of Delta: the better of two agents wins, an order is cancelled, a settlement fails for free."""

import io
import re
from pathlib import Path

import pytest
import trio
from rich.console import Console

from cambist.engine.demo.orders import run_orders
from cambist.engine.demo.settlement import Stage, a_stage
from cambist.engine.demo.venue import a_market_place


async def shown(folder: Path, stage: Stage) -> str:
    console = Console(file=io.StringIO(), width=200)
    with trio.fail_after(90):
        async with a_market_place(stage, folder) as place:
            await run_orders(console, stage, place)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def rows(text: str, *first: str) -> list[list[str]]:
    """Cells of the rows of tables that begin with one of these."""
    lines = (re.split(r" {2,}", line.strip()) for line in text.splitlines())
    return [cells for cells in lines if cells[0] in first]


async def test_an_auction_a_cancellation_and_a_settlement_that_fails(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        text = await shown(tmp_path, stage)
    auction, cancellation, failure = text.split(" 10. ")[1].replace(" 12. ", " 11. ").split(" 11. ")

    assert [(row[0], row[-1]) for row in rows(auction, "rapid", "plain")] == [
        ("rapid", "won"),
        ("plain", "lost"),
    ]
    assert [row[1:] for row in rows(auction, "user") if row[1] != "WETH"] == [
        ["USDC", "1000000", "989996", "-10004"],
        ["ETH", "10000", "10000", "0"],
    ]
    assert [row[1:] for row in rows(auction, "alpha")][-1] == ["USDC", "1000000", "1010004", "10004"]
    assert "has sent no transaction, not even to approve" in auction

    assert "no agent bid for it" in cancellation
    assert "is CANCELLED: nothing more of it is settled" in cancellation
    assert not rows(cancellation, "user")
    assert "nobody's balance has moved" in cancellation

    assert [row[-1].split(",")[0] for row in rows(failure, "rapid", "plain")[:2]] == ["won", "lost"]
    (block,) = re.findall(r"block (\d+) +\n(.*)\n(.*)\n", failure)
    assert "mined" in block[1]
    assert "the relayer settles rapid's bid" in block[2]
    assert "reverted" in block[2]
    told = {row[0]: row[1:] for row in rows(failure, "rapid", "plain")[2:]}
    assert told == {
        "rapid": ["won, settling, reverted, banned", "1", "1 reverted", "rests"],
        "plain": ["lost, settling, settled", "1", "none"],
    }
    assert [row[-1] for row in rows(failure, "user")] == ["-4", "9991.0008", "0"]
    assert [row[-1] for row in rows(failure, "beta")] == ["4", "-9992"]
    assert f"After block {block[0]} the user had what it had before" in failure


async def test_a_settlement_that_does_not_fail_is_no_demo_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alpha's transaction comes behind everything else."""
    monkeypatch.setattr("cambist.engine.demo.orders._TIP_WEI", 0)
    async with a_stage(tmp_path) as stage:
        with pytest.RaisesGroup(
            pytest.RaisesExc(AssertionError, match="the block is another one"), flatten_subgroups=True
        ):
            await shown(tmp_path, stage)


async def test_agents_of_whom_none_is_better_are_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both trade with the same maker: what they promise is the same."""
    monkeypatch.setattr(
        "cambist.engine.demo.place_settings.AGENTS", agents := {"rapid": ("beta",), "plain": ("beta",)}
    )
    monkeypatch.setattr("cambist.engine.demo.venue.AGENTS", agents)
    async with a_stage(tmp_path) as stage:
        with pytest.RaisesGroup(
            pytest.RaisesExc(AssertionError, match="the bids promise|has won"), flatten_subgroups=True
        ):
            await shown(tmp_path, stage)
