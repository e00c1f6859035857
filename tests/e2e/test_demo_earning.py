"""The demo beside a yield vault: an order earns while it rests, and a handler turns another into yield."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
import trio
from rich.console import Console

from cambist.engine.dev.demo.earning_orders import _offer, run_earning_orders
from cambist.engine.dev.demo.settlement import a_stage
from cambist.engine.dev.demo.venue import a_market_place
from support.patience import PATIENCE_S, STORY_S

MODULE = "cambist.engine.dev.demo.earning_orders"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.engine.dev.demo.order_scene.WAIT_S", PATIENCE_S)


async def shown(folder: Path) -> str:
    console = Console(file=io.StringIO(), width=200)
    with trio.fail_after(STORY_S):
        async with a_stage(folder) as stage, a_market_place(stage, folder) as place:
            await run_earning_orders(console, stage, place)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def fails(folder: Path, message: str) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(AssertionError, match=message), flatten_subgroups=True):
        await shown(folder)


def rows(text: str, *first: str) -> list[list[str]]:
    """Cells of the rows of tables that begin with one of these."""
    lines = (re.split(r" {2,}", line.strip()) for line in text.splitlines())
    return [cells for cells in lines if cells[0] in first]


async def test_both_scenes_say_what_has_happened(tmp_path: Path) -> None:
    earning, handler = re.split(r" 2[01]\. ", await shown(tmp_path))[1:]

    rests = [row[1] for row in rows(earning, "resting")]
    assert "makers' books give 3997" in rests[0]
    assert "makers' books give 408" in rests[1], "the lowered price alone is no reason to settle"
    assert earning.index("lowers its ask from 2503 to 2450") < earning.index("a borrower pays 100 USDC")
    assert earning.index("a borrower pays") < earning.index("is COMPLETED")
    assert [(row[1], row[-1]) for row in rows(earning, "user")] == [
        ("WETH", "4.122036734693877551"),
        ("vUSDC", "-10000"),
    ]
    assert rows(earning, "borrower", "vault") == [
        ["vault", "USDC", "10000", "0", "-10000"],
        ["borrower", "USDC", "1000000", "999900", "-100"],
    ]
    assert "10000 USDC were deposited, and 10100 were sold" in earning
    assert "Without it 4.081224489795918367 WETH were too little for the limit of 4.1" in earning

    assert [(row[1], row[-1]) for row in rows(handler, "user", "desk", "vault")] == [
        ("WETH", "-4"), ("USDC", "10000"), ("WETH", "4"), ("USDC", "-10000"), ("vUSDC", "10000"),
    ]  # fmt: skip
    assert "The only bid was the handler's" in handler


async def test_a_price_that_meets_the_limit_by_itself_is_no_demo_of_yield(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def any_reason(*_: Any) -> str:
        return ""

    monkeypatch.setattr(f"{MODULE}.why_it_rests", any_reason)
    monkeypatch.setattr(f"{MODULE}._LOWERED", ("2300", "2400"))
    await fails(tmp_path, "signed|had deposited|it moved")


async def test_a_move_that_the_settlement_does_not_explain_is_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The borrower is the maker, whose payment is taken for a part of the settlement."""
    monkeypatch.setattr(f"{MODULE}._BORROWER", 9)
    await fails(tmp_path, "it moved")


async def test_a_handler_that_the_maker_pays_less_is_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the order is a unit above what the maker pays."""

    async def nothing(_: Any) -> None:
        return

    def a_unit_less(vaults: Any, sold: int, bought: int) -> bytes:
        return _offer(vaults, sold, bought - 1)

    monkeypatch.setattr("cambist.engine.dev.demo.order_scene.WAIT_S", 3)
    monkeypatch.setattr(f"{MODULE}._show_yield", nothing)
    monkeypatch.setattr(f"{MODULE}._offer", a_unit_less)
    await fails(tmp_path, "it is not settled")
