"""Parse and format bytes as `0x` text, the form of all binary data on the wire."""

import re

from ..config.errors import InvalidInput

HEX_EXPECTED = "0x and an even number of hexadecimal digits"

_HEX = re.compile(r"0[xX](?:[0-9a-fA-F]{2})*\Z")


def parse_hex(text: object, field: str, expected: str = HEX_EXPECTED) -> bytes:
    """Parse `0x` text of any even length to bytes.

    Args:
        text: `0x` and hexadecimal digits in any case; `0x` alone gives empty bytes.
        field: named in the error.
        expected: description of the expected form, for the error.

    Raises:
        InvalidInput: the text has another form.
    """
    if isinstance(text, str) and _HEX.match(text):
        return bytes.fromhex(text[2:])
    raise InvalidInput(field=field, expected=expected, got=text)


def to_hex(raw: bytes) -> str:
    """Format bytes as lower-case `0x` text."""
    return "0x" + raw.hex()
