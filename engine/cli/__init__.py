"""The `cambist` command. Each file of this folder is one command or one group of them.

Errors of ours end a command with one line on standard error and exit status 1; wrong usage with 2.
"""

import os
import sys
from pathlib import Path

import click

from ...config.errors import CambistError
from ...config.version import __version__
from .agent import agent
from .config_check import config
from .contracts import contracts
from .db import db
from .demo import demo
from .devnet import devnet
from .hmac_headers import hmac
from .keys import keys
from .maker import maker
from .order import order
from .otc import otc
from .serve import serve
from .swap import swap
from .typed_data import typed_data
from .webhooks import webhooks


class _Commands(click.Group):
    """Turns our errors into click's, and lists commands in the order of a first reading."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except CambistError as error:
            raise click.ClickException(error.detail) from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(self.commands)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Keys and passwords are named, never typed: env:NAME or file:PATH. "
    "`cambist COMMAND --help` shows a command's own page.",
)
@click.version_option(__version__, prog_name="cambist")
def cli() -> None:
    """A request-for-quote and intent venue for EVM chains, and the market maker's side of it.

    \b
    New here?    cambist demo                      makers, agents, a venue, swaps and orders, in one go
    A venue?     cambist serve --config F          quotes and routes over makers' books
    Quoting?     cambist maker serve --config F    firm quotes from your own prices
                 cambist maker check URL ...       does a maker keep the interface's rules?
    Solving?     cambist agent serve --config F    bids for the orders that a venue auctions
    Trading?     cambist swap WETH USDC 1.5 ...    a Market swap, from the price to the receipt
                 cambist order swap ...            a Delta order: no gas; limit, twap, list, watch
                 cambist otc post ...              an OTC order for a counterparty; fill, cancel, list, watch
    Partner?     cambist webhooks list ...         what your webhooks have not taken; replay
    Debugging?   cambist typed-data hash FILE      what a wallet signs, step by step
                 cambist hmac sign GET URL ...     the four request headers, explained
    Setting up?  cambist keys new --out FILE       an encrypted key
                 cambist config check              is my settings file right?
    Running?     cambist db status                 what the store holds; backup, export, vacuum
    On chain?    cambist devnet                    chains of our own for wallets and scripts
                 cambist contracts deploy ...      the contracts on a chain of yours
    """


for command in (
    demo,
    devnet,
    serve,
    swap,
    order,
    otc,
    webhooks,
    maker,
    agent,
    contracts,
    db,
    typed_data,
    hmac,
    keys,
    config,
):
    cli.add_command(command)


def main() -> None:
    """Entry point of the console script and of `python -m cambist`."""
    if sys.stdin is None:  # started with standard input closed
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  as long-lived as the process
    cli(prog_name="cambist")
