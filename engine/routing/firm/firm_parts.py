"""The parts of a swap that makers are asked for, and how far each has come. Pure.

    RoutePlan --> Way --> Part: one maker's share of one hop --> tries, the first is that maker's own
                                                                a try: asks that together give the whole part

A part is filled when all asks of one try brought quotes, and nothing can come of it when every try has an ask
that failed. How many tries it has that may still come to something depends on how long it has waited:

    at first           one
    from beside_at     1 + BESIDE
    from everybody_at  as many as there are makers

Source: ARCHITECTURE.md, "Firm quotes".
"""

import sys
from collections.abc import Container, Iterable, Sequence
from fractions import Fraction

from msgspec import Struct, field

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import mul_div_down, mul_div_up
from ....config.limits import BPS_ONE
from ....feeds.books.pair_index import LiveBook
from ....feeds.firm.firm_check import CheckedQuote, FirmAsked, FirmFailure, book_amount
from ..search.plan import HopPlan, MakerShare, RoutePlan
from .firm_route import SignedFill
from .legs import FirmLeg

PATIENCES = 3  # into which the time is divided in which others may be asked
BESIDE = 2  # makers that are asked beside the first, before all are
OVER_ASK_COST_BPS = 1  # by which what is needed may get dearer because more is asked for


class Ask(Struct, eq=False):
    """One question to one maker.

    Attributes:
        share: what the plan expects of it.
        shown: what the maker's book said to the same question; None where it was not that deep.
        base_amount: raw units of the pair's base token that it comes to by the book; 0 where there is none.
        asked_at: when its time began, on the clock of the tasks, seconds; the question goes out at once then.
        lag_s: by which that clock's wake-ups had come late until then, for this swap.
        quote: the answer, as long as nothing is found wrong with it.
        is_drifted: it is much worse than the book.
        failure: why it is of no use.
    """

    maker: str
    share: MakerShare
    asked: FirmAsked
    shown: int | None
    asked_at: float
    lag_s: float
    base_amount: int = 0
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


class HeldQuote(Struct, frozen=True):
    """A quote for which a maker holds back stock, as far as anybody knows.

    Attributes:
        maker: account, 20 bytes; digest32: of the order. Both empty where no answer was heard.
        amount: raw units that the maker gives.
        expiry_s: Unix seconds; of one that holds for longer, VENUE_UNFILLED_S_MAX from its signature.
    """

    expiry_s: int
    maker: bytes = b""
    digest32: bytes = b""
    amount: int = 0


class FirmPart(Struct, eq=False):
    """One maker's share of a hop.

    Attributes:
        path, hop: where it stands.
        is_exact: what is asked for is to the unit what will be filled.
        beside_at, everybody_at: when further tries are begun although nothing has failed.
        tries: in the order in which they were begun.
        to_beat: a rate that the user's limit does not allow: a stand-in promises more.
    """

    path: int
    hop: int
    src_token: bytes
    dest_token: bytes
    share: MakerShare
    is_exact: bool
    beside_at: float
    everybody_at: float
    tries: list[tuple[Ask, ...]] = field(default_factory=list)
    to_beat: Fraction | None = None

    def filled(self) -> tuple[Ask, ...]:
        """The first try that is complete; empty where none is."""
        for asks in self.tries:
            if all(ask.quote is not None for ask in asks):
                return asks
        return ()

    @property
    def alive(self) -> int:
        """Tries that can still be completed."""
        return sum(all(ask.failure is None for ask in asks) for asks in self.tries)

    def lacking(self, now: float) -> int:
        """How many tries are to be begun."""
        if self.filled():
            return 0
        if now >= self.everybody_at:
            return sys.maxsize
        return max(1 + BESIDE * (now >= self.beside_at) - self.alive, 0)

    def pending(self) -> set[str]:
        """Makers that have not answered."""
        return {ask.maker for asks in self.tries for ask in asks if ask.is_pending}

    def raise_bar(self, asks: Sequence[Ask]) -> None:
        """What these signed does not keep the user's limit."""
        given = sum(ask.order.maker_amount for ask in asks)
        rate = Fraction(given, sum(ask.order.taker_amount for ask in asks))
        self.to_beat = max(self.to_beat or rate, rate)

    def may_do(self, shares: Iterable[MakerShare]) -> bool:
        """Whether others promise more than what the user's limit did not allow."""
        if self.to_beat is None:
            return True
        src, dest = sum(share.src_amount for share in shares), sum(share.dest_amount for share in shares)
        return dest > self.to_beat * src


class Way(Struct, eq=False):
    """One plan of the whole swap, on its way to being signed.

    Attributes:
        without: makers that it does not ask, because others waited for them.
        has_room: for what asking for more than the need may cost.
    """

    without: frozenset[str]
    has_room: bool
    parts: list[FirmPart]

    @property
    def is_filled(self) -> bool:
        """Whether each part is."""
        return all(part.filled() for part in self.parts)


def parts_of(plan: RoutePlan, now: float, soft_at: float) -> list[FirmPart]:
    """One part for each share of a plan.

    Args:
        soft_at: until when others may be asked, on the clock of `now`.
    """
    return [
        part
        for at, path in enumerate(plan.paths)
        for number, hop in enumerate(path.hops)
        for part in parts_of_hop(
            hop, at, number, now, soft_at, is_exact=_is_exact(plan.side, number, len(path.hops))
        )
    ]


def parts_of_hop(
    hop: HopPlan, path: int, number: int, now: float, soft_at: float, *, is_exact: bool
) -> list[FirmPart]:
    """One part for each share of a hop."""
    patience_s = (soft_at - now) / PATIENCES
    looks = now + patience_s, now + 2 * patience_s
    return [
        FirmPart(path, number, hop.src_token, hop.dest_token, share, is_exact, *looks) for share in hop.shares
    ]


def able_alone(
    books: Iterable[LiveBook], asked: FirmAsked, only: frozenset[str] | None, without: Container[str]
) -> list[MakerShare]:
    """The makers that give all that is asked for alone, by their books; the best first.

    Args:
        only, without: names of makers; None for any.
    """
    shares: dict[str, MakerShare] = {}
    for live in books:
        shown = book_amount(live, asked)
        if shown and live.maker not in without and (only is None or live.maker in only):
            amounts = (asked.amount, shown) if asked.side is Side.SELL else (shown, asked.amount)
            shares.setdefault(live.maker, MakerShare(live.maker, *amounts))
    best_last = sorted(shares.values(), key=lambda share: Fraction(share.dest_amount, share.src_amount))
    return best_last[::-1]


def legs_of(parts: Sequence[FirmPart], side: Side) -> list[list[FirmLeg]]:
    """The signed legs of every path; each part is filled."""
    paths: dict[int, dict[int, list[FirmPart]]] = {}
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


def _leg(parts: Sequence[FirmPart], side: Side) -> FirmLeg:
    shares = [part.share for part in parts]
    amount = sum(share.src_amount if side is Side.SELL else share.dest_amount for share in shares)
    fills = tuple(
        SignedFill(ask.maker, ask.quote.order, ask.quote.signature)
        for part in parts
        for ask in part.filled()
        if ask.quote is not None
    )
    return FirmLeg(parts[0].src_token, parts[0].dest_token, amount, fills)
