"""Builds units of Delta and OTC orders: a life cycle step with its event and effects. Pure.

    submitted   order + document + event + effects          stored only if the order hash is new
    advanced    compare-and-set on version + event + effects
    finished    an effect is done or failed, as part of a unit or alone

Side effects never run inside a transaction: an effect's row is written with the step that needs it, and its
executor reads the stored effects. A step that the life cycle does not have raises TransitionError before any
write.

Source: ARCHITECTURE.md, "Transitions".
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar
from uuid import UUID

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ....codecs.messages.event_messages import EventBody, OtcEventBody
from ....codecs.messages.wire import encode
from ....config.errors import StoreError
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...lifecycle import Lifecycle
from ...store.rows import (
    DeltaOrderRow,
    Effect,
    EffectState,
    OrderDocument,
    OrderEvent,
    OtcOrderRow,
    amount_of,
)
from ...store.tables import (
    DELTA_DOCUMENT,
    DELTA_ORDER,
    EFFECT,
    ORDER_EVENT,
    OTC_DOCUMENT,
    OTC_ORDER,
    Table,
)
from ...store.units import (
    Change,
    Fence,
    Unit,
    cas,
    new,
    put,
    row_of,
)
from .lifecycles import DELTA_LIFECYCLE, OTC_LIFECYCLE

_address_text = lru_cache(maxsize=1_024)(to_checksum)  # a taker's orders change together

OrderRow = TypeVar("OrderRow", DeltaOrderRow, OtcOrderRow)


class Intent(Struct, frozen=True):
    """A side effect that a life cycle step requests, to be executed after the step is stored.

    Attributes:
        kind: name of the effect; each version of an order has at most one effect of a kind.
        payload: encoded input of the effect's executor.
        due_ms: earliest time of execution, Unix milliseconds.
    """

    kind: str
    payload: bytes = b""
    due_ms: int = 0


class OrderKind(Struct, Generic[OrderRow], frozen=True):
    """A kind of orders, Delta or OTC: its name, row type, tables and life cycle."""

    name: str
    row: type[OrderRow]
    orders: Table
    documents: Table
    lifecycle: Lifecycle[Any, Any]

    def owner(self, order: OrderRow) -> bytes:
        """Return the address of an order's owner (OTC: its maker), 20 bytes, by which events are filtered."""
        return order.owner if isinstance(order, DeltaOrderRow) else order.maker

    def is_fill(self, before: OrderRow, after: OrderRow) -> bool:
        """Whether a newer row of an order shows that more of the order was filled."""
        if isinstance(before, DeltaOrderRow) and isinstance(after, DeltaOrderRow):
            return after.spent > before.spent  # amounts of 32 bytes compare as their numbers do
        if isinstance(before, OtcOrderRow) and isinstance(after, OtcOrderRow):
            return after.remaining < before.remaining
        return False

    def event(self, order: OrderRow) -> OrderEvent:
        """Build the event that publishes an order's present state to the log of events."""
        if isinstance(order, DeltaOrderRow):
            body, partner = _delta_body(order), order.partner
        else:
            body, partner = _otc_body(order), ""
        return OrderEvent(
            surface=self.name,
            order_hash=order.order_hash,
            shard=order.shard,
            chain_id=order.chain_id,
            owner=self.owner(order),
            version=order.version,
            status=str(order.status),
            at_ms=order.updated_ms,
            body=body,
            partner=partner,
        )

    def submitted(self, order: OrderRow, document: bytes, effects: Sequence[Intent] = ()) -> Unit:
        """Build the transaction that stores a new order, whose version is 1.

        Args:
            order: first row of the order.
            document: the signed order, encoded as its kind of orders stores it.
            effects: side effects to execute once the order is stored.
        """
        self.lifecycle.check_new(order.status)
        if order.version != 1 or order.shard != order.order_hash[0]:
            raise StoreError("a new order has version 1 and the shard of its hash")
        return Unit(
            (
                new(self.orders, order),
                put(self.documents, OrderDocument(order.order_hash, document)),
                put(ORDER_EVENT, self.event(order)),
                *_effects(order, effects),
            )
        )

    def advanced(
        self,
        before: OrderRow,
        after: OrderRow,
        *,
        effects: Sequence[Intent] = (),
        more: Sequence[Change] = (),
        fence: Fence | None = None,
    ) -> Unit:
        """Build the transaction that stores a changed row of an order, with its event and effects.

        The store refuses the transaction unless the stored version of the order is that of `before`.

        Args:
            after: `before` with the changed columns (`step`).
            effects: side effects to execute once the transaction is stored.
            more: further changes of the same transaction: fills, finished effects, a cursor.
            fence: lease of the order's shard; the store refuses the transaction if another process has taken
                the shard since. None: no such check.
        """
        self.lifecycle.check(before.status, after.status, is_final=before.is_final)
        if after.version != before.version + 1:
            raise StoreError("a step makes the next version of an order")
        # `cas` compares with the version in its row, and the store itself then writes the next version: with
        # `after`, whose version is already the next, every unit would be refused.
        expected = replace(after, version=before.version)
        return Unit(
            (
                cas(self.orders, expected),
                *more,
                put(ORDER_EVENT, self.event(after)),
                *_effects(after, effects),
            ),
            fence,
        )

    def found(self, values: Any) -> OrderRow:
        """Decode the row of an order from the column values that the store returns."""
        order: OrderRow = row_of(self.orders, values)
        return order


