"""`cambist demo`: a demonstration of makers, agents, a venue, swaps and orders."""

import click
from rich.console import Console

from ..dev.demo.story import run_demo
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
    run_demo(Console())
