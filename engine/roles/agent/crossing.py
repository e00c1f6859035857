"""Finds sales of an auction round that can be settled with each other (coincidence of wants). Pure.

Two sales are opposite if each sells the token that the other buys. A crossing settles both sales in full:

    whole for whole    each sale is paid all that the other sale sells
    with a remainder   the long sale pays the short sale `to_short` of the long sale's source token, and
                       gets all that the short sale sells; makers buy the remainder (`rest`) of that token

`to_short` lies in the middle between the smallest amount that the short sale accepts and the largest amount
that leaves the long sale its minimum, so that both gain the same part of the crossing's savings.

Guarantees: each order is in one crossing at most; the sequence of the orders does not change the result.
Not guaranteed: the largest possible number of crossings.

The module chooses crossings by their remainder as a part of the long sale, smallest first; a whole-for-whole
crossing has no remainder. Purchases, slices of TWAPs and orders across chains are not crossed.

Source: contracts/Delta.sol, `settleCrossed`.
Choice: Crossed orders never get less than the makers' books give each order alone.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import div_down, mul_div_up
from .orders import CROSSABLE, OpenOrder

_REST_PARTS = 1_000_000  # precision in the comparison of rests

Alone = Callable[[OpenOrder], int]
"""Function from a sale to its proceeds at makers' books, raw units before fees; 0 if the books lack depth."""


class Crossing(Struct, frozen=True):
    """Two sales that are settled with each other, each selling the token that the other buys.

    Attributes:
        long: the sale that gives `to_short` source tokens to `short`, and sells the `rest` to makers; either
            sale if there is no rest.
        short: the sale that gives all its source tokens to `long`.
        to_short: raw units of `long`'s source token that `short` receives.
        rest: raw units of `long`'s source token that makers buy; 0 if `short` receives all.
    """

    long: OpenOrder
    short: OpenOrder
    to_short: int
    rest: int

    def paid_to_long(self, received: int = 0) -> int:
        """Compute the payment to the sale `long` before fees, in raw units of the token that `long` buys.

        Args:
            received: raw units of this token that makers pay for the `rest` source units of `long`.
        """
        return self.short.src_amount + received


def crossings(orders: Sequence[OpenOrder], alone: Alone) -> tuple[Crossing, ...]:
    """Choose pairs of opposite sales to settle with each other; each order is in at most one pair.

    Pairs that leave the smallest part of a sale for makers to buy are chosen first.

    Args:
        alone: function from a sale to its proceeds if makers alone fill it at their current books, raw units
            before fees; 0 if the books do not fill the whole sale.
    """
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
    """Yield each pair of sales in which each sells the token that the other buys, once per pair."""
    sales: dict[tuple[bytes, bytes], dict[str, OpenOrder]] = {}
    for order in orders:
        is_crossable = order.order_type in CROSSABLE and not order.is_crosschain
        if order.side is Side.SELL and is_crossable and order.src_amount:
            sales.setdefault((order.src_token, order.dest_token), {})[order.order_hash] = order
    for (src, dest), ours in sales.items():
        if src < dest:
            for one in ours.values():
                for other in sales.get((dest, src), {}).values():
                    yield one, other


def _crossing(one: OpenOrder, other: OpenOrder, alone: Alone) -> Crossing | None:
    """Match two opposite sales; None if no match pays both sales enough.

    A sale is paid enough if its proceeds reach its limit and what makers alone would pay at current books.
    """
    least_of_one, least_of_other = max(one.limit, alone(one)), max(other.limit, alone(other))
    if other.src_amount >= least_of_one and one.src_amount >= least_of_other:
        return Crossing(one, other, one.src_amount, 0)
    return _with_rest(one, other, (least_of_one, least_of_other), alone(one)) or _with_rest(
        other, one, (least_of_other, least_of_one), alone(other)
    )


def _with_rest(long: OpenOrder, short: OpenOrder, least: tuple[int, int], alone: int) -> Crossing | None:
    """Match two opposite sales so that makers buy the source tokens of `long` that `short` does not take.

    The result is None if a sale would get less than `least`, or `alone` is 0.

    Args:
        long: the sale that sells a part of its source tokens to makers.
        short: the sale that gives all its source tokens to `long`.
        least: smallest acceptable payments, raw units before fees: (to `long`, to `short`).
        alone: raw units that makers would pay for the whole sale `long`; 0 if their books do not fill all.
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
