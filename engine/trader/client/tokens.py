"""Resolution of a trader's text to a token: a symbol of the venue's list, an address, or the native token.

A symbol relies on the venue's list; an address does not.

Choice: Decimals come from the token's contract, not from the venue, whose mistake would change the amount.
Choice: Without a node of the destination chain, decimals of the token there are the venue's, and the terms
    that the trader agrees to say so.
"""

from ....codecs.contracts.abi import decode_bytes, decode_uint
from ....codecs.contracts.calldata import DECIMALS, SYMBOL
from ....codecs.messages.resource_messages import TokenList
from ....codecs.trading_token import NATIVE_TOKEN
from ....config import limits
from ....config.errors import ConfigError, InvalidInput
from ....config.timeouts import RECENT_BLOCK_S
from ....crypto.addresses import checked_address, parse_address, to_checksum
from ...chain.port import Chain, EthCall
from .terms import TradedToken

NATIVE_DECIMALS = 18
_SYMBOL_CHARS_MAX = 32


async def find_token(chain: Chain, listed: TokenList, text: str, field: str) -> TradedToken:
    """Find the token that a trader's text names; decimals come from the token's contract.

    Args:
        listed: the venue's token list.
        text: a symbol in any case, or an address.
        field: argument that holds the text, for errors.

    Raises:
        ConfigError: the symbol is unknown or ambiguous, the address is malformed or has no token, or the
            token has too many decimals.
    """
    symbol, address = _named(listed, text, field)
    if address == NATIVE_TOKEN:
        return TradedToken(NATIVE_TOKEN, symbol or "native", NATIVE_DECIMALS)
    recent = await chain.recent_block(RECENT_BLOCK_S)
    questions = [EthCall(address, DECIMALS), EthCall(address, SYMBOL)]
    decimals, answer = await chain.call_many(questions, recent.hash)
    try:
        number = decode_uint(b"" if isinstance(decimals, Exception) else decimals)
    except InvalidInput:
        raise ConfigError(field, f"no token at {to_checksum(address)} on this chain") from None
    if number > limits.TOKEN_DECIMALS_MAX:
        raise ConfigError(field, f"the token has {number} decimals")
    return TradedToken(address, symbol or _symbol(answer) or to_checksum(address), number)


def listed_token(listed: TokenList, text: str, field: str) -> TradedToken:
    """Find the token that a trader's text names, with the symbol and decimals of the venue's list.

    Raises:
        ConfigError: the venue lists no such token, or the symbol is ambiguous.
    """
    symbol, address = _named(listed, text, field)
    if address == NATIVE_TOKEN:
        return TradedToken(NATIVE_TOKEN, symbol or "native", NATIVE_DECIMALS)
    for entry in listed.tokens:
        try:
            if parse_address(entry.address, field) == address:
                return TradedToken(address, entry.symbol, entry.decimals)
        except InvalidInput:
            continue
    raise ConfigError(field, f"the venue lists no token {text} there: --to-rpc reads its contract")


def _named(listed: TokenList, text: str, field: str) -> tuple[str, bytes]:
    """(symbol, 20-byte address) of the token that a text names; the symbol is empty if the text is an
    address."""
    if text.lower() == limits.NATIVE_PLACEHOLDER.lower():
        return "", NATIVE_TOKEN
    if text.startswith(("0x", "0X")):
        try:
            return "", checked_address(text, field)
        except InvalidInput as fault:
            raise ConfigError(field, f"expected {fault.expected}, got {text}") from None
    exact = [token for token in listed.tokens if token.symbol == text]
    found = exact or [token for token in listed.tokens if token.symbol.lower() == text.lower()]
    if len(found) == 1:
        (token,) = found
        if token.address.lower() == limits.NATIVE_PLACEHOLDER.lower():
            return token.symbol, NATIVE_TOKEN
        try:
            return token.symbol, checked_address(token.address, field)
        except InvalidInput:
            raise ConfigError(field, f"the venue lists {text} at {token.address}: no address") from None
    if found:
        raise ConfigError(field, f"the venue lists several {text}: name it by its address")
    known = ", ".join(sorted({token.symbol for token in listed.tokens})[:20]) or "none"
    raise ConfigError(field, f"expected an address or a symbol that the venue lists ({known}), got {text}")


def _symbol(answer: bytes | Exception) -> str:
    try:
        raw = b"" if isinstance(answer, Exception) else decode_bytes(answer)
        text = raw.decode()
    except (InvalidInput, UnicodeDecodeError):
        return ""
    is_word = text.isprintable() and not any(char.isspace() for char in text)
    return text if is_word and len(text) <= _SYMBOL_CHARS_MAX else ""
