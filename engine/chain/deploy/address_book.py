"""Read and write contracts.json of the state directory: addresses of contracts and tokens, per chain.

Commands that deploy write the file; traders' commands read the file. The file has the contract names that the
API uses (choices.md#requests-and-errors), and further names for a devnet's extra contracts.

If two commands write at the same moment, one of their entries may be lost.
"""

from pathlib import Path

import msgspec

from ....codecs.messages.resource_messages import DocumentMeta
from ....codecs.messages.wire import decoder
from ....config import limits
from ....config.errors import ConfigError, InvalidInput
from ....config.version import __version__
from ....crypto.addresses import to_checksum
from ...store.operator.whole_file import whole_file
from .deploy import DeployedContracts

FILE_NAME = "contracts.json"


class DeployedToken(msgspec.Struct, frozen=True):
    """Address and decimals of a token that a deployment created."""

    address: str
    decimals: int


class DeployedChain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Addresses of a chain's contracts, in hexadecimal; None for a contract that the chain does not have."""

    name: str
    router: str | None = msgspec.field(name="augustusV6_2")
    delta: str | None
    rfq: str | None = msgspec.field(name="augustusRFQ")
    executor: str | None
    fee_vault: str | None = msgspec.field(name="feeClaimer")
    wrapped_native: str | None = msgspec.field(name="wrappedNative", default=None)
    permit2: str | None = None
    bridges: str | None = None
    arrivals: str | None = None
    spoke_pool: str | None = msgspec.field(name="spokePool", default=None)
    token_messenger: str | None = msgspec.field(name="tokenMessenger", default=None)
    message_transmitter: str | None = msgspec.field(name="messageTransmitter", default=None)
    multicall: str | None = None
    vault: str | None = None
    tokens: dict[str, DeployedToken] = {}


class AddressBook(msgspec.Struct, frozen=True):
    """Content of the file contracts.json: chain id in decimal -> addresses of contracts and tokens."""

    meta: DocumentMeta = msgspec.field(name="_meta")
    chains: dict[str, DeployedChain]


_decode = decoder(AddressBook, bytes_max=limits.JSON_BYTES_MAX)


def chain_entry(name: str, at: DeployedContracts, **more: object) -> DeployedChain:
    """Build a chain's entry of contracts.json from the addresses of its deployed contracts.

    Args:
        name: name of the chain.
        more: further members of `DeployedChain`, by name.
    """
    addresses = {
        "augustusV6_2": to_checksum(at.router),
        "delta": to_checksum(at.delta),
        "augustusRFQ": to_checksum(at.rfq),
        "executor": to_checksum(at.executor),
        "feeClaimer": to_checksum(at.fee_vault),
        "bridges": to_checksum(at.bridges),
        "arrivals": to_checksum(at.arrivals),
    }
    return msgspec.convert({"name": name, **addresses, **more}, DeployedChain)


def read_book(path: Path) -> AddressBook:
    """Read the file contracts.json; an absent file gives a book without chains.

    Raises:
        ConfigError: the file exists and cannot be read.
    """
    try:
        return _decode(path.read_bytes())
    except FileNotFoundError:
        return AddressBook(DocumentMeta("cambist contracts", __version__), {})
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from None
    except InvalidInput as error:
        raise ConfigError(str(path), error.detail) from None


def write_entries(folder: Path, entries: dict[int, DeployedChain]) -> Path:
    """Write the entries of chains to contracts.json of a folder; the entries of other chains are kept.

    The folder and the file are created if absent.

    Returns:
        Path of the file. The new file replaces the old one atomically.

    Raises:
        ConfigError: the present file cannot be read, or the new one cannot be written.
    """
    path = folder / FILE_NAME
    chains = read_book(path).chains | {str(chain_id): entry for chain_id, entry in entries.items()}
    book = AddressBook(
        DocumentMeta("cambist contracts", __version__),
        dict(sorted(chains.items(), key=lambda item: (len(item[0]), item[0]))),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(str(folder), f"cannot be made: {error.strerror}") from None
    with whole_file(path, force=True) as beside:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(book), indent=2) + b"\n")
    return path
