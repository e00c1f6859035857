"""`cambist maker`: serve firm quotes, approve their tokens, stop them, and check any maker."""

import os
import sys
from functools import partial
from pathlib import Path

import click
import trio

from ...config.errors import ConfigError
from ...config.sections.maker import MakerChain
from ...config.sections.nodes import NodeSettings, revealed
from ...config.settings import Settings
from ...crypto.addresses import parse_address, to_checksum
from ...crypto.custody.keys import signing_key
from ...crypto.hexadecimal import to_hex
from ..chain.artifacts import known_errors
from ..chain.nodes.rpc import RpcChain
from ..host.process.logs import configure_logs
from ..host.safety.halts import NOTHING_HALTED
from ..host.safety.kill_switch import KillSwitch
from ..host.safety.private_state import keep_private
from ..roles.maker.app import halt_file, known_scopes
from ..roles.maker.approvals import ApprovedToken, perform, steps, wrapped_amounts
from ..roles.maker.quoting.memory import QUOTES
from ..roles.maker.serve import serve_maker
from ..trader.client.public.amounts import raw_units
from ..trader.client.terms import TradedToken
from . import CommandGroup, LazyCommands
from .sources import agree, config_option, settings_with, writing

_CONFIG = config_option(required=True)
_SCOPE = click.argument("scope", nargs=-1)
_CHECKS: LazyCommands = {
    "check": ("maker_check:check", "Judge any market maker against the specification."),
    "show": (
        "maker_show:show",
        "Print the tokens, pairs and ladders of the market maker at URL, the maker's base URL for one chain.",
    ),
}


@click.group(cls=CommandGroup, lazy=_CHECKS)
def maker() -> None:
    """Run a market maker, stop it, and check a maker's conformance."""


@maker.command("serve")
@_CONFIG
def serve_command(path: Path) -> None:
    """Quote prices and sign firm quotes until SIGTERM or SIGINT.

    SIGUSR1 stops trading, SIGUSR2 resumes it. Logs go to standard error.
    """
    settings = settings_with(path, "maker")
    configure_logs()
    folder = path.parent / Path(settings.state_dir).expanduser()
    keep_private(folder, folder.glob(f"{QUOTES}*"))
    command = [sys.executable, "-m", "cambist", "maker", "serve", "--config", str(path)]
    sys.exit(trio.run(serve_maker, settings, os.environ, path.parent, command))


@maker.command("halt")
@_CONFIG
@_SCOPE
def halt_command(path: Path, scope: tuple[str, ...]) -> None:
    """Stop trading at once: `all` (the default), `chain 137` or `pair 137 WETH/USDC`.

    The command writes the halt file, which running market makers obey within a tenth of a second. No secret
    is read.
    """
    _change(path, scope, stop=True)


@maker.command("resume")
@_CONFIG
@_SCOPE
def resume_command(path: Path, scope: tuple[str, ...]) -> None:
    """Resume trading after `halt`: `all` (the default) resumes everything; otherwise `chain 137` or `pair 137
    WETH/USDC`."""
    _change(path, scope, stop=False)


