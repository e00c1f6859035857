"""Computes the amounts of signed orders in execution by the RFQ contract's arithmetic, hop after hop. Pure.

    a hop that sells    tryBatchFillOrderTakerAmount: each order takes the amount left, up to its takerAmount,
                        and gives floor(takerFill * makerAmount / takerAmount); an order that would give 0 is
                        passed over
    a hop that buys     tryBatchFillOrderMakerAmount: each order gives the amount still missing, up to its
                        makerAmount, for ceil(makerFill * takerAmount / makerAmount)

A sale is followed from its source: each hop sells the output of the hop before. If a hop cannot take all of
it, the hop sells as much as it can, and the rest goes to the caller. A purchase is followed from its
destination: each hop buys the input of the hop after. If a hop cannot buy so much, the result is `Short`.

Fills of a hop are sorted by price, best first, so that the part of the orders that is not needed is at the
worst price.

Guarantees: amounts equal the chain's to the unit if no order is filled by others before and every maker has
the tokens. Not guaranteed: the same for amounts whose product is above 256 bits, which `firm_check` refuses.

Source: engine/chain/contracts/Rfq.sol, RfqExecutor.sol and Router.sol; interop.md sections 1 and 4.
"""

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from .....codecs.eip712_orders.rfq import RfqOrder
from .....codecs.messages.vocabulary import Side
from .....codecs.rounding import mul_div_down, mul_div_up
from .firm_route import FilledHop, FirmRoute, SignedFill


class Exchanged(Struct, frozen=True):
    """Raw units of the source token that go into an exchange, and of the destination token that come out."""

    src: int
    dest: int


class FirmLeg(Struct, frozen=True):
    """A hop of a path, from one token to another, with the makers' signed orders that fill it.

    Attributes:
        amount: raw units sold by the first leg of a sale, or bought by the last leg of a purchase; not used
            in other legs.
    """

    src_token: bytes
    dest_token: bytes
    amount: int
    fills: tuple[SignedFill, ...]


class Short(Struct, frozen=True):
    """A hop of a swap whose signed orders cannot fill the amount that the path needs.

    Attributes:
        path, hop: index of the path in the swap, and of the hop in the path.
        needed: in a purchase, raw units of the hop's destination token that the hop must buy; 0 in a sale,
            where the hop's orders can take nothing of the amount to sell.
    """

    path: int
    hop: int
    needed: int


def sold(orders: Sequence[RfqOrder], amount: int) -> Exchanged:
    """Compute the amounts in and out when up to `amount` is sold to several orders in turn.

    Args:
        amount: raw units of the orders' taker token; the orders may take less.
    """
    left, given = amount, 0
    for order in orders:
        done = sold_to(order, min(order.taker_amount, left))
        left -= done.src
        given += done.dest
    return Exchanged(amount - left, given)


def bought(orders: Sequence[RfqOrder], amount: int) -> Exchanged:
    """Compute the amounts in and out when up to `amount` is bought from several orders in turn.

    Args:
        amount: raw units of the orders' maker token; the orders may hold less.
    """
    left, taken = amount, 0
    for order in orders:
        done = bought_of(order, min(order.maker_amount, left))
        left -= done.dest
        taken += done.src
    return Exchanged(taken, amount - left)


def sold_to(order: RfqOrder, amount: int) -> Exchanged:
    """Compute the amounts in and out when an amount is sold to an order; zeros if the order would give 0.

    Args:
        amount: raw units of the taker token, at most the order's takerAmount.
    """
    maker_fill = mul_div_down(amount, order.maker_amount, order.taker_amount)
    return Exchanged(amount, maker_fill) if maker_fill else Exchanged(0, 0)


def bought_of(order: RfqOrder, amount: int) -> Exchanged:
    """Compute the amounts in and out when an amount is bought from an order.

    Args:
        amount: raw units of the maker token, at most the order's makerAmount.
    """
    return Exchanged(mul_div_up(amount, order.taker_amount, order.maker_amount), amount)


def arranged(side: Side, paths: Sequence[Sequence[FirmLeg]], *, is_taxed: bool = False) -> FirmRoute | Short:
    """Combine legs (hops with signed orders) into a route, or return the first leg that cannot be filled.

    Args:
        is_taxed: whether the source token takes a fee on transfers, so that the amount that arrives is not
            known to the unit.
    """
    found = _sale(paths, is_taxed=is_taxed) if side is Side.SELL else _purchase(paths)
    if isinstance(found, Short):
        return found
    total, hops = found
    expiry_s = min(fill.order.expiry for hop in hops for fill in hop.fills)
    return FirmRoute(side, total.src, total.dest, tuple(hops), expiry_s)


def over_asked(amount: int, bps: int) -> int:
    """Increase `amount` by `bps` basis points, rounded down to a whole raw unit."""
    return mul_div_down(amount, 10_000 + bps, 10_000)


def _sale(paths: Sequence[Sequence[FirmLeg]], *, is_taxed: bool) -> tuple[Exchanged, list[FilledHop]] | Short:
    hops: list[FilledHop] = []
    src = dest = 0
    with_rest: set[bytes] = set()  # tokens with an unsold rest: no later hop may sell the whole balance
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
