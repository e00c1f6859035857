"""The demo of the market maker: each step is shown, and it ends by itself."""

import io

import trio
from rich.console import Console

from cambist.engine.demo.market_maker import run_market_maker


async def test_the_maker_is_quoted_filled_stopped_and_checked() -> None:
    console = Console(file=io.StringIO(), width=160)
    with trio.fail_after(60):
        await run_market_maker(console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for words in (
        '"nonceAndMeta"',
        "recovered signer",
        "the maker",
        "Trading is stopped",
        " 0 failed",
        "RfqExecutor",
        "to the unit as quoted",
        "NotTheUsers",
        "Couldn't swap",
    ):
        assert words in text
