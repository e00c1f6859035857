"""The click option `--config`, which names the settings file of every command that reads settings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Decorator that adds an option or an argument to a click command."""


def config_option(
    text: str = "The settings file (TOML).",
    *,
    required: bool = False,
) -> Decorator:
    """Decorator that adds the option `--config` to a command, which receives the settings file as `path`; the
    environment variable CAMBIST_CONFIG names the file if the option is absent. `text` is its help."""
    return click.option(
        "--config",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="CAMBIST_CONFIG",
        required=required,
        help=text,
    )