@maker.command("approve")
@_CONFIG
@click.option("--chain", "chain_id", type=click.IntRange(1), help="A chain of the settings; all if absent.")
@click.option(
    "--wrap",
    "wraps",
    metavar="TOKEN=AMOUNT",
    multiple=True,
    help="First wrap native tokens into TOKEN, whole tokens; repeatable, with --chain.",
)
@click.option("--revoke", is_flag=True, help="Take all allowances back instead.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
def approve_command(
    path: Path, chain_id: int | None, wraps: tuple[str, ...], *, revoke: bool, is_sure: bool
) -> None:
    """Let the RFQ contract take the tokens that the maker sells, as firm quotes need it.

    The command shows the account's balances and allowances of every token in the settings, and asks before it
    sends transactions at the account's gas. With --revoke, the contract can take nothing any more.
    """
    settings = settings_with(path, "maker")
    chains = settings.maker.chains if settings.maker else {}
    if chain_id is not None and chain_id not in chains:
        raise click.UsageError(f"--chain: expected one of {', '.join(map(str, chains))}, got {chain_id}")
    if wraps and (chain_id is None or revoke):
        raise click.UsageError("--wrap: only with --chain, and not with --revoke")
    for each in chains if chain_id is None else [chain_id]:
        wished = _wished(wraps, chains[each])
        work = partial(_approve, settings, each, chains[each], wished, revoke=revoke, is_sure=is_sure)
        trio.run(work, path.parent)


def _change(path: Path, scope: tuple[str, ...], *, stop: bool) -> None:
    settings = settings_with(path, "maker", reveal=False)
    switch = KillSwitch(halt_file(settings, path.parent), lambda _: None)
    named = " ".join(scope) or "all"
    try:
        if reason := NOTHING_HALTED.with_scope(named).within(known_scopes(settings)).reason:
            raise click.UsageError(reason)
        with writing("maker.halt_file"):
            switch.stop(named) if stop else switch.resume(named)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo(switch.halts.text() or "nothing is stopped", nl=not switch.halts.text())


def _wished(wraps: tuple[str, ...], chain: MakerChain) -> dict[str, int]:
    """Decode the options --wrap: token name -> wei."""
    found = {}
    for text in wraps:
        name, _, amount = text.partition("=")
        token = chain.tokens.get(name)
        if token is None:
            raise click.UsageError(f"--wrap: expected one of {', '.join(chain.tokens)}, got {name}")
        traded = TradedToken(parse_address(token.address, "--wrap"), name, token.decimals)
        found[name] = raw_units(amount, traded, "--wrap")
    return found


async def _approve(
    settings: Settings,
    chain_id: int,
    chain_settings: MakerChain,
    wished: dict[str, int],
    folder: Path,
    *,
    revoke: bool,
    is_sure: bool,
) -> None:
    """Show the wraps and approvals (or revocations) that are missing on a chain, ask, and send them.

    Raises:
        ConfigError: the settings have no node or no key for that, or the maker is a contract.
        click.Abort: the answer is no.
        ChainError: a transaction would revert, was refused, or may still be mined.
    """
    field = f"maker.chains.{chain_id}"
    if chain_settings.maker:
        raise ConfigError(f"{field}.maker", "is a contract: its own owner approves the RFQ contract")
    if not chain_settings.node_url:
        raise ConfigError(f"{field}.node_url", "is needed to read and send")
    named = settings.keys.get(chain_settings.key)
    if named is None:
        raise ConfigError(f"{field}.key", f"is not one of [keys], got {chain_settings.key!r}")
    key = signing_key(named.source, named.password)
    served = settings.chains.get(chain_id)
    rfq = parse_address(served.rfq_contract if served else "", f"chains.{chain_id}.rfq_contract")
    tokens = {
        name: ApprovedToken(name, parse_address(token.address, f"{field}.tokens.{name}"), token.decimals)
        for name, token in chain_settings.tokens.items()
    }
    node = revealed(NodeSettings(urls=(chain_settings.node_url,)), field, os.environ, folder)
    async with RpcChain.open(chain_id, node, known_errors()) as chain:
        lines, missing = await steps(chain, key.address, rfq, wrapped_amounts(wished, tokens), revoke=revoke)
        click.echo(f"chain {chain_id}: {to_checksum(key.address)} for {to_checksum(rfq)}")
        for line in lines:
            click.echo(f"  {line}")
        if not missing:
            click.echo("nothing to do")
            return
        for step in missing:
            click.echo(f"  to do: {step.text}")
        if not is_sure:
            agree("Send these transactions?")
        async for step, receipt in perform(chain, key, missing):
            click.echo(f"{step.text}: {to_hex(receipt.tx_hash)}")
