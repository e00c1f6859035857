"""What a venue tells of closed rounds of its auctions, and of why an order is not filled.

Source: ARCHITECTURE.md, "Auction"; interop.md section 5 ("why an order is not filled").
Choice: Bids are public once their round is closed: agent, amount and outcome.
"""

from msgspec import Struct

from .agent_messages import Notice
from .vocabulary import ChainId, Count, OrderStatus, Side
from .wire import decoder

_RECORD_BYTES_MAX = 1 << 20


class AuctionBid(Struct, frozen=True, rename="camel", kw_only=True):
    """A bid on one order, or what else came of asking an agent.

    Attributes:
        notice: what became of it in the round.
        promised_amount: raw units that the user was to get at least (SELL) or spend at most (BUY).
        simulated_amount: what that was in the venue's simulation.
        net_amount: the promised one less gas (SELL) or with it (BUY); below zero where gas costs more.
        surplus_amount: by which it was ranked: how much better that is than the limit, of a part pro rata.
        part_amount: of a bid for a part: raw units of the fixed side that it settles.
        gas: units that this order bears.
        arrival_ms: since the round opened.
        crossed_with: hashes of the orders that it settles together with this one.
    """

    agent: str
    notice: Notice
    promised_amount: str | None
    simulated_amount: str | None
    net_amount: str | None
    gas: Count | None
    arrival_ms: Count
    crossed_with: tuple[str, ...]
    detail: str
    surplus_amount: str | None = None
    part_amount: str | None = None


class AuctionSettlement(Struct, frozen=True, rename="camel", kw_only=True):
    """The outcome of a bid that won, or that was next.

    Attributes:
        state: settling, settled, reverted, or notSent.
        promised_amount: raw units that the user gets at least (SELL) or spends at most (BUY).
        simulated_amount: what that was in the venue's simulation.
        settled_amount: what it was when it was mined.
        detail: why it was reverted, or is given up.
    """

    agent: str
    state: str
    promised_amount: str
    simulated_amount: str
    settled_amount: str | None
    tx_hash: str | None
    detail: str


class AuctionedOrder(Struct, frozen=True, rename="camel", kw_only=True):
    """One order of a closed round.

    Attributes:
        src_amount: raw units that were to be given (SELL), or the most (BUY).
        dest_amount: the least that the user has to get (SELL), or what is wanted (BUY).
        winner: the agent whose bid is settled first.
        runners_up: agents whose bids are next if that fails.
        bids: the best first; those that were refused last.
        bids_left_out: how many more there were.
        part_min: of an order that may be filled in parts: raw units of the fixed side that a bid had to
            settle at least.
        settlements: of this round, in the order in which they were tried.
    """

    order_hash: str
    order_id: str
    side: Side
    src_token: str
    dest_token: str
    src_amount: str
    dest_amount: str
    winner: str | None
    runners_up: tuple[str, ...]
    bids: tuple[AuctionBid, ...]
    bids_left_out: Count
    part_min: str | None = None
    settlements: tuple[AuctionSettlement, ...] = ()


class Auction(Struct, frozen=True, rename="camel"):
    """GET /v2/delta/auctions/{auctionId}. Times are ISO 8601."""

    auction_id: Count
    chain_id: ChainId
    opened_at: str
    closed_at: str
    orders: tuple[AuctionedOrder, ...]


class AgentScore(Struct, frozen=True, rename="camel"):
    """How an agent does on a chain, since the venue's start.

    Attributes:
        caller: the contract that makes the agent's calls.
        answers: in time and in order.
        delivered: settlements that brought what they did in the simulation.
        faults: kind -> how many.
        strikes: that its next rest is reckoned from.
        rests_until: Unix milliseconds, while it is not asked.
        orders_max: that it is asked about at a time.
    """

    agent: str
    caller: str
    answers: Count
    delivered: Count
    faults: dict[str, Count]
    strikes: Count
    rests_until: Count | None
    orders_max: Count


AgentScores = tuple[AgentScore, ...]
"""GET /v2/delta/agents/scores/{chainId}."""


class OrderRound(Struct, frozen=True, rename="camel"):
    """A closed round as one order saw it."""

    auction_id: Count
    opened_at: str
    closed_at: str
    order: AuctionedOrder


class ExplainedReason(Struct, frozen=True):
    """Why an order is not filled: a word for programs, and a sentence."""

    code: str
    text: str


class Explanation(Struct, frozen=True, rename="camel"):
    """GET /v2/delta/orders/{orderId}/explain.

    Attributes:
        reasons: what weighs most first; none for an order that is filled.
        last_rounds: the latest first.
    """

    order_id: str
    order_hash: str
    status: OrderStatus
    reasons: tuple[ExplainedReason, ...]
    last_rounds: tuple[OrderRound, ...]


decode_auctioned_order = decoder(AuctionedOrder, bytes_max=_RECORD_BYTES_MAX)
