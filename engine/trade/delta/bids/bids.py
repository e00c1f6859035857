"""Encodes a round's orders for agents, and decodes their bids into candidates for simulation. Pure.

    LiveOrder -> RoundOrder: the signed order, and its next part -> AuctionOrder: the order as agents see it
    bytes of an answer -> its bids -> each by itself: a Candidate with calldata, or a Rejection with a reason

A bid on one order is settled by `settle`, `settleTwap`, `settleTwapBuy` or `settleProductive`, depending on
the order's signed type; a bid on several orders by `settleCrossed`. This module makes the checks that need
no chain: the bid is for orders of the round that the agent may bid for, keeps the signed limits, and fits
into a transaction. The simulation measures the bid's worth.

The limit of a bid for a part of an order is pro rata, computed to the unit as the contract does.

In an agent's bid, `given` of a sale, and `paid` and `traded` of a single order, have no effect: the contract
does not use them.

Agents bid on an order from a vault in source tokens. If the order sells shares, the settlement redeems the
amount that the agents were asked to sell, or fails. The owner gets back everything that the vault gives
beyond this amount and that no step spends.

Source: codecs/messages/agent_messages.py; ARCHITECTURE.md, "Auction"; contracts/Delta.sol.
Choice: A refused bid does not affect the agent's other bids; an unreadable answer costs the agent all of its
    bids.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import force_setattr, replace

from .....codecs.amounts import parse_amount
from .....codecs.contracts.delta_calldata import (
    EXECUTOR,
    NO_AGENT,
    CrossedOrder,
    Execution,
    SettlementStep,
    agent_id,
    settle,
    settle_crossed,
    settle_external,
    settle_productive,
    settle_twap,
    settle_twap_buy,
)
from .....codecs.eip712_orders.delta import (
    DeltaOrder,
    ExternalOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from .....codecs.messages.agent_messages import (
    AuctionOrder,
    BidPart,
    BidStep,
    Notice,
    SolverBid,
    WholeOrder,
    decode_solver_bid,
    decode_unread_response,
)
from .....codecs.messages.vocabulary import OnChainOrderType, Side
from .....config import limits
from .....config.errors import InvalidInput
from .....crypto.addresses import parse_address, to_checksum
from .....crypto.hexadecimal import parse_hex, to_hex
from ..orders.document import DeltaDocument
from ..orders.entering import is_crosschain
from ..orders.terms import DeltaPart, OrderTerms, SettledOrder, is_part, part_min, part_of, sells_shares
from ..orders.transfers import bridge_of

if TYPE_CHECKING:
    from ..orders.live_orders import LiveOrder

_HASH_BYTES = 32
_Found = TypeVar("_Found")


class RoundOrder(Struct, frozen=True):
    """An order in an auction round: its signed terms, and the amount that the round may settle.

    Attributes:
        part: amounts of the order's next settlement if a bid settles all that is auctioned.
    """

    order_hash: bytes
    order: SettledOrder
    document: DeltaDocument
    terms: OrderTerms
    part: DeltaPart

    @property
    def part_min(self) -> int:
        """Smallest amount of this order that a bid may settle; 0 if a bid must settle all that is auctioned.

        The amount is in raw units of the source token (SELL) or the destination token (BUY).
        """
        if not self.document.partially_fillable or not isinstance(self.order, DeltaOrder):
            return 0
        least = part_min(self.part.amount)
        return least if least < self.part.amount else 0

    def part_of(self, amount: int) -> DeltaPart:
        """Compute the amounts of the part of the order that a bid settles.

        Args:
            amount: raw units of the source token (SELL) or the destination token (BUY); less than the
                auctioned amount only if the order may be filled partially.
        """
        if amount == self.part.amount or not isinstance(self.order, DeltaOrder):
            return self.part
        return part_of(self.order, self.part.amount, amount)

    @property
    def limit(self) -> int:
        """Limit of the whole auctioned amount: least raw units to receive (SELL) or most to pay (BUY)."""
        return self.limit_of(self.part)

    def limit_of(self, part: DeltaPart) -> int:
        """Return the least raw units that the user receives for a part (SELL), or the most to spend (BUY)."""
        return part.dest_amount if self.terms.side is Side.SELL else part.src_amount

    def is_worse(self, amount: int, than: int) -> bool:
        """Whether `amount` is worse than `than` for the user: less to receive (SELL), more to spend (BUY)."""
        return amount < than if self.terms.side is Side.SELL else amount > than


class Answer(Struct, frozen=True):
    """Answer of an agent to a request for bids in an auction round, with its bids still encoded.

    Attributes:
        arrival: number of answers of the round that arrived before this answer.
        arrived_ms: time of arrival, milliseconds since the round opened.
        bids: encoded bids, in the answer's sequence.
        not_reached: hashes of the orders for which the agent had no time.
    """

    agent: str
    arrival: int
    arrived_ms: int
    bids: Sequence[Raw]
    not_reached: frozenset[bytes] = frozenset()


class CandidatePart(Struct, frozen=True):
    """A bid's terms for settling one order.

    A bid on several orders, which are settled against each other, is a crossing; its orders are crossed.

    Attributes:
        asked: the order in the auction round.
        part: amounts of the order that the bid settles: all that is auctioned, or less.
        promised: least raw units that the user receives (SELL), or most raw units that the user spends (BUY);
            the settlement reverts if the amounts miss the promise.
        given: for a purchase, raw units of the source token that `receiver` gets, or in a crossing, that the
            order adds to the pooled source tokens; for a sale of a vault's shares, the least raw units that
            the shares have to give; for a bridge-only order, what pays for gas; 0 for any other sale, which
            gives its whole source amount.
        steps: calls of the agent in the settlement, in their sequence.
        leftovers: tokens, 20 bytes each, whose balance at the executor goes to the order's owner.
        paid: for a crossed order, raw units of its destination token that the order receives, before its fee.
        receiver: address that gets the source tokens, 20 bytes; EXECUTOR for the executor contract.
        traded: for a crossed order, raw units of its source token that `receiver` gets from the pooled source
            tokens of all crossed orders.
        pays_gas: whether the order is bridge-only: what `given` leaves enters the bridge.
    """

    asked: RoundOrder
    part: DeltaPart
    promised: int
    given: int
    paid: int
    steps: tuple[SettlementStep, ...]
    leftovers: tuple[bytes, ...]
    receiver: bytes = EXECUTOR
    traded: int = 0
    pays_gas: bool = False

    @property
    def limit(self) -> int:
        """Limit of the settled part: least raw units to receive (SELL), or most raw units to pay (BUY)."""
        return self.asked.limit_of(self.part)

    @property
    def part_amount(self) -> int | None:
        """Amount that the bid settles, if less than the auctioned amount; None for a bid on the whole amount.

        The amount is in raw units of the source token (SELL) or the destination token (BUY).
        """
        return None if self.part.amount == self.asked.part.amount else self.part.amount


class Candidate(Struct, frozen=True):
    """A decoded bid that passed the checks which need no call to a chain.

    Attributes:
        agent: name of the agent; for the venue's own bid, the address of the order's trader (`OwnBids`).
        place: index among the bids of its answer.
        parts: terms for one order, or for several orders that are settled against each other.
        calldata: calldata of the call that settles all parts.
    """

    agent: str
    arrival: int
    arrived_ms: int
    place: int
    parts: tuple[CandidatePart, ...]
    calldata: bytes

    @property
    def owners_calldata(self) -> bytes:
        """Calldata of the bid's settlement without the agent's calls, leftover tokens and receiver.

        The error of this call shows whether the settlement fails before code of the agent runs, e.g. because
        the owner's funds are missing.
        """
        bare = [replace(part, steps=(), leftovers=(), receiver=EXECUTOR) for part in self.parts]
        return _calldata(bare, agent_id(self.agent))

    @property
    def simulation_group(self) -> str:
        """Name of the group of bids that share a time for their simulation: an agent's, or an owner's."""
        owner = "" if is_agent(self.agent) else to_hex(self.parts[0].asked.terms.owner)
        return self.agent + owner

    @property
    def is_crossing(self) -> bool:
        """Whether the bid settles several orders against each other."""
        return len(self.parts) > 1


class Rejection(Struct, frozen=True):
    """Rejection of a bid, or of an agent's whole answer, with its reason.

    Attributes:
        arrived_ms: time of the answer's arrival or failure, milliseconds since the round opened.
        notice: kind of the rejection, as the agent receives it.
        detail: text of the reason, cut to VENUE_AUCTION_DETAIL_CHARS_MAX.
        orders: promised amounts by order hash, None if unreadable; empty if the rejection names no order.
        simulated: simulated amounts by order hash, as far as known.
        parts: settled amounts by order hash, if the bid is for less than is auctioned: raw units of the
            source token (SELL) or the destination token (BUY).
    """

    agent: str
    arrived_ms: int
    notice: Notice
    detail: str
    orders: Mapping[bytes, int | None] = {}
    simulated: Mapping[bytes, int] = {}
    parts: Mapping[bytes, int] = {}

    def __post_init__(self) -> None:
        force_setattr(self, "detail", self.detail[: limits.VENUE_AUCTION_DETAIL_CHARS_MAX])


class _BidRefused(Exception):
    """Error: a decoded bid is refused, with the kind and the reason that its agent receives."""

    def __init__(self, notice: Notice, detail: str) -> None:
        super().__init__(detail)
        self.notice = notice
        self.detail = detail


def is_agent(bidder: str) -> bool:
    """Whether a bidder's name is an agent's; the venue's own bid has the address of its trader for a name."""
    return not bidder.startswith("0x")  # as the settings demand of agents


