"""Runs the whole demo on a chain of its own."""

import tempfile
from pathlib import Path

import trio
from rich.console import Console

from .foundations import run_foundations
from .market_maker import run_market_maker
from .orders import run_orders
from .otc_orders import run_otc_orders
from .settlement import a_stage, show_contracts
from .swaps import run_swaps
from .venue import a_market_place


def run_demo(console: Console) -> None:
    """Run the demo and print each step on `console`; raises if a step fails."""
    with tempfile.TemporaryDirectory() as name:
        trio.run(_run_on_chain, console, Path(name))
    run_foundations(console)


async def _run_on_chain(console: Console, folder: Path) -> None:
    async with a_stage(folder) as stage:
        console.rule("1. A chain with the contracts on it")
        show_contracts(console, stage.running)
        await run_market_maker(console, stage, folder)
        async with a_market_place(stage, folder) as place:
            await run_swaps(console, stage, place)
            await run_orders(console, stage, place)
            await run_otc_orders(console, stage, place)
