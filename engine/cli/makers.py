"""`cambist makers`: excludes a maker from a running venue, or releases it again."""

import time
from collections.abc import Callable
from pathlib import Path

import click

from ...config.errors import ConfigError
from ...config.settings import Settings
from ..host.safety.maker_rules import MakerRules
from ..host.safety.watched_file import WatchedFile
from ..trade.makers.maker_watch import rules_file
from . import CommandGroup
from .sources import config_option, settings_with, writing

_CONFIG = config_option("The venue's settings file (TOML).", required=True)
_NAME = click.argument("name")
_CHAIN = click.option("--chain", type=int, metavar="ID", help="Chain to act on; all chains if absent.")


@click.group(cls=CommandGroup)
def makers() -> None:
    """Exclude a maker from a running venue, or release it again.

    The commands exclude and release write the venue's file of makers. A running venue obeys the file within a
    tenth of a second, and a restarted venue obeys it too. GET /makers/scores shows the results of each maker.
    """


@makers.command("list")
@_CONFIG
def list_makers(path: Path) -> None:
    """List the makers that the venue excludes now."""
    _show(_file(settings_with(path, "venue", reveal=False), path).state)


@makers.command("exclude")
@_NAME
@_CONFIG
@_CHAIN
def exclude(name: str, path: Path, chain: int | None) -> None:
    """Exclude the maker NAME at once: the venue routes nothing through it, and requests nothing of it."""
    _change(path, name, chain, lambda rules: rules.excluding(name, chain))


@makers.command("release")
@_NAME
@_CONFIG
@_CHAIN
def release(name: str, path: Path, chain: int | None) -> None:
    """Have the venue use the maker NAME again: forget its faults, and end its exclusion, cool-downs and size
    bounds."""
    now_ms = time.time_ns() // 1_000_000
    _change(path, name, chain, lambda rules: rules.releasing(name, chain, now_ms))


def _file(settings: Settings, path: Path) -> WatchedFile[MakerRules]:
    return WatchedFile(rules_file(settings, path.parent), MakerRules(), lambda _: None)


def _change(path: Path, name: str, chain: int | None, change: Callable[[MakerRules], MakerRules]) -> None:
    settings = settings_with(path, "venue", reveal=False)
    known = settings.venue.makers if settings.venue else {}
    if name not in known:
        raise click.UsageError(f"unknown maker {name!r}: expected {', '.join(sorted(known)) or 'none'}")
    if chain is not None and chain not in known[name].chains:
        raise click.UsageError(f"{name} is on no chain {chain}")
    file = _file(settings, path)
    if file.state.reason:
        raise ConfigError("state_dir", f"{file.path.name} {file.state.reason}")
    try:
        with writing("state_dir", file.path.name):
            file.change(change)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    _show(file.state)


def _show(rules: MakerRules) -> None:
    click.echo("\n".join(rules.lines()) or rules.reason or "no maker is left out")
