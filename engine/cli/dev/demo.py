"""`cambist demo`: a demonstration of makers, agents, a venue, swaps and orders."""

import tempfile
from pathlib import Path
from typing import Any

import click
import trio
from rich.console import Console

from ...dev.demo.orders import show_auction, show_failure, show_waiting_orders
from ...dev.demo.otc_bridges_vaults import show_bridges, show_otc_order, show_vaults
from ...dev.demo.quotes import show_maker, show_swaps
from ...dev.demo.stage import open_stage
from ...host.process.logs import configure_logs

_SCENES = {
    "A maker signs a firm quote, which is filled on chain": show_maker,
    "A swap through two makers, over two hops": show_swaps,
    "A Delta order: signed once, won by the better of two agents": show_auction,
    "Orders that wait: a limit, a TWAP, a cancellation": show_waiting_orders,
    "A settlement fails: it costs the user nothing, the runner-up settles": show_failure,
    "An OTC order for one taker, filled in part": show_otc_order,
    "Orders across chains, by two bridges, and a refund": show_bridges,
    "Orders that earn: a vault, and a handler": show_vaults,
}


class _BriefConsole(Console):
    """Console that leaves out the lines of progress."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print the objects, unless their style is dim."""
        if options.get("style") != "dim":
            super().print(*objects, **options)


@click.command(short_help="Show a whole venue at work on a local chain.")
@click.option("--verbose", is_flag=True, help="Print each step of the traders too.")
def demo(*, verbose: bool) -> None:
    """Play eight scenes of traders at the venue of `cambist up`, with all roles in one process.

    A market maker signs a firm quote, has it filled on chain, stops trading, and is checked. A trader swaps
    through two makers. Two agents bid for a user's orders: some wait for a price or a time, one is settled at
    the second try. A taker fills an OTC order in part, and its maker cancels the rest. Two bridges deliver
    bought tokens on another chain, and a bridge refunds an order after a failed delivery. The tokens of an
    order earn yield in a vault until the order is settled, and a handler deposits the proceeds of another.

    Each scene compares what the venue says with the balances on the chains, to the unit. Keys are throw-away
    or public; files are in a temporary folder; nothing leaves this machine.
    """
    configure_logs("error")
    console = Console() if verbose else _BriefConsole()
    with tempfile.TemporaryDirectory() as name:
        trio.run(_play, console, Path(name))
    console.rule("That was the demo")
    console.print("  cambist demo --verbose   shows each step of the traders on the way")
    console.print("  cambist up               runs a venue that stays, with a console")
    console.print("  docs/start/quickstart.md trades there")


async def _play(console: Console, folder: Path) -> None:
    async with open_stage(console, folder) as stage:
        for number, (title, show) in enumerate(_SCENES.items(), 1):
            console.rule(f"{number}. {title}")
            await show(stage)
