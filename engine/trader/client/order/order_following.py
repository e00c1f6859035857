"""Follow a submitted Delta order at the venue until its end, and verify the end on chain.

    follow   GET /v2/delta/orders/{id}; see `following`
    proven   verifies a terminal status: the receipts of the transactions that the venue names hold the Delta
             contract's OrderSettled events of this order, the contract has settled no larger part of it, and
             one of these events closes the order if it is COMPLETED; across chains see `transfer_proof`

The beneficiary's balance is compared with the settled amount block by block. A difference is reported but is
no failure, since other transactions may change the balance.

An order across chains is proven on its origin. The deliveries are proven only with a node of the destination
chain; without that node the follower trusts the venue's record of the deliveries.

Source: spec 1.24.1, 1.11; contracts/Delta.sol, OrderSettled.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from .....codecs.amounts import parse_amount
from .....codecs.contracts.contract_events import OrderBridged, OrderSettled
from .....codecs.contracts.delta_calldata import order_state
from .....codecs.contracts.delta_results import decode_order_state
from .....codecs.eip712_orders.delta import (
    KIND_BUY,
    SAME_CHAIN,
    DeltaBridge,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from .....codecs.messages.delta_messages import OrderRecord, OrderTransaction
from .....codecs.messages.vocabulary import OrderStatus, Side
from .....config.error_text import one_line
from .....config.errors import ChainError, InvalidInput, VenueError
from .....crypto.hexadecimal import parse_hex, to_hex
from ....chain.port import Chain, EthCall, Receipt
from ..client import VenueClient
from ..events import EventsWanted
from ..following import Follower, balance_remarks, receipt_of
from ..safety import contract_events
from ..terms import TradedToken, amount_text
from .order_safety import CheckedOrder
from .transfer_proof import HandedTransfer, TransferProof

_HASH_BYTES = 32

TERMINAL = frozenset(
    {
        OrderStatus.COMPLETED,
        OrderStatus.FAILED,
        OrderStatus.EXPIRED,
        OrderStatus.CANCELLED,
        OrderStatus.REFUNDED,
    }
)
"""Final statuses of a Delta order, which no event changes any more: spec 1.11.2."""

MEANS: Mapping[str, str] = {
    OrderStatus.PENDING: "it waits for a bid",
    OrderStatus.AWAITING_SIGNATURE: "the owner has yet to sign on chain",
    OrderStatus.ACTIVE: "it waits for its price or time, is auctioned, or settled",
    OrderStatus.SUSPENDED: "balance or allowance is below what it needs, or its vault gives too little",
    OrderStatus.CANCELLING: "a settlement that is under way may still win",
    OrderStatus.BRIDGING: "on its way to the other chain",
    OrderStatus.COMPLETED: "settled",
    OrderStatus.FAILED: "it cannot be settled",
    OrderStatus.EXPIRED: "its deadline has passed",
    OrderStatus.REFUNDING: "the bridge failed, and what entered it is on its way back",
    OrderStatus.CANCELLED: "nothing more of it is settled",
    OrderStatus.REFUNDED: "the bridge failed, and what entered it came back",
}


class SettledOnChain(Struct, frozen=True, kw_only=True):
    """On-chain result of a Delta order, compared with the venue's record.

    Attributes:
        spent, received: raw units that all settlements of the order spent and received; across chains,
            `received` is the amount that is proven to have arrived.
        bridged: raw units of the bridge's token on the origin that entered the bridge.
        refunded: raw units of the same token that are proven to have come back.
        unproven: raw units that arrived on the destination chain according to the venue, without a proof.
        is_closed: whether the contract has closed the order: no further part can be settled.
        fault: text of a contradiction between the chain and the venue's record; empty for none.
        remarks: notes for the trader, which are no faults.
    """

    spent: int = 0
    received: int = 0
    bridged: int = 0
    refunded: int = 0
    unproven: int = 0
    is_closed: bool = False
    fault: str = ""
    remarks: tuple[str, ...] = ()


class OfferTokens(Struct, frozen=True):
    """Tokens of an order, for texts that show the order's amounts; None for a token that is not known.

    Attributes:
        bridged: the token on the origin that enters the bridge of an order across chains.
    """

    src: TradedToken | None = None
    dest: TradedToken | None = None
    bridged: TradedToken | None = None


class Subject(Struct, frozen=True):
    """An order to verify on chain, and the Delta contract that settles it.

    Attributes:
        there: the destination chain of an order across chains; None without a node of that chain.
    """

    delta: bytes
    signed: CheckedOrder
    there: Chain | None = None

    @property
    def bridge(self) -> DeltaBridge:
        """The bridge that delivers the bought tokens; SAME_CHAIN for an order without a bridge."""
        bridge: DeltaBridge = getattr(self.signed.order, "bridge", SAME_CHAIN)
        return bridge

    @property
    def is_crosschain(self) -> bool:
        """Whether a bridge delivers the bought tokens."""
        return self.bridge != SAME_CHAIN

    @property
    def receiver(self) -> bytes:
        """The account that receives the order's destination token, 20 bytes."""
        order = self.signed.order
        beneficiary: bytes = getattr(order, "beneficiary", b"")
        return beneficiary if any(beneficiary) else order.owner


