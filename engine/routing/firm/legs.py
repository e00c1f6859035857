"""What firm quotes come to when they are executed: the RFQ contract's arithmetic, hop after hop. Pure.

    a hop that sells    tryBatchFillOrderTakerAmount: each order takes what is left, up to its takerAmount,
                        and gives floor(takerFill * makerAmount / takerAmount); one that would give 0 is
                        passed over
    a hop that buys     tryBatchFillOrderMakerAmount: each order gives what is still missing, up to its
                        makerAmount, for ceil(makerFill * takerAmount / makerAmount)

A sale is followed from its source: what a hop gives is what the next one sells. Where that one cannot take
all of it, it sells what it can, and the rest goes to the caller. A purchase is followed from its destination:
what a hop pays is what the one before has to buy; where that one cannot, the route is short.

The best price stands first in a hop, so that what was asked for beyond the need is left on the worst.

Guarantees: to the unit what the chain does, as long as every order is filled by nobody else before and its
maker has the tokens. Not guaranteed: the same for amounts whose product is above 256 bits, which `firm_check`
refuses.

Source: engine/chain/contracts/Rfq.sol, RfqExecutor.sol and Router.sol; interop.md sections 1 and 4.
"""

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import mul_div_down, mul_div_up
from .firm_route import FilledHop, FirmRoute, SignedFill


class Exchanged(Struct, frozen=True):
    """Raw units that went into a hop and came out of it."""

    src: int
    dest: int


class FirmLeg(Struct, frozen=True):
    """A hop with its signed orders.

    Attributes:
        amount: the first leg of a sale: what is sold; the last of a purchase: what is bought; else not read.
    """

    src_token: bytes
    dest_token: bytes
    amount: int
    fills: tuple[SignedFill, ...]


class Short(Struct, frozen=True):
    """A leg cannot bring what the rest of its path needs.

    Attributes:
        path, hop: which leg.
        needed: raw units of its destination where the route buys; 0 where it sells: nothing can be sold.
    """

    path: int
    hop: int
    needed: int


def sold(orders: Sequence[RfqOrder], amount: int) -> Exchanged:
    """What a batch takes of `amount`, and what it gives for that."""
    left, given = amount, 0
    for order in orders:
        done = sold_to(order, min(order.taker_amount, left))
        left -= done.src
        given += done.dest
    return Exchanged(amount - left, given)


def bought(orders: Sequence[RfqOrder], amount: int) -> Exchanged:
    """What a batch takes to give `amount`, or as much of it as it can."""
    left, taken = amount, 0
    for order in orders:
        done = bought_of(order, min(order.maker_amount, left))
        left -= done.dest
        taken += done.src
    return Exchanged(taken, amount - left)


def sold_to(order: RfqOrder, amount: int) -> Exchanged:
    """What one order takes of an amount that is not above its own; nothing where it would give 0."""
    maker_fill = mul_div_down(amount, order.maker_amount, order.taker_amount)
    return Exchanged(amount, maker_fill) if maker_fill else Exchanged(0, 0)


def bought_of(order: RfqOrder, amount: int) -> Exchanged:
    """What one order takes to give an amount that is not above its own."""
    return Exchanged(mul_div_up(amount, order.taker_amount, order.maker_amount), amount)


def arranged(side: Side, paths: Sequence[Sequence[FirmLeg]], *, is_taxed: bool = False) -> FirmRoute | Short:
    """A route that can be executed as it stands, or the leg that keeps it from that.

    Args:
        is_taxed: of a sale, how much of the source arrives is not known to the unit.
    """
    found = _sale(paths, is_taxed=is_taxed) if side is Side.SELL else _purchase(paths)
    if isinstance(found, Short):
        return found
    total, hops = found
    expiry_s = min(fill.order.expiry for hop in hops for fill in hop.fills)
    return FirmRoute(side, total.src, total.dest, tuple(hops), expiry_s)


def over_asked(amount: int, bps: int) -> int:
    """`amount` and `bps` more."""
    return mul_div_down(amount, 10_000 + bps, 10_000)


def _sale(paths: Sequence[Sequence[FirmLeg]], *, is_taxed: bool) -> tuple[Exchanged, list[FilledHop]] | Short:
    hops: list[FilledHop] = []
    src = dest = 0
    with_rest: set[bytes] = set()  # tokens of which something stays behind: nobody may sell all that is there
    for at, path in enumerate(paths):
        amount = path[0].amount
        for number, leg in enumerate(path):
            fills = _best_first(leg.fills)
            done = sold([fill.order for fill in fills], amount)
            if not done.src:
                return Short(at, number, 0)
            if not number:
                src += done.src
            takes_all = done.src == amount and leg.src_token not in with_rest
            if not takes_all:
                with_rest.add(leg.src_token)
            says_how_much = not takes_all or (not number and (is_taxed or len(paths) > 1))
            taker_amount = done.src if says_how_much else 0
            hops.append(FilledHop(leg.src_token, leg.dest_token, taker_amount, 0, fills))
            amount = done.dest
        dest += amount
    return Exchanged(src, dest), hops


def _purchase(paths: Sequence[Sequence[FirmLeg]]) -> tuple[Exchanged, list[FilledHop]] | Short:
    hops: list[FilledHop] = []
    src = dest = 0
    for at, path in enumerate(paths):
        needed = path[-1].amount
        dest += needed
        backwards: list[FilledHop] = []
        for number in reversed(range(len(path))):
            leg = path[number]
            fills = _best_first(leg.fills)
            done = bought([fill.order for fill in fills], needed)
            if done.dest < needed:
                return Short(at, number, needed)
            backwards.append(FilledHop(leg.src_token, leg.dest_token, 0, needed, fills))
            needed = done.src
        src += needed
        hops += reversed(backwards)
    return Exchanged(src, dest), hops


def _best_first(fills: Sequence[SignedFill]) -> tuple[SignedFill, ...]:
    return tuple(
        sorted(
            fills, key=lambda fill: Fraction(fill.order.maker_amount, fill.order.taker_amount), reverse=True
        )
    )