DELTA: OrderKind[DeltaOrderRow] = OrderKind(
    "delta", DeltaOrderRow, DELTA_ORDER, DELTA_DOCUMENT, DELTA_LIFECYCLE
)
OTC: OrderKind[OtcOrderRow] = OrderKind("otc", OtcOrderRow, OTC_ORDER, OTC_DOCUMENT, OTC_LIFECYCLE)


def step(order: OrderRow, now_ms: int, **changed: Any) -> OrderRow:
    """Return the next version of an order's row with changed columns.

    Args:
        now_ms: time of the change, Unix milliseconds.
        changed: new values of columns.
    """
    return replace(order, version=order.version + 1, updated_ms=now_ms, **changed)


def order_id(order_hash: bytes) -> UUID:
    """Derive the id of an order: a UUIDv4 whose random bits are the first bits of the order's hash.

    Choice: Order ids are UUIDv4 made of the order's hash, whose first byte is the shard: ids need not be
        secret, and a random key would cost an index.
    """
    return UUID(bytes=order_hash[:16], version=4)


def hashes_of_id(order_id: UUID) -> tuple[bytes, bytes]:
    """Return the least and the greatest order hash from which an order id may derive, to bound a query.

    Hashes of other ids lie between the bounds too, since the bounds fix only the first 6 bytes.
    """
    start = order_id.bytes[:6]
    return start + bytes(26), start + b"\xff" * 26


def effect_key(order_hash: bytes, version: int, kind: str) -> str:
    """Build the key of a side effect from the order's hash, the order's version and the effect's kind."""
    return f"{order_hash.hex()}:{version}:{kind}"


def finished(effect: Effect, now_ms: int, *, failed: bool = False) -> Change:
    """Build the store change that marks a side effect as done or failed."""
    return cas(
        EFFECT, replace(effect, state=EffectState.FAILED if failed else EffectState.DONE, updated_ms=now_ms)
    )


def _delta_body(order: DeltaOrderRow) -> bytes:
    """Encode the body of a Delta order's event: the values that the table of events has no column for."""
    return encode(
        EventBody(
            type=order.type,
            on_chain_order_type=order.kind,
            side=order.side,
            spent_amount=str(amount_of(order.spent)),
            received_amount=str(amount_of(order.received)),
        )
    )


def _otc_body(order: OtcOrderRow) -> bytes:
    """Encode the body of an OTC order's event: the values that the table of events has no column for."""
    return encode(
        OtcEventBody(
            type=order.type,
            taker=_address_text(order.taker),
            taker_from_meta=_address_text(order.taker_from_meta),
            fillable_balance=str(amount_of(order.remaining)),
            swappable_balance=str(amount_of(order.swappable)),
            transaction_hash=UNSET if order.transaction_hash is None else to_hex(order.transaction_hash),
        )
    )


def _effects(order: DeltaOrderRow | OtcOrderRow, intents: Sequence[Intent]) -> list[Change]:
    return [
        put(
            EFFECT,
            Effect(
                key=effect_key(order.order_hash, order.version, intent.kind),
                order_hash=order.order_hash,
                shard=order.shard,
                kind=intent.kind,
                payload=intent.payload,
                created_ms=order.updated_ms,
                version=1,
                state=EffectState.INTENDED,
                attempts=0,
                due_ms=intent.due_ms,
                updated_ms=order.updated_ms,
            ),
        )
        for intent in intents
    ]
