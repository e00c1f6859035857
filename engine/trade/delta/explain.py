"""Explains why an order is not filled, from its row, live state, last rounds and agents. Pure.

    ended                    the state is the reason, or gaveWay
    waits for its owner      awaitingSignature, suspended, cancelling
                             balanceLacks, allowanceLacks, depositLacks, vaultLacks, boundLacks
    under way                settling, bridging, refunding
    with a bridge            transferUnderWay, transferLate, swapDue, swapLate, refundDue, refundLate
    open                     resting, sliceNotDue, bridgeFee, ownerRests, noAgents, agentsRest, agentsLate,
                             handlerRests, bridgeOnlyRests, settlementsFailed, notAuctioned
    in its last round        noBids, gasNotCarried, belowLimit, reverted, simulationMismatch, malformed, late

Bids of an open round are unknown here. Reasons concern the last closed round alone; the earlier rounds are
listed without reasons.

Source: ARCHITECTURE.md, "Auction"; interop.md section 5.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from ....codecs.eip712_orders.delta import TwapBuyOrder, TwapOrder
from ....codecs.iso_time import iso_ms
from ....codecs.messages.agent_messages import Notice
from ....codecs.messages.auction_messages import (
    AuctionBid,
    AuctionedOrder,
    ExplainedReason,
    Explanation,
    OrderRound,
    ReasonAmount,
)
from ....codecs.messages.vocabulary import OrderStatus, Side
from ....codecs.trading_token import NATIVE_TOKEN
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...store.rows import DeltaOrderRow, amount_of
from ..orders.order_units import order_id
from .auction.gas_cover import NOT_CARRIED
from .bids.agent_rest import AgentReport
from .bridge_desk import TransferWait
from .bridging.origins import kind_of_transfer
from .orders.funds import Fund, MissingFund, told_of
from .orders.life import OPEN, has_given_way
from .orders.terms import slice_due
from .orders.transfers import TransferState
from .resting.resting_price import RestingFacts

if TYPE_CHECKING:
    from .orders.live_orders import LiveOrder

_S = OrderStatus
_STATES = {
    _S.AWAITING_SIGNATURE: ("awaitingSignature", "the owner, a contract, has yet to sign the order on chain"),
    _S.SUSPENDED: ("suspended", "the owner's funds are below what the next settlement takes"),
    _S.CANCELLING: ("cancelling", "the owner cancelled the order; a settlement under way may still win"),
    _S.BRIDGING: ("bridging", "the origin is settled, the destination not yet"),
    _S.REFUNDING: ("refunding", "the destination failed, and the order is being refunded"),
    _S.CANCELLED: ("cancelled", "the owner cancelled the order"),
    _S.EXPIRED: ("expired", "the rest of the order could not be filled before its deadline"),
    _S.FAILED: ("failed", "settlements of the order failed too often, or can never succeed"),
    _S.REFUNDED: ("refunded", "the destination failed, and the order was refunded"),
}
_GAVE_WAY = ("gaveWay", "without signature or funds, the order gave its place to another one")
_REFUSALS = {
    Notice.REVERTED: "{count} would revert in a settlement; {agent}: {detail}",
    Notice.SIMULATION_MISMATCH: "{count} promised more than the simulation gave; {agent}: {detail}",
    Notice.MALFORMED: "{count} had invalid bids; {agent}: {detail}",
    Notice.LATE: "{agents} answered too late or not at all; {agent}: {detail}",
}


_U, _A, _F = TransferState.UNDER_WAY, TransferState.ARRIVED, TransferState.FAILED
_WAITS = {
    (_U, False): ("transferUnderWay", "{amount} are going to chain {chain} by {bridge} since {since}"),
    (_U, True): ("transferLate", "{amount} are late to chain {chain} by {bridge}, sent at {since}"),
    (_A, False): ("swapDue", "{amount} came to chain {chain} at {since}, and are to be swapped or wrapped"),
    (_A, True): ("swapLate", "{amount} came to chain {chain} at {since}: their swap is late"),
    (_F, False): ("refundDue", "a refund of {amount} is due: {bridge} did not deliver by {since}"),
    (_F, True): ("refundLate", "a refund of {amount} is late: {bridge} did not deliver by {since}"),
}
"""(state, late) -> code and text of a bridge transfer that waits; the amount is the text's first number."""
_COUNTED = frozenset({Fund.BALANCE, Fund.ALLOWANCE, Fund.DEPOSIT})


