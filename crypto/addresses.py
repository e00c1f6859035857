"""Parse and format addresses: 20 bytes inside, hexadecimal text with EIP-55 checksums outside.

Choice: Requests take addresses in any case. Settings and typed-data files check the checksum of a mixed-case
    address, since people type them.

Source: EIP-55.
"""

from functools import lru_cache

from ..config.errors import InvalidInput
from ..config.limits import CHECKSUMS_KEPT_MAX
from .keccak import keccak256

ADDRESS_BYTES = 20
ZERO_ADDRESS = bytes(ADDRESS_BYTES)

_CHARS = 2 + 2 * ADDRESS_BYTES
_PREFIXES = frozenset(("0x", "0X"))
_EXPECTED = "an address: 0x and 40 hexadecimal digits"


def parse_address(text: object, field: str = "address") -> bytes:
    """Parse an address in any letter case to its 20 bytes.

    Args:
        text: `0x` and 40 hexadecimal digits.
        field: named in the error.

    Raises:
        InvalidInput: the text is no address.
    """
    if type(text) is str and len(text) == _CHARS and text[:2] in _PREFIXES:
        try:
            address = bytes.fromhex(text[2:])
        except ValueError:
            address = b""
        if len(address) == ADDRESS_BYTES:  # fromhex skips white space, which leaves fewer bytes
            return address
    raise InvalidInput(field=field, expected=_EXPECTED, got=text)


def checked_address(text: object, field: str = "address") -> bytes:
    """Parse an address as `parse_address` does; a mixed-case address must carry its EIP-55 checksum."""
    address = parse_address(text, field)
    digits = str(text)[2:]
    if digits not in (digits.lower(), digits.upper()) and to_checksum(address)[2:] != digits:
        raise InvalidInput(
            "write it in lower case to pass it unchecked",
            field=field,
            expected=f"the EIP-55 checksum {to_checksum(address)}",
            got=text,
        )
    return address


def to_checksum(address: bytes) -> str:
    """Format a 20-byte address as EIP-55 mixed-case text."""
    return _checksummed(address)


@lru_cache(CHECKSUMS_KEPT_MAX)
def _checksummed(address: bytes) -> str:
    digits = address.hex()
    nibbles = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        [digit.upper() if nibble > "7" else digit for digit, nibble in zip(digits, nibbles, strict=False)]
    )
