"""One side of a market maker's price grid, as exact integers ready to be walked.

A level is (price, amount): the price of one base token in quote tokens, and a base quantity, both decimal
strings. A `Ladder` holds a side scaled to integers:

    price    in units of 10^-price_scale
    base     raw units of the base token; amounts finer than the token's decimals floor the level
    quote    price x base, in units of 10^-quote_scale raw units of the quote token

with prefix sums of base and of quote before each level, so that a fill is a bisect and one division. The
price scale is the largest of the side's, or larger where the quote token is finer than the base token, so
that every quantity is an integer.

Source: document 3, Price grid and "GET /prices semantics"; design of the book.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from ..codecs.amounts import POWERS_OF_TEN, parse_decimal, rescale_down
from ..config.errors import InvalidInput


class Ladder(msgspec.Struct, frozen=True):
    """One side, best level first.

    Attributes:
        prices: per level.
        base_before, quote_before: sums of base and quote over the levels before each one; one entry more
            than `prices`, the last being the whole depth.
        quote_scale: quote quantities are in 10^-quote_scale raw units.
    """

    prices: tuple[int, ...]
    base_before: tuple[int, ...]
    quote_before: tuple[int, ...]
    quote_scale: int


def build_ladder(
    levels: Sequence[tuple[str, str]],
    base_decimals: int,
    quote_decimals: int,
    *,
    rising: bool,
    field: str = "levels",
) -> Ladder:
    """Scale one side.

    Args:
        levels: (price, amount) decimal strings, best first.
        base_decimals, quote_decimals: of the two tokens, 0 to 36.
        rising: True for asks, whose prices worsen upwards; False for bids.
        field: named in errors, e.g. `prices.WETH/USDC.bids`.

    Raises:
        InvalidInput: a string is no decimal, a price is zero, or a level is better than the one before.
    """
    parsed = [parse_decimal(price, f"{field}[{at}][0]") for at, (price, _) in enumerate(levels)]
    price_scale = max([quote_decimals - base_decimals, 0, *(scale for _, scale in parsed)])
    prices = tuple(rescale_down(mantissa, scale, price_scale) for mantissa, scale in parsed)
    for at, price in enumerate(prices):
        if price == 0:
            raise InvalidInput(field=f"{field}[{at}][0]", expected="a price above zero", got=levels[at][0])
    for at, (better, worse) in enumerate(pairwise(prices), 1):
        if (worse < better) is rising and worse != better:
            raise InvalidInput(field=f"{field}[{at}][0]", expected="best price first", got=levels[at][0])
    bases = [
        rescale_down(*parse_decimal(amount, f"{field}[{at}][1]"), base_decimals)
        for at, (_, amount) in enumerate(levels)
    ]
    return Ladder(
        prices,
        tuple(accumulate(bases, initial=0)),
        tuple(accumulate(map(int.__mul__, prices, bases), initial=0)),
        price_scale + base_decimals - quote_decimals,
    )


def quote_units(ladder: Ladder, quote_amount: int) -> int:
    """Raw units of the quote token in the ladder's own quote units, exactly."""
    return quote_amount * POWERS_OF_TEN[ladder.quote_scale]