def asked_of(live: "LiveOrder") -> RoundOrder | None:
    """Make the entry of an order for a new auction round; None if nothing is left to settle."""
    part = live.part()
    if part is None:
        return None
    return RoundOrder(live.order_hash, live.order, live.document, live.terms, part)


def shown(order: RoundOrder) -> AuctionOrder:
    """Make the message that describes an order of an auction round to agents."""
    terms, part = order.terms, order.part
    return AuctionOrder(
        order_hash=to_hex(order.order_hash),
        order_type=OnChainOrderType(order.document.order_type),
        side=terms.side,
        owner=to_checksum(terms.owner),
        src_token=to_checksum(terms.src_token),
        dest_token=to_checksum(terms.dest_token),
        src_amount=str(part.src_amount),
        dest_amount=str(part.dest_amount),
        expected_amount=str(part.expected),
        partner_and_fee=str(order.order.partner_and_fee),
        deadline=terms.deadline,
        part_min=str(order.part_min) if order.part_min else "",
        whole=_whole(order.order) if order.part_min else None,
        destination_chain_id=bridge_of(order.order).destination_chain_id,
    )


def _whole(order: SettledOrder) -> WholeOrder | None:
    if not isinstance(order, DeltaOrder):
        return None
    return WholeOrder(str(order.src_amount), str(order.dest_amount), str(order.expected_amount))


