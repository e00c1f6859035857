"""Messages between a venue and its agents: POST {agent}/solve and POST {agent}/notify.

    solve    the orders of one round -> bids, or 204 for none. Sealed: an agent learns of other agents' bids
             only after the round is closed, and only the public part of them.
    notify   outcomes of an agent's bids; the answer is not read

Both are signed as requests to makers are (spec 3.10). A bid names the least that the user gets
(`promisedAmount`) and the steps of the settlement: fills by the executor, calls by the agent's own caller.
The settlement reverts below the promise; the venue simulates each settlement, and ranks the promises of bids
that do not revert.

An agent sees no signatures, permits or metadata of an order: the venue's relayer alone settles. A bid with
one part is for one order; a bid with several parts crosses their orders, all or none.

Source: ARCHITECTURE.md, "Auction"; contracts/Delta.sol, contracts/AgentCaller.sol, contracts/RfqExecutor.sol.
Choice: An agent sees the signed amounts and the smallest part of a partially fillable order, so that the
    agent computes a part's limit to the unit. A crossing settles all that is auctioned of each of its orders.
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
    """Signed amounts, in raw units, of an order that agents may settle in parts.

    The price limit of a part is the limit of the whole order in proportion to the part: the least proceeds of
    a sale are rounded up, the greatest cost of a purchase is rounded down.
    """

    src_amount: str
    dest_amount: str
    expected_amount: str


class AuctionOrder(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of one order that agents bid to settle: its whole open amount, or the next slice of a TWAP.

    Attributes:
        order_type: kind of order, by which the Delta contract settles.
        owner: account on whose behalf firm quotes are requested.
        src_token, dest_token: tokens as signed; the native placeholder stands for native tokens, which are
            traded in their wrapped form.
        src_amount: raw units: the amount to give (SELL), or the most that may be given (BUY).
        dest_amount: raw units: the least that the user has to get (SELL), or the wanted amount (BUY).
        expected_amount: estimate in raw units of the destination amount (SELL) or the source amount (BUY);
            surplus is the improvement over the estimate; "0" for no estimate.
        partner_and_fee: fee and surplus rules as signed (interop.md 2); `engine.chain.proceeds` computes the
            amounts.
        deadline: Unix seconds.
        part_min: least amount that a bid may settle, in raw units of the source (SELL) or destination token
            (BUY); a bid must also leave at least this amount open, or nothing. Empty for an order that is
            settled whole.
        whole: signed amounts of an order that may be filled in parts.
        destination_chain_id: chain to which a bridge carries the bought tokens; absent without a bridge. The
            destination amounts are the amounts that enter the bridge, in raw units of `dest_token`.
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
    destination_chain_id: Count = 0


class SolveRequest(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Body of POST {agent}/solve: the orders of one auction round, and the chain's contracts.

    Attributes:
        auction_id: id of the round; each round of the venue has a higher id than the one before.
        closes_at_ms: close of the round, Unix milliseconds by the venue's clock; a later bid does not count.
        delta, executor, rfq, wrapped_native: addresses of the chain's contracts.
        gas_price_wei: expected price in wei of a unit of gas; the venue ranks bids net of the gas cost.
        sent_at_ms: time at which the venue sent the request, by the same clock. The agent computes the time
            left as closes_at_ms - sent_at_ms, and so needs no clock that agrees with the venue's.
        caller: address of the agent's caller contract, which makes the calls of this agent and of no other.
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
    """A step of a settlement, as JSON: fills of firm quotes, or a call by the agent's caller contract.

    Attributes:
        target: called contract; for fills, the RFQ contract.
        data: calldata of the call, or encoded arguments of the fills, hexadecimal.
        gas: most units of gas that the call may use; unused for fills.
    """

    target: str
    data: str
    gas: Count = 0


class BidPart(Struct, frozen=True, rename="camel"):
    """Settlement of one order as a bid proposes it.

    Attributes:
        promised_amount: raw units that the user gets (SELL) or spends (BUY), net of fee and surplus shares.
        given: for a purchase, raw units of the source token that `receiver` gets before the steps; unused for
            a sale, which sends the whole amount to `receiver`.
        paid: for a crossed order, raw units of the destination token that the crossing pays to the order,
            before the fee; "0" for other orders.
        leftovers: tokens whose balance at the executor contract goes to the order's owner, once before the
            steps and once after the steps.
        amount: raw units to settle, of the source token (SELL) or the destination token (BUY); empty for the
            whole requested amount.
        receiver: address that gets the source tokens before the steps; empty for the executor contract.
        traded: for a crossed order, raw units of the order's source token that `receiver` gets from the
            pooled source tokens of all crossed orders.
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
    """An agent's offer to settle one order, or several orders that trade with each other (a crossing)."""

    parts: Annotated[tuple[BidPart, ...], Meta(min_length=1, max_length=AGENT_PARTS_MAX)]


