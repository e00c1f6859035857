"""The demo of the venue: a trader swaps through two makers, and what must not work does not."""

import io
import re
from pathlib import Path

import pytest
import trio
from rich.console import Console

from cambist.engine.dev.demo.settlement import DemoChain, a_stage
from cambist.engine.dev.demo.swaps import run_swaps
from cambist.engine.dev.demo.venue import a_market_place
from support.patience import STORY_S


async def shown(folder: Path, stage: DemoChain) -> str:
    console = Console(file=io.StringIO(), width=160)
    with trio.fail_after(STORY_S):
        async with a_market_place(stage, folder) as place:
            await run_swaps(console, stage, place)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_two_makers_two_hops_refusals_and_a_stand_in(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        text = await shown(tmp_path, stage)
    for words in (
        "WETH -> USDC by alpha 100 %; USDC -> WBTC by beta 100 %",
        "at least received",
        "to the unit as signed",
        "TRANSFER_FROM_FAILED",
        "Couldn't swap",
        "400 Invalid priceRoute",
        "beta signed in its place",
    ):
        assert words in text
    rows = [line.split() for line in text.splitlines() if re.match(r" *(trader|alpha|beta) +[A-Z]{4} ", line)]
    assert [row[0] for row in rows[:6]] == ["trader", "trader", "alpha", "alpha", "beta", "beta"]
    assert [(row[1], row[4]) for row in rows[:5:2]] == [("WETH", "-4"), ("WETH", "4"), ("USDC", "10000")]
    assert [(row[0], row[1], row[4]) for row in rows[6:] if row[0] != "trader"] == [
        ("beta", "WETH", "2"),
        ("beta", "USDC", "-4996"),
    ]


async def test_a_step_that_does_not_hold_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makers that quote other prices than the story needs."""
    grids = {"alpha": {"WETH/USDC": {"bids": [["2500", "20"]], "asks": [["2501", "20"]]}}}
    grids["alpha"]["WBTC/USDC"] = {"bids": [["59950", "2"]], "asks": [["60000", "2"]]}
    grids["beta"] = grids["alpha"]
    for module in ("venue", "place_settings"):
        monkeypatch.setattr(f"cambist.engine.dev.demo.{module}.GRIDS", grids)
    async with a_stage(tmp_path) as stage:
        with pytest.RaisesGroup(pytest.RaisesExc(AssertionError, match="2 hops by"), flatten_subgroups=True):
            await shown(tmp_path, stage)
