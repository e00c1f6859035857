"""Changes of orders on the wire: one form for server-sent events, WebSockets and webhooks.

    order   an order has changed       {"event": "order", "token": ..., "orderHash": ..., "status": ...}
    open    a stream has begun         {"event": "open", "token": ...}
    beat    nothing has come of late   {"event": "beat", "token": ...}

A token stands for a place in the log of events: whoever hands it in again is told what came after it.

Source: design, "Push".
Choice: an event says what the order is now and not what it was; `version` counts an order's changes from 1.
Choice: what one kind of orders does not have is left out, and so is what an older version did not keep.
"""

from collections.abc import Callable

from msgspec import UNSET, Struct, UnsetType

from ..config.limits import JSON_BYTES_MAX
from .query import query_decoder
from .vocabulary import ChainId, Count, Name
from .wire import decoder


class EventBody(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """What an event says beyond its columns, as the store keeps it.

    Attributes:
        type: OrderType of a Delta order, OtcType of an OTC order.
        on_chain_order_type: of a Delta order.
        spent_amount, received_amount: raw units of the source and the destination token, over all fills.
    """

    type: str | UnsetType = UNSET
    on_chain_order_type: str | UnsetType = UNSET
    side: str | UnsetType = UNSET
    spent_amount: str | UnsetType = UNSET
    received_amount: str | UnsetType = UNSET


class OrderEventMessage(
    Struct,
    frozen=True,
    rename="camel",
    kw_only=True,
    omit_defaults=True,
    tag_field="event",
    tag="order",
):
    """An order has changed.

    Attributes:
        surface: `delta` or `otc`.
        id: of a Delta order.
        owner: the order's owner or maker.
        partner: empty where there is none.
        version: of the order after the change.
        at: when, ISO 8601.
        type, on_chain_order_type, side, spent_amount, received_amount: see EventBody.
    """

    token: str
    surface: str
    id: str | UnsetType = UNSET
    order_hash: str
    chain_id: ChainId
    owner: str
    partner: str
    status: str
    version: Count
    at: str
    type: str | UnsetType = UNSET
    on_chain_order_type: str | UnsetType = UNSET
    side: str | UnsetType = UNSET
    spent_amount: str | UnsetType = UNSET
    received_amount: str | UnsetType = UNSET


class OpenMessage(Struct, frozen=True, tag_field="event", tag="open"):
    """A stream has begun: what it tells comes after `token`."""

    token: str


class BeatMessage(Struct, frozen=True, tag_field="event", tag="beat"):
    """A stream is alive: nothing up to `token` is left to be told."""

    token: str


class OrderEventsQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """GET /v2/delta/orders/events: whose events, and from where on.

    Attributes:
        order_id, order_hash: of the orders; one that is named either way is meant.
        partner: exactly as orders name it.
        after: the token of an event; absent: from now on.
    """

    user_address: str | None = None
    order_id: tuple[Name, ...] | None = None
    order_hash: tuple[Name, ...] | None = None
    chain_id: tuple[ChainId, ...] | None = None
    partner: Name | None = None
    after: Name | None = None


StreamMessage = OrderEventMessage | OpenMessage | BeatMessage

decode_order_events_query = query_decoder(OrderEventsQuery)
decode_event_body = decoder(EventBody, bytes_max=JSON_BYTES_MAX)
decode_order_event = decoder(OrderEventMessage, bytes_max=JSON_BYTES_MAX)
decode_stream_message: Callable[[bytes], StreamMessage] = decoder(
    StreamMessage,  # type: ignore[arg-type]
    bytes_max=JSON_BYTES_MAX,
)
