"""A submitted order, followed at the venue until its end, which is then verified on chain.

    follow   GET /v2/delta/orders/{id} after each change that the venue pushes, until a terminal status or
             until time is up; polled with growing pauses if the venue does not push
    proven   verifies a terminal status: the receipts of the transactions that the venue names hold the Delta
             contract's OrderSettled events of this order, the contract has settled no more of it, and an
             event of a COMPLETED order closes it

The follower repeats an unanswered request while time is left.

The beneficiary's balance is compared with the settled amount block by block; a difference is reported and is
no failure, since other transactions may move it.

Source: spec 1.24.1, 1.11; contracts/Delta.sol, OrderSettled.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import trio
from msgspec import UNSET, Struct

from ....codecs.amounts import parse_amount
from ....codecs.contracts.abi import decode_uint
from ....codecs.contracts.calldata import balance_of
from ....codecs.contracts.contract_events import OrderSettled, decode_event
from ....codecs.contracts.delta_calldata import order_state
from ....codecs.contracts.delta_results import decode_order_state
from ....codecs.eip712_orders.delta import KIND_BUY, DeltaOrder
from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus, Side
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.errors import ChainError, InvalidInput, VenueError
from ....config.timeouts import (
    TRADER_LOOK_S,
    TRADER_ORDER_LOOK_S,
    TRADER_ORDER_LOOK_S_MAX,
    TRADER_RECEIPT_S,
)
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import parse_hex, to_hex
from ...chain.port import Chain, EthCall, Receipt
from ..client import VenueClient
from ..events import EventsWanted, OrderPush, pushed
from .order_safety import CheckedOrder

_SERVER_FAULT = 500
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
"""Final statuses: spec 1.11.2."""

MEANS: Mapping[OrderStatus, str] = {
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
    """On-chain result of an order.

    Attributes:
        spent, received: raw units of all its settlements.
        is_closed: no further part can be settled.
        fault: the contradiction between the chain and the venue; empty for none.
        remarks: notes for the trader.
    """

    spent: int = 0
    received: int = 0
    is_closed: bool = False
    fault: str = ""
    remarks: tuple[str, ...] = ()


class Subject(Struct, frozen=True):
    """An order to verify on chain, and its Delta contract."""

    delta: bytes
    signed: CheckedOrder

    @property
    def receiver(self) -> bytes:
        """The account that receives the destination token, 20 bytes."""
        order = self.signed.order
        return order.beneficiary if any(order.beneficiary) else order.owner


class _Part(Struct, frozen=True):
    """A settlement: its event, and the height of its block."""

    block_number: int
    event: OrderSettled


class OrderFollower:
    """A follower of one order at its venue.

    Args:
        name: the order's id or hash.
        tell: receives a line for each change of status and for each transaction.

    Attributes:
        record: the venue's latest record; None before the first.
    """

    def __init__(self, venue: VenueClient, name: str, tell: Callable[[str], None]) -> None:
        self._venue = venue
        self._name = name
        self._tell = tell
        self.record: OrderRecord | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the order's status is final."""
        return self.record is not None and self.record.status in TERMINAL

    async def follow(self, timeout_s: float) -> None:
        """Follow the order until it has ended or time is up.

        Raises:
            VenueError: a final refusal, or a record of another order.
        """
        with trio.move_on_after(timeout_s):
            async with pushed(self._venue, EventsWanted(order=self._name), self._tell) as push:
                await look_until_ended(self.look, lambda: self.has_ended, push, self._tell)

    async def look(self) -> bool:
        """Ask the venue once; return whether the order has changed.

        Raises:
            VenueError: any refusal, no answer, or a record of another order.
        """
        return self.see(await self._venue.order(self._name))

    def see(self, record: OrderRecord) -> bool:
        """Record the venue's answer; return whether the order has changed.

        Raises:
            VenueError: the record is of another order, or its hash is invalid.
        """
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
        self.record = record
        known = () if before is None else [each.origin_tx for each in before.transactions]
        for transaction in record.transactions:
            if transaction.origin_tx not in known:
                self._tell(f"settled by {transaction.origin_tx}, {transaction.filled_percent} %")
        if before is None or before.status is not record.status:
            self._tell(f"order {record.id} is {record.status.value}: {MEANS[record.status]}")
        return before is None or (before.status, len(known)) != (record.status, len(record.transactions))


