"""`cambist demo`: what works today, run before your eyes."""

import click
import trio
from rich.console import Console

from ..demo.foundations import run_foundations
from ..demo.market_maker import run_market_maker
from ..telemetry.logs import configure_logs


@click.command(short_help="See what works today, in one go.")
def demo() -> None:
    """Run what works today in one process: a chain with the contracts on it; a market maker that is quoted,
    whose quote is filled there, that is stopped and checked; then what it stands on: signed requests and
    signed orders.

    Keys are throw-away or public; files are in a temporary folder; nothing leaves this machine.
    """
    configure_logs("error")
    console = Console()
    trio.run(run_market_maker, console)
    run_foundations(console)
