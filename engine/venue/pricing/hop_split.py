"""Which makers share a hop when each fill costs gas. Pure.

Begin with the best split before gas. A maker's surplus is what its share is better by than the price at
which the last unit is bought: without that maker at least so much is lost. So whoever's surplus is above the
cost of a fill stays. The others are left out all at once if that pays, else the half of them with the smaller
shares, and so on; then again, until nothing pays or `TRIES_MAX` splits were compared.

Choice: this is not the best of all subsets, whose number doubles with each maker. It is never worse than the
    split that it begins with.
"""

from ....codecs.vocabulary import Side
from .ladders import MergedLadder, Share, Split

TRIES_MAX = 8  # splits that are compared


def thrifty_split(ladder: MergedLadder, amount: int, split: Split, fill_cost: int) -> list[Share]:
    """Leave out makers that are not worth their fill.

    Args:
        split: `ladder.best_split(amount)`.
        fill_cost: of one fill, raw units of the token that `amount` is not of.
    """
    sign = 1 if ladder.side is Side.SELL else -1
    left_out: frozenset[int] = frozenset()
    value = _value(split[0], sign, fill_cost)
    weak = _weak(split, sign, fill_cost)
    for _ in range(TRIES_MAX):
        if not weak:
            break
        without = left_out.union(weak)
        fewer = ladder.better_without(amount, without, fill_cost, value)
        if fewer is not None and (reached := _value(fewer[0], sign, fill_cost)) > value:
            split, value, left_out = fewer, reached, without
            weak = _weak(split, sign, fill_cost)
        else:
            weak = weak[: len(weak) // 2]
    return split[0]


def _weak(split: Split, sign: int, fill_cost: int) -> list[int]:
    """Makers whose surplus does not earn their fill, the smallest share first; never the largest share's."""
    shares, (others, fixeds) = split
    return [
        maker
        for maker, fixed, other in reversed(shares[1:])
        if sign * (other - fixed * others // fixeds) < fill_cost
    ]


def _value(shares: list[Share], sign: int, fill_cost: int) -> int:
    return sign * sum([share[2] for share in shares]) - fill_cost * len(shares)
