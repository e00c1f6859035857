"""Messages about closed auction rounds, and about the reasons why an order is not filled.

Source: ARCHITECTURE.md, "Auction"; interop.md section 5 ("why an order is not filled").
Choice: Bids are public once their round is closed: agent, amount and outcome.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ...config.limits import VENUE_AUCTIONS_MAX
from .agent_messages import Notice
from .query import query_decoder
from .vocabulary import ChainId, Count, OrderStatus, Side
from .wire import decoder

_RECORD_BYTES_MAX = 1 << 20


class AuctionBid(Struct, frozen=True, rename="camel", kw_only=True):
    """An agent's bid on one order, or the reason why the agent made no valid bid on the order.

    Attributes:
        notice: outcome of the bid in the round.
        promised_amount: raw units that the user gets at least (SELL) or spends at most (BUY).
        simulated_amount: raw units that the user gets (SELL) or spends (BUY) in the venue's simulation.
        net_amount: the promised amount minus (SELL) or plus (BUY) the cost of gas, in raw units of the same
            token; below zero if gas costs more than a sale brings.
        surplus_amount: improvement of net_amount over the order's price limit for the bid's amount; the venue
            ranks bids by surplus_amount.
        part_amount: for a bid on a part of the order, raw units of the source (SELL) or destination token
            (BUY) that the bid settles.
        gas: units of gas of the settlement that are charged to this order.
        arrival_ms: milliseconds from the opening of the round to the arrival of the bid.
        crossed_with: hashes of the orders that the bid settles together with this order.
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
    """Settlement of the winning bid or of a runner-up, and its outcome.

    Attributes:
        state: settling, settled, reverted, or notSent.
        promised_amount: raw units that the user gets at least (SELL) or spends at most (BUY).
        simulated_amount: raw units that the user gets (SELL) or spends (BUY) in the venue's simulation.
        settled_amount: raw units that the user got (SELL) or spent (BUY) in the mined settlement.
        detail: reason for a revert or for giving up.
    """

    agent: str
    state: str
    promised_amount: str
    simulated_amount: str
    settled_amount: str | None
    tx_hash: str | None
    detail: str


class AuctionedOrder(Struct, frozen=True, rename="camel", kw_only=True):
    """An order of a closed round, with its bids and settlements.

    Attributes:
        src_amount: raw units to give (SELL), or the most to give (BUY).
        dest_amount: least raw units that the user has to get (SELL), or the wanted amount (BUY).
        winner: name of the agent whose bid is settled first; None if no bid was valid.
        runners_up: names of agents whose bids are settled instead, in this order, if that settlement fails.
        bids: bids on the order, the best first, refused ones last.
        bids_left_out: number of bids beyond the listed ones.
        part_min: for an order that may be filled in parts, least amount that a bid had to settle, in raw
            units of the source (SELL) or destination token (BUY).
        settlements: settlements of the order after this round, in the sequence in which they were tried.
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
    """Answer of GET /v2/delta/auctions/{auctionId}: a closed round. Times are ISO 8601."""

    auction_id: Count
    chain_id: ChainId
    opened_at: str
    closed_at: str
    orders: tuple[AuctionedOrder, ...]


class ListedOrder(Struct, frozen=True, rename="camel", kw_only=True):
    """An order of a closed round in the list of rounds, as `AuctionedOrder`.

    Attributes:
        order_hash, order_id: null for callers who may not see whose order it is; then bids and settlements
            have no `detail`, `crossedWith` and `txHash` either.
        margin_amount: raw units by which the winning bid's surplus exceeds that of the next bid; null without
            a winner or a second bid that was ranked.
    """

    order_hash: str | None
    order_id: str | None
    side: Side
    src_token: str
    dest_token: str
    src_amount: str
    dest_amount: str
    winner: str | None
    runners_up: tuple[str, ...]
    bids: tuple[AuctionBid, ...]
    bids_left_out: Count
    part_min: str | None
    settlements: tuple[AuctionSettlement, ...]
    margin_amount: str | None


class ListedRound(Struct, frozen=True, rename="camel", kw_only=True):
    """A closed round, item of GET /v2/delta/auctions. Times are ISO 8601.

    Attributes:
        auction_id: null for callers who may not see the round's orders; its times are then cut to the second.
    """

    auction_id: Count | None
    chain_id: ChainId
    opened_at: str
    closed_at: str
    orders: tuple[ListedOrder, ...]


class AgentScore(Struct, frozen=True, rename="camel"):
    """Performance record of an agent on a chain, since the venue's start.

    Attributes:
        caller: address of the contract that makes the agent's calls.
        answers: number of timely and well-formed answers.
        delivered: number of settlements that delivered their simulated amounts.
        faults: kind of fault -> number of faults.
        strikes: number of faults that still count against the agent; each doubles the next cool-down.
        rests_until: end of the agent's cool-down, Unix milliseconds; None without a cool-down.
        orders_max: most orders that the venue puts into one request to the agent.
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
"""Answer of GET /v2/delta/agents/scores/{chainId}: the performance record of each agent."""


class OrderRound(Struct, frozen=True, rename="camel"):
    """Result of a closed auction round for an order."""

    auction_id: Count
    opened_at: str
    closed_at: str
    order: AuctionedOrder


class AuctionsQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/delta/auctions; `limit` bounds the number of orders in the rounds."""

    chain_id: ChainId
    limit: Annotated[int, Meta(ge=1, le=VENUE_AUCTIONS_MAX)] = VENUE_AUCTIONS_MAX


class ReasonAmount(Struct, frozen=True, rename="camel"):
    """An amount in the text of a reason, in raw units, and its token.

    Attributes:
        chain_id: chain of the token; absent for the order's own chain.
    """

    amount: str
    token: str
    chain_id: int | UnsetType = UNSET


class ExplainedReason(Struct, frozen=True):
    """A reason why an order is not filled: a code for programs, and a sentence for people.

    Attributes:
        amounts: the text's amounts of known tokens, in the order of the text, so that a client can show whole
            tokens; absent without such amounts.
    """

    code: str
    text: str
    amounts: tuple[ReasonAmount, ...] | UnsetType = UNSET


class Explanation(Struct, frozen=True, rename="camel"):
    """Answer of GET /v2/delta/orders/{orderId}/explain: the reasons why an order is not filled.

    Attributes:
        reasons: reasons, the most important first; empty for a filled order.
        last_rounds: the order's last auction rounds, the latest first.
    """

    order_id: str
    order_hash: str
    status: OrderStatus
    reasons: tuple[ExplainedReason, ...]
    last_rounds: tuple[OrderRound, ...]


decode_auctioned_order = decoder(AuctionedOrder, bytes_max=_RECORD_BYTES_MAX)
decode_auctions_query = query_decoder(AuctionsQuery)