async def look_until_ended(
    look: Callable[[], Awaitable[bool]],
    has_ended: Callable[[], bool],
    push: OrderPush,
    tell: Callable[[str], None],
) -> None:
    """Ask for an order whenever it may have changed, until it has ended.

    Args:
        look: asks the venue once; returns whether the order has changed.

    Raises:
        VenueError: a final refusal.
    """
    pause_s = TRADER_ORDER_LOOK_S
    while True:
        try:
            has_changed = await look()
        except VenueError as fault:
            if not may_pass(fault):
                raise
            has_changed = False
            tell(f"{fault.detail}: asking again")
        if has_ended():
            return
        pause_s = TRADER_ORDER_LOOK_S if has_changed else min(pause_s * 1.5, TRADER_ORDER_LOOK_S_MAX)
        await push.wait(pause_s)


def may_pass(fault: VenueError) -> bool:
    """Whether a repeated request may succeed: after no answer, 429, or a server error."""
    return fault.status in (0, 429) or fault.status >= _SERVER_FAULT


def executed_of(record: OrderRecord) -> int:
    """Executed raw units of the side that is not fixed, by the venue's record; 0 if absent.

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
    """On-chain result of an order that has ended by the venue's record, settled or not.

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
        found = _events(receipt, subject)
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
    shown = balance_remarks(chain, subject.signed.order.dest_token, subject.receiver, by_block)
    remarks = tuple([remark async for remark in shown])
    return SettledOnChain(
        spent=spent, received=received, is_closed=is_closed, fault=contradiction, remarks=remarks
    )


def _events(receipt: Receipt, subject: Subject) -> list[OrderSettled]:
    found: list[OrderSettled] = []
    for log in receipt.logs if receipt.succeeded else ():
        if log.address != subject.delta:
            continue
        try:
            event = decode_event(log.topics, log.data)
        except InvalidInput:
            continue
        if isinstance(event, OrderSettled) and (event.order_hash, event.owner) == (
            subject.signed.order_hash,
            subject.signed.order.owner,
        ):
            found.append(event)
    return found


async def _is_more_settled(chain: Chain, subject: Subject, parts: Sequence[_Part]) -> bool:
    """Whether the contract has settled more of an order than these parts.

    For a purchase only the parts' highest `filled` total is compared, since less may arrive than was bought:
    a missing part before the last one stays unnoticed.

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


async def receipt_of(chain: Chain, tx_hash: bytes) -> Receipt | None:
    """The receipt of a transaction that a venue names; None if unknown to the chain for TRADER_RECEIPT_S.

    The trader's node may see a block later than the venue's.
    """
    with trio.move_on_after(TRADER_RECEIPT_S):
        while True:
            header = await chain.block()
            receipt = await chain.receipt(tx_hash)
            if receipt is not None:
                return receipt
            with trio.move_on_after(TRADER_LOOK_S):
                await chain.wait_head(header.hash if header else b"")
    return None


async def balance_remarks(
    chain: Chain, token: bytes, who: bytes, received: Mapping[int, int]
) -> AsyncIterator[str]:
    """A line for each block in which a balance grew by less than the settled amount.

    Args:
        who: 20 bytes, the receiver.
        received: height -> raw units of `token` that were settled for `who` in that block.
    """
    for number, amount in received.items():
        try:
            before = await _balance(chain, token, who, number - 1)
            moved = await _balance(chain, token, who, number) - before
        except ChainError:
            yield f"the node does not tell balances at block {number}"
            continue
        if moved < amount:
            yield (
                f"block {number}: {amount} raw units were settled for {to_checksum(who)}, "
                f"its balance moved by {moved}"
            )


async def _balance(chain: Chain, token: bytes, who: bytes, number: int) -> int:
    if token == NATIVE_TOKEN:
        return await chain.balance(who, number)
    answer = await chain.call(EthCall(token, balance_of(who)), number)
    try:
        return decode_uint(answer)
    except InvalidInput:
        raise ChainError("no balance") from None
