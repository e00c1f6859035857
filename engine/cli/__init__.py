"""The `cambist` command: a module or a folder for each command or group.

In: arguments. Out: exit status 0; 1 with one line on standard error for an error of ours; 2 for wrong
    usage.
Reading order: `dev/`, `serve`, `maker`, `maker_check`, `maker_show`, `agent`, `makers`, `swap`, `order/`,
    `otc/`, `webhooks`, `contracts/`, `db`, `offline/`, `trading`, `listings`, `parameters`, `sources`.
"""

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ...config.errors import CambistError
from ...config.version import __version__

LazyCommands = Mapping[str, tuple[str, str]]
"""Command -> (`module:name` below this package, first sentence of the command's page), in the order of the
help, which imports none of the modules."""

_COMMANDS: LazyCommands = {
    "up": ("dev.up:up", "Run a venue with makers, agents and chains that stays."),
    "demo": ("dev.demo:demo", "Show a whole venue at work on a local chain."),
    "devnet": ("dev.devnet:devnet", "Run local chains behind JSON-RPC, with all contracts deployed."),
    "serve": ("serve:serve", "Quote and route swaps over market makers' books until SIGTERM or SIGINT."),
    "swap": ("swap:swap", "Swap AMOUNT of SELL_TOKEN for BUY_TOKEN on the Market route."),
    "order": (
        "order.order:order",
        "Delta orders: signed once, auctioned among agents, settled without gas of yours.",
    ),
    "otc": ("otc.otc:otc", "OTC orders: signed by a maker at no gas, filled on chain by a taker."),
    "webhooks": (
        "webhooks:webhooks",
        "Show deliveries that a venue's webhooks have not accepted, and repeat them.",
    ),
    "makers": ("makers:makers", "Exclude a maker from a running venue, or release it again."),
    "maker": ("maker:maker", "Run a market maker, stop it, and check a maker's conformance."),
    "agent": ("agent:agent", "Run an agent, which bids for the orders that a venue auctions."),
    "contracts": (
        "contracts.contracts:contracts",
        "Predict the contracts' addresses, deploy them, and act in an incident.",
    ),
    "db": ("db:db", "Maintain the store: migrate, status, vacuum, export, backup, rescan."),
    "typed-data": ("offline.typed_data:typed_data", "Hash, sign or recover EIP-712 typed data."),
    "hmac": (
        "offline.hmac_headers:hmac",
        "Compute the signature headers of requests between a venue and a market maker.",
    ),
    "keys": ("offline.keys:keys", "Make, import and identify signing keys."),
    "config": ("offline.config_check:config", "Check settings files."),
    "completion": ("offline.completion:completion", "Print a script that completes commands in a shell."),
}

_SENTENCE_CHARS = 300  # longer than any first sentence


@contextmanager
def lean_imports() -> Iterator[None]:
    """Context manager for imports: turns garbage collection off, since scanning modules, which live as long
    as the process, takes a sixth of a venue's start. Two modules that cambist never uses are not imported."""
    _leave_rich_out()
    before, was_enabled = len(sys.modules), gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:  # only after a new import: a freeze also keeps the caller's garbage
            gc.freeze()
        if was_enabled:
            gc.enable()


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
    """Click group whose help lists each command with the whole first sentence of the command's page.

    Args:
        lazy: commands whose modules are imported at the first use of the command.
    """

    def __init__(self, *args: Any, lazy: LazyCommands | None = None, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands; see `click.Group.list_commands`."""
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported if it is lazy; see `click.Group.get_command`."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self.lazy[cmd_name][0].partition(":")
        with lean_imports():
            command: click.Command = getattr(import_module(f".{module}", __name__), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the arguments; see `click.Group.resolve_command`.

        Raises:
            click.UsageError: no such command; the text names the commands that are spelled alike, also those
                of groups: `order limit` for `limit`.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            name = args[0]
            if name.startswith("-"):
                raise
            from difflib import get_close_matches  # no right command needs the import

            paths = list(self._paths(ctx))
            words = [name] if name in (word for word, _ in paths) else get_close_matches(name, dict(paths))
            alike = [f"'{path}'" for near in words for word, path in paths if word == near]
            hint = f" Did you mean {' or '.join(alike)}?" if alike else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx) from None

    def _paths(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        """Yield the last word and the path of each command, those of groups included."""
        for name in self.list_commands(ctx):
            yield name, name
            command = self.get_command(ctx, name)
            if isinstance(command, CommandGroup):
                yield from ((word, f"{name} {path}") for word, path in command._paths(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; see `click.Group.format_commands`."""
        rows = [(name, self._sentence(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _sentence(self, ctx: click.Context, name: str) -> str:
        if name in self.lazy:
            return self.lazy[name][1]
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_SENTENCE_CHARS) if command else ""


class _Commands(CommandGroup):
    """Group that shows a CambistError as a click error: one line, exit status 1.

    A nursery wraps a task's error in an exception group, which is unwrapped if it holds no other error.
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


@click.group(
    cls=_Commands,
    lazy=_COMMANDS,
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
