"""Amounts of tokens as a program gives and gets them: whole tokens in, whole tokens and raw units out. Pure.

Choice: An amount is in whole tokens, whether it is an int, a str or a Decimal; a float is refused.
"""

from decimal import Context, Decimal

from msgspec import Struct

from .....codecs.amounts import parse_decimal, parse_units
from .....config.errors import ConfigError, InvalidInput
from ..limit_price import LimitPrice
from ..terms import TradedToken, amount_text

Amount = int | str | Decimal
"""An amount of whole tokens: 2, "1.5" or Decimal("1.5")."""

_EXACT = Context(prec=100)


class TokenAmount(Struct, frozen=True):
    """An amount of a token; `str` gives it in whole tokens with the symbol, such as "1.5 WETH".

    Attributes:
        raw: raw units of the token, an int.
    """

    raw: int
    token: TradedToken

    @property
    def whole(self) -> Decimal:
        """The amount in whole tokens, exact."""
        return Decimal(self.raw).scaleb(-self.token.decimals, _EXACT)

    def __str__(self) -> str:
        return amount_text(self.raw, self.token)


def decimal_text(value: Amount, field: str) -> str:
    """Return an amount or a price as a decimal string.

    Args:
        field: parameter that holds the value, for errors.

    Raises:
        ConfigError: the value is no int, str or Decimal, or no decimal number from zero up.
    """
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise ConfigError(field, f"expected an int, a str or a Decimal, got {type(value).__name__} {value!r}")
    text = value if isinstance(value, str) else f"{Decimal(value):f}"
    try:
        parse_decimal(text, field)
    except InvalidInput as fault:
        raise ConfigError(field, f"expected {fault.expected}, got {text}") from None
    return text


def raw_units(value: Amount, token: TradedToken, field: str) -> int:
    """Convert an amount in whole tokens to raw units, exactly.

    Raises:
        ConfigError: the amount is no decimal, finer than the token's decimals, zero, or too large.
    """
    text = decimal_text(value, field)
    mantissa, scale = parse_decimal(text, field)
    if scale > token.decimals and mantissa % 10 ** (scale - token.decimals):
        raise ConfigError(field, f"{token.symbol} has {token.decimals} decimals, got {text}")
    try:
        amount = parse_units(text, token.decimals, field)
    except InvalidInput as error:
        raise ConfigError(field, error.detail) from None
    if amount == 0:
        raise ConfigError(field, "is zero")
    return amount


def limit_price(value: Amount, field: str) -> LimitPrice:
    """Convert a price, bought tokens for one sold token, to an exact price.

    Raises:
        ConfigError: the value is no decimal, or zero.
    """
    return LimitPrice.parse(decimal_text(value, field), field)