class OrderFacts(Struct, frozen=True):
    """State of a Delta order and its chain, from which `explained` derives why the order is not filled.

    Attributes:
        live: the order in this process's memory; None if this process does not run the order.
        rounds: stored closed rounds, the latest first.
        last_round_ms: closing time of the last round with the order, Unix milliseconds; 0 if unknown. The
            last round may be missing in `rounds`: a round without a bid is not stored if the round before had
            none for the same reason.
        agents: reports of the chain's agents, by name.
        resting: present price and limit of a limit order that waits for its price; None for other orders.
        chain_s: chain time against which the due times of TWAP slices are compared, Unix seconds.
        lacks: the owner's funds that were missing at the last read.
        waits: bridge transfers of the order that are neither delivered nor refunded.
        is_own: whether the venue bids on the order itself, so that no agent is asked.
        own_rests_until_ms: end of the rest of such an order, Unix milliseconds; 0 without a rest.
        owner_rests_until_ms: end of the rest of the order's owner, Unix milliseconds; 0 without a rest.
        is_carried: whether the order's bridge, if any, carries the order at the fee that the owner signed.
    """

    row: DeltaOrderRow
    live: "LiveOrder | None"
    rounds: Sequence[OrderRound]
    last_round_ms: int
    agents: Mapping[str, AgentReport]
    now_ms: int
    resting: RestingFacts | None = None
    chain_s: int = 0
    lacks: Sequence[MissingFund] = ()
    waits: Sequence[TransferWait] = ()
    is_own: bool = False
    own_rests_until_ms: int = 0
    owner_rests_until_ms: int = 0
    is_carried: bool = True


class _BestBelow(Struct, frozen=True):
    """Best amount of the bids below an order's limit, raw units: promised, or given in the simulation."""

    amount: int
    is_simulated: bool


def explained(facts: OrderFacts) -> Explanation:
    """Explain why an order is not filled, as the answer of GET /v2/delta/orders/{orderId}/explain."""
    row = facts.row
    reasons = [ExplainedReason(code, text, _amounts(code, facts) or UNSET) for code, text in _reasons(facts)]
    return Explanation(
        str(order_id(row.order_hash)),
        to_hex(row.order_hash),
        row.status,
        (*reasons, *[_transfer(wait, facts.live) for wait in facts.waits]),
        tuple(facts.rounds),
    )


def _amounts(code: str, facts: OrderFacts) -> tuple[ReasonAmount, ...]:
    """Return the amounts that the text of a reason names, with their tokens, in the order of the text.

    Only `belowLimit`, `resting`, and a missing balance, allowance or deposit have amounts here.
    """
    live = facts.live
    if code == "belowLimit":
        order = facts.rounds[0].order
        sells = order.side is Side.SELL
        best = _best_below(order)
        amounts = [order.dest_amount if sells else order.src_amount, None if best is None else best.amount]
        pairs = [(amount, order.dest_token if sells else order.src_token) for amount in amounts]
    elif code == "resting" and facts.resting is not None and live is not None:
        resting = facts.resting
        ends = [to_checksum(live.order.src_token), to_checksum(live.order.dest_token)]
        fixed, other = ends if resting.side is Side.SELL else ends[::-1]
        pairs = [(resting.amount, fixed), (resting.limit, other), (resting.given, other)]
    elif live is not None:
        pairs = [
            (amount, to_checksum(NATIVE_TOKEN if lack.fund is Fund.DEPOSIT else live.terms.held_token))
            for lack in facts.lacks
            if code == f"{lack.fund.value}Lacks" and lack.fund in _COUNTED
            for amount in (lack.there, lack.needed)
        ]
    else:
        pairs = []
    return tuple([ReasonAmount(str(amount), token) for amount, token in pairs if amount is not None])


