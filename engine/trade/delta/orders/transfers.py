"""Bridge transfers of an order, and the order's status that follows from the logs of both chains. Pure.

    transfer          end at the destination    refund on the origin    state
    OrderBridged      none                      none                    UNDER_WAY
                      ARRIVED                   none                    ARRIVED
                      DELIVERED, UNWRAPPED      none                    DELIVERED
                      SWAPPED, PAID_OUT         none                    DELIVERED
                      FAILED                    none, or in part        FAILED
                      FAILED                    verified, in full       REFUNDED

    states of all transfers of a settled order: the first row that fits  status of the order
    a transfer is UNDER_WAY or ARRIVED                                   BRIDGING
    a transfer is FAILED                                                 REFUNDING
    a transfer is REFUNDED                                               REFUNDED
    all are DELIVERED                                                    COMPLETED

Each settlement of an order across chains makes one transfer: a settlement without an indexed transfer counts
as UNDER_WAY. The amount is with the bridge while its transfer is UNDER_WAY or FAILED.

Source: spec 1.10.19 to 1.10.27, 1.11; ARCHITECTURE.md, "Transitions".
Choice: An order of several transfers is BRIDGING until each is decided, REFUNDING until each failed one is
    refunded, and REFUNDED if any was: `transactions` shows each delivery, `refunds` each refund.
Choice: A failed transfer stops no later slice of a TWAP. A cancelled or expired TWAP keeps its state while
    its transfers are followed to their ends.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from .....codecs.eip712_orders.delta import SAME_CHAIN, AnyDeltaOrder, DeltaBridge
from .....codecs.messages.vocabulary import OrderStatus
from ....store.rows import BridgeEnd, BridgeEndState, BridgeTransfer, DeltaFill, DeltaRefund, amount_of
from ...orders.lifecycles import DELTA_LIFECYCLE, DeltaReason

_S, _W = OrderStatus, DeltaReason
_DELIVERED = (
    BridgeEndState.DELIVERED,
    BridgeEndState.UNWRAPPED,
    BridgeEndState.SWAPPED,
    BridgeEndState.PAID_OUT,
)

TransferKey = tuple[int, bytes, bytes, int]
"""Place of a transfer's log on the origin: (chain id, block hash, transaction hash, log index)."""


class TransferState(StrEnum):
    """State of a bridge transfer, which follows from the logs of both chains."""

    UNDER_WAY = "underWay"
    ARRIVED = "arrived"
    DELIVERED = "delivered"
    FAILED = "failed"
    REFUNDED = "refunded"


class OrderTransfer(Struct, frozen=True):
    """A bridge transfer of an order, with its end at the destination and its refunds on the origin.

    Attributes:
        end: end of the transfer; None while the destination shows no end.
        refunds: refunds of the transfer, oldest first; several if several entries of the bridge's logs pay a
            failed transfer.
    """

    sent: BridgeTransfer
    end: BridgeEnd | None = None
    refunds: tuple[DeltaRefund, ...] = ()

    @property
    def state(self) -> TransferState:
        """State of the transfer."""
        if self.end is None:
            return TransferState.UNDER_WAY
        if self.delivery is not None:
            return TransferState.DELIVERED
        if self.end.state is BridgeEndState.ARRIVED:
            return TransferState.ARRIVED
        return TransferState.FAILED if self.owed else TransferState.REFUNDED

    @property
    def owed(self) -> int:
        """Raw units of the origin's token that no verified refund has paid back."""
        paid = sum(amount_of(refund.amount) for refund in self.refunds)
        return max(0, amount_of(self.sent.amount) - paid)

    @property
    def delivery(self) -> BridgeEnd | None:
        """The verified delivery to the beneficiary; None without one."""
        is_delivered = self.end is not None and self.end.state in _DELIVERED
        return self.end if is_delivered else None

    @property
    def is_final(self) -> bool:
        """Whether the transfer is delivered or refunded, and no re-organisation can undo that any more."""
        match self.state:
            case TransferState.DELIVERED:
                return self.end is not None and self.end.is_final
            case TransferState.REFUNDED:
                return all(refund.is_final for refund in self.refunds)
            case _:
                return False


