"""`cambist config check`: opens a settings file's roles as `serve` does, and shows what they serve."""

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import trio
from rich.console import Console
from rich.table import Table

from ....codecs.messages.wire import encode
from ....config.chains import CONTRACT_SETTINGS
from ....config.errors import ConfigError
from ....config.settings import Settings, read_settings
from ....crypto.addresses import to_checksum
from ....crypto.custody.signing_policy import PolicedKey
from ...host.process.credentials import check_addresses, policed_key, request_verifier
from .. import CommandGroup
from ..sources import at_work, config_option

if TYPE_CHECKING:
    from .role_online import RoleFact

ROLES = ("venue", "maker", "agent")


@click.group(cls=CommandGroup)
def config() -> None:
    """Check settings files."""


@config.command("check")
@config_option("The settings file (TOML); the defaults alone if absent.")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    help="The role to open; every role that the file has a section for if absent.",
)
@click.option("--online", is_flag=True, help="Ask nodes, contracts, makers, agents and a maker's funds, too.")
@click.option("--json", "is_json", is_flag=True, help="Print one line of JSON on standard output.")
def check_command(path: Path | None, role: str | None, *, online: bool, is_json: bool) -> None:
    """Open the roles of a settings file as `serve` does, and show what they would serve.

    The command asks no node, maker or store unless --online is given, and changes nothing. Variables named
    CAMBIST__SECTION__KEY override the file. No secret is printed. Exit status: 0 right, 1 wrong.
    """
    from ...trade.events.open_webhooks import hooks_of
    from .role_check import open_role  # imports all roles: not for --help

    settings = read_settings(path, os.environ)
    # These calls, and those for `keys` below, serve to refuse what `serve` would refuse.
    check_addresses(settings)
    request_verifier(settings)
    hooks = hooks_of(settings.venue.webhooks if settings.venue else {})
    folder = path.parent if path else Path()
    roles = (role,) if role else tuple(each for each in ROLES if getattr(settings, each) is not None)
    has_policed = not roles or "maker" in roles  # a relayer's key needs no policy: the venue builds its calls
    keys = {name: policed_key(name, key) for name, key in settings.keys.items() if has_policed}
    opening = partial(open_role, online=online)
    with at_work("asking nodes, contracts, makers and agents" if online else "opening the roles"):
        facts = {name: trio.run(opening, name, settings, os.environ, folder) for name in roles}
    is_right = not any(row.is_fault for rows in facts.values() for row in rows)
    if is_json:
        click.echo(encode({"isRight": is_right, "roles": facts}))
    else:
        _show(settings, hooks, keys, facts)
    if not is_right:
        raise ConfigError("settings", "some of what they name does not answer as it should, see above")


def _show(
    settings: Settings,
    hooks: Collection[str],
    keys: Mapping[str, PolicedKey],
    facts: Mapping[str, Sequence["RoleFact"]],
) -> None:
    """Print the settings and the facts of each role for people."""
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    console.print(_chains_table(settings))
    console.print(f"state directory   {Path(settings.state_dir).expanduser()}")
    console.print(f"tokens            {len(settings.tokens)}")
    console.print(f"partners          {', '.join(settings.partners) or 'none'}")
    console.print(f"request domains   {', '.join(settings.auth.domains) or 'none'}")
    console.print(f"webhooks          {', '.join(hooks) or 'none'}")
    for name, key in keys.items():
        console.print(
            f"key {name:<13} {to_checksum(key.address)}, {len(key.policy.contracts)} contracts allowed"
        )
    for name, rows in facts.items():
        console.print(f"\n{name}", style="bold")
        for row in rows:
            console.print(f"{row.name:<17} {row.text}", style="red" if row.is_fault else None)
    if not any(row.is_fault for rows in facts.values() for row in rows):
        console.print("\nsettings are right" if facts else "settings are right", style="green")


def _chains_table(settings: Settings) -> Table:
    table = Table("id", "chain", "delta", "market", "rfq", "confirmations", "contracts set")
    for chain_id, chain in sorted(settings.chains.items()):
        contracts = [getattr(chain, name) for name in CONTRACT_SETTINGS]
        table.add_row(
            str(chain_id),
            chain.name,
            *("yes" if role else "-" for role in (chain.delta, chain.market, chain.rfq)),
            str(chain.confirmations),
            f"{sum(map(bool, contracts))} of {len(contracts)}",
        )
    return table
