"""`cambist demo`: what works today, run before your eyes."""

import click
from rich.console import Console

from ..demo.foundations import run_foundations


@click.command(short_help="See what works today, in one go.")
def demo() -> None:
    """Run what works today in one process: sign, verify and tamper with quotes and orders.

    Keys are throw-away, nothing is written and nothing is sent anywhere.
    """
    run_foundations(Console())
