"""The `cambist` command: a module or a folder for each command or group.

In: arguments. Out: exit status 0; 1 with one line on standard error for an error of ours; 2 for wrong
    usage.
Reading order: `dev/`, `serve`, `maker`, `maker_check`, `maker_show`, `agent`, `makers`, `swap`, `order/`,
    `otc/`, `webhooks`, `contracts/`, `db`, `offline/`, `trading`, `listings`, `parameters`, `sources`.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ...config.errors import CambistError
from ...config.version import __version__

_COMMANDS = {
    "up": "dev.up",
    "demo": "dev.demo",
    "devnet": "dev.devnet",
    "serve": "serve",
    "swap": "swap",
    "order": "order.order",
    "otc": "otc.otc",
    "webhooks": "webhooks",
    "makers": "makers",
    "maker": "maker",
    "agent": "agent",
    "contracts": "contracts.contracts",
    "db": "db",
    "typed-data": "offline.typed_data",
    "hmac": "offline.hmac_headers:hmac",
    "keys": "offline.keys",
    "config": "offline.config_check:config",
    "completion": "offline.completion",
}
"""Command -> its module, as `module`, or as `module:name` if the command has another name there; in the order
in which the help lists the commands."""


_SENTENCE_CHARS = 300  # longer than any first sentence


def _leave_rich_out() -> None:
    """Prevent two slow imports that cambist never uses: of rich by structlog, and of httpx's command-line
    tool by httpx.

    Both imports together take a sixth of a venue's start-up time.
    """
    modules: dict[str, Any] = sys.modules
    if "httpx" not in modules:
        modules.setdefault("httpx._main", None)
    if "rich" not in modules and "structlog" not in modules:
        modules["rich"] = None
        try:
            import structlog  # noqa: F401
        finally:
            del modules["rich"]


class CommandGroup(click.Group):
    """Click group whose help lists each command with the whole first sentence of the command's page."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; see `click.Group.format_commands`."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(_SENTENCE_CHARS)) for name, one in commands if one is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class _Commands(CommandGroup):
    """Group that imports the module of a command when the command is first used, and shows a
    CambistError as a click error: one line, exit status 1.

    Nurseries group the error of a task, which counts if the group holds no other error.
    """

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (CambistError, ExceptionGroup) as error:
            sole: Exception = error
            while isinstance(sole, ExceptionGroup) and len(sole.exceptions) == 1:
                (sole,) = sole.exceptions
            if isinstance(sole, CambistError):
                raise click.ClickException(sole.detail) from None
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  the same
        if cmd_name not in _COMMANDS:
            return None
        _leave_rich_out()
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(
            import_module(f".{module}", __name__), name or module.rpartition(".")[2]
        )
        return command


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
    New here?   cambist up                       a venue that stays
                cambist demo                     swaps and orders, step by step
    A venue?    cambist serve --config F         quotes over makers' books
    Quoting?    cambist maker serve --config F   firm quotes from your own prices
                cambist maker check URL ...      any maker against the rules
    Solving?    cambist agent serve --config F   bids for the orders of auctions
    Trading?    cambist swap WETH USDC 1.5 ...   a Market swap, up to the receipt
                cambist order swap ...           a Delta order: limit, twap, list
                cambist otc post ...             an OTC order: fill, cancel, list
    Partner?    cambist webhooks list ...        missed deliveries
    Debugging?  cambist typed-data hash FILE     the digest of a wallet's request
                cambist hmac sign GET URL ...    the four headers, explained
    Setting up? cambist keys new --out FILE      an encrypted key
                cambist config check             a settings file, as opened
                cambist completion bash          completion in a shell
    Running?    cambist db status                the store: backup, export
                cambist makers exclude NAME ...  a maker left out at once
    On chain?   cambist devnet                   local chains for wallets
                cambist contracts deploy ...     the contracts on your chain
    """


def main() -> None:
    """Entry point of the console script and of `python -m cambist`."""
    if sys.stdin is None:  # started with standard input closed
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  as long-lived as the process
    cli(prog_name="cambist")
