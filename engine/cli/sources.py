"""Reads inputs of commands: settings, bounded files and standard input, keys, passwords, and consent; writes
new files, and shows that a command is at work."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from ...config.errors import ConfigError, InvalidInput
from ...config.secret import Secret, read_secret
from ...config.settings import Settings, read_settings
from ...crypto.custody.keys import signing_key
from ...crypto.secp256k1 import SigningKey
from ..host.process.interrupts import asking

KEY_HELP = "The key: env:NAME or file:PATH, holding 64 hexadecimal digits or a keystore."
PASSWORD_HELP = "The keystore's password: env:NAME or file:PATH. Prompted for on a terminal if absent."  # noqa: S105

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Decorator that adds an option or an argument to a click command."""


def config_option(
    text: str = "The settings file (TOML).",
    *,
    required: bool = False,
) -> Decorator:
    """Decorator that adds the option `--config` to a command, which receives the settings file as `path`.

    If the option is absent, the environment variable CAMBIST_CONFIG names the file.

    Args:
        text: help of the option.
    """
    return click.option(
        "--config",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="CAMBIST_CONFIG",
        required=required,
        help=text,
    )


secret_encoding = click.option(
    "--secret-encoding",
    type=click.Choice(["utf8", "base64", "hex"]),
    default="utf8",
    show_default=True,
    help="Encoding of the secret when it was exchanged.",
)


def settings_with(path: Path, section: str, *, reveal: bool = True) -> Settings:
    """Read a settings file that must have a section.

    Args:
        section: name of the section, such as `venue`.
        reveal: whether secrets are read too.

    Raises:
        ConfigError: the settings are wrong, or the section is missing.
    """
    settings = read_settings(path, os.environ, reveal=reveal)
    if getattr(settings, section) is None:
        raise ConfigError(section, f"{path} has no [{section}] table")
    return settings


def read_bounded(file: IO[bytes], bytes_max: int) -> bytes:
    """Read the whole of a file or of standard input, up to `bytes_max` bytes.

    Raises:
        ConfigError: the file cannot be read.
        InvalidInput: the input is longer than `bytes_max`.
    """
    try:
        raw = file.read(bytes_max + 1)
    except OSError as error:
        raise ConfigError(file.name, f"cannot be read: {error.strerror}") from None
    if len(raw) > bytes_max:
        raise InvalidInput(field=file.name, expected=f"at most {bytes_max} bytes")
    return raw


@contextmanager
def writing(key: str, name: str = "") -> Iterator[None]:
    """Context manager that shows a failure to write a file as one line.

    Args:
        key: file, setting or option with which the error begins.
        name: file that the error names in addition; empty for none.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise ConfigError(key, f"{name} cannot be written: {error.strerror}".lstrip()) from None


def write_new(path: Path, raw: bytes, key: str, name: str = "") -> None:
    """Write a new file with mode 0600, whole or not at all, and never over an existing file.

    Args:
        key, name: as for `writing`.

    Raises:
        ConfigError: the file cannot be written.
    """
    with writing(key, name):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            path.unlink()
            raise


def read_key(reference: str, password: str | None) -> SigningKey:
    """Load the signing key that `--key` refers to. Without `password`, the password of an encrypted key file
    is asked for if standard input is a terminal."""
    secret = read_secret(reference, os.environ, "--key")
    is_keystore = secret.reveal().lstrip().startswith("{")
    return signing_key(secret, read_password(password, confirm=False) if is_keystore or password else None)


def agree(question: str, *, err: bool = True) -> None:
    """Ask for consent on the terminal, and wait for the answer; other tasks of the process do not run
    meanwhile.

    Raises:
        click.Abort: the answer is no, or an interrupt.
    """
    try:
        with asking():
            click.confirm(question, abort=True, err=err)
    except KeyboardInterrupt:  # just before or after the prompt; within the prompt click raises Abort itself
        raise click.Abort from None


def read_password(reference: str | None, *, confirm: bool) -> Secret | None:
    """Return the password that `--password` refers to; without that option ask for it on the terminal, or
    return None if standard input is no terminal."""
    if reference is not None:
        return read_secret(reference, os.environ, "--password")
    if not sys.stdin.isatty():
        return None
    typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=confirm, err=True)
    return Secret(typed, "the terminal")


@contextmanager
def at_work(text: str) -> Iterator[None]:
    """Context manager that shows, on a terminal, that the command is at work, and for how long.

    Standard error has the line, with a spinner and the seconds, until the work ends; nothing is shown if
    standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(text, total=None)
        yield
