"""`cambist keys`: make, import and identify signing keys."""

import os
import secrets
import uuid
from pathlib import Path

import click

from ....config.errors import ConfigError
from ....crypto.addresses import to_checksum
from ....crypto.custody.keystore import encrypt_key
from ....crypto.secp256k1 import KEY_BYTES, SigningKey
from .. import CommandGroup
from ..sources import KEY_HELP, PASSWORD_HELP, read_key, read_password, write_new

_out = click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The keystore file to write.",
)
_password = click.option("--password", help=PASSWORD_HELP)


@click.group(cls=CommandGroup)
def keys() -> None:
    """Make, import and identify signing keys.

    Keys are stored encrypted, as version 3 keystore files that wallets and nodes read too. An existing file
    is never overwritten.
    """


@keys.command("new")
@_out
@_password
def new_command(out: Path, password: str | None) -> None:
    """Make a signing key from the system's randomness, store it in an encrypted file and print its
    address."""
    _store(_random_key(), out, password)


@keys.command("import")
@click.option("--key", required=True, help=KEY_HELP)
@click.option("--key-password", help="The password of --key, if that is a keystore: env:NAME or file:PATH.")
@_out
@_password
def import_command(key: str, key_password: str | None, out: Path, password: str | None) -> None:
    """Store an existing signing key in an encrypted file and print its address."""
    _store(read_key(key, key_password), out, password)


@keys.command("address")
@click.option("--key", required=True, help=KEY_HELP)
@_password
def address_command(key: str, password: str | None) -> None:
    """Print the address of the account of a signing key."""
    click.echo(to_checksum(read_key(key, password).address))


def _random_key() -> SigningKey:
    while True:
        try:
            return SigningKey(secrets.token_bytes(KEY_BYTES))
        except ValueError:  # zero or above the order: once in 2^128
            continue


def _store(key: SigningKey, out: Path, password: str | None) -> None:
    """Write a key's encrypted keystore file with mode 0600, whole or not at all, and never over an existing
    file."""
    if os.path.lexists(out):
        raise ConfigError(str(out), "exists; a key file is never overwritten")
    secret = read_password(password, confirm=True)
    if secret is None:
        raise ConfigError(
            "--password", "is needed where there is no terminal to ask at: env:NAME or file:PATH"
        )
    text = encrypt_key(
        key,
        secret.reveal(),
        salt32=secrets.token_bytes(32),
        iv16=secrets.token_bytes(16),
        file_id=str(uuid.uuid4()),
    )
    write_new(out, text, str(out))
    click.echo(to_checksum(key.address))