def answer_of(agent: str, arrival: int, arrived_ms: int, raw: bytes) -> Answer:
    """Decode the body of an agent's answer to a request for bids, but not yet the bids in it.

    Raises:
        InvalidInput: the body is not an answer to a SolveRequest.
    """
    response = decode_unread_response(raw)
    not_reached = [_hash(text, f"notReached[{at}]") for at, text in enumerate(response.not_reached)]
    return Answer(agent, arrival, arrived_ms, response.bids, frozenset(not_reached))


def read_answer(answer: Answer, orders: Mapping[bytes, RoundOrder]) -> Iterator[Candidate | Rejection]:
    """Decode and check the bids of an agent's answer; yield for each a candidate to simulate, or a rejection.

    Bids are decoded one at a time, as the caller iterates, in the answer's sequence.

    Args:
        orders: orders of the round, by hash.
    """
    for place, raw in enumerate(answer.bids):
        yield _read(answer, place, bytes(raw), orders)


def _read(
    answer: Answer, place: int, raw: bytes, orders: Mapping[bytes, RoundOrder]
) -> Candidate | Rejection:
    """Decode and check a bid of an answer; return a candidate to simulate, or a rejection with the reason."""
    agent, arrived_ms = answer.agent, answer.arrived_ms
    try:
        bid = decode_solver_bid(raw)
    except InvalidInput as error:
        return Rejection(agent, arrived_ms, Notice.MALFORMED, f"bids[{place}]: {error.detail}")
    try:
        return _candidate(answer, place, bid, orders)
    except _BidRefused as refused:
        notice, detail = refused.notice, refused.detail
    except InvalidInput as error:
        notice, detail = Notice.MALFORMED, error.detail
    named, parts = _named(bid, orders, agent)
    return Rejection(agent, arrived_ms, notice, f"bids[{place}]: {detail}", named, parts=parts)