class SolveResponse(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Answer to POST {agent}/solve; if an agent makes several bids on an order, the best of them counts.

    Attributes:
        not_reached: hashes of orders for which the agent had no time: the venue offers them again soon, with
            fewer orders per request.
    """

    bids: Annotated[tuple[SolverBid, ...], Meta(max_length=AGENT_BIDS_MAX)]
    not_reached: Annotated[tuple[str, ...], Meta(max_length=AGENT_ORDERS_MAX)] = ()


class UnreadResponse(Struct, frozen=True, rename="camel"):
    """`SolveResponse` with undecoded bids, so that each bid is decoded, and refused, separately."""

    bids: Annotated[tuple[Raw, ...], Meta(max_length=AGENT_BIDS_MAX)]
    not_reached: Annotated[tuple[str, ...], Meta(max_length=AGENT_ORDERS_MAX)] = ()


class Notice(StrEnum):
    """Kinds of notices to an agent: outcomes of its bids, and a ban of the agent itself."""

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
    """A notice to an agent with its details.

    Attributes:
        order_hash: hash of the order; empty for a notice about the agent itself.
        detail: text of the reason; empty if the notice needs none.
        simulated_amount: raw units that the user would get (SELL) or spend (BUY), by the venue's simulation.
        best_amount: promised amount of the winning bid, raw units.
        net_amount: the promised amount of the agent's bid minus (SELL) or plus (BUY) the cost of gas, raw
            units of the same token; below zero if gas costs more than a sale brings. The venue ranks bids by
            the distance of this amount to the order's limit.
        best_net_amount: the same amount of the winning bid.
        gas: units of gas of the agent's simulated settlement that are charged to this order.
        settled_amount: raw units that the user got (SELL) or spent (BUY) in the mined settlement.
        part_amount: for a bid on a part of an order, raw units of the source (SELL) or destination token
            (BUY) that the agent's bid settles.
        best_part_amount: the same amount of the winning bid.
        tx_hash: transaction hash of the settlement.
        until_ms: end of the agent's ban, Unix milliseconds.
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
    net_amount: str | None = None
    best_net_amount: str | None = None
    gas: Count | None = None


class NotifyRequest(Struct, frozen=True, rename="camel"):
    """Body of POST {agent}/notify: notices about the agent's bids."""

    auction_id: Count
    chain_id: ChainId
    notices: tuple[NoticeEntry, ...]


decode_solve_request = decoder(SolveRequest, bytes_max=AGENT_REQUEST_BYTES_MAX, tolerant=True)
decode_solve_response = decoder(SolveResponse, bytes_max=AGENT_ANSWER_BYTES_MAX, tolerant=True)
decode_unread_response = decoder(UnreadResponse, bytes_max=AGENT_ANSWER_BYTES_MAX, tolerant=True)
decode_solver_bid = decoder(SolverBid, bytes_max=AGENT_ANSWER_BYTES_MAX, tolerant=True)
decode_notify_request = decoder(NotifyRequest, bytes_max=AGENT_REQUEST_BYTES_MAX, tolerant=True)
