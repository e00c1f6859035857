"""A limit price, and the amount that is signed for it. Pure.

    price    buy tokens for one sell token, in whole tokens, exact
    SELL     minimum received = ceil(amount * price)
    BUY      maximum spent    = floor(amount / price)

Source: spec 1.16.11 to 1.16.13.
Choice: An amount that is no whole number of raw units rounds for the user: more is received, or less spent.
"""

from decimal import Decimal

from msgspec import Struct

from ....codecs.amounts import parse_decimal
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import mul_div_down, mul_div_up
from ....config import limits
from ....config.errors import ConfigError
from .terms import TradedToken

_PERCENT_PLACES = Decimal("0.01")


class LimitPrice(Struct, frozen=True):
    """An exact price: mantissa / 10^scale buy tokens for one sell token, both in whole tokens."""

    mantissa: int
    scale: int

    @classmethod
    def parse(cls, text: str, field: str) -> "LimitPrice":
        """Parse a price, a decimal string above zero.

        Args:
            field: option that holds the text, for errors.

        Raises:
            InvalidInput: `text` is no decimal.
            ConfigError: the price is zero.
        """
        mantissa, scale = parse_decimal(text, field)
        if mantissa == 0:
            raise ConfigError(field, "is zero")
        return cls(mantissa, scale)

    def limit_amount(self, side: Side, amount: int, src: TradedToken, dest: TradedToken, field: str) -> int:
        """The bound at this price, raw units: the minimum received for SELL, the maximum spent for BUY.

        Args:
            amount: raw units of `src` for SELL, of `dest` for BUY.
            field: option that holds the price, for errors.

        Raises:
            ConfigError: the bound is zero, or above UINT256_MAX.
        """
        dest_units = self.mantissa * 10**dest.decimals
        src_units = 10 ** (self.scale + src.decimals)
        if side is Side.SELL:
            bound = mul_div_up(amount, dest_units, src_units)
        else:
            bound = mul_div_down(amount, src_units, dest_units)
        if bound == 0:
            raise ConfigError(field, f"at this price not one unit of {src.symbol} may be spent")
        if bound > limits.UINT256_MAX:
            raise ConfigError(field, "at this price the amount is above 2^256 - 1 units")
        return bound


def percent_away(src_quoted: int, dest_quoted: int, src_limit: int, dest_limit: int) -> Decimal:
    """Distance of the limit price from the quoted price, in percent of the quoted price; negative if the
    limit price is lower.

    Args:
        src_quoted, dest_quoted: amounts of the quote, raw units; src_limit, dest_limit: amounts at the limit
            price. All are above zero except `dest_limit`, which may be zero.
    """
    now = dest_quoted * src_limit
    return (Decimal(100 * (dest_limit * src_quoted - now)) / Decimal(now)).quantize(_PERCENT_PLACES)
