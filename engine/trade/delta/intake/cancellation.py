"""EIP-712 typed data that an owner signs to cancel Delta orders, and checks of such cancellations. Pure.

    POST /v2/delta/orders/build/cancellation    order ids -> typed data `toSign`, its hash
    POST /v2/delta/orders/cancel                order ids, signature -> CANCELLING, all of the orders or none

Source: spec 1.18, 1.11.7 to 1.11.16; interop.md 2 and 3.
Choice: A cancellation signs its ids as sent, spelling and order included; a repeated id counts once.
Choice: A cancellation's signature is checked before the orders' states, so that strangers learn nothing.
Choice: Cancellation is all or nothing: 1 to 100 ids of one owner and chain, none ended, BRIDGING or being
    refunded, else 400 without a change. A CANCELLING order is answered 200 again.
"""

import re
from collections.abc import Callable, Sequence
from uuid import UUID

from .....codecs.eip712_orders.delta import ORDER_CANCELLATIONS, OrderCancellations
from .....codecs.messages.delta_messages import (
    CancellationBuildBody,
    CancellationBuildResponse,
    CancellationToSign,
    TypedMember,
)
from .....codecs.messages.vocabulary import OrderStatus
from .....config.errors import InvalidInput, OrderAlreadySettled, OrdersNotFound, TooManyOrderIds
from .....config.limits import CANCEL_IDS_MAX
from .....crypto.eip712 import signing_digest
from .....crypto.hexadecimal import to_hex
from ....store.rows import DeltaOrderRow
from ...orders.order_units import order_id
from ..building.build import DeltaDomain
from ..orders.life import CANCELLABLE, DeltaStep, cancel_asked

_FIELD = "orderIds"
_is_uuid = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


def parse_order_id(text: str) -> UUID | None:
    """Parse the id of a Delta order, a UUID; return None if the text is malformed."""
    return UUID(text) if _is_uuid(text) else None


def check_ids(order_ids: Sequence[str]) -> None:
    """Check that a request to cancel orders names 1 to 100 order ids.

    Raises:
        TooManyOrderIds: more than 100 ids.
        InvalidInput: no id.
    """
    if len(order_ids) > CANCEL_IDS_MAX:
        raise TooManyOrderIds(field=_FIELD, got=len(order_ids))
    if not order_ids:
        raise InvalidInput(field=_FIELD, expected=f"1 to {CANCEL_IDS_MAX} ids", got="none")


def one_signer(order_ids: Sequence[str], rows: Sequence[DeltaOrderRow | None]) -> tuple[DeltaOrderRow, ...]:
    """Return the rows of the orders to cancel, each once, if one owner's signature can cover all of them.

    Args:
        order_ids: ids as the request names them, for errors.
        rows: stored row of the order with each id; None for an unknown id.

    Raises:
        OrdersNotFound: an id is unknown.
        InvalidInput: the orders have several owners or chains.
    """
    found: dict[bytes, DeltaOrderRow] = {}
    for text, row in zip(order_ids, rows, strict=True):
        if row is None:
            raise OrdersNotFound(field=_FIELD, expected="ids of orders", got=text)
        found[row.order_hash] = row
    first, *others = found.values()
    for row in others:
        if (row.owner, row.chain_id) != (first.owner, first.chain_id):
            raise InvalidInput(
                "orders must belong to the same user and chain",
                field=_FIELD,
                got=str(order_id(row.order_hash)),
            )
    return (first, *others)


def check_open(rows: Sequence[DeltaOrderRow]) -> None:
    """Check that each of the orders can be cancelled, or is CANCELLING already.

    Raises:
        OrderAlreadySettled: the status of an order, such as COMPLETED or BRIDGING, permits no cancellation.
    """
    for row in rows:
        if row.status is not OrderStatus.CANCELLING and row.status not in CANCELLABLE:
            raise OrderAlreadySettled(
                f"{order_id(row.order_hash)} is already finalized: {row.status.value}", field=_FIELD
            )


def cancelling(now_ms: int) -> Callable[[DeltaOrderRow], DeltaStep | None]:
    """Make the function that computes the step of an order to CANCELLING from the order's stored row.

    Args:
        now_ms: time of the step, Unix milliseconds.

    Returns:
        Function that raises OrderAlreadySettled if the order's status permits no cancellation.
    """

    def decide(row: DeltaOrderRow) -> DeltaStep | None:
        check_open((row,))
        return cancel_asked(row, now_ms)

    return decide


def cancellation_hash(order_ids: Sequence[str]) -> bytes:
    """Compute the EIP-712 struct hash, 32 bytes, of the message that cancels the orders with these ids."""
    return ORDER_CANCELLATIONS.compiled.hash_struct(OrderCancellations(tuple(order_ids)))


def cancellation_to_sign(order_ids: Sequence[str], domain: DeltaDomain) -> CancellationBuildResponse:
    """Build the EIP-712 typed data that an owner signs to cancel orders, with its digest."""
    types = {
        name: tuple([TypedMember(member["name"], member["type"]) for member in members])
        for name, members in ORDER_CANCELLATIONS.wire_types.items()
    }
    value = CancellationBuildBody(tuple(order_ids))
    digest = signing_digest(domain.separator, cancellation_hash(order_ids))
    return CancellationBuildResponse(CancellationToSign(domain.typed, types, value), to_hex(digest))
