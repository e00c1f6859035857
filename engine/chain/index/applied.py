"""Convert the logs of cambist's contracts to rows of the store. Pure.

    Rfq    OrderFilled        otc_fill
           OrderCancelled     otc_cancel
           OrdersCancelledUntil   otc_cancel_until
    Delta  OrderSettled       delta_fill, and nonce_used if the event closes the order
           OrderBridged       bridge_transfer
           NonceInvalidated   nonce_used
           OrderPreSigned     pre_signature
           FeeAccrued         no row: an event for projections

A row stands for a log; a row of nonce_used stands for the first log that used the nonce. Deleting the rows
above a height undoes the blocks above that height: the remaining rows equal those of a fresh scan up to the
height.

Source: ARCHITECTURE.md, "Indexer", "Transitions".
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ....codecs.contracts import contract_events as events
from ....config.errors import InvalidInput, NodeContradiction, NodeFault
from ...store import tables
from ...store.rows import (
    NEVER_S,
    BridgeTransfer,
    DeltaFill,
    OtcCancel,
    OtcCancelUntil,
    OtcFill,
    PreSignature,
    UsedNonce,
    amount32,
)
from ...store.tables import Table
from ..port import Log, LogFilter

RFQ_TOPICS = (events.ORDER_FILLED, events.ORDER_CANCELLED, events.ORDERS_CANCELLED_UNTIL)
DELTA_TOPICS = (
    events.ORDER_SETTLED,
    events.ORDER_BRIDGED,
    events.FEE_ACCRUED,
    events.NONCE_INVALIDATED,
    events.ORDER_PRE_SIGNED,
)

ChainRow = OtcFill | OtcCancel | OtcCancelUntil | DeltaFill | BridgeTransfer | UsedNonce | PreSignature

KeptRow = tuple[Table, ChainRow]
"""(table, row): a row that the indexer writes or deletes, with its table."""


class IndexedContracts(Struct, frozen=True):
    """Addresses (20 bytes) of the contracts whose events the indexer stores; None for an absent contract."""

    rfq: bytes | None = None
    delta: bytes | None = None

    def filter(self) -> LogFilter:
        """Build the log filter that selects those events of the contracts that the indexer stores.

        If both contracts are present, the filter accepts each contract's event types from either address;
        `read_events` drops the logs whose event type belongs to the other contract.
        """
        addresses = tuple(address for address in (self.rfq, self.delta) if address is not None)
        topics = (RFQ_TOPICS if self.rfq is not None else ()) + (
            DELTA_TOPICS if self.delta is not None else ()
        )
        return LogFilter(addresses, (topics,))


class LoggedEvent(Struct, frozen=True):
    """A decoded event of a contract, with the log that holds it."""

    log: Log
    event: events.ContractEvent


def read_events(contracts: IndexedContracts, logs: Iterable[Log]) -> list[LoggedEvent]:
    """Decode from logs the events of the contracts that the indexer stores, in order; skip other logs.

    Raises:
        NodeContradiction: a log of a contract does not have the form of its event.
    """
    found = []
    for log in logs:
        topics = {contracts.rfq: RFQ_TOPICS, contracts.delta: DELTA_TOPICS}.get(log.address, ())
        if not log.topics or log.topics[0] not in topics:
            continue
        try:
            event = events.decode_event(log.topics, log.data)
        except InvalidInput as error:
            raise NodeContradiction(
                NodeFault.FOREIGN_LOG, f"log {log.log_index} of block {log.block_number}: {error}"
            ) from None
        if event is not None:
            found.append(LoggedEvent(log, event))
    return found


def rows_of(chain_id: int, found: Iterable[LoggedEvent], times: Mapping[int, int]) -> list[KeptRow]:
    """Build the rows to store for events, in order.

    Args:
        times: height of the block -> its timestamp, Unix seconds.
    """
    rows: list[KeptRow] = []
    nonces: set[tuple[bytes, int]] = set()
    for logged in found:
        log = logged.log
        rows += _rows_of_log(chain_id, logged.event, log, times[log.block_number] * 1_000)
        used = _used_nonce(logged.event)
        if used is not None and used not in nonces:
            nonces.add(used)
            order_hash = logged.event.order_hash if isinstance(logged.event, events.OrderSettled) else None
            owner, nonce = used
            row = UsedNonce(chain_id, owner, amount32(nonce), log.tx_hash, log.block_number, order_hash)
            rows.append((tables.NONCE_USED, row))
    return rows


def _used_nonce(event: events.ContractEvent) -> tuple[bytes, int] | None:
    """Return (owner, nonce) that an event marks as used for good; None for another event."""
    match event:
        case events.NonceInvalidated() | events.OrderSettled(is_closed=True):
            return event.owner, event.nonce
        case _:
            return None


def _rows_of_log(chain_id: int, event: events.ContractEvent, log: Log, at_ms: int) -> list[KeptRow]:
    # The key of each row: with the block's hash, so that a log mined again in another block is another row.
    place = (chain_id, log.block_hash, log.tx_hash, log.log_index)
    number = log.block_number
    match event:
        case events.OrderFilled():
            fill = OtcFill(
                *place,
                number,
                event.order_hash,
                event.maker,
                event.taker,
                event.maker_asset,
                event.taker_asset,
                amount32(event.maker_amount),
                amount32(event.taker_amount),
                at_ms,
            )
            return [(tables.OTC_FILL, fill)]
        case events.OrderCancelled():
            cancel = OtcCancel(*place, number, event.order_hash, event.maker, at_ms)
            return [(tables.OTC_CANCEL, cancel)]
        case events.OrdersCancelledUntil():
            # The event's expiry has 256 bits, the store's integers 64: NEVER_S stands for all above.
            until = OtcCancelUntil(*place, number, event.maker, min(event.expiry, NEVER_S), at_ms)
            return [(tables.OTC_CANCEL_UNTIL, until)]
        case events.OrderSettled():
            settled = DeltaFill(
                *place,
                number,
                event.order_hash,
                None,
                amount32(event.spent),
                amount32(event.received),
                at_ms,
                amount32(event.filled),
                event.is_closed,
            )
            return [(tables.DELTA_FILL, settled)]
        case events.OrderBridged():
            bridged = BridgeTransfer(
                *place,
                number,
                event.order_hash,
                event.protocol_selector,
                min(event.destination_chain_id, NEVER_S),
                event.output_token,
                amount32(event.amount),
                amount32(event.output),
                amount32(event.id),
                at_ms,
            )
            return [(tables.BRIDGE_TRANSFER, bridged)]
        case events.OrderPreSigned():
            signed = PreSignature(*place, number, event.order_hash, event.owner, event.is_signed, at_ms)
            return [(tables.PRE_SIGNATURE, signed)]
        case _:
            return []
