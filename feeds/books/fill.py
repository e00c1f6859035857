"""Compute cost or proceeds of an amount on a side of a book: exact, over as many levels as needed.

    user sells base   against bids   receives quote   rounded down
    user buys base    against asks   pays quote       rounded up
    user sells quote  against asks   receives base    rounded down
    user buys quote   against bids   pays base        rounded up

A fill is a bisection of the ladder's prefix sums; an amount in the quote token bisects the quote sums, which
prices it on the inverted book (price 1 / p, amount p x a) with a single division. Every function returns None
for an amount beyond the book's depth; zero costs nothing.

Source: spec 3.8.4, 3.8.5, 3.8.8 to 3.8.13.
"""

from bisect import bisect_left

from ...codecs.amounts import POWERS_OF_TEN
from ...codecs.rounding import div_down, div_up
from .book import Ladder


def quote_received(bids: Ladder, base_amount: int) -> int | None:
    """Raw quote units that a user gets for `base_amount` raw base units; None if `bids` are too shallow."""
    sums = bids.base_before
    if not 0 < base_amount <= sums[-1]:
        return None if base_amount else 0
    level = bisect_left(sums, base_amount) - 1
    quote = bids.quote_before[level] + (base_amount - sums[level]) * bids.prices[level]
    return div_down(quote, POWERS_OF_TEN[bids.quote_scale])


def quote_paid(asks: Ladder, base_amount: int) -> int | None:
    """Raw quote units that a user pays for `base_amount` raw base units; None if `asks` are too shallow."""
    sums = asks.base_before
    if not 0 < base_amount <= sums[-1]:
        return None if base_amount else 0
    level = bisect_left(sums, base_amount) - 1
    quote = asks.quote_before[level] + (base_amount - sums[level]) * asks.prices[level]
    return div_up(quote, POWERS_OF_TEN[asks.quote_scale])


def base_received(asks: Ladder, quote_amount: int) -> int | None:
    """Raw base units that a user gets for `quote_amount` raw quote units; None if `asks` are too shallow."""
    wanted, sums = quote_amount * POWERS_OF_TEN[asks.quote_scale], asks.quote_before
    if not 0 < wanted <= sums[-1]:
        return None if wanted else 0
    level = bisect_left(sums, wanted) - 1
    return asks.base_before[level] + div_down(wanted - sums[level], asks.prices[level])


def base_paid(bids: Ladder, quote_amount: int) -> int | None:
    """Raw base units that a user pays for `quote_amount` raw quote units; None if `bids` are too shallow."""
    wanted, sums = quote_amount * POWERS_OF_TEN[bids.quote_scale], bids.quote_before
    if not 0 < wanted <= sums[-1]:
        return None if wanted else 0
    level = bisect_left(sums, wanted) - 1
    return bids.base_before[level] + div_up(wanted - sums[level], bids.prices[level])
