"""`cambist demo`: a demonstration of makers, agents, a venue, swaps and orders."""

import tempfile
from pathlib import Path
from typing import Any

import click
import trio
from rich.console import Console
from rich.rule import Rule

from ...dev.demo.bridged_orders import run_bridged_orders
from ...dev.demo.earning_orders import run_earning_orders
from ...dev.demo.foundations import run_foundations
from ...dev.demo.market_maker import run_market_maker
from ...dev.demo.orders import run_orders
from ...dev.demo.otc_orders import run_otc_orders
from ...dev.demo.settlement import a_stage, show_contracts
from ...dev.demo.swaps import run_swaps
from ...dev.demo.venue import a_market_place
from ...host.process.logs import configure_logs


class _BriefConsole(Console):
    """Console that prints the steps and their results, without tables, messages and progress."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print text and rules; leave out all else."""
        if options.get("style") != "dim" and all(isinstance(one, str | Rule) for one in objects):
            super().print(*objects, **options)

    def print_json(self, *_: Any, **__: Any) -> None:
        """Print no JSON."""


@click.command(short_help="Show a whole venue at work on a local chain.")
@click.option("--verbose", is_flag=True, help="Print every message, price, order and balance too.")
def demo(*, verbose: bool) -> None:
    """Run a whole venue in one process, step by step, on two local chains with the contracts.

    A market maker signs a firm quote, has it filled on chain, stops trading, and is checked. A venue with two
    more makers serves a trader's swap. Two agents bid for a user's orders: the user cancels one order,
    another is settled at the second try. A taker fills an OTC order in part, and its maker cancels the rest.
    Two bridges deliver bought tokens on another chain, and a bridge refunds an order after a failed delivery.
    The tokens of an order earn yield in a vault until the order is settled, and a handler deposits the
    proceeds of another order into the vault. The last step shows signed requests and signed orders.

    Keys are throw-away or public; files are in a temporary folder; nothing leaves this machine.
    """
    configure_logs("error")
    console = Console() if verbose else _BriefConsole()
    with tempfile.TemporaryDirectory() as name:
        trio.run(_run_on_chain, console, Path(name))
    run_foundations(console)
    console.rule("That was the demo")
    console.print("  cambist demo --verbose   shows every message, price, order and balance on the way")
    console.print("  cambist up               runs a venue that stays, with a console in the browser")
    console.print("  docs/start/quickstart.md trades there")


async def _run_on_chain(console: Console, folder: Path) -> None:
    async with a_stage(folder) as stage:
        console.rule("1. A chain with the contracts on it")
        show_contracts(console, stage.running)
        await run_market_maker(console, stage, folder)
        async with a_market_place(stage, folder) as place:
            await run_swaps(console, stage, place)
            await run_orders(console, stage, place)
            await run_otc_orders(console, stage, place)
            await run_bridged_orders(console, stage, place)
            await run_earning_orders(console, stage, place)