def sorted_out(
    found: Iterable[_Found | Rejection],
) -> Generator[None, None, tuple[list[_Found], list[Rejection]]]:
    """Split the results of a check of bids; return the lists of passed bids and of rejections at the end.

    The generator yields after each bid, so that other tasks can run.
    """
    good: list[_Found] = []
    refused: list[Rejection] = []
    for result in found:
        if isinstance(result, Rejection):
            refused.append(result)
        else:
            good.append(result)
        yield
    return good, refused


def _candidate(answer: Answer, place: int, bid: SolverBid, orders: Mapping[bytes, RoundOrder]) -> Candidate:
    named = [_named_order(answer.agent, at, part, orders) for at, part in enumerate(bid.parts)]
    # Two parts of one order would settle the order twice: each part is checked by itself against all that is
    # auctioned.
    if len({order.order_hash for order in named}) < len(named):
        raise InvalidInput("an order may stand only once in a bid", field="parts")
    is_crossing = len(named) > 1
    for at, order in enumerate(named):
        if is_crossing and not isinstance(order.order, DeltaOrder):
            raise InvalidInput(
                field=f"parts[{at}].orderHash",
                expected="an order of type Order: no other type can be crossed",
                got=order.document.order_type,
            )
        if is_crossing and is_crosschain(order.order):
            raise InvalidInput(
                field=f"parts[{at}].orderHash", expected="an order on one chain: no other can be crossed"
            )
    parts = tuple(
        [
            _part(at, part, order, is_crossing=is_crossing)
            for at, (part, order) in enumerate(zip(bid.parts, named, strict=True))
        ]
    )
    calldata = _calldata(parts, agent_id(answer.agent))
    if len(calldata) > limits.RELAY_DATA_BYTES_MAX:
        raise InvalidInput(
            field="parts",
            expected=f"a settlement of at most {limits.RELAY_DATA_BYTES_MAX} bytes of calldata",
            got=len(calldata),
        )
    return Candidate(answer.agent, answer.arrival, answer.arrived_ms, place, parts, calldata)


def candidate_of(name: str, place: int, part: CandidatePart) -> Candidate:
    """Make the venue's own bid on one order; the bid counts as the first answer of the round.

    Args:
        name: name of the bidder in records.
        place: number of the bid among the venue's bids on the order.
    """
    return Candidate(name, 0, 0, place, (part,), _calldata((part,), NO_AGENT))


def _named_order(agent: str, at: int, part: BidPart, orders: Mapping[bytes, RoundOrder]) -> RoundOrder:
    """Look up the order of the auction round that a part of a bid names.

    Args:
        at: index of the part in the bid, for errors.

    Raises:
        InvalidInput: the hash is malformed, or the round has no such order that the agent may bid for.
    """
    field = f"parts[{at}].orderHash"
    found = orders.get(_hash(part.order_hash, field))
    if found is None or not found.document.admits(agent):
        raise InvalidInput(
            field=field, expected="an order of the round that admits the agent", got=part.order_hash
        )
    return found


def _hash(text: str, field: str) -> bytes:
    found = parse_hex(text, field)
    if len(found) != _HASH_BYTES:
        raise InvalidInput(field=field, expected="0x and 64 hexadecimal digits", got=text)
    return found


def _part(at: int, part: BidPart, order: RoundOrder, *, is_crossing: bool) -> CandidatePart:
    field = f"parts[{at}]"
    settled = order.part_of(_amount(part, f"{field}.amount", order, is_crossing=is_crossing))
    limit = order.limit_of(settled)
    promised = parse_amount(part.promised_amount, f"{field}.promisedAmount")
    if order.is_worse(promised, limit):
        word = "at least" if order.terms.side is Side.SELL else "at most"
        raise _BidRefused(
            Notice.BELOW_LIMIT, f"{field}.promisedAmount: expected {word} {limit}, got {promised}"
        )
    given = parse_amount(part.given, f"{field}.given")
    # A sale gives its whole source: the bid's own number counts only for a purchase (`CandidatePart.given`).
    if order.terms.side is Side.SELL:
        given = settled.src_amount if sells_shares(order.order) else 0
    elif given > settled.src_amount:
        raise InvalidInput(field=f"{field}.given", expected=f"at most {settled.src_amount}", got=part.given)
    return CandidatePart(
        asked=order,
        part=settled,
        promised=promised,
        given=given,
        paid=parse_amount(part.paid, f"{field}.paid"),
        steps=tuple([_step(f"{field}.steps[{number}]", step) for number, step in enumerate(part.steps)]),
        leftovers=_leftovers(field, part, order),
        receiver=parse_address(part.receiver, f"{field}.receiver") if part.receiver else EXECUTOR,
        traded=parse_amount(part.traded, f"{field}.traded"),
    )


