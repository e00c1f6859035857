"""`cambist typed-data`: hash, sign and recover EIP-712 documents as wallets exchange them."""

from typing import IO, Any

import click
import msgspec

from ....codecs.messages.wire import decoder
from ....config import limits
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.signatures import parse_signature_text, signer, to_65, to_compact64
from ....crypto.typed_data import TypedDataHashes, check_domain, hash_typed_data
from .. import CommandGroup
from ..sources import KEY_HELP, PASSWORD_HELP, read_bounded, read_key

_decode = decoder(object, bytes_max=limits.TYPED_DATA_BYTES_MAX)

_document = click.argument("file", type=click.File("rb"))


@click.group("typed-data", cls=CommandGroup)
def typed_data() -> None:
    """Hash, sign or recover EIP-712 typed data.

    FILE is JSON as wallets exchange it, {types, primaryType?, domain, message}, or the `toSign` of a built
    order, {domain, types, value}; `-` reads standard input. Each command prints one JSON object.

    A domain that ethers, viem and eth-account do not hash alike is refused.
    """


@typed_data.command("hash")
@_document
def hash_command(file: IO[bytes]) -> None:
    """Print the digest, type hash, struct hash and domain separator of typed data."""
    _print(_hashes(file))


@typed_data.command("sign")
@_document
@click.option("--key", required=True, help=KEY_HELP)
@click.option("--password", help=PASSWORD_HELP)
def sign_command(file: IO[bytes], key: str, password: str | None) -> None:
    """Sign typed data; print the 65-byte and the compact 64-byte signature, and the signer."""
    hashes = _hashes(file)
    signing_key = read_key(key, password)
    signature = signing_key.sign(hashes.digest)
    _print(
        hashes,
        signature=to_hex(to_65(*signature)),
        compactSignature=to_hex(to_compact64(*signature)),
        signer=to_checksum(signing_key.address),
    )


@typed_data.command("recover")
@_document
@click.option("--signature", required=True, help="0x and 65 or 64 (ERC-2098) bytes in hexadecimal.")
def recover_command(file: IO[bytes], signature: str) -> None:
    """Recover the address that signed typed data. A signature of other data recovers another address."""
    hashes = _hashes(file)
    raw = parse_signature_text(signature, "--signature")
    _print(hashes, signature=to_hex(raw), signer=to_checksum(signer(hashes.digest, raw)))


def _hashes(file: IO[bytes]) -> TypedDataHashes:
    document = _decode(read_bounded(file, limits.TYPED_DATA_BYTES_MAX))
    check_domain(document)
    return hash_typed_data(document)


def _print(hashes: TypedDataHashes, **more: str) -> None:
    shown: dict[str, Any] = {
        "primaryType": hashes.primary_type,
        "digest": to_hex(hashes.digest),
        "typeHash": to_hex(hashes.type_hash),
        "structHash": to_hex(hashes.struct_hash),
        "domainSeparator": to_hex(hashes.domain_separator),
        **more,
    }
    click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2))
