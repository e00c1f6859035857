"""Finds sales of a round that can be settled with each other (coincidence of wants). Pure.

Two sales are opposite if each sells the token that the other buys. Both are settled in full:

    whole for whole    each is paid all that the other sells
    with a remainder   the long sale pays the short one `to_short` of its source, and gets all that the short
                       one sells; makers buy the remainder (`rest`) of the long sale's source

`to_short` lies in the middle between the least that serves the short sale and the most that still serves the
long one, so that both gain the same part of the crossing's savings.

Guarantees: each order is in one crossing at most; the same orders in any order give the same crossings.
Not guaranteed: the largest possible number of crossings.

Crossings are chosen in turn, that with the smallest remainder first, as a part of its long order; a
whole-for-whole crossing has none. Purchases and slices of TWAPs are not crossed.

Source: contracts/Delta.sol, `settleCrossed`.
Choice: Crossed orders never get less than the makers' books give each order alone.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from ...codecs.messages.vocabulary import Side
from ...codecs.rounding import div_down, mul_div_up
from .orders import CROSSABLE, OpenOrder

_REST_PARTS = 1_000_000  # precision in the comparison of rests

Alone = Callable[[OpenOrder], int]
"""Function order -> raw units that makers' books alone give for it, before fees; 0 if they do not fill it."""


class Crossing(Struct, frozen=True):
    """Two opposite sales that are settled with each other.

    Attributes:
        to_short: raw units of the long sale's source that the short sale is paid.
        rest: raw units of the long sale's source that are sold to makers; 0 if both orders match entirely.
    """

    long: OpenOrder
    short: OpenOrder
    to_short: int
    rest: int

    def paid_to_long(self, received: int = 0) -> int:
        """Compute the long sale's payment before its fee, in raw units of its destination.

        `received` is the proceeds of the remainder that makers buy.
        """
        return self.short.src_amount + received


def crossings(orders: Sequence[OpenOrder], alone: Alone) -> tuple[Crossing, ...]:
    """Choose the crossings of a round, smallest remainder for makers first."""
    found = sorted(
        [crossing for one, other in _opposites(orders) if (crossing := _crossing(one, other, alone))],
        key=_rank,
    )
    taken: set[str] = set()
    chosen = []
    for crossing in found:
        both = {crossing.long.order_hash, crossing.short.order_hash}
        if not both & taken:
            taken |= both
            chosen.append(crossing)
    return tuple(chosen)


def _opposites(orders: Iterable[OpenOrder]) -> Iterable[tuple[OpenOrder, OpenOrder]]:
    """Yield each pair of opposite sales once."""
    sales: dict[tuple[bytes, bytes], dict[str, OpenOrder]] = {}
    for order in orders:
        if order.side is Side.SELL and order.order_type in CROSSABLE and order.src_amount:
            sales.setdefault((order.src_token, order.dest_token), {})[order.order_hash] = order
    for (src, dest), ours in sales.items():
        if src < dest:
            for one in ours.values():
                for other in sales.get((dest, src), {}).values():
                    yield one, other


def _crossing(one: OpenOrder, other: OpenOrder, alone: Alone) -> Crossing | None:
    """The crossing of two opposite sales, whole or with a remainder, or None if their prices do not meet."""
    least_of_one, least_of_other = max(one.limit, alone(one)), max(other.limit, alone(other))
    if other.src_amount >= least_of_one and one.src_amount >= least_of_other:
        return Crossing(one, other, one.src_amount, 0)
    return _with_rest(one, other, (least_of_one, least_of_other), alone(one)) or _with_rest(
        other, one, (least_of_other, least_of_one), alone(other)
    )


def _with_rest(long: OpenOrder, short: OpenOrder, least: tuple[int, int], alone: int) -> Crossing | None:
    """The crossing of two sales with the long sale's remainder sold to makers; None if it serves not both.

    Args:
        least: smallest acceptable payments in raw units: to the long sale, to the short sale.
        alone: raw units that makers would give for the whole long sale; 0 if they do not fill it.
    """
    if not alone:
        return None
    lacking = max(least[0] - short.src_amount, 0)
    most = min(long.src_amount - mul_div_up(lacking, long.src_amount, alone), long.src_amount - 1)
    fewest = max(least[1], 1)
    if fewest > most:
        return None
    to_short = div_down(fewest + most, 2)
    return Crossing(long, short, to_short, long.src_amount - to_short)


def _rank(crossing: Crossing) -> tuple[int, str, str]:
    part = mul_div_up(crossing.rest, _REST_PARTS, crossing.long.src_amount)
    return part, crossing.long.order_hash, crossing.short.order_hash