class _Part(Struct, frozen=True):
    """A settlement of an order: its OrderSettled event, and the receipt of its transaction."""

    receipt: Receipt
    event: OrderSettled


class OrderFollower(Follower[OrderRecord]):
    """Follows a Delta order at a venue, by the order's id or hash, until it has ended.

    Args:
        tokens: tokens with which lines of progress show amounts.
    """

    def __init__(
        self,
        venue: VenueClient,
        name: str,
        tell: Callable[[str], None],
        tokens: OfferTokens = OfferTokens(),  # noqa: B008  frozen
    ) -> None:
        super().__init__(venue, name, tell)
        self._tokens = tokens

    def _wanted(self) -> EventsWanted:
        return EventsWanted(order=self._name)

    async def _ask(self) -> OrderRecord:
        return await self._venue.order(self._name)

    def _is_final(self, record: OrderRecord) -> bool:
        return record.status in TERMINAL

    def _check(self, record: OrderRecord) -> None:
        before = self.record
        if self._name.lower() not in (record.id.lower(), record.order_hash.lower()) or (
            before is not None and before.order_hash.lower() != record.order_hash.lower()
        ):
            raise VenueError(f"asked for order {self._name}, the venue answers with {record.id}")
        try:
            is_hash = len(parse_hex(record.order_hash, "orderHash")) == _HASH_BYTES
        except InvalidInput:
            is_hash = False
        if not is_hash:
            raise VenueError(f"order {record.id}: the venue gives no hash, but {record.order_hash}")

    def _changes(self, before: OrderRecord | None, record: OrderRecord) -> Iterator[str]:
        known = () if before is None else [each.origin_tx for each in before.transactions]
        for transaction in record.transactions:
            if transaction.origin_tx not in known:
                yield f"settled by {transaction.origin_tx}, {transaction.filled_percent} %"
        if is_crosschain(record):
            yield from self._bridge_changes(before, record)
        if before is None or before.status is not record.status:
            yield f"order {record.id} is {record.status.value}: {self._meaning(record)}"

    def _bridge_changes(self, before: OrderRecord | None, record: OrderRecord) -> Iterator[str]:
        known = () if before is None else deliveries(before)
        for text, amount in deliveries(record):
            if (text, amount) not in known:
                arrived = told_amount(amount, self._tokens.dest)
                yield f"delivered by {text} on chain {record.output.chain_id}: {arrived}"
        for refund in record.refunds:
            if before is None or refund not in before.refunds:
                returned = told_amount(refund.amount, self._tokens.bridged)
                yield f"refunded by {refund.tx} on chain {refund.chain_id}: {returned}"

    def _meaning(self, record: OrderRecord) -> str:
        if record.status is not OrderStatus.BRIDGING:
            return MEANS[record.status]
        least = record.output.min_amount if record.side is Side.SELL else record.output.amount
        text = told_amount("" if least is UNSET else least, self._tokens.dest)
        return f"on its way to chain {record.output.chain_id}, {text} at least"

    def _seen(self, record: OrderRecord) -> tuple[object, ...]:
        return record.status, len(record.transactions), len(deliveries(record)), len(record.refunds)


def is_crosschain(record: OrderRecord) -> bool:
    """Whether an order pays out on another chain, according to the venue's record."""
    return record.output.chain_id != record.input.chain_id


