"""Token addresses of the trading endpoints, where the native token has one spelling only.

`srcToken` and `destToken` stay raw text in the wire structs until they come here, since the placeholder
counts in its mixed-case form alone. Source: document 1, "What the service does" and the row
"Invalid srcToken / Invalid destToken"; choices.md 1.
"""

from typing import Literal

from ..config import limits
from ..config.errors import InvalidInput, InvalidToken
from ..crypto.addresses import ZERO_ADDRESS, parse_address

NATIVE_TOKEN = bytes.fromhex(limits.NATIVE_PLACEHOLDER[2:])
"""The placeholder's 20 bytes: what the rest of the code means by the native token."""


def parse_trading_token(text: object, field: Literal["srcToken", "destToken"]) -> bytes:
    """The 20 bytes of a token of a trading endpoint; NATIVE_TOKEN for the placeholder.

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