def _reasons(facts: OrderFacts) -> list[tuple[str, str]]:
    status = facts.row.status
    if has_given_way(facts.row):
        return [_GAVE_WAY]
    if status not in OPEN:
        return [*([_STATES[status]] if status in _STATES else []), *_funds(facts)]
    if facts.live is not None and facts.live.settling is not None:
        return [("settling", "a bid has won, and its settlement is under way")]
    reasons = [*_resting(facts), *_schedule(facts), *_bridge_fee(facts), *_owner(facts)]
    reasons += _own(facts) if facts.is_own else _agents(facts)
    if facts.row.failures:
        times = "1 settlement" if facts.row.failures == 1 else f"{facts.row.failures} settlements"
        reasons.append(("settlementsFailed", f"{times} of the order failed; the venue auctions it again"))
    closed_at = iso_ms(facts.last_round_ms) if facts.last_round_ms else ""
    if facts.rounds:
        reasons += _last_round(facts.rounds[0], max(closed_at, facts.rounds[0].closed_at))
    elif closed_at:
        reasons.append(_nobody_bid(closed_at))
    elif not reasons:
        reasons.append(("notAuctioned", "no round with the order is closed yet"))
    return reasons


def _bridge_fee(facts: OrderFacts) -> list[tuple[str, str]]:
    if facts.is_carried:
        return []
    return [("bridgeFee", "the bridge asks a higher fee now than the owner signed, or tells none")]


def _owner(facts: OrderFacts) -> list[tuple[str, str]]:
    until_ms = facts.owner_rests_until_ms
    if not until_ms:
        return []
    why = "settlements failed by the owner's code or acts, or owners with code that is new wait for a place"
    return [("ownerRests", f"{why}: the order waits until {iso_ms(until_ms)}")]


def _transfer(wait: TransferWait, live: "LiveOrder | None") -> ExplainedReason:
    """Explain what a bridge transfer waits for: the delivery, the swap on the destination, or the refund."""
    transfer = wait.transfer
    sent, end, kind = transfer.sent, transfer.end, kind_of_transfer(transfer.sent)
    code, text = _WAITS[transfer.state, wait.is_late]
    reason_amount: ReasonAmount | None
    if transfer.state is TransferState.FAILED:
        amount = transfer.owed
        reason_amount = (
            None if live is None else ReasonAmount(str(amount), to_checksum(live.order.dest_token))
        )
    else:
        amount = amount_of(sent.output if end is None else end.amount)
        reason_amount = ReasonAmount(str(amount), to_checksum(sent.output_token), sent.destination_chain_id)
    text = text.format(
        bridge="a bridge" if kind is None else kind.value,
        chain=sent.destination_chain_id,
        amount=amount,
        since=iso_ms(sent.at_ms if end is None else end.at_ms),
    )
    return ExplainedReason(
        code,
        f"{text}; {wait.hint}" if wait.hint else text,
        UNSET if reason_amount is None else (reason_amount,),
    )


def _funds(facts: OrderFacts) -> list[tuple[str, str]]:
    live = facts.live
    if live is None or live.row.status not in (_S.SUSPENDED, _S.AWAITING_SIGNATURE):
        return []
    return told_of(facts.lacks, live.terms.held_token)


def _resting(facts: OrderFacts) -> list[tuple[str, str]]:
    resting = facts.resting
    if resting is None:
        return []
    if resting.side is Side.SELL:
        of, limit, word = f"sells {resting.amount}", f"at least {resting.limit}", "give"
    else:
        of, limit, word = f"buys {resting.amount}", f"at most {resting.limit}", "want"
    given = "do not fill it" if resting.given is None else f"{word} {resting.given} after gas and fee"
    return [("resting", f"the order waits for its price: it {of} for {limit}, and makers' books {given} now")]


def _schedule(facts: OrderFacts) -> list[tuple[str, str]]:
    live = facts.live
    if live is None or not live.last_fill_s or not isinstance(live.order, TwapOrder | TwapBuyOrder):
        return []
    due_s = slice_due(live.order, live.last_fill_s)
    if due_s <= facts.chain_s:
        return []
    done = f"{live.filled} of {live.order.num_slices} slices are settled"
    return [("sliceNotDue", f"{done}, the next slice is due at {iso_ms(due_s * 1_000)}")]


def _own(facts: OrderFacts) -> list[tuple[str, str]]:
    if not facts.own_rests_until_ms:
        return []
    until = iso_ms(facts.own_rests_until_ms)
    if facts.row.kind is facts.row.kind.EXTERNAL_ORDER:
        return [("handlerRests", f"the order's handler failed in a settlement and rests until {until}")]
    return [("bridgeOnlyRests", f"a settlement of the owner's into a bridge failed: a rest until {until}")]