def deliveries(record: OrderRecord) -> list[tuple[str, str]]:
    """Deliveries of an order across chains, each as (transaction hash, raw units), in the venue's record."""
    return [
        (each.destination_tx, each.received_amount or "0")
        for each in record.transactions
        if each.destination_tx is not None
    ]


def told_amount(text: str, token: TradedToken | None) -> str:
    """An amount of a venue's record as text: in whole tokens, or in raw units if the token is not known.

    Args:
        text: the record's decimal number of raw units; a text that is no amount is returned as one line.
    """
    try:
        amount = parse_amount(text)
    except InvalidInput:
        return one_line(text)
    return f"{amount} raw units" if token is None else amount_text(amount, token)


def executed_of(record: OrderRecord) -> int:
    """Raw units that an order received (SELL) or spent (BUY), according to the venue's record.

    0 if the record has no amount.

    Raises:
        VenueError: `executedAmount` is no amount.
    """
    side = record.output if record.side is Side.SELL else record.input
    amount = side.executed_amount
    if amount is UNSET or amount is None:
        return 0
    try:
        return parse_amount(amount)
    except InvalidInput as fault:
        raise VenueError(f"executedAmount of order {record.id}: {fault.detail}") from None


async def proven(chain: Chain, subject: Subject, record: OrderRecord) -> SettledOnChain:
    """Verify the result of an ended order on chain, and return the on-chain result.

    The order has ended according to the venue's record, with or without a settlement.

    Raises:
        ChainError: the chain does not answer.
        VenueError: `executedAmount` is no amount.
    """
    try:
        parts = await _settlements(chain, subject, record)
    except InvalidInput as invalid:
        return SettledOnChain(fault=invalid.detail)
    if isinstance(parts, str):
        return SettledOnChain(fault=parts)
    result = SettledOnChain(
        spent=sum(part.event.spent for part in parts),
        received=sum(part.event.received for part in parts),
        is_closed=any(part.event.is_closed for part in parts),
    )
    if subject.is_crosschain:
        result = await _bridged(chain, subject, record, parts, result)
    # The first fault counts; the state of the whole order is read only if the named parts fit the record.
    fault = result.fault or _contradiction(subject, record, result)
    if not fault and await _is_more_settled(chain, subject, parts):
        fault = "the chain has settled more of it than the venue says"
    if subject.is_crosschain:
        return replace(result, fault=fault)
    # By block, since a node tells balances of blocks: of two settlements in a block only the sum is seen.
    by_block = {
        number: sum(part.event.received for part in parts if part.receipt.block_number == number)
        for number in sorted({part.receipt.block_number for part in parts})
    }
    remarks = await balance_remarks(chain, subject.signed.order.dest_token, subject.receiver, by_block)
    return replace(result, fault=fault, remarks=remarks)


async def _settlements(chain: Chain, subject: Subject, record: OrderRecord) -> list[_Part] | str:
    """The settlements of an order in the transactions that the venue names, or the text of a contradiction.

    Raises:
        InvalidInput: a hash is malformed.
        ChainError: the chain does not answer.
    """
    named = [parse_hex(each.origin_tx, "originTx") for each in record.transactions]
    parts: list[_Part] = []
    for tx_hash in dict.fromkeys(named):  # a transaction that is named twice has settled once
        receipt = await receipt_of(chain, tx_hash)
        if receipt is None:
            return f"the chain does not know the transaction {to_hex(tx_hash)}"
        found = [
            event
            for event in contract_events(receipt, subject.delta, OrderSettled)
            if (event.order_hash, event.owner) == (subject.signed.order_hash, subject.signed.order.owner)
        ]
        if not found:
            return f"the transaction {to_hex(tx_hash)} settles nothing of this order"
        parts += [_Part(receipt, event) for event in found]
    return parts


def _contradiction(subject: Subject, record: OrderRecord, result: SettledOnChain) -> str:
    """Text of a contradiction between the settlements on chain and the venue's record; empty for none."""
    moved, executed = result.received if record.side is Side.SELL else result.spent, executed_of(record)
    is_told_alone = subject.is_crosschain and record.side is Side.SELL and subject.there is None
    if moved != executed and not is_told_alone:
        return f"the venue says {executed} raw units were executed, and the chain {moved}"
    if record.status is OrderStatus.COMPLETED and not result.is_closed:
        return "the venue says that it is completed, and on chain it is still open"
    return ""


