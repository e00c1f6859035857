"""The demo of the market maker: each step is shown, and it ends by itself."""

import io
from pathlib import Path

import trio
from rich.console import Console

from cambist.engine.dev.demo.market_maker import run_market_maker
from cambist.engine.dev.demo.settlement import a_stage
from support.patience import STORY_S


async def test_the_maker_is_quoted_filled_stopped_and_checked(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=160)
    with trio.fail_after(STORY_S):
        async with a_stage(tmp_path) as stage:
            await run_market_maker(console, stage, tmp_path)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for words in (
        '"nonceAndMeta"',
        "recovered signer",
        "the maker",
        "not the maker",
        "Trading is stopped",
        " 0 failed",
        "to the unit as quoted",
        "NotTheUsers",
        "Couldn't swap",
    ):
        assert words in text
