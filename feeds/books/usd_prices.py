"""Price token amounts in US dollars, by live books against configured stable coins. Pure.

A stable coin is worth one dollar. `mid_prices` computes the worth of any other token: the median mid price of
all makers' books against stable coins, or against one token between.

Source: ARCHITECTURE.md, "Routing"; spec 1.4.6, 1.8.10, 1.8.17 and 1.8.18.
Choice: Values in US dollars have ten decimals; further digits are cut off.
"""

from collections.abc import Mapping
from decimal import Context, Decimal
from fractions import Fraction
from math import ceil

from ...codecs.amounts import POWERS_OF_TEN
from ...codecs.rounding import mul_div_down
from .mid_prices import MidPrices
from .pair_index import PairIndex

USD_DECIMALS = 10
_EXACT = Context(prec=400)  # for values of 2^256 units at 72 digits a unit


class UsdPrices:
    """US dollar prices for the tokens of one chain.

    Args:
        decimals: token -> its decimals, at least for the stable coins.
        stables: tokens that are worth one dollar.
    """

    def __init__(self, index: PairIndex, decimals: Mapping[bytes, int], stables: frozenset[bytes]) -> None:
        anchors = {token: Fraction(1, POWERS_OF_TEN[decimals[token]]) for token in sorted(stables)}
        self._prices = MidPrices(index, anchors)

    def value(self, token: bytes, amount: int) -> Decimal | None:
        """Value of `amount` raw units of `token`, US dollars floored to ten decimals; None if unknown.

        A token's value is unknown if no live books price the token.
        """
        units = self.units(token, amount)
        return None if units is None else Decimal(units).scaleb(-USD_DECIMALS, _EXACT)

    def text(self, token: bytes, amount: int) -> str:
        """Value of `amount` raw units of `token` as text, like `format_usd` of `value`; "0" if unknown."""
        units = self.units(token, amount)
        if units is None:
            return "0"
        digits = str(units).zfill(USD_DECIMALS + 1)
        return f"{digits[:-USD_DECIMALS]}.{digits[-USD_DECIMALS:]}"

    def units(self, token: bytes, amount: int) -> int | None:
        """Value of `amount` raw units of `token` in 10^-USD_DECIMALS US dollars, floored; None if unknown."""
        worth = self._prices.worth(token)
        if worth is None:
            return None
        numerator, denominator = worth.as_integer_ratio()
        return mul_div_down(amount, numerator * POWERS_OF_TEN[USD_DECIMALS], denominator)

    def price(self, token: bytes) -> Fraction | None:
        """US dollars of one raw unit of `token`, exactly; None if unknown."""
        return self._prices.worth(token)

    def least_worth(self, token: bytes, usd: Decimal) -> int | None:
        """Smallest amount of `token`, raw units, that is worth at least `usd` US dollars; None if unknown.

        A token's value is unknown if no live books price the token.
        """
        worth = self._prices.worth(token)
        return ceil(Fraction(usd) / worth) if worth else None