async def _bridged(
    chain: Chain,
    subject: Subject,
    record: OrderRecord,
    parts: Sequence[_Part],
    result: SettledOnChain,
) -> SettledOnChain:
    """The result of an order across chains: the amounts that entered the bridge, arrived and came back.

    Args:
        result: the result of the settlements; its `received` is the amount that entered the bridge.
    """
    proof = TransferProof(subject.signed.order, subject.bridge, chain.chain_id, subject.receiver)
    handed: list[tuple[HandedTransfer, OrderTransaction]] = []
    for receipt in dict.fromkeys(part.receipt for part in parts):
        sent = [
            event
            for event in contract_events(receipt, subject.delta, OrderBridged)
            if event.order_hash == subject.signed.order_hash and proof.is_signed(event)
        ]
        settled = [part.event.received for part in parts if part.receipt is receipt]
        # Settlements in one transaction are paired by position: both kinds of events and the venue's rows are
        # in the order of the logs.
        rows = [each for each in record.transactions if parse_hex(each.origin_tx, "") == receipt.tx_hash]
        if [event.amount for event in sent] != settled or len(rows) != len(sent):
            name = to_hex(receipt.tx_hash)
            return replace(
                result, received=0, fault=f"the transaction {name} hands no such amount to its bridge"
            )
        handed += [(HandedTransfer(event, receipt), row) for event, row in zip(sent, rows, strict=True)]
    # From here on `received` is the amount proven to have arrived.
    result = replace(result, received=0, bridged=result.received)
    arrived = [(transfer, row.destination_tx) for transfer, row in handed if row.destination_tx is not None]
    failed = [transfer for transfer, row in handed if row.destination_tx is None]
    if record.status is OrderStatus.COMPLETED and failed:
        return replace(result, fault="the venue says that it is completed, and names no delivery of a part")
    if subject.there is None:
        result = replace(result, unproven=_said(record))
    else:
        found = await proof.deliveries(subject.there, arrived)
        result = replace(result, received=found.amount, fault=found.fault)
    if result.fault or not (record.refunds or record.status is OrderStatus.REFUNDED):
        return result
    back = await proof.refunds(chain, failed, record.refunds)
    return replace(result, refunded=back.amount, fault=back.fault)


def _said(record: OrderRecord) -> int:
    """Raw units that arrived on the destination chain, according to the venue's record."""
    try:
        return sum(parse_amount(amount) for _, amount in deliveries(record))
    except InvalidInput as fault:
        raise VenueError(f"receivedAmount of order {record.id}: {fault.detail}") from None


async def _is_more_settled(chain: Chain, subject: Subject, parts: Sequence[_Part]) -> bool:
    """Whether the contract has settled a larger part of an order than the venue names.

    For a BUY order, and for a sale of a vault's shares, the check compares the contract's total of units or
    shares with the highest total in the events of `parts`. The check misses a settlement that the venue
    leaves out if `parts` has a later settlement.

    Args:
        parts: the settlements that the venue names.

    Raises:
        ChainError: the chain or the contract does not return the order's state.
    """
    order, order_hash = subject.signed.order, subject.signed.order_hash
    answer = await chain.call(EthCall(subject.delta, order_state(order.owner, order.nonce, order_hash)))
    try:
        is_scheduled = isinstance(order, TwapOrder | TwapBuyOrder)
        state = decode_order_state(answer, order_hash, is_scheduled=is_scheduled)
    except InvalidInput:
        raise ChainError("the Delta contract has no state of the order") from None
    # `filled` of an event is a running total, so that the highest counts; `spent` is of its settlement alone.
    # A closed order's state has no total any more: all of it is settled.
    filled = max((part.event.filled for part in parts), default=0)
    spent = sum(part.event.spent for part in parts)
    match order:
        case TwapOrder() | TwapBuyOrder():
            whole, shown = order.num_slices, len(parts)
        case ProductiveOrder():
            whole, shown = (order.shares, filled) if order.use_shares else (order.src_amount, spent)
        case _:
            is_purchase = order.kind == KIND_BUY
            whole, shown = (order.dest_amount, filled) if is_purchase else (order.src_amount, spent)
    return (whole if state.is_closed else state.done) > shown