def bridge_of(order: AnyDeltaOrder) -> DeltaBridge:
    """Return the bridge of a signed order; SAME_CHAIN for an order on one chain."""
    bridge: DeltaBridge = getattr(order, "bridge", SAME_CHAIN)
    return bridge


def key_of(row: BridgeTransfer | BridgeEnd) -> TransferKey:
    """Return the place of a transfer's log, which identifies the transfer."""
    return row.chain_id, row.block_hash, row.tx_hash, row.log_index


def refunded_key(refund: DeltaRefund) -> TransferKey:
    """Return the key of the transfer that a refund pays back."""
    return refund.chain_id, refund.transfer_block, refund.transfer_tx, refund.transfer_log


def followed(
    sent: Iterable[BridgeTransfer], ends: Iterable[BridgeEnd], refunds: Iterable[DeltaRefund]
) -> tuple[OrderTransfer, ...]:
    """Join transfers with their ends and refunds, oldest transfer first.

    Ends and refunds of transfers that a re-organisation of the origin undid are left out.
    """
    end_of = {key_of(end): end for end in ends}
    refunds_of: dict[TransferKey, list[DeltaRefund]] = {}
    for refund in sorted(refunds, key=lambda row: (row.block_number, row.log_index, row.entry)):
        refunds_of.setdefault(refunded_key(refund), []).append(refund)
    in_order = sorted(sent, key=lambda row: (row.block_number, row.log_index))
    return tuple(
        OrderTransfer(row, end_of.get(key_of(row)), tuple(refunds_of.get(key_of(row), ())))
        for row in in_order
    )


def settled_reason(status: OrderStatus, fill_count: int, transfers: Sequence[OrderTransfer]) -> DeltaReason:
    """Derive from transfers the reason for the next step of an order that is settled wholly on its origin.

    The reason may lead to the present status. From a state before the settlement the first step is to
    BRIDGING, whatever the transfers show.

    Args:
        fill_count: number of the order's settlements on the origin.
    """
    if status in DELTA_LIFECYCLE.before(_W.ORIGIN_SETTLED):
        return _W.ORIGIN_SETTLED
    states = Counter(transfer.state for transfer in transfers)
    is_under_way = states[TransferState.UNDER_WAY] or states[TransferState.ARRIVED]
    if is_under_way or len(transfers) < fill_count:
        return _W.ORIGIN_SETTLED if status is _S.BRIDGING else _W.DESTINATION_GONE
    if states[TransferState.FAILED]:
        return _W.REFUND_GONE if status is _S.REFUNDED else _W.DESTINATION_FAILED
    return _W.REFUND_VERIFIED if states[TransferState.REFUNDED] else _W.DESTINATION_SETTLED


def delivered(transfers: Iterable[OrderTransfer]) -> int:
    """Sum the raw units that verified deliveries, or the swaps after them, brought to the beneficiary."""
    return sum(amount_of(transfer.delivery.amount) for transfer in transfers if transfer.delivery is not None)


def transfers_of_fills(
    fills: Sequence[DeltaFill], transfers: Sequence[OrderTransfer]
) -> list[OrderTransfer | None]:
    """Match the settlements of an order with their transfers; None for a settlement without a transfer.

    A settlement and its transfer are logs of one transaction, the transfer first; several settlements of one
    transaction are matched in their sequence.

    Args:
        fills, transfers: oldest first.
    """
    waiting: dict[tuple[bytes, bytes], list[OrderTransfer]] = {}
    for transfer in transfers:
        waiting.setdefault((transfer.sent.block_hash, transfer.sent.tx_hash), []).append(transfer)
    matched: list[OrderTransfer | None] = []
    for fill in fills:
        of_transaction = waiting.get((fill.block_hash, fill.tx_hash), [])
        matched.append(of_transaction.pop(0) if of_transaction else None)
    return matched
