"""A model in plain Python of Delta orders that wait: their states, from their terms and the chain's state.

    allowed = statuses(known, facts, now_s)     which statuses an order may have once nothing moves
    due = is_fillable(known, facts, market)     it must not lie there like that: somebody would fill it

The amounts are reckoned here anew, slice by slice, from the specification; nothing is asked of the engine.

Source: spec 1.11, 1.16.28 to 1.16.42; choices.md#delta-orders.
"""

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct, field

from cambist.codecs.eip712_orders.delta import KIND_BUY, DeltaOrder, TwapBuyOrder, TwapOrder
from cambist.crypto.secp256k1 import SigningKey
from support.chain.world import NATIVE, ONE

ModelledOrder = DeltaOrder | TwapOrder | TwapBuyOrder

INTERVAL_S = 60
"""Seconds between two slices of every TWAP."""
GRACE_S = 2
"""Seconds after which the venue has noticed a passed deadline."""
DUE_SLACK_S = 15
"""Seconds in which a due slice is auctioned, won, mined and read."""
PART_MIN = 10
"""Books that fill such a part of what is left fill an order that takes parts."""


class Known(Struct):
    """An order, as its owner knows it.

    Attributes:
        is_limit: of type LIMIT.
        is_partial: it may be filled in parts.
        cancelled: its cancellation was answered.
        maybe_cancelled: a cancellation was sent whose answer was lost.
        ended: the status that it was last seen to have ended with.
        filled_at_s: times of its settlements, those that were taken back too: a timer may still go by these.
    """

    number: int
    order: ModelledOrder
    order_hash: bytes
    order_id: str
    key: SigningKey
    is_limit: bool
    is_partial: bool
    cancelled: bool = False
    maybe_cancelled: bool = False
    ended: str = ""
    filled_at_s: set[int] = field(default_factory=set)

    @property
    def is_scheduled(self) -> bool:
        """Whether the order is a TWAP."""
        return not isinstance(self.order, DeltaOrder)

    @property
    def is_native(self) -> bool:
        """Whether the source amount is deposited native tokens."""
        return self.order.src_token == NATIVE

    def __str__(self) -> str:
        kind = type(self.order).__name__ + (" buys" if self.buys else " sells")
        return f"#{self.number} {kind}{' limit' if self.is_limit else ''}{' in parts' * self.is_partial}"

    @property
    def buys(self) -> bool:
        """Whether the destination amount is fixed."""
        order = self.order
        return isinstance(order, TwapBuyOrder) or (isinstance(order, DeltaOrder) and order.kind == KIND_BUY)

    @property
    def whole(self) -> int:
        """Value of `filled` at which the order is completed."""
        order = self.order
        if isinstance(order, DeltaOrder):
            return order.dest_amount if self.buys else order.src_amount
        return order.num_slices


class Facts(Struct, frozen=True):
    """State of an order on the chain, at one block.

    Attributes:
        filled: of the fixed side, or slices.
        last_fill_s: time of the last settlement; 0 before.
        is_given_up: its nonce is used, and not by a settlement of it.
        has: balance of its owner, or what is deposited for it.
        allowed: that the Delta contract may take.
    """

    filled: int
    last_fill_s: int
    is_given_up: bool
    has: int
    allowed: int


class MarketNow(Struct, frozen=True):
    """Offers of the agent and the makers.

    Attributes:
        agent: raw units of USDC that the agent trades one WETH for; None where it bids nothing.
        book: the same of the makers; depth: raw units of WETH that they take.
    """

    agent: int | None
    book: int | None
    depth: int


Pieces = Sequence[tuple[int, int]]
"""(source, destination) of each settlement that is left of an order, the next one first."""


