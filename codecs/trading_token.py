"""Parse token addresses of the trading endpoints, and refuse addresses that no account can have.

The native placeholder is the address that stands for the native token. `srcToken` and `destToken` stay raw
text in the wire structs until this module parses them, since the placeholder counts in its mixed-case form
alone. Source: spec 1.1.24 to 1.1.26, 1.25.8, 1.25.10.

Choice: The native placeholder counts in its mixed-case form alone: lower case and `0x0` are `Invalid
    srcToken` or `Invalid destToken`. This holds for trading endpoints, not for addresses in general.
"""

from typing import Literal

from ..config import limits
from ..config.errors import InvalidInput, InvalidToken
from ..crypto.addresses import ZERO_ADDRESS, parse_address, to_checksum

NATIVE_TOKEN = bytes.fromhex(limits.NATIVE_PLACEHOLDER[2:])
"""The placeholder's 20 bytes; the rest of the code uses them for the native token."""


def check_account(address: bytes, field: str) -> None:
    """Refuse the zero address and the native placeholder, for which no key exists.

    Raises:
        InvalidInput: the address is the zero address or the native placeholder.
    """
    if address in (ZERO_ADDRESS, NATIVE_TOKEN):
        raise InvalidInput(
            field=field,
            expected="an account, neither zero nor the native placeholder",
            got=to_checksum(address),
        )


def parse_trading_token(text: object, field: Literal["srcToken", "destToken"]) -> bytes:
    """Parse a token of a trading endpoint to 20 bytes; NATIVE_TOKEN for the native placeholder.

    Raises:
        InvalidToken: the zero address, another spelling of the placeholder, or no address.
    """
    if text == limits.NATIVE_PLACEHOLDER:
        return NATIVE_TOKEN
    try:
        address = parse_address(text, field)
    except InvalidInput:
        address = ZERO_ADDRESS
    if address in (ZERO_ADDRESS, NATIVE_TOKEN):
        raise InvalidToken(
            expected=f"a token address, or exactly {limits.NATIVE_PLACEHOLDER} for the native token",
            got=text,
            message=f"Invalid {field}",
        )
    return address