def _leftovers(field: str, part: BidPart, order: RoundOrder) -> tuple[bytes, ...]:
    """Parse a bid's leftover tokens, 20 bytes each, whose balance at the executor goes to the order's owner.

    If the order sells a vault's shares, the result always has the source token, since the vault may give more
    of this token than the settlement asks for.
    """
    tokens = [
        parse_address(token, f"{field}.leftovers[{number}]") for number, token in enumerate(part.leftovers)
    ]
    src = order.terms.src_token
    return (*tokens, src) if sells_shares(order.order) and src not in tokens else tuple(tokens)


def _amount(part: BidPart, field: str, order: RoundOrder, *, is_crossing: bool) -> int:
    """Parse how much of an order a bid settles: raw units of the source (SELL) or destination (BUY) token.

    A bid without an amount settles all that is auctioned.
    """
    left = order.part.amount
    if not part.amount:
        return left
    amount, least = parse_amount(part.amount, field), order.part_min
    if amount == left:
        return amount
    if not least or is_crossing:
        why = " in a crossing" if least else ""
        raise InvalidInput(field=field, expected=f"all that is asked for{why}, {left}", got=part.amount)
    if not is_part(amount, left):
        raise InvalidInput(
            field=field, expected=f"{left}, or from {least} to {left - least}", got=part.amount
        )
    return amount


def _step(field: str, step: BidStep) -> SettlementStep:
    if step.gas > limits.AGENT_STEP_GAS_MAX:
        raise InvalidInput(
            field=f"{field}.gas", expected=f"at most {limits.AGENT_STEP_GAS_MAX}", got=step.gas
        )
    return SettlementStep(
        parse_address(step.target, f"{field}.target"), step.gas, parse_hex(step.data, f"{field}.data")
    )


def _calldata(parts: Sequence[CandidatePart], agent: bytes) -> bytes:
    """Encode the call of the Delta contract that settles all parts of a bid or none.

    Args:
        agent: id of the agent on chain, which selects the caller contract for the agent's calls.
    """
    if len(parts) > 1:
        return settle_crossed([_crossing(part, agent) for part in parts])
    (part,) = parts
    round_order, execution = part.asked, _execution(part, agent)
    signature = round_order.document.signature
    match round_order.order:
        case DeltaOrder() as order:
            return settle(order, signature, part.part.amount, execution)
        case TwapOrder() as order:
            return settle_twap(order, signature, execution)
        case TwapBuyOrder() as order:
            return settle_twap_buy(order, signature, execution)
        case ProductiveOrder() as order:
            return settle_productive(order, signature, part.part.amount, execution)
        case ExternalOrder() as order:
            return settle_external(order, signature, part.part.amount, execution)


def _crossing(part: CandidatePart, agent: bytes) -> CrossedOrder:
    order = part.asked.order
    if not isinstance(order, DeltaOrder):
        raise TypeError("only an Order is crossed")  # `_candidate` has checked the type
    signature, execution = part.asked.document.signature, _execution(part, agent)
    return CrossedOrder(order, signature, part.part.amount, execution, part.paid, part.traded)


def _execution(part: CandidatePart, agent: bytes) -> Execution:
    return Execution(part.promised, part.given, part.steps, part.leftovers, agent, part.receiver)


def _named(
    bid: SolverBid, orders: Mapping[bytes, RoundOrder], agent: str
) -> tuple[dict[bytes, int | None], dict[bytes, int]]:
    """Read from a refused bid, as far as it is readable, the amounts that it names.

    Returns:
        (promised amounts, settled amounts), both by order hash.
    """
    named: dict[bytes, int | None] = {}
    parts: dict[bytes, int] = {}
    for part in bid.parts:
        try:
            order = _named_order(agent, 0, part, orders)
        except InvalidInput:
            continue
        try:
            named[order.order_hash] = parse_amount(part.promised_amount)
        except InvalidInput:
            named[order.order_hash] = None
        with suppress(InvalidInput):
            amount = parse_amount(part.amount) if part.amount else order.part.amount
            if amount != order.part.amount:
                parts[order.order_hash] = amount
    return named, parts
