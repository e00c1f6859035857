"""What an amount costs or brings on a ladder: the exact, fill-weighted walk, as a bisect.

    user sells base   against bids   receives quote   rounded down
    user buys base    against asks   pays quote       rounded up
    user sells quote  against asks   receives base    rounded down
    user buys quote   against bids   pays base        rounded up

Amounts in the quote token bisect the quote sums: that is the document's inverted book (price 1 / p, amount
p x a), without a division before the last. Every function gives None beyond the depth; zero costs nothing.

Source: document 3, "GET /prices semantics" 2, 4 and 5.
"""

from bisect import bisect_left

from ..codecs.amounts import POWERS_OF_TEN
from ..codecs.rounding import div_down, div_up
from .book import Ladder, quote_units


def quote_received(bids: Ladder, base_amount: int) -> int | None:
    """Raw quote units that a user receives for selling `base_amount` raw base units."""
    quote = _quote_for_base(bids, base_amount)
    return None if quote is None else div_down(quote, POWERS_OF_TEN[bids.quote_scale])


def quote_paid(asks: Ladder, base_amount: int) -> int | None:
    """Raw quote units that a user pays for buying `base_amount` raw base units."""
    quote = _quote_for_base(asks, base_amount)
    return None if quote is None else div_up(quote, POWERS_OF_TEN[asks.quote_scale])


def base_received(asks: Ladder, quote_amount: int) -> int | None:
    """Raw base units that a user receives for selling `quote_amount` raw quote units."""
    found = _level_of_quote(asks, quote_amount)
    if found is None:
        return None
    level, rest = found
    return asks.base_before[level] + div_down(rest, asks.prices[level]) if rest else asks.base_before[level]


def base_paid(bids: Ladder, quote_amount: int) -> int | None:
    """Raw base units that a user pays for buying `quote_amount` raw quote units."""
    found = _level_of_quote(bids, quote_amount)
    if found is None:
        return None
    level, rest = found
    return bids.base_before[level] + div_up(rest, bids.prices[level]) if rest else bids.base_before[level]


def _quote_for_base(ladder: Ladder, base_amount: int) -> int | None:
    sums = ladder.base_before
    if base_amount > sums[-1]:
        return None
    level = bisect_left(sums, base_amount)
    if sums[level] == base_amount:
        return ladder.quote_before[level]
    level -= 1
    return ladder.quote_before[level] + (base_amount - sums[level]) * ladder.prices[level]


def _level_of_quote(ladder: Ladder, quote_amount: int) -> tuple[int, int] | None:
    """(level, quote units to take from it); the whole of what is before it is taken too."""
    wanted, sums = quote_units(ladder, quote_amount), ladder.quote_before
    if wanted > sums[-1]:
        return None
    level = bisect_left(sums, wanted)
    if sums[level] == wanted:
        return level, 0
    return level - 1, wanted - sums[level - 1]
