"""Reads the Arrivals logs that end an arrived transfer: a swap, or a pay-out of the unswapped tokens. Pure.

A log from before the delivery concerns other tokens, which somebody sent to the account by mistake.

Source: contracts/Arrivals.sol, `ArrivalSwapped`, `ArrivalPaidOut`.
"""

from msgspec import Struct
from msgspec.structs import replace

from .....codecs.bridges.arrivals import ArrivalTerms, decode_arrival_log
from .....config.errors import InvalidInput
from ....chain.port import Header, Log
from ....store.rows import BridgeEnd, BridgeEndState, amount32
from ..bridging.bridged_orders import BridgedOrder
from ..orders.transfers import OrderTransfer


class ArrivedTransfer(Struct, frozen=True):
    """A transfer whose delivery waits for its swap.

    Attributes:
        end: the delivery.
        account: address of the Arrival, the account to which the bridge delivered, 20 bytes.
    """

    order: BridgedOrder
    transfer: OrderTransfer
    end: BridgeEnd
    terms: ArrivalTerms
    account: bytes


def arrived_in(order: BridgedOrder) -> list[ArrivedTransfer]:
    """List the transfers of an order whose deliveries wait for their swap."""
    terms = order.arrival
    if terms is None:
        return []
    account = order.parties.beneficiary
    return [
        ArrivedTransfer(order, transfer, transfer.end, terms, account)
        for transfer in order.transfers
        if transfer.end is not None and transfer.end.state is BridgeEndState.ARRIVED
    ]


def ended_by(arrived: ArrivedTransfer, log: Log, arrivals: bytes, header: Header) -> BridgeEnd | None:
    """Read a log as the swap or pay-out of an arrived transfer; None for any other log.

    Args:
        arrivals: the Arrivals contract, 20 bytes.
        header: block of the log.
    """
    if log.address != arrivals or (log.block_number, log.log_index) < (
        arrived.end.end_number,
        arrived.end.end_log or 0,
    ):
        return None
    try:
        event = decode_arrival_log(log.topics, log.data)
    except InvalidInput:
        return None
    if event is None or (event.arrival, event.token) != (arrived.account, arrived.terms.token):
        return None
    is_swap = event.received is not None
    # The version of the delivery's row remains: the store replaces that row only if the version is unchanged.
    return replace(
        arrived.end,
        state=BridgeEndState.SWAPPED if is_swap else BridgeEndState.PAID_OUT,
        end_block=log.block_hash,
        end_number=log.block_number,
        end_tx=log.tx_hash,
        end_log=log.log_index,
        amount=amount32(event.amount if event.received is None else event.received),
        at_ms=header.time_s * 1_000,
        is_final=False,
    )
