"""`cambist demo`: a demonstration of makers, agents, a venue, swaps and orders."""

import tempfile
from pathlib import Path

import click
import trio
from rich.console import Console

from ..dev.demo.foundations import run_foundations
from ..dev.demo.market_maker import run_market_maker
from ..dev.demo.orders import run_orders
from ..dev.demo.otc_orders import run_otc_orders
from ..dev.demo.settlement import a_stage, show_contracts
from ..dev.demo.swaps import run_swaps
from ..dev.demo.venue import a_market_place
from ..process.logs import configure_logs


@click.command(short_help="Show a whole venue at work on a local chain.")
def demo() -> None:
    """Run a whole venue in one process, step by step: a chain with the contracts; a market maker, its firm
    quote and the fill on chain, its stop and its check; a venue with two more makers, and a trader's swap;
    two agents that bid for a user's orders, of which one is cancelled and one settled at the second try; an
    OTC order that its taker fills in part and its maker cancels; then signed requests and signed orders.

    Keys are throw-away or public; files are in a temporary folder; nothing leaves this machine.
    """
    configure_logs("error")
    console = Console()
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
