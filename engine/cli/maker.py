"""`cambist maker`: serve firm quotes, stop them, and check any maker."""

import os
import sys
from pathlib import Path

import click
import trio

from ..maker.app import halt_file, known_scopes
from ..maker.quoting.memory import QUOTES
from ..maker.serve import serve_maker
from ..process.logs import configure_logs
from ..safety.halts import NOTHING_HALTED
from ..safety.kill_switch import KillSwitch
from ..safety.private_state import keep_private
from .maker_check import check
from .maker_show import show
from .sources import config_option, settings_with, writing

_CONFIG = config_option(required=True)
_SCOPE = click.argument("scope", nargs=-1)


@click.group()
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


maker.add_command(check)
maker.add_command(show)


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
