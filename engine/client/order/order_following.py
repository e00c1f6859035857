"""A submitted Delta order, followed at the venue until its end, which is then verified on chain.

    follow   GET /v2/delta/orders/{id}; see `following`
    proven   verifies a terminal status: the receipts of the transactions that the venue names hold the Delta
             contract's OrderSettled events of this order, the contract has settled no more of it, and an
             event of a COMPLETED order closes it

The beneficiary's balance is compared with the settled amount block by block; a difference is reported and is
no failure, since other transactions may move it.

Source: spec 1.24.1, 1.11; contracts/Delta.sol, OrderSettled.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET, Struct

from ....codecs.amounts import parse_amount
from ....codecs.contracts.contract_events import OrderSettled
from ....codecs.contracts.delta_calldata import order_state
from ....codecs.contracts.delta_results import decode_order_state
from ....codecs.eip712_orders.delta import KIND_BUY, DeltaOrder
from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus, Side
from ....config.errors import ChainError, InvalidInput, VenueError
from ....crypto.hexadecimal import parse_hex, to_hex
from ...chain.port import Chain, EthCall
from ..events import EventsWanted
from ..following import Follower, balance_remarks, receipt_of
from ..safety import contract_events
from .order_safety import CheckedOrder

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
    OrderStatus.PENDING: "no agent has bid yet",
    OrderStatus.AWAITING_SIGNATURE: "the owner has yet to sign on chain",
    OrderStatus.ACTIVE: "it waits for its price or time, is auctioned, or settled",
    OrderStatus.SUSPENDED: "balance or allowance is below what it needs",
    OrderStatus.CANCELLING: "a settlement that is under way may still win",
    OrderStatus.BRIDGING: "on its way to the other chain",
    OrderStatus.COMPLETED: "settled",
    OrderStatus.FAILED: "it cannot be settled",
    OrderStatus.EXPIRED: "its deadline has passed",
    OrderStatus.REFUNDING: "on its way back",
    OrderStatus.CANCELLED: "nothing more of it is settled",
    OrderStatus.REFUNDED: "it came back",
}


class SettledOnChain(Struct, frozen=True, kw_only=True):
    """On-chain result of a Delta order, compared with the venue's record.

    Attributes:
        spent, received: raw units that all settlements of the order spent and received.
        is_closed: whether the contract has closed the order: no further part can be settled.
        fault: text of a contradiction between the chain and the venue's record; empty for none.
        remarks: notes for the trader, which are no faults.
    """

    spent: int = 0
    received: int = 0
    is_closed: bool = False
    fault: str = ""
    remarks: tuple[str, ...] = ()


class Subject(Struct, frozen=True):
    """An order to verify on chain, and the Delta contract that settles it."""

    delta: bytes
    signed: CheckedOrder

    @property
    def receiver(self) -> bytes:
        """The account that receives the order's destination token, 20 bytes."""
        order = self.signed.order
        return order.beneficiary if any(order.beneficiary) else order.owner


class _Part(Struct, frozen=True):
    """A settlement of an order: its OrderSettled event, and the height of its block."""

    block_number: int
    event: OrderSettled


class OrderFollower(Follower[OrderRecord]):
    """Follows a Delta order at a venue, by the order's id or hash, until it has ended."""

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
        if before is None or before.status is not record.status:
            yield f"order {record.id} is {record.status.value}: {MEANS[record.status]}"

    def _seen(self, record: OrderRecord) -> tuple[object, ...]:
        return record.status, len(record.transactions)


def executed_of(record: OrderRecord) -> int:
    """Raw units that an order received (SELL) or spent (BUY), according to the venue's record.

    0 if the record has no amount.

    Raises:
        VenueError: `executedAmount` is no amount.
    """
    side = record.output if record.side is Side.SELL else record.input
    told = side.executed_amount
    if told is UNSET or told is None:
        return 0
    try:
        return parse_amount(told)
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
        named = [parse_hex(each.origin_tx, "originTx") for each in record.transactions]
    except InvalidInput as fault:
        return SettledOnChain(fault=fault.detail)
    parts: list[_Part] = []
    for tx_hash in dict.fromkeys(named):  # a transaction that is named twice has settled once
        receipt = await receipt_of(chain, tx_hash)
        if receipt is None:
            return SettledOnChain(fault=f"the chain does not know the transaction {to_hex(tx_hash)}")
        found = [
            event
            for event in contract_events(receipt, subject.delta, OrderSettled)
            if (event.order_hash, event.owner) == (subject.signed.order_hash, subject.signed.order.owner)
        ]
        if not found:
            return SettledOnChain(fault=f"the transaction {to_hex(tx_hash)} settles nothing of this order")
        parts += [_Part(receipt.block_number, event) for event in found]
    spent = sum(part.event.spent for part in parts)
    received = sum(part.event.received for part in parts)
    is_closed = any(part.event.is_closed for part in parts)
    moved, told = received if record.side is Side.SELL else spent, executed_of(record)
    contradiction = ""
    if moved != told:
        contradiction = f"the venue says {told} raw units were executed, and the chain {moved}"
    elif record.status is OrderStatus.COMPLETED and not is_closed:
        contradiction = "the venue says that it is completed, and on chain it is still open"
    elif await _is_more_settled(chain, subject, parts):
        contradiction = "the chain has settled more of it than the venue says"
    by_block = {
        number: sum(part.event.received for part in parts if part.block_number == number)
        for number in sorted({part.block_number for part in parts})
    }
    remarks = await balance_remarks(chain, subject.signed.order.dest_token, subject.receiver, by_block)
    return SettledOnChain(
        spent=spent, received=received, is_closed=is_closed, fault=contradiction, remarks=remarks
    )


async def _is_more_settled(chain: Chain, subject: Subject, parts: Sequence[_Part]) -> bool:
    """Whether the contract has settled more of an order than the settlements that the venue names.

    For a BUY order the check compares the contract's total of bought units with the highest total in the
    events of `parts`. The check misses a settlement that the venue leaves out if `parts` has a later
    settlement.

    Args:
        parts: the settlements that the venue names.

    Raises:
        ChainError: the chain or the contract does not return the order's state.
    """
    order, order_hash = subject.signed.order, subject.signed.order_hash
    answer = await chain.call(EthCall(subject.delta, order_state(order.owner, order.nonce, order_hash)))
    try:
        state = decode_order_state(answer, order_hash, is_scheduled=not isinstance(order, DeltaOrder))
    except InvalidInput:
        raise ChainError("the Delta contract has no state of the order") from None
    if not isinstance(order, DeltaOrder):
        return (order.num_slices if state.is_closed else state.done) > len(parts)
    if order.kind == KIND_BUY:
        whole, shown = order.dest_amount, max((part.event.filled for part in parts), default=0)
    else:
        whole, shown = order.src_amount, sum(part.event.spent for part in parts)
    return (whole if state.is_closed else state.done) > shown
