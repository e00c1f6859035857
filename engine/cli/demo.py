"""`cambist demo`: a demonstration of makers, agents, a venue, swaps and orders."""

import click
from rich.console import Console

from ..dev.demo.story import run_demo
from ..process.logs import configure_logs


@click.command(short_help="See what works today, in one go.")
def demo() -> None:
    """Run what works today in one process: a chain with the contracts on it; a market maker that is quoted,
    whose quote is filled there, that is stopped and checked; a venue with two more, through which a trader
    swaps; two agents that bid for a user's orders, one of which is cancelled, and one settled at the second
    try; an OTC order that its taker fills in part and its maker cancels; then what it stands on: signed
    requests and signed orders.

    Keys are throw-away or public; files are in a temporary folder; nothing leaves this machine.
    """
    configure_logs("error")
    run_demo(Console())