def _agents(facts: OrderFacts) -> list[tuple[str, str]]:
    admitted = {
        name: report
        for name, report in facts.agents.items()
        if facts.live is None or facts.live.document.admits(name)
    }
    if not admitted:
        excluded = " that the order admits" if facts.agents else ""
        return [("noAgents", f"the chain has no agent{excluded}")]
    until_ms = [report.rests_until_ms for report in admitted.values()]
    if all(until_ms):
        late = sorted(name for name, report in admitted.items() if report.is_slow)
        if late:
            return [("agentsLate", _are_late(late))]
        return [("agentsRest", f"all agents rest, the first until {iso_ms(min(until_ms))}")]
    return []


def _are_late(agents: Sequence[str]) -> str:
    names = ", ".join(agents)
    return f"{names} answered late or not at all, and is asked about one order at a time until it answers"


def _nobody_bid(closed_at: str) -> tuple[str, str]:
    return ("noBids", f"in the last round, closed at {closed_at}, no agent bid for the order")


def _last_round(kept: OrderRound, closed_at: str) -> list[tuple[str, str]]:
    """Derive (code, text) reasons why an order's last closed auction round found no settlement.

    Args:
        kept: stored record of the last round; if the last round is not stored, as it had the same result as
            the round before, the record of the latest stored round.
        closed_at: closing time of the last round, as text.
    """
    order = kept.order
    if order.winner is not None:
        return []
    if not order.bids:
        return [_nobody_bid(closed_at)]
    by_notice: dict[Notice, list[AuctionBid]] = {}
    for bid in order.bids:
        by_notice.setdefault(bid.notice, []).append(bid)
    reasons = []
    if any(bid.detail == NOT_CARRIED for bid in by_notice.get(Notice.LOST, ())):
        reasons.append(("gasNotCarried", f"the best bid is not settled at the venue's cost: {NOT_CARRIED}"))
    if Notice.BELOW_LIMIT in by_notice:
        reasons.append(("belowLimit", _below_limit(order)))
    for notice, text in _REFUSALS.items():
        found = by_notice.get(notice, [])
        if found:
            count = "1 answer" if len(found) == 1 else f"{len(found)} answers"
            agents = ", ".join(sorted({bid.agent for bid in found}))
            reason = text.format(
                count=count, agents=agents, agent=found[0].agent, detail=found[0].detail or "no detail"
            )
            reasons.append((notice.value, reason))
    return reasons


def _below_limit(order: AuctionedOrder) -> str:
    limit = f"at least {order.dest_amount}" if order.side is Side.SELL else f"at most {order.src_amount}"
    text = f"no bid meets the limit, {limit}"
    best = _best_below(order)
    if best is None:
        why = next((f"; {bid.agent}: {bid.detail}" for bid in _below(order) if bid.detail), "")
        return text + why
    if not best.is_simulated:
        return f"{text}; the best promised {best.amount}"
    return f"{text}; the best {'gave' if order.side is Side.SELL else 'took'} {best.amount} in the simulation"


def _below(order: AuctionedOrder) -> list[AuctionBid]:
    """List the bids below the limit that settle all that is auctioned."""
    return [bid for bid in order.bids if bid.notice is Notice.BELOW_LIMIT and bid.part_amount is None]


def _best_below(order: AuctionedOrder) -> _BestBelow | None:
    """Find the best amount of the bids below the limit that settle all that is auctioned.

    A bid that promised enough fell short in the simulation: its promise does not count. None if no bid's
    shortfall is known.
    """
    is_sale = order.side is Side.SELL
    limit = int(order.dest_amount if is_sale else order.src_amount)
    known = []
    for bid in _below(order):
        if bid.simulated_amount is not None:
            known.append(_BestBelow(int(bid.simulated_amount), is_simulated=True))
        elif bid.promised_amount is not None:
            known.append(_BestBelow(int(bid.promised_amount), is_simulated=False))
    short = [one for one in known if (one.amount < limit if is_sale else one.amount > limit)]
    pick = max if is_sale else min
    return pick(short, key=lambda one: one.amount) if short else None
