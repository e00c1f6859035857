"""The parts of a swap that makers are asked to sign, i.e. makers' shares of hops, and their state. Pure.

    RoutePlan --> Way --> Part: one maker's share of one hop --> tries, the first is that maker's own
                            a try: requests (`Ask`) that together give the whole part

A part is filled when all asks of one of its tries have quotes, and is lost when every try has a failed ask.
The number of tries under way at once grows with the part's waiting time:

    at first           one
    from beside_at     1 + BESIDE
    from everybody_at  as many as there are makers

Source: ARCHITECTURE.md, "Firm quotes".
"""

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct, field

from .....codecs.eip712_orders.rfq import RfqOrder
from .....codecs.messages.vocabulary import Side
from .....codecs.rounding import mul_div_down, mul_div_up
from .....config.limits import BPS_ONE
from .....feeds.books.pair_index import LiveBook
from .....feeds.firm.firm_check import CheckedQuote, FirmAsked, FirmFailure, book_amount
from ....host.admission.budgets import PPM
from ..search.plan import HopPlan, MakerShare, RoutePlan
from .firm_route import SignedFill
from .legs import FirmLeg
from .stock import StockClaim

PATIENCES = 3  # equal parts of `soft_s`; more makers are asked after the first part and the second
BESIDE = 2  # makers that are asked beside the first maker, before all makers are asked
OVER_ASK_COST_BPS = 1  # most by which a request for more than needed may worsen the rate


class Ask(Struct, eq=False):
    """A request for a firm quote to one maker, and its outcome.

    Attributes:
        share: amounts that the plan expects of the maker.
        asked: the request as sent.
        shown: raw units of the token whose amount the request does not fix, as computed from the maker's
            cached book; None if the book was not deep enough.
        asked_at: time of the request, trio seconds.
        lag_s: total stall of the venue's event loop from the swap's start to `asked_at`, seconds.
        base_amount: raw units of the pair's base token in the request; 0 if the maker had no live book.
        part_ppm: requested part of what the maker's book gives in this direction, parts per million.
        claim: share of the maker's stock that the request reserves; None until it is sent.
        quote: the maker's signed quote; None before the answer, and after a check of the quote has failed.
        is_drifted: whether the quote is worse than the maker's book by more than `drift_bps`.
        failure: reason why the request has no usable quote; None while a usable quote is possible.
    """

    maker: str
    share: MakerShare
    asked: FirmAsked
    shown: int | None
    asked_at: float
    lag_s: float
    base_amount: int = 0
    part_ppm: int = PPM
    claim: StockClaim | None = None
    quote: CheckedQuote | None = None
    is_drifted: bool = False
    failure: FirmFailure | None = None

    def fail(self, failure: FirmFailure) -> None:
        """Record why the request has no usable quote, and discard the quote, if any."""
        self.failure, self.quote = failure, None

    @property
    def is_pending(self) -> bool:
        """Whether the maker has not answered the request for a firm quote yet."""
        return self.quote is None and self.failure is None

    @property
    def order(self) -> RfqOrder:
        """Signed order of the quote that answers the request.

        Raises:
            ValueError: the request has no quote.
        """
        if self.quote is None:
            raise ValueError(f"{self.maker} has signed no quote")
        return self.quote.order

    def rate(self) -> Fraction:
        """Return the exchange rate of the maker's quote: destination units per source unit."""
        return Fraction(self.order.maker_amount, self.order.taker_amount)

    def loss(self) -> Fraction:
        """Fraction by which the quote's rate is worse than the maker's planned rate; negative if better."""
        return 1 - self.rate() * Fraction(self.share.src_amount, self.share.dest_amount)


class HeldQuote(Struct, frozen=True):
    """A quote, or an unanswered request for one, for which a maker may still reserve its funds.

    Attributes:
        expiry_s: time until which the maker may reserve the funds, Unix seconds; at most VENUE_UNFILLED_S_MAX
            after the quote's arrival.
        maker: the maker's account, 20 bytes; empty if the maker's answer did not arrive.
        digest32: EIP-712 hash of the quote's order; empty if the maker's answer did not arrive.
        amount: raw units that the maker gives; 0 if the maker's answer did not arrive.
        claim: share of the maker's stock that the quote reserves; None if its share was not counted.
    """

    expiry_s: int
    maker: bytes = b""
    digest32: bytes = b""
    amount: int = 0
    claim: StockClaim | None = None


