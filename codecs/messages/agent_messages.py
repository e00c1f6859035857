"""What a venue and its agents say to one another: POST {agent}/solve and POST {agent}/notify.

    solve    the orders of one round -> bids, or 204 for none. Sealed: nobody is told of it before the round
             is closed, and of the others' only what is public afterwards.
    notify   what became of an agent's bids; the answer is not read

Both are signed as requests to makers are (spec 3.10). A bid names what the user gets of it at least
(`promisedAmount`) and the steps that are taken for that: fills by the executor, calls by the agent's own
caller. The settlement reverts below the promise; the venue simulates it, and ranks the promises of those that
do not.

An agent sees no signatures, permits or metadata of an order: the venue's relayer alone settles. A bid with
one part is for that order alone; a bid with several parts crosses their orders, all or none.

Source: ARCHITECTURE.md, "Auction"; contracts/Delta.sol, contracts/AgentCaller.sol, contracts/RfqExecutor.sol.
Choice: An agent sees the signed amounts and the smallest part of a partially fillable order, so that it
    computes a part's limit to the unit. A crossing settles every order whole.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Raw, Struct

from ...config.limits import (
    AGENT_ANSWER_BYTES_MAX,
    AGENT_BIDS_MAX,
    AGENT_ORDERS_MAX,
    AGENT_PARTS_MAX,
    AGENT_REQUEST_BYTES_MAX,
    AGENT_STEPS_MAX,
)
from .vocabulary import ChainId, Count, OnChainOrderType, Side, UnixSeconds
from .wire import decoder


class WholeOrder(Struct, frozen=True, rename="camel"):
    """The amounts that were signed. Of a part, what is not fixed is pro rata: of a sale rounded up, of a
    purchase down.
    """

    src_amount: str
    dest_amount: str
    expected_amount: str


class AuctionOrder(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is to be settled of one order: all that is left of it, or the next slice.

    Attributes:
        order_type: how the contract settles it.
        owner: firm quotes are asked for on behalf of this account.
        src_token, dest_token: as signed; the native placeholder stands for native tokens, which are traded in
            their wrapped form.
        src_amount: raw units: what is given (SELL), or the most that may be (BUY).
        dest_amount: raw units: the least that the user has to get (SELL), or what is wanted (BUY).
        expected_amount: of what is not fixed; surplus is counted from it; "0" for none.
        partner_and_fee: as signed (interop.md 2): fee and surplus rules, which `proceeds` applies.
        deadline: Unix seconds.
        part_min: raw units of the fixed side: a bid may settle as much, or more, that leaves nothing or as
            much; empty where it settles all.
        whole: of an order that may be filled in parts.
    """

    order_hash: str
    order_type: OnChainOrderType
    side: Side
    owner: str
    src_token: str
    dest_token: str
    src_amount: str
    dest_amount: str
    expected_amount: str
    partner_and_fee: str
    deadline: UnixSeconds
    part_min: str = ""
    whole: WholeOrder | None = None


class SolveRequest(Struct, frozen=True, rename="camel", omit_defaults=True):
    """POST {agent}/solve.

    Attributes:
        auction_id: rises with every round of the venue.
        closes_at_ms: Unix milliseconds of the venue: a bid that comes later is late.
        delta, executor, rfq, wrapped_native: the chain's contracts.
        gas_price_wei: what a unit of gas is expected to cost; bids are ranked net of gas.
        sent_at_ms: when it was sent, by the same clock as closes_at_ms, whatever the agent's clock says.
        caller: the contract that makes this agent's calls, and no other agent's.
    """

    auction_id: Count
    chain_id: ChainId
    closes_at_ms: Count
    delta: str
    executor: str
    rfq: str
    wrapped_native: str
    gas_price_wei: str
    orders: tuple[AuctionOrder, ...]
    sent_at_ms: Count | None = None
    caller: str = ""


class BidStep(Struct, frozen=True):
    """A step of a settlement (codecs.delta_calldata.SettlementStep); `gas` is of no meaning for RFQ fills."""

    target: str
    data: str
    gas: Count = 0


