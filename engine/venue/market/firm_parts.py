"""The parts of a swap that makers are asked for, and how far each has come. Pure.

    RoutePlan --> Part: one maker's share of one hop --> tries, the first is that maker's own
                                                        a try: asks that together give the whole part

A part is filled when all asks of one try brought quotes, and stuck when every try has an ask that failed.

Source: design, "Firm quotes".
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct, field

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.rounding import mul_div_down, mul_div_up
from ....codecs.vocabulary import Side
from ....config.limits import BPS_ONE
from ....feeds.firm_check import CheckedQuote, FirmAsked, FirmFailure
from ..pricing.plan import HopPlan, MakerShare, RoutePlan
from .firm_route import SignedFill
from .legs import Leg

OVER_ASK_COST_BPS = 1  # by which what is needed may get dearer because more is asked for


class Ask(Struct, eq=False):
    """One question to one maker.

    Attributes:
        share: what the plan expects of it.
        shown: what the maker's book said to the same question; None where it was not that deep.
        asked_at: on the clock of the tasks, seconds.
        quote: the answer, as long as nothing is found wrong with it.
        is_drifted: it is much worse than the book.
        failure: why it is of no use.
    """

    maker: str
    share: MakerShare
    asked: FirmAsked
    shown: int | None
    asked_at: float
    quote: CheckedQuote | None = None
    is_drifted: bool = False
    failure: FirmFailure | None = None

    def fail(self, failure: FirmFailure) -> None:
        """It is of no use, whatever it brought."""
        self.failure, self.quote = failure, None

    @property
    def is_pending(self) -> bool:
        """No answer yet."""
        return self.quote is None and self.failure is None

    @property
    def order(self) -> RfqOrder:
        """Of the quote. ValueError where there is none."""
        if self.quote is None:
            raise ValueError(f"{self.maker} has signed nothing")
        return self.quote.order

    def rate(self) -> Fraction:
        """Of the quote: what comes out for a unit that goes in."""
        return Fraction(self.order.maker_amount, self.order.taker_amount)

    def loss(self) -> Fraction:
        """By which part the quote is worse than the plan; negative where it is better."""
        return 1 - self.rate() * Fraction(self.share.src_amount, self.share.dest_amount)


class Part(Struct, eq=False):
    """One maker's share of a hop.

    Attributes:
        path, hop: where it stands.
        is_exact: what is asked for is to the unit what will be filled.
        tries: in the order in which they were begun.
        next_try_at: when a further one is begun although nothing has failed.
        is_exhausted: there is nobody else to ask.
        to_beat: a rate that the user's limit does not allow: a stand-in promises more.
    """

    path: int
    hop: int
    src_token: bytes
    dest_token: bytes
    share: MakerShare
    is_exact: bool
    tries: list[tuple[Ask, ...]] = field(default_factory=list)
    next_try_at: float = math.inf
    is_exhausted: bool = False
    to_beat: Fraction | None = None

    def filled(self) -> tuple[Ask, ...]:
        """The first try that is complete; empty where none is."""
        for asks in self.tries:
            if all(ask.quote is not None for ask in asks):
                return asks
        return ()

    @property
    def is_stuck(self) -> bool:
        """No try can be completed any more."""
        return all(any(ask.failure is not None for ask in asks) for asks in self.tries)

    def is_due(self, now: float) -> bool:
        """Whether others are to be asked: nothing can come of the last try, or it takes too long."""
        if self.filled():
            return False
        if any(ask.failure is not None for ask in self.tries[-1]) or now >= self.next_try_at:
            return not self.is_exhausted or self.is_stuck
        return False

    def pending(self) -> set[str]:
        """Makers that have not answered."""
        return {ask.maker for asks in self.tries for ask in asks if ask.is_pending}


def parts_of(plan: RoutePlan) -> list[Part]:
    """One part for each share of a plan."""
    return [
        part
        for at, path in enumerate(plan.paths)
        for number, hop in enumerate(path.hops)
        for part in parts_of_hop(hop, at, number, is_exact=_is_exact(plan.side, number, len(path.hops)))
    ]


def parts_of_hop(hop: HopPlan, path: int, number: int, *, is_exact: bool) -> list[Part]:
    """One part for each share of a hop."""
    return [Part(path, number, hop.src_token, hop.dest_token, share, is_exact) for share in hop.shares]


def legs_of(parts: Sequence[Part], side: Side) -> list[list[Leg]]:
    """The signed legs of every path; each part is filled."""
    paths: dict[int, dict[int, list[Part]]] = {}
    for part in parts:
        paths.setdefault(part.path, {}).setdefault(part.hop, []).append(part)
    return [[_leg(hops[number], side) for number in sorted(hops)] for _, hops in sorted(paths.items())]


def indicative_within(plan: RoutePlan, limit: int) -> bool:
    """Whether the hops of a plan keep the user's limit, by the books."""
    if plan.side is Side.SELL:
        return sum(path.hops[-1].dest_amount for path in plan.paths) >= limit
    return sum(path.hops[0].src_amount for path in plan.paths) <= limit


def has_room(plan: RoutePlan, limit: int) -> bool:
    """Whether a plan keeps the user's limit, by the books, if each hop that is asked for more than is needed
    gets dearer by OVER_ASK_COST_BPS, and each fill of the last one by a unit.
    """
    hops = max(len(path.hops) for path in plan.paths) - 1
    ends = [path.hops[-1 if plan.side is Side.SELL else 0] for path in plan.paths]
    units = sum(len(hop.shares) for hop in ends)
    cost_bps = hops * OVER_ASK_COST_BPS
    if plan.side is Side.SELL:
        given = sum(hop.dest_amount for hop in ends)
        return mul_div_down(given, BPS_ONE - cost_bps, BPS_ONE) - units >= limit
    taken = sum(hop.src_amount for hop in ends)
    return mul_div_up(taken, BPS_ONE + cost_bps, BPS_ONE) + units <= limit


def is_as_cheap(asked: FirmAsked, shown: int, wider: FirmAsked, shown_wider: int) -> bool:
    """Whether a part of a wider order is, but for OVER_ASK_COST_BPS, as good as an order of that part alone.

    Args:
        shown, shown_wider: what the maker's book says to each.
    """
    if asked.side is Side.SELL:
        lost = shown - mul_div_down(asked.amount, shown_wider, wider.amount)
    else:
        lost = mul_div_up(asked.amount, shown_wider, wider.amount) - shown
    return lost * BPS_ONE <= shown * OVER_ASK_COST_BPS


def _is_exact(side: Side, number: int, hops: int) -> bool:
    return number == 0 if side is Side.SELL else number == hops - 1


def _leg(parts: Sequence[Part], side: Side) -> Leg:
    shares = [part.share for part in parts]
    amount = sum(share.src_amount if side is Side.SELL else share.dest_amount for share in shares)
    fills = tuple(
        SignedFill(ask.maker, ask.quote.order, ask.quote.signature)
        for part in parts
        for ask in part.filled()
        if ask.quote is not None
    )
    return Leg(parts[0].src_token, parts[0].dest_token, amount, fills)
