"""The tokens of one chain that the operator lists, found by address or by symbol. Pure.

Only listed tokens and the native token are traded.

Source: spec 1.13.2 and 1.13.3, 1.25.6.
Choice: A token is supported if the operator lists it; a token that only a maker names is not routed.
Choice: Symbols match exactly, case included; the native token's own symbol stands for the placeholder.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from ....codecs.trading_token import NATIVE_TOKEN, parse_trading_token
from ....config import limits
from ....config.errors import InvalidInput, NoRoute, TokenNotSupported
from ....config.tokens import TokenSettings
from ....crypto.addresses import parse_address, to_checksum

NATIVE_DECIMALS = 18


class ListedToken(Struct, frozen=True):
    """A token of one chain that may be traded.

    Attributes:
        address: 20 bytes; the placeholder address for the native token.
        routed: address of the ERC-20 contract whose books a route uses: the wrapped form for the native
            token.
        text: the address as the API's answers write it.
        listed: the operator's entry in the settings; None for the native token.
    """

    address: bytes
    routed: bytes
    symbol: str
    decimals: int
    text: str
    listed: TokenSettings | None


class TokenTable:
    """Lookup of the tokens that may be traded on a chain, by address and by symbol.

    Args:
        tokens: the chain's tokens in the settings.
        wrapped_native: address of the wrapped native token, 20 bytes; empty if the settings lack it, in which
            case the chain's native token is not traded.
    """

    def __init__(self, tokens: Iterable[TokenSettings], wrapped_native: bytes, native_symbol: str) -> None:
        self.by_address: dict[bytes, ListedToken] = {}
        self._by_symbol: dict[str, ListedToken] = {}
        self.wrapped_native = wrapped_native
        for token in tokens:
            address = parse_address(token.address, "address")
            self._add(
                ListedToken(address, address, token.symbol, token.decimals, to_checksum(address), token)
            )
        if wrapped_native:
            native = ListedToken(
                NATIVE_TOKEN,
                wrapped_native,
                native_symbol,
                NATIVE_DECIMALS,
                limits.NATIVE_PLACEHOLDER,
                None,
            )
            self._add(native)

    def find(self, text: str, field: Literal["srcToken", "destToken"], decimals: int | None) -> ListedToken:
        """Return the listed token that a swap request names by address or symbol.

        Args:
            decimals: the token's decimals as the request states them; None if the request does not.

        Raises:
            InvalidToken: the text is no listed symbol and no address, is the zero address, or spells the
                native token's placeholder address differently.
            TokenNotSupported: the token is not listed.
            NoRoute: the request's decimals differ from those of the listed token
                (choices.md#quotes-and-routes).
        """
        found = self._by_symbol.get(text)
        if found is None:
            found = self.by_address.get(parse_trading_token(text, field))
        if found is None:
            raise TokenNotSupported(field=field, expected="a token of GET /tokens", got=text)
        if decimals is not None and decimals != found.decimals:
            raise NoRoute(
                field=field.replace("Token", "Decimals"), expected=str(found.decimals), got=decimals
            )
        return found

    def listed(self, text: str, field: str) -> ListedToken:
        """Return the listed token that the path of a URL names by symbol, or by address in any case.

        The placeholder address names the native token.

        Raises:
            InvalidInput: the text is neither a listed symbol nor an address.
            TokenNotSupported: the token is not listed.
        """
        found = self._by_symbol.get(text) or self.by_address.get(parse_address(text, field))
        if found is None:
            raise TokenNotSupported(field=field, expected="a token of GET /tokens", got=text)
        return found

    def listed_pair(self, base: str, quote: str) -> tuple[ListedToken, ListedToken]:
        """Return the two listed tokens that the parameters `base` and `quote` name, as `listed` finds each.

        Raises:
            InvalidInput: a text is neither a listed symbol nor an address, or both name the same token, the
                native token and its wrapped form included.
            TokenNotSupported: a token is not listed.
        """
        found = self.listed(base, "base"), self.listed(quote, "quote")
        if found[0].routed == found[1].routed:
            raise InvalidInput(field="quote", expected="another token than base", got=quote)
        return found

    def _add(self, token: ListedToken) -> None:
        self.by_address[token.address] = token
        self._by_symbol.setdefault(token.symbol, token)