class BidPart(Struct, frozen=True, rename="camel"):
    """How one order is settled.

    Attributes:
        promised_amount: raw units: what the user gets (SELL) or spends (BUY), fee and surplus shares taken.
        given: raw units of the source that the receiver gets of a purchase; a sale gives all.
        paid: of a crossed order: raw units of its destination that it is paid, before its fee; else "0".
        leftovers: tokens of which the owner gets what the executor has, before and after the steps.
        amount: raw units of the fixed side that it settles; empty for all that was asked for.
        receiver: the address that gets what is given, before the steps; empty for the executor.
        traded: of a crossed order: raw units of its source, of what all have given, that the receiver gets.
    """

    order_hash: str
    promised_amount: str
    steps: Annotated[tuple[BidStep, ...], Meta(max_length=AGENT_STEPS_MAX)] = ()
    given: str = "0"
    paid: str = "0"
    leftovers: Annotated[tuple[str, ...], Meta(max_length=AGENT_STEPS_MAX)] = ()
    amount: str = ""
    receiver: str = ""
    traded: str = "0"


class SolverBid(Struct, frozen=True):
    """One bid: an order alone, or several that are crossed with each other."""

    parts: Annotated[tuple[BidPart, ...], Meta(min_length=1, max_length=AGENT_PARTS_MAX)]


class SolveResponse(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The answer to `solve`; of several bids on an order the best counts.

    Attributes:
        not_reached: hashes of the orders for which there was no time: they are asked for again soon, fewer at
            a time.
    """

    bids: Annotated[tuple[SolverBid, ...], Meta(max_length=AGENT_BIDS_MAX)]
    not_reached: Annotated[tuple[str, ...], Meta(max_length=AGENT_ORDERS_MAX)] = ()


class UnreadResponse(Struct, frozen=True, rename="camel"):
    """As `SolveResponse`, its bids as they came: each of them is read alone."""

    bids: Annotated[tuple[Raw, ...], Meta(max_length=AGENT_BIDS_MAX)]
    not_reached: Annotated[tuple[str, ...], Meta(max_length=AGENT_ORDERS_MAX)] = ()


class Notice(StrEnum):
    """What became of a bid, or of an agent."""

    WON = "won"
    LOST = "lost"
    SETTLING = "settling"
    SETTLED = "settled"
    SETTLED_BELOW = "settledBelow"
    REVERTED = "reverted"
    SIMULATION_MISMATCH = "simulationMismatch"
    BELOW_LIMIT = "belowLimit"
    LATE = "late"
    MALFORMED = "malformed"
    BANNED = "banned"


class NoticeEntry(Struct, frozen=True, rename="camel"):
    """One of them.

    Attributes:
        order_hash: of the order, or empty where the agent as such is meant.
        detail: why, in words; empty where there is nothing to add.
        simulated_amount: raw units that the user would get or spend, by the venue's simulation.
        best_amount: what the bid that won promised.
        settled_amount: raw units that the user got or spent when it was mined.
        part_amount: of a bid that settles a part of an order: raw units of the fixed side.
        best_part_amount: the same of the bid that won.
        tx_hash: of the settlement.
        until_ms: Unix milliseconds: a banned agent is not asked before.
    """

    notice: Notice
    order_hash: str = ""
    detail: str = ""
    simulated_amount: str | None = None
    best_amount: str | None = None
    tx_hash: str | None = None
    until_ms: Count | None = None
    part_amount: str | None = None
    best_part_amount: str | None = None
    settled_amount: str | None = None


class NotifyRequest(Struct, frozen=True, rename="camel"):
    """POST {agent}/notify."""

    auction_id: Count
    chain_id: ChainId
    notices: tuple[NoticeEntry, ...]


decode_solve_request = decoder(SolveRequest, bytes_max=AGENT_REQUEST_BYTES_MAX)
decode_solve_response = decoder(SolveResponse, bytes_max=AGENT_ANSWER_BYTES_MAX)
decode_unread_response = decoder(UnreadResponse, bytes_max=AGENT_ANSWER_BYTES_MAX)
decode_solver_bid = decoder(SolverBid, bytes_max=AGENT_ANSWER_BYTES_MAX)
decode_notify_request = decoder(NotifyRequest, bytes_max=AGENT_REQUEST_BYTES_MAX)