class FirmPart(Struct, eq=False):
    """A maker's share of a hop, and the attempts (tries) to obtain signed quotes for it.

    Attributes:
        path, hop: index of the path in the plan, and of the hop in the path.
        is_exact: whether the hop's amount comes directly from the user's fixed amount, so that requests never
            ask for more.
        beside_at: trio seconds from which BESIDE more makers are asked although no request has failed.
        everybody_at: trio seconds from which all other makers are asked although no request has failed.
        tries: attempts to fill the part, each by one or more requests, in their order of beginning.
        to_beat: best rate of quotes that broke the user's limit; further makers must promise a better rate.
            None without such quotes.
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
        """Return the requests of the first try whose requests all have quotes; empty without such a try."""
        for asks in self.tries:
            if all(ask.quote is not None for ask in asks):
                return asks
        return ()

    @property
    def alive(self) -> int:
        """Number of the part's tries (attempts to obtain its quotes) without a failed request."""
        return sum(all(ask.failure is None for ask in asks) for asks in self.tries)

    def lacking(self, now: float) -> int:
        """Return the number of further tries with other makers to start at the time `now`, trio seconds.

        The number is 0 for a filled part. For any other part, the number is 1, or from `beside_at` on
        1 + BESIDE, less the tries that may still succeed; from `everybody_at` on it is `sys.maxsize`.
        """
        if self.filled():
            return 0
        if now >= self.everybody_at:
            return sys.maxsize
        return max(1 + BESIDE * (now >= self.beside_at) - self.alive, 0)

    def pending(self) -> set[str]:
        """Return the names of the makers that have not answered a request for this part."""
        return {ask.maker for asks in self.tries for ask in asks if ask.is_pending}

    def raise_bar(self, asks: Sequence[Ask]) -> None:
        """Require further makers for this part to offer a better rate than these quotes.

        Call this with quotes that break the user's limit.
        """
        given = sum(ask.order.maker_amount for ask in asks)
        rate = Fraction(given, sum(ask.order.taker_amount for ask in asks))
        self.to_beat = max(self.to_beat or rate, rate)

    def may_do(self, shares: Iterable[MakerShare]) -> bool:
        """Whether these makers' shares promise a better rate than each quote that broke the user's limit."""
        if self.to_beat is None:
            return True
        src, dest = sum(share.src_amount for share in shares), sum(share.dest_amount for share in shares)
        return dest > self.to_beat * src


class Way(Struct, eq=False):
    """A plan of a whole swap while makers are asked to sign its parts; a swap may have several plans at once.

    Attributes:
        without: slow makers that this plan does not ask.
        has_room: whether the plan keeps the user's limit even if requests for more than the planned amounts
            raise its cost.
        parts: makers' shares of the plan's hops, with the requests for their quotes.
    """

    without: frozenset[str]
    has_room: bool
    parts: list[FirmPart]

    @property
    def is_filled(self) -> bool:
        """Whether makers have signed quotes for every part of the plan."""
        return all(part.filled() for part in self.parts)


def parts_of(plan: RoutePlan, now: float, soft_at: float) -> list[FirmPart]:
    """Create a `FirmPart`, which keeps the requests for quotes, for each maker's share in a swap's plan.

    Args:
        now: trio seconds.
        soft_at: trio seconds until which other makers may be asked.
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
    """Create a `FirmPart`, which keeps the requests for quotes, for each maker's share in a hop.

    Args:
        path, number: index of the path in the plan, and of the hop in the path.
        now: trio seconds.
        soft_at: trio seconds until which other makers may be asked.
        is_exact: whether the hop's amount comes directly from the user's fixed amount.
    """
    patience_s = (soft_at - now) / PATIENCES
    looks = now + patience_s, now + 2 * patience_s
    return [
        FirmPart(path, number, hop.src_token, hop.dest_token, share, is_exact, *looks) for share in hop.shares
    ]


def able_alone(
    books: Mapping[str, LiveBook], request: FirmAsked, only: frozenset[str] | None, without: Container[str]
) -> list[MakerShare]:
    """List the makers whose books alone hold the whole requested amount, as shares, the best rate first.

    Args:
        books: each maker's book (`book_of_each`).
        only: names of the makers that may be asked; None for all.
        without: names of makers that may not be asked.
    """
    shares: list[MakerShare] = []
    for maker, live in books.items():
        shown = book_amount(live, request)
        if shown and maker not in without and (only is None or maker in only):
            amounts = (request.amount, shown) if request.side is Side.SELL else (shown, request.amount)
            shares.append(MakerShare(maker, *amounts))
    return sorted(shares, key=lambda share: Fraction(share.dest_amount, share.src_amount))[::-1]


def legs_of(parts: Sequence[FirmPart], side: Side) -> list[list[FirmLeg]]:
    """Build each path's legs (hops with the makers' signed orders) from the quotes of a swap's parts.

    Every part must have all its quotes.
    """
    paths: dict[int, dict[int, list[FirmPart]]] = {}
    for part in parts:
        paths.setdefault(part.path, {}).setdefault(part.hop, []).append(part)
    return [[_leg(hops[number], side) for number in sorted(hops)] for _, hops in sorted(paths.items())]


def indicative_within(plan: RoutePlan, limit: int) -> bool:
    """Whether a plan keeps the user's limit (least output or most cost) at the prices of makers' books."""
    if plan.side is Side.SELL:
        return sum(path.hops[-1].dest_amount for path in plan.paths) >= limit
    return sum(path.hops[0].src_amount for path in plan.paths) <= limit


def has_room(plan: RoutePlan, limit: int) -> bool:
    """Whether a plan keeps the user's limit even if requests for more than planned make it dearer.

    The estimate worsens the limited amount (output for SELL, cost for BUY) by OVER_ASK_COST_BPS for each hop
    of the longest path except one, and by a raw unit for each fill of the hops that give or take this amount.
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


def is_as_cheap(request: FirmAsked, shown: int, wider: FirmAsked, shown_wider: int) -> bool:
    """Whether a request for a larger amount has nearly the rate of the original request.

    The rate may be worse by OVER_ASK_COST_BPS.

    Args:
        request, wider: the original and the larger request.
        shown, shown_wider: raw units of the token whose amount `request`, or `wider`, does not fix, as
            computed from the maker's book.
    """
    if request.side is Side.SELL:
        lost = shown - mul_div_down(request.amount, shown_wider, wider.amount)
    else:
        lost = mul_div_up(request.amount, shown_wider, wider.amount) - shown
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