def left_of(order: ModelledOrder, filled: int) -> Pieces:
    """The pieces that are left: one piece, or a piece for each slice."""
    match order:
        case DeltaOrder(kind=kind) if kind == KIND_BUY:
            left = order.dest_amount - filled
            return [(order.src_amount * left // order.dest_amount, left)] if left > 0 else []
        case DeltaOrder():
            left = order.src_amount - filled
            return [(left, -(-order.dest_amount * left // order.src_amount))] if left > 0 else []
        case TwapOrder():
            size = order.total_src_amount // order.num_slices
            last = order.total_src_amount - size * (order.num_slices - 1)
            each = [(size, order.dest_amount_per_slice)] * (order.num_slices - 1)
            return [*each, (last, -(-order.dest_amount_per_slice * last // size))][filled:]
        case TwapBuyOrder():
            size = order.total_dest_amount // order.num_slices
            last = order.total_dest_amount - size * (order.num_slices - 1)
            sizes = [*[size] * (order.num_slices - 1), last][filled:]
            return [(order.max_src_amount * one // order.total_dest_amount, one) for one in sizes]


def is_lacking(known: Known, facts: Facts) -> bool:
    """Whether the owner lacks the funds that the order needs."""
    pieces = left_of(known.order, facts.filled)
    if not pieces:
        return False
    if known.is_native:
        return facts.has < pieces[0][0]
    return facts.has < pieces[0][0] or facts.allowed < sum(src for src, _ in pieces)


def fits_until_s(known: Known, facts: Facts) -> int:
    """Latest time of the next settlement at which all later settlements still fit, Unix seconds."""
    order = known.order
    if isinstance(order, DeltaOrder):
        return order.deadline
    until_s = order.deadline - order.interval * max(order.num_slices - facts.filled - 1, 0)
    is_late = facts.last_fill_s and facts.last_fill_s + order.interval > until_s
    return 0 if is_late else min(until_s, order.deadline)


def statuses(known: Known, facts: Facts, now_s: int) -> set[str]:
    """States that the order may have once nothing moves."""
    if facts.filled == known.whole:
        return {"COMPLETED"}
    if known.ended == "EXPIRED":
        return {"EXPIRED"}
    if known.cancelled or (known.ended == "CANCELLED" and facts.is_given_up):
        return {"CANCELLED"}
    found: set[str] = set()
    if facts.is_given_up:
        found.add("CANCELLED")
    if known.maybe_cancelled:
        found.add("CANCELLED")
    until_s = fits_until_s(known, facts)
    if now_s > until_s:
        found.add("EXPIRED")
    if facts.is_given_up or now_s > until_s + GRACE_S + 2:
        return found
    if is_lacking(known, facts):
        return found | {"SUSPENDED"}
    return found | ({"ACTIVE"} if known.is_limit or known.is_scheduled else {"ACTIVE", "PENDING"})


def meets(known: Known, piece: tuple[int, int], price: int | None) -> bool:
    """Whether a trader at a price fills a piece within its limit."""
    if price is None:
        return False
    src, dest = piece
    return Fraction(src * price, ONE) >= dest


def is_crossed(known: Known, facts: Facts, market: MarketNow) -> bool:
    """Whether the makers' books fill an order, or enough of it."""
    pieces = left_of(known.order, facts.filled)
    if not pieces or market.book is None or not meets(known, pieces[0], market.book):
        return False
    src, dest = pieces[0]
    taken = dest * ONE // market.book if known.buys else src
    if known.is_partial:
        taken = -(-taken // PART_MIN)
    return taken <= market.depth


def due_s(known: Known, facts: Facts) -> int:
    """Earliest time of the order's next settlement, Unix seconds."""
    order = known.order
    return 0 if isinstance(order, DeltaOrder) or not facts.last_fill_s else facts.last_fill_s + order.interval


def is_asked_for(known: Known, facts: Facts, market: MarketNow, now_s: int) -> bool:
    """Whether agents are asked about an open order whose funds are there."""
    if known.is_scheduled:
        return now_s >= due_s(known, facts)
    return not known.is_limit or is_crossed(known, facts, market)


def is_fillable(known: Known, facts: Facts, market: MarketNow, now_s: int) -> bool:
    """Whether the agent or the makers would have filled an open order by now."""
    pieces = left_of(known.order, facts.filled)
    if not pieces or not meets(known, pieces[0], market.agent):
        return False
    slack_s = DUE_SLACK_S if known.is_scheduled and facts.last_fill_s else 0
    return is_asked_for(known, facts, market, now_s - slack_s)
